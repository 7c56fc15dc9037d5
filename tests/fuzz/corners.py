"""Random selectors and messages biased to the corners of both languages, for the comparison with the real classes."""

from __future__ import annotations

import random
import re
import struct
from collections.abc import Sequence
from typing import Any, Literal

import numpy

import pyengine

NAMES = ("a", "b", "c", "d", "s", "t")
DIGITS = ("\u0663", "\uff13", "\u0be9", "\U0001d7db", "\u00b2", "\u4e09")  # decimal or not, within UTF-16 units or not
ODD = (
    "", "a", "A", "ab", "abc", "a%c", "a_c", "%", "_", "\\", "\\%", "x\\y", "'", "''", '"', "\0", "a\0b", "\n",
    "a\nb", "\r\n", "\x85", "\u2028", "\x10", "\x0f", "\x01", "\xff", "\u0100", "\u1001", "\uffff", "\ud83d",
    "\ude00", "\ud83d\ude00", "\ude00\ud83d", "a\ud83d", "\ud83da", "\ue000", "e\u0301", "\xe9", "\u0130", "\u017f",
    "\xdf", "\ufb01", ".", "*", "a.c", "[a]", "^$", "a+b", "#", "\x100", "\x1000", "-", "--", "/*", "*/", " ", "\t",
    "\v", "\xa0", "\u3000", "\ufeff", "true", "TRUE", "False", " true", "null",
)  # fmt: skip
NUMERIC = (
    "0", "-0", "+0", "00", "3", "+3", "-3", " 3", "3 ", "\t3", "3L", "3l", "0x3", "0X1F", "#3", "010", "127", "128",
    "-128", "-129", "300", "32767", "32768", "2147483647", "2147483648", "-2147483648", "-2147483649",
    "9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809",
    "99999999999999999999", "3.0", "3.", ".3", ".", "+.5", "-.5", "1e1", "1E+1", "1e", "1e+", "e1", "1e400", "1e-400",
    "1.1", "0.1", "3d", "3D", "3f", "3.0F", "3dd", "3.0 d", "NaN", "nan", "+NaN", "-NaN", "NaNd", "Infinity",
    "-Infinity", "+Infinity", "infinity", "Inf", "0x1p3", "0x1.8p1", "0x.8p0", "0x1.p0", "0x1", "0xp1", "0x1p",
    "0x1p3d", "0X1P-3F", "1_000", "1,000", "16777217", "9007199254740993", "1.00000017881393432617187499",
    "1.00000017881393421514957253748434595763683319091796875001", "4.9e-324", "2.4703282292062328e-324",
    "1.7976931348623159e308", "3.4028236e38", "1.4e-45", "7.0e-46", "--3", "+-3", "3-", "\u06633", "-\uff13", *DIGITS,
)  # fmt: skip
INTEGERS = (
    "0", "1", "3", "7", "127", "128", "300", "32767", "32768", "65536", "2147483647", "2147483648", "4294967295",
    "4294967296", "16777216", "16777217", "9007199254740992", "9007199254740993", "9223372036854775807",
    "9223372036854775808", "9223372036854775809", "18446744073709551615", "18446744073709551616",
    "18446744073709551617", "18446744071562067967", "18446744071562067968", "36893488147419103235",
    "36893488149566586880", "340282366920938463463374607431768211459", "1" + "0" * 40, "3L", "3l", "2147483648L",
    "9223372036854775808L", "18446744073709551617l",
)  # fmt: skip
HEX_OCTAL = (
    "0x0", "0xF", "0Xff", "0x7FFFFFFF", "0x80000000", "0xFFFFFFFF", "0x7FFFFFFFFFFFFFFF", "0x8000000000000000",
    "0xFFFFFFFFFFFFFFFF", "0x00000000000000000003", "00", "01", "017", "0777", "08", "018", "0L", "0x3L", "0xG", "0x",
    "037777777777", "0777777777777777777777", "01000000000000000000000", "00000000000000000000000003",
)  # fmt: skip
REALS = (
    "0.0", ".0", "0.", "0e0", "1.5", "0.1", "3.0", "3.", ".5", "5.E1", "1e1", "1E-1", "1e+2", "08.5", "09e1", "1e400",
    "1e-400", "4.9e-324", "2e-324", "1.7976931348623157e308", "1.7976931348623159e308", "16777216.0", "16777217.0",
    "9007199254740993.0", "9223372036854775807.0", "9223372036854775808.0", "2147483647.0", "1.1", "1e23", "1.5f",
    "1.5d", "1e", "1e+", "1.2.3", "3.e", "100000000000000000000000.0", "1e7", "0.001", "0.0001",
    "123456789012345678901234567890.123456789e-10", "2.2250738585072012e-308", "3.4028235677973366e38",
)  # fmt: skip
BLANKS = (
    " ", " ", " ", "  ", "\t", "\n", "\r", "\f", "\r\n", "/**/", "/***/", "/* x */", "/*'*/", "--\n", "-- '\r",
    "--x\r\n", "",
)  # fmt: skip
WRONG_BLANKS = ("\v", "\xa0", "\0", "\ufeff", "\u3000", "/*/", "/* ", "--", "--x", "\x85", "\x1c")
RESERVED = (
    "NOT", "AND", "OR", "BETWEEN", "IN", "IS", "TRUE", "FALSE", "NULL", "LIKE", "ESCAPE", "XPATH", "XQUERY", "CONTAINS",
    "STARTSWITH", "ENDSWITH",
)  # fmt: skip
PSEUDO = (
    "MAKELIST", "inlist", "nan", "Infinity", "date", "ID", "$", "_", "$1", "a$", "x1", "now", "JMSType", "JMSPriority",
    "NULLS", "TRUEE", "is_null", "e1", "L", "e", "E5", "\u017fn", "\u0130s", "l\u0131ke", *RESERVED,
)  # fmt: skip
REGEXES = (
    "a", "^a", "a$", "^$", "", ".", "a.c", "(?s).", "[a-c]", "[^a]", "[a-z&&[^b]]", "\\d", "\\w", "\\s", "\\D+",
    "\\b", "a|b", "(a)(b)?", "(?i)A", "(?i)\u017f", "(?i)k", "\\p{L}", "\\p{Lu}", "\\p{Alpha}", "\\P{L}", "a{2}",
    "a{,2}", "a{1,}", "a*+", "a++b", "(?>a|ab)c", "(?=a)", "(?!a)", "(?<=a)b", "(?<!a)b", "\\Qa.c\\E", "\\Q", "\\x41",
    "\\u0041", "\\07", "\\0", "\\e", "\\cA", "[", "(", ")", "]", "}", "{", "*", "a**", "\\", "\\y", "[z-a]", "[]",
    "[]a]", "[^]", "[a&&b]", "[a-]", "[-a]", "[\\d-x]", "(?<n>a)\\k<n>", "\\1", "(a)\\1", "\\2(a)", "(?x) a",
    "(?m)^a$", "\\R", "\\h", "\\v", "\\z", "\\Z", "\\A", "\\G", "\\X", "[[:alpha:]]", "\ud83d", "\ude00",
    "\ud83d\ude00", "[\ud83d\ude00]", "[^\ud83d]", ".{1}", "..", "(|a)", "(a|)", "(a?)*", "(?:a*)*", "a?b??", "\\.",
    "-", "#", "(?i)\xe9", "(?u)a", "\\p{javaLowerCase}", "\\p{IsLatin}", "\\p{InGreek}", "\\N", "[a-c[x-z]]",
    "[^a-c[x-z]]", "[a-z&&]", "[&&a]", "[a&&&b]", "[a&b]", "\\x{41}", "\\x{}", "(?<1>a)", "(?P<n>a)", "(?#c)", "(?",
    "(?)", "(?-i)a", "(?i-s:A)b", "x{0}", "x{2,1}", "x{99999999999}", "\\p", "\\pL", "\\p{", "\\p{}", "\\t", "\\ ",
    "{2}", "(?i){2}a", "a|{0}", "[\\v-a]", "[\\v-\\d]", "[\\n-\\v]", "\\R{1,2}\\n", "\\Q\\E+", "a\\Q\\E+",
)  # fmt: skip
REPLACEMENTS = (
    "", "x", "$0", "$1", "$2", "$", "\\", "\\$", "\\\\", "${n}", "${}", "$10", "$a", "\ud83d", "\ude00", "$1$1", "a$",
)  # fmt: skip
# XPath without what docs/selectors.md leaves to libxml2.
STEPS = (
    "a", "b", "*", "@x", "@*", ".", "..", "text()", "node()", "comment()", "processing-instruction()",
    "processing-instruction('p')", "self::a", "child::*", "descendant::b", "ancestor::a", "following-sibling::b",
    "preceding::*", "parent::node()", "x:a", "x:*", "attribute::x", "descendant-or-self::node()", "@xml:lang",
)  # fmt: skip
CALLS = (
    "count({})", "not({})", "string({})", "number({})", "boolean({})", "sum({})", "name({})", "local-name({})",
    "namespace-uri({})", "normalize-space({})", "string-length({})", "floor({})", "round({})", "ceiling({})",
    "starts-with({}, '1')", "contains({}, '')", "substring({}, 1, 1)", "substring-after({}, 'a')",
    "translate({}, '1', '')", "concat({}, '')", "lang('en')", "id('1')", "true()", "false()", "string()", "name()",
    "number()", "normalize-space()", "string-length()", "local-name()", "count()", "not()", "x:f({})",
    "$v", "1 div 0", "0 div 0", "-{}", "- {}", "--{}", "- -{}", "-{} != 1", "1 - -{}", "1-{}", "1.5-{}", "{} -1",
    "{} mod 2", "{} div 2", "2div 1", "'a'[1]", "1/{}", "{}/.-1", "{} or.5", "'a'", '"it\'s"', "''", "1", "0", "0.5",
    ".5", "1.", "-0", "NaN",
    "substring('12345', 1.5, 2.6)", "round(-0.5)", "string(1 div 3)", "string(1000000000000000000000)",
    "string(0.0000001)",
)  # fmt: skip
COUNTED = ("1", "1.5", "0.5", "(1.9)", "last()", "last() div 2", "count(*) + .5", "position() mod 2", "-1")
# What docs/selectors.md leaves to libxml2 and these would make.
LEFT = re.compile(r"(?:name|namespace-uri)\(\.?//(?:x:|processing)|//.*\[-?(?:ceiling|floor|number|round|sum)\(")
BODIES = (
    "", "<a/>", "<a><b>1</b></a>", "<a x='1'/>", "not xml", "<!DOCTYPE a><a/>", "<q/>", "<x:a xmlns:x='u'/>",
    "<a><!-- c -->t</a>", "<a><!--\U0001f600--></a>", "<?xml version='1.0'?><a/>", " <?xml version='1.0'?><a/>",
    "\ufeff<a/>", "<?xml version='1.0' encoding='UTF-16'?><a/>", "<?xml version='1.0' encoding='nonsense'?><a/>",
    "<?xml version='2.0'?><a/>", "<?p q?><a/><!-- x -->", "<a><b x='1'/><b x='2'>2</b>t<b/></a>",
    "<a>1<!-- c -->2</a>", "<a>a<![CDATA[<b>]]></a>", "<a>1<![CDATA[2]]>3</a>", "<a>&amp;&lt;&#49;</a>",
    "<a>&nbsp;</a>", "<a>&#0;</a>", "<a>\x01</a>", "<a>\ud83d</a>", "<a x='1' x='2'/>", "<a", "<a></b>", "<a/><a/>",
    "<a/>x", "<x:a/>", "<a xmlns=''/>", "<a xmlns='u'><b/></a>",
    "<a xmlns:xml='http://www.w3.org/XML/1998/namespace' xml:lang='en'/>", "<a xml:lang='en-US'><b/></a>",
    "<a xmlns:x=''/>", "<a xmlns:xmlns='u'/>", "<a x:y='1' z:y='1' xmlns:x='u' xmlns:z='u'/>", "<\xe9/>", "<a:b:c/>",
    "<a x='<'/>", "<a x='&#10; 1'/>", "<a x=' \n1\t'/>", "<a>\r\n1\r</a>", "<a>]]></a>", "<a><?xml p?></a>",
    "<?xml version='1.0' standalone='maybe'?><a/>", "<a>\ufffe</a>", "<a >1</a >", "<a id='1'/>",
    "<a><a><a>1</a></a></a>", "<a>NaN</a>", "<a> 1 </a>", "<a>-1.50</a>", "<a>+1</a>", "<1a/>",
    "<a><b>a</b><b>1</b></a>",
)  # fmt: skip
WRONG_PATHS = (
    "", "[", "//", "a b", "(", "a)] | //b[(a", "a]", "1 +", "@", "*[", "a//", "/..", "{a}", "a|", "!a", "\0", "\ud83d",
    "\xe9", "1e3",
)  # fmt: skip
FRAGMENTS = (
    "(", ")", ",", "=", "<>", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "'", "''", '"', "--", "/*", "*/", "\n",
    ".", "!=", "==", ";", "||", "a", "'a'", "('a')", "1", "0", "0x1", ".5", "5.", "e1", "L", "\xe9", "\ud83d", "\0",
    "IS NULL", "IS NOT NULL", "NOT IN ('a')", "LIKE 'a'", "ESCAPE '\\'", "BETWEEN 1 AND 2", "NOT", "TRUE", "NULL",
    "convert_string_expressions:", "INLIST(", "MAKELIST(1", "F(", "XPATH '//a'", "#", "\\", "?", ":", "@", "[", "{",
    "&", "^", "~", "\t",
)  # fmt: skip


