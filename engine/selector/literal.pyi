"""No names for Python: the rooms of the core cimport this one."""
