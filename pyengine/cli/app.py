"""The commands. Results go to standard output; progress and errors to standard error.

Each imports what it needs when it runs: a shell that completes words runs this program at every Tab.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

import pyengine
from pyengine.cli.outlet import print_json, refuse, tell
from pyengine.errors import ConfigurationError, PyengineError, UnknownNameError
from pyengine.visible import one_line

if TYPE_CHECKING:
    from rich.console import Console

USAGE_ERROR: type[Any] = typer.BadParameter.__bases__[0]  # what the command line itself refuses


@contextmanager
def shown_usage() -> Iterator[None]:
    """A value as an error message shows it: typer and click leave it as it is, or escape parts of it."""
    try:
        yield
    except USAGE_ERROR as error:
        error.message = one_line(error.message)
        raise


class Commands(TyperGroup):
    """The commands, whose usage errors command no terminal."""

    def make_context(self, *arguments: Any, **settings: Any) -> Any:
        """Of what stands before the command."""
        with shown_usage():
            return super().make_context(*arguments, **settings)

    def invoke(self, ctx: Any) -> Any:
        """Of the command and what stands behind it."""
        with shown_usage():
            return super().invoke(ctx)


app = typer.Typer(
    name="pyengine",
    cls=Commands,
    help="Which consumer gets which message, by ActiveMQ's rules, and why the rest waits. "
    "Exit codes: 0 clean, 1 findings (rejected rows), 2 bad input.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


class Tool(StrEnum):
    """What takes a dump of a process."""

    jstack = "jstack"
    py_spy = "py-spy"


class Lang(StrEnum):
    """Languages of pages and findings."""

    en = "en"
    zh = "zh"


class Form(StrEnum):
    """What lint prints."""

    plain = "plain"
    json = "json"
    sarif = "sarif"
    github = "github"


Json = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
Page = Annotated[Path | None, typer.Option("--report", help="Also write an offline HTML page.")]
TableLanguage = Annotated[Lang, typer.Option("--lang", help="Language of the table and of the page; JSON is English.")]
FindingLanguage = Annotated[
    Lang, typer.Option("--lang", help="Language of the findings and of the page; JSON is English.")
]
Rules = Annotated[
    list[str] | None,
    typer.Option("--select", help="Rules, by the names that findings show, with commas between; may be repeated."),
]
Define = Annotated[
    list[str] | None,
    typer.Option("--define", "-D", help="NAME=VALUE of a ${placeholder} in an activemq.xml; may be repeated."),
]
Encoding = Annotated[
    str, typer.Option("--encoding", help="Of all files, as gb18030; without it: what a file says, else UTF-8.")
]


@contextmanager
def plain_errors() -> Iterator[None]:
    """A mistake of the user's is one clear message and exit code 2, never a traceback."""
    try:
        yield
        sys.stdout.flush()
    except PyengineError as error:
        refuse(error)
        raise typer.Exit(2) from error
    except OSError as error:
        tell(f"pyengine: {error.filename or 'the answer'} cannot be written: {error.strerror}")
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python complains when it closes stdout
        raise typer.Exit(2) from error
    except KeyboardInterrupt:
        print("pyengine: interrupted", file=sys.stderr)
        raise typer.Exit(130) from None


def console() -> Console:
    """Of a table; commands that show none do not wait for what it imports."""
    from rich.console import Console

    return Console()


def _version(asked: bool) -> None:
    if asked:
        print("pyengine", pyengine.__version__)
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Which consumer gets which message, by ActiveMQ's rules, and why the rest waits."""


