from pyengine.errors import MissingExtraError


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
            self.evaluate = etree.XPath(text, regexp=False, smart_strings=False)
        except (etree.XPathError, ValueError):
            self.evaluate = None

    def __reduce__(self):
        return Path, (self.text,)

    def __call__(self, body):
        """Whether the expression is true of the body: False too if that is no XML, has a DOCTYPE, or the path fails."""
        cdef object parser, root, answer
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
                body = body.encode()
            root = etree.fromstring(body, parser)
            if root.getroottree().docinfo.internalDTD is not None:
                return False
            answer = self.evaluate(root.getroottree())
        except (etree.XMLSyntaxError, etree.XPathError, ValueError):
            return False
        # number and node set and string as boolean(): NaN and 0, nothing, and "" are false.
        return bool(answer) and answer == answer


cpdef Path compile_path(str text):
    """The expression, ready to be called with bodies; one that is no XPath is False of every body.

    Raises MissingExtraError without lxml.
    """
    return Path(text)
