from typing_extensions import disjoint_base

@disjoint_base
class Channel:
    size: int
    running: bool
    closed: bool
    def __len__(self) -> int: ...