@app.command()
def run(
    topology: Annotated[Path, typer.Argument(help="A TOML file; see docs/topology.md and examples/flights.")],
    out: Annotated[Path | None, typer.Option(help="Folder for the results [default: out/<name of the file>].")] = None,
    master: Annotated[
        str | None, typer.Option(help="Spark master, for instance spark://host:7077 [default: local[*]].")
    ] = None,
    partitions: Annotated[
        int | None, typer.Option(min=1, help="Spark partitions [default: two for each core].")
    ] = None,
    as_json: Json = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no table; errors only.")] = False,
    lang: TableLanguage = Lang.en,
) -> None:
    """Send every row through its queue, and print the consumer of each and why the rest waits."""
    with plain_errors():
        from pyengine.cli import run as running

        folder = out or Path("out") / topology.stem
        summary = running.run(topology, folder, master, partitions, quiet or as_json, lang.value)
        if as_json:
            print_json(summary)
        elif not quiet:
            running.show(summary, console(), lang.value)
    raise typer.Exit(1 if summary["rejected"] else 0)


@app.command()
def match(
    selector: Annotated[
        str,
        typer.Argument(help='For instance "region = \'EU\' AND price > 100"; @FILE: many, name = "selector" in TOML.'),
    ],
    files: Annotated[list[str] | None, typer.Argument(help="Parquet, JSON lines or CSV; - or nothing: stdin.")] = None,
    count: Annotated[bool, typer.Option("--count", "-c", help="Print the number of matching rows only.")] = False,
    format: Annotated[str, typer.Option(help="parquet, jsonl or csv [default: by suffix; stdin: jsonl].")] = "",
    dialect: Annotated[str, typer.Option(help="activemq or rocketmq.")] = "activemq",
    missing: Annotated[
        bool, typer.Option("--missing-null", help="A column the selector names and the data lacks is null.")
    ] = False,
) -> None:
    """Print the rows a selector (or any of many) matches, as JSON lines.

    Exit code 1: some rows could not be read or evaluated.
    """
    with plain_errors():
        from pyengine.cli import match as matching

        findings = matching.match(matching.Question(selector, dialect, missing), files or ["-"], format, count=count)
    raise typer.Exit(1 if findings else 0)


@app.command()
def diagnose(
    files: Annotated[
        list[str] | None, typer.Argument(help="Snapshots, logs, thread dumps; folders too; - is stdin.")
    ] = None,
    as_json: Json = False,
    report: Page = None,
    lang: FindingLanguage = Lang.en,
    encoding: Encoding = "",
    define: Define = None,
    namesrv: Annotated[
        str, typer.Option(help="Ask a live RocketMQ cluster too: host:port;host:port of its name servers.")
    ] = "",
    group: Annotated[str, typer.Option(help="The consumer group that --namesrv is asked for.")] = "",
    every_ms: Annotated[
        int, typer.Option(min=50, max=3_600_000, help="Milliseconds between the two looks at --namesrv.")
    ] = 30_000,
) -> None:
    """Find out from files why messages wait: what is wrong where, what shows it, what to do.

    Read are Jolokia JSON of ActiveMQ's MBeans, activemq.xml, dstat, mqadmin consumerProgress and consumerStatus,
    rocketmq_client.log, kafka-consumer-groups, jstack and py-spy dumps (three or more of one process), Spark streaming
    progress. Two snapshots some time apart say much more than one. Exit code 0: something was
    judged, and is healthy; 1: warnings or errors were found; 2: a file was not understood (the others are answered all
    the same), or what was read does not tell yet.
    """
    with plain_errors():
        from pyengine.backlog.diagnosis.evidence import Remark
        from pyengine.backlog.pages import findings_page
        from pyengine.backlog.pages import page as pages
        from pyengine.backlog.sentence_templates import heard
        from pyengine.cli import diagnose as diagnosing
        from pyengine.cli import policies as policing

        pages.check_target(report)
        if bool(namesrv) != bool(group) or not (files or namesrv):
            hint = "give FILES, or --namesrv HOST:PORT and --group GROUP"
            raise UnknownNameError("diagnose", namesrv or group, "not all is there to look at", hint)
        live = diagnosing.look(namesrv, group, every_ms, lang.value) if namesrv else None
        answer = diagnosing.ask(files or [], encoding, policing.properties_of(define or []), live)
        evidence, found, refused = answer
        if report is not None and not answer.says_nothing:
            remarks = [*(Remark(each.source, 0, "", heard(each.problem)) for each in refused), *evidence.remarks]
            hints, read = diagnosing.hints(evidence), diagnosing.read_from(evidence)
            pages.write(findings_page.render("Diagnosis", found, remarks, lang.value, hints=hints, read=read), report)
        if as_json:
            print_json(diagnosing.as_dict(evidence, found, refused))
        elif not answer.says_nothing:
            diagnosing.show(evidence, found, console(), lang.value)
        for error in refused:
            refuse(error)
    raise typer.Exit(answer.exit_code)


