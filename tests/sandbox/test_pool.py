import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxbench.sandbox import link, pool
from ctxbench.sandbox.errors import SandboxError, SandboxLost, SandboxUnavailable
from ctxbench.sandbox.guest import frames
from ctxbench.sandbox.pool import BoxPool, open_pool
from ctxbench.sandbox.types import Command, Ended, Environment, Job, Limits
from tests.sandbox.boxes import ScriptedBox, ScriptedLauncher, outcome, usual

EMPTY = Environment(name="empty")
TREE = Environment(name="tree", tree={"a": b"1"})
JOB = Job(action=Command(argv=("true",)))
BAD = Job(action=Command(argv=("bad",)))


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "_PAUSES", (0.0, 0.001, 0.001))


def _is(head: dict[str, Any], job: Job) -> bool:
    assert isinstance(job.action, Command)
    return bool(head["action"]["argv"] == list(job.action.argv))


def _open(launcher: ScriptedLauncher, environment: Environment = EMPTY, *, width: int = 1, reuse: int = 1) -> Any:
    return open_pool(launcher, environment, Limits(), width=width, reuse=reuse)


@contextlib.contextmanager
def _opened(answer: Any = usual, *where: Environment, **settings: int) -> Iterator[tuple[Any, ScriptedLauncher]]:
    """Yield a pool and its launcher, and check that no box runs after the pool is closed."""
    launcher = ScriptedLauncher(answer)
    try:
        with _open(launcher, *where, **settings) as opened:
            yield opened, launcher
    finally:
        assert not launcher.running


def _if_bad(reply: Callable[[], bytes]) -> Any:
    """Return a box's script that answers the bad job with `reply` and all other jobs as usual."""
    return lambda box, kind, head: reply() if kind == frames.JOB and _is(head, BAD) else usual(box, kind, head)


def test_each_job_gets_a_fresh_box_that_was_started_in_advance() -> None:
    with _opened(usual, TREE) as (opened, launcher):
        assert opened.image == "scripted" and opened.greeting["landlock"] == 7
        assert launcher.boxes[0].seen == [frames.SETTINGS, frames.TREE]
        assert [opened.run(JOB).output for _ in range(5)] == ["1", "2", "3", "4", "5"]
    assert all(box.ends for box in launcher.boxes) and len(launcher.boxes) <= 7
    assert all(box.seen.count(frames.JOB) <= 1 for box in launcher.boxes)


def test_a_box_is_reused_up_to_the_requested_number_of_jobs() -> None:
    with _opened(usual, TREE, reuse=3) as (opened, launcher):
        for _ in range(20):
            opened.run(JOB)
            time.sleep(0.002)
    jobs = [box.seen.count(frames.JOB) for box in launcher.boxes]
    assert max(jobs) == 3 and sum(jobs) == 20
    for box in launcher.boxes:
        # The tree is sent again before every job.
        assert b"".join(box.seen).startswith(b"STJTJTJ"[: len(box.seen)])


def test_a_box_with_trouble_is_discarded() -> None:
    def answer(box: ScriptedBox, kind: bytes, head: dict[str, Any]) -> bytes:
        trouble = "files are left" if box.number == 1 else ""
        return (
            outcome(str(box.number).encode()) + frames.frame(frames.END, {"trouble": trouble})
            if kind == frames.JOB
            else usual(box, kind, head)
        )

    with _opened(answer, reuse=100) as (opened, launcher):
        assert opened.run(JOB).output == "1", "the outcome itself stands"
        while not launcher.boxes[0].ends:
            time.sleep(0.001)
        assert "1" not in [opened.run(JOB).output for _ in range(6)]


def _losing(times: int, fault: Exception) -> Any:
    lost: list[int] = []

    def answer(box: ScriptedBox, kind: bytes, head: dict[str, Any]) -> bytes:
        if kind == frames.JOB and _is(head, BAD) and len(lost) < times:
            lost.append(box.number)
            raise fault
        return usual(box, kind, head)

    return answer, lost


