"""The reference: a page for each public package, which mkdocstrings fills with signatures and docstrings."""

from __future__ import annotations

import functools
import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import griffe

from website.links import anchor_of

ROOT = Path(__file__).parents[1]
# Page -> (module, what its page is for). Names come from ``__all__``, or from what the module defines.
PACKAGES = {
    "pyengine.md": ("pyengine", "Selectors, messages, subscriptions, and every error."),
    "activemq.md": ("pyengine.activemq", "ActiveMQ: the broker, the client, and queues without a broker."),
    "activemq-events.md": ("pyengine.activemq.broker.events", "What a broker reports to those that listen."),
    "activemq-aio.md": ("pyengine.activemq.aio", "ActiveMQ's client for asyncio."),
    "rocketmq.md": ("pyengine.rocketmq", "RocketMQ: the cluster, consumers, producers, allocation, offsets."),
    "policy.md": ("pyengine.topology.policy", "A policy entry, strategies, virtual destinations."),
    "topology.md": ("pyengine.topology", "Topologies and policies, read from files."),
    "spark.md": ("pyengine.spark", "Selectors and dispatch on Spark."),
    "diagnose.md": ("pyengine.backlog.diagnosis.diagnose", "Why messages wait, from what was read."),
    "evidence.md": ("pyengine.backlog.diagnosis.evidence", "Files of brokers and clients, read."),
    "simulate.md": ("pyengine.backlog.simulate", "Queues and groups under virtual time."),
    "lint.md": ("pyengine.backlog.lint", "Traps of a configuration."),
    "proof.md": ("pyengine.backlog.lint.proof", "Proofs about selectors."),
    "clock.md": ("pyengine.clock", "The system's clock, and one that a test moves."),
    "activemq-telemetry.md": ("pyengine.activemq.telemetry", "Traces and metrics of ActiveMQ's clients."),
    "rocketmq-telemetry.md": ("pyengine.rocketmq.telemetry", "Traces and metrics of RocketMQ's clients."),
    "metrics.md": ("pyengine.metrics", "Metrics as rows, as Prometheus's text, through OpenTelemetry."),
}


def public_names(module: Any) -> list[str]:
    """The names of a module's ``__all__``, or the public classes and functions that it defines."""
    if named := getattr(module, "__all__", None):
        return sorted(named)
    return sorted(
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and (inspect.isclass(value) or inspect.isfunction(value))
        and value.__module__ == module.__name__
    )


def reference_pages() -> dict[str, str]:
    """File name -> text, of every page of the reference."""
    pages = {}
    for page, (name, purpose) in PACKAGES.items():
        module = importlib.import_module(name)
        members = public_names(module)
        constants = [each for each in members if not callable(getattr(module, each))]
        shown = [each for each in members if each not in constants]
        text = f"# {name}\n\n{purpose}\n\n```python\nfrom {name} import {shown[0]}\n```\n\n"
        if constants:
            rows = "\n".join(f"| `{each}` | `{getattr(module, each)!r}` |" for each in constants)
            text += f"| constant | value |\n|---|---|\n{rows}\n\n"
        pages[page] = text + "\n".join(f"::: {name}.{each}\n" for each in shown)
    index = "\n".join(
        f"| [{name}]({page}) | {purpose} | {len(public_names(importlib.import_module(name)))} |"
        for page, (name, purpose) in PACKAGES.items()
    )
    pages["index.md"] = (
        "# Reference\n\nEvery public name, with its signature from the source or the stub, and its docstring: meaning, "
        "units, defaults, errors and the rule that it follows. The command line explains itself: "
        f"`pyengine COMMAND --help`.\n\n| module | for | names |\n|---|---|---|\n{index}\n"
    )
    return pages


@functools.cache
def sections() -> dict[tuple[str, str], str]:
    """(broker, number of a section) -> address of the section of docs/spec, seen from a page of the reference."""
    found = {}
    for broker in ("activemq", "rocketmq"):
        for heading in re.findall(r"^#+ (\d[\d.]*\.? .+)$", (ROOT / f"docs/spec/{broker}.md").read_text("utf-8"), re.M):
            found[broker, heading.split(" ")[0].rstrip(".")] = f"../spec/{broker}.html#{anchor_of(heading)}"
    return found


def as_markdown(text: str) -> str:
    """A docstring: roles as code, a rule as a link to its section."""
    text = re.sub(r":\w+:(`[^`]+`)", r"\1", text)

    def rule(found: re.Match[str]) -> str:
        address = sections().get((found[1], found[2].rstrip(".")))
        return f'<a href="{address}">{found.group()}</a>' if address else found.group()

    return re.sub(r"spec (activemq|rocketmq) (\d+(?:\.\d+)*)", rule, text)


class CompiledDocstrings(griffe.Extension):
    """The docstrings of compiled rooms: their stubs have signatures only, so the running object is asked."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Give an object of a stub the docstring that the compiled one has."""
        if obj.docstring is None and str(obj.filepath).endswith(".pyi") and (obj.is_class or obj.is_function):
            found = running(obj)
            text = vars(found).get("__doc__") if inspect.isclass(found) else getattr(found, "__doc__", None)
            if isinstance(text, str) and not text.startswith("Initialize self."):
                obj.docstring = griffe.Docstring(without_signature(inspect.cleandoc(text), obj.name), parent=obj)
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Give a class of a stub that has ``__new__``, or inherits its constructor, that signature."""
        for obj in stub_classes(pkg):
            for base in running(obj).__mro__:
                if base.__module__.startswith("pyengine."):
                    members = pkg[f"{base.__module__}.{base.__qualname__}".removeprefix("pyengine.")].members
                    if constructor := members.get("__init__") or members.get("__new__"):
                        first, *rest = constructor.parameters
                        obj.set_member(
                            "__init__", griffe.Function("__init__", parameters=griffe.Parameters(first, *rest))
                        )
                        break


def stub_classes(module: griffe.Module) -> list[griffe.Class]:
    """The classes of a package's stubs that have no ``__init__`` of their own."""
    found = []
    for member in module.members.values():
        if isinstance(member, griffe.Module):
            found += stub_classes(member)
        elif (
            isinstance(member, griffe.Class)
            and str(member.filepath).endswith(".pyi")
            and "__init__" not in member.members
            and hasattr(running(member), "__mro__")
        ):
            found.append(member)
    return found


def running(obj: griffe.Object) -> Any:
    """The object itself, of what griffe has read in a stub; None if only the stub has it."""
    module = importlib.import_module(obj.module.canonical_path)
    path = obj.canonical_path.removeprefix(f"{obj.module.canonical_path}.").split(".")
    return functools.reduce(lambda value, name: getattr(value, name, None), path, module)


def without_signature(text: str, name: str) -> str:
    """A docstring without the signature that Cython writes above it."""
    first, _, rest = text.partition("\n")
    return rest.strip() if first.startswith(f"{name}(") else text
