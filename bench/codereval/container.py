"""List what CoderEval's official image holds, in a hardened container of it, and copy projects out of it."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from ctxbench.bench.codereval.protocol import HARNESS, JAVA, PYTHON, STANDALONE, WORK
from ctxbench.bench.errors import InputFault, MachineFault
from ctxbench.bench.files import sha256_file
from ctxbench.bench.home import Home
from ctxbench.bench.languages.base import Language
from ctxbench.bench.languages.java import JAVA as JAVA_LANGUAGE
from ctxbench.bench.languages.python import PYTHON as PYTHON_LANGUAGE
from ctxbench.bench.repositories import checkout
from ctxbench.bench.repositories.manifest import RepoManifest
from ctxbench.bench.repositories.sources import LocalSource, Report
from ctxbench.bench.testing.judge import sandbox_explained
from ctxbench.sandbox.docker import DockerSandbox
from ctxbench.sandbox.errors import SandboxError
from ctxbench.sandbox.types import MIB, Command, Environment, Job, Limits, Pool

_LIMITS = Limits(memory=1024 * MIB, output=64 * MIB)
_SECONDS = 300.0
_MOST = 512 * MIB
"""Of one project's files."""
_SKIPPED = frozenset({".git", ".hg", ".svn", "__pycache__", "node_modules"})
_COPIED = {
    PYTHON_LANGUAGE: lambda path: not path.endswith(".pyc") and not _SKIPPED & set(path.split("/")),
    JAVA_LANGUAGE: lambda path: path.endswith(".java"),
}
_PYTHONS = (
    "python",
    "python3",
    "/usr/local/bin/python3",
    "/home/travis/virtualenv/*/bin/python",
    "/opt/python/*/bin/python",
    "/opt/pyenv/shims/python",
    "/opt/conda/bin/python",
    "/usr/bin/python3",
)
_OLDEST = (3, 8)
"""The oldest Python whose syntax trees put decorators above a function's lines, as the benchmark's numbers do."""
_ASK = "import sys; print(sys.executable, '.'.join(map(str, sys.version_info[:3])))"
_JDKS = ("javac", '"$JAVA_HOME"/bin/javac', "/usr/lib/jvm/*/bin/javac", "/opt/*/bin/javac")
_SECTION = "=== "


def _find(folder: str, tests: str, *, kind: str = "f") -> str:
    return f"cd {folder} 2>/dev/null && find . -type {kind} {tests} 2>/dev/null"


_QUESTIONS = {
    "python": f'for each in {" ".join(_PYTHONS)}; do "$each" -c "{_ASK}" 2>/dev/null; done',
    "javac": f"for each in {' '.join(_JDKS)}; do found=$(command -v $each) && "
    'printf "%s " "$(readlink -f "$found")" && "$found" -version 2>&1 | head -n 1; done',
    "folders": f"cd {PYTHON} 2>/dev/null && find . -maxdepth 1 -type d",
    "tests": _find(PYTHON, f"\\( -name '*{HARNESS}.py' -o -path './{STANDALONE}/*.py' \\)"),
    "projects": f"cd {JAVA} 2>/dev/null && find . -maxdepth 1 -type d",
    "classes": _find(JAVA, "-name '*_*.class' ! -name '*$*'"),
    "roots": _find(JAVA, "\\( -path '*/target/classes' -o -path '*/target/test-classes' \\)", kind="d"),
    "jars": f"find {JAVA} /root/.m2 /home/*/.m2 -name '*.jar' -type f 2>/dev/null",
}
"""Section -> script that lists it; a script that fails lists nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What an image holds for the official protocol; paths below `PYTHON` and `JAVA`."""

    id: str
    python: str
    """The interpreter's path; empty if none of 3.8 or later runs for a plain user."""
    python_version: str
    javac: str
    java: str
    java_version: str
    folders: tuple[str, ...]
    """Of Python projects."""
    tests: frozenset[str]
    """Python test files: ``<folder>/…_passk_validte.py``, ``standalone/….py``."""
    projects: tuple[str, ...]
    """Folders of Java projects."""
    classes: frozenset[str]
    """Compiled classes whose name has an underscore, as those of test programs have."""
    roots: tuple[str, ...]
    """Folders of compiled classes."""
    jars: tuple[str, ...]
    """Absolute; those of local Maven repositories too."""


def look(image: str, report: Report) -> Contents:
    """Look at an image, in containers without a network that cannot write to it.

    Raises:
        MachineFault: if there is no such image, or no engine that runs it.
        InputFault: if it is not laid out as CoderEval's is.
    """
    environment = Environment(name=image, image=image, folder=WORK)
    with tempfile.TemporaryDirectory() as cache, sandbox_explained():
        sandbox = DockerSandbox(Path(cache))
        sandbox.prepare(environment, report)
        with sandbox.open(environment, limits=_LIMITS) as pool:
            contents = _contents(pool, image_id(image))
    if not contents.folders and not contents.projects:
        raise InputFault(
            f"has neither {PYTHON} nor {JAVA} that a plain user may enter",
            where=image,
            cure="give the image that CoderEval's authors publish, or one laid out like it",
        )
    return contents


