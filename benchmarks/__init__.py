"""Ratios of time or memory against a reference, measured together. `make bench` prints them all. They are not tests."""
