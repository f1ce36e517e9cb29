"""Adopts a repository: fetches a source, guesses a manifest, runs the tests, and writes the manifest."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from ctxbench.bench.adoption.guess import MIXED, UNKNOWN, Guess, guess
from ctxbench.bench.adoption.trial import MOST_NAMED, AdoptionTools, FetchedProject, Trial, run_trials
from ctxbench.bench.errors import InputFault, MachineFault
from ctxbench.bench.files import explained, sha256_file, write_atomic
from ctxbench.bench.home import Home
from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.lines.build import build_samples
from ctxbench.bench.repositories import checkout as checkouts
from ctxbench.bench.repositories import debian, git, local, manifest, pypi, snapshot
from ctxbench.bench.repositories.manifest import RepoManifest, text_of
from ctxbench.bench.repositories.sources import (
    GitSource,
    LocalSource,
    PypiSource,
    Report,
    Source,
    Unreachable,
)

_ENDS = ".py .pyx .pxd .c .cpp .rs .java .kt .scala .groovy .toml .cfg .ini .txt .in .pip .xml"
_READ = frozenset(_ENDS.split())
_NAMED = ("licen", "copying", "eula", "commons", "pkg-info", "notice")
_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+!~_-]{0,99}")
_MOST_BYTES = 1 << 20
"""Maximum size in bytes of a file to guess from. Larger files count as empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Adoption:
    """The result of adopting a repository."""

    manifest: RepoManifest
    path: Path
    lines: int
    trial: Trial | None
    """Result of running the tests; None if the guess contains no tests, or `adopt` received no tools to run them."""
    remarks: tuple[str, ...]
    """Comments for the manifest: the command that wrote it, the number of usable lines, and the tests' results."""
    doubts: tuple[str, ...]


def adopt(
    ref: str,
    home: Home,
    folder: Path,
    workbench: AdoptionTools | None,
    *,
    name: str = "",
    force: bool = False,
    report: Report,
) -> Adoption:
    """Fetch a repository, guess a manifest, run the tests, and write the manifest. A new call reuses fetched files.

    Args:
        ref: the source, in one of the forms of `FORMS`.
        folder: the folder for the manifest ``NAME.toml``.
        workbench: tools to run tests; None to leave the tests out.
        name: the repository's name; empty to derive it from `ref`.
        force: replace an existing manifest of that name.

    Raises:
        InputFault: if `ref` or `name` is invalid, the manifest exists already, or the repository has no usable sample.
        MachineFault: if the source cannot be reached or lacks the version, or the machine failed.
    """
    name = name or check_ref(ref)
    path = folder / f"{name}.toml"
    if path.exists() and not force:
        raise InputFault(
            "the manifest exists already", where=str(path), cure="add --force to replace it, or choose another --name"
        )
    draft, guessed, project = _drafted(ref, name, path, home, report)
    lines, line_doubts = _usable_lines(draft, project.checkout.root)
    report(f"{name}: {guessed.language.label}, {guessed.license}, {lines} usable lines")
    trial = None
    if workbench is not None and guessed.tests is not None:
        trial = run_trials(draft, guessed, project, workbench, report)
    if not lines and (trial is None or not trial.passed):
        reason = trial.fault if trial and trial.fault else "; ".join([*line_doubts, *guessed.doubts])
        raise InputFault(
            f"the repository has no usable lines and no usable functions: {reason}",
            where=name,
            cure="choose another repository",
        )
    adoption = Adoption(
        manifest=replace(draft, tests=trial.tests if trial and trial.passed else None),
        path=path,
        lines=lines,
        trial=trial,
        remarks=_remarks(ref, guessed, lines, trial),
        doubts=(*guessed.doubts, *_source_doubts(draft, project.checkout), *line_doubts, *_test_doubts(trial)),
    )
    _write(adoption)
    return adoption


def draft_of(ref: str, home: Home, report: Report) -> RepoManifest:
    """Fetch a repository and return a manifest for line samples, without writing the manifest.

    Raises:
        InputFault: if `ref` is invalid, or the source contains no file in a supported language.
        MachineFault: if the source cannot be reached or lacks the version.
    """
    name = check_ref(ref)
    draft, guessed, _ = _drafted(ref, name, home.root / f"{name}.toml", home, report)
    for doubt in guessed.doubts:
        if doubt.startswith(MIXED):
            report(f"{name}: {doubt}")
    return draft


def _drafted(ref: str, name: str, path: Path, home: Home, report: Report) -> tuple[RepoManifest, Guess, FetchedProject]:
    origin = resolve(ref, home, report)
    version = origin.version
    if isinstance(origin.source, LocalSource) and not version:
        # The version is part of the copy's name, so read it before copying.
        version = guess(_files(origin.source.path, local.files(origin.source.path, home)), where=ref).version
    draft = RepoManifest(
        name=name,
        language=PYTHON,
        license=UNKNOWN,
        version=version if _VERSION.fullmatch(version) else "0",
        sources=(origin.source,),
    )
    # Reject an invalid name or address before fetching anything.
    manifest.parse(text_of(draft), path, path.name)
    checkout = _fetched(draft, home, report)
    tree = _files(checkout.root, _walk(checkout.root))
    guessed = guess(tree, where=ref, wheel=isinstance(origin.source, PypiSource))
    draft = replace(
        draft,
        language=guessed.language,
        license=guessed.license,
        released=checkout.published,
        source_dir=guessed.source_dir,
        exclude=guessed.exclude,
    )
    return draft, guessed, FetchedProject(checkout=checkout, home=home, tree=tree)


