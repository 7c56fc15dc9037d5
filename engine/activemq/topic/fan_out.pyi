from typing_extensions import disjoint_base

from pyengine._engine.activemq.topic.ledger import Ledger

@disjoint_base
class Topic:
    number: int
    name: str
    always_retroactive: bool
    exact_errors: bool

@disjoint_base
class FanOut(Ledger):
    selector_errors: int
