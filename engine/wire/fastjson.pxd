"""fastjson: fastjson's dialect of JSON; see fastjson.pyx."""

cpdef object quoted(object text)
