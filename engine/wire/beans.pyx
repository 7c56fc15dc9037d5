"""Objects of Java classes as fastjson 1.2.83 writes and reads them; see beans.pxd."""

import re
from binascii import Error as Base64Error, a2b_base64, b2a_base64
from decimal import Decimal
from json import JSONDecodeError, JSONDecoder

from pyengine._engine.java.numbers import double_text
from pyengine._engine.java.utf8 cimport encode_utf8
from pyengine._engine.wire.fastjson cimport quoted
from pyengine._engine.wire.fastjson import INT32, INT64, loads, text_of, whole_of
from pyengine.errors import InvalidSourceError, ProtocolError

_SCALARS = {
    "String": (Kind.TEXT, True), "int": (Kind.INT, False), "Integer": (Kind.INT, True), "long": (Kind.LONG, False),
    "Long": (Kind.LONG, True), "double": (Kind.DOUBLE, False), "boolean": (Kind.BOOLEAN, False),
    "Boolean": (Kind.BOOLEAN, True), "bytes": (Kind.BYTES, True),
}
_PRIMITIVE = {Kind.INT: 0, Kind.LONG: 0, Kind.DOUBLE: 0.0, Kind.BOOLEAN: False}
_GENERICS = {"List": Kind.LIST, "Set": Kind.SET, "Map": Kind.MAP}
_TRUE = ("true", "1", "y", "t")
_FALSE = ("false", "0", "n", "f")


def _refused(text):
    raise ValueError(text)


# Most documents are plain JSON, which the standard library reads in a tenth of the time.
_PLAIN = JSONDecoder(parse_float=Decimal, parse_constant=_refused, strict=False)


cdef class Beans:
    """Classes by their names.

    table: a class a paragraph, ``Name property:type=default ...``; a line that begins with a blank goes on. A property
    without a type is a String. ``>`` before it: only written; ``<``: only read. Types: String, int, Integer, long,
    Long, double, boolean, Boolean, bytes (byte[], in base64), a class or enum, List<T>, Set<T>, Map<K,V>. Defaults: of
    a property that is absent; ``new`` is a fresh object. enums: ``Name CONSTANT ...``, in order.
    """

    def __init__(self, str table not None, str enums not None=""):
        cdef Bean bean
        cdef Property each
        self.classes, self.enums = {}, {}
        for words in paragraphs(enums):
            self.enums[words[0]] = tuple(words[1:])
        found = paragraphs(table)
        for words in found:
            self.classes[words[0]] = Bean.__new__(Bean)
        for words in found:
            bean = self.classes[words[0]]
            bean.name, bean.properties, bean.by_name, bean.by_plain_name = words[0], [], {}, {}
            for word in words[1:]:
                spelled, equals, default = word.partition("=")
                name, _, type_text = spelled.lstrip("<>").partition(":")
                each = Property.__new__(Property)
                each.name, each.spelling = name, f'"{name}":'
                each.type = self.parse(type_text or "String")
                each.written, each.read = not word.startswith("<"), not word.startswith(">")
                each.default = default_of(each.type, default) if equals else _PRIMITIVE.get(each.type.kind) \
                    if not each.type.nullable else None
                bean.properties.append(each)
                if each.read:
                    bean.by_name[name] = each
                    bean.by_plain_name[plain(name)] = each

    def __reduce__(self):
        raise TypeError("a table of classes cannot be pickled: import it")

    def names(self):
        """The names of the classes."""
        return list(self.classes)

    cdef Type parse(self, str text):
        cdef Type parsed = Type.__new__(Type)
        if text in _SCALARS:
            parsed.kind, parsed.nullable = _SCALARS[text]
            return parsed
        parsed.nullable = True
        if text in self.enums:
            parsed.kind, parsed.constants = Kind.ENUM, self.enums[text]
            return parsed
        if text in self.classes:
            parsed.kind, parsed.bean = Kind.BEAN, self.classes[text]
            return parsed
        outer, _, inner = text.partition("<")
        inner = inner[: len(inner) - 1]
        parsed.kind = _GENERICS[outer]
        if parsed.kind == Kind.MAP:
            key, _, inner = inner.partition(",")
            parsed.key = self.parse(key)
        parsed.item = self.parse(inner)
        return parsed

    cpdef bytes write(self, str name, dict value):
        """The bytes of an object (RemotingSerializable.encode); a property that is absent has its default, None is left
        out. Raises TypeError for a value that the property cannot have, KeyError for an unknown class.
        """
        cdef list parts = []
        write_object(parts, self.classes[name], value)
        return encode_utf8("".join(parts))

    cpdef dict read(self, str name, bytes data):
        """The object (RemotingSerializable.decode): every property that can be read, absent ones with their defaults;
        None for no bytes, ``[]`` and ``null``, as in the real one.

        Raises ProtocolError for what cannot be read, KeyError for an unknown class.
        """
        cdef Bean bean = self.classes[name]
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise ProtocolError(f"{name}: not UTF-8 at byte {error.start}") from None
        if not text:
            return None
        try:
            found = document(text, name)
            return read_value(bean_type(bean), found, name)
        except InvalidSourceError as error:
            raise ProtocolError(str(error)) from None


