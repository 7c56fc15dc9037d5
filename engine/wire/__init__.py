"""Bytes of the wire protocols to frames and back: no sockets, no clock, every length checked before memory is taken."""
