"""Bytes that this process has allocated and not freed, to the byte: of a process whose Python allocates with malloc."""

import ctypes
import gc
import os
import sys


class _Mallinfo2(ctypes.Structure):
    _fields_ = [(f"field_{number}", ctypes.c_size_t) for number in range(10)]  # malloc.h


def can_count() -> bool:
    """Whether the C library says it (glibc 2.33 or newer)."""
    return sys.platform == "linux" and hasattr(ctypes.CDLL(None), "mallinfo2")


def bytes_in_use() -> int:
    """Bytes allocated now. PYTHONMALLOC must be malloc, or Python's own arenas are counted."""
    if os.environ.get("PYTHONMALLOC") != "malloc":
        raise RuntimeError("run it with PYTHONMALLOC=malloc")
    for _ in range(3):
        gc.collect()
    ask = ctypes.CDLL(None).mallinfo2
    ask.restype = _Mallinfo2
    found = ask()
    return int(found.field_7 + found.field_4)  # uordblks, hblkhd: in the heap, and mapped alone
