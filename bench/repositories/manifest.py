"""Manifests: the facts about repositories, and the TOML files that hold them.

The shipped manifests lie in ``bench/repos/``; any other is named by its path. Every fault of a file
is reported at once. The form of the file is
written down, key by key, in `bench.repositories.schema`.
"""

from __future__ import annotations

import fnmatch
import functools
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from ctxbench.bench.errors import InputFault, UnknownName
from ctxbench.bench.files import read_text
from ctxbench.bench.languages.base import Language
from ctxbench.bench.repositories.sources import Source

BUILTIN = Path(__file__).parents[1] / "repos"


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
    lock: tuple[str, ...] = ()
    """Python: the versions that are installed, each as ``name==version``, so that the tests of today are run in years
    too; empty: the newest that `requirements` allow."""
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
    released: date | None = None
    """The day (UTC) on which this version was published; None if the manifest does not say."""
    source_dir: str = ""
    """The folder inside the repository to which reading is limited; empty: all of it."""
    exclude: tuple[str, ...] = ()
    """Globs of paths whose files give no samples; ``*`` also matches ``/``."""
    sets: tuple[str, ...] = ()
    codereval: tuple[str, ...] = ()
    """The projects of CoderEval, as ``owner/repository`` or a folder's name (Java), whose tasks are rebuilt on it."""
    tests: TestSuite | None = None

    def account(self) -> dict[str, str]:
        """Return what the account of a sample set says of this release; its day only where that is known."""
        dated = {} if self.released is None else {"released": self.released.isoformat()}
        return {"license": self.license, "version": self.version, **dated}

    def excludes(self, path: str) -> bool:
        """Say whether the file at this path (POSIX, inside the repository) gives no samples."""
        return any(
            fnmatch.fnmatchcase(path, glob) or (glob.startswith("**/") and fnmatch.fnmatchcase(path, glob[3:]))
            for glob in self.exclude
        )


@dataclass(frozen=True, slots=True)
class ManifestProblem:
    """One thing that is wrong with a manifest."""

    where: str
    """``FILE: key``."""
    what: str
    cure: str

    def __str__(self) -> str:
        """Return ``FILE: key: what; cure``."""
        return " ".join(f"{self.where}: {self.what}; {self.cure}".split())


class ManifestFault(InputFault):
    """Raised when a manifest is wrong; holds all of its faults."""

    def __init__(self, faults: Sequence[ManifestProblem]) -> None:
        self.faults = tuple(faults)
        super().__init__(" | ".join(str(fault) for fault in self.faults))

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle with the faults, so that worker processes can raise it."""
        return ManifestFault, (self.faults,)


def builtin_names() -> tuple[str, ...]:
    """Return the names of the shipped manifests, sorted."""
    return tuple(sorted(path.stem for path in BUILTIN.glob("*.toml")))


def load(ref: str) -> RepoManifest:
    """Return a manifest by its shipped name, or by the path of a ``.toml`` file.

    Raises:
        UnknownName: if no shipped manifest is called so.
        ManifestFault: if the file is not a right manifest; it holds every fault.
        InputFault: if the file cannot be read.
    """
    if ref.endswith(".toml") or "/" in ref:
        return _read(Path(ref).expanduser().absolute(), ref)
    if ref not in builtin_names():
        raise UnknownName("repository", ref, builtin_names(), command="ctxbench repo list")
    return _builtin(ref)


def in_set(name: str) -> tuple[RepoManifest, ...]:
    """Return the shipped manifests of a set, sorted by name.

    Raises:
        UnknownName: if no shipped manifest is in a set of this name.
    """
    manifests = [load(builtin) for builtin in builtin_names()]
    members = tuple(manifest for manifest in manifests if name in manifest.sets)
    if not members:
        set_names = {set_name for manifest in manifests for set_name in manifest.sets}
        raise UnknownName("repository set", name, set_names, command="ctxbench repo list")
    return members


@functools.cache
def _builtin(name: str) -> RepoManifest:
    path = BUILTIN / f"{name}.toml"
    return _read(path, path.name)


def _read(path: Path, label: str) -> RepoManifest:
    return parse(read_text(path), path, label)


def parse(text: str, path: Path, label: str) -> RepoManifest:
    """Return the manifest that a text is.

    Args:
        text: TOML.
        path: of its file, there or not; local sources are relative to its folder.
        label: what messages call it.

    Raises:
        ManifestFault: if it is not a right manifest; it holds every fault.
    """
    # Not imported above: pydantic costs every command a tenth of a second, and few read a manifest.
    from ctxbench.bench.repositories.schema import check  # noqa: PLC0415

    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # no TOML, a number of thousands of digits, lists in lists
        raise ManifestFault(
            [ManifestProblem(label, f"is not TOML: {error}", "compare it with the output of `ctxbench repo sample`")]
        ) from None
    manifest, problems = check(data, path)
    if manifest is None:
        raise ManifestFault([ManifestProblem(f"{label}: {key}", what, cure) for key, what, cure in problems])
    return manifest
