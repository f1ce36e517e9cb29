"""Packages of results: a folder says what a run was and what a model wrote, so that others can derive the rest again.

`format` reads and writes packages, `stored` turns stored runs into packages and packages into stored runs, and `verify`
derives a package again.
"""
