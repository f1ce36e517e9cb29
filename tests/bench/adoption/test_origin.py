"""What the user names: forms, names, hashes, and what is said of wrong ones."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from ctxbench.bench.adoption.adopt import check_ref, resolve
from ctxbench.bench.errors import InputFault
from ctxbench.bench.files import sha256_file
from ctxbench.bench.home import Home
from ctxbench.bench.repositories import pypi
from ctxbench.bench.repositories.sources import GitSource, LocalSource, PypiSource, Unreachable
from tests.helpers.tiny_wheels import tiny_wheel

COMMIT = "0123456789abcdef0123456789abcdef01234567"
NAMES = [
    ("pypi:Flask_SQLAlchemy==3.1", "flask_sqlalchemy"),
    ("debian:libcommons-cli-java", "commons-cli"),
    ("debian:opencsv=5.6", "opencsv"),
    (f"git+https://example.org/owner/Demo.git@{COMMIT}", "demo"),
]
WRONG = [
    ("pypi:demo", "pip index versions"),
    ("pypi:demo>=1", "pypi:NAME==VERSION"),
    ("git+https://example.org/x@main", "git ls-remote"),
    ("debian:Demo", "source package"),
    ("no/such/folder", "give pypi:NAME==VERSION"),
]


@pytest.mark.parametrize(("ref", "name"), NAMES)
def test_a_source_gives_its_manifest_a_name(ref: str, name: str) -> None:
    assert check_ref(ref) == name


@pytest.mark.parametrize(("ref", "cure"), WRONG)
def test_what_is_no_source_is_refused_with_the_right_form(ref: str, cure: str) -> None:
    with pytest.raises(InputFault, match="is not whole|is no source") as caught:
        check_ref(ref)
    assert cure in caught.value.cure


def test_folders_and_archives(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    (tmp_path / "My Repo").mkdir()
    folder = resolve(str(tmp_path / "My Repo"), home, print)
    assert (folder.name, folder.version, folder.source) == ("my-repo", "", LocalSource(path=tmp_path / "My Repo"))
    archive = tmp_path / "demo-2.0rc1.tar.gz"
    archive.write_bytes(b"x")
    packed = resolve(str(archive), home, print)
    assert (packed.name, packed.version) == ("demo", "2.0rc1")
    assert packed.source == LocalSource(path=archive, sha256=sha256_file(archive))
    unnumbered = resolve(str(archive.rename(tmp_path / "main.zip")), home, print)
    assert (unnumbered.name, unnumbered.version) == ("main", sha256_file(tmp_path / "main.zip")[:12])


def test_a_commit_needs_no_network(tmp_path: Path) -> None:
    origin = resolve(f"git+https://example.org/owner/demo@{COMMIT}", Home(tmp_path), print)
    assert (origin.version, origin.source) == (
        COMMIT[:12],
        GitSource(url="https://example.org/owner/demo", commit=COMMIT),
    )


def test_a_release_is_pinned_by_the_hash_that_the_index_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sdist = tmp_path / "demo-1.0.tar.gz"
    sdist.write_bytes(b"x")
    tiny_wheel(tmp_path, "demo", "0.9")
    monkeypatch.setattr(pypi, "configured", lambda: pypi.Configuration(indices=(), links=(str(tmp_path),)))
    origin = resolve("pypi:demo==1.0", Home(tmp_path), print)
    assert origin.source == PypiSource(name="demo", version="1.0", sha256=sha256_file(sdist))
    assert not origin.wheel
    tiny_wheel(tmp_path, "demo", "1.0")
    assert resolve("pypi:demo==1.0", Home(tmp_path), print).wheel
    with pytest.raises(Unreachable, match="no sdist of version 3") as caught:
        resolve("pypi:demo==3", Home(tmp_path), print)
    assert "pip index versions demo" in caught.value.cure


def test_an_index_that_tells_when_it_was_uploaded_is_believed() -> None:
    page = pypi.Page(
        "https://example.org/simple/demo/",
        "application/vnd.pypi.simple.v1+json",
        b'{"files": [{"filename": "demo-1.0.tar.gz", "url": "x", "hashes": {}, "upload-time": "2024-05-06T07:08:09Z"},'
        b' {"filename": "demo-2.0.tar.gz", "url": "y", "hashes": {}, "upload-time": 7}]}',
    )
    assert [offer.uploaded for offer in pypi._parse(page)] == [date(2024, 5, 6), None]
