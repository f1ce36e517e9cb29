# mypy: ignore-errors
"""Tests of our own for pysolbase 3.0.2, whose sdist has none. Expectations: the docstrings, and the package."""

import logging
import os

import pytest
from pysolbase.FileUtility import FileUtility
from pysolbase.SolBase import SolBase


def test_is_file_exist(tmp_path):
    there = tmp_path / "there"
    there.write_text("")
    assert FileUtility.is_file_exist(str(there)) is True
    assert FileUtility.is_file_exist(str(tmp_path / "not_there")) is False
    assert FileUtility.is_file_exist("") is False


@pytest.mark.parametrize(("encoding", "text"), [("utf-8", "é€\nb"), ("latin-1", "é"), ("utf-16", "é€"), ("utf-8", "")])
def test_file_to_textbuffer(tmp_path, encoding, text):
    there = tmp_path / "there"
    there.write_bytes(text.encode(encoding))
    assert FileUtility.file_to_textbuffer(str(there), encoding) == text


def test_file_to_textbuffer_gives_none_for_errors(tmp_path):
    there = tmp_path / "there"
    there.write_bytes("é and more".encode("latin-1"))
    assert FileUtility.file_to_textbuffer(str(there), "utf-8") is None
    assert FileUtility.file_to_textbuffer(str(there), "no-such-encoding") is None
    assert FileUtility.file_to_textbuffer(str(tmp_path / "not_there"), "utf-8") is None
    assert FileUtility.file_to_textbuffer(str(tmp_path), "utf-8") is None


def test_append_text_to_file(tmp_path):
    name = str(tmp_path / "new")
    FileUtility.append_text_to_file(name, "é1", "utf-8")
    FileUtility.append_text_to_file(name, "é2", "utf-8", False)
    assert (tmp_path / "new").read_bytes() == "é1é2".encode()
    FileUtility.append_text_to_file(name, "é3", "latin-1", overwrite=True)
    assert (tmp_path / "new").read_bytes() == "é3".encode("latin-1")


def test_append_text_to_file_tells_errors(tmp_path):
    assert FileUtility.append_text_to_file(str(tmp_path / "no" / "folder"), "a", "utf-8") < 0
    assert FileUtility.append_text_to_file(str(tmp_path), "a", "utf-8") < 0
    assert FileUtility.append_text_to_file(str(tmp_path / "a"), "é", "ascii") < 0
    assert FileUtility.append_text_to_file(str(tmp_path / "b"), "a", "no-such-encoding", overwrite=True) < 0


class OddError(Exception):
    pass


def _deep(levels):
    if levels:
        return _deep(levels - 1)
    raise OddError("what happened")


def _caught(levels, **more):
    try:
        _deep(levels)
    except OddError as error:
        return SolBase.extostr(error, **more)


def test_extostr_names_class_message_and_calls():
    text = _caught(2)
    assert "OddError" in text
    assert "what happened" in text
    assert text.count("_deep") == 3
    assert "_caught" in text
    assert text.index("_deep") < text.index("_caught")
    assert "test_pysolbase.py" in text
    assert text.startswith("e.cls:[OddError], e.bytes:[what happened], e.cs=[in:_deep#")
    assert text.endswith("]")


def test_extostr_names_the_callers_too():
    assert "in:test_extostr_names_the_callers_too#" in _caught(0)


def test_extostr_names_lines():
    code = _deep.__code__
    lines = {line for _, _, line in code.co_lines() if line}
    text = _caught(0).split("in:_deep#")[1].split(" ")[0]
    assert int(text.rsplit("@", 1)[1]) in lines


@pytest.mark.parametrize("most", [1, 2, 3])
def test_extostr_stops_at_the_level_asked_for(most):
    text = _caught(5, max_level=most)
    assert text.count("in:") == most
    assert text.endswith("...]")


def test_extostr_shortens_paths():
    place = _caught(0, max_path_level=1).split("in:_deep#")[1].split("@")[0]
    assert place == "...test_pysolbase.py"
    two = _caught(0, max_path_level=2).split("in:_deep#")[1].split("@")[0]
    assert two == os.sep.join(["...ctxbench_tests", "test_pysolbase.py"])
    assert _caught(0, max_path_level=100).split("in:_deep#")[1].split("@")[0] == _deep.__code__.co_filename


def test_extostr_of_an_exception_that_was_never_raised():
    assert SolBase.extostr(ValueError("é")).startswith("e.cls:[ValueError], e.bytes:[é], e.cs=[")


class Closing(logging.Handler):
    def __init__(self, fails=False):
        super().__init__()
        self.closed, self.fails = False, fails

    def close(self):
        super().close()
        self.closed = True
        if self.fails:
            raise OSError("cannot be closed")


@pytest.mark.parametrize("fails", [False, True])
def test_reset_logging(fails):
    root, other = logging.getLogger(), logging.getLogger("ctxbench.other")
    kept = root.handlers, root.level
    first, second = Closing(fails), Closing(fails)
    try:
        root.handlers, other.handlers = [first], [second]
        root.setLevel(logging.ERROR)
        other.setLevel(logging.DEBUG)
        SolBase._reset_logging()
        assert (root.handlers, other.handlers) == ([], [])
        assert (root.level, other.level) == (logging.INFO, logging.INFO)
        assert (first.closed, second.closed) == (True, True)
    finally:
        root.handlers = kept[0]
        root.setLevel(kept[1])