def _fetched(draft: RepoManifest, home: Home, report: Report) -> checkouts.Checkout:
    try:
        return checkouts.fetch(draft, home, report=report)
    except MachineFault as fault:
        # The cure in a fetch's error assumes a manifest, which does not exist yet.
        cure = "check the network, or give the path of a local copy"
        raise MachineFault(fault.what, where=fault.where, cure=cure) from fault


def _write(adoption: Adoption) -> None:
    untried = adoption.trial.tests if adoption.trial is not None and not adoption.trial.passed else None
    text = text_of(adoption.manifest, adoption.remarks, adoption.doubts, untried)
    manifest.parse(text, adoption.path, adoption.path.name)
    write_atomic(adoption.path, text)


def _usable_lines(draft: RepoManifest, root: Path) -> tuple[int, list[str]]:
    read = snapshot.load(draft.name, root, draft.language, draft.source_dir)
    try:
        built = build_samples([read], per_repo=1, seed=0, excluded={draft.name: draft.excludes})
    except InputFault as fault:
        return 0, [str(fault)]
    return int(built.counts[draft.name]["usable"]), []


def _remarks(ref: str, guessed: Guess, lines: int, trial: Trial | None) -> tuple[str, ...]:
    remarks = [f"Written by `ctxbench repo add {ref}`.", f"{lines} lines can become samples."]
    if trial is not None and trial.search is not None:
        counts, states = trial.search.counts, trial.states
        others = ", ".join(f"{count} {state}" for state, count in states.items() if count and state != "passed")
        remarks.append(f"{trial.passed} of {sum(states.values())} tests passed{f' ({others})' if others else ''}.")
        functions = f"{len(trial.search.candidates)} of {counts['documented']} documented functions"
        remarks.append(f"{functions} are covered by tests that can judge them.")
        remarks.append(f"The tests ran in {' and in '.join(trial.back_ends)}.")
    elif guessed.tests is not None and trial is None:
        remarks.append("The tests were not run.")
    return tuple(remarks)


def _source_doubts(draft: RepoManifest, checkout: checkouts.Checkout) -> Iterator[str]:
    if checkout.left_out:
        yield f"the checkout lacks these paths, so tests that need them fail: {', '.join(checkout.left_out)}"
    source = draft.sources[0]
    if isinstance(source, GitSource) and source.url.startswith("file:"):
        yield "the source is a clone on this machine; write the public address that `git remote -v` prints as `url`"
    if draft.released is None:
        clone = " (for an unchanged clone, the day of the commit)" if isinstance(source, LocalSource) else ""
        yield f"the release date is unknown; write the day as `released`{clone}"


def _test_doubts(trial: Trial | None) -> tuple[str, ...]:
    if trial is None:
        return ()
    if trial.search is None:
        return (*trial.doubts, f"no test ran, so [tests] is commented out: {trial.fault}")
    doubts = list(trial.doubts)
    doubts += [trial.search.left_out] if trial.search.left_out else []
    failures = trial.search.failures
    if failures:
        first = sorted(failures.items(), key=lambda failure: not failure[1])[:MOST_NAMED]
        named = [f"{test}{f' ({cause})' if cause else ''}" for test, cause in first]
        more = f" and {len(failures) - MOST_NAMED} more" if len(failures) > MOST_NAMED else ""
        share = f"{len(failures)} of {sum(trial.states.values())} tests failed here and will not judge completions"
        doubts.append(f"{share}: {'; '.join(named)}{more}")
        if not trial.passed:
            doubts.append("no test passed, so [tests] is commented out")
    if trial.passed and not trial.search.candidates:
        doubts.append(
            "no documented function is covered by a test that can judge it, so no function can become a sample"
        )
    return tuple(doubts)


def _walk(root: Path) -> list[Path]:
    with explained(root):
        return [Path(folder, name).relative_to(root) for folder, _, names in os.walk(root) for name in sorted(names)]


def _files(root: Path, paths: list[Path]) -> Mapping[str, bytes]:
    tree: dict[str, bytes] = {}
    for path in sorted(paths):
        name = path.name.lower()
        if path.suffix.lower() not in _READ and not any(part in name for part in _NAMED):
            continue
        place = root / path
        with explained(place):
            tree[path.as_posix()] = place.read_bytes() if place.stat().st_size <= _MOST_BYTES else b""
    return MappingProxyType(tree)


