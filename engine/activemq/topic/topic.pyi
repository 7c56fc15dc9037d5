from typing_extensions import disjoint_base

@disjoint_base
class Topic:
    number: int
    name: str
    always_retroactive: bool
    exact_errors: bool
