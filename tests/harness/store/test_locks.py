"""Locks allow one process per run and name it to other processes."""

import errno
import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ctxbench.bench.errors import InputFault
from ctxbench.harness.store import Store, open_store
from ctxbench.harness.store.store import open_reader

HOLDER = """
import sys
from ctxbench.harness.store import open_store
with open_store(sys.argv[1]) as store, store.run_lock("some-run"):
    print("locked", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'results.db'}"


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with open_store(url) as store:
        yield store


@pytest.fixture
def holder(store: Store, url: str) -> Iterator[subprocess.Popen[str]]:
    """Return another process that holds the lock on a run."""
    with holding(url) as process:
        yield process


def holding(url: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stdout.readline() == "locked\n"
    return process


def check_that_one_holder_is_named(store: Store, url: str) -> None:
    with holding(url) as process:
        with (
            pytest.raises(InputFault, match=f"process {process.pid} on .* is working on this run"),
            store.run_lock("some-run"),
        ):
            pytest.fail("a second process must not have the lock")
        with store.run_lock("other-run") as locked:
            assert locked and store.locked(["some-run", "other-run", "third"]) == {"some-run", "other-run"}
        process.kill()
        process.communicate()
    # A server may notice the end of a session a moment later.
    for _ in range(100):
        if not store.locked(["some-run"]):
            break
    with store.run_lock("some-run") as locked:
        assert locked


@pytest.mark.slow
def test_one_process_locks_a_run_and_is_named(store: Store, url: str) -> None:
    check_that_one_holder_is_named(store, url)


def test_a_reader_sees_locks_without_taking_any(store: Store, url: str) -> None:
    with store.run_lock("some-run"), open_reader(url) as reader:
        assert reader.locked(["some-run", "other-run"]) == {"some-run"}
        assert reader.locked(["some-run"]) == {"some-run"}
    with store.run_lock("some-run") as locked:
        assert locked
    assert store.locked(["some-run"]) == set()


def test_a_readers_short_lock_does_not_refuse_a_run(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with store.run_lock("some-run"):
        pass
    looking = os.open(tmp_path / "results.db-locks/some-run", os.O_RDONLY)
    fcntl.flock(looking, fcntl.LOCK_SH)
    monkeypatch.setattr("time.sleep", lambda _: fcntl.flock(looking, fcntl.LOCK_UN))
    with store.run_lock("some-run") as locked:
        assert locked
    os.close(looking)


def test_locks_of_a_copied_database_are_unknown(store: Store, tmp_path: Path) -> None:
    with store.run_lock("some-run"):
        (tmp_path / "results.db-locks").rename(tmp_path / "elsewhere")
        assert store.locked(["some-run"]) is None


@pytest.mark.slow
def test_a_stopped_process_keeps_its_lock(store: Store, holder: subprocess.Popen[str]) -> None:
    """A sleeping laptop stops its processes without ending them."""
    try:
        holder.send_signal(signal.SIGSTOP)
        assert store.locked(["some-run", "other-run"]) == {"some-run"}
    finally:
        holder.kill()
        holder.communicate()
    assert store.locked(["some-run"]) == set()


def test_runs_continue_if_files_cannot_be_locked(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "no locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with store.run_lock("some-run") as mine, store.run_lock("some-run") as theirs:
        assert (mine, theirs) == (False, False)
        assert store.locked(["some-run"]) is None


def test_runs_continue_if_lock_files_cannot_be_created(store: Store, tmp_path: Path) -> None:
    (tmp_path / "results.db-locks").write_text("no folder")
    with store.run_lock("some-run") as locked:
        assert not locked
    assert store.locked(["some-run"]) is None
