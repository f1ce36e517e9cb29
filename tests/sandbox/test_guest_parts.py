"""Unit tests of the guest's modules."""

import contextlib
import itertools
import os
import resource
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxbench.sandbox.guest import confine, files, frames, permitted, seccomp, server, watchdog
from ctxbench.sandbox.guest.capture import RESULT_LENGTH, Output, Result, drain
from ctxbench.sandbox.guest.seccomp import ALLOWED, NEWEST, NUMBERS
from tests.helpers.filters import run_filter

EPERM, EINVAL, ENOSYS = (seccomp.ERROR | number for number in (1, 22, 38))
EPROTONOSUPPORT, ESOCKTNOSUPPORT, EAFNOSUPPORT = (seccomp.ERROR | number for number in (93, 94, 97))
DONE = seccomp.ERROR
"""The filter reports success without making the call."""


@given(st.lists(st.binary(max_size=40)), st.integers(0, 60))
def test_output_keeps_the_head_and_the_tail(parts: list[bytes], limit: int) -> None:
    output, whole = Output(limit), b"".join(parts)
    for part in parts:
        output.add(part)
    head, tail = bytes(output.head), output.tail
    assert len(head) + len(tail) == min(limit, len(whole)) and output.left_out == max(0, len(whole) - limit)
    assert whole.startswith(head) and whole.endswith(tail)
    assert limit < len(whole) or head + tail == whole


def test_endless_output_uses_bounded_memory() -> None:
    output = Output(1000)
    for _ in range(100):
        output.add(bytes(1 << 16))
        assert len(output._tail) < 1 << 19
    assert output.left_out == 100 * (1 << 16) - 500 - len(output._tail)


@pytest.mark.parametrize(
    ("parts", "whole"),
    [
        ([RESULT_LENGTH.pack(3), b"ab", b"c"], b"abc"),
        ([RESULT_LENGTH.pack(0)], b""),
        ([RESULT_LENGTH.pack(3) + b"ab"], None),
        ([RESULT_LENGTH.pack(3) + b"abcd"], None),
        ([RESULT_LENGTH.pack(10), b"x" * 10], b"x" * 10),
        ([RESULT_LENGTH.pack(11), b"x" * 11], None),
        ([b"\0\0"], None),
        ([], None),
    ],
)
def test_only_a_complete_result_within_the_limit_is_accepted(parts: list[bytes], whole: bytes | None) -> None:
    result = Result(10)
    for part in parts:
        result.add(part)
    assert result.whole == whole


def test_draining_a_pipe_reads_what_is_available() -> None:
    source, sink = os.pipe()
    os.set_blocking(source, False)
    output = Output(100)
    assert drain(source, output)
    os.write(sink, b"abc")
    assert drain(source, output) and bytes(output.head) == b"abc"
    os.write(sink, b"defg")
    assert drain(source, output, 2) and bytes(output.head) == b"abcde"
    os.close(sink)
    assert not drain(source, output) and bytes(output.head) == b"abcdefg"
    os.close(source)


def _write(folder: Path, tree: dict[str, bytes]) -> None:
    files.write(str(folder), frames.files_head(tree), memoryview(b"".join(tree.values())))


def test_files_are_written_and_scripts_are_executable(tmp_path: Path) -> None:
    _write(tmp_path, {"a/b/c.py": b"x", "a/d": b"", "run": b"#!/bin/sh\n", "é/ü": b"y"})
    assert (tmp_path / "a/b/c.py").read_bytes() == b"x" and (tmp_path / "a/d").read_bytes() == b""
    assert os.access(tmp_path / "run", os.X_OK) and (tmp_path / "a/d").stat().st_mode & 0o111 == 0
    _write(tmp_path, {"a/b/c.py": b"longer", "run": b""})
    assert (tmp_path / "a/b/c.py").read_bytes() == b"longer" and (tmp_path / "é/ü").read_bytes() == b"y"


@pytest.mark.parametrize("path", ["/etc/x", "../x", "a/../../x", "a/", "", ".", "./x"])
def test_a_path_outside_the_folder_is_refused(tmp_path: Path, path: str) -> None:
    (tmp_path / "in").mkdir()
    with pytest.raises(ValueError, match="cannot be called"):
        _write(tmp_path / "in", {path: b"x"})
    assert list(tmp_path.iterdir()) == [tmp_path / "in"] and not list((tmp_path / "in").iterdir())


