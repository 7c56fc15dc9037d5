"""Spring's XML as a tree of elements with lines: placeholders, imports, beans, references; not what a bean means.

The parser is the standard library's expat. A document type declaration is refused, and with it every entity a file
could define; nothing is fetched and no class is loaded.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from pathlib import Path
from typing import NoReturn, TypeAlias
from xml.parsers import expat

from pyengine.dataclass import dataclass
from pyengine.errors import InvalidTopologyError, did_you_mean
from pyengine.topology.properties import parse_properties

BEANS = ("http://www.springframework.org/schema/beans", "http://www.osgi.org/xmlns/blueprint/v1.0.0")
P_NAMESPACE = "http://www.springframework.org/schema/p"
CORE_PREFIX = "http://activemq."
OURS = "org.apache.activemq."
BEAN_ATTRIBUTES = frozenset(
    {"id", "name", "class", "parent", "abstract", "scope", "singleton", "lazy-init", "depends-on", "autowire",
     "primary", "init-method", "destroy-method", "factory-bean", "factory-method", "dependency-check", "activation"}
)  # fmt: skip
# Classes whose element is not their name with a small letter.
ELEMENT_OF_CLASS = {"discardingDeadLetterStrategy": "discarding", "brokerService": "broker", "activeMQQueue": "queue",
                    "activeMQTopic": "topic", "xBeanBrokerService": "broker"}  # fmt: skip
DEEPEST = 100
_CONFIGURERS = (
    "PropertyPlaceholderConfigurer",
    "PropertySourcesPlaceholderConfigurer",
    "SpringOsgiPropertyPlaceholder",
)

# An encoding that an XML document declares.
DECLARED = re.compile(rb"\s*<\?xml[^>]*?\bencoding\s*=\s*[\"']([\w.:-]+)[\"']")


@dataclass(slots=True, eq=False)
class Element:
    """One element.

    attributes: those without a namespace and those of ActiveMQ's; p: those of Spring's p namespace. text: its own
    characters, trimmed. line: of its start tag.
    """

    namespace: str
    name: str
    attributes: dict[str, str]
    p: dict[str, str]
    file: str
    line: int
    children: list[Element] = field(default_factory=list)
    text: str = ""

    @property
    def is_core(self) -> bool:
        """True for ActiveMQ's own elements; an element without a namespace may be one."""
        return self.namespace == "" or self.namespace.startswith(CORE_PREFIX)

    @property
    def is_spring(self) -> bool:
        """True for Spring's elements (and Blueprint's, which have the same form)."""
        return self.namespace == "" or self.namespace in BEANS

    @property
    def kind(self) -> str:
        """The ActiveMQ element this is or stands for: ``policyEntry``; the full class of a foreign bean."""
        class_name = self.attributes.get("class", "")
        if self.is_spring and self.name == "bean":
            if not class_name.startswith(OURS):
                return class_name or "bean"
            simple = class_name.rpartition(".")[2]
            simple = simple[:1].lower() + simple[1:]
            return ELEMENT_OF_CLASS.get(simple, simple)
        return self.name if self.is_core or self.is_spring else f"{{{self.namespace}}}{self.name}"

    def walk(self) -> Iterator[Element]:
        """This element and everything below it, in the order of the file."""
        yield self
        for child in self.children:
            yield from child.walk()

    def __str__(self) -> str:
        said = [f'{key}="{self.attributes[key]}"' for key in ("queue", "topic", "name", "id", "physicalName")
                if key in self.attributes]  # fmt: skip
        return " ".join([self.kind, *said[:1]])


Value: TypeAlias = "Element | str | None"


@dataclass(slots=True)
class Property:
    """What a file gives a property: texts, elements, or None for an explicit null; usually one, several for a list."""

    name: str
    values: list[Value]
    element: Element


