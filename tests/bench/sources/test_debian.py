"""The debian source, tested with fake apt programs. One `network` test runs the real ones."""

import hashlib
import io
import shutil
import tarfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from ctxbench.bench.errors import InputFault, MachineFault
from ctxbench.bench.home import Home
from ctxbench.bench.repositories import checkout, debian, manifest
from ctxbench.bench.repositories.sources import DebianSource, Unreachable
from tests.helpers.extras import absent, missing

HEAD = 'name = "demo"\nlanguage = "java"\nlicense = "MIT"\nversion = "1.15"\n'
APT_GET = """#!/bin/sh
echo "get $*" >> "$STANDIN/log"
cp "$APT_CONFIG" "$STANDIN/conf"
case "$*" in
  *update*) test -e "$STANDIN/offline" && { echo "E: Could not resolve host" >&2; exit 100; }
            cp "$STANDIN/served" "$STANDIN/lists" ;;
  *source*) test -e "$STANDIN/gone" && { echo "E: Failed to fetch 404" >&2; exit 100; }
            cp "$STANDIN/tarball" ./libdemo_1.15.orig.tar.gz ;;
esac
"""
APT_CACHE = """#!/bin/sh
echo "cache $*" >> "$STANDIN/log"
case "$*" in
  "showsrc --only-source libdemo") cat "$STANDIN/lists" ;;
  "showsrc libdemo-java") cat "$STANDIN/lists" ;;
  *) echo "W: Unable to locate package" >&2 ;;
esac
"""
APT_CONFIG = """#!/bin/sh
echo 'Acquire::http::Proxy "http://proxy.example.org";'
"""


class FakeApt:
    """A folder with fake apt programs that log their calls and answer from files."""

    def __init__(self, root: Path) -> None:
        self.root = root
        programs = {"apt-get": APT_GET, "apt-cache": APT_CACHE, "apt-config": APT_CONFIG}
        for name, text in programs.items():
            (root / name).write_text(text)
            (root / name).chmod(0o755)
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
            info = tarfile.TarInfo("demo-1.15-src/src/A.java")
            info.size = 10
            tar.addfile(info, io.BytesIO(b"class A {}"))
        (root / "tarball").write_bytes(buffer.getvalue())
        self.sha256 = hashlib.sha256(buffer.getvalue()).hexdigest()
        self.serve("1.15-2", "1.15")

    def serve(self, version: str, upstream: str) -> None:
        (self.root / "served").write_text(
            f"Package: libdemo\nVersion: {version}\nChecksums-Sha256:\n {'f' * 64} 99 libdemo_{version}.dsc\n"
            f" {self.sha256} 99 libdemo_{upstream}.orig.tar.gz\n {'e' * 64} 9 libdemo_{version}.debian.tar.xz\n\n"
        )

    def log(self, word: str) -> int:
        return (self.root / "log").read_text().count(word)


@pytest.fixture
def apt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeApt:
    folder = tmp_path / "programs"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setenv("STANDIN", str(folder))
    return FakeApt(folder)


def fetch(folder: Path, sha256: str, name: str = "demo", package: str = "libdemo") -> Path:
    path = folder / f"{name}.toml"
    source = f'[[source]]\nkind = "debian"\npackage = "{package}"\nsha256 = "{sha256}"\n'
    path.write_text(HEAD.replace("demo", name) + source)
    return checkout.fetch(manifest.load(str(path)), Home(folder / "home"), report=lambda _: None).root


def test_only_the_upstream_tarball_is_fetched(tmp_path: Path, apt: FakeApt) -> None:
    root = fetch(tmp_path, apt.sha256)
    assert [p.relative_to(root).as_posix() for p in root.rglob("*.java")] == ["src/A.java"]
    assert apt.log("--tar-only libdemo=1.15-2") == 1
    conf = (apt.root / "conf").read_text()
    assert "http://proxy.example.org" in conf and 'Dir::Etc::parts "/dev/null"' in conf
    assert str(tmp_path / "home" / "cache" / "apt" / "lists") in conf