def double_bits(value: float) -> int:
    return int(struct.unpack("<q", struct.pack("<d", value))[0])


SPECIAL = (
    0.0, -0.0, 1.0, 1.5, 3.0, -3.0, 0.1, 1e1, 1e23, 1e7, 1e-3, 5e-324, -5e-324, 2.2250738585072014e-308, 2.0**24,
    2.0**24+1, 2.0**31, 2.0**53, 2.0**63, -(2.0**63), 1.7976931348623157e308, float("nan"), float("inf"),
    -float("inf"), 127.0, 128.0, 300.0,
)  # fmt: skip
TYPES: dict[str, Any] = {
    "byte": ((-128, -1, 0, 1, 3, 7, 127), numpy.int8),
    "short": ((-32768, -1, 0, 1, 3, 128, 300, 32767), numpy.int16),
    "int": ((-(2**31), -1, 0, 1, 3, 15, 300, 16777217, 2**31 - 1), int),
    "long": ((-(2**63), -(2**31) - 1, -1, 0, 3, 2**31, 2**32 - 1, 2**53 + 1, 2**63 - 1), numpy.int64),
    "float": (
        tuple(float(numpy.float32(value)) for value in SPECIAL if abs(value) < 3e38 or abs(value) > 1e308),
        numpy.float32,
    ),
    "double": (SPECIAL, float),
    "boolean": ((False, True), bool),
    "string": (ODD + NUMERIC, str),
    "char": (("a", "3", "\xe9", "\ud83d", "%", "\0"), pyengine.Char),
}