@pytest.mark.parametrize("times", [1, 2])
def test_a_job_with_a_lost_box_is_retried_in_a_new_one(times: int) -> None:
    answer, lost = _losing(times, SandboxLost("gone"))
    with _opened(answer, reuse=100) as (opened, launcher):
        opened.run(JOB)
        found = opened.run(BAD)
        assert found.ended is Ended.EXITED and int(found.output) not in lost
        assert len(set(lost)) == times
        assert launcher.boxes[int(found.output) - 1].seen.count(frames.JOB) == 1, "a fresh one"


def test_a_job_that_loses_three_boxes_is_a_wreck_if_others_succeed() -> None:
    answer, lost = _losing(99, SandboxLost("gone"))
    with _opened(answer) as (opened, _):
        found = opened.run(BAD)
        assert (found.ended, found.exit_code, found.result) == (Ended.WRECKED, None, None)
        assert "gone: last words" in found.output and len(lost) == 3
        assert opened.run(JOB).ended is Ended.EXITED


def test_a_machine_that_loses_every_box_raises_sandbox_lost() -> None:
    broken: list[bool] = []

    def answer(box: ScriptedBox, kind: bytes, head: dict[str, Any]) -> bytes:
        if kind == frames.JOB and broken:
            raise SandboxLost("the engine is gone", cure="start it")
        return usual(box, kind, head)

    with _opened(answer) as (opened, _):
        opened.run(JOB)
        broken.append(True)
        with pytest.raises(SandboxLost, match="the engine is gone: last words; start it"):
            opened.run(JOB)
        broken.clear()
        assert opened.run(JOB).ended is Ended.EXITED


@pytest.mark.parametrize("working", [1, 2])
def test_a_machine_that_recovers_after_three_losses_raises_sandbox_lost(working: int) -> None:
    probes: list[int] = []

    def answer(box: ScriptedBox, kind: bytes, head: dict[str, Any]) -> bytes:
        if kind == frames.JOB:
            probes.extend([] if _is(head, BAD) else [box.number])
            if _is(head, BAD) or len(probes) != working:
                raise SandboxLost("the engine is gone")
        return usual(box, kind, head)

    with _opened(answer) as (opened, _), pytest.raises(SandboxLost, match="the engine is gone"):
        opened.run(BAD)


def _short(whose: str, times: int, **changes: Any) -> Any:
    """Return a box's script that reports `times` times that the kernel killed processes for lack of memory."""
    seen: list[int] = []

    def answer(box: ScriptedBox, kind: bytes, head: dict[str, Any]) -> bytes:
        if kind == frames.JOB and _is(head, BAD) and len(seen) < times:
            seen.append(box.number)
            return outcome(shortage=whose, **changes) + frames.frame(frames.END, {"trouble": ""})
        return usual(box, kind, head)

    return answer, seen


KILLED = {"ended": "killed", "signal": 9, "exit_code": None}


@pytest.mark.parametrize(
    ("whose", "changes"),
    [("box", {}), ("box", KILLED), ("machine", KILLED), ("machine", {"result": b'{"signal": 9, "exit": null}'})],
)
def test_a_job_is_retried_if_the_machine_ran_out_of_memory(whose: str, changes: dict[str, Any]) -> None:
    answer, seen = _short(whose, 2, **changes)
    with _opened(answer) as (opened, _):
        assert opened.run(BAD).ended is Ended.EXITED
        assert len(seen) == 2


def test_a_machine_out_of_memory_three_times_raises_sandbox_lost() -> None:
    answer, seen = _short("box", 99, **KILLED)
    with (
        _opened(answer) as (opened, _),
        pytest.raises(SandboxLost, match="machine was out of memory.*fewer jobs at once"),
    ):
        opened.run(BAD)
    assert len(seen) == 3


def test_a_job_that_exhausts_memory_is_a_wreck_if_others_succeed() -> None:
    answer, seen = _short("machine", 99, **KILLED)
    probes: list[str] = []

    def noted(box: ScriptedBox, kind: bytes, head: dict[str, Any]) -> bytes:
        if kind == frames.JOB and not _is(head, BAD):
            probes.append(head["action"]["argv"][-1])
        return answer(box, kind, head)

    with _opened(noted) as (opened, _):
        assert opened.run(BAD).ended is Ended.WRECKED
    assert len(seen) == 3 and probes == [f"len(b'x' * {Limits().memory * 3 // 4})"] * 3


