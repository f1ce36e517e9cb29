"""The adapter for Universal Ctags: with a fake program, and in a box if the real program is installed."""

import importlib
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ctxbench.bench.engines import conformance, inside, recipe
from ctxbench.sandbox.errors import SandboxUnavailable
from ctxbench.sandbox.types import Sandbox

PROGRAM = """#!{python}
import json, pathlib, sys
if "--version" in sys.argv:
    print("Universal Ctags 6.1.0, Copyright (C) 2015")
for path in sorted(pathlib.Path().rglob("*.py")) if sys.argv[-1] == "." else map(pathlib.Path, sys.argv[1:]):
    for number, line in enumerate(path.read_text().splitlines() if path.is_file() else (), 1):
        words = line.replace("(", " ").split()
        if words[:1] == ["def"]:
            tag = {{"_type": "tag", "name": words[1], "path": f"./{{path}}"}}
            print(json.dumps({{**tag, "line": number, "end": number + 1}}))
print(json.dumps({{"_type": "ptag", "name": "x"}}))
"""


@pytest.fixture
def ctags(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    program = tmp_path / "bin" / "ctags"
    program.parent.mkdir()
    program.write_text(PROGRAM.format(python=sys.executable))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent))
    # In a box, the module of that name is in the adapter's folder.
    monkeypatch.setitem(sys.modules, "ctxbench_engine", inside)
    module = importlib.import_module("ctxbench.bench.engines.adapters.tags")
    return module.Ctags(shown=1)


def test_definitions_of_near_and_rare_names_come_first(tmp_path: Path, ctags: Any) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    files = {"a.py": "def load(x):\n    pass\ndef save(x):\n    pass\n", "-b.py": "def load(y):\n    pass\n"}
    for name, text in {**files, "target.py": "def load(z):\n    pass\n"}.items():
        (tree / name).write_text(text)
    assert ctags.index(str(tree)) == ("ctags", "6.1.0")
    places = ctags.search("load(1)\nsave(2)\n", "target.py", 2, 9)
    assert [place[:3] for place in places] == [("a.py", 2, 3), ("-b.py", 0, 1), ("a.py", 0, 1)]
    assert len(ctags.search("load(1)\nsave(2)\n", "target.py", 2, 1)) == 1
    (tree / "-b.py").write_text("\n\ndef save(x):\n    pass\n")
    (tree / "a.py").unlink()
    ctags.update(["-b.py", "a.py"])
    assert [place[:3] for place in ctags.search("load(1)\nsave(2)\n", "target.py", 2, 9)] == [("-b.py", 2, 3)]


@pytest.mark.slow
def test_ctags_passes_the_check_or_its_missing_package_is_named(bubblewrap_sandbox: Sandbox) -> None:
    read = recipe.read("ctags")
    assert read.programs == ("universal-ctags",)
    dpkg = shutil.which("dpkg-query")
    if dpkg and subprocess.run([dpkg, "-s", "universal-ctags"], capture_output=True, check=False).returncode == 0:
        findings = list(conformance.check(read, bubblewrap_sandbox))
        assert len(findings) == 7 and all(finding.passed for finding in findings), findings
    else:
        with pytest.raises(SandboxUnavailable, match="universal-ctags"):
            list(conformance.check(read, bubblewrap_sandbox))
