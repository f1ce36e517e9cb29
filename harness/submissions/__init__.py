"""Packages of results: folders with a run's settings and answers, from which others can derive its scores again.

`records` are a package's contents, `format` reads and writes its files, `stored` turns stored runs into packages and
packages into stored runs, `verify` derives a package again, and `boards` ranks packages.
"""
