from typing_extensions import disjoint_base

from pyengine._engine.activemq.client.dispatch_channel import MessageDispatch
from pyengine.activemq.transport.commands import Answer

@disjoint_base
class Route:
    def __call__(self, dispatch: MessageDispatch) -> Answer | None: ...