cdef object document(str text, str name):
    try:
        found, end = _PLAIN.raw_decode(text)
        if end == len(text):
            return found
    except (JSONDecodeError, RecursionError, ValueError, ArithmeticError):
        pass
    return loads(text, name)


cdef Type bean_type(Bean bean):
    cdef Type type = Type.__new__(Type)
    type.kind, type.nullable, type.bean = Kind.BEAN, True, bean
    return type


def paragraphs(str text):
    """Words of each line together with the indented ones behind it."""
    return [paragraph.split() for paragraph in re.split(r"\n(?!\s)", text.strip()) if paragraph]


cdef str plain(str name):
    """A name as fastjson compares it where no property is spelled so."""
    return name.replace("_", "").replace("-", "").lower()


cdef object default_of(Type type, str text):
    if text == "new":
        return type.bean
    if text == "{}":
        return {}
    if text.startswith("["):
        return [int(each) for each in text.strip("[]").split(",") if each]
    if type.kind in (Kind.INT, Kind.LONG):
        return int(text)
    return text == "true" if type.kind == Kind.BOOLEAN else text


cdef object default_value(Property property):
    if isinstance(property.default, Bean):
        return (<Bean>property.default).fresh()
    return property.default.copy() if isinstance(property.default, (list, dict)) else property.default


cdef class Bean:
    cdef dict fresh(self):
        cdef Property each
        return {each.name: default_value(each) for each in self.properties if each.read}

    cdef dict read_object(self, dict found, str where):
        cdef dict properties = self.fresh()
        cdef Property property
        for name, value in found.items():
            property = self.by_name.get(name)
            if property is None:
                if not isinstance(name, str):
                    raise ProtocolError(f"{where}: {name!r} is not the name of a property")
                if name == "@type":
                    raise ProtocolError(f"{where}: type not match: @type is refused")
                property = self.by_plain_name.get(plain(name))
                if property is None and name.startswith("is"):
                    property = self.by_plain_name.get(plain(name[2:]))
                    if property is not None and property.type.kind != Kind.BOOLEAN:
                        continue
                if property is None:
                    continue
            if property.type.kind == Kind.TEXT and type(value) is str:
                properties[property.name] = value
                continue
            if property.type.kind == Kind.INT and type(value) is int and -INT32 <= value < INT32:
                properties[property.name] = value
                continue
            value = read_value(property.type, value, f"{where}.{property.name}")
            if value is not None or property.type.nullable:
                properties[property.name] = value
        return properties


