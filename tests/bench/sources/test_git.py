"""The git source, tested with real repositories on this machine."""

import subprocess
from datetime import date
from pathlib import Path

import pytest

from ctxbench.bench.errors import MachineFault
from ctxbench.bench.home import Home
from ctxbench.bench.repositories import checkout
from ctxbench.bench.repositories.manifest import RepoManifest
from tests.helpers.repositories import git, manifest_of


@pytest.fixture
def origin(tmp_path: Path) -> Path:
    folder = tmp_path / "origin"
    (folder / "tests").mkdir(parents=True)
    (folder / "a.py").write_bytes(b"# $Format:%H$ $Id$\r\nx = 1\n")
    (folder / "tests" / "test_a.py").write_text("y = 1\n")
    (folder / "link.py").symlink_to("/etc/passwd")
    # Each of these attributes would change or omit files if git applied it.
    (folder / ".gitattributes").write_text("tests export-ignore\n*.py export-subst ident text eol=lf filter=evil\n")
    git(folder, "init", "-q")
    git(folder, "-c", "core.autocrlf=false", "add", ".")
    git(folder, "commit", "-qm", "one")
    return folder


def load(folder: Path, url: str, commit: str) -> RepoManifest:
    return manifest_of(folder, f'[[source]]\nkind = "git"\nurl = "{url}"\ncommit = "{commit}"\n')


def fetch(folder: Path, url: str, commit: str) -> Path:
    return checkout.fetch(load(folder, url, commit), Home(folder / "home"), report=lambda _: None).root


def test_a_checkout_has_exactly_the_files_of_the_commit(tmp_path: Path, origin: Path) -> None:
    commit = git(origin, "rev-parse", "HEAD")
    stored = subprocess.run(["git", "show", "HEAD:a.py"], cwd=origin, check=True, capture_output=True).stdout
    root = fetch(tmp_path, origin.as_uri(), commit)
    assert (root / "a.py").read_bytes() == stored
    assert sorted(p.name for p in root.iterdir()) == [".gitattributes", "a.py", "tests"]
    assert (root / "tests" / "test_a.py").is_file()
    assert root.name == f"1.0-{commit[:10]}"


def test_an_older_commit_is_fetched_without_untracked_files(tmp_path: Path, origin: Path) -> None:
    commit = git(origin, "rev-parse", "HEAD")
    (origin / "a.py").write_text("x = 2\n")
    git(origin, "add", ".")
    git(origin, "commit", "-qm", "two")
    (origin / "leftover.py").write_text("z = 3\n")
    root = fetch(tmp_path, origin.as_uri(), commit)
    assert b"x = 1" in (root / "a.py").read_bytes() and not (root / "leftover.py").exists()


def test_the_users_git_configuration_is_ignored(tmp_path: Path, origin: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = tmp_path / "ran"
    own = tmp_path / "user"
    own.mkdir()
    (own / ".gitconfig").write_text(
        f'[filter "evil"]\n\tsmudge = touch {ran}\n[core]\n\tautocrlf = true\n'
        '[url "file:///nowhere/"]\n\tinsteadOf = file:///\n'
    )
    commit = git(origin, "rev-parse", "HEAD")
    monkeypatch.setenv("HOME", str(own))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(own / ".gitconfig"))
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    assert (fetch(tmp_path, origin.as_uri(), commit) / "a.py").is_file()
    assert not ran.exists()


def test_a_commit_that_the_server_lacks_is_a_machine_fault(tmp_path: Path, origin: Path) -> None:
    with pytest.raises(MachineFault) as caught:
        fetch(tmp_path, origin.as_uri(), "1" * 40)
    assert "not our ref" in str(caught.value) and 'kind = "local"' in str(caught.value)
    assert not [p for p in (tmp_path / "home" / "repos" / "demo").iterdir() if p.name != ".lock"]


def test_a_missing_git_is_a_machine_fault(tmp_path: Path, origin: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MachineFault, match="git is not installed"):
        fetch(tmp_path, origin.as_uri(), "1" * 40)


def test_the_commit_day_is_recorded_in_utc(tmp_path: Path, origin: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # In UTC the day is still the sixth.
    monkeypatch.setenv("GIT_COMMITTER_DATE", "2024-05-07T01:00:00 +0200")
    git(origin, "commit", "-q", "--amend", "--no-edit")
    wanted = load(tmp_path, origin.as_uri(), git(origin, "rev-parse", "HEAD"))
    fetched = checkout.fetch(wanted, Home(tmp_path / "home"), report=lambda _: None)
    assert fetched.published == date(2024, 5, 6)
    assert checkout.find(wanted, Home(tmp_path / "home")) == fetched
