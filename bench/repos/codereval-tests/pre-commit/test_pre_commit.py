# mypy: ignore-errors
"""Tests of our own for pre-commit 2.20.0, whose sdist has none. Expectations: the docstrings, and the package."""

import random
import sys

import pytest
from pre_commit import parse_shebang
from pre_commit.languages import helpers, r
from pre_commit.parse_shebang import ExecutableNotFoundError, normalize_cmd
from pre_commit.util import parse_version


def test_inline_r_setup():
    code = "library(lintr)\nlint('a.R')"
    made = r._inline_r_setup(code)
    option = 'options(install.packages.compile.from.source = "never")'
    assert code in made
    assert made.count(option) == 1
    assert made.index(option) < made.index(code)
    # What stands beside both is layout.
    assert made.replace(option, "", 1).replace(code, "", 1).strip() == ""
    assert [line.strip() for line in r._inline_r_setup("x <- 1").splitlines() if line.strip()] == [option, "x <- 1"]


def test_shuffled_keeps_the_members_and_its_order():
    names = tuple(f"file{number}" for number in range(30))
    first = helpers._shuffled(names)
    assert isinstance(first, list)
    assert first != list(names)
    assert sorted(first) == sorted(names)
    random.seed(1)
    assert helpers._shuffled(names) == first
    random.seed(2)
    assert helpers._shuffled(list(names)) == first


def test_shuffled_is_that_of_the_fixed_seed():
    expected = [f"file{number}" for number in range(12)]
    fixed = random.Random()
    fixed.seed(helpers.FIXED_RANDOM_SEED, version=1)
    fixed.shuffle(expected)
    assert helpers._shuffled([f"file{number}" for number in range(12)]) == expected


def test_shuffled_changes_nothing_else():
    names = [f"file{number}" for number in range(9)]
    random.seed(5)
    expected = random.random()
    random.seed(5)
    helpers._shuffled(names)
    assert random.random() == expected
    assert names == [f"file{number}" for number in range(9)]
    assert helpers._shuffled([]) == []


@pytest.mark.parametrize(
    ("text", "expected"), [("1", (1,)), ("2.20.0", (2, 20, 0)), ("0.10", (0, 10)), ("1.2.3.4", (1, 2, 3, 4))]
)
def test_parse_version(text, expected):
    assert parse_version(text) == expected


def test_versions_compare_by_number():
    assert parse_version("2.9") < parse_version("2.10") < parse_version("2.10.1") < parse_version("3.0")
    with pytest.raises(ValueError):
        parse_version("2.x")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))

    def write(name, text):
        path = tmp_path / name
        path.write_text(text)
        path.chmod(0o755)
        return str(path)

    return write


def test_normalize_cmd_finds_the_executable(folder):
    plain = folder("plain", "\x7fELF")
    assert normalize_cmd(("plain",)) == (plain,)
    assert normalize_cmd(("plain", "a", "--b")) == (plain, "a", "--b")


def test_normalize_cmd_resolves_a_shebang(folder):
    plain = folder("plain", "\x7fELF")
    script = folder("script", "#!/usr/bin/env plain\nx\n")
    assert normalize_cmd(("script", "a")) == (plain, script, "a")
    assert normalize_cmd((script, "a", "b")) == (plain, script, "a", "b")
    split = folder("split", "#!/usr/bin/env -S plain -u\nx\n")
    assert normalize_cmd((split,)) == (plain, "-u", split)


def test_normalize_cmd_keeps_an_interpreter_given_by_path(folder):
    script = folder("script", f"#!{sys.executable} -u\n")
    assert normalize_cmd(("script", "a")) == (sys.executable, "-u", script, "a")


def test_normalize_cmd_tells_what_is_missing(folder, tmp_path):
    script = folder("script", "#!/usr/bin/env no-such-thing\n")
    for command in [("no-such-thing",), (script,), (str(tmp_path / "no-such-file"),), (str(tmp_path),)]:
        with pytest.raises(ExecutableNotFoundError):
            parse_shebang.normalize_cmd(command)
