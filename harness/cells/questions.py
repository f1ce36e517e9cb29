"""What a cell may ask of the repository, and how it is answered: every argument is suspected."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from bench import spec as specs
from bench.errors import InputFault
from bench.repository import Repository
from harness.cells import wire

_TEXT = {"text": str, "ranker": str}
_ARGUMENTS: Mapping[str, Mapping[str, type]] = {
    "files": {},
    "read": {"path": str},
    "similar_windows": {"text": str, "top": int, "size": int, "stride": int},
    "search": {**_TEXT, "unit": str, "top": int},
    "similarity": {**_TEXT, "candidates": list},
}
_DUMPS: Mapping[str, Callable[[Any], Any]] = {"similar_windows": wire.dump_hits, "search": wire.dump_found}
MOST_CHARACTERS = 1_000_000
"""Of all texts of one question together."""


def answer(repo: Repository, call: str, arguments: Mapping[str, Any], spec: str) -> Any:
    """Return the answer to one question, as JSON data.

    Args:
        repo: the query's view.
        call: the name of one of its methods.
        arguments: what it is given.
        spec: the strategy's spec, as the user wrote it.

    Raises:
        Garbage: if there is no such question, or an argument is missing or of another type.
        InputFault: what the view raises, and if a text is too long or the ranker is not the strategy's to choose.
    """
    expected = _ARGUMENTS.get(call)
    if expected is None or arguments.keys() != expected.keys():
        raise wire.Garbage(f"asks for {call!r:.40}")
    for key, value in arguments.items():
        wire.checked(value, expected[key])
    texts = [wire.checked(text, str) for text in arguments.get("candidates", ())] + [arguments.get("text", "")]
    if sum(map(len, texts)) > MOST_CHARACTERS:
        raise InputFault(f"the texts to compare are over {MOST_CHARACTERS} characters", cure="give shorter ones")
    if "ranker" in arguments:
        _check_ranker(arguments["ranker"], spec)
    value = getattr(repo, call)(**arguments)
    return _DUMPS[call](value) if call in _DUMPS else value


def _check_ranker(ranker: str, spec: str) -> None:
    """Refuse what an encoder would open or load on this side because a strategy, not the user, said so."""
    asked = specs.parse(ranker)
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in asked.arguments.values()):
        return
    if str(asked) not in set(_given(spec)):
        raise InputFault(
            f"the strategy may not choose the ranker {ranker!r} by itself",
            where=spec,
            cure="give it among the strategy's parameters",
        )


def _given(spec: str) -> Iterator[str]:
    """Yield every spec that stands among the arguments of a spec, at any depth, in its canonical spelling."""
    for value in specs.parse(spec).arguments.values():
        if isinstance(value, str):
            try:
                inner = str(specs.parse(value))
            except InputFault:
                continue
            yield inner
            yield from _given(inner)
