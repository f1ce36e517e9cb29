"""Benchmarks: ratios of time or memory to a reference measured at the same time. `make bench` prints them all."""