def test_links_are_not_followed_and_missing_bytes_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic"):
        _write(tmp_path, {"link": b"x"})
    with pytest.raises(ValueError, match="missing"):
        files.write(str(tmp_path), [["a", 2]], memoryview(b"x"))
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.slow
def test_a_folder_with_any_contents_is_emptied(tmp_path: Path) -> None:
    beside = tmp_path / "beside"
    beside.mkdir()
    (beside / "kept").write_text("kept")
    top = tmp_path / "top"
    (top / "closed" / "inner").mkdir(parents=True)
    (top / "closed" / "inner" / "file").write_text("x")
    (top / "closed" / "inner").chmod(0)
    (top / "closed").chmod(0)
    (top / "link").symlink_to(beside)
    (top / "dangling").symlink_to("nowhere")
    os.mkfifo(top / "pipe")
    Path(os.fsdecode(os.fsencode(top) + b"/odd\xff\n\x1b")).write_text("x")
    (top / ("n" * 255)).mkdir()
    here = os.open(top, os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("deep", dir_fd=here)
        below = os.open("deep", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    files.empty(str(top))
    assert os.listdir(top) == [] and (beside / "kept").read_text() == "kept"


def test_settling_a_folder_restores_its_mode_flags_times_and_attributes(tmp_path: Path) -> None:
    before = files.state(str(tmp_path))
    tmp_path.chmod(0o500)
    with contextlib.suppress(OSError):  # a file system without flags or attributes
        files._flags(str(tmp_path), files._SET_FLAGS, before[1] | 0xC0)
    with contextlib.suppress(OSError):
        os.setxattr(tmp_path, "user.note", b"hello")
    os.utime(tmp_path, (42, 43))
    files.settle(str(tmp_path), *before)
    assert files.state(str(tmp_path)) == before
    assert os.listxattr(tmp_path) == [] and tmp_path.stat().st_mtime == 0


def test_a_closed_connection_counts_while_the_kernel_remembers_it(tmp_path: Path) -> None:
    """If a back end cannot make the kernel forget the connection, its boxes are not reused."""
    assert not server._connected(str(tmp_path)), "no tables at all"
    header, closed = (
        "  sl  local_address rem_address   st\n",
        "   0: 0100007F:223D 0100007F:9C40 06 00000000:00000000\n",
    )
    for table in ("tcp", "tcp6"):
        (tmp_path / table).write_text(header)
        assert not server._connected(str(tmp_path))
        (tmp_path / table).write_text(header + closed)
        assert server._connected(str(tmp_path))
        (tmp_path / table).write_text(header)
    (tmp_path / "tcp").write_text(header + closed)
    for used, closing, remembered, expected in ((0, 0, 0, False), (1, 0, 0, True), (0, 0, 1, True), (0, 1, 0, True)):
        counts = f"sockets: used 3\nTCP: inuse {used} orphan 0 tw {remembered} alloc 9 mem 2\nUDP: inuse 0 mem 0\n"
        (tmp_path / "sockstat").write_text(counts)
        (tmp_path / "sockstat6").write_text(f"TCP6: inuse {closing}\nUDP6: inuse 0\n")
        assert server._connected(str(tmp_path)) == expected


@pytest.mark.parametrize("machine", seccomp.MACHINES)
def test_the_filter_of_jobs_answers_every_call(machine: str) -> None:
    architecture, column = seccomp.MACHINES[machine]
    code = permitted.program(architecture, column, ["memfd_create"])
    number = {name: numbers[column] for name, numbers in NUMBERS.items() if numbers[column] is not None}
    allowed = {name for group in ALLOWED.values() for name in group.split()} & set(number)

    def ask(call: int | None, *arguments: int) -> int:
        assert call is not None
        return run_filter(code, architecture, call, *arguments)

    judged = {rule.call for rule in permitted.RULES}
    assert {name for name in allowed if ask(number[name]) != seccomp.ALLOW} - judged == set()
    for name in set(number) - allowed - judged:
        assert ask(number[name]) == EPERM, name
    for name in ("clone3", "memfd_create", "io_setup", "io_submit"):
        assert ask(number[name]) == ENOSYS, name
    assert ask(number["sync"]) == ask(number["syncfs"]) == DONE
    for call in set(range(NEWEST + 1)) - set(number.values()):
        assert ask(call) == EPERM, "a number between those of the table"
    assert {ask(call) for call in range(NEWEST + 1, NEWEST + 100)} == {ENOSYS}
    assert ask(0x40000000 + 1) == EPERM
    assert run_filter(code, architecture ^ 1, 1) == seccomp.KILL


@pytest.mark.parametrize("machine", seccomp.MACHINES)
def test_the_filter_of_jobs_checks_arguments(machine: str) -> None:
    architecture, column = seccomp.MACHINES[machine]
    code = permitted.program(architecture, column)

    def ask(name: str, *arguments: int) -> int:
        number = NUMBERS[name][column]
        assert number is not None
        return run_filter(code, architecture, number, *arguments)

    for call, family in itertools.product(("socket", "socketpair"), range(64)):
        assert ask(call, family, 1) == (seccomp.ALLOW if family in (1, 2, 10) else EAFNOSUPPORT)
        for kind, flags in itertools.product(range(16), (0, 0o2000000 | 0o4000)):
            if family in (1, 2, 10):
                types = (1, 2, 3, 5) if family == 1 else (1, 2)
                assert ask(call, family, kind | flags) == (seccomp.ALLOW if kind in types else ESOCKTNOSUPPORT)
    for family, kind, expected in (
        (1, 5, {0, 1}),
        (2, 1, {0, 6}),
        (2, 2, {0, 1, 17}),
        (10, 1, {0, 6}),
        (10, 2, {0, 17}),
    ):
        answers = {protocol: ask("socket", family, kind, protocol) for protocol in range(300)}
        assert {protocol for protocol, answer in answers.items() if answer == seccomp.ALLOW} == expected
        assert answers[132] == EPROTONOSUPPORT
    requests = [*range(0x5400, 0x5480), *range(0x8900, 0x8A00)]
    assert {request for request in requests if ask("ioctl", 3, request) == EPERM} == set(permitted.MODULE_REQUESTS)
    for flags, answer in ((0, seccomp.ALLOW), (0x003D0F00, seccomp.ALLOW), (17, seccomp.ALLOW)):
        assert ask("clone", flags) == answer
    for bit in (0x00020000, *(1 << shift for shift in range(25, 31))):
        assert ask("clone", bit | 17) == EPERM
    answers = {option: ask("setsockopt", 3, 1, option) for option in range(100)}
    assert {option for option, answer in answers.items() if answer == DONE} == {7, 8}
    assert {option for option, answer in answers.items() if answer == EPERM} == {26, 50, 51, 52}
    assert {ask("setsockopt", 3, level, option) for level in (0, 6, 41) for option in range(100)} == {seccomp.ALLOW}
    assert ask("mmap", 0, 4096, 3, 0x22) == seccomp.ALLOW and ask("mmap", 0, 4096, 3, 0x40022) == EPERM
    assert ask("memfd_create", 0, 1) == seccomp.ALLOW and ask("memfd_create", 0, 5) == EPERM
    assert ask("madvise", 0, 0, 4) == seccomp.ALLOW and ask("madvise", 0, 0, 12) == EINVAL
    assert {option for option in range(100) if ask("prctl", option) != seccomp.ALLOW} == {22, 35, 62, 67}
    assert {ask("fcntl", 3, command) for command in (5, 6, 7, 36)} == {seccomp.ALLOW}
    assert ask("fcntl", 3, 37) == ask("fcntl", 3, 38) == EINVAL
    for name in ("prlimit64", "sched_setaffinity", "sched_setscheduler", "sched_setparam", "sched_setattr"):
        assert ask(name, 0) == seccomp.ALLOW and ask(name, 1) == ask(name, 0xFFFFFFFF) == EPERM
    for name, itself in (("setpriority", 0), ("ioprio_set", 1)):
        assert {which for which in range(9) if ask(name, which, 0) == seccomp.ALLOW} == {itself}
        assert ask(name, itself, 1) == EPERM
    assert ask("personality", 0) == ask("personality", 0xFFFFFFFF) == seccomp.ALLOW
    assert ask("personality", 0x0040000) == EPERM


def test_the_machine_is_recognized_under_setarch_but_not_from_32_bit_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    for said, name in (("x86_64", "x86_64"), ("i686", "x86_64"), ("aarch64", "aarch64"), ("armv8l", "aarch64")):
        monkeypatch.setattr("platform.machine", lambda said=said: said)
        assert seccomp.machine() == seccomp.MACHINES[name]
        with monkeypatch.context() as small, pytest.raises(OSError, match="32 bits"):
            small.setattr("sys.maxsize", (1 << 31) - 1)
            seccomp.machine()
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    with pytest.raises(OSError, match="riscv64"):
        permitted.restrict()


def test_the_first_landlock_version_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first version never allows moving files between folders."""
    monkeypatch.setattr("ctxbench.sandbox.guest.landlock.ruleset", lambda *_, **__: os.open(os.devnull, os.O_RDONLY))
    for version in range(9):
        monkeypatch.setattr("ctxbench.sandbox.guest.landlock.abi", lambda version=version: version)
        rules = confine.rules("/work")
        assert (rules is None) == (version < 2)
        if rules is not None:
            os.close(rules)


def test_the_system_call_numbers_match_the_kernel_headers() -> None:
    """The test compares the numbers with the machine's headers, if they are installed."""
    import re

    for column, path in enumerate(
        ("/usr/include/x86_64-linux-gnu/asm/unistd_64.h", "/usr/include/asm-generic/unistd.h")
    ):
        assert len({numbers[column] for numbers in NUMBERS.values()} - {None}) == sum(
            numbers[column] is not None for numbers in NUMBERS.values()
        )
        if Path(path).exists():
            named = dict(re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)\s", Path(path).read_text()))
            for name, numbers in NUMBERS.items():
                if name in named:
                    assert numbers[column] == int(named[name]), name


def test_control_groups_of_both_versions_are_read(tmp_path: Path) -> None:
    assert watchdog.memory_group(100, tmp_path) is None and not watchdog.holds_processes(10, tmp_path)
    first, second = tmp_path / "1", tmp_path / "2"
    for folder in (first / "memory", first / "pids", second):
        folder.mkdir(parents=True)
    (first / "memory/memory.limit_in_bytes").write_text("100\n")
    (first / "memory/memory.oom_control").write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 3\n")
    (first / "pids/pids.max").write_text("12\n")
    (second / "memory.max").write_text("100\n")
    (second / "memory.events").write_text("low 0\noom 9\noom_kill 4\n")
    (second / "pids.max").write_text("max\n")
    for root, version, kills in ((first, 1, 3), (second, 2, 4)):
        group = watchdog.memory_group(100, root)
        assert group and (group.version, group.kills()) == (version, kills)
        assert watchdog.memory_group(40, root) is None, "the machine's own limit, not the box's"
    assert watchdog.holds_processes(10, first) and not watchdog.holds_processes(10, second)
    (second / "memory.events").unlink()
    left = watchdog.memory_group(100, second)
    assert left and left.kills() == 0


def test_a_cgroup_v2_limit_was_hit_if_its_count_rose(tmp_path: Path) -> None:
    (tmp_path / "memory.max").write_text("1000\n")
    (tmp_path / "memory.events").write_text("low 0\nhigh 0\nmax 7\noom 2\noom_kill 4\noom_group_kill 0\n")
    group = watchdog.memory_group(1000, tmp_path)
    assert group and group.was_full(1) and not group.was_full(group.hits())


def test_a_cgroup_v1_limit_was_hit_if_the_peak_reached_it(tmp_path: Path) -> None:
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory/memory.limit_in_bytes").write_text("1000\n")
    group = watchdog.memory_group(1000, tmp_path)
    assert group and group.was_full(group.hits()), "in doubt it is the job's own doing"
    for kind, peak, full in (("memory", 960, False), ("memory", 999, True), ("memory", 500, False)):
        (tmp_path / f"memory/{kind}.max_usage_in_bytes").write_text(f"{peak}\n")
        assert group.was_full(group.hits()) == full
    # Only the second counter includes swapped memory.
    (tmp_path / "memory/memory.memsw.limit_in_bytes").write_text("1000\n")
    (tmp_path / "memory/memory.memsw.max_usage_in_bytes").write_text("1000\n")
    assert group.was_full(group.hits())


def test_without_a_control_group_the_machines_oom_kills_are_counted(tmp_path: Path) -> None:
    # Longer than the kernel returns in one read.
    (tmp_path / "vmstat").write_text("nr_free_pages 1\n" * 5000 + "oom_kill 17\ndrop_pagecache 3\n")
    machine = watchdog.Machine(tmp_path / "vmstat")
    assert machine.kills() == 17 and not machine.was_full(machine.hits())
    assert watchdog.Machine(tmp_path / "nowhere").kills() == 0


@contextlib.contextmanager
def held(sizes: Sequence[int]) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Yield processes that each use `sizes` MiB."""
    program = "import sys, time\nheld = bytearray({} << 20)\nprint('held', flush=True)\ntime.sleep(60)"
    processes = [
        subprocess.Popen([sys.executable, "-c", program.format(size)], stdout=subprocess.PIPE) for size in sizes
    ]
    try:
        for process in processes:
            assert process.stdout and process.stdout.readline() == b"held\n"
        yield processes
    finally:
        for process in processes:
            process.kill()
            process.wait()
            assert process.stdout
            process.stdout.close()


@contextlib.contextmanager
def watched(monkeypatch: pytest.MonkeyPatch, sizes: Sequence[int]) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Yield processes, the only ones of this machine that a watchdog sees."""
    with held(sizes) as processes:
        monkeypatch.setattr(watchdog, "_processes", lambda: [process.pid for process in processes])
        monkeypatch.setattr(watchdog, "_sockets", lambda: 20)
        monkeypatch.setattr(watchdog, "_locks", lambda most: 0)
        yield processes


@pytest.mark.slow
def test_the_watchdog_ends_the_largest_untrusted_process(monkeypatch: pytest.MonkeyPatch) -> None:
    with watched(monkeypatch, (5, 90, 200)) as (small, large, trusted):
        for limit, killed in ((1 << 30, False), (60 << 20, True), (None, False)):
            dog = watchdog.Watchdog(20, limit)
            dog._trusted.add(trusted.pid)
            dog.look()
            assert dog.killed == killed
        assert large.wait(10) == -9 and small.poll() is None and trusted.poll() is None


def test_the_watchdog_ends_a_job_that_hoards_sockets(monkeypatch: pytest.MonkeyPatch) -> None:
    with watched(monkeypatch, (1, 1, 1)) as (first, second, trusted):
        dog = watchdog.Watchdog(19, None)
        dog._trusted.add(trusted.pid)
        dog.look()
        assert dog.killed and first.wait(10) == second.wait(10) == -9 and trusted.poll() is None


def test_the_watchdog_ends_a_job_that_hoards_locks_but_checks_rarely(monkeypatch: pytest.MonkeyPatch) -> None:
    with watched(monkeypatch, (1,)) as (process,):
        monkeypatch.setattr(watchdog, "_locks", lambda most: most + 1)
        dog = watchdog.Watchdog(20, None)
        dog.look()
        assert not dog.killed, "it has only just begun"
        monkeypatch.setattr(watchdog, "_LOCK_SECONDS", 0.0)
        dog = watchdog.Watchdog(20, None)
        dog.look()
        assert dog.killed and process.wait(10) == -9


def test_sockets_and_locks_are_read_from_the_kernels_tables(tmp_path: Path) -> None:
    table = tmp_path / "table"
    table.write_text("sockets: used 137\nTCP: inuse 4 orphan 0 tw 0 alloc 5 mem 1\n")
    assert watchdog._sockets(str(table)) == 137 and watchdog._sockets(str(tmp_path / "none")) == 0
    with socket.socket():
        before = watchdog._sockets()
        with socket.socket(), socket.socket(socket.AF_UNIX):
            assert watchdog._sockets() >= 2 and before >= 1
    line = "{}: {}  ADVISORY  WRITE {} fe:01:123 0 9\n"
    table.write_text("".join(line.format(number, "POSIX", 7) for number in range(300)) + line.format(1, "OFDLCK", -1))
    assert watchdog._locks(1000, str(table)) == 300 and watchdog._locks(1000, str(tmp_path / "none")) == 0
    table.write_text(line.format(1, "POSIX", 7) * 5000)
    assert watchdog._locks(100, str(table)) > 100


def test_resource_limits_are_never_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = {}
    monkeypatch.setattr(resource, "getrlimit", lambda which: (0, 500 if which == resource.RLIMIT_SIGPENDING else -1))
    monkeypatch.setattr(resource, "setrlimit", lambda which, pair: asked.update({which: pair}))
    limits = confine.JobLimits(memory=1, file_bytes=2, processes=3, open_files=4, output=5, result=6)
    bounds = {"work": "/work", "path": (), "rules": None, "memory_group": True, "process_group": True}
    confine.bound(confine.Confinement(limits=limits, **bounds))  # type: ignore[arg-type]
    assert asked[resource.RLIMIT_SIGPENDING] == (500, 500) and asked[resource.RLIMIT_NOFILE] == (4, 4)
    # With 0, the kernel would still run the host's program for core files, as root and outside the box.
    assert asked[resource.RLIMIT_CORE] == (1, 1)


def test_own_user_namespace_recognizes_a_mapped_namespace(tmp_path: Path) -> None:
    for text, own in (
        ("         0          0 4294967295\n", False),
        ("1000 1000 1\n", True),
        ("0 100000 65536\n", True),
    ):
        (tmp_path / "map").write_text(text)
        assert confine.own_user_namespace(str(tmp_path / "map")) == own


def test_the_guest_runs_only_as_the_first_process_of_a_box(monkeypatch: pytest.MonkeyPatch) -> None:
    killed: list[int] = []
    monkeypatch.setattr(os, "kill", lambda pid, number: killed.append(pid))
    with pytest.raises(SystemExit, match="first process of a box"):
        server.main()
    done = subprocess.run(
        [sys.executable, "-P", "-m", "sandbox.guest"],
        check=False,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1 and "first process of a box" in done.stderr and not killed


def test_the_guest_imports_only_the_standard_library() -> None:
    """A box contains only `sandbox/__init__.py`, `sandbox/errors.py` and `sandbox/guest` of ctxbench."""
    script = (
        "import sys, importlib, pkgutil, sandbox.guest\n"
        "for module in pkgutil.walk_packages(sandbox.guest.__path__, 'sandbox.guest.'):\n"
        "    if not module.name.endswith('__main__'): importlib.import_module(module.name)\n"
        "ours = {name for name in sys.modules if name.partition('.')[0] in ('bench', 'harness', 'sandbox')}\n"
        "others = {name.partition('.')[0] for name in sys.modules} - set(sys.stdlib_module_names) - {'sandbox'}\n"
        "print(sorted(name for name in ours if not name.startswith('sandbox.guest')), sorted(others))\n"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {str(root)!r})\n{script}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "['sandbox'] ['__main__']\n"


@pytest.mark.parametrize(
    ("looks", "killed"),
    [
        ([{7: 60, 8: 60}, {7: 60}], []),
        ([{7: 60, 8: 60}, {7: 60, 8: 70}], [8]),
    ],
    ids=["one ends while it is looked at", "all stay"],
)
def test_processes_over_the_limit_together_are_killed_only_after_a_second_check(
    monkeypatch: pytest.MonkeyPatch, looks: list[dict[int, int]], killed: list[int]
) -> None:
    now: dict[int, int] = {}
    ended: list[int] = []
    turns = iter([{7: 60, 8: 60}, *looks])

    def untrusted() -> list[int]:
        now.clear()
        now.update(next(turns))
        return list(now)

    watching = watchdog.Watchdog(sockets=1 << 30, memory=100)
    monkeypatch.setattr(watching, "_untrusted", untrusted)
    monkeypatch.setattr(watchdog, "_resident", lambda pid: now[pid])
    monkeypatch.setattr(watchdog, "_proportional", lambda pid: now[pid])
    monkeypatch.setattr(watchdog.os, "kill", lambda pid, _: ended.append(pid))
    watching.look()
    assert ended == killed and watching.killed == bool(killed)


def test_an_ended_process_counts_no_memory() -> None:
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    assert watchdog._proportional(child) == 0
    os.waitpid(child, 0)
    assert watchdog._proportional(child) == 0 < watchdog._proportional(os.getpid())
