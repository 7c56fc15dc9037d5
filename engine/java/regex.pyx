# cython: boundscheck=True, wraparound=True
"""See regex.pxd."""

import re
from functools import lru_cache
from unicodedata import category

from pyengine._engine.java.regex_translation cimport ASCII_ONLY, EVERYTHING, WITHOUT_MARKS, translated

from pyengine.errors import SelectorEvaluationError


cdef class JavaPattern:
    """A Java regular expression, compiled."""

    def __cinit__(self, str text):
        self.text = text
        compiled, self.groups, self.names, differs = translated(text, ASCII_ONLY)
        self.by_alphabet = [compiled, None, None] if differs else [compiled] * 3

    def __reduce__(self):
        return JavaPattern, (self.text,)

    def search_of(self, str subject not None):
        """``search`` of what Matcher.find is for strings of the alphabet of this one."""
        return self.compiled(subject).search

    cdef object compiled(self, str subject):
        cdef int alphabet = ASCII_ONLY if subject.isascii() else WITHOUT_MARKS
        if alphabet != ASCII_ONLY and self.by_alphabet[EVERYTHING] is not self.by_alphabet[ASCII_ONLY]:
            for character in subject:
                if category(character) in ("Mn", "No", "Nl"):
                    alphabet = EVERYTHING
        if self.by_alphabet[alphabet] is None:
            self.by_alphabet[alphabet] = translated(self.text, alphabet)[0]
        return self.by_alphabet[alphabet]


@lru_cache(maxsize=100)
def cached(text):
    """A compiled pattern, from the cache."""
    return JavaPattern(text)


cdef JavaPattern compile_pattern(str text):
    return cached(text)


cdef bint finds(JavaPattern pattern, str subject) except -1:
    return pattern.compiled(subject).search(subject) is not None


cdef list matches(JavaPattern pattern, str subject):
    """All matches in the order of Matcher.find: after an empty match the search continues one character further."""
    cdef list found = []
    cdef Py_ssize_t place = 0
    search = pattern.compiled(subject).search
    while place <= len(subject):
        match = search(subject, place)
        if match is None:
            break
        found.append(match)
        place = match.end() + (match.end() == match.start())
    return found


cdef str expanded(JavaPattern pattern, str replacement, object match):
    """The replacement of one match: ``$1``, ``${name}`` and backslashes."""
    cdef list parts = []
    cdef int place = 0
    cdef int number
    while place < len(replacement):
        character = replacement[place]
        place += 1
        if character == "\\":
            if place == len(replacement):
                raise SelectorEvaluationError("", f"REPLACE: the replacement {replacement!r} ends with a backslash")
            parts.append(replacement[place])
            place += 1
        elif character == "$":
            named = re.compile(r"\{([A-Za-z][A-Za-z0-9]*)\}").match(replacement, place)
            if named is not None and named[1] in pattern.names:
                number = pattern.names[named[1]]
                place = named.end()
            elif replacement[place : place + 1] in tuple("0123456789"):
                number = ord(replacement[place]) - 48
                place += 1
                while replacement[place : place + 1] in tuple("0123456789"):
                    if number * 10 + ord(replacement[place]) - 48 > pattern.groups:
                        break
                    number = number * 10 + ord(replacement[place]) - 48
                    place += 1
                if number > pattern.groups:
                    raise SelectorEvaluationError("", f"REPLACE: the pattern has no group {number}")
            else:
                raise SelectorEvaluationError("", f"REPLACE: no group is named after '$' in {replacement!r}")
            parts.append(match.group(number) or "")
        else:
            parts.append(character)
    return "".join(parts)


cdef str replace_all(JavaPattern pattern, str subject, object replacement):
    cdef list parts = []
    cdef Py_ssize_t place = 0
    for match in matches(pattern, subject):
        if replacement is None:
            raise SelectorEvaluationError("", "REPLACE: the replacement is null")
        parts.append(subject[place : match.start()])
        parts.append(expanded(pattern, replacement, match))
        place = match.end()
    parts.append(subject[place:])
    return "".join(parts)


cdef list split(JavaPattern pattern, str subject, int limit):
    cdef list parts = []
    cdef Py_ssize_t place = 0
    for match in matches(pattern, subject):
        if limit > 0 and len(parts) == limit - 1:
            break
        if match.end() == 0:
            continue
        parts.append(subject[place : match.start()])
        place = match.end()
    if not parts:
        return [subject]
    parts.append(subject[place:])
    if limit == 0:
        while parts and not parts[-1]:
            parts.pop()
    return parts