FORMS = "pypi:NAME==VERSION, debian:NAME, debian:NAME=VERSION, git+URL@COMMIT, or the path of a folder or an archive"
_PYPI = re.compile(r"pypi:([A-Za-z0-9][A-Za-z0-9._-]*)==([A-Za-z0-9][A-Za-z0-9.+!_-]*)")
_DEBIAN = re.compile(r"debian:([a-z0-9][a-z0-9+.-]+)(?:=([A-Za-z0-9][A-Za-z0-9.+~:-]*))?")
_GIT = re.compile(r"git\+((?:https?|ssh|git|file)://\S+)@([0-9a-f]{40})")
_ARCHIVE = re.compile(r"^(.*?)(?:-(\d[\w.+!]*))?(\.orig)?\.(tar(\.\w+)?|tgz|zip)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedSource:
    """A source with its name and version, before it is fetched."""

    name: str
    version: str
    """Version, or first 12 digits of a commit id or archive's SHA-256; empty for a folder that matches no commit."""
    source: Source


def manifest_name(text: str) -> str:
    """Turn any text into a valid manifest name."""
    plain = re.sub(r"[^a-z0-9._-]+", "-", text.lower()).strip("-._")
    return plain[:100] or "repository"


def check_ref(ref: str) -> str:
    """Return the default manifest name for the source that `ref` names. Nothing is fetched.

    Raises:
        InputFault: if `ref` has none of the forms of `FORMS`, or names a path that does not exist.
    """
    if match := _PYPI.fullmatch(ref):
        return manifest_name(match.group(1))
    if match := _DEBIAN.fullmatch(ref):
        return manifest_name(re.sub(r"^(?:lib)?(.+?)-java$", r"\1", match.group(1)))
    if match := _GIT.fullmatch(ref):
        return manifest_name(match.group(1).rstrip("/").rpartition("/")[2].removesuffix(".git"))
    if re.match(r"(pypi|debian|git\+\w+):", ref):
        raise InputFault(f"{ref!r} is incomplete", cure=_whole(ref))
    path = Path(ref).expanduser()
    if not path.exists():
        raise InputFault(f"{ref!r} is not a source, a file or a folder", cure=f"give {FORMS}")
    archive = _ARCHIVE.match(path.name)
    resolved = path.resolve()
    return manifest_name(archive.group(1) if path.is_file() and archive else resolved.name)


def _whole(ref: str) -> str:
    if ref.startswith("pypi:"):
        return "give pypi:NAME==VERSION; `pip index versions NAME` lists the versions"
    if ref.startswith("git+"):
        return "give git+URL@COMMIT with the commit's 40 hexadecimal digits; `git ls-remote URL REF` shows them"
    return "give debian:NAME or debian:NAME=VERSION with the name of a source package"


def resolve(ref: str, home: Home, report: Report) -> NamedSource:
    """Return the source that `ref` names, with its manifest name, its version and, for an archive, its SHA-256.

    Raises:
        InputFault: if `ref` has none of the forms of `FORMS`, or matches no or several versions in Debian.
        MachineFault: if the source cannot be reached, no package index has the version, or Debian lacks the package.
    """
    name = check_ref(ref)
    if match := _PYPI.fullmatch(ref):
        return _pypi(name, match.group(1), match.group(2))
    if match := _DEBIAN.fullmatch(ref):
        source = debian.latest(match.group(1), match.group(2) or "", home, report)
        return NamedSource(name=name, version=source.version, source=source)
    if match := _GIT.fullmatch(ref):
        commit = match.group(2)
        return NamedSource(name=name, version=commit[:12], source=GitSource(url=match.group(1), commit=commit))
    path = Path(ref).expanduser().resolve()
    if path.is_dir():
        clone = git.head(path)
        version = clone.commit[:12] if clone else ""
        return NamedSource(name=name, version=version, source=clone or LocalSource(path=path))
    archive, digest = _ARCHIVE.match(path.name), sha256_file(path)
    # An archive is unpacked into a folder named by its version, so files in it cannot supply the version.
    version = (archive.group(2) if archive else "") or digest[:12]
    return NamedSource(name=name, version=version, source=LocalSource(path=path, sha256=digest))


def _pypi(name: str, project: str, version: str) -> NamedSource:
    configuration = pypi.configured()
    web = pypi.Web(certificates=configuration.certificates, proxy=configuration.proxy, seconds=configuration.seconds)
    reasons: list[str] = []
    offer = next(pypi.offers(project, version, web, configuration, reasons), None)
    if offer is None:
        raise Unreachable(
            f"no index offers an sdist of this version: {', '.join(reasons) or 'pip is configured to use no index'}",
            where=f"pypi:{project}=={version}",
            cure=f"list the versions with `pip index versions {project}`, or use the path of a local copy",
        )
    digest = offer.sha256
    if not digest:
        with tempfile.TemporaryDirectory() as folder:
            archive = Path(folder) / "sdist"
            web.save(offer.url, archive)
            digest = sha256_file(archive)
    return NamedSource(
        name=name,
        version=version,
        source=PypiSource(name=project, version=version, sha256=digest),
    )
