import contextlib
import errno
import fcntl
import functools
import importlib
import json
import mmap
import os
import socket
import subprocess
import sys
import tempfile
import termios
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ctxbench.bench.errors import InputFault, MachineFault
from ctxbench.bench.retrieval.retrieval import NoRanker
from ctxbench.bench.types import Kind
from ctxbench.harness.cells import InlineCells, StrategyFault, copies, open_cells, pool, wire
from ctxbench.harness.cells.pool import ForkedCells
from ctxbench.harness.cells.process import MOST, MOST_OF_CELL, SHIPPED_ANSWERS, Remarks, scratch_folder
from ctxbench.harness.cells.protocol import StrategyBounds
from ctxbench.harness.cells.server import _ABSENT, _JUDGED, _NEWEST, _REFUSED_CALLS
from ctxbench.sandbox.guest import landlock, seccomp
from ctxbench.strategies.api import Prompt
from ctxbench.strategies.tiny import query_for, view_for
from tests.harness.cells.confined import granted, switch_off
from tests.helpers.extras import missing
from tests.helpers.filters import run_filter
from tests.helpers.models import Model

QUERY = query_for(Kind.LINE)
FILE = '''
import ctypes, os, socket, sys, time, tempfile, pathlib
from ctxbench.strategies import *
from ctxbench.strategies.layout import infile_prompt


@strategy("raises")
def raises(query: Query, repo: Repository) -> Context:
    raise KeyError("no such cart")


@strategy("leaves")
def leaves(query: Query, repo: Repository) -> Context:
    os._exit(7)


@strategy("exits")
def exits(query: Query, repo: Repository) -> Context:
    sys.exit("enough")


@strategy("killed")
def killed(query: Query, repo: Repository) -> Context:
    # As the first process of its namespace it can send itself no signal; the kernel can.
    ctypes.string_at(0)


@strategy("hangs")
def hangs(query: Query, repo: Repository) -> Context:
    time.sleep(60)


@strategy("nothing")
def nothing(query: Query, repo: Repository) -> Context:
    return None


@strategy("garbage")
def garbage(query: Query, repo: Repository, *, raw: str = "") -> Context:
    for number in range(3, 64):
        try:
            channel = socket.socket(fileno=os.dup(number))
            channel.sendall(bytes.fromhex(raw))
        except OSError:
            pass
    os._exit(0)


@strategy("loud")
def loud(query: Query, repo: Repository) -> Prompt:
    """Prints."""
    print("a remark", flush=True)
    return infile_prompt(query, 100)


@strategy("unknown-file")
def unknown_file(query: Query, repo: Repository) -> Context:
    repo.read("/etc/passwd")


@strategy("shut-in")
def shut_in(query: Query, repo: Repository) -> Context:
    seen = []
    for path in ("/etc/zq", "/tmp/zq", os.path.expanduser("~/zq"), os.path.join(os.getcwd(), "zq")):
        try:
            pathlib.Path(path).write_text("x")
            seen.append("wrote " + path)
        except OSError:
            pass
    with tempfile.NamedTemporaryFile("w+") as own:
        own.write("own"); own.seek(0); seen.append(own.read())
    pathlib.Path("/dev/null").write_text("gone")
    for family, kind in (("INET", "STREAM"), ("INET", "DGRAM"), ("INET6", "STREAM"), ("UNIX", "STREAM")):
        try:
            socket.socket(getattr(socket, "AF_" + family), getattr(socket, "SOCK_" + kind))
            seen.append("socket")
        except OSError:
            pass
    seen.append(",".join(sorted(name for name in os.environ if "CTX" in name or "KEY" in name)))
    return Context((Snippet(path="a.py", text="|".join(seen)),))


@strategy("drafts")
def drafts(query: Query, repo: Repository, generate: Generate) -> Prompt:
    answer = generate(infile_prompt(query, 50), role="sketch", max_tokens=7)
    return Prompt(blocks=(Block(kind=BlockKind.TEXT, text=answer),))
'''

