# mypy: ignore-errors
"""Stands in for python-magic, which needs a C library that a box has not: a module of federation imports one name.

Nothing that these tests judge uses it.
"""


def from_file(path, mime=False):
    """Refuse: nobody should rely on this."""
    raise NotImplementedError(path)