def parse(data: bytes | str, file: str) -> Element:
    """The root element of one document. Raises InvalidTopologyError: not XML, a DOCTYPE, nested deeper than 100."""
    # Expat knows few encodings; a str has none, regardless of its declaration.
    data = _decoded(data) if isinstance(data, bytes) else data
    parser = expat.ParserCreate("utf-8" if isinstance(data, str) else None, namespace_separator=" ")
    parser.buffer_text = True
    stack: list[Element] = []
    roots: list[Element] = []

    def refuse(problem: str, hint: str, line: int = 0) -> NoReturn:
        raise InvalidTopologyError(problem, file=file, line=line or parser.CurrentLineNumber, hint=hint)

    def start(tag: str, attributes: dict[str, str]) -> None:
        namespace, _, name = tag.rpartition(" ")
        plain = {
            key.rpartition(" ")[2]: value
            for key, value in attributes.items()
            if " " not in key or key.startswith(CORE_PREFIX)
        }
        p = {key.rpartition(" ")[2]: value for key, value in attributes.items() if key.startswith(P_NAMESPACE + " ")}
        element = Element(namespace, name, plain, p, file, parser.CurrentLineNumber)
        if len(stack) == DEEPEST:
            refuse(f"elements are nested deeper than {DEEPEST}", "a broker's configuration never is; check the file")
        (stack[-1].children if stack else roots).append(element)
        stack.append(element)

    def end(tag: str) -> None:
        element = stack.pop()
        element.text = element.text.strip()

    def characters(text: str) -> None:
        stack[-1].text += text

    def doctype(name: str, system: str | None, public: str | None, internal: bool) -> None:
        refuse(f"has a DOCTYPE ({name})", "delete the DOCTYPE line; entities and external definitions are never read")

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = characters
    parser.StartDoctypeDeclHandler = doctype
    try:
        parser.Parse(data, True)
    except InvalidTopologyError:
        raise
    except expat.ExpatError as error:
        refuse(f"not well-formed XML at column {error.offset}: {expat.ErrorString(error.code)}",
               "a text editor with XML support shows the place; & is written &amp;", error.lineno)  # fmt: skip
    except (LookupError, ValueError) as error:
        refuse(f"has an encoding that cannot be read: {error}", "save it as UTF-8")
    return roots[0]


def _decoded(data: bytes) -> bytes | str:
    """The text by the encoding that the document declares; what cannot be decoded so is left to expat's words."""
    declared = DECLARED.match(data[:500])
    try:
        return data.decode(declared[1].decode()) if declared else data
    except (LookupError, UnicodeError):
        return data


class Placeholders:
    """``${name}`` and ``${name:default}``, looked up in what was given, then property files, then the environment.

    The environment is asked for the name itself and as shells can write it: ``ACTIVEMQ_DATA`` for ``activemq.data``.
    defaults: values of names that are not defined elsewhere and have no default in the text.
    """

    def __init__(
        self, given: Mapping[str, str], environment: Mapping[str, str], defaults: Mapping[str, str] | None = None
    ) -> None:
        self._defaults = defaults or {}
        self._given = given
        self._files: dict[str, str] = {}
        self._environment = environment

    def add(self, properties: Mapping[str, str]) -> None:
        """Properties of a file or of a configurer bean; a later one of the same bean replaces an earlier one."""
        self._files.update(properties)

    @contextmanager
    def configurer(self) -> Iterator[None]:
        """While a configurer bean's properties are added: those of the beans before it count."""
        earlier = dict(self._files)
        yield
        self._files.update(earlier)

    def resolve(self, text: str, depth: int = 0) -> str:
        """``text`` with every placeholder replaced.

        Raises KeyError with a name that is not defined, RecursionError with one that is defined by itself.
        """
        out, position = [], 0
        while (opened := text.find("${", position)) >= 0:
            closed = _closing(text, opened + 2)
            if closed < 0:
                break
            out.append(text[position:opened])
            out.append(self._lookup(text[opened + 2 : closed], depth))
            position = closed + 1
        return "".join(out) + text[position:]

    def _lookup(self, inside: str, depth: int) -> str:
        if depth > 20:
            raise RecursionError(inside)
        inside = self.resolve(inside, depth + 1)
        name, colon, default = inside.partition(":")
        for key in (inside, name):
            for source in (self._given, self._files):
                if key in source:
                    return self.resolve(source[key], depth + 1)
            for spelled in (key, key.replace(".", "_").replace("-", "_").upper()):
                if spelled in self._environment:
                    return self._environment[spelled]
        if colon:
            return default
        if name in self._defaults:
            return self._defaults[name]
        raise KeyError(name)

    def names(self) -> list[str]:
        """The names a misspelling may have meant."""
        return [*self._given, *self._files]


def _closing(text: str, position: int) -> int:
    """Where the brace that closes a placeholder stands; -1 if nowhere."""
    depth = 1
    while position < len(text):
        if text.startswith("${", position):
            depth += 1
            position += 1
        elif text[position] == "}":
            depth -= 1
            if not depth:
                return position
        position += 1
    return -1


@dataclass(slots=True)
class Unread:
    """A part of the file that is not read. element: where it stands; name: the attribute, or empty."""

    element: Element
    reason: str
    name: str = ""
    value: str = ""