@app.command()
def policies(
    file: Annotated[Path, typer.Argument(help="An activemq.xml, or a TOML file; see docs/policies.md.")],
    destinations: Annotated[
        list[str] | None, typer.Argument(help="Which entry counts for these; a queue, or topic://NAME.")
    ] = None,
    define: Define = None,
    broker: Annotated[str, typer.Option(help="brokerName, if the file has several.")] = "",
    as_json: Json = False,
) -> None:
    """Show a broker's policies, which entry counts for a destination, and what of the file pyengine does not model.

    Exit code 1: something that is not modelled may change which consumer gets a message.
    """
    with plain_errors():
        from pyengine.cli import policies as policing

        found = policing.answer(file, destinations or [], define or [], broker)
        if as_json:
            print_json(found)
        else:
            policing.show(found)
    raise typer.Exit(1 if any(part["changes_answers"] for part in found["not_modelled"]) else 0)


@app.command()
def watch(
    pid: Annotated[
        int, typer.Argument(min=1, max=2**31 - 1, help="A running process: Java (jstack) or Python (py-spy).")
    ],
    samples: Annotated[int, typer.Option(min=3, help="Dumps to take.")] = 5,
    every_ms: Annotated[int, typer.Option(min=50, max=3_600_000, help="Milliseconds between two dumps.")] = 1000,
    every: Annotated[str | None, typer.Option(hidden=True)] = None,
    tool: Annotated[Tool | None, typer.Option(help="[default: by the process]")] = None,
    as_json: Json = False,
    report: Page = None,
    lang: FindingLanguage = Lang.en,
) -> None:
    """Find out which consumer threads of a running process stand still, and at which line of your code.

    A Python service can watch itself: pyengine.backlog.diagnosis.watch. Exit code 1: a thread stands still.
    """
    with plain_errors():
        from pyengine.backlog.pages import findings_page
        from pyengine.backlog.pages import page as pages
        from pyengine.cli import diagnose as diagnosing
        from pyengine.cli import watch as watching

        if every is not None:
            raise UnknownNameError("--every", every, "was in seconds", "it is --every-ms now")
        pages.check_target(report)
        evidence, found = watching.ask(pid, samples, every_ms, tool.value if tool else "", lang.value)
        if report is not None:
            read = diagnosing.read_from(evidence)
            pages.write(findings_page.render("Diagnosis", found, evidence.remarks, lang.value, read=read), report)
        if as_json:
            print_json(diagnosing.as_dict(evidence, found))
        else:
            diagnosing.show(evidence, found, console(), lang.value)
    raise typer.Exit(1 if found else 0)


