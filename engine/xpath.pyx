import re

from pyengine.errors import MissingExtraError

cdef object QUOTED_OR_PREFIX = re.compile(r"""("[^"]*"|'[^']*')|(?<![\w.-])([A-Za-z_][\w.-]*):(?!:)""")
cdef object EXPONENT = re.compile(r"""(?<![\w.-])(?:[0-9]+\.?[0-9]*|\.[0-9]+)[eE]""")


cdef tuple with_unknown_prefixes(str text):
    """``text`` with a new name for each prefix, and what they mean: namespaces that no body has.

    The broker's paths know no prefix, and what has one selects nothing; libxml2 would fail, and knows ``xml:``.
    """
    cdef dict namespaces = {}
    cdef list parts = []
    cdef int place = 0
    for found in QUOTED_OR_PREFIX.finditer(text):
        if found[2]:
            namespaces[f"unknown-{found[2]}"] = f"urn:unknown:{found[2]}"
            parts.append(text[place:found.start()] + f"unknown-{found[2]}:")
            place = found.end()
    return "".join(parts) + text[place:], namespaces or None


cdef bint has_exponent(str text):
    """A number like 1e3, which libxml2 reads and XPath 1.0 does not have."""
    return EXPONENT.search(re.sub(r"""'[^']*'|"[^"]*\"""", "''", text)) is not None


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
            path, namespaces = with_unknown_prefixes(text)
            # lxml's context is the root element, the broker's the document above it.
            path = f"boolean(/self::node()[boolean({path})])"
            self.evaluate = None if has_exponent(text) else etree.XPath(path, regexp=False, namespaces=namespaces)
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
