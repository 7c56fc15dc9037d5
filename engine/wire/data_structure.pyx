"""See data_structure.pxd."""

VERSIONS = range(9, 13)

cdef dict FORMS = {"boolean": BOOLEAN, "byte": BYTE, "int": INT, "long": LONG, "string": STRING, "bytes": BYTES,
                   "bytes8": MAGIC, "throwable": THROWABLE}
cdef dict DEFAULTS = {BOOLEAN: False, BYTE: 0, INT: 0, LONG: 0}


cdef class StructureType:
    """A kind of structure: called with its fields by name it makes one; what is not named is null, 0 or False.

    name: as ActiveMQ's class. number: its type byte, -1 if only other types extend it. fields: their names, those of
    the type that it extends first. base: that type. since: the first version that knows it. marshal_aware: nested in
    another structure it has one more bit (command.MarshallAware).
    """

    def __call__(self, **fields):
        cdef list values = self.defaults.copy()
        for name, value in fields.items():
            if name not in self.places:
                raise TypeError(f"{self.name} has no field {name}: it has {', '.join(self.fields)}")
            values[self.places[name]] = value
        return structure_of(self, values)

    def forms(self, int version):
        """The fields that a version has, in the order of its wire: (name, form as the table says it) of each."""
        return [(name, form) for name, form in self.written if in_version(form, version)]

    def extends(self, StructureType other not None):
        """Whether it is the other type, or extends it."""
        cdef StructureType each = self
        while each is not None:
            if each is other:
                return True
            each = each.base
        return False

    def __repr__(self):
        return f"<StructureType {self.name}>"

    def __reduce__(self):
        raise TypeError("a StructureType is a row of a table, and is not pickled")


cdef DataStructure structure_of(StructureType kind, list values):
    cdef DataStructure structure = DataStructure.__new__(DataStructure)
    structure.kind = kind
    structure.values = values
    structure.known_hash = -1
    return structure


cdef class DataStructure:
    """One structure. kind: its type. Its fields are attributes, under the names of the table; they do not change, and
    two structures with equal fields are equal."""

    def __init__(self):
        raise TypeError("a StructureType makes its structures: call it with their fields")

    def __getattr__(self, str name):
        if self.kind is None or name not in self.kind.places:
            raise AttributeError(f"{'DataStructure' if self.kind is None else self.kind.name} has no field {name}")
        return self.values[self.kind.places[name]]

    def replace(self, **fields):
        """The same structure with other values for these fields."""
        return self.kind(**{**dict(zip(self.kind.fields, self.values)), **fields})

    def __eq__(self, other):
        if not isinstance(other, DataStructure):
            return NotImplemented
        cdef DataStructure that = other
        return self is that or (self.kind is that.kind and self.values == that.values)

    def __hash__(self):
        if self.known_hash == -1:
            self.known_hash = hash((self.kind.name, *map(hashable, self.values)))
        return self.known_hash

    def __repr__(self):
        said = ", ".join(f"{name}={value!r}" for name, value, usual in
                         zip(self.kind.fields, self.values, self.kind.defaults) if value != usual)
        return f"{self.kind.name}({said})"

    def __reduce__(self):
        raise TypeError("a DataStructure is pickled as its bytes: OpenWireWriter.write")


def hashable(value):
    return tuple(value) if isinstance(value, list) else value


cdef class JavaThrowable:
    """An exception as OpenWire tells it. class_name: of its Java class. stack: (class, method, file, line) of each
    element. cause: the exception that led to it, None if there is none."""

    def __init__(self, str class_name, str message, tuple stack=(), JavaThrowable cause=None):
        self.class_name = class_name
        self.message = message
        self.stack = stack
        self.cause = cause

    cdef tuple state(self):
        return (self.class_name, self.message, self.stack, self.cause)

    def __eq__(self, other):
        if not isinstance(other, JavaThrowable):
            return NotImplemented
        return self.state() == (<JavaThrowable> other).state()

    def __hash__(self):
        return hash(self.state())

    def __repr__(self):
        return f"JavaThrowable({self.class_name!r}, {self.message!r}, {self.stack!r}, {self.cause!r})"

    def __reduce__(self):
        return JavaThrowable, self.state()


def structure_types(str table not None):
    """The types of a table, by name.

    A line is ``NAME NUMBER BASE``, with ``@VERSION`` behind a number that older versions do not know and ``-`` for a
    type that is only extended or extends none, and then, behind ``|``, its fields in the order of the wire:
    ``name:form``, with ``*`` if it goes through the cache, ``[]`` if it is an array, ``@VERSION`` if older versions do
    not have it and ``@-VERSION`` if newer ones do not; a field that moved stands at both places. An indented line goes
    on with the one before it.
    """
    cdef dict found = {}, written = {}
    cdef StructureType kind
    for line in table.replace("\n    ", " ").strip().splitlines():
        head, _, tail = line.partition(" | ")
        name, number, base = head.split()
        kind = StructureType.__new__(StructureType)
        kind.name = name
        number, _, since = number.partition("@")
        kind.number = -1 if number == "-" else int(number)
        kind.since = int(since or VERSIONS[0])
        kind.base = None if base == "-" else found[base]
        fields = [*(() if base == "-" else written[base]), *tail.split()]
        written[name] = fields
        kind.written = [tuple(field.split(":")) for field in fields]
        kind.fields = tuple(dict.fromkeys(field.partition(":")[0] for field in fields))
        kind.places = {field: place for place, field in enumerate(kind.fields)}
        kind.marshal_aware = name == "WireFormatInfo" or (kind.base is not None and (
            kind.base.name == "Message" or kind.base.marshal_aware))
        found[name] = kind
    for name, kind in found.items():
        kind.is_destination = kind.extends(found["ActiveMQDestination"])
        kind.programs = [None] * VERSIONS.stop
        for version in VERSIONS:
            if version >= kind.since:
                kind.programs[version] = program_of(kind, written[name], version, found)
        forms = dict(field.split(":") for field in written[name])
        kind.defaults = [default_of(forms[field]) for field in kind.fields]
    return found


def in_version(str form, int version):
    bound = form.partition("@")[2]
    return not bound or (version <= -int(bound) if bound.startswith("-") else version >= int(bound))


def default_of(str form):
    return DEFAULTS.get(FORMS.get(form.partition("@")[0]))


cdef Program program_of(StructureType kind, list fields, int version, dict types):
    cdef Program program = Program.__new__(Program)
    cdef list forms = [], places = []
    cdef StructureType each
    program.allowed = []
    for field in fields:
        name, _, said = field.partition(":")
        if not in_version(said, version):
            continue
        said = said.partition("@")[0]
        bare = said.rstrip("*[]")
        allowed = None
        if bare in FORMS:
            form = FORMS[bare]
        else:
            form = ARRAY if said.endswith("[]") else CACHED if said.endswith("*") else NESTED
            numbers = {each.number for each in types.values() if fits(each, bare, types) and version >= each.since}
            allowed = bytes(number in numbers for number in range(256))
        forms.append(form)
        places.append(kind.places[name])
        program.allowed.append(allowed)
    program.forms, program.places = bytes(forms), bytes(places)
    return program


def fits(StructureType kind, str name, dict types):
    # A BooleanExpression on the wire is a network bridge's filter; others stay within a broker.
    if name == "BooleanExpression":
        return kind.name == "NetworkBridgeFilter"
    return kind.number > 0 and (name == "DataStructure" or kind.extends(types[name]))