class SpringContext:
    """One file and what it imports: top-level beans, named beans, placeholders. ``unread`` lists what was left out."""

    def __init__(
        self,
        path: Path,
        properties: Mapping[str, str],
        environment: Mapping[str, str],
        data: bytes | str | None = None,
    ) -> None:
        self.placeholders = Placeholders(properties, environment, _installation(path))
        self.unread: list[Unread] = []
        self.beans: list[Element] = []
        self.configurers: list[Element] = []
        self.named: dict[str, Element] = {}
        self.root = self._read(path, [], data)
        self.named = {
            name: element
            for bean in self.beans
            for element in bean.walk()
            for name in re.split(r"[,;\s]+", f"{element.attributes.get('id', '')},{self._bean_name(element)}")
            if name
        }

    def _bean_name(self, element: Element) -> str:
        return element.attributes.get("name", "") if element.is_spring and element.name == "bean" else ""

    def _read(self, path: Path, above: list[Path], data: bytes | str | None = None) -> Element:
        try:
            data = path.read_bytes() if data is None else data
        except OSError as error:
            raise InvalidTopologyError(
                f"cannot be read: {error.strerror}", file=str(path), hint="give the path of an activemq.xml"
            ) from error
        except ValueError as error:  # a name with a NUL in it
            raise InvalidTopologyError(f"cannot be read: {error}", file=str(path)) from error
        root = parse(data, "text" if path == Path() else str(path))
        if root.is_core and root.kind == "broker":
            self.beans.append(root)
        else:
            self._collect(root, path, above)
        return root

    def _collect(self, beans: Element, path: Path, above: list[Path]) -> None:
        imports: list[Element] = []
        start = len(self.configurers)
        for child in beans.children:
            if child.is_spring and child.name == "import":
                imports.append(child)
            elif child.is_spring and child.name == "beans":
                if "profile" in child.attributes:
                    self.unread.append(
                        Unread(child, "beans of a profile are not read", "profile", child.attributes["profile"])
                    )
                else:
                    self._collect(child, path, above)
            elif child.kind.endswith(_CONFIGURERS) or child.name == "property-placeholder":
                self.configurers.append(child)
            elif not (child.is_spring and child.name in ("description", "alias")):
                self.beans.append(child)
        for configurer in self.configurers[start:]:
            self._configure(configurer, path)
        for child in imports:
            self._import(child, path, above)

    def _configure(self, configurer: Element, path: Path) -> None:
        """Take the properties that a placeholder configurer holds or names."""
        with self.placeholders.configurer():
            self._take(configurer, path)

    def _take(self, configurer: Element, path: Path) -> None:
        locations = [configurer.attributes.get("location", "")]
        for prop in self.properties(configurer).values():
            if prop.name in ("location", "locations"):
                locations += [value for value in prop.values if isinstance(value, str)]
            elif prop.name in ("properties", "propertiesArray"):
                for value in prop.values:
                    if isinstance(value, str):
                        self.placeholders.add(parse_properties(value))
                    elif value is not None and value.name in ("props", "map"):
                        self.placeholders.add(
                            {
                                p.attributes.get("key", ""): p.text or p.attributes.get("value", "")
                                for p in value.children
                            }
                        )
        for location in ",".join(locations).split(","):
            if location.strip():
                self._property_file(configurer, location.strip(), path)

    def _property_file(self, configurer: Element, location: str, path: Path) -> None:
        try:
            target = _local(self.placeholders.resolve(location), path)
            text = None if target is None else target.read_text("iso-8859-1")
        except (KeyError, RecursionError) as unresolved:
            self.unread.append(Unread(configurer, _unresolved(unresolved), "location", location))
        except OSError as error:
            self.unread.append(Unread(configurer, f"property file not read: {error.strerror}", "location", location))
        else:
            if text is None:
                self.unread.append(Unread(configurer, "only local files are read", "location", location))
            else:
                self.placeholders.add(parse_properties(text))

    def _import(self, element: Element, path: Path, above: list[Path]) -> None:
        resource = element.attributes.get("resource", "")
        try:
            target = _local(self.placeholders.resolve(resource), path)
        except (KeyError, RecursionError) as unresolved:
            self.unread.append(Unread(element, _unresolved(unresolved), "resource", resource))
            return
        if target is None or not target.is_file():
            reason = "only local files are read" if target is None else "there is no such file"
            self.unread.append(Unread(element, reason, "resource", resource))
            return
        target = target.resolve()
        if target in above or target == path.resolve():
            raise InvalidTopologyError(
                "imports itself", file=element.file, line=element.line, key="import resource", value=resource,
                hint="remove one of the imports",
            )  # fmt: skip
        self._read(target, [*above, path.resolve()])

    def properties(self, element: Element) -> dict[str, Property]:
        """What an element or bean sets, by property name, in the order of the file. Of two of ActiveMQ's elements with
        one name, or an attribute and an element, the later one counts."""
        found: dict[str, Property] = {}

        def add(name: str, values: list[Value], at: Element) -> None:
            found.setdefault(name, Property(name, [], at)).values.extend(values)

        bean = element.is_spring and element.name == "bean"
        for name, value in element.attributes.items():
            if (bean and name in BEAN_ATTRIBUTES) or name == "id":
                continue
            add(
                name,
                [self._reference(element, value[1:]) if value.startswith("#") and value[1:2] != "{" else value],
                element,
            )
        for name, value in element.p.items():
            add(
                name.removesuffix("-ref"),
                [self._reference(element, value) if name.endswith("-ref") else value],
                element,
            )
        for child in element.children:
            if child.is_spring and child.name in ("property", "constructor-arg"):
                name = child.attributes.get("name", child.name)
                if "value" in child.attributes:
                    add(name, [child.attributes["value"]], child)
                elif "ref" in child.attributes:
                    add(name, [self._reference(child, child.attributes["ref"])], child)
                else:
                    add(name, self._inside(child), child)
            elif child.is_core:
                found[child.name] = Property(child.name, self._inside(child), child)
            elif not (child.is_spring and child.name in ("description", "meta")):
                add(child.kind, [child], child)
        return found

    def _inside(self, element: Element) -> list[Value]:
        """The values inside a property element; lists are flattened, references followed."""
        if not element.children:
            return [element.text] if element.text else []
        found: list[Value] = []
        for child in element.children:
            if child.is_spring and child.name in ("list", "set", "array"):
                found += self._inside(child)
            elif child.is_spring and child.name == "value":
                found.append(child.text)
            elif child.is_spring and child.name == "null":
                found.append(None)
            elif child.is_spring and child.name in ("ref", "idref"):
                attributes = child.attributes
                name = attributes.get("bean") or attributes.get("local") or attributes.get("component-id") or ""
                found.append(self._reference(child, name))
            else:
                found.append(child)
        return found

    def _reference(self, element: Element, name: str) -> Element:
        found = self.named.get(name)
        # A name that no file read here defines is a bean from elsewhere: kept as an unknown element.
        return found or Element("", f"#{name}", {}, {}, element.file, element.line)

    def text(self, value: str, at: Element, key: str) -> str:
        """A value with its placeholders replaced. Raises InvalidTopologyError if one is not defined, or by itself."""
        if "#{" in value:
            raise InvalidTopologyError(
                "is a Spring expression, which is not evaluated", file=at.file, line=at.line, key=f"{at}, {key}",
                value=value, hint="write the value itself, or a ${placeholder}",
            )  # fmt: skip
        try:
            return self.placeholders.resolve(value)
        except RecursionError as circle:
            raise InvalidTopologyError(
                _unresolved(circle), file=at.file, line=at.line, key=f"{at}, {key}", value=value,
                hint="give it a value of its own where it is defined",
            ) from None  # fmt: skip
        except KeyError as missing:
            name = missing.args[0]
            offer = did_you_mean(name, self.placeholders.names())
            hint = f"give properties={{{name!r}: ...}} (-D {name}=... to a command), or set it in the environment"
            raise InvalidTopologyError(
                _unresolved(missing), file=at.file, line=at.line, key=f"{at}, {key}", value=value,
                hint=f"{offer} {hint}" if offer.startswith("did") else hint,
            ) from None  # fmt: skip


