import re

from pyengine.errors import MissingExtraError

cdef object TOKEN = re.compile(
    r"""(?P<blank>\s+)|(?P<literal>"[^"]*"|'[^']*')|(?P<number>[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"""
    r"""|(?P<prefix>[^\W\d][\w.-]*):(?!:)|(?P<name>[^\W\d][\w.-]*)|::|//|\.\.|[!<>]=|.""", re.DOTALL)
cdef object ONLY_BEHIND_NODES = re.compile(r"\s*[\[/]")
cdef frozenset NUMBERS = frozenset(
    {"ceiling", "count", "floor", "last", "number", "position", "round", "string-length", "sum"})
cdef dict ARGUMENTS = {          # function -> least and most arguments
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


cdef class Bracket:
    """A parenthesis that is open, or the whole path, and the state of the expression inside."""

    cdef int start               # index of the first part inside
    cdef str function            # the function whose arguments it encloses
    cdef int commas
    cdef bint operand            # the previous token ends an operand
    cdef bint number             # that operand is a number
    cdef bint negated            # a sign precedes the next operand
    cdef bint calculates
    cdef bint compares

    def __cinit__(self, int start=0, str function=None):
        self.start = start
        self.function = function

    cdef int take(self, bint number=False) except -1:
        """The token is, or ends, an operand."""
        self.operand, self.number, self.negated = True, number, False
        return 0

    cdef int expect(self) except -1:
        """An operand begins."""
        self.operand = self.negated = False
        return 0

    cdef bint fits(self, bint empty):
        """Whether the function takes this number of arguments; one with a prefix fails only when evaluated."""
        if self.function is None or ":" in self.function:
            return True
        fewest, most = ARGUMENTS.get(self.function, (0, -1))
        return fewest <= (0 if empty else self.commas + 1) <= most

    cdef bint is_number(self):
        """Whether the expression inside is a number."""
        return not self.compares and (self.calculates or self.number)

    cdef bint gives_number(self):
        return self.is_number() if self.function is None else self.function in NUMBERS


cdef str as_broker(str text, dict namespaces):
    """The expression for libxml2 that means what the broker's Xalan reads; None: Xalan refuses it.

    Xalan accepts one sign before an operand, no name directly after a number or a dot, no ``-`` directly after a
    fraction or a dot, no step or predicate after a number or a literal, and no function that is unknown or has too few
    or too many arguments, even if it is not evaluated. A number as a predicate is cut to its integer part. An unknown
    prefix, at which libxml2 would fail, is bound to a namespace that no body has; ``namespaces`` receives the binding.
    """
    cdef list parts = [], opened = [Bracket()]
    cdef Bracket bracket, closed
    cdef str token, name, behind, before = ""
    for found in TOKEN.finditer(text):
        bracket = opened[len(opened) - 1]
        token = found[0]
        behind = text[found.end():found.end() + 1]
        parts.append(token)
        if found["blank"]:
            continue
        if (found["number"] or token in (".", "..")) and (
                behind == "_" or behind.isalpha() or (behind == "-" and "." in token)):
            return None
        if found["literal"] or found["number"]:
            if ONLY_BEHIND_NODES.match(text, found.end()):
                return None
            bracket.take(found["number"] is not None)
        elif found["prefix"]:
            name = f"unknown-{found['prefix']}"
            namespaces[name] = f"urn:{name}"
            parts[len(parts) - 1] = f"{name}:"
            bracket.expect()
        elif token in ("and", "or", "div", "mod") and bracket.operand:
            bracket.compares |= token in ("and", "or")
            bracket.calculates = True
            bracket.expect()
        elif found["name"] or token in (".", ".."):
            if bracket.operand:
                return None              # libxml2 finds the operator in "or.5"
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
            bracket = opened[len(opened) - 1]
            if token == "]" and closed.is_number():
                parts[closed.start], parts[len(parts) - 1] = "floor(", ")]"
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


cdef class Path:
    """One XPath expression; call it with a body: str, bytes or None. ``compile_path`` makes it."""

    def __cinit__(self, str text):
        try:
            from lxml import etree
        except ImportError as error:
            raise MissingExtraError("xpath", "lxml, which evaluates XPATH selectors") from error
        self.text = text
        self.etree = etree
        try:
            etree.XPath(text, regexp=False)              # an invalid expression must not become valid below
            namespaces = {}
            path = as_broker(text, namespaces)
            # The context node of lxml is the root element, that of the broker the document above it.
            self.evaluate = None if path is None else etree.XPath(
                f"boolean(/self::node()[boolean({path})])", regexp=False, namespaces=namespaces or None)
        except (etree.XPathError, ValueError):
            self.evaluate = None

    def __reduce__(self):
        return Path, (self.text,)

    def __call__(self, body):
        """Whether the expression is true of the body; False if it is not XML, has a DOCTYPE, or the path fails."""
        cdef object parser, root
        if self.evaluate is None or not isinstance(body, (str, bytes)) or not body:
            return False
        etree = self.etree
        # One parser for each call: a parser keeps its errors and is not thread-safe.
        parser = etree.XMLParser(
            resolve_entities=False, no_network=True, load_dtd=False, dtd_validation=False, remove_comments=True,
            huge_tree=False, collect_ids=False, encoding="utf-8" if isinstance(body, str) else None,
        )
        try:
            if isinstance(body, str):
                if body[0] == "\ufeff":
                    return False                         # in a str a byte order mark is a character: not XML
                body = body.encode()
            root = etree.fromstring(body, parser)
            if root.getroottree().docinfo.internalDTD is not None:
                return False
            return bool(self.evaluate(root.getroottree()))
        except (etree.XMLSyntaxError, etree.XPathError, ValueError):
            return False


cpdef Path compile_path(str text):
    """The compiled expression, to be called with bodies; an invalid one is False for every body.

    Raises MissingExtraError without lxml.
    """
    return Path(text)
