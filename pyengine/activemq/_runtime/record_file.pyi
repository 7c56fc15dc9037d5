from typing import Self, final

@final
class RecordFile:
    """A file that is open for appending. newest: the number of its last record, or one that gets no record."""

    newest: int

    def __new__(cls, descriptor: int, newest: int) -> Self: ...
    @property
    def size(self) -> int: ...
    def append(self, number: int, record: bytes) -> None:
        """Write a record; ``newest`` is then its number. Raises OSError, and how much of it is there is not known."""

    def emptied(self) -> None:
        """The file was cut behind its head."""

    def closed(self) -> None:
        """The file is about to be closed: what has its descriptor next is another one."""
