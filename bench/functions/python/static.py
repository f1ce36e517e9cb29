"""What a Python repository's text says of its functions, before anything is run. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from bench.functions.hidden import test_places
from bench.functions.mining import Project
from bench.functions.python.definitions import Definition, Definitions, definitions, parse
from bench.functions.python.levels import FileNames
from bench.functions.static import Known, Static, unique
from bench.languages import python as reader
from bench.languages.facts import FileFacts
from bench.languages.python.modules import ModuleIndex
from bench.repository import is_hidden
from bench.testing.tree import ADDED


def read(project: Project) -> Static[Definition]:
    """Find the documented functions of a repository's source files that could be asked for."""
    texts = project.snapshot.texts
    suite = project.manifest.tests
    hidden = test_places(texts, suite.paths if suite is not None else ())
    if suite is not None and suite.added is not None:
        hidden = tuple(sorted({*hidden, ADDED}))
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
        found = definitions(text, tree)
        # Also of files that give no samples: strategies see them.
        bodies += found.bodies
        if project.manifest.excludes(path):
            left_out["excluded"] += 1
        elif "\ufffd" in text:
            left_out["bad_encoding"] += 1
        else:
            sources[path] = found
    known, drops = _known(texts, sources, bodies)
    counts = {
        "files": len(texts),
        "source_files": len(sources),
        **{f"left_out_{reason}": count for reason, count in sorted(left_out.items())},
        "functions": sum(each.functions for each in sources.values()),
        "documented": sum(each.documented for each in sources.values()),
    }
    return Static(known=known, hidden=hidden, counts=counts, drops=drops)


def _known(
    texts: Mapping[str, str], sources: Mapping[str, Definitions], bodies: Mapping[str, int]
) -> tuple[tuple[Known[Definition], ...], Counter[str]]:
    facts: dict[str, FileFacts] = {path: reader.analyse(path, text) for path, text in texts.items()}
    loads = reader.resolve(facts)
    index = ModuleIndex(texts, [])
    drops = sum((each.drops for each in sources.values()), Counter[str]())
    usable = {path: found.usable for path, found in sources.items()}
    return unique(usable, lambda path: FileNames(path, texts[path], loads[path], index), bodies, drops), drops
