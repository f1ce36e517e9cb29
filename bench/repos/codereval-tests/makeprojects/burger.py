# mypy: ignore-errors
"""Stands in for burger, whose requirement enum34 breaks every newer Python: it has any name, and does nothing.

Nothing that these tests judge uses it.
"""

PY2 = False


def __getattr__(name):
    """Return a function that does nothing, for any name that makeprojects imports."""
    if name.startswith("__"):
        raise AttributeError(name)
    return lambda *arguments, **more: None
