"""The core install stays small, and everything we pin is what the constraint file says."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]
LIMIT_MB = 160


def core() -> dict[str, Distribution]:
    """Return the distributions that `pip install ctxbench` brings, by name."""
    found: dict[str, Distribution] = {}
    wanted = ["ctxbench"]
    while wanted:
        name = wanted.pop()
        if name in found:
            continue
        found[name] = distribution(name)
        needs = [Requirement(text) for text in found[name].requires or ()]
        wanted += [need.name.lower() for need in needs if need.marker is None or need.marker.evaluate({"extra": ""})]
    return found


def test_core_install_is_under_its_limit() -> None:
    size = sum(
        path.stat().st_size
        for dist in core().values()
        for file in dist.files or ()
        if (path := Path(str(dist.locate_file(file)))).is_file()
    )
    assert size / 1e6 < LIMIT_MB


def test_core_holds_nothing_heavy() -> None:
    assert not {"torch", "scipy", "pandas", "transformers", "streamlit"} & set(core())


def test_every_direct_dependency_is_pinned_to_what_was_tested() -> None:
    pins = dict(re.findall(r"^([\w-]+)==(\S+)$", (ROOT / "constraints" / "cpu.txt").read_text(), re.M))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    for text in [*project["dependencies"], *extras["dev"]]:
        need = Requirement(text)
        assert need.name in pins, need.name
        assert need.specifier.contains(pins[need.name]), text


def test_nothing_but_ctxbench_lies_beside_other_packages() -> None:
    assert (distribution("ctxbench").read_text("top_level.txt") or "").split() == ["ctxbench"]
    for room in ("bench", "harness", "sandbox", "strategies", "dashboard"):
        assert (ROOT / "ctxbench" / room).resolve() == ROOT / room
        assert not any(path.is_symlink() for path in (ROOT / room).rglob("*"))


def test_every_extra_that_a_cure_or_a_page_names_is_there() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    code = [path for room in ("bench", "harness", "strategies", "dashboard") for path in (ROOT / room).rglob("*.py")]
    texts = [path.read_text(encoding="utf-8") for path in [*pages, *code]]
    named = {
        name
        for text in texts
        for group in re.findall(r"pip install -e '\.\[([\w,]+)\]", text)
        for name in group.split(",")
    }
    assert {"dashboard", "hf"} <= named <= set(extras)
