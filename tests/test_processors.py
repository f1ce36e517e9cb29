"""Numbers are equal bit for bit on every processor. This one imitates several others, also with two threads."""

import functools
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.helpers import processors
from tests.helpers.cli import run_cli

pytestmark = [pytest.mark.slow, pytest.mark.long]

SETTINGS = processors.settings()
COMMAND = "from ctxbench.harness.cli.main import main; main()"
STRATEGIES = ("lc.infile", "lc.repocoder", "lc.infercom(encoder=hashed)")


@functools.cache
def numbers(setting: str) -> dict[str, Any]:
    done = processors.python("-W", "error", "-m", "tests.helpers.all_numbers", setting=SETTINGS[setting])
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_the_settings_take_effect() -> None:
    cores = {name: environment.get("OPENBLAS_CORETYPE") for name, environment in SETTINGS.items()}
    expected = {name: (processors.CORES | processors.NEWEST)[core] for name, core in cores.items() if core}
    assert {name: processors.core(SETTINGS[name]) for name in expected} == expected
    products = {numbers(name)["raw"]["product"] for name in expected}
    assert len(products) == len(expected), "the kernels add in orders of their own"
    plain, usual = numbers("plain")["raw"], numbers("Haswell")["raw"]
    assert plain["exp"] != usual["exp"] and plain["libm"] != usual["libm"]


@pytest.mark.parametrize("setting", SETTINGS)
def test_every_number_is_equal_to_the_last_bit(setting: str) -> None:
    ours, first = numbers(setting)["ours"], numbers(next(iter(SETTINGS)))["ours"]
    assert [name for name in first if ours[name] != first[name]] == []
    assert ours == first


@functools.cache
def board(home: Path, setting: str) -> list[dict[str, Any]]:
    """Run strategies on real samples in a separate home for each setting; return the leaderboard without times.

    The leaderboard contains more digits than the printed tables.
    """
    own = home.parent / setting.replace(" ", "-")
    for part in ("repos", "samples"):
        shutil.copytree(home / part, own / part)
    chosen = ("run", "--samples", "real", "--generator", "incontext", "--home", str(own))
    strategies = [word for strategy in STRATEGIES for word in ("--strategy", strategy)]
    processors.python("-c", COMMAND, *chosen, *strategies, setting=SETTINGS[setting])
    shown = ("leaderboard", "--home", str(own), "--format", "json")
    rows = json.loads(processors.python("-c", COMMAND, *shown, setting=SETTINGS[setting]).stdout)
    return [{name: value for name, value in row.items() if not name.endswith("seconds")} for row in rows]


@pytest.fixture(scope="module")
def real_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("boards") / "home"
    result = run_cli("samples", "build", "real", "--repo", "fasta2a", "--per-repo", "6", "--home", str(home))
    assert result.code == 0, result.err
    return home


@pytest.mark.network
@pytest.mark.parametrize("setting", [name for name in SETTINGS if name in ("plain", "Haswell", *processors.NEWEST)])
def test_boards_are_equal_to_the_last_digit(real_home: Path, setting: str) -> None:
    found, first = board(real_home, setting), board(real_home, next(iter(SETTINGS)))
    assert len(found) == len(STRATEGIES) and all(
        row["n"] == 6 and row["missing"] == 0 and row["copyable_bits"] for row in found
    )
    assert found == first
