"""Whose work is whose: claims of several holders on one SQLite database."""

from __future__ import annotations

import errno
import fcntl
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ctxbench.harness.store import Store, open_store
from ctxbench.harness.store.store import open_reader

HOLDER = """
import sys
from ctxbench.harness.store import open_store
with open_store(sys.argv[1]) as store, store.claims() as claims:
    print(*sorted(claims.take(["a", "b"])), flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'results.db'}"


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with open_store(url) as store:
        yield store


def test_what_one_has_claimed_no_other_one_gets(store: Store) -> None:
    with store.claims() as mine, store.claims() as theirs:
        assert mine.take(["a", "b"]) == {"a", "b"}
        assert theirs.take(["a", "b", "c"]) == {"c"}
        mine.release(["a"])
        assert theirs.take(["a", "b"]) == {"a"}


def test_what_was_held_at_the_end_is_free(store: Store) -> None:
    with store.claims() as mine:
        assert mine.take(["a"])
    with store.claims() as theirs:
        assert theirs.take(["a"]) == {"a"}


@pytest.mark.slow
def test_a_killed_process_holds_nothing(store: Store, url: str) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with store.claims() as claims:
        assert holder.stdout is not None and holder.stdout.readline() == "a b\n"
        assert claims.take(["a", "b", "c"]) == {"c"}
        holder.kill()
        holder.communicate()
        assert claims.take(["a", "b"]) == {"a", "b"}


def test_a_claim_is_seen_by_a_reader_that_claims_nothing(store: Store, url: str) -> None:
    with store.claims() as claims:
        claims.take(["a"])
        with open_reader(url) as reader:
            assert reader.claimed(["a", "b"]) == {"a"}
        assert claims.take(["b"]) == {"b"}
    assert store.claimed(["a", "b"]) == set()


def test_nobody_can_tell_what_is_claimed_of_a_copied_database(store: Store, tmp_path: Path) -> None:
    with store.claims() as claims:
        claims.take(["a"])
        (tmp_path / "results.db-claims").rename(tmp_path / "elsewhere")
        assert store.claimed(["a"]) is None


@pytest.mark.slow
def test_a_stopped_process_still_has_what_it_claimed(store: Store, url: str) -> None:
    """A laptop that sleeps stops its processes: they are not dead."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout is not None and holder.stdout.readline() == "a b\n"
        holder.send_signal(signal.SIGSTOP)
        assert store.claimed(["a", "c"]) == {"a"}
    finally:
        holder.kill()
        holder.communicate()
    assert store.claimed(["a", "c"]) == set()


def test_where_no_file_can_be_locked_everything_is_there_for_the_taking(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "no locks available")

    with store.claims() as mine, store.claims() as theirs:
        monkeypatch.setattr(fcntl, "fcntl", refuse)
        assert mine.take(["a"]) == theirs.take(["a"]) == {"a"}
        assert store.claimed(["a"]) is None
