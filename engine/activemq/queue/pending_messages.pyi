from typing_extensions import disjoint_base

from pyengine._engine.activemq.queue.ready_index import Lanes

@disjoint_base
class Pending(Lanes):
    def _check(self) -> None: ...