def image_id(image: str) -> str:
    """Return the id of an image, which names its content: ``sha256:…``.

    Raises:
        MachineFault: if it is not here.
    """
    from ctxbench.sandbox.docker.engine import connected  # noqa: PLC0415 - imports Docker's SDK
    from ctxbench.sandbox.docker.images import find  # noqa: PLC0415

    with sandbox_explained(), connected() as client:
        details = find(client, image)
    if details is None:
        raise MachineFault("no image of that name or id is here", where=image, cure="see `docker images`")
    return str(details["Id"])


def copied(home: Home, image: str, folder: str, name: str, language: Language, report: Report) -> checkout.Checkout:
    """Copy a project of an image into the home folder; nothing of the image is run.

    Of Python projects all files come, since their tests run on them; of Java projects the sources, as compiled
    classes stay in the image. Links are left out.

    Args:
        home: where it is kept.
        image: the image's id.
        folder: absolute.
        name: the checkout's.
        language: of its files.
        report: called with what is left out.

    Raises:
        InputFault: if the image has no such folder, or it is too large.
    """
    from ctxbench.sandbox.docker.engine import connected  # noqa: PLC0415 - imports Docker's SDK
    from ctxbench.sandbox.docker.tars import copy_out  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as scratch:
        archive = Path(scratch, "folder.tar")
        try:
            with sandbox_explained(), connected() as client, archive.open("wb") as into:
                exists = copy_out(client, image, folder, into, _COPIED[language], _MOST)
        except SandboxError as error:
            raise InputFault(error.what, where=error.where, cure="leave its tasks out") from error
        if not exists:
            raise InputFault("the image has no such folder", where=folder, cure="see `ctxbench codereval image check`")
        source = LocalSource(path=archive, sha256=sha256_file(archive))
        version = f"image-{image.removeprefix('sha256:')[:12]}"
        manifest = RepoManifest(name=name, language=language, license="NOASSERTION", version=version, sources=(source,))
        report(f"{name}: copying {folder} out of the image")
        return checkout.fetch(manifest, home, report=lambda _: None)


def _contents(pool: Pool, image: str) -> Contents:
    sections = _sections(pool)
    python, version = _interpreter(sections["python"])
    javac, java_version = _compiler(sections["javac"])
    return Contents(
        id=image,
        python=python,
        python_version=version,
        javac=javac,
        java=javac.removesuffix("javac") + "java" if javac else "",
        java_version=java_version,
        folders=tuple(folder for folder in sections["folders"] if folder not in (".", STANDALONE)),
        tests=frozenset(sections["tests"]),
        projects=tuple(folder for folder in sections["projects"] if folder != "."),
        classes=frozenset(sections["classes"]),
        roots=tuple(sections["roots"]),
        jars=tuple(sections["jars"]),
    )


def _sections(pool: Pool) -> dict[str, list[str]]:
    """List everything in one container; return section -> lines, sorted but for the programs that were tried."""
    parts = [f"echo '{_SECTION}{name}'; {script}" for name, script in _QUESTIONS.items()]
    with sandbox_explained():
        outcome = pool.run(Job(action=Command(argv=("/bin/sh", "-c", "\n".join([*parts, "true"]))), seconds=_SECONDS))
    if outcome.exit_code != 0 or outcome.truncated:
        why = "says too much" if outcome.truncated else f"ended ({outcome.ended}): {outcome.output[-200:]}"
        raise MachineFault(f"looking at the image {why}", where="codereval image", cure="the image needs sh and find")
    sections: dict[str, list[str]] = {name: [] for name in _QUESTIONS}
    section = ""
    for line in outcome.output.splitlines():
        if line.startswith(_SECTION):
            section = line.removeprefix(_SECTION)
        elif section and line.strip():
            sections[section].append(line.removeprefix("./"))
    return {name: lines if name in ("python", "javac") else sorted(lines) for name, lines in sections.items()}


def _interpreter(lines: list[str]) -> tuple[str, str]:
    """Return the path and version of the first interpreter that is not too old."""
    for line in lines:
        path, _, version = line.rpartition(" ")
        numbers = version.split(".")
        if path and all(map(str.isdigit, numbers)) and tuple(map(int, numbers[:2])) >= _OLDEST:
            return path, version
    return "", ""


def _compiler(lines: list[str]) -> tuple[str, str]:
    """Return a compiler's path and version; one of Java 8, the official version, if there is one."""
    compilers = [line.split(" javac ", 1) for line in lines if " javac " in line]
    compilers.sort(key=lambda compiler: not compiler[1].startswith("1.8"))
    return (compilers[0][0], compilers[0][1]) if compilers else ("", "")