class Corners:
    """Selectors and messages of one dialect; ``seed`` decides everything."""

    def __init__(self, seed: int, dialect: Literal["activemq", "rocketmq"]) -> None:
        self.random = random.Random(f"{seed} {dialect}")
        self.dialect: Literal["activemq", "rocketmq"] = dialect
        self.activemq = dialect == "activemq"

    # Messages: of each name either one type, so that they make columns too, or any.

    def typed(self, java_type: str) -> dict[str, Any]:
        if java_type == "list":
            return {"t": "list", "v": [self.typed(self.one(tuple(TYPES))) for _ in range(self.random.randint(0, 3))]}
        if java_type == "map":
            return {"t": "map", "v": {"k": self.typed("string")}}
        value = self.one(TYPES[java_type][0])
        if java_type == "string" and self.chance(0.1):
            value += self.one(ODD + NUMERIC)
        elif java_type == "string" and self.chance(0.1):
            value = self.one(BLANKS) + value + self.one((" ", "\t", "\0", "\xa0"))
        return {"t": java_type, "v": value}

    def messages(self, count: int, columns: bool) -> list[dict[str, Any]]:
        kinds = (*TYPES, "string", "string") if self.activemq else ("string",)
        schema = {name: self.one(kinds) for name in NAMES}
        if columns:
            schema = {name: "string" if kind == "char" else kind for name, kind in schema.items()}
        made = []
        for _ in range(count):
            properties = {}
            for name in NAMES:
                if self.chance(0.25):
                    continue
                kind = schema[name] if columns or self.chance(0.5) else self.one(kinds)
                if not columns and self.activemq and self.chance(0.04):
                    kind = self.one(("list", "map"))
                properties[name] = self.typed(kind)
            made.append({"props": properties})
            if not columns and self.activemq and self.chance(0.3):
                made[-1]["body"] = self.one(BODIES)
        return made

    # Selectors.

    def one(self, choices: Sequence[Any]) -> Any:
        return choices[int(self.random.random() * len(choices))]

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def selector(self) -> str:
        text = self.condition(self.random.randint(0, 3))
        if self.chance(0.25):
            text = self.mutated(text)
        if self.activemq and self.chance(0.25):
            text = (
                self.one(
                    ("convert_string_expressions:",) * 8
                    + ("Convert_string_expressions:", " convert_string_expressions:")
                )
                + text
            )
        return text

    def mutated(self, text: str) -> str:
        for _ in range(self.random.randint(1, 2)):
            at = self.random.randint(0, len(text))
            cut = at + self.one((0, 0, 0, 1, 1, 2, 4))
            text = text[:at] + self.one(("", *FRAGMENTS, *FRAGMENTS, *WRONG_BLANKS, *NUMERIC, *ODD)) + text[cut:]
        return text

    def blank(self) -> str:
        return " " if self.chance(0.9) else str(self.one(WRONG_BLANKS if self.chance(0.03) else BLANKS))

    def joined(self, *parts: str) -> str:
        return "".join(part + self.blank() for part in parts[:-1]) + parts[-1]

    def word(self, word: str) -> str:
        return word if self.chance(0.8) else "".join(self.one((letter.upper(), letter.lower())) for letter in word)

    def quoted(self, text: str | None = None) -> str:
        if text is None:
            text = self.one(ODD if self.chance(0.6) else NUMERIC)
            if self.chance(0.2):
                text += self.one(ODD)
        return "'" + text.replace("'", "''") + "'"

    def condition(self, depth: int) -> str:
        kind = self.random.random()
        if depth and kind < 0.3:
            word = self.one(("AND", "OR"))
            parts = [self.bracketed(depth)]
            for _ in range(self.random.randint(1, 3)):
                parts += [self.word(word if self.chance(0.8) else self.one(("AND", "OR"))), self.bracketed(depth)]
            return self.joined(*parts)
        if depth and kind < 0.42:
            return self.joined(self.word("NOT"), self.bracketed(depth))
        if depth and kind < 0.5:
            test = self.one(
                (
                    ("IS", "NULL"),
                    ("IS", "NOT", "NULL"),
                    ("=", "TRUE"),
                    ("<>", "FALSE"),
                    ("=", self.value(1)),
                    ("<>", self.value(1)),
                )
            )
            return self.joined(self.bracketed(depth), *test)
        return self.predicate(depth)

    def bracketed(self, depth: int) -> str:
        text = self.condition(depth - 1)
        return f"({text})" if self.chance(0.75) else text

    def predicate(self, depth: int) -> str:
        negation = (self.word("NOT"),) if self.chance(0.35) else ()
        kind = self.random.random()
        if kind < 0.4:
            relation = self.one(("=", "<>", "<", "<=", ">", ">="))
            return self.joined(self.value(depth), relation, self.value(depth))
        if kind < 0.5:
            return self.joined(self.value(depth), self.word("IS"), *negation, self.word("NULL"))
        if kind < 0.62:
            low, high = self.value(depth), self.value(depth)
            return self.joined(self.value(depth), *negation, self.word("BETWEEN"), low, self.word("AND"), high)
        if kind < 0.7:
            texts = ",".join(self.quoted() for _ in range(self.one((1, 1, 2, 3, 6, 10))))
            return self.joined(
                self.name() if self.chance(0.9) else self.value(1), *negation, self.word("IN"), f"({texts})"
            )
        if not self.activemq:
            if kind < 0.92:
                word = self.one(("CONTAINS", "STARTSWITH", "ENDSWITH"))
                return self.joined(
                    self.name() if self.chance(0.8) else self.value(1), *negation, self.word(word), self.quoted()
                )
            return self.value(depth)
        if kind < 0.84:
            subject = self.name() if self.chance(0.8) else self.value(depth)
            return self.joined(subject, *negation, self.word("LIKE"), self.quoted(self.pattern()), *self.escape())
        if kind < 0.96:
            return self.call(depth)
        return self.value(depth)

    def pattern(self) -> str:
        return "".join(self.one(("%", "_", "%", *ODD)) for _ in range(self.random.randint(1, 4)))

    def escape(self) -> tuple[str, ...]:
        if self.chance(0.5):
            return ()
        sign = self.one(
            (
                "\\",
                "\\",
                "%",
                "_",
                "a",
                "'",
                "\0",
                "\x01",
                "\x0f",
                "\x10",
                "\xff",
                "\u0100",
                "\u1001",
                "\ud83d",
                "\ude00",
                "\uffff",
                "x",
                ".",
                "",
                "ab",
            )
        )
        return (self.word("ESCAPE"), self.quoted(sign))

    def argument(self, depth: int) -> str:
        text = self.value(depth)
        return text if self.chance(0.7) else f"({text})"

    def call(self, depth: int) -> str:
        kind = self.random.random()
        subject = self.one((self.name(), self.name(), self.quoted(), self.argument(1)))
        regex = self.quoted(self.one(REGEXES) if self.chance(0.6) else self.one(REGEXES) + self.one(REGEXES))
        if kind < 0.35:
            return f"REGEX({regex}, {subject})"
        if kind < 0.5:
            replaced = f"REPLACE({subject}, {regex}, {self.quoted(self.one(REPLACEMENTS))})"
            return self.joined(replaced, self.one(("=", "<>", "LIKE")), self.quoted())
        limit = self.one(("", "", f", {self.argument(1)}", ", 2", ", -1", ", 0", ", (0-1)"))
        split = f"SPLIT({subject}, {regex}{limit})"
        items = ", ".join(self.argument(depth) for _ in range(self.random.randint(1, 3)))
        items = self.one((split, f"MAKELIST({items})", self.name()))
        if kind < 0.7:
            return f"INLIST({items}, {self.argument(1)})"
        if kind < 0.8:
            return self.joined(items, self.one(("=", "<>", "<")), self.one((items, self.value(1), split)))
        if kind < 0.85:
            return self.joined("''", "+", items, "=", self.quoted())
        if kind < 0.93:
            return self.joined(self.word(self.one(("XPATH", "XPATH", "XQUERY"))), self.quoted(self.path()))
        return f"{self.one(('INLIST', 'REGEX', 'SPLIT', 'MAKELIST', 'Regex', 'F'))}({items})"

    def path(self) -> str:
        """An XPath."""
        while LEFT.search(path := self.any_path()):
            pass
        return path

    def any_path(self) -> str:
        if self.chance(0.05):
            return str(self.one(WRONG_PATHS))
        steps = STEPS[:7] if self.chance(0.6) else STEPS
        path = self.one(("", "", "/", "//", ".//"))
        path += self.one(("/", "//")).join(self.one(steps) for _ in range(self.one((1, 1, 2, 3))))
        if self.chance(0.25):
            path += f"[{self.one(self.one((CALLS, STEPS, COUNTED))).replace('{}', self.one(STEPS))}]"
        if self.chance(0.1):
            path = self.one(("/", "//", "/*", "*"))
        if self.chance(0.4):
            path = self.one(CALLS).replace("{}", path)
        if self.chance(0.3):
            other = self.one(("1", "'1'", "'a'", "0", "true()", "''", "2", *STEPS, *CALLS)).replace(
                "{}", self.one(STEPS)
            )
            relation = self.one(("=", "!=", "<", ">", "<=", ">=", "or", "and", "+", "-", "*", "div", "mod"))
            before, behind = (" ", " ") if relation.isalpha() else (self.one((" ", "")), self.one((" ", "")))
            path = f"{path}{before}{relation}{behind}{other}"
        return path

    def name(self) -> str:
        return str(self.one(NAMES if self.chance(0.95) else PSEUDO))

    def number(self) -> str:
        kind = self.random.random()
        if kind < 0.45:
            return str(self.one(INTEGERS))
        if kind < 0.6:
            return str(self.one(HEX_OCTAL))
        if kind < 0.95:
            return str(self.one(REALS))
        return f"{self.random.getrandbits(self.one((8, 31, 32, 63, 64, 65, 96)))}{self.one(('', '', 'L', '.5', 'e3'))}"

    def value(self, depth: int) -> str:
        kind = self.random.random()
        if kind < 0.45:
            return self.name()
        if kind < 0.68:
            return self.number()
        if kind < 0.74:
            return self.quoted()
        if kind < 0.8:
            sign = self.one(("-", "-", "+", "- -", "-+", "- - -", "NOT "))
            return sign + str(self.one((self.name(), self.number(), self.quoted())))
        if kind < 0.83:
            return self.word(self.one(("TRUE", "FALSE", "NULL")))
        if depth and kind < 0.94 and self.activemq:
            made = self.joined(self.value(depth - 1), self.one("+-*/%"), self.value(depth - 1))
            return made if self.chance(0.5) else f"({made})"
        if depth and kind < 0.97:
            return f"({self.condition(depth - 1)})"
        return self.name()