@pytest.mark.parametrize(
    "changes", [{}, {"ended": "killed", "signal": 11, "exit_code": None}, {"result": b'{"signal": 11}'}]
)
def test_a_job_that_was_not_killed_is_not_retried(changes: dict[str, Any]) -> None:
    answer, seen = _short("machine", 99, **changes)
    with _opened(answer) as (opened, _):
        assert opened.run(BAD).ended is Ended(changes.get("ended", "exited"))
    assert len(seen) == 1


def test_a_pool_recovers_from_failed_box_starts() -> None:
    launcher = ScriptedLauncher()
    launcher.faults = [SandboxLost("busy"), SandboxLost("busy")]
    with _open(launcher) as opened:
        opened.run(JOB)
        while launcher.faults:
            time.sleep(0.001)
        launcher.faults = [SandboxLost("busy")]
        assert [opened.run(JOB).exit_code for _ in range(4)] == [0] * 4
    assert not launcher.running


def test_a_pool_that_cannot_start_a_box_is_unavailable() -> None:
    launcher = ScriptedLauncher()
    launcher.faults = [SandboxLost("no engine", cure="start it")] * 3
    with pytest.raises(SandboxUnavailable, match="no engine; start it"), _open(launcher):
        pytest.fail("it was opened")
    assert not launcher.boxes


@pytest.mark.parametrize(
    ("greeting", "words"),
    [
        ({"fault": "x cannot be imported"}, "x cannot be imported"),
        ({"fault": "", "seccomp": False}, "filter of system calls"),
    ],
)
def test_a_box_with_a_fault_or_without_a_seccomp_filter_is_refused(greeting: dict[str, object], words: str) -> None:
    launcher = ScriptedLauncher(lambda *_: frames.frame(frames.GREETING, greeting))
    with pytest.raises(SandboxUnavailable, match=words), _open(launcher):
        pytest.fail("it was opened")
    assert [box.ends for box in launcher.boxes] == [1]


@pytest.mark.parametrize(
    "garbage",
    [
        frames.frame(frames.READY, {}),
        frames.HEADER.pack(frames.OUTCOME, 1 << 29),
        frames.HEADER.pack(frames.OUTCOME, 3) + b"abc",
        frames.frame(frames.OUTCOME, {}),
        outcome(ended="fine"),
        outcome(exit_code="zero"),
        outcome(sizes=3),
        b"\0" * 50,
    ],
)
def test_an_invalid_answer_of_a_box_counts_as_a_lost_box(garbage: bytes) -> None:
    with _opened(_if_bad(lambda: garbage)) as (opened, _):
        assert opened.run(BAD).ended is Ended.WRECKED


@given(st.binary(max_size=200))
def test_any_bytes_from_a_box_raise_only_sandbox_lost(data: bytes) -> None:
    box = ScriptedBox(1, lambda box, kind, head: data)
    talk = link.Link(box, Limits())
    link_seconds, link.GRACE_SECONDS = link.GRACE_SECONDS, 0.0
    try:
        with pytest.raises(SandboxLost):
            talk.run(Job(action=Command(argv=("x",)), seconds=0.001))
    finally:
        link.GRACE_SECONDS = link_seconds


def test_a_silent_box_is_lost_after_the_outer_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "GRACE_SECONDS", 0.1)
    with _opened(_if_bad(lambda: b"")) as (opened, _):
        began = time.monotonic()
        found = opened.run(Job(action=Command(argv=("bad",)), seconds=0.05))
        assert found.ended is Ended.WRECKED and "late" in found.output and 0.4 < time.monotonic() - began < 5


def test_a_job_with_a_fault_is_not_retried() -> None:
    fault = frames.frame(frames.OUTCOME, {"fault": "no room", "cure": "make some"})
    with _opened(_if_bad(lambda: fault)) as (opened, launcher):
        with pytest.raises(SandboxError, match="no room; make some"):
            opened.run(BAD)
        assert sum(box.seen.count(frames.JOB) for box in launcher.boxes) == 1
        assert opened.run(JOB).exit_code == 0


