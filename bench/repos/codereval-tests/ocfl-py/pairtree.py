# mypy: ignore-errors
"""Stands in for pairtree, of which the index has no wheel: a module of ocfl imports two names of it.

Nothing that these tests judge uses it.
"""


def id_encode(identifier):
    """Refuse: nobody should rely on this."""
    raise NotImplementedError(identifier)


id_decode = id_encode
