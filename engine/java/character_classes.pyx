# cython: freethreading_compatible=True, boundscheck=True, wraparound=True
import unicodedata
from functools import cache

cdef int LAST = 0x10FFFF


cdef tuple joined(list ranges):
    """The set of these ranges, which may be in any order and overlap."""
    cdef list found = []
    for first, last in sorted(ranges):
        if found and first <= found[-1][1] + 1:
            if last > found[-1][1]:
                found[-1] = (found[-1][0], last)
        else:
            found.append((first, last))
    return tuple(found)


cdef tuple union(tuple left, tuple right):
    return joined([*left, *right])


cdef tuple complement(tuple ranges):
    cdef list found = []
    start = 0
    for first, last in ranges:
        if first > start:
            found.append((start, first - 1))
        start = last + 1
    if start <= LAST:
        found.append((start, LAST))
    return tuple(found)


cdef tuple intersection(tuple left, tuple right):
    return complement(union(complement(left), complement(right)))


cdef dict POSIX = {
    "ASCII": ((0, 127),),
    "Alnum": ((48, 57), (65, 90), (97, 122)),
    "Alpha": ((65, 90), (97, 122)),
    "Blank": ((9, 9), (32, 32)),
    "Cntrl": ((0, 31), (127, 127)),
    "Digit": ((48, 57),),
    "Graph": ((33, 126),),
    "Lower": ((97, 122),),
    "Print": ((32, 126),),
    "Punct": ((33, 47), (58, 64), (91, 96), (123, 126)),
    "Space": ((9, 13), (32, 32)),
    "Upper": ((65, 90),),
    "XDigit": ((48, 57), (65, 70), (97, 102)),
    "L1": ((0, 255),),
    "all": ((0, LAST),),
}
cdef tuple CATEGORIES = (
    "Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "No", "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po",
    "Sm", "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Cs", "Co", "Cn",
)


@cache
def categories():
    """general category -> the set of its code points, from the tables of the running Python."""
    cdef dict found = {name: [] for name in CATEGORIES}
    cdef int start = 0
    cdef int point
    cdef str before = unicodedata.category("\0")
    cdef str now
    category = unicodedata.category
    for point in range(1, LAST + 1):
        now = category(chr(point))
        if now != before:
            found[before].append((start, point - 1))
            start = point
            before = now
    found[before].append((start, LAST))
    return {name: tuple(ranges) for name, ranges in found.items()}


cdef tuple named_class(str name, bint ignore_case):
    cdef list parts
    if name.startswith("Is"):
        name = name[2:]
        if name not in CATEGORIES and name not in ("L", "M", "N", "Z", "C", "P", "S", "LC"):
            return None
    elif name.startswith("gc=") or name.startswith("general_category="):
        name = name.partition("=")[2]
    if ignore_case and name in ("Lower", "Upper"):
        return POSIX["Alpha"]
    if name in POSIX:
        return POSIX[name]
    if ignore_case and name in ("Lu", "Ll", "Lt"):
        name = "LC"
    if name == "LC":
        parts = ["Lu", "Ll", "Lt"]
    elif name == "LD":
        parts = ["Lu", "Ll", "Lt", "Lm", "Lo", "Nd"]
    elif name in CATEGORIES:
        parts = [name]
    elif len(name) == 1 and name in "LMNZCPS":
        parts = [one for one in CATEGORIES if one[0] == name]
    else:
        return None
    return joined([pair for part in parts for pair in categories()[part]])


cdef tuple with_cases(tuple ranges, bint unicode):
    cdef list found = list(ranges)
    cdef int point
    for first, last in ranges:
        for point in range(max(first, 65), min(last, 90) + 1):
            found.append((point + 32, point + 32))
        for point in range(max(first, 97), min(last, 122) + 1):
            found.append((point - 32, point - 32))
    return joined(found)


cdef str class_text(tuple ranges):
    cdef list parts = []
    if not ranges:
        return "(?!)"
    if ranges == ((0, LAST),):
        return "(?s:.)"
    if len(ranges) > 1 and ranges[0][0] == 0 and ranges[-1][1] == LAST:
        return "[^" + class_text(complement(ranges))[1:]
    for first, last in ranges:
        parts.append(f"\\U{first:08x}" if first == last else f"\\U{first:08x}-\\U{last:08x}")
    return "[" + "".join(parts) + "]"
