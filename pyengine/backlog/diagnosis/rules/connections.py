"""Rules for connections: name servers and brokers that a client does not reach, by its log."""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence

from pyengine.backlog.diagnosis.evidence import ClientEvent, Evidence
from pyengine.backlog.diagnosis.evidence.model import EventKind
from pyengine.backlog.diagnosis.rules.series import by_time, seconds, span
from pyengine.backlog.findings import Finding, Said, Severity, say

RETRIED = 120.0  # seconds within which a client has tried each address again: routes and heartbeats go every 30 s
CLOSED_OFTEN = 3
NAME_SERVER_PORT, VIP_PORT = "9876", "10909"
CONTAINERS = ipaddress.ip_network("172.16.0.0/12")  # the bridges of Docker lie in it
NAME_SERVER = say(
    "The client knows no route of any topic without a name server: nothing is pulled or sent. Compare its namesrvAddr "
    "(addresses are parted by semicolons, and the environment's NAMESRV_ADDR counts where none is set) with where "
    "mqnamesrv listens, and try from the client's machine: `telnet HOST 9876`. Firewalls, security groups and a "
    "container's own network are the usual reasons."
)
BROKER = say(
    "The name server gave this address, and the client does not reach it. Is the broker up (`mqadmin clusterList`)? "
    "Try from the client's machine: `telnet HOST PORT`. Ports 10911, 10909 (two less) and 10912 must be open in "
    "firewalls and security groups. An address that only the broker's own network knows is set right by brokerIP1 in "
    "broker.conf."
)
OWN_NETWORK = say(
    "This address is known inside the broker's own machine or container network alone. Set brokerIP1 in broker.conf to "
    "an address that clients reach, publish port 10911 with the same number, and restart the broker: it is what the "
    "broker tells the name server."
)
VIP = say(
    "10909 is the broker's second port (listenPort - 2), which clients before 4.5 use unless they are told otherwise: "
    "open it, or set vipChannelEnabled=false (-Dcom.rocketmq.sendMessageWithVIPChannel=false)."
)
NODE = say(
    "Compare bootstrap.servers with the broker's listeners. The client then goes on with the addresses that the broker "
    "advertises (advertised.listeners): one that only the broker's own machine or container network knows, such as "
    "localhost, must be changed there. Try from the client's machine: `nc -vz HOST PORT`."
)

OVER = say("It is over: the log goes on without it. A restart of the other side looks like that.")


def unreachable(evidence: Evidence) -> Iterator[Finding]:
    """name_server_unreachable / broker_unreachable: by its log, a client does not get a connection."""
    series = by_time(_of(evidence, "unreached", "reached"), lambda event: event.label)
    broken: dict[Hashable, list[ClientEvent]] = {
        address: events for address, events in series.items() if any(map(_unreached, events))
    }
    name_servers = {address: events for address, events in broken.items() if _is_name_server(str(address))}
    brokers = {address: events for address, events in broken.items() if address not in name_servers}
    if len(name_servers) > 1:
        name_servers.pop("", None)  # the exception that follows names no address
    if name_servers:
        lasts = any(not _over(events, evidence) for events in name_servers.values())
        yield Finding(
            "name_server_unreachable",
            Severity.ERROR if lasts else Severity.INFO,
            say("connections to the name server"),
            _lines(name_servers),
            NAME_SERVER if lasts else OVER,
        )
    if brokers:
        lasts = any(not _over(events, evidence) for events in brokers.values())
        yield Finding(
            "broker_unreachable",
            Severity.ERROR if lasts else Severity.INFO,
            say("connections to brokers"),
            _lines(brokers),
            _broker_advice([str(address) for address in brokers]) if lasts else OVER,
        )


def unreachable_nodes(evidence: Evidence) -> Iterator[Finding]:
    """broker_unreachable: by its log, a client of Kafka does not get a connection."""
    series = by_time(_of(evidence, "node_unreached"), lambda event: event.label)
    if series:
        yield Finding(
            "broker_unreachable",
            Severity.ERROR,
            say("connections to brokers"),
            _lines(series),
            NODE,
        )


def unanswered(evidence: Evidence) -> Iterator[Finding]:
    """no_answer_in_time: requests to a name server or broker get no answer within their time."""
    events = _of(evidence, "unanswered")
    if not events or (any(map(_unreached, evidence.events)) and not any(each.label for each in events)):
        return  # a client that waits for a connection cannot send
    series = by_time(events, lambda event: event.label)
    if len(series) > 1:
        series.pop("", None)
    yield Finding(
        "no_answer_in_time",
        Severity.WARNING,
        say("connections to the name server")
        if any(series) and all(_is_name_server(str(address)) for address in series)
        else say("connections to brokers"),
        _lines(series),
        say(
            "The connection or the answer takes longer than the request's time (sendMsgTimeout is 3 s unless it is "
            "set). Try the address from the client's machine: `telnet HOST PORT`. If it answers, look for a broker "
            "that is busy (its broker.log: `[TIMEOUT_CLEAN_QUEUE]`, `[REJECTREQUEST]`; disk, page cache), for long "
            "garbage collections on either side, and for a network that loses packets."
        ),
    )  # fmt: skip


