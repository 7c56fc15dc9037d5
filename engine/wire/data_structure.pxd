"""data_structure: what OpenWire's frames hold: commands, ids, destinations (command.DataStructure), by one table.

A ``StructureType`` is a row of the table of openwire_types; its ``programs`` say for a version which fields follow one
another on the wire and how. A ``DataStructure`` is a list of values in the order of the type's fields, the same for
every version, and does not change.
"""


cdef enum Form:                 # how a field is written
    BOOLEAN, BYTE, INT, LONG, STRING, BYTES, MAGIC, NESTED, CACHED, ARRAY, THROWABLE


cdef class Program:
    cdef bytes forms            # a Form for each field of the version
    cdef bytes places           # its index in the values of a structure
    cdef list allowed           # of a field that holds structures: 256 bytes, 1 for each type byte that it may hold


cdef class StructureType:
    cdef readonly str name
    cdef readonly int number    # the type byte; -1: only other types extend it
    cdef readonly tuple fields
    cdef readonly StructureType base
    cdef readonly int since     # the first version that knows it
    cdef readonly bint marshal_aware
    cdef bint is_destination
    cdef dict places            # field -> index
    cdef list defaults
    cdef list written           # (field, form) as the table has them
    cdef list programs          # by version


cdef class DataStructure:
    cdef readonly StructureType kind
    cdef list values
    cdef Py_hash_t known_hash   # -1: not known yet
    cdef public object meaning  # what a connection read it as: found again with a cached structure, no part of it


cdef class JavaThrowable:
    cdef readonly str class_name, message
    cdef readonly tuple stack
    cdef readonly JavaThrowable cause

    cdef tuple state(self)


cdef DataStructure structure_of(StructureType kind, list values)
