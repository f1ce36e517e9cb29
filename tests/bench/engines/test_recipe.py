"""TOML files that describe engines: every key is read, and each fault names file, key and cure."""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from ctxbench.bench.engines import recipe
from ctxbench.bench.engines.boxes import Engines
from ctxbench.bench.errors import InputFault
from ctxbench.bench.files import MAX_TEXT

COMMAND = 'command = ["my-server"]\n'
SEARCH = '[search]\ntool = "grep"\n'
MCP = COMMAND + SEARCH
PLACES = MCP + "[places]\n"
WRONG = [
    ("", "command: is missing", "program and its arguments"),
    ("", "search: is missing", "write [search]"),
    ('comand = ["x"]\n' + SEARCH, "comand: is not a known key", "did you mean 'command'"),
    (COMMAND + '[serch]\ntool = "grep"\n', "serch: is not a known key", "did you mean 'search'"),
    (COMMAND + 'search = "grep"\n', "search: is not a table", "write [search]"),
    (COMMAND + "[search]\n", "search.tool: is missing", "the server's tool"),
    (COMMAND + '[search]\ntool = "grep"\neach = "file"\n', "search.each: ", 'each = "name"'),
    (MCP + 'eech = "name"\n', "search.eech: is not a known key", "did you mean 'each'"),
    (MCP + "names = 0\n", "search.names: ", "identifiers"),
    (MCP + "arguments = { since = 2024-01-01 }\n", "search.arguments.since: 2024-01-01", "write dates in quotes"),
    (MCP + "arguments = { at = [{ since = 10:00:00 }] }\n", "search.arguments.at: ", "write dates in quotes"),
    (MCP + "arguments = { since = nan }\n", "search.arguments.since: nan", "cannot be sent as JSON"),
    ('command = "my-server"\n' + SEARCH, "command: ", "program and its arguments"),
    ("command = []\n" + SEARCH, "command: ", "program and its arguments"),
    ('requires = "mcp"\n' + MCP, "requires: ", "a list of pip requirements"),
    ("files = [7]\n" + MCP, "files[1]: ", "a list of files"),
    ("summary = 5\n" + MCP, "summary: ", "give a string"),
    ('start = "set"\n' + MCP, "start: ", "[[start]]"),
    (MCP + "[[start]]\narguments = {}\n", "start[1].tool: is missing", "the server's tool"),
    (MCP + "[variables]\nPORT = 1\n", "variables.PORT: ", "a table of strings"),
    (PLACES + 'base = "one"\n', "places.base: ", "0 or 1"),
    (PLACES + "pattern = '(?P<path>'\n", "places.pattern: ", "is not a valid regular expression"),
    (PLACES + "pattern = '(?P<path>.*):'\n", "places.pattern: ", "has no group (?P<line>"),
    (PLACES + "pattern = '(?P<line>.*):'\n", "places.pattern: ", "has no group (?P<path>"),
    (PLACES + "pattern = '(?P<line>.*):'\nfile = '.*'\n", "places.file: ", "has no group (?P<path>"),
    ('protocol = "lines"\n', "command: is missing", "program and its arguments"),
    ('protocol = "lines"\n' + MCP, "search: is not a known key", "known keys"),
    ('protocol = "http"\nurls = "http://h/"\n', "urls: is not a known key", "did you mean 'url'"),
    ('protocol = "MCP"\n', "protocol = 'MCP' is unknown", "mcp or lines or http"),
    ("command = [\n", "the file is not valid TOML", "correct the file"),
]


def written(folder: Path, text: str | bytes) -> str:
    file = folder / "mine.toml"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return str(file)


@pytest.mark.parametrize(("text", "what", "cure"), WRONG, ids=[f"{what}{cure}" for _, what, cure in WRONG])
def test_a_fault_names_file_key_and_cure(tmp_path: Path, text: str, what: str, cure: str) -> None:
    spec = written(tmp_path, text)
    with pytest.raises(InputFault) as caught:
        recipe.read(spec)
    faults = str(caught.value).split(" | ")
    assert [fault for fault in faults if fault.startswith(f"{spec}: {what}") and cure in fault], faults


