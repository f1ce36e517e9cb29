"""Packages of results: folders with a run's settings and answers, so that others can compute its scores again.

`records` are a package's contents, and `format` reads and writes its files. `stored` turns stored runs into packages
and packages into stored runs. `verify` computes a package's values again, and `boards` ranks packages.
"""
