"""beans: objects of Java classes as fastjson writes and reads them.

A class is a table of properties in alphabetical order, the order in which fastjson writes them. A value is a dict of
property -> value; an enum constant is its name, a set a list, a byte[] bytes. A map's key that is an object is a
tuple of its (name, value) pairs in order of the names.
"""


cdef enum Kind:
    TEXT, INT, LONG, DOUBLE, BOOLEAN, BYTES, ENUM, LIST, SET, MAP, BEAN


cdef class Type:
    cdef Kind kind
    cdef bint nullable          # null is a value of it: not so for a primitive
    cdef Type key, item         # of a map; of a list, set or map
    cdef tuple constants        # of an enum
    cdef Bean bean


cdef class Property:
    cdef str name, spelling     # spelling: the name as it is written, quoted and with its colon
    cdef Type type
    cdef object default         # None, a scalar; [] or {} or Bean: a fresh one
    cdef bint written, read


cdef class Bean:
    cdef str name
    cdef list properties
    cdef dict by_name, by_plain_name

    cdef dict fresh(self)
    cdef dict read_object(self, dict found, str where)


cdef class Beans:
    cdef dict classes, enums

    cpdef bytes write(self, str name, dict value)
    cpdef dict read(self, str name, bytes data)
    cdef Type parse(self, str text)