def test_a_file_that_is_not_utf8_is_named(tmp_path: Path) -> None:
    spec = written(tmp_path, b'summary = "\xff"\n')
    with pytest.raises(InputFault, match=re.escape(spec) + ".*byte 11 is not UTF-8; save the file as UTF-8"):
        recipe.read(spec)


def test_every_key_is_read(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text("")
    spec = written(
        tmp_path,
        'summary = "Mine."\nprotocol = "mcp"\nrequires = ["x==1"]\nprograms = ["ripgrep"]\nfiles = ["server.py"]\n'
        'command = ["python", "{files}/server.py", ""]\nvariables = { HOME = "/tmp" }\n'
        '[[start]]\ntool = "open"\narguments = { path = "{root}" }\n[[update]]\ntool = "again"\n'
        '[search]\ntool = "grep"\neach = "name"\nnames = 3\nlines = 5\n'
        'arguments = { pattern = "{name}", deep = { on = true, sizes = [1, 0.5] } }\n'
        "[places]\nfile = '(?P<path>.+):$'\npattern = '(?P<line>\\d+)-(?P<end>\\d+)'\n"
        'path = "file"\nline = "row"\nend = "last"\nbase = 0\nbefore = 0\nafter = 1\n',
    )
    read = recipe.read(f"{spec}(mode=shared)")
    assert (read.summary, read.programs, read.files) == ("Mine.", ("ripgrep",), {"server.py": b""})
    assert read.requirements[-1] == "x==1" and read.arguments["config"]["search"]["names"] == 3


def test_a_program_with_the_lines_protocol_needs_only_a_command(tmp_path: Path) -> None:
    spec = written(tmp_path, 'protocol = "lines"\ncommand = ["my-engine"]\n')
    assert recipe.read(spec).arguments["config"]["command"] == ["my-engine"]


def _huge(folder: Path) -> None:
    with (folder / "server.py").open("wb") as file:
        file.truncate(MAX_TEXT + 1)


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda folder: (folder / "server.py").symlink_to(folder / "secret"), "is a link"),
        (lambda folder: (folder / "server.py").hardlink_to(folder / "secret"), "is a link, folder, pipe or device"),
        (lambda folder: os.mkfifo(folder / "server.py"), "is a link, folder, pipe or device"),
        (lambda folder: (folder / "server.py").mkdir(), "is a link, folder, pipe or device"),
        (_huge, "is larger than"),
    ],
)
def test_only_a_regular_file_without_links_enters_the_box(
    tmp_path: Path, make: Callable[[Path], None], what: str
) -> None:
    (tmp_path / "secret").write_text("the answers")
    make(tmp_path)
    with pytest.raises(InputFault, match=what) as caught:
        recipe.read(written(tmp_path, 'files = ["server.py"]\n' + MCP))
    assert "server.py" in str(caught.value)


@pytest.mark.parametrize(
    "name",
    ["/etc/passwd", "../secret", "a/b.py", ".", "..", "", ".hidden", "/proc/self/environ", "a\\b", "a" * 101],
)
def test_a_file_name_that_is_not_plain_is_refused(tmp_path: Path, name: str) -> None:
    text = f"files = [{json.dumps(name)}]\n" + MCP
    with pytest.raises(InputFault, match="a list of files beside this one"):
        recipe.read(written(tmp_path, text))


@pytest.mark.parametrize("inside", ["mine.toml", "folder/mine.toml"])
def test_no_file_enters_a_box_from_a_folder_with_answers(tmp_path: Path, inside: str) -> None:
    kept = tmp_path / "kept"
    folder = (kept / inside).parent
    folder.mkdir(parents=True)
    (folder / "samples.jsonl").write_text("the answers")
    spec = written(folder, 'files = ["samples.jsonl"]\n' + MCP)
    with Engines(pytest.fail) as engines:
        assert engines.read(spec).files
    linked = tmp_path / "linked"
    linked.symlink_to(folder)
    with Engines(pytest.fail, hidden=[kept]) as engines:
        for text in (spec, f"{linked}/mine.toml"):
            with pytest.raises(InputFault, match="in a folder that engines must not read"):
                engines.read(text)
    one_file = Engines(pytest.fail, hidden=[folder / "samples.jsonl"])
    with (
        one_file as engines,
        pytest.raises(InputFault, match=r"samples\.jsonl: the file is in a folder that engines must not"),
    ):
        engines.read(spec)
