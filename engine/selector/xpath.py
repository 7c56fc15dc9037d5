"""``XPATH '...'`` on a message's body (spec activemq 1.14): XPath 1.0 as a boolean; any problem is FALSE."""

import re

from pyengine.errors import MissingExtraError

TOKEN = re.compile(
    r"""(?P<blank>\s+)|(?P<literal>"[^"]*"|'[^']*')|(?P<number>[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"""
    r"""|(?P<prefix>[^\W\d][\w.-]*):(?!:)|(?P<name>[^\W\d][\w.-]*)|::|//|\.\.|[!<>]=|.""",
    re.DOTALL,
)
ONLY_BEHIND_NODES = re.compile(r"\s*[\[/]")
NUMBERS = frozenset({"ceiling", "count", "floor", "last", "number", "position", "round", "string-length", "sum"})
ARGUMENTS = {  # how few and how many a function takes
    name: (fewest, most)
    for fewest, most, names in (
        (0, 0, "false last position true"),
        (0, 1, "local-name name namespace-uri normalize-space number string string-length"),
        (1, 1, "boolean ceiling count floor id lang not round sum"),
        (2, 2, "contains starts-with substring-after substring-before"),
        (2, 3, "substring"),
        (2, 1 << 30, "concat"),
        (3, 3, "translate"),
        (0, 0, "comment node text"),
        (0, 1, "processing-instruction"),
        # Extension functions of Xalan, which fail here only when they are evaluated.
        (0, 1 << 30, "current element-available function-available generate-id here system-property"),
        (0, 1 << 30, "unparsed-entity-uri"),
    )
    for name in names.split()
}


class Bracket:
    """One that is open, or the whole path, and what is known of the expression in it.

    start: the part behind it, empty. function: whose arguments it holds. operand: the token before ends one. number:
    that operand is a number. negated: a sign stands before the operand that comes.
    """

    __slots__ = ("calculates", "commas", "compares", "function", "negated", "number", "operand", "start")

    def __init__(self, start: int = 0, function: str | None = None) -> None:
        self.start, self.function, self.commas = start, function, 0
        self.operand = self.number = self.negated = self.calculates = self.compares = False

    def take(self, number: bool = False) -> None:
        """The token is, or ends, an operand."""
        self.operand, self.number, self.negated = True, number, False

    def expect(self) -> None:
        """An operand comes."""
        self.operand = self.negated = False

    def fits(self, empty: bool) -> bool:
        """Whether the function takes so many arguments; one with a prefix fails only where it is asked."""
        if self.function is None or ":" in self.function:
            return True
        fewest, most = ARGUMENTS.get(self.function, (0, -1))
        return fewest <= (0 if empty else self.commas + 1) <= most

    def is_number(self) -> bool:
        """Whether the expression in it is one."""
        return not self.compares and (self.calculates or self.number)

    def gives_number(self) -> bool:
        return self.is_number() if self.function is None else self.function in NUMBERS


