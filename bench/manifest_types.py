"""A manifest: the facts about one repository. Frozen data, no I/O."""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass
from pathlib import Path

from ctxbench.bench.languages.base import Language
from ctxbench.bench.sources.base import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class TestSuite:
    """The repository's own tests and the way to run them; data for the function samples."""

    __test__ = False  # pytest would take the class for a test case by its name

    requirements: tuple[str, ...] = ()
    """What the tests need beside the package itself: pip requirement strings; for Java Debian packages."""
    pythonpath: str = "."
    """The folder that goes first on the import path."""
    paths: tuple[str, ...] = ()
    """Where the tests are; empty: where the runner finds them by itself."""
    arguments: tuple[str, ...] = ()
    """More arguments of the test runner; for Java, of the virtual machine."""
    deselect: tuple[str, ...] = ()
    """Test files and tests left out, as node ids."""
    notes: str = ""
    jars: tuple[str, ...] = ()
    """Java: files of ``/usr/share/java`` that the required packages bring."""
    release: str = ""
    """Java: what is handed to ``javac --release``; empty: what the ``pom.xml`` says."""
    encoding: str = ""
    """Java: of the source files; empty: what the ``pom.xml`` says."""
    wheel: bool = True
    """Python: whether the package index has a wheel of the project, which says what it requires. Without one
    `requirements` name all that is needed, and nothing of the project's own metadata is installed."""
    added: Path | None = None
    """A folder of tests of ours, laid over the repository's tree as ``ctxbench_tests/``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RepoManifest:
    """A repository, the sources of its copies, and the files that give samples."""

    name: str
    language: Language
    license: str
    """SPDX expression."""
    version: str
    sources: tuple[Source, ...]
    """Copies of the same version, in the order to try."""
    source_dir: str = ""
    """The folder inside the repository to which reading is limited; empty: all of it."""
    exclude: tuple[str, ...] = ()
    """Globs of paths whose files give no samples; ``*`` also matches ``/``."""
    sets: tuple[str, ...] = ()
    codereval: tuple[str, ...] = ()
    """The projects of CoderEval, as ``owner/repository`` or a folder's name (Java), whose tasks are rebuilt on it."""
    tests: TestSuite | None = None

    def excludes(self, path: str) -> bool:
        """Say whether the file at this path (POSIX, inside the repository) gives no samples."""
        return any(
            fnmatch.fnmatchcase(path, glob) or (glob.startswith("**/") and fnmatch.fnmatchcase(path, glob[3:]))
            for glob in self.exclude
        )
