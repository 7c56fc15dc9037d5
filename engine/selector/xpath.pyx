import re

from pyengine.errors import MissingExtraError

cdef object TOKEN = re.compile(
    r"""(?P<blank>\s+)|(?P<literal>"[^"]*"|'[^']*')|(?P<number>[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"""
    r"""|(?P<prefix>[^\W\d][\w.-]*):(?!:)|(?P<name>[^\W\d][\w.-]*)|::|//|\.\.|[!<>]=|.""", re.DOTALL)
cdef object ONLY_BEHIND_NODES = re.compile(r"\s*[\[/]")
cdef frozenset NUMBERS = frozenset(
    {"ceiling", "count", "floor", "last", "number", "position", "round", "string-length", "sum"})
cdef dict ARGUMENTS = {          # how few and how many a function takes
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
        # Xalan's own, which fail here only where they are asked.
        (0, 1 << 30, "current element-available function-available generate-id here system-property"),
        (0, 1 << 30, "unparsed-entity-uri"),
    )
    for name in names.split()
}


cdef class Bracket:
    """One that is open, or the whole path, and what is known of the expression in it."""

    cdef int start               # the part behind it, empty
    cdef str function            # whose arguments it holds
    cdef int commas
    cdef bint operand            # the token before ends one
    cdef bint number             # that operand is a number
    cdef bint negated            # a sign stands before the operand that comes
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
        """An operand comes."""
        self.operand = self.negated = False
        return 0

    cdef bint fits(self, bint empty):
        """Whether the function takes so many arguments; one with a prefix fails only where it is asked."""
        if self.function is None or ":" in self.function:
            return True
        fewest, most = ARGUMENTS.get(self.function, (0, -1))
        return fewest <= (0 if empty else self.commas + 1) <= most

    cdef bint is_number(self):
        """Whether the expression in it is one."""
        return not self.compares and (self.calculates or self.number)

    cdef bint gives_number(self):
        return self.is_number() if self.function is None else self.function in NUMBERS


cdef str as_broker(str text, dict namespaces):
    """What libxml2 is to be asked for what the broker's Xalan reads; None: Xalan does not read it.

    Xalan takes one sign before an operand, no name right behind a number or a dot, no ``-`` right behind a fraction or
    a dot, nothing behind a number or a text that only nodes can have, and no function that it does not know, or with
    too few or too many arguments, even where it is not asked. A number in brackets means its whole part. A prefix is
    one that no body has, where libxml2 would fail, and knows ``xml:``; ``namespaces`` is given what it stands for.
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
            etree.XPath(text, regexp=False)              # what is no path by itself must not become one below
            namespaces = {}
            path = as_broker(text, namespaces)
            # lxml's context is the root element, the broker's the document above it.
            self.evaluate = None if path is None else etree.XPath(
                f"boolean(/self::node()[boolean({path})])", regexp=False, namespaces=namespaces or None)
        except (etree.XPathError, ValueError):
            self.evaluate = None

    def __reduce__(self):
        return Path, (self.text,)

    def __call__(self, body):
        """Whether the expression is true of the body: False too if that is no XML, has a DOCTYPE, or the path fails."""
        cdef object parser, root
        if self.evaluate is None or not isinstance(body, (str, bytes)) or not body:
            return False
        etree = self.etree
        # One parser a call: a parser keeps its errors and is not for two threads.
        parser = etree.XMLParser(
            resolve_entities=False, no_network=True, load_dtd=False, dtd_validation=False, remove_comments=True,
            huge_tree=False, collect_ids=False, encoding="utf-8" if isinstance(body, str) else None,
        )
        try:
            if isinstance(body, str):
                if body[0] == "\ufeff":
                    return False                         # a byte order mark is none in a text
                body = body.encode()
            root = etree.fromstring(body, parser)
            if root.getroottree().docinfo.internalDTD is not None:
                return False
            return bool(self.evaluate(root.getroottree()))
        except (etree.XMLSyntaxError, etree.XPathError, ValueError):
            return False


cpdef Path compile_path(str text):
    """The expression, ready to be called with bodies; one that is no XPath is False of every body.

    Raises MissingExtraError without lxml.
    """
    return Path(text)
