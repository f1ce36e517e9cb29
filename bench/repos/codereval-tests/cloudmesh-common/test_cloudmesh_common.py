# mypy: ignore-errors
"""Tests of our own for cloudmesh-common 4.3.159, whose sdist has none. Expectations: the docstrings, and the package.

What a function asks of the machine is put in its place: these hold wherever they run.
"""

import platform
import socket
import sys

import pytest
from cloudmesh.common import shlex, systeminfo, util
from cloudmesh.common.Shell import Shell


@pytest.mark.parametrize(("system", "expected"), [("Darwin", True), ("Linux", False), ("Windows", False), ("", False)])
def test_os_is_mac(monkeypatch, system, expected):
    monkeypatch.setattr(platform, "system", lambda: system)
    monkeypatch.setattr(sys, "platform", system.lower())
    assert systeminfo.os_is_mac() is expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", []),
        ("   ", []),
        ("a b  c", ["a", "b", "c"]),
        ("'a b' \"c d\"", ["a b", "c d"]),
        ("a'b'\"c\"d", ["abcd"]),
        ("''", [""]),
        ('a ""', ["a", ""]),
        (r"a\ b \'", ["a b", "'"]),
        (r'"a\"b\\c"', [r"a\"b\c".replace(r"\"", '"')]),
        (r"'a\b'", [r"a\b"]),
        ("a|b", ["a", "|", "b"]),
        ("a && b || c", ["a", "&&", "b", "||", "c"]),
        ("a 2>x <y", ["a", "2>", "x", "<", "y"]),
        ("a&", ["a", "&"]),
        ("|a", ["|", "a"]),
    ],
)
def test_split_posix(line, expected):
    assert shlex.split(line, platform=1) == expected


@pytest.mark.parametrize("line", ["'a", '"a', "a\\"])
def test_split_posix_refuses_what_is_incomplete(line):
    with pytest.raises(ValueError):
        shlex.split(line, platform=1)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (r"c:\a\b 'c d'", [r"c:\a\b", "'c", "d'"]),
        ('"a b" c', ["a b", "c"]),
        ('"a ""b"" c"', ['a "b" c']),
        (r'"a\"b"', ['a"b']),
        (r"\"a", ['"a']),
        ("a | b&&c", ["a", "|", "b", "&&", "c"]),
        ('""', [""]),
    ],
)
def test_split_windows(line, expected):
    assert shlex.split(line, platform=0) == expected


@pytest.mark.parametrize(("here", "expected"), [("linux", ["a\\b".replace("\\", "")]), ("win32", ["a\\b"])])
def test_split_by_default_as_this_platform_does(monkeypatch, here, expected):
    monkeypatch.setattr(sys, "platform", here)
    assert shlex.split("a\\b") == expected


@pytest.fixture
def _names(monkeypatch):
    monkeypatch.setattr(socket, "gethostname", lambda: "own")
    monkeypatch.setattr(platform, "node", lambda: "node")
    monkeypatch.setattr(socket, "gethostbyaddr", lambda name: (f"{name}.example.org", [], ["192.0.2.7"]))


@pytest.mark.usefixtures("_names")
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "own"])
def test_is_local(host):
    assert util.is_local(host) is True


@pytest.mark.usefixtures("_names")
@pytest.mark.parametrize("host", ["example.org", "198.51.100.1", "own2"])
def test_is_not_local(host):
    assert util.is_local(host) is False


@pytest.mark.parametrize("here", [True, False])
def test_is_gitbash(monkeypatch, here):
    # What Git's bash sets on Windows.
    for name, value in {"EXEPATH": r"C:\Program Files\Git\bin", "MSYSTEM": "MINGW64"}.items():
        if here:
            monkeypatch.setenv(name, value)
        else:
            monkeypatch.delenv(name, raising=False)
    assert util.is_gitbash() is here


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("", ""),
        ("ls", "ls"),
        ("\n    cd /tmp\n    ls -l\n", "cd /tmp && ls -l"),
        ("a\n  b\nc\n\n", "a &&   b && c"),
        ("\n  a\n    b\n  ", "a &&   b"),
        ("a\n\nb", "a &&  && b"),
    ],
)
def test_oneline(script, expected):
    assert Shell.oneline(script) == expected


def test_oneline_with_another_separator():
    assert Shell.oneline("a\nb\nc", seperator="; ") == "a; b; c"
    assert Shell.oneline("a\nb", "") == "ab"
