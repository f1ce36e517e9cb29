"""The whole JUnit suite of a Maven project, compiled and run separately, to check which faults its tests notice.

This code is independent of ctxbench. The project's code runs under bubblewrap, without a network.
"""

import re
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from shutil import copytree, rmtree
from typing import Any

from tests.independent.mutants import failed

_SHARE = Path("/usr/share/java")
_JUNIT = ("junit-platform-console-standalone", "apiguardian-api", "opentest4j", "junit4", "hamcrest")
_SHORT_LIVED = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""JVM options for a compiler and a garbage collector that start fast."""
_SECONDS = 1800.0
_NO_END = "did not end"


class JavaSuite:
    """All tests of a project, run on its classes after one file is changed and compiled."""

    def __init__(self, root: Path, tests: Mapping[str, Any], work: Path) -> None:
        """Compile a project.

        Args:
            root: the project's files, in Maven's folders.
            tests: the table ``tests`` of the set's manifest.
            work: an empty folder.
        """
        self._tree, self._main, self._test, self._changed = (work / name for name in ("tree", "main", "test", "new"))
        copytree(root, self._tree)
        jars = [_SHARE / name for name in tests.get("jars", ())]
        self._jars = [*map(str, jars), *(str(_SHARE / f"{name}.jar") for name in _JUNIT)]
        pom = (self._tree / "pom.xml").read_text("utf-8", "replace")
        named = re.search(r"<project.build.sourceEncoding>(.*?)<", pom)
        self._encoding = tests.get("encoding") or (named[1] if named else "UTF-8")
        self._flags = list(tests.get("arguments", ()))
        # Leave out the whole files that the manifest deselects, because their tests may never end.
        named_files = [Path(name).stem for name in tests.get("deselect", ()) if name.endswith(".java")]
        self._left_out = [f"--exclude-classname=.*\\b{name}" for name in named_files]
        sources = sorted((self._tree / "src/main/java").rglob("*.java"))
        assert self._compile(sources, self._main, [])
        left = sorted((self._tree / "src/test/java").rglob("*.java"))
        while said := self._errors(left, self._test, [str(self._main)]):
            broken = {Path(name) for name in re.findall(r"^(/.+?\.java):\d+: error", said, re.MULTILINE)}
            assert broken & set(left), said
            left = [path for path in left if path not in broken]
        for kind, classes in (("main", self._main), ("test", self._test)):
            for folder in ("resources", "java"):
                _copy(self._tree / "src" / kind / folder, classes)
        self._baseline: set[str] | None = None

    def compiles(self, path: str, span: Sequence[int], text: str) -> bool:
        """Return whether a file compiles with a method replaced."""
        file = self._tree / path
        published = file.read_bytes()
        lines = published.decode(self._encoding).replace("\r\n", "\n").split("\n")
        put = "\n".join([*lines[: span[0]], text, *lines[span[1] :]])
        rmtree(self._changed, ignore_errors=True)
        file.write_bytes(put.encode(self._encoding))
        try:
            return self._compile([file], self._changed, [str(self._main)])
        finally:
            file.write_bytes(published)

    def notices(self, path: str, span: Sequence[int], text: str) -> bool:
        """Return whether replacing a method makes a test fail that passes without the change."""
        if not self.compiles(path, span, text):
            return False
        if self._baseline is None:
            self._baseline = self._failed([])
            assert _NO_END not in self._baseline, "the published code's tests do not end"
        return bool(self._failed([str(self._changed)]) - self._baseline)

    def _compile(self, files: Sequence[Path], to: Path, on: Sequence[str]) -> bool:
        return not self._errors(files, to, on)

    def _errors(self, files: Sequence[Path], to: Path, on: Sequence[str]) -> str:
        """Return javac's errors, or an empty text if the files compile."""
        to.mkdir(exist_ok=True)
        command = [
            "javac",
            *(f"-J{flag}" for flag in _SHORT_LIVED),
            "-proc:none",
            "-nowarn",
            "-Xmaxerrs",
            "9999",
            "-implicit:none",
            "-sourcepath",
            "/none",
        ]
        command += ["-encoding", self._encoding, "-cp", ":".join([*on, *self._jars]), "-d", str(to)]
        done = subprocess.run([*command, *map(str, files)], capture_output=True, text=True, check=False)
        return (done.stderr or "javac failed") if done.returncode else ""

    def _failed(self, first: Sequence[str]) -> set[str]:
        """Return the tests that fail if these classes come first on the class path."""
        work, reports = str(self._tree.parent), self._tree.parent / "reports"
        rmtree(reports, ignore_errors=True)
        box = ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", tempfile.gettempdir()]
        box += ["--bind", work, work, "--unshare-all", "--die-with-parent", "--chdir", str(self._tree)]
        path = ":".join([*first, str(self._main), str(self._test), *self._jars])
        java = [
            "java",
            *_SHORT_LIVED,
            "-Xmx640m",
            *self._flags,
            "-cp",
            path,
            "org.junit.platform.console.ConsoleLauncher",
        ]
        java += ["--details=none", f"--scan-classpath={self._test}", f"--reports-dir={reports}", *self._left_out]
        try:
            subprocess.run([*box, *java], capture_output=True, timeout=_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            return {_NO_END}
        found = [failed(report.read_text("utf-8", "replace")) for report in sorted(reports.glob("TEST-*.xml"))]
        return set().union(*found) if found else {_NO_END}


def _copy(folder: Path, to: Path) -> None:
    for path in sorted(folder.rglob("*")) if folder.is_dir() else ():
        if path.is_file() and path.suffix != ".java":
            place = to / path.relative_to(folder)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(path.read_bytes())
