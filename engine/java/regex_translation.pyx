# cython: boundscheck=True, wraparound=True
"""See regex_translation.pxd."""

import re

from pyengine._engine.java.character_classes import (
    class_text, complement, intersection, named_class, union, with_cases,
)

from pyengine.errors import SelectorEvaluationError

cdef tuple DIGIT = ((48, 57),)
cdef tuple WORD = ((48, 57), (65, 90), (95, 95), (97, 122))
cdef tuple SPACE = ((9, 13), (32, 32))
cdef tuple HORIZONTAL = (
    (9, 9), (32, 32), (0xA0, 0xA0), (0x1680, 0x1680), (0x180E, 0x180E), (0x2000, 0x200A), (0x202F, 0x202F),
    (0x205F, 0x205F), (0x3000, 0x3000),
)
cdef tuple VERTICAL = ((10, 13), (0x85, 0x85), (0x2028, 0x2029))
cdef tuple LINE_END = ((10, 10), (13, 13), (0x85, 0x85), (0x2028, 0x2029))
cdef dict SHORTHANDS = {"d": DIGIT, "w": WORD, "s": SPACE, "h": HORIZONTAL, "v": VERTICAL}
cdef dict CONTROLS = {"t": 9, "n": 10, "r": 13, "f": 12, "a": 7, "e": 27}
cdef str NEWLINES = "[\\r\\x85\\u2028\\u2029]"
cdef int DEEPEST = 200

cdef object refused(str pattern, str problem):
    return SelectorEvaluationError("", f"Java refuses the regular expression {pattern!r}: {problem}")


cdef object untranslatable(str pattern, str construct):
    return SelectorEvaluationError(
        "", f"the regular expression {pattern!r} uses {construct}, which pyengine cannot evaluate as Java does"
    )


cdef str unquoted(str text):
    """Java's first pass: ``\\Q...\\E`` becomes single escapes."""
    cdef list out = []
    cdef int place = 0
    cdef bint inside = False
    cdef bint first = False
    while place < len(text):
        character = text[place]
        if inside:
            if character == "\\" and text[place + 1 : place + 2] == "E":
                inside = False
                place += 2
                continue
            if first and character in "0123456789":
                out.append("\\x3")
            elif character.isascii() and not character.isalnum():
                out.append("\\")
            out.append(character)
            first = False
            place += 1
        elif character == "\\" and text[place + 1 : place + 2] == "Q":
            inside = first = True
            place += 2
        elif character == "\\":
            out.append(text[place : place + 2])
            place += 2
        else:
            out.append(character)
            place += 1
    return "".join(out)


