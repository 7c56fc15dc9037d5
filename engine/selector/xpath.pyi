from typing import Self

from typing_extensions import disjoint_base

@disjoint_base
class Path:
    text: str
    def __new__(cls, text: str) -> Self: ...
    def __call__(self, body: str | bytes | None) -> bool: ...

def compile_path(text: str) -> Path: ...
