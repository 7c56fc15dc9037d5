from typing_extensions import disjoint_base

from pyengine._engine.activemq.queue.message_slots import MessageSlots

@disjoint_base
class Lanes(MessageSlots):
    def _check(self) -> None: ...
