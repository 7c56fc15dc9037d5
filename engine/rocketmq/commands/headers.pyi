from collections.abc import Mapping
from typing import Any, Final

CLASS_NAMES: Final[tuple[str, ...]]
CODES: Final[dict[str, int]]

def write_header(name: str, values: dict[str, Any], binary: bool = False) -> dict[str, str]: ...
def read_header(name: str, ext_fields: Mapping[str, str] | None) -> dict[str, Any]: ...