cdef class Translator:
    """One pass over a pattern: its translation for ``re``, valid for subjects of one alphabet."""
    cdef str pattern
    cdef str text
    cdef int place
    cdef int depth
    cdef int groups
    cdef set open_groups
    cdef dict names
    cdef bint ignore_case
    cdef bint multiline
    cdef bint dotall
    cdef bint unix_lines
    cdef bint unicode_case
    cdef int nearest               # of the references to groups that do not stand before them
    cdef bint behind               # inside a look-behind
    cdef int alphabet
    cdef bint differs              # from the translation for another alphabet

    def __cinit__(self, str pattern, int alphabet):
        self.pattern = pattern
        self.text = unquoted(pattern)
        self.alphabet = alphabet
        self.names = {}
        self.nearest = 0x7FFFFFFF
        self.open_groups = set()

    cdef str peek(self):
        return self.text[self.place] if self.place < len(self.text) else ""

    cdef str take(self):
        cdef str character = self.peek()
        self.place += 1
        return character

    cdef object refuse(self, str problem):
        return refused(self.pattern, f"{problem} near index {min(self.place, len(self.text))}")

    cdef object cannot(self, str construct):
        return untranslatable(self.pattern, construct)

    cdef list alternatives(self):
        """Up to ``)`` or the end: the translated alternatives."""
        cdef list found = []
        cdef list parts = []
        self.depth += 1
        if self.depth > DEEPEST:
            raise self.cannot(f"more than {DEEPEST} nested groups")
        while True:
            character = self.peek()
            if character == "" or character == ")" or character == "|":
                found.append("".join(parts))
                parts = []
                if character != "|":
                    self.depth -= 1
                    return found
                self.place += 1
                continue
            if character in "*+?":
                raise self.refuse(f"dangling meta character '{character}'")
            parts.append(self.piece())

    cdef str piece(self):
        """An atom with its quantifiers."""
        cdef str atom
        cdef str quantifier
        cdef int start = self.place
        if self.peek() == "{":       # Java ignores a bound without an atom, also after inline flags
            self.quantifier()
            return ""
        atom = self.atom()
        if atom == "":               # inline flags: a quantifier after them has no atom
            return ""
        quantifier = self.quantifier()
        if not quantifier:
            return atom
        if self.text[start : start + 2] == "\\R":           # Java does not backtrack into a repeated \R
            atom = f"(?>{atom})"
        if self.behind and atom.startswith("(") and quantifier.startswith("{0}") and self.text[start] == "(":
            raise self.cannot("a group that is repeated no time in a look-behind")       # whose width Java may not see
        # ``a**`` has no atom, but Java accepts a bound after it, with an effect of its own.
        if self.peek() == "{" and self.quantifier():
            raise self.cannot("a bound after another quantifier")
        return f"(?:(?:{atom}){quantifier})"

    cdef str quantifier(self):
        cdef str character = self.peek()
        cdef str bounds
        cdef object least, most
        if character == "{":
            found = re.compile(r"\{([0-9]+)(?:(,)([0-9]*))?\}").match(self.text, self.place)
            if found is None:
                raise self.refuse("illegal repetition")
            self.place = found.end()
            least = int(found[1])
            most = least if found[2] is None else int(found[3]) if found[3] else None
            if least > 0x7FFFFFFF or most is not None and (most > 0x7FFFFFFF or most < least):
                raise self.refuse("illegal repetition range")
            bounds = "{" + str(least) + ("" if most == least else f",{'' if most is None else most}") + "}"
        elif character and character in "*+?":
            self.place += 1
            bounds = character
            most = 1 if character == "?" else None
        else:
            return ""
        if self.behind and most is None:
            raise self.cannot("a look-behind without a maximum length")
        if self.peek() == "?" or self.peek() == "+":
            bounds += self.take()
        return bounds

    cdef str atom(self):
        cdef str character = self.take()
        if character == "(":
            return self.group()
        if character == "[":
            return class_text(self.char_class(True))
        if character == "\\":
            return self.escaped()
        if character == "^":
            return self.line_start() if self.multiline else "\\A"
        if character == "$":
            return self.line_end() if self.multiline else self.text_end()
        if character == ".":
            if self.dotall:
                return "(?s:.)"
            return "[^\\n]" if self.unix_lines else class_text(complement(LINE_END))
        return self.literal(ord(character))

    cdef str literal(self, int point):
        return class_text(self.cased(((point, point),)))

    cdef tuple cased(self, tuple ranges):
        if not self.ignore_case:
            return ranges
        if self.unicode_case:
            raise self.cannot("case-insensitive matching by Unicode, (?iu)")
        return with_cases(ranges)

    cdef str text_end(self):
        if self.unix_lines:
            return "(?=\\n?\\Z)"
        return f"(?=(?:\\r\\n|(?<!\\r)\\n|{NEWLINES})?\\Z)"

    cdef str line_end(self):
        if self.unix_lines:
            return "(?=\\n|\\Z)"
        return f"(?=(?<!\\r)\\n|{NEWLINES}|\\Z)"

    cdef str line_start(self):
        if self.unix_lines:
            return "(?:(?!\\Z)(?:\\A|(?<=\\n)))"
        return "(?:(?!\\Z)(?:\\A|(?<=[\\n\\x85\\u2028\\u2029])|(?<=\\r)(?!\\n)))"

    cdef str boundary(self):
        """A word boundary: a Unicode letter, digit or ``_`` on one side only; marks belong to their letter."""
        cdef str word, mark, before, after
        self.differs = True
        if self.alphabet < EVERYTHING:
            return "(?a:\\b)" if self.alphabet == ASCII_ONLY else "(?u:\\b)"
        word = class_text(union(named_class("LD", False), ((95, 95),)))
        letter = class_text(named_class("LD", False))
        mark = class_text(named_class("Mn", False))
        marked = "|".join([f"(?<={letter}{mark * count})" for count in range(1, 5)])
        before = f"(?:(?<={word})|{marked})"
        after = f"(?:(?={word})|(?={mark})(?:(?<={letter})|{marked}))"
        return f"(?:{before}(?!{after})|(?!{before}){after})"

    cdef str escaped(self):
        cdef str character = self.peek()
        cdef str name
        if character == "":
            raise self.refuse("nothing after the backslash")
        if character in "123456789":
            return self.reference()
        self.place += 1
        if character == "A":
            return "\\A"
        if character == "Z":
            return self.text_end()
        if character == "z":
            return "\\Z"
        if character == "b":
            if self.text[self.place : self.place + 3] == "{g}":
                raise self.cannot("\\b{g}")
            return self.boundary()
        if character == "B":
            return f"(?!{self.boundary()})"
        if character == "G" or character == "X":
            raise self.cannot("\\" + character)
        if character == "R":
            return "(?:\\r\\n|[\\n-\\r\\x85\\u2028\\u2029])"
        if character == "k":
            if self.take() != "<":
                raise self.refuse("\\k is not followed by '<'")
            name = self.group_name()
            if name not in self.names:
                raise self.refuse(f"named group <{name}> does not exist")
            return self.reference_to(self.names[name])
        self.place -= 1
        found = self.class_escape()
        if found is None:
            return self.literal(self.single_escape())
        return class_text(found)

    cdef str reference(self):
        cdef int number = ord(self.take()) - 48
        while self.peek() and self.peek() in "0123456789":
            if number * 10 + ord(self.peek()) - 48 > self.groups:
                break
            number = number * 10 + ord(self.take()) - 48
        return self.reference_to(number)

    cdef str reference_to(self, int number):
        if self.behind:
            raise self.cannot("a reference inside a look-behind")
        if number > self.groups:
            # Never matches if there is no such group; one that stands later is found at the end.
            self.nearest = min(self.nearest, number)
            return "(?!)"
        if number in self.open_groups:
            raise self.cannot(f"\\{number}, a reference inside its own group")
        if self.ignore_case:
            if self.unicode_case:
                raise self.cannot("case-insensitive matching by Unicode, (?iu)")
            return f"(?i:(?:\\{number}))"
        return f"(?:\\{number})"

    cdef tuple class_escape(self):
        """The set of ``\\d`` and its like, or None: then nothing is consumed."""
        cdef str character = self.peek()
        cdef str name
        cdef tuple found
        if character == "p" or character == "P":
            self.place += 1
            name = self.take()
            if name == "{":
                end = self.text.find("}", self.place)
                if end < 0:
                    raise self.refuse("unclosed character family")
                name = self.text[self.place : end]
                self.place = end + 1
            if not name:
                raise self.refuse("empty character family")
            found = named_class(name, self.ignore_case)
            if found is None:
                raise self.cannot(f"the class \\p{{{name}}}, unknown or without a table here")
            return complement(found) if character == "P" else found
        if character.lower() in SHORTHANDS:
            self.place += 1
            found = SHORTHANDS[character.lower()]
            return found if character.islower() else complement(found)
        return None

    cdef int single_escape(self) except -1:
        """The code point of an escape that stands for one character."""
        cdef str character = self.take()
        cdef int point, low
        if character in CONTROLS:
            return CONTROLS[character]
        if character == "0":
            found = re.compile("[0-3][0-7]{0,2}|[0-7]{1,2}").match(self.text, self.place)
            if found is None:
                raise self.refuse("illegal octal escape sequence")
            self.place = found.end()
            return int(found[0], 8)
        if character == "x" and self.peek() == "{":
            found = re.compile(r"\{([0-9A-Fa-f]+)\}").match(self.text, self.place)
            if found is None or int(found[1], 16) > 0x10FFFF:
                raise self.refuse("illegal hexadecimal escape sequence")
            self.place = found.end()
            return int(found[1], 16)
        if character == "x":
            return self.hexadecimal(2)
        if character == "u":
            point = self.hexadecimal(4)
            if 0xD800 <= point < 0xDC00 and self.text[self.place : self.place + 2] == "\\u":
                start = self.place
                self.place += 2
                low = self.hexadecimal(4)
                if 0xDC00 <= low < 0xE000:
                    return 0x10000 + ((point - 0xD800) << 10) + (low - 0xDC00)
                self.place = start
            return point
        if character == "c":
            if not self.peek():
                raise self.refuse("illegal control escape sequence")
            return ord(self.take()) ^ 64
        if character == "N":
            raise self.cannot("\\N{...}")
        if character == "" or character.isascii() and character.isalnum():
            raise self.refuse("illegal or unsupported escape sequence")
        return ord(character)

    cdef int hexadecimal(self, int digits) except -1:
        cdef str text = self.text[self.place : self.place + digits]
        if len(text) != digits or not all([digit in "0123456789abcdefABCDEF" for digit in text]):
            raise self.refuse("illegal hexadecimal or Unicode escape sequence")
        self.place += digits
        return int(text, 16)

    cdef str group_name(self):
        found = re.compile("[A-Za-z][A-Za-z0-9]*>").match(self.text, self.place)
        if found is None:
            raise self.refuse("capturing group name is missing or does not end with '>'")
        self.place = found.end()
        return found[0][:-1]

    cdef str body(self, str opening):
        """The alternatives of a group and its ``)``; flags set inside end there."""
        return opening + "|".join(self.scoped()) + ")"

    cdef list scoped(self):
        cdef tuple flags = self.flags()
        cdef list found = self.alternatives()
        if self.take() != ")":
            raise self.refuse("unclosed group")
        self.restore(flags)
        return found

    cdef list looked(self, bint behind):
        """The alternatives of a look-ahead or look-behind."""
        cdef bint before = self.behind
        cdef list found
        self.behind = behind
        found = self.scoped()
        self.behind = before
        return found

    cdef tuple flags(self):
        return self.ignore_case, self.multiline, self.dotall, self.unix_lines, self.unicode_case

    cdef int restore(self, tuple flags) except -1:
        self.ignore_case, self.multiline, self.dotall, self.unix_lines, self.unicode_case = flags
        return 0

    cdef str capture(self, str name):
        cdef int number
        cdef str found
        self.groups += 1
        number = self.groups
        if name:
            if name in self.names:
                raise self.refuse(f"named capturing group <{name}> is already defined")
            self.names[name] = number
        self.open_groups.add(number)
        found = self.body("(")
        self.open_groups.discard(number)
        return found

    cdef str group(self):
        cdef str kind
        if self.peek() != "?":
            return self.capture("")
        self.place += 1
        kind = self.take()
        if kind == ":":
            return self.body("(?:")
        if kind == ">":
            return "(?:" + self.body("(?>") + ")"
        if kind == "=" or kind == "!":
            return "(?:(?" + kind + "|".join(self.looked(False)) + "))"
        if kind == "<":
            kind = self.peek()
            if kind == "=" or kind == "!":
                self.place += 1
                # Python requires one width: each alternative becomes a look-behind of its own.
                parts = ["(?<" + kind + part + ")" for part in self.looked(True)]
                return "(?:" + ("|" if kind == "=" else "").join(parts) + ")"
            return self.capture(self.group_name())
        self.place -= 1
        return self.inline_flags()

    cdef str inline_flags(self):
        cdef bint on = True
        cdef tuple before = self.flags()
        cdef str character
        while True:
            character = self.take()
            if character == "-" and on:
                on = False
            elif character == "i":
                self.ignore_case = on
            elif character == "m":
                self.multiline = on
            elif character == "s":
                self.dotall = on
            elif character == "d":
                self.unix_lines = on
            elif character == "u":
                self.unicode_case = on
            elif character == "x" or character == "U":
                if on:
                    raise self.cannot(f"the flag (?{character})")
            elif character == ")":
                return ""
            elif character == ":":
                after = "|".join(self.alternatives())
                if self.take() != ")":
                    raise self.refuse("unclosed group")
                self.restore(before)
                return "(?:" + after + ")"
            else:
                raise self.refuse("unknown inline modifier")

    # Character classes: read as Java's parser reads them, with && binding what stands before it.

    cdef tuple char_class(self, bint consume):
        cdef tuple before = None
        cdef tuple current = None
        cdef tuple right
        cdef tuple single = None        # single characters and ranges of Latin-1, which Java adds last
        cdef bint negated = False
        cdef str character
        self.depth += 1
        if self.depth > DEEPEST:
            raise self.cannot(f"more than {DEEPEST} nested classes")
        if self.peek() == "^" and self.text[self.place - 1] == "[":
            negated = True
            self.place += 1
        while True:
            character = self.peek()
            if character == "[":
                self.place += 1
                current = self.char_class(True)
                before = current if before is None else union(before, current)
                continue
            if character == "&" and self.text[self.place : self.place + 2] == "&&":
                self.place += 2
                right = None
                while self.peek() != "]" and self.peek() != "&":
                    if self.peek() == "[":
                        self.place += 1
                        current_right = self.char_class(True)
                    else:
                        current_right = self.char_class(False)
                    right = current_right if right is None else union(right, current_right)
                if single is not None:
                    if before is None:
                        before = current = single
                    else:
                        before = union(before, single)
                    single = None
                if right is not None:
                    current = right
                if before is None:
                    if right is None:
                        raise self.refuse("bad class syntax")
                    before = right
                elif current is None:
                    raise self.cannot("&& with nothing to its right after a single character")
                else:
                    before = intersection(before, current)
                continue
            if character == "":
                raise self.refuse("unclosed character class")
            if character == "]" and (before is not None or single is not None):
                if consume:
                    self.place += 1
                if single is not None:
                    before = single if before is None else union(before, single)
                self.depth -= 1
                return complement(before) if negated else before
            found, small = self.class_item()
            if small:
                single = found if single is None else union(single, found)
                current = None
            else:
                current = found
                before = current if before is None else union(before, current)

    cdef tuple class_item(self):
        """(set, whether it is one Latin-1 character): the next item of a class."""
        cdef tuple found
        cdef int first, last
        if self.peek() == "\\":
            self.place += 1
            if self.text[self.place : self.place + 2] != "v-":       # the character, as once, where a range may begin
                found = self.class_escape()
                if found is not None:
                    return found, False
            first = self.class_single()
        else:
            first = ord(self.take())
        if self.peek() == "-":
            following = self.text[self.place + 1 : self.place + 2]
            if following != "[" and following != "]":
                self.place += 1
                if self.peek() == "":
                    raise self.refuse("unclosed character class")
                if self.peek() == "\\":
                    self.place += 1
                    last = self.class_single()
                else:
                    last = ord(self.take())
                if last < first:
                    raise self.refuse("illegal character range")
                return self.cased(((first, last),)), False
        return self.cased(((first, first),)), first < 256

    cdef int class_single(self) except -1:
        if self.peek() and self.peek() in "123456789bBAGZzRXk":
            raise self.refuse("illegal or unsupported escape sequence")
        if self.peek() == "v":
            self.place += 1
            return 11
        return self.single_escape()


cdef tuple translated(str text, int alphabet):
    cdef Translator translator = Translator(text, alphabet)
    cdef str found = "|".join(translator.alternatives())
    if translator.place < len(translator.text):
        raise translator.refuse("unmatched closing ')'")
    if translator.nearest <= translator.groups:
        raise translator.cannot(f"\\{translator.nearest}, a reference to a group that stands later")
    try:
        compiled = re.compile(found, re.ASCII)
    except (re.error, OverflowError, RecursionError) as error:
        raise untranslatable(text, f"a construct beyond Python's re ({error})") from error
    return compiled, translator.groups, translator.names, translator.differs
