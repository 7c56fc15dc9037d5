"""Accounts of a broker's conf/plain_acl.yml (PlainPermissionManager): whose signed requests are served."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyengine.dataclass import dataclass
from pyengine.errors import InvalidSourceError, MissingExtraError
from pyengine.rocketmq.remoting.acl import SessionCredentials

SHORTEST = 7  # AclConstants: longer than 6
KEYS = ("accessKey", "secretKey")
HINT = "accounts: a list, each with accessKey and secretKey"


@dataclass(frozen=True, slots=True)
class Accounts:
    """What a file has. left_out: what an embedded broker does not follow, one a line, with its place."""

    credentials: tuple[SessionCredentials, ...]
    left_out: tuple[str, ...]


def read_accounts(path: Path) -> Accounts:
    """The accounts of a plain_acl.yml. Raises InvalidSourceError, with the place in it; MissingExtraError without
    PyYAML.
    """
    try:
        import yaml
    except ImportError as error:
        raise MissingExtraError("rocketmq", "PyYAML") from error
    try:
        with path.open("rb") as file:
            # Every scalar as it is written: the file that comes with RocketMQ has secretKey: 12345678.
            document = yaml.load(file, yaml.BaseLoader)
    except OSError as error:
        raise InvalidSourceError(str(path), str(error), "give the broker's plain_acl.yml") from error
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        place = f" in line {mark.line + 1}" if mark else ""
        problem = f"not valid YAML{place}: {getattr(error, 'problem', None) or error}"
        raise InvalidSourceError(str(path), problem, HINT) from error
    listed = document.get("accounts") if isinstance(document, dict) else None
    if not isinstance(listed, list) or not listed:
        raise InvalidSourceError(str(path), "it has no accounts", HINT)
    left_out = [
        f"{name}: every client signs, from wherever it comes" if name == "globalWhiteRemoteAddresses" else str(name)
        for name, value in document.items()
        if name != "accounts" and value
    ]
    found: dict[str, SessionCredentials] = {}
    for number, each in enumerate(listed):
        place = f"accounts[{number}]"
        account = _account(path, place, each)
        if account.access_key in found:
            raise InvalidSourceError(str(path), f"{place}: accessKey {account.access_key} is there twice", HINT)
        found[account.access_key] = account
        left_out += _left_out(place, each)
    return Accounts(tuple(found.values()), tuple(left_out))


def _account(path: Path, place: str, given: Any) -> SessionCredentials:
    values = given if isinstance(given, dict) else {}
    for name in KEYS:
        value = values.get(name)
        if not isinstance(value, str) or not value:
            raise InvalidSourceError(
                str(path), f"{place}.{name} is missing" if not value else f"{place}.{name} is not a text", HINT
            )
        if len(value) < SHORTEST:
            raise InvalidSourceError(
                str(path), f"{place}.{name} has at most 6 characters; real brokers want more", HINT
            )
    return SessionCredentials(values["accessKey"], values["secretKey"])


def _left_out(place: str, account: dict[str, Any]) -> Iterator[str]:
    for name, value in account.items():
        if name in KEYS or not value:
            continue
        if name == "whiteRemoteAddress":
            yield f"{place}.{name}: every client signs, from wherever it comes"
        else:
            yield f"{place}.{name}: an account that signs may do everything"
