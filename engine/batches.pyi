from typing import Any

from numpy.typing import NDArray

def column(field: str, values: Any, size: int, dtype: Any) -> NDArray[Any]: ...
