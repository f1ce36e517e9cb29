"""Whether a completion is plain: a reading of its syntax tree against an allow-list. Pure.

What a plain completion does cannot reach the tests that it runs beside; docs/verdicts.md says why.
"""

from __future__ import annotations

from collections.abc import Iterator

from ctxbench.bench.judging.python.plain.names import BoundNames, RepositoryWords, of_file, of_text
from ctxbench.bench.judging.python.plain.ownership import Ownership
from ctxbench.bench.judging.python.plain.reading import CompletionReader, Remark
from ctxbench.bench.judging.python.text import shift
from ctxbench.bench.languages.python import asts

__all__ = ["Remark", "RepositoryWords", "remarks"]


def remarks(
    repository: RepositoryWords, source: bytes, name: str, text: str, reference: str = ""
) -> tuple[Remark, ...]:
    """Return what is not plain in a completion: each line with a reason, no reason twice; nothing of a plain one.

    Args:
        repository: the words of its repository.
        source: its file, with the reference in it.
        name: of the function, with the class of a method.
        text: the completion.
        reference: the right function: whatever that uses is allowed. Nothing is, if empty.
    """
    usual = {remark.reason for remark in _read(repository, source, name, reference)} if reference else set()
    found: dict[str, Remark] = {}
    for remark in sorted(_read(repository, source, name, text)):
        if remark.reason not in usual:
            found.setdefault(remark.reason, remark)
    return tuple(found.values())


def _read(repository: RepositoryWords, source: bytes, name: str, text: str) -> Iterator[Remark]:
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    tree = asts.parse("\n".join(shift(lines, "")))
    if tree is None:
        yield Remark(1, "cannot be read as Python")
        return
    file, own = of_file(source), of_text(tree)
    names = BoundNames(
        {**file.modules, **own.modules},
        {**file.members, **own.members},
        file.imports | own.imports,
        {**file.defined, **own.defined},
        [*file.starred, *own.starred],
    )
    yield from CompletionReader(tree, names, file, repository, Ownership(tree, names, name), name).remarks()
