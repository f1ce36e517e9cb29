"""Measured ratios against a named reference, in one process run; `make bench` prints them all. Never a test."""
