"""Packages of results: a folder says what a run was and what a model wrote, so that others can derive the rest again.

`records` are a package's contents, `format` reads and writes its files, `stored` turns stored runs into packages and
packages into stored runs, `verify` derives a package again, and `boards` ranks packages.
"""