cdef object read_value(Type type, value, str where):
    cdef list items
    cdef dict pairs
    if value is None:
        return None
    if type.kind == Kind.TEXT:
        return text_of(value)
    elif type.kind == Kind.INT or type.kind == Kind.LONG:
        number = whole_of(value, INT32 if type.kind == Kind.INT else INT64, where, "", absent=-INT64 - 1)
        return None if number == -INT64 - 1 else number
    elif type.kind == Kind.BEAN:
        if isinstance(value, tuple):
            value = dict(value)
        if isinstance(value, dict):
            return type.bean.read_object(value, where)
        if value == "" or value == []:
            return None
    elif type.kind == Kind.LIST or type.kind == Kind.SET:
        if isinstance(value, list):
            items = [read_value(type.item, each, where) for each in value]
            return items if type.kind == Kind.LIST else distinct(items)
    elif type.kind == Kind.MAP:
        if isinstance(value, dict):
            if type.key.kind == Kind.TEXT and type.item.kind == Kind.TEXT and all_texts(value):
                return value
            pairs = {}
            for name, each in value.items():
                pairs[read_key(type.key, name, where)] = read_value(type.item, each, where)
            return pairs
    elif type.kind == Kind.BOOLEAN:
        if isinstance(value, (bool, Decimal)) or isinstance(value, int) and -INT32 <= value < INT32:
            return value == 1
        if isinstance(value, str):
            if value in ("", "null", "NULL"):
                return None
            if value.lower() in _TRUE or value.lower() in _FALSE:
                return value.lower() in _TRUE
    elif type.kind == Kind.DOUBLE:
        if isinstance(value, (int, Decimal)):
            try:
                return float(value)
            except OverflowError:
                return float("inf") if value > 0 else float("-inf")
        if isinstance(value, str):
            if value in ("", "null", "NULL"):
                return None
            try:
                return float(value.replace(",", ""))
            except ValueError:
                pass
    elif type.kind == Kind.ENUM:
        return read_enum(type, value, where)
    elif isinstance(value, str):
        try:
            return a2b_base64(value)
        except Base64Error as error:
            raise ProtocolError(f"{where}: {error}") from None
    raise ProtocolError(f"{where} cannot be {str(value)[:60]!r}")


cdef bint all_texts(dict found):
    """True for a map of texts to texts."""
    for name, value in found.items():
        if type(name) is not str or type(value) is not str:
            return False
    return True


cdef object read_enum(Type type, value, str where):
    if isinstance(value, str):
        if value in type.constants:
            return value
        for constant in type.constants:
            if constant.lower() == value.lower():
                return constant
        return None
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < len(type.constants):
        return type.constants[value]
    raise ProtocolError(f"{where} cannot be {str(value)[:60]!r}: one of {', '.join(type.constants)} is expected")


cdef object read_key(Type type, name, str where):
    cdef dict found
    if type.kind == Kind.BEAN:
        if not isinstance(name, tuple):
            raise ProtocolError(f"{where}: the key {str(name)[:60]!r} is not an object")
        found = type.bean.read_object(dict(name), where)
        return tuple(sorted(found.items()))
    return read_value(type, name, where)


cdef list distinct(list items):
    """A set's elements, in the order of their coming."""
    cdef dict by_value = {}
    for each in items:
        by_value.setdefault(repr(each), each)
    return list(by_value.values())


cdef int write_object(list parts, Bean bean, dict value) except -1:
    cdef Property property
    cdef str comma = "{"
    for property in bean.properties:
        if not property.written:
            continue
        each = value.get(property.name, parts)
        if each is parts:
            each = default_value(property)
        if each is None:
            continue
        parts.append(comma)
        parts.append(property.spelling)
        try:
            write_value(parts, property.type, each)
        except TypeError as error:
            raise TypeError(f"{bean.name}.{property.name} cannot be {str(each)[:60]!r}") from error
        comma = ","
    parts.append("{}" if comma == "{" else "}")
    return 0


cdef int write_value(list parts, Type type, value) except -1:
    cdef str comma
    if value is None:
        parts.append("null")
    elif type.kind == Kind.TEXT or type.kind == Kind.ENUM:
        parts.append(quoted(value))
    elif type.kind == Kind.INT or type.kind == Kind.LONG:
        parts.append(str(value.__index__() if not isinstance(value, int) else int(value)))
    elif type.kind == Kind.BOOLEAN:
        parts.append("true" if value else "false")
    elif type.kind == Kind.DOUBLE:
        text = double_text(value)
        parts.append("null" if text in ("NaN", "Infinity", "-Infinity") else text)
    elif type.kind == Kind.BEAN:
        write_object(parts, type.bean, dict(value))
    elif type.kind == Kind.MAP:
        comma = "{"
        for name, each in value.items():
            if each is not None:
                parts.append(comma)
                write_value(parts, type.key, name)
                parts.append(":")
                write_value(parts, type.item, each)
                comma = ","
        parts.append("{}" if comma == "{" else "}")
    elif type.kind == Kind.BYTES:
        parts.append(f'"{b2a_base64(value, newline=False).decode()}"')
    else:
        comma = "["
        for each in value:
            parts.append(comma)
            write_value(parts, type.item, each)
            comma = ","
        parts.append("[]" if comma == "[" else "]")
    return 0