class _Meeting:
    """A script that records how many jobs run at once, and whether two of them share a box."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.now: list[int] = []
        self.most, self.shared = 0, False

    def answer(self, box: ScriptedBox, kind: bytes, head: dict[str, Any]) -> bytes:
        if kind == frames.JOB:
            with self.lock:
                self.shared = self.shared or box.number in self.now
                self.now.append(box.number)
                self.most = max(self.most, len(self.now))
            time.sleep(0.005)
            with self.lock:
                self.now.remove(box.number)
        return usual(box, kind, head)


@pytest.mark.parametrize(("width", "reuse"), [(1, 1), (3, 1), (3, 4), (4, 1000)])
def test_many_threads_share_a_pool_and_never_a_box(width: int, reuse: int) -> None:
    meeting = _Meeting()
    launcher = ScriptedLauncher(meeting.answer)
    outcomes: list[object] = []
    with _open(launcher, TREE, width=width, reuse=reuse) as opened:
        threads = [
            threading.Thread(target=lambda: [outcomes.append(opened.run(JOB)) for _ in range(10)]) for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        alive = 0
        while any(thread.is_alive() for thread in threads):
            alive = max(alive, launcher.running)
            time.sleep(0.001)
    assert len(outcomes) == 80 and not meeting.shared and meeting.most <= width and (width == 1 or meeting.most > 1)
    assert not launcher.running and alive <= width + (width + 1) // 2 + width
    assert max(box.seen.count(frames.JOB) for box in launcher.boxes) <= reuse


@pytest.mark.parametrize("fault", [KeyboardInterrupt, ValueError, SystemExit])
def test_every_box_is_ended_when_an_exception_closes_the_pool(fault: type[BaseException]) -> None:
    launcher = ScriptedLauncher()

    def leave() -> None:
        with _open(launcher, width=3) as opened:
            opened.run(JOB)
            raise fault

    with pytest.raises(fault):
        leave()
    assert launcher.boxes and not launcher.running
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("sandbox")]


def test_an_interrupt_during_a_job_ends_its_box() -> None:
    answer, _ = _losing(1, KeyboardInterrupt())  # type: ignore[arg-type]
    with pytest.raises(KeyboardInterrupt), _opened(answer) as (opened, _):
        opened.run(BAD)


def test_closing_a_pool_does_not_wait_for_starting_boxes() -> None:
    def answer(box: ScriptedBox, kind: bytes, head: dict[str, Any]) -> bytes:
        return usual(box, kind, head) if box.number == 1 else b""  # the second box never sends its greeting

    launcher = ScriptedLauncher(answer)
    began = time.monotonic()
    with _open(launcher) as opened:
        opened.run(JOB)
        while len(launcher.boxes) < 2:
            time.sleep(0.001)
    assert time.monotonic() - began < 5 and not launcher.running


def test_a_closed_pool_runs_no_jobs() -> None:
    with _opened() as (opened, _):
        pass
    with pytest.raises(SandboxLost, match="closed"):
        opened.run(JOB)


@pytest.mark.parametrize(
    ("result", "value"),
    [
        (b'{"a": [1, 2.5, null, "\xc3\xa9"]}', {"a": [1, 2.5, None, "é"]}),
        (b"NaN", None),
        (b"[1e999]", None),
        (b"[" * 100_000, None),
        (b"1" * 5000, None),
        (b"\xff", None),
        (b"", None),
        (b'"\\ud800"', "?"),
        (None, None),
    ],
)
def test_a_result_is_valid_json_data_or_none(result: bytes | None, value: object) -> None:
    with _opened(_if_bad(lambda: outcome(b"said", result))) as (opened, _):
        found = opened.run(BAD)
    assert (found.output, found.result) == ("said", value)


def test_an_outcome_has_all_fields_of_its_frame() -> None:
    data = outcome(b"ab\xffcd", None, sizes=[3, 2, -1], left_out=9, ended="killed", exit_code=None, signal=9, seconds=2)
    with _opened(_if_bad(lambda: data)) as (opened, _):
        found = opened.run(BAD)
    assert found.output == "ab\N{REPLACEMENT CHARACTER}\n[9 bytes are left out here]\ncd" and found.truncated
    assert (found.ended, found.exit_code, found.signal, found.seconds) == (Ended.KILLED, None, 9, 2.0)


@pytest.mark.parametrize(("width", "reuse"), [(0, 1), (1, 0)])
def test_a_pool_without_width_or_reuse_is_refused(width: int, reuse: int) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        BoxPool(ScriptedLauncher(), EMPTY, Limits(), width, reuse)
