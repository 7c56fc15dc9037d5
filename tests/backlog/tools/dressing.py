"""What terminals, mails, chats, wikis, containers and editors do to a text before somebody hands it over."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime

Dress = Callable[[str, int], str]  # the text and the moment (ms) at which it was printed


def each_line(change: Callable[[str], str]) -> Dress:
    return lambda text, _: "".join(f"{change(line)}\n" for line in text.splitlines())


def margin(before: str) -> Dress:
    return each_line(lambda line: before + line)


def stamped(form: str) -> Dress:
    """A logger's margin with the moment in it."""

    def dress(text: str, moment: int) -> str:
        before = datetime.fromtimestamp(moment / 1000, UTC).strftime(form)
        return "".join(f"{before}{line}\n" for line in text.splitlines())

    return dress


def around(before: str, after: str) -> Dress:
    return lambda text, _: f"{before}{text}{after}"


def prompt(shown: str) -> Dress:
    return lambda text, _: re.sub(r"(?m)^\$ ", lambda _: shown, text)


def numbered(form: str) -> Dress:
    return lambda text, _: "".join(
        form.format(number) + f"{line}\n" for number, line in enumerate(text.splitlines(), 1)
    )


def wrapped(width: int) -> Dress:
    """By a terminal, at any column."""
    return each_line(lambda line: "\n".join(line[at : at + width] for at in range(0, max(len(line), 1), width)))


def without_titles(text: str, _: int) -> str:
    return "".join(f"{line}\n" for line in text.splitlines() if not re.match(r"#(Topic|Group)|GROUP|TOPIC", line))


def sorted_backwards(text: str, _: int) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return "".join(f"{line}\n" for line in (*lines[:1], *sorted(lines[1:], reverse=True)))


DRESSES: dict[str, Dress] = {
    "a terminal's colours": each_line(lambda line: f"\x1b[01;32m{line}\x1b[0m\x1b[K"),
    "a mail's quote": margin("> "),
    "a quote in a quote": margin(">> "),
    "a quote without blanks": margin(">"),
    "a code fence": around("线上有堆积, 执行结果如下\n\n```shell\n", "```\n\n请问大家这是什么原因?\n"),
    "a fence of tildes": around("~~~\n", "~~~\n"),
    "HTML": around("<pre>\n", "</pre>\n"),
    "a wiki": around("{noformat}\n", "{noformat}\n"),
    "a mail": around("Hi all,\n\nour consumer is behind, see below.\n\n", "\nThanks,\n-- \nWei\n"),
    "kubectl logs --prefix": margin("[pod/rocketmq-tools-0/tools] "),
    "stern": margin("rocketmq-tools-0 tools "),
    "docker compose logs": margin("tools-1  | "),
    "docker compose logs of all": lambda text, moment: (
        f"namesrv-1  | The Name Server boot success.\n{margin('tools-1    | ')(text, moment)}broker-1   | boot.\n"
    ),
    "docker logs -t": stamped("%Y-%m-%dT%H:%M:%S.123456789Z "),
    "journald": stamped("%b %d %H:%M:%S mq-1 mqadmin[12345]: "),
    "a program's log": stamped("%Y-%m-%d %H:%M:%S.123  INFO 1 --- [main] c.x.ops.Shell : "),
    "cat -n": numbered("{:6}\t"),
    "grep -n": numbered("{}:"),
    "a diff": margin("+"),
    "a box": each_line(lambda line: f"│ {line:<200} │"),
    "a padded screen": each_line(lambda line: line.ljust(200)),
    "a table's bars": each_line(lambda line: f"| {line} |"),
    "tabs": each_line(lambda line: re.sub(r"  +", "\t", line)),
    "single blanks": each_line(lambda line: re.sub(r"  +", " ", line)),
    "blanks that do not break": lambda text, _: text.replace(" ", "\u00a0"),
    "marks of no width": margin("\u200b"),
    "a terminal of 80 columns": wrapped(80),
    "a terminal of 132 columns": wrapped(132),
    "comments between": lambda text, _: text.replace("\n\n", "\n\n这里可以看到堆积了, 下面是第二次:\n\n"),
    "a screen's last line": around("", '[mq] 0:bash*                    "mq-1" 06:13 10-Jun-24\n'),
    "blank lines between": each_line(lambda line: f"{line}\n"),
    "time": around("", "\nreal\t0m2.412s\nuser\t0m2.900s\nsys\t0m0.300s\n"),
    "script": around('Script started on 2024-06-10 06:00:00+00:00 [TERM="xterm"]\n', ""),
    "PowerShell": prompt("PS C:\\rocketmq\\bin> .\\"),
    "cmd": prompt("C:\\rocketmq\\bin>"),
    "zsh": prompt("\u279c  bin "),
    "kubectl exec": prompt("$ kubectl exec -it mq-0 -n prod -- sh "),
    "sudo": prompt("[root@mq-1 bin]# sudo -u rocketmq ./"),
    "no titles": without_titles,
    "sort": sorted_backwards,
}
