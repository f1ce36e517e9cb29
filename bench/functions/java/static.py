"""What a Java repository's text says of its methods, before anything is run. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from ctxbench.bench.functions.hidden import test_places
from ctxbench.bench.functions.java.definitions import Definition, Definitions, definitions
from ctxbench.bench.functions.java.levels import FileNames
from ctxbench.bench.functions.mining import Project
from ctxbench.bench.functions.static import ListedFunction, Static, unique
from ctxbench.bench.languages.base import FileFacts
from ctxbench.bench.languages.java import JAVA
from ctxbench.bench.languages.java.facts import JavaFile
from ctxbench.bench.languages.java.uses import ProjectTypes
from ctxbench.bench.languages.syntax import Source
from ctxbench.bench.repository import is_hidden


def read(project: Project, main: tuple[str, ...]) -> Static[Definition]:
    """Find the documented methods of a repository's main source folders that could be asked for."""
    texts = project.snapshot.texts
    suite = project.manifest.tests
    hidden = test_places(texts, suite.paths if suite is not None else ())
    left_out: Counter[str] = Counter()
    read_files: dict[str, tuple[Source, Definitions]] = {}
    for path, text in texts.items():
        reason = _reason(path, text, project, hidden, main)
        if reason:
            left_out[reason] += 1
            continue
        source = Source(text, JAVA)
        if source.root.has_error:
            left_out["syntax_error"] += 1
        else:
            read_files[path] = source, definitions(source)
    functions, drops = _functions(texts, read_files)
    file_definitions = [in_file for _, in_file in read_files.values()]
    counts = {
        "files": len(texts),
        "source_files": len(read_files),
        **{f"left_out_{reason}": count for reason, count in sorted(left_out.items())},
        "functions": sum(in_file.methods for in_file in file_definitions),
        "documented": sum(in_file.documented for in_file in file_definitions),
    }
    return Static(functions=functions, hidden=hidden, counts=counts, drops=drops)


def _reason(path: str, text: str, project: Project, hidden: tuple[str, ...], main: tuple[str, ...]) -> str:
    if is_hidden(path, hidden):
        return "test"
    if not any(path.startswith(f"{folder}/") for folder in main):
        return "no_main_source"
    if project.manifest.excludes(path):
        return "excluded"
    return "bad_encoding" if "\ufffd" in text else ""


def _functions(
    texts: Mapping[str, str], read_files: Mapping[str, tuple[Source, Definitions]]
) -> tuple[tuple[ListedFunction[Definition], ...], Counter[str]]:
    facts: dict[str, FileFacts] = {path: JAVA.analyse(path, text) for path, text in texts.items()}
    loads = JAVA.resolve(facts)
    types = ProjectTypes({path: file for path, file in facts.items() if isinstance(file, JavaFile)})
    bodies = sum((definitions.bodies for _, definitions in read_files.values()), Counter[str]())
    drops = sum((definitions.drops for _, definitions in read_files.values()), Counter[str]())
    usable = {path: definitions_of_file.usable for path, (_, definitions_of_file) in read_files.items()}
    return unique(usable, lambda path: FileNames(read_files[path][0], loads[path], types), bodies, drops), drops