def no_route(evidence: Evidence) -> Iterator[Finding]:
    """no_route: a producer's topic is not known to the name server that it asks."""
    for topic, events in by_time(_of(evidence, "no_route"), lambda event: event.topic).items():
        yield Finding(
            "no_route",
            Severity.ERROR,
            say("topic {topic}", topic=topic),
            (_line(str(topic), events),),
            say(
                "The name server knows no broker with this topic. Create it (`mqadmin updateTopic -c CLUSTER -t "
                "TOPIC`), or look whether the client asks the right name server (`mqadmin topicList -n ADDRESS`) and "
                "whether the brokers are registered there (`mqadmin clusterList`); topics are created by themselves "
                "only where autoCreateTopicEnable is true."
            ),
        )


def closed_often(evidence: Evidence) -> Iterator[Finding]:
    """connections_close: connections to one address are closed again and again, though they were not idle."""
    idle = {each.label for each in _of(evidence, "idle")}
    failing = {each.label for each in _of(evidence, "unreached", "unanswered")}
    for address, events in by_time(_of(evidence, "closed"), lambda event: event.label).items():
        moments = {each.time for each in events}
        if address and address not in idle | failing and len(moments) >= CLOSED_OFTEN:
            yield Finding(
                "connections_close",
                Severity.WARNING,
                say("connections to the name server")
                if _is_name_server(str(address))
                else say("connections to brokers"),
                (_line(str(address), events),),
                say(
                    "Connections are opened and closed again. Look at the other side's log at the same time, and for "
                    "what stands between: a load balancer or NAT that ends quiet connections, TLS on one side only "
                    "(tls.enable), a port that belongs to another service, clients of another release."
                ),
            )


def _of(evidence: Evidence, *kinds: EventKind) -> list[ClientEvent]:
    return [each for each in evidence.events if each.kind in kinds]


def _unreached(event: ClientEvent) -> bool:
    return event.kind == "unreached"


def _is_name_server(address: str) -> bool:
    """By the port; an exception without an address is that of a request to whichever name server is there."""
    return not address or address.rpartition(":")[2] == NAME_SERVER_PORT


def _broker_advice(addresses: Sequence[str]) -> Said:
    if addresses and all(_is_of_own_network(address) for address in addresses):
        return OWN_NETWORK
    if addresses and all(address.rpartition(":")[2] == VIP_PORT for address in addresses):
        return VIP
    return BROKER


def _is_of_own_network(address: str) -> bool:
    try:
        host = ipaddress.ip_address(address.rpartition(":")[0].strip("[]"))
    except ValueError:  # a name
        return address.startswith("localhost:")
    return host.is_loopback or (host.version == 4 and host in CONTAINERS)


def _over(events: Sequence[ClientEvent], evidence: Evidence) -> bool:
    """The address was reached later, or the log goes on for longer than a client takes to try again."""
    failures = [each for each in events if _unreached(each)]
    last = failures[-1]
    if any(each.kind == "reached" for each in events[events.index(last) :]):
        return True
    if not last.time:
        return False
    ends = [max(each.times) for each in evidence.sources if each.file == last.file and len(each.times) > 1]
    return bool(ends) and (max(ends) - last.time) / 1000 > RETRIED


def _lines(series: Mapping[Hashable, Sequence[ClientEvent]]) -> tuple[Said, ...]:
    return tuple(_line(str(address), events) for address, events in list(series.items())[:5])


def _line(address: str, events: Sequence[ClientEvent]) -> Said:
    """The last such line of an address, how many there are and over how long."""
    kinds = Counter(each.kind for each in events)
    kinds.pop("reached", None)
    kind = kinds.most_common(1)[0][0]
    same_kind = [each for each in events if each.kind == kind]
    last = same_kind[-1]
    lasted = seconds(same_kind[0], last)
    words = {
        "unreached": say("not reached"),
        "node_unreached": say("not reached"),
        "unanswered": say("no answer in time"),
        "no_route": say("not known"),
        "closed": say("connection closed"),
    }[kind]
    said = say("{count:time|times}", count=len(same_kind))
    if lasted:
        said = say("{count:time|times} in {span}", count=len(same_kind), span=span(lasted))
    return say(
        "{address}: {what}, {often}, last ({file}:{line}): {words}",
        address=address or say("(no address)"),
        what=words,
        often=said,
        file=last.file,
        line=last.line,
        words=last.words,
    )


RULES = (unreachable, unreachable_nodes, unanswered, no_route, closed_often)


def findings(evidence: Evidence) -> Iterator[Finding]:
    """Every rule."""
    for rule in RULES:
        yield from rule(evidence)
