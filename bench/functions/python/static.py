"""What a Python repository's text says of its functions, before anything is run. Pure."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Mapping

from ctxbench.bench.functions.hidden import test_places
from ctxbench.bench.functions.mining import Project, Spot
from ctxbench.bench.functions.python.definitions import Definition, Definitions, definition_at, definitions, parse
from ctxbench.bench.functions.python.levels import FileNames
from ctxbench.bench.functions.static import ListedFunction, Static, unique
from ctxbench.bench.languages.base import FileFacts
from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.languages.python.modules import ModuleIndex
from ctxbench.bench.repository import is_hidden
from ctxbench.bench.testing.tree import ADDED
from ctxbench.bench.types import Use


def read(project: Project) -> Static[Definition]:
    """Find the documented functions of a repository's source files that could be asked for."""
    texts, hidden = project.snapshot.texts, hidden_of(project)
    left_out: Counter[str] = Counter()
    bodies: Counter[str] = Counter()
    sources: dict[str, Definitions] = {}
    for path, text in texts.items():
        if is_hidden(path, hidden):
            left_out["test"] += 1
            continue
        tree = parse(text)
        if tree is None:
            left_out["syntax_error"] += 1
            continue
        file_definitions = definitions(text, tree)
        # Also of files that give no samples: strategies see them.
        bodies += file_definitions.bodies
        if project.manifest.excludes(path):
            left_out["excluded"] += 1
        elif "\ufffd" in text:
            left_out["bad_encoding"] += 1
        else:
            sources[path] = file_definitions
    functions, drops = _functions(texts, sources, bodies)
    counts = {
        "files": len(texts),
        "source_files": len(sources),
        **{f"left_out_{reason}": count for reason, count in sorted(left_out.items())},
        "functions": sum(file_definitions.functions for file_definitions in sources.values()),
        "documented": sum(file_definitions.documented for file_definitions in sources.values()),
    }
    return Static(functions=functions, hidden=hidden, counts=counts, drops=drops)


def hidden_of(project: Project) -> tuple[str, ...]:
    """Return the test files and folders of a repository, those of ours included."""
    suite = project.manifest.tests
    places = test_places(project.snapshot.texts, suite.paths if suite is not None else ())
    return tuple(sorted({*places, ADDED})) if suite is not None and suite.added is not None else places


def uses_of(project: Project) -> Callable[[Spot], tuple[Use, ...]]:
    """Return what gives the names of the project that a function's body needs; reads every file when first asked."""
    names = functools.cache(lambda: _names(project.snapshot.texts))

    def of(spot: Spot) -> tuple[Use, ...]:
        text = project.snapshot.texts[spot.path]
        tree = parse(text)
        definition = definition_at(text, tree, spot.start) if tree is not None else None
        return names()(spot.path).needs(definition)[1] if definition is not None else ()

    return of


def _names(texts: Mapping[str, str]) -> Callable[[str], FileNames]:
    facts: dict[str, FileFacts] = {path: PYTHON.analyse(path, text) for path, text in texts.items()}
    loads = PYTHON.resolve(facts)
    index = ModuleIndex(texts, [])
    return functools.cache(lambda path: FileNames(path, texts[path], loads[path], index))


def _functions(
    texts: Mapping[str, str], sources: Mapping[str, Definitions], bodies: Mapping[str, int]
) -> tuple[tuple[ListedFunction[Definition], ...], Counter[str]]:
    drops = sum((file_definitions.drops for file_definitions in sources.values()), Counter[str]())
    usable = {path: file_definitions.usable for path, file_definitions in sources.items()}
    return unique(usable, _names(texts), bodies, drops), drops
