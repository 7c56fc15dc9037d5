from typing_extensions import disjoint_base

from pyengine._engine.activemq.queue.queue_state import QueueState

@disjoint_base
class Rounds(QueueState): ...
