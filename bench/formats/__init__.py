"""Sample files of other benchmarks: one module a format, with `write` and `read`."""