@app.command()
def lint(
    files: Annotated[
        list[str],
        typer.Argument(help="activemq.xml, topologies, push consumers' parameters, application.yml; - is stdin."),
    ],
    as_json: Json = False,
    form: Annotated[
        Form | None,
        typer.Option("--format", help="json is --json; sarif (2.1.0) and github (annotations) are in English."),
    ] = None,
    select: Rules = None,
    ignore: Annotated[
        list[str] | None, typer.Option("--ignore", help="Rules whose findings are left out, also of those selected.")
    ] = None,
    report: Page = None,
    lang: FindingLanguage = Lang.en,
    encoding: Encoding = "",
    define: Define = None,
) -> None:
    """Find traps in a configuration before it is used. A broker's file gives its policies to topologies beside it.

    Gaps and overlaps of selectors are proven by a solver (extra "lint"), each with an example message that the engine
    has evaluated. Exit code 1: warnings or errors were found; 2: a file was not understood, the others are answered all
    the same.
    """
    with plain_errors():
        from pyengine.backlog.diagnosis.evidence import Remark
        from pyengine.backlog.pages import findings_page
        from pyengine.backlog.pages import page as pages
        from pyengine.backlog.sentence_templates import heard
        from pyengine.cli import annotations
        from pyengine.cli import lint as linting
        from pyengine.cli import policies as policing

        pages.check_target(report)
        if as_json and form not in (None, Form.json):
            raise ConfigurationError("--format", form, "stands beside --json", "give one of them")
        form = Form.json if as_json else form or Form.plain
        answer = linting.ask(files, encoding, policing.properties_of(define or [])).chosen(select or (), ignore or ())
        if report is not None:
            worst_first = sorted(answer.found, key=lambda each: -each[1].severity)
            names, traps = [name for name, _ in worst_first], [trap for _, trap in worst_first]
            remarks = [Remark(name, 0, "", heard(str(error))) for name, error in answer.refused]
            title, inputs = "Traps in the configuration", list(answer.texts)
            pages.write(findings_page.render(title, traps, remarks, lang.value, names, inputs=inputs), report)
        match form:
            case Form.json:
                print_json(linting.as_dict(answer))
            case Form.sarif:
                print_json(annotations.sarif(answer.found, answer.texts, answer.refused))
            case Form.github:
                for line in annotations.github(answer.found, answer.texts, answer.refused):
                    print(line)
            case Form.plain:
                linting.show(answer, console(), lang.value)
        for _, error in answer.refused:
            tell(f"pyengine: {error}")
    raise typer.Exit(answer.exit_code)


@app.command()
def simulate(
    scenario: Annotated[str, typer.Argument(help="A TOML file; see docs/simulate.md; - is stdin.")],
    as_json: Json = False,
    report: Page = None,
    encoding: Encoding = "",
    lang: TableLanguage = Lang.en,
) -> None:
    """Play variants of consumers and policy under virtual time, with the broker's own rules, and compare them.

    Exit code 1: in a variant messages are left that no consumer takes.
    """
    with plain_errors():
        from pyengine.backlog.pages import page as pages
        from pyengine.backlog.pages import simulation_page
        from pyengine.cli import simulate as simulating

        pages.check_target(report)
        asked, played = simulating.ask(scenario, encoding, lang.value)
        if report is not None:
            pages.write(simulation_page.render(asked.title, played, lang.value, scenario), report)
        if as_json:
            print_json(simulating.as_dict(asked, played))
        else:
            simulating.show(asked, played, console(), lang.value)
    raise typer.Exit(1 if any(found.held for found in played.values()) else 0)


