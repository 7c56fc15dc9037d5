"""Lines of a client's log about its connections to name servers and brokers (NettyRemotingClient, MQClientInstance)."""

from __future__ import annotations

import re
from typing import NamedTuple

from pyengine.backlog.diagnosis.evidence.model import EventKind

_ADDRESS = r"[^\s<>\[\],]*"
_WORDS: tuple[tuple[EventKind, str], ...] = (
    ("reached", rf"connect remote host\[(?P<address>{_ADDRESS})\] success"),
    ("reached", rf"send heart beat to broker\[\S+ \S+ (?P<address>{_ADDRESS})\] success"),
    ("unreached", rf"connect remote host\[(?P<address>{_ADDRESS})\] (?:failed|timeout)"),
    ("unreached", rf"send heart beat to broker\[\S+ \S+ (?P<address>{_ADDRESS})\] (?:failed|exception)"),
    ("unreached", rf"\bconnect to <?(?P<address>{_ADDRESS})>? failed"),  # with brackets until 4.0
    ("unreached", rf"send request to <(?P<address>{_ADDRESS})> failed"),
    ("unreached", r"Connection refused(?:: no further information)?: (?:\S*/)?(?P<address>[\w.:%-]+:\d+)"),
    ("unreached", r"connection timed out(?: after \d+ ms)?: (?:\S*/)?(?P<address>[\w.:%-]+:\d+)"),
    ("unreached", r"No name server address, please set it(?P<address>)"),
    ("unanswered", rf"wait response on the channel <(?P<address>{_ADDRESS})> timeout"),
    ("unanswered", rf"close socket because of timeout, \d+ms, (?:channel\[addr=)?(?P<address>{_ADDRESS})"),
    ("unanswered", r"RemotingTooMuchRequestException: .*(?:timeout|too fast|too much)(?P<address>)"),
    ("no_route", r"No (?:topic )?route info (?:of|for) this topic[:,] ?(?P<address>[\w%|-]+)"),
    ("idle", rf"CLIENT PIPELINE: IDLE exception (?:channel)?\[(?:addr=)?(?P<address>{_ADDRESS})"),
    ("closed", rf"close the connection to remote address\[(?P<address>{_ADDRESS})\]"),
)
_PATTERNS = tuple((kind, re.compile(words)) for kind, words in _WORDS)
# A word of each of these lines.
TELLING = (
    "connect remote host[", "send heart beat to broker[", "onnect to ", "send request to <", "onnection refused",
    "onnection timed out", "No name server address", "wait response on", "because of timeout", "TooMuchRequest",
    "route info ", "IDLE exception", "close the connection to",
)  # fmt: skip
# The exceptions alone, without a line of the client's logger around them: of a program's own log, or of a terminal.
_ALONE = re.compile(
    r"\bRemoting(?:Connect|SendRequest|Timeout|TooMuchRequest)Exception: \S|No name server address, please set it"
    r"|No route info of this topic"
)


class Connection(NamedTuple):
    """kind: of the event. address: of the other side (of ``no_route``: the topic), empty: the line does not say."""

    kind: EventKind
    address: str


def recognises(text: str) -> bool:
    """True if one of the remoting exceptions is there."""
    return _ALONE.search(text) is not None


def connection_in(line: str) -> Connection | None:
    """The event of a connection in a line."""
    for kind, pattern in _PATTERNS:
        if match := pattern.search(line):
            address = match["address"]
            return Connection(kind, "" if address == "null" else address)
    return None
