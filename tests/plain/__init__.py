"""The kernels and the index on a processor without AVX: the same answers, at most three times the time."""