def _unresolved(error: KeyError | RecursionError) -> str:
    """Why a placeholder has no value, in a sentence's end."""
    return f"${{{error.args[0]}}} is {'not defined' if isinstance(error, KeyError) else 'defined by itself'}"


def _installation(path: Path) -> dict[str, str]:
    """What ActiveMQ's start script defines when nothing is set, for a file in the installation's conf folder."""
    if path == Path():  # a string without a file: the installation is the folder of the process
        return {"activemq.conf": "conf", "activemq.base": ".", "activemq.home": ".", "activemq.data": "data",
                "ACTIVEMQ_HOME": "."}  # fmt: skip
    conf = path.absolute().parent
    base = conf.parent
    return {"activemq.conf": str(conf), "activemq.base": str(base), "activemq.home": str(base),
            "activemq.data": str(base / "data"), "ACTIVEMQ_HOME": str(base)}  # fmt: skip


def _local(resource: str, importer: Path) -> Path | None:
    """The file a Spring resource names, relative to the file that names it; None if it is not a local file."""
    location = resource.strip()
    if location.startswith("file:"):
        location = re.sub(r"^file:(?://)?", "", location)
    elif re.match(r"[A-Za-z][A-Za-z0-9+.-]+:", location) and not (os.name == "nt" and location[1:2] == ":"):
        return None
    return importer.parent / location
