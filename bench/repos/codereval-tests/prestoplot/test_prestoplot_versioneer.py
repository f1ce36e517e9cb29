# mypy: ignore-errors
"""Tests of our own for functions of prestoplot 0.5.1's ``versioneer.py``; CoderEval took them from a file it makes.

Expectations: the docstrings, and the versions that versioneer is known for.
"""

import sys

import pytest
import versioneer


def pieces(**more):
    return {
        "error": None,
        "long": "abcdef0123",
        "short": "abcdef0",
        "closest-tag": "1.2",
        "distance": 3,
        "dirty": True,
        "branch": "side",
        "date": "2022-01-01",
        **more,
    }


@pytest.mark.parametrize(("tag", "expected"), [("1.2", "+"), ("1.2+x", "."), ("+", "."), ("", "+")])
def test_plus_or_dot(tag, expected):
    assert versioneer.plus_or_dot({"closest-tag": tag}) == expected


def test_plus_or_dot_without_tag():
    assert versioneer.plus_or_dot({}) == "+"


@pytest.mark.parametrize(
    ("style", "version"),
    [
        ("pep440", "1.2+3.gabcdef0.dirty"),
        ("default", "1.2+3.gabcdef0.dirty"),
        ("", "1.2+3.gabcdef0.dirty"),
        (None, "1.2+3.gabcdef0.dirty"),
        ("pep440-branch", "1.2.dev0+3.gabcdef0.dirty"),
        ("pep440-pre", "1.2.post0.dev3"),
        ("pep440-post", "1.2.post3.dev0+gabcdef0"),
        ("pep440-post-branch", "1.2.post3.dev0+gabcdef0.dirty"),
        ("pep440-old", "1.2.post3.dev0"),
        ("git-describe", "1.2-3-gabcdef0-dirty"),
        ("git-describe-long", "1.2-3-gabcdef0-dirty"),
    ],
)
def test_render(style, version):
    assert versioneer.render(pieces(), style) == {
        "version": version,
        "full-revisionid": "abcdef0123",
        "dirty": True,
        "error": None,
        "date": "2022-01-01",
    }


@pytest.mark.parametrize(
    ("style", "version"), [("pep440", "1.2"), ("git-describe", "1.2"), ("git-describe-long", "1.2-0-gabcdef0")]
)
def test_render_of_a_tag_itself(style, version):
    made = versioneer.render(pieces(distance=0, dirty=False), style)
    assert (made["version"], made["dirty"]) == (version, False)


def test_render_without_date():
    given = pieces()
    del given["date"]
    assert versioneer.render(given, "pep440")["date"] is None


def test_render_of_an_error():
    expected = {"version": "unknown", "full-revisionid": "abcdef0123", "dirty": None, "error": "no", "date": None}
    assert versioneer.render(pieces(error="no"), "pep440") == expected
    assert versioneer.render({"error": "no"}, "odd") == {**expected, "full-revisionid": None}


def test_render_knows_its_styles():
    with pytest.raises(ValueError, match="odd"):
        versioneer.render(pieces(), "odd")


def test_register_vcs_handler(monkeypatch):
    held = {"git": {"kept": 1}}
    monkeypatch.setattr(versioneer, "HANDLERS", held)

    @versioneer.register_vcs_handler("git", "one")
    def one():
        return 1

    @versioneer.register_vcs_handler("hg", "two")
    def two():
        return 2

    assert (one(), two()) == (1, 2)
    assert held == {"git": {"kept": 1, "one": one}, "hg": {"two": two}}


HERE = [sys.executable]


def test_run_command():
    assert versioneer.run_command(HERE, ["-c", "print('  said  ')"]) == ("said", 0)
    assert versioneer.run_command(["no-such-command-here", *HERE], ["-c", "print(1)"]) == ("1", 0)


def test_run_command_in_a_folder_and_environment(tmp_path):
    code = "import os; print(os.getcwd(), os.environ.get('CTXBENCH_SAID'))"
    made = versioneer.run_command(HERE, ["-c", code], cwd=str(tmp_path), env={"CTXBENCH_SAID": "this"})
    assert made == (f"{tmp_path.resolve()} this", 0)


def test_run_command_that_fails():
    assert versioneer.run_command(HERE, ["-c", "import sys; print('x'); sys.exit(3)"]) == (None, 3)
    assert versioneer.run_command(HERE, ["-c", "print('x'); raise SystemExit(4)"], verbose=True) == (None, 4)


def test_run_command_that_is_not_there():
    assert versioneer.run_command(["no-such-command-here"], []) == (None, None)
    assert versioneer.run_command(["no-such-command-here"], [], verbose=True) == (None, None)


def test_run_command_hides_errors(capfd):
    code = "import sys; sys.stderr.write('complaint'); print('ok')"
    assert versioneer.run_command(HERE, ["-c", code], hide_stderr=True) == ("ok", 0)
    assert "complaint" not in capfd.readouterr().err
    assert versioneer.run_command(HERE, ["-c", code]) == ("ok", 0)
    assert "complaint" in capfd.readouterr().err
