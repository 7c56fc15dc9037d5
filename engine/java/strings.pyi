from typing import Final

BLANKS: Final[str]