SEARCHES = '''
from ctxbench.strategies import *


@strategy("searches", kinds=(Kind.LINE, Kind.FUNCTION))
def searches(query: Query, repo: Repository, *, ranker: str = "hashed", asked: str = "") -> Prompt:
    """Looks for everything and writes down what it is told."""
    found = [
        repo.search("apply_tax(cart.total, rate)", unit=unit, ranker=ranker or asked, top=3)
        for unit in ("function", "chunk(lines=4)", "usage", "summary")
    ]
    told = repr((found, repo.similarity("cart", ("the cart", "tax"), ranker=ranker)))
    return Prompt(blocks=(Block(kind=BlockKind.TEXT, text=told),))


@strategy("asks")
def asks(query: Query, repo: Repository, *, of: str = "search", text: int = 1, given: str = "x") -> Prompt:
    """Asks what cannot be answered."""
    if of == "similarity":
        repo.similarity(given, ["y" * text], ranker="bm25")
    elif of == "listless":
        repo.similarity(given, [1, 2], ranker="bm25")
    elif of == "textless":
        repo.search(None, ranker="bm25")
    else:
        repo.search(given, unit=of, ranker="bm25", top=text)


@strategy("chooses")
def chooses(query: Query, repo: Repository) -> Prompt:
    """Has its own mind about encoders."""
    repo.search("x", ranker="minilm(path=/etc)")
'''


@pytest.fixture
def needs_landlock() -> None:
    """Skip a test of the kernel's isolation on kernels without Landlock."""
    if not landlock.abi():
        missing("no Landlock on this kernel")


