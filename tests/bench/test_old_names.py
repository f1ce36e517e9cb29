"""Imports as they were before everything was installed as `ctxbench`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

OLD = """from bench.types import Query
from strategies import Context, Repository, Snippet, strategy
import strategies.api as api


@strategy("old")
def old(query: Query, repo: Repository) -> Context:
    \"\"\"Show nothing.\"\"\"
    return api.Context.ranked([])
"""


@pytest.mark.slow
def test_a_strategy_in_a_file_still_works_and_is_told_what_to_write(tmp_path: Path) -> None:
    file = tmp_path / "old.py"
    file.write_text(OLD)
    program = "from ctxbench.harness.cli.main import main; main()"
    command = [sys.executable, "-P", "-c", program, "strategy", "show", f"{file}@old"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    hint = (
        "`from bench import …` and `from strategies import …` will not work in the next version: "
        "write `from ctxbench.bench import …` and `from ctxbench import …`"
    )
    assert hint in done.stderr


def test_the_old_names_are_the_same_objects_and_change_ours_in_nothing() -> None:
    program = (
        "from ctxbench.bench import old_names, types; import ctxbench.strategies.api as api\n"
        "before = types.__spec__, types.__name__\n"
        "old_names.accept()\n"
        "import bench.types, strategies.api\n"
        "assert bench.types is types and strategies.api is api and (types.__spec__, types.__name__) == before\n"
        "from strategies.parameters import Inner; from ctxbench.strategies.parameters import Inner as moved\n"
        "import ctxbench; assert Inner is moved is ctxbench.Inner\n"
        "import strategies.infile, sys; assert strategies.infile is sys.modules['ctxbench.strategies.infile']\n"
        "try: import bench.nothing\n"
        "except ModuleNotFoundError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "No module named 'ctxbench.bench.nothing'\n"


def test_another_package_of_that_name_comes_first(tmp_path: Path) -> None:
    (tmp_path / "strategies.py").write_text("mine = True\n")
    program = "from ctxbench.bench import old_names; old_names.accept(); import strategies; print(strategies.mine)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout == "True\n"
