# mypy: ignore-errors
"""Tests of our own for pre-commit 2.20.0, whose sdist has none. Expectations: the docstrings, and the package."""

import random
import sys

import pytest
from pre_commit import parse_shebang
from pre_commit.languages import helpers, r
from pre_commit.parse_shebang import ExecutableNotFoundError, normalize_cmd
from pre_commit.util import parse_version
from pre_commit.xargs import xargs


def test_inline_r_setup():
    # Which options are set is not said: that some are, before the code runs.
    code = "library(lintr)\nlint('a.R')"
    made = r._inline_r_setup(code)
    assert made.count(code) == 1
    assert 0 <= made.find("options(") < made.index(code)
    assert r._inline_r_setup("x <- 1") == made.replace(code, "x <- 1")


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


def test_shuffled_changes_nothing_else():
    names = [f"file{number}" for number in range(9)]
    helpers._shuffled(names)
    assert names == [f"file{number}" for number in range(9)]
    assert helpers._shuffled([]) == []


@pytest.mark.parametrize(
    ("text", "expected"), [("1", (1,)), ("2.20.0", (2, 20, 0)), ("0.10", (0, 10)), ("1.2.3.4", (1, 2, 3, 4))]
)
def test_parse_version(text, expected):
    assert parse_version(text) == expected


def test_versions_compare_by_number():
    assert parse_version("2.9") < parse_version("2.10") < parse_version("2.10.1") < parse_version("3.0")


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


ECHO = (sys.executable, "-c", "import sys; print(len(sys.argv) - 1, *sys.argv[1:])")


def test_xargs_runs_a_command_once():
    code, out = xargs(ECHO, ("a", "b", "c"))
    assert (code, out) == (0, b"3 a b c\n")
    assert xargs(ECHO, ()) == (0, b"0\n")


def test_xargs_splits_what_is_too_long():
    fits = sum(len(each) + 1 for each in ECHO) + 40
    code, out = xargs(ECHO, ("a" * 20, "b" * 20, "c" * 20), _max_length=fits)
    lines = out.decode().splitlines()
    assert code == 0
    assert len(lines) > 1
    assert [each for line in lines for each in line.split()[1:]] == ["a" * 20, "b" * 20, "c" * 20]


def test_xargs_splits_among_processes():
    names = tuple(f"n{number}" for number in range(8))
    _, out = xargs(ECHO, names, target_concurrency=2)
    lines = out.decode().splitlines()
    assert len(lines) == 2
    assert [each for line in lines for each in line.split()[1:]] == list(names)
    assert len(xargs(ECHO, names)[1].decode().splitlines()) == 1


def test_xargs_gives_the_greatest_status_and_all_output():
    exits = (
        sys.executable,
        "-c",
        "import sys; print('out'); sys.stderr.write('err'); sys.exit(max(map(int, sys.argv[1:])))",
    )
    code, out = xargs(exits, tuple("13000000"), target_concurrency=2)
    assert code == 3
    assert out.count(b"out") == 2
    assert out.count(b"err") == 2
    assert xargs(exits, ("0",))[0] == 0


def test_xargs_hands_on_what_it_does_not_know(tmp_path):
    where = (sys.executable, "-c", "import os; print(os.getcwd())")
    assert xargs(where, (), cwd=str(tmp_path)) == (0, f"{tmp_path.resolve()}\n".encode())


def test_xargs_of_a_command_that_is_missing():
    code, out = xargs(("no-such-command-here",), ("a",))
    assert code == 1
    assert b"no-such-command-here" in out


@pytest.mark.parametrize(("color", "expected"), [(False, b"False"), (True, b"True")])
def test_xargs_with_colours_has_a_terminal(color, expected):
    tells = (sys.executable, "-c", "import sys; print(sys.stdout.isatty())")
    code, out = xargs(tells, (), color=color)
    assert (code, out.strip()) == (0, expected)