@pytest.fixture
def without_namespaces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Start cells without namespaces, as in most containers."""
    folder = tmp_path / "less"
    folder.mkdir()
    switch_off(folder, monkeypatch, namespaces=True)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("strategies") / "odd.py"
    path.write_text(FILE)
    return path


@pytest.fixture(scope="module")
def cells() -> Iterator[ForkedCells]:
    with open_cells([Path("/nowhere/home")], 4, limits=StrategyBounds(wait=5)) as opened:
        assert isinstance(opened, ForkedCells)
        yield opened


_generate = Model(lambda prompt, role, max_tokens: f"{role} {max_tokens} {len(prompt.text)}")


def _run(cells: ForkedCells, spec: str) -> Prompt:
    return cells.run(spec, QUERY, view_for(QUERY), _generate)


@pytest.mark.parametrize("spec", ["lc.infile", "lc.infile(limit=9)", "lc.repocoder", "lc.repocoder(iterations=3)"])
def test_a_cell_builds_the_same_prompt_as_this_process(cells: ForkedCells, spec: str) -> None:
    assert _run(cells, spec) == InlineCells().run(spec, QUERY, view_for(QUERY), _generate)


def test_a_cell_builds_the_same_card_as_this_process(cells: ForkedCells, file: Path) -> None:
    for spec in ("lc.repocoder(iterations=2, stride=5)", f"{file}@loud"):
        assert cells.card(spec) == InlineCells().card(spec)
    assert cells.card("lc.repocoder(iterations=2)").spec == "lc.repocoder"


@pytest.mark.slow
@pytest.mark.parametrize("wrapped", [False, True])
def test_a_strategy_stops_when_a_file_that_it_imports_is_edited(tmp_path: Path, wrapped: bool) -> None:
    (tmp_path / "neighbour.py").write_text("WORDS = 'first'\n")
    (tmp_path / "mine.py").write_text(
        "import neighbour\nfrom ctxbench import *\n"
        "@strategy('mine')\ndef mine(query: Query, repo: Repository) -> Context:\n"
        "    return Context((Snippet(path='a', text=neighbour.WORDS),))\n"
    )
    name = f"{tmp_path}/mine.py@mine"
    spec = f"aim({name}, encoder=bm25)" if wrapped else name
    with open_cells([], 1) as cells:
        assert "first" in _run(cells, spec).text
        before = cells.card(spec).version
        (tmp_path / "neighbour.py").write_text("WORDS = 'second'\n")
        with pytest.raises(StrategyFault, match="mine.py@mine was edited"):
            _run(cells, spec)
    with open_cells([], 1) as cells:
        assert "second" in _run(cells, spec).text and cells.card(spec).version != before


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("raises", "KeyError: 'no such cart'"),
        ("leaves", "ended without an answer"),
        ("exits", "SystemExit: enough"),
        ("killed", "ended without an answer"),
        ("nothing", "returned NoneType"),
        ("unknown-file", "take a path from repo.files()"),
        ("garbage(raw='00000003616263')", "garbage"),
        ("garbage(raw='ffffffff')", "garbage"),
        ("garbage(raw='000000025b5d')", "garbage"),
        ("garbage(raw='000000027b7d')", "the keys nothing instead of prompt"),
        ("garbage(raw='0000000c7b2263616c6c223a2278227d')", "garbage"),
        ("garbage(raw='0000000b7b2263616c6c223a5b5d7d')", "garbage"),
    ],
)
def test_a_strategys_fault_is_one_line(cells: ForkedCells, file: Path, name: str, words: str) -> None:
    with pytest.raises(StrategyFault) as caught:
        _run(cells, f"{file}@{name}")
    line = str(caught.value)
    assert words in line and QUERY.id in line and str(file) in line and "\n" not in line
    assert ("Traceback" in caught.value.traceback) == ("the strategy raised" in line)
    assert _run(cells, "lc.infile").blocks  # the fault does not affect the next sample


@pytest.mark.slow
def test_a_strategy_that_hangs_is_stopped(file: Path) -> None:
    with open_cells([], 1, limits=StrategyBounds(wait=0.5)) as cells:
        began = time.monotonic()
        with pytest.raises(StrategyFault, match="idle for more than"):
            cells.run(f"{file}@hangs", QUERY, view_for(QUERY), _generate)
        assert time.monotonic() - began < 5
        assert cells.run("lc.infile", QUERY, view_for(QUERY), _generate).blocks


@pytest.mark.slow
def test_waiting_for_the_model_takes_no_time_or_slot_of_the_strategy(file: Path) -> None:
    """Two samples wait for the model at once, although only one strategy may work at a time."""
    meeting = threading.Barrier(2, timeout=10)

    def answer(prompt: Prompt, role: str, max_tokens: int) -> str:
        meeting.wait()
        time.sleep(0.6)
        return f"{role} {max_tokens}"

    with open_cells([], 1, limits=StrategyBounds(wait=0.5)) as cells:

        def one(_: int) -> str:
            return cells.run(f"{file}@drafts", QUERY, view_for(QUERY), Model(answer)).text

        with ThreadPoolExecutor(2) as pool:
            assert list(pool.map(one, range(2))) == ["sketch 7", "sketch 7"]


@pytest.fixture(scope="module")
def searching(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("strategies") / "searching.py"
    path.write_text(SEARCHES)
    return path


@pytest.mark.parametrize("kind", list(Kind))
@pytest.mark.parametrize("ranker", ["hashed", "bm25", "'hashed(width=64)'"])
def test_a_cell_finds_the_same_search_results_as_this_process(
    cells: ForkedCells, searching: Path, kind: Kind, ranker: str
) -> None:
    query, spec = query_for(kind), f"{searching}@searches(ranker={ranker})"
    there = cells.run(spec, query, view_for(query), _generate)
    assert there == InlineCells().run(spec, query, view_for(query), _generate)
    assert "price_rules" in there.text and "matched='apply_tax(amount, rate)'" in there.text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("of=windows", "no unit is called 'windows'"),
        ("of=function, text=0", "whole number from 1"),
        ("of=similarity, text=1000001", "more than 1000000 characters"),
        ("of=listless", "TypeError: similarity: candidates[0] is 1, and should be of type str (searching.py:"),
        ("of=textless", "TypeError: search: text is None, and should be of type str (searching.py:"),
    ],
)
def test_an_invalid_question_is_the_strategys_fault(
    cells: ForkedCells, searching: Path, arguments: str, words: str
) -> None:
    with pytest.raises(StrategyFault) as caught:
        _run(cells, f"{searching}@asks({arguments})")
    assert words in str(caught.value) and "\n" not in str(caught.value)


def test_a_strategy_cannot_open_files_through_an_encoder_of_its_choice(cells: ForkedCells, searching: Path) -> None:
    with pytest.raises(StrategyFault, match="may not choose the ranker 'minilm\\(path=/etc\\)' itself"):
        _run(cells, f"{searching}@chooses")
    # The user's own value is accepted. It then fails because the folder does not exist.
    with pytest.raises(NoRanker):
        _run(cells, f"{searching}@searches(ranker=minilm(path=/nowhere))")


@pytest.mark.slow
def test_waiting_for_a_search_is_not_the_strategys_time(searching: Path) -> None:
    class Slow:
        """A view whose searches together take longer than a strategy may wait."""

        name, language = "tiny", QUERY.language

        def __getattr__(self, name: str) -> object:
            return getattr(view_for(QUERY), name)

        def search(self, *given: object, **named: object) -> object:
            time.sleep(0.4)
            return view_for(QUERY).search(*given, **named)  # type: ignore[arg-type]

    with open_cells([], 1, limits=StrategyBounds(wait=1.0)) as cells:
        assert cells.run(f"{searching}@searches", QUERY, Slow(), _generate).blocks  # type: ignore[arg-type]


@pytest.mark.parametrize("error", [MachineFault("the server is down"), ConnectionResetError("peer"), EOFError()])
def test_a_fault_of_the_model_reaches_the_caller_unchanged(cells: ForkedCells, file: Path, error: Exception) -> None:
    def answer(prompt: Prompt, role: str, max_tokens: int) -> str:
        raise error

    with pytest.raises(type(error)) as caught:
        cells.run(f"{file}@drafts", QUERY, view_for(QUERY), Model(answer))
    assert caught.value is error


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("lc.repocodr", "did you mean lc.repocoder"),
        ("lc.repocoder(size=3)", "known parameters: iterations"),
        ("lc.repocoder(stride=0)", "at least 1"),
        ("nowhere.py@x", "no such file"),
        ("lc.repocoder(", "write it as name(key=value"),
    ],
)
def test_an_invalid_spec_is_the_users_fault_not_the_strategys(cells: ForkedCells, spec: str, words: str) -> None:
    for ask in (lambda: _run(cells, spec), lambda: cells.card(spec)):
        with pytest.raises(InputFault) as caught:
            ask()
        assert words in str(caught.value) and not isinstance(caught.value, StrategyFault)


@pytest.mark.slow
@pytest.mark.usefixtures("needs_landlock")
def test_a_cell_writes_only_to_its_own_folder_and_has_no_network(
    file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "secret")
    monkeypatch.setenv("HOME", str(tmp_path))
    with open_cells([], 1) as cells:
        assert cells.describe() == {
            "isolation": "process+landlock+namespaces" if granted() else "process+landlock",
            "landlock": str(landlock.abi()),
            "syscalls": "filtered",
        }
        text = cells.run(f"{file}@shut-in", QUERY, view_for(QUERY), _generate).text
    assert "# own|\n" in text, text


@pytest.mark.slow
def test_printed_text_goes_to_stderr_only(cells: ForkedCells, file: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with open_cells([], 1) as own:
        own.run(f"{file}@loud", QUERY, view_for(QUERY), _generate)
    out, err = capfd.readouterr()
    assert out == "" and "a remark" in err


@pytest.mark.slow
def test_cells_leave_no_descriptor_process_or_file(cells: ForkedCells, file: Path) -> None:
    _run(cells, "lc.infile")
    with contextlib.suppress(StrategyFault):
        _run(cells, f"{file}@raises")  # this starts the server of the folder
    before = len(os.listdir("/proc/self/fd"))
    for spec in ["lc.repocoder"] * 10 + [f"{file}@raises"] * 3 + [f"{file}@leaves"] * 3:
        with contextlib.suppress(StrategyFault):
            _run(cells, spec)
    assert len(os.listdir("/proc/self/fd")) == before
    for server in cells._servers.values():
        folder = Path(f"/proc/{server.process.pid}")
        children = (folder / "task" / folder.name / "children").read_text().split()
        if children and granted():
            folder = Path(f"/proc/{children[0]}")  # the process that forks, in its own namespace
        assert len(os.listdir(folder / "fd")) <= 6
        _until_empty((folder / "task" / folder.name / "children").read_text)
        _until_empty(functools.partial(os.listdir, server.scratch))


def _until_empty(look: object) -> None:
    end = time.monotonic() + 5
    while look():  # type: ignore[operator]
        assert time.monotonic() < end
        time.sleep(0.01)


def test_many_threads_get_their_own_answers(cells: ForkedCells) -> None:
    specs = [f"lc.infile(limit={limit})" for limit in range(1, 25)]
    with ThreadPoolExecutor(len(specs)) as pool:
        found = list(pool.map(lambda spec: _run(cells, spec), specs))
    assert found == [InlineCells().run(spec, QUERY, view_for(QUERY), _generate) for spec in specs]


def test_a_killed_server_is_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    cells = ForkedCells([], 1, StrategyBounds())
    _run(cells, "lc.infile")
    lost = cells._server()
    lost.process.kill()
    lost.process.wait()
    _run(cells, "lc.infile")
    assert cells._server() is not lost and not lost.scratch.exists()
    # After too many restarts, the sample fails and stays missing.
    monkeypatch.setattr(pool, "_MOST_RESTARTS", 1)
    cells._server().process.kill()
    cells._server().process.wait()
    with pytest.raises(MachineFault, match="run the same command again"):
        _run(cells, "lc.infile")
    cells.close()


@pytest.mark.slow
def test_a_cell_that_cannot_be_started_is_a_machine_fault(
    without_namespaces: None, capfd: pytest.CaptureFixture[str]
) -> None:
    cells = ForkedCells([], 1, StrategyBounds())
    cells._server().scratch.rmdir()  # as on a full disk, where no folder can be created
    with pytest.raises(MachineFault, match="run the same command again"):
        _run(cells, "lc.infile")
    cells.close()
    assert "free memory, processes or disk space" in capfd.readouterr().err


def test_the_next_run_removes_the_folder_of_a_killed_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    left, fresh = tmp_path / "ctxbench-cells-left", tmp_path / "ctxbench-cells-fresh"
    (left / "7").mkdir(parents=True)
    fresh.mkdir()
    os.utime(left, (0, 0))
    with scratch_folder() as mine:
        os.utime(mine, (0, 0))
        with scratch_folder() as other:
            assert sorted(tmp_path.iterdir()) == sorted([fresh, mine, other])
    assert list(tmp_path.iterdir()) == [fresh]


def test_hidden_paths_are_excluded_from_the_visible_ones(tmp_path: Path) -> None:
    (tmp_path / "home" / "samples").mkdir(parents=True)
    (tmp_path / "beside").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "home")
    shown = landlock.visible([tmp_path / "home", tmp_path / "not-yet"])
    real = tmp_path.resolve()
    assert str(real / "beside") in shown
    for path in shown:
        assert not (real / "home").is_relative_to(path) and not (real / "not-yet").is_relative_to(path), path
        assert not Path(path).is_symlink()
    assert landlock.visible([]) == ["/"]


def test_the_filter_refuses_every_listed_call() -> None:
    for architecture, column in seccomp.MACHINES.values():
        listed = {seccomp.NUMBERS[name][column] for name in _REFUSED_CALLS}
        code = seccomp.program(architecture, column, _REFUSED_CALLS)
        assert {run_filter(code, architecture, number) for number in listed if number} == {seccomp.ERROR | 1}


@pytest.mark.parametrize("machine", seccomp.MACHINES)
def test_the_filter_decides_calls_by_an_argument(machine: str) -> None:
    architecture, column = seccomp.MACHINES[machine]
    code = seccomp.program(architecture, column, [], _ABSENT, (), _JUDGED, _NEWEST + 1)

    def answered(call: str, *arguments: int) -> int:
        number = seccomp.NUMBERS[call][column]
        assert number is not None
        return run_filter(code, architecture, number, *arguments)

    taken, refused = seccomp.ERROR, seccomp.ERROR | errno.EINVAL
    assert answered("fcntl", 9, fcntl.F_SETFL) == seccomp.ALLOW
    assert answered("fcntl", 9, fcntl.F_SETLK) == answered("flock", 9, fcntl.LOCK_EX | fcntl.LOCK_NB) == taken
    assert answered("fcntl", 9, fcntl.F_SETLEASE) == answered("fcntl", 9, fcntl.F_GETLK) == refused
    assert answered("ioctl", 9, termios.TIOCSTI) == seccomp.ERROR | errno.ENOTTY
    assert answered("ioctl", 9, termios.TCGETS) == seccomp.ALLOW
    assert answered("madvise", 0, 0) == seccomp.ALLOW
    private, shared, anonymous = mmap.MAP_PRIVATE, mmap.MAP_SHARED, mmap.MAP_ANONYMOUS
    assert answered("mmap", 0, 9, 3, private | anonymous) == answered("mmap", 0, 9, 3, shared) == seccomp.ALLOW
    assert answered("mmap", 0, 9, 3, shared | anonymous | 0x4000) == seccomp.ERROR | errno.EPERM
    assert answered("memfd_create") == seccomp.ERROR | errno.ENOSYS
    assert answered("socket", socket.AF_UNIX) == seccomp.ERROR | errno.EAFNOSUPPORT
    assert answered("clone", 0x10000000) == seccomp.ERROR | errno.EPERM
    assert run_filter(code, architecture, _NEWEST + 1) == seccomp.ERROR | errno.ENOSYS
    assert run_filter(code, architecture, _NEWEST) == seccomp.ALLOW


LISTS = """
import os
from ctxbench.strategies import *


