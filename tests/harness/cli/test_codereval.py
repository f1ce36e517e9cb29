"""`ctxbench codereval image`, and the official protocol from end to end, in a small image of our own."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from ctxbench.bench import samples as sets
from ctxbench.bench.codereval import image as images_of
from ctxbench.bench.codereval.image import ImageReport
from ctxbench.bench.home import Home
from ctxbench.bench.repositories.manifest import TestSuite
from ctxbench.bench.testing.java.build import sources
from ctxbench.bench.testing.suites import suite_of
from ctxbench.sandbox.docker import images
from ctxbench.sandbox.docker.engine import connected
from ctxbench.sandbox.types import Sandbox
from tests.bench.codereval import miniature
from tests.helpers.cli import assert_fault, run_cli
from tests.helpers.sandboxes import docker_sandbox

__all__ = ["docker_sandbox"]
TAG = f"ctxbench-test-miniature-{os.getpid()}"


def test_what_is_missing_ends_with_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def checked(image: str, tasks: tuple[object, ...], *, report: object) -> ImageReport:
        asked.append((image, len(tasks)))
        return ImageReport(present=("all of it",), missing=("one",) if tasks else ())

    monkeypatch.setattr(images_of, "check", checked)
    good = run_cli("codereval", "image", "check", "some:image")
    assert (good.code, good.out) == (0, "all of it\n")
    file = miniature.write(tmp_path, "python")
    bad = run_cli("codereval", "image", "check", "some:image", "--tasks", str(file))
    assert bad.out == "all of it\nmissing: one\n"
    assert_fault(bad, "some:image", "1 things are missing", "docs/codereval-image.md")
    assert asked == [("some:image", 0), ("some:image", 5)]


@pytest.fixture(scope="module")
def small(docker_sandbox: Sandbox) -> Iterator[str]:
    """Give the name of the miniature image, which is built on that of Java suites."""
    environment = sources(TestSuite(), {})
    docker_sandbox.prepare(environment, lambda _: None)
    with connected() as client:
        base = images.local_base(client, os.environ.get("CTXBENCH_BASE_IMAGE") or images.OFFICIAL)
        found = images.find(client, images.tag(environment, base or ""))
        assert found is not None
        miniature.build(client, found["Id"], TAG)
        yield TAG
        client.api.remove_image(TAG, force=True)


def judged(home: Home, name: str, forged: str) -> dict[str, list[str]]:
    """Return function -> verdicts of the reference, of an empty body and of what forges the protocol's verdict."""
    made = sets.load(home, name)
    rows = []
    for sample in made.samples:
        suite = suite_of(home, made, sample.repo)
        reference = made.references[sample.id].target
        head = reference.split("{")[0] if name == "java" else reference.split('"""')[0]
        texts = (reference, suite.blank(sample), head + forged)
        rows += [{"sample": sample.id, "text": text} for text in texts]
    file = home.root / "completions.jsonl"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    command = ("exec", "--samples", name, "--completions", str(file), "--sandbox", "docker", "--workers", "2")
    result = run_cli(*command, "--home", str(home.root))
    assert result.code == 0, result
    found: dict[str, list[str]] = {}
    names = {sample.id: sample.name or "" for sample in made.samples}
    for line in result.out.splitlines():
        row = json.loads(line)
        found.setdefault(names[row["sample"]], []).append(row["verdict"])
    return found


@pytest.mark.long
@pytest.mark.slow
def test_python_from_end_to_end(small: str, tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    place = ("--home", str(home.root))
    tasks = miniature.write(tmp_path, "python")
    checked = run_cli("codereval", "image", "check", small, "--tasks", str(tasks))
    assert_fault(checked, "1 things are missing")
    assert "1 projects, 4 test files" in checked.out and "nobody/elsewhere: no_test_file" in checked.out
    command = ("samples", "import", str(tasks), "--format", "codereval", "--name", "python", "--image", small)
    imported = run_cli(*command, *place)
    assert imported.code == 0 and "4 samples" in imported.out and "no_test_file 1" in imported.out, imported
    verified = run_cli("samples", "verify", "python", "--mark", "--sandbox", "docker", *place)
    assert verified.code == 0 and "reference 100.0% (4 of 4), blank 25.0% (1 of 4)" in verified.out, verified
    assert "1 vacuous" in verified.out
    assert judged(home, "python", "    import os; os._exit(0)\n") == {
        "Cart.total": ["PASSED", "FAILED", "PASSED"],
        "rounded": ["PASSED", "FAILED", "PASSED"],
        "longest": ["PASSED", "FAILED", "PASSED"],
        # The official tests do not ask what `keys` gives.
        "keys": ["PASSED", "PASSED", "PASSED"],
    }
    shown = run_cli("samples", "show", "python", *place)
    assert "official protocol" in shown.out and "can forge" in shown.out


@pytest.mark.long
@pytest.mark.slow
def test_java_from_end_to_end(small: str, tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    tasks = miniature.write(tmp_path, "java")
    command = ("samples", "import", str(tasks), "--format", "codereval", "--name", "java", "--image", small)
    imported = run_cli(*command, "--home", str(home.root))
    assert imported.code == 0 and "2 samples" in imported.out, imported
    forged = '{ System.out.println("true"); System.exit(0); throw new RuntimeException(); }\n'
    assert judged(home, "java", forged) == {
        "Text.shout": ["PASSED", "FAILED", "PASSED"],
        "Text.count": ["PASSED", "FAILED", "PASSED"],
    }
    broken = sets.load(home, "java").samples[0]
    file = tmp_path / "broken.jsonl"
    file.write_text(json.dumps({"sample": broken.id, "text": "private static String shout(String text) { return 1; }"}))
    place = ("--home", str(home.root), "--sandbox", "docker")
    result = run_cli("exec", "--samples", "java", "--completions", str(file), *place)
    (row,) = (json.loads(line) for line in result.out.splitlines())
    assert row["verdict"] == "FAILED" and row["reason"].startswith("compile error: "), row