def as_broker(text: str, namespaces: dict[str, str]) -> str | None:
    """The expression for libxml2, for what the broker's Xalan reads; None: Xalan does not read it.

    Xalan accepts one sign before an operand, no name directly after a number or a dot, no ``-`` directly after a
    fraction or a dot, no step or predicate after a number or a literal, and no function that is unknown or has too few
    or too many arguments, even if it is not evaluated. A number as a predicate is cut to its integer part. An unknown
    prefix, at which libxml2 would fail, is bound to a namespace that no body has; ``namespaces`` receives the binding.
    """
    parts: list[str] = []
    opened = [Bracket()]
    before = ""
    for found in TOKEN.finditer(text):
        bracket = opened[-1]
        token = found[0]
        behind = text[found.end() : found.end() + 1]
        parts.append(token)
        if found["blank"]:
            continue
        if (found["number"] or token in (".", "..")) and (
            behind == "_" or behind.isalpha() or (behind == "-" and "." in token)
        ):
            return None
        if found["literal"] or found["number"]:
            if ONLY_BEHIND_NODES.match(text, found.end()):
                return None
            bracket.take(found["number"] is not None)
        elif found["prefix"]:
            name = f"unknown-{found['prefix']}"
            namespaces[name] = f"urn:{name}"
            parts[-1] = f"{name}:"
            bracket.expect()
        elif token in ("and", "or", "div", "mod") and bracket.operand:
            bracket.compares |= token in ("and", "or")
            bracket.calculates = True
            bracket.expect()
        elif found["name"] or token in (".", ".."):
            if bracket.operand:
                return None  # libxml2 finds the operator in "or.5"
            bracket.take()
            if before.endswith(":") and before != "::":
                token = before + token
        elif token in ("(", "["):
            opened.append(Bracket(len(parts), before if token == "(" and bracket.operand else None))
            parts.append("")
        elif token in (")", "]"):
            closed = opened.pop()
            if not closed.fits(before == "("):
                return None
            bracket = opened[-1]
            if token == "]" and closed.is_number():
                parts[closed.start], parts[-1] = "floor(", ")]"
            bracket.take(token == ")" and closed.gives_number())
        elif token == "*" and not bracket.operand:
            bracket.take()
        elif token == "-" and not bracket.operand and before != "/":
            if bracket.negated:
                return None
            bracket.negated = bracket.calculates = True
        else:
            bracket.commas += token == ","
            bracket.compares |= token in ("=", "!=", "<", ">", "<=", ">=", "|")
            bracket.calculates |= token in ("+", "-", "*")
            bracket.expect()
        before = token
    return "".join(parts)


class Path:
    """One XPath expression; call it with a body: str, bytes or None. ``compile_path`` makes it."""

    __slots__ = ("_etree", "_evaluate", "_text")

    def __init__(self, text: str) -> None:
        try:
            from lxml import etree
        except ImportError as error:
            raise MissingExtraError("xpath", "lxml, which evaluates XPATH selectors") from error
        self._text = text
        self._etree = etree
        try:
            etree.XPath(text, regexp=False)  # what is not a path by itself must not become one below
            namespaces: dict[str, str] = {}
            path = as_broker(text, namespaces)
            # lxml's context is the root element, the broker's the document above it.
            self._evaluate = (
                None
                if path is None
                else etree.XPath(
                    f"boolean(/self::node()[boolean({path})])", regexp=False, namespaces=namespaces or None
                )
            )
        except (etree.XPathError, ValueError):
            self._evaluate = None

    @property
    def text(self) -> str:
        """The expression."""
        return self._text

    def __reduce__(self) -> tuple[object, ...]:
        return Path, (self._text,)

    def __call__(self, body: str | bytes | None) -> bool:
        """Whether the expression is true of the body: False too if it is not XML, has a DOCTYPE, or the path fails."""
        if self._evaluate is None or not isinstance(body, (str, bytes)) or not body:
            return False
        etree = self._etree
        # One parser a call: a parser keeps its errors and is not for two threads.
        parser = etree.XMLParser(
            resolve_entities=False,
            no_network=True,
            load_dtd=False,
            dtd_validation=False,
            remove_comments=True,
            huge_tree=False,
            collect_ids=False,
            encoding="utf-8" if isinstance(body, str) else None,
        )
        try:
            if isinstance(body, str):
                if body[0] == "\ufeff":
                    return False  # a byte order mark is none in a string
                body = body.encode()
            root = etree.fromstring(body, parser)
            if root.getroottree().docinfo.internalDTD is not None:
                return False
            return bool(self._evaluate(root.getroottree()))
        except (etree.XMLSyntaxError, etree.XPathError, ValueError):
            return False


def compile_path(text: str) -> Path:
    """The expression, ready to be called with bodies; one that is not an XPath is False of every body.

    Raises MissingExtraError without lxml.
    """
    return Path(text)