@strategy("lists")
def lists(query: Query, repo: Repository, *, at: str = "") -> Context:
    try:
        text = " ".join(os.listdir(at)) or "zq empty"
    except OSError as error:
        text = f"zq {error}"
    return Context((Snippet(path="a", text=text),))
"""


@pytest.mark.slow
@pytest.mark.usefixtures("needs_landlock")
@pytest.mark.parametrize("namespaces", [True, False])
@pytest.mark.parametrize("shipped", SHIPPED_ANSWERS, ids=lambda folder: folder.name)
def test_no_cell_reads_the_shipped_answers(
    namespaces: bool, shipped: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if not namespaces:
        request.getfixturevalue("without_namespaces")
    file = tmp_path / "lists.py"
    file.write_text(LISTS)
    names = [path.name for path in shipped.iterdir()]
    assert names
    with open_cells([], 1) as cells:
        for folder in (shipped, shipped.resolve()):
            text = cells.run(f"{file}@lists(at='{folder}')", QUERY, view_for(QUERY), _generate).text
            assert "zq" in text and not any(name in text for name in names), text


@pytest.mark.slow
@pytest.mark.usefixtures("needs_landlock")
def test_a_cell_sees_only_its_strategys_folder_of_the_users_files(tmp_path: Path) -> None:
    if not granted():
        missing("no namespaces on this kernel")
    mine, other = tmp_path / "mine", tmp_path / "other"
    for folder in (mine, other):
        folder.mkdir(mode=0o700)
        (folder / "words.txt").write_text("zq words of a file")
        (folder / "words.txt").chmod(0o600)
    (mine / "neighbour.py").write_text("WORDS = 'zq words of a neighbour'\n")
    (mine / "looks.py").write_text(
        "import neighbour, pathlib\nfrom ctxbench.strategies import *\n"
        "@strategy('looks')\ndef looks(query: Query, repo: Repository, *, at: str = '') -> Context:\n"
        "    try:\n        text = pathlib.Path(at).read_text()\n"
        "    except OSError as error:\n        text = str(error)\n"
        "    return Context((Snippet(path='a', text=neighbour.WORDS + text),))\n"
    )
    (mine / "hidden.txt").write_text("zq words of a hidden file")
    with open_cells([mine / "hidden.txt"], 1) as cells:

        def seen(at: Path) -> str:
            return cells.run(f"{mine}/looks.py@looks(at='{at}')", QUERY, view_for(QUERY), _generate).text

        assert "zq words of a neighbour" in seen(mine) and "zq words of a file" in seen(mine / "words.txt")
        assert "zq words of a file" not in seen(other / "words.txt") and "No such file" in seen(other)
        assert "zq words of a hidden" not in seen(mine / "hidden.txt")
        # A cell of a wrapper also sees the folder of the wrapped strategy.
        assert "zq words of a neighbour" in _run(cells, f"aim({mine}/looks.py@looks, encoder=bm25)").text


def test_printed_output_is_bounded_per_cell_and_in_total(capsys: pytest.CaptureFixture[str]) -> None:
    remarks = Remarks()
    printed = MOST_OF_CELL * 2
    for _ in range(2 * MOST // MOST_OF_CELL):
        with remarks.of_cell() as handle:
            os.write(handle, b"x" * printed)
    shown = capsys.readouterr().err
    assert shown.count("output after") == MOST // (MOST_OF_CELL + 1) + 1
    assert shown.count("further output of strategies is not shown") == 1 and len(shown) < MOST + 10_000


@pytest.mark.slow
def test_printed_output_is_shown_without_control_codes(capsys: pytest.CaptureFixture[str]) -> None:
    with Remarks().of_cell() as handle:
        os.write(handle, "straße \x1b[2J\rgone\x9b\n".encode() + b"\xff")
    assert capsys.readouterr().err == "strategy: straße ␛[2J␍gone⟨U+009B⟩\nstrategy: \ufffd\n"


_ALONE = """
import json, sys
from ctxbench.harness.cells import cell, server
server._load()
held = set(sys.modules)
job = json.loads(sys.argv[1])
answers = {"files": ["b.py"], "read": "x = 1\\n" * 50, "generate": "y"}
answers["similar_windows"] = [["x", 0.5, [["b.py", 0, 1]]]]
assert "prompt" in cell._do(job, lambda **question: answers[question["call"]]), job["spec"]
print(*sorted(name for name in set(sys.modules) - held if name.startswith(("ctxbench", "tree_sitter"))))
"""


@pytest.mark.parametrize("spec", ["lc.infile", "lc.repocoder", "lc.random_windows"])
def test_a_cell_with_a_built_in_strategy_imports_nothing_more(spec: str) -> None:
    job = {"spec": spec, "query": wire.dump_query(query_for(Kind.LINE)), "name": "tiny", "checks": False}
    job |= {"versions": {}, "instructs": False, "summarises": False, "executes": False}
    command = [sys.executable, "-c", _ALONE, json.dumps(job)]
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout == "\n"


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "lib" / "site-packages"
    (folder / "zqshop" / "sub").mkdir(parents=True)
    (folder / "zqshop" / "sub" / "cart.py").write_text("ANSWER = 'zqx_answer'\n")
    (folder / "zqone.py").write_text("")
    (folder / "zqother").mkdir()
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".cache" / "uv").mkdir(parents=True)
    importlib.invalidate_caches()
    return folder


def test_installed_copies_of_the_files_are_found(site: Path, tmp_path: Path) -> None:
    cache = tmp_path / ".cache" / "uv"
    assert copies(["src/zqshop/sub/cart.py", "zqone.py", "zqother/x.py"]) == sorted(
        [cache, site / "zqone.py", site / "zqshop"]
    )
    assert copies(["zqshop/sub/cart.py"]) == sorted([cache, site / "zqshop"])
    assert copies(["lib/cart.py"]) == [cache]


@pytest.mark.slow
def test_a_hidden_installed_copy_cannot_be_read_or_imported(site: Path, tmp_path: Path) -> None:
    if not landlock.abi():
        missing("no Landlock on this kernel")
    file = tmp_path / "cheat.py"
    file.write_text(
        "from ctxbench.strategies import *\n@strategy('cheat')\ndef cheat(query: Query, repo: Repository) -> Context:\n"
        "    from zqshop.sub import cart\n    return Context((Snippet(path='a', text=cart.ANSWER),))\n"
    )
    query = query_for(Kind.LINE)
    with open_cells([], 1) as cells:
        assert "zqx_answer" in cells.run(f"{file}@cheat", query, view_for(query), Model()).text
    with (
        open_cells(copies(["zqshop/sub/cart.py"]), 1) as cells,
        pytest.raises(Exception, match="raised (PermissionError|ModuleNotFoundError|ImportError)"),
    ):
        cells.run(f"{file}@cheat", query, view_for(query), Model())