def test_the_current_version_of_the_archive_is_found(tmp_path: Path, apt: FakeApt) -> None:
    home = Home(tmp_path / "home")
    source = DebianSource(package="libdemo", version="1.15", sha256=apt.sha256)
    for version in ("", "1.15", "1.15-2"):
        assert debian.latest("libdemo", version, home, print) == source
    with pytest.raises(InputFault, match="no such version of the package; give one of debian:libdemo=1.15"):
        debian.latest("libdemo", "2.0", home, print)
    with pytest.raises(Unreachable, match="debian:libdemo-java: .*no source package .*mean libdemo"):
        debian.latest("libdemo-java", "", home, print)
    more = (apt.root / "served").read_text()
    apt.serve("1.16-1", "1.16")
    (apt.root / "lists").write_text(more + (apt.root / "served").read_text())
    with pytest.raises(InputFault, match="several versions .*one of debian:libdemo=1.15, debian:libdemo=1.16"):
        debian.latest("libdemo", "", home, print)


def test_a_second_package_costs_no_second_update(tmp_path: Path, apt: FakeApt) -> None:
    fetch(tmp_path, apt.sha256)
    fetch(tmp_path, apt.sha256, "other")
    assert apt.log("update") == 1 and apt.log("--tar-only") == 2


def test_stale_package_lists_are_updated(tmp_path: Path, apt: FakeApt) -> None:
    apt.serve("1.14-1", "1.14")
    with pytest.raises(MachineFault, match=r"now has only other versions \(1.14-1\)"):
        fetch(tmp_path, apt.sha256)
    apt.serve("1.15-2", "1.15")
    assert fetch(tmp_path, apt.sha256).is_dir()
    assert apt.log("update") == 2


@pytest.mark.parametrize(
    ("package", "hint"),
    [
        ("libdemo-java", "did you mean libdemo?"),
        ("quux", "no source package of that name)"),
    ],
    ids=["a binary package", "nothing like it"],
)
def test_an_unknown_package_name_is_reported_with_a_hint(tmp_path: Path, apt: FakeApt, package: str, hint: str) -> None:
    with pytest.raises(MachineFault) as caught:
        fetch(tmp_path, apt.sha256, package=package)
    assert "the archive has no source package of that name" in str(caught.value) and hint in str(caught.value)


def test_an_archive_with_a_wrong_hash_is_not_kept(tmp_path: Path, apt: FakeApt) -> None:
    with pytest.raises(InputFault) as caught:
        fetch(tmp_path, "0" * 64)
    assert apt.sha256 in str(caught.value) and "0" * 64 in str(caught.value)
    assert [p.name for p in (tmp_path / "home" / "repos" / "demo").iterdir()] == [".lock"]


@pytest.mark.parametrize(("state", "words"), [("offline", "Could not resolve host"), ("gone", "404")])
def test_an_unreachable_archive_is_a_machine_fault(tmp_path: Path, apt: FakeApt, state: str, words: str) -> None:
    (apt.root / state).touch()
    with pytest.raises(MachineFault, match=words):
        fetch(tmp_path, apt.sha256)


def test_apt_is_not_started_on_a_full_disk(tmp_path: Path, apt: FakeApt, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=3_000_000))
    with pytest.raises(MachineFault, match=r"the disk is full \(3 MB free"):
        fetch(tmp_path, apt.sha256)
    assert not (apt.root / "log").exists(), "apt, which does not end on a full disk, was run"


def test_a_missing_apt_is_a_machine_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MachineFault, match="apt-config is not installed"):
        fetch(tmp_path, "0" * 64)


@pytest.mark.network
@pytest.mark.slow
def test_a_shipped_java_project_can_be_fetched(tmp_path: Path) -> None:
    if shutil.which("apt-get") is None:
        missing("no apt on this machine")
    told: list[str] = []
    try:
        found = checkout.fetch(manifest.load("commons-codec"), Home(tmp_path), report=told.append)
    except MachineFault:
        # Debian 12 has this version, later releases have another. Some networks cannot reach the second source.
        if any("the archive now has only other versions" in line for line in told):
            absent("the archive of this Debian has another commons-codec")
        raise
    assert len(list(found.root.rglob("*.java"))) == 143