serve = typer.Typer(
    name="serve",
    cls=Commands,
    help="Be a broker for clients of any language, until SIGTERM or Ctrl-C.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(serve, name="serve")


@serve.command("rocketmq")
def serve_rocketmq(
    listen: Annotated[str, typer.Option(help="host:port of the name server; port 0: any free one.")] = "127.0.0.1:9876",
    data: Annotated[Path | None, typer.Option(help="Folder of the store [default: in memory].")] = None,
    manual_clock: Annotated[
        bool, typer.Option("--manual-clock", help="Time moves by lines 'advance MS' on standard input.")
    ] = False,
    allow_anonymous: Annotated[
        bool, typer.Option("--allow-anonymous", help="Listen beyond the loopback, for any client.")
    ] = False,
    delay_levels: Annotated[
        str, typer.Option(help="The broker's messageDelayLevel.")
    ] = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h",
    tls_cert: Annotated[
        Path | None, typer.Option(help="Certificate, PEM: clients may speak TLS on the same ports.")
    ] = None,
    tls_key: Annotated[Path | None, typer.Option(help="Its key, PEM.")] = None,
    tls_client_ca: Annotated[
        Path | None, typer.Option(help="Certificates of clients, PEM: they then need one.")
    ] = None,
    tls_enforcing: Annotated[bool, typer.Option("--tls-enforcing", help="Refuse plain connections.")] = False,
    accounts: Annotated[
        Path | None,
        typer.Option(help="A broker's plain_acl.yml: requests must be signed with an accessKey and secretKey of it."),
    ] = None,
) -> None:
    """Serve an embedded cluster to clients of any language, until SIGINT or SIGTERM.

    Prints the address of the name server and that of the broker.
    """
    with plain_errors():
        from pyengine.cli import serve_rocketmq as serving

        certificate = tls_cert, tls_key, tls_client_ca
        serving.serve(listen, data, manual_clock, allow_anonymous, delay_levels, certificate, tls_enforcing, accounts)


@serve.command("activemq")
def serve_activemq(
    configuration: Annotated[Path | None, typer.Argument(help="Its activemq.xml.")] = None,
    listen: Annotated[
        list[str] | None,
        typer.Option(
            help="An address in place of the file's transportConnectors, tcp://127.0.0.1:61616 for OpenWire, "
            "stomp://127.0.0.1:0 for any free port; may be "
            "repeated [default: stomp://127.0.0.1:61613]."
        ),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="Folder of its messages [default: what the file says, else in memory].")
    ] = None,
    user: Annotated[
        list[str] | None, typer.Option(help="NAME:PASSWORD of a client that may connect; may be repeated.")
    ] = None,
    allow_anonymous: Annotated[
        bool, typer.Option("--allow-anonymous", help="Clients need no name, also where other machines reach it.")
    ] = False,
    manual_clock: Annotated[
        bool,
        typer.Option(
            "--manual-clock", help="Time stands still but for lines on standard input: advance MS, now, held QUEUE."
        ),
    ] = False,
) -> None:
    """Be a broker for STOMP clients of any language, until SIGTERM or Ctrl-C; prints "listening on URL"."""
    with plain_errors():
        from pyengine.cli import serve_activemq as serving

        serving.serve(
            configuration,
            listen or [],
            data,
            users=None if user is None else serving.users_of(user),
            allow_anonymous=allow_anonymous,
            by_hand=manual_clock,
        )


@app.command()
def allocate(
    topics: Annotated[
        str, typer.Argument(help="A JSON file of topics, or a RocketMQ broker's topics.json; - is stdin.")
    ],
    clients: Annotated[str, typer.Option(help="Client ids, separated by commas, or a file with one a line.")],
    strategy: Annotated[
        list[str] | None,
        typer.Option(
            help="AVG, AVG_BY_CIRCLE, CONSISTENT_HASH, MACHINE_ROOM or MACHINE_ROOM_NEARBY, with another behind a dash "
            "for the share inside a room; repeat to compare."
        ),
    ] = None,
    join: Annotated[str, typer.Option(help="Clients that come, separated by commas: what moves then?")] = "",
    leave: Annotated[str, typer.Option(help="Clients that go, separated by commas: what moves then?")] = "",
    brokers: Annotated[str, typer.Option(help="Brokers of topics whose file names none.")] = "broker-a",
    rooms: Annotated[str, typer.Option(help="Rooms of MACHINE_ROOM, separated by commas.")] = "",
    room_mark: Annotated[
        str, typer.Option(help="Of MACHINE_ROOM_NEARBY: what ends the room at the head of a broker's or client's name.")
    ] = "-",
    virtual_nodes: Annotated[int, typer.Option(min=0, help="Nodes a client of CONSISTENT_HASH.")] = 10,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")] = False,
) -> None:
    """Which client of a RocketMQ group gets which queues, how even that is, and what moves when clients come or go.

    Exit code 1: queues have no owner.
    """
    with plain_errors():
        from pyengine.cli import allocate as allocating

        options = allocating.Options(
            allocating.items(brokers), allocating.items(rooms), room_mark, virtual_nodes, allocating.items(join),
            allocating.items(leave),
        )  # fmt: skip
        answers = allocating.ask(topics, allocating.items_or_file(clients), strategy or ["AVG"], options)
        if as_json:
            print_json(allocating.as_dict(answers))
        else:
            allocating.show(answers, console())
    raise typer.Exit(1 if any(answer.leaves_queues for answer in answers) else 0)
