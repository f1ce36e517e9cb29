"""Unpacking: nothing outside the folder is ever written, whatever the archive says."""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.errors import InputFault
from bench.sources.archive import unpack

Member = tuple[str, bytes | None, bytes, str]
"""Name, content, tar type, link target."""


def make_tar(path: Path, members: list[Member], mode: str = "w:gz") -> Path:
    with tarfile.open(path, mode) as tar:  # type: ignore[call-overload]
        for name, content, kind, link in members:
            info = tarfile.TarInfo(name)
            info.type, info.linkname, info.size = kind, link, len(content or b"")
            tar.addfile(info, io.BytesIO(content or b""))
    return path


def regular(name: str, content: bytes = b"x") -> Member:
    return name, content, tarfile.REGTYPE, ""


def tree_of(root: Path) -> dict[str, bytes]:
    return {p.relative_to(root).as_posix(): p.read_bytes() for p in sorted(root.rglob("*")) if p.is_file()}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "out" / "tree").mkdir(parents=True)
    return tmp_path / "out" / "tree"


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_the_shared_top_folder_is_left_out(tmp_path: Path, tree: Path, mode: str) -> None:
    archive = make_tar(tmp_path / "a", [regular("demo-1/a.py", b"1"), regular("demo-1/pkg/b.py", b"2")], mode)
    assert unpack(archive, tree, strip=True) == 0
    assert tree_of(tree) == {"a.py": b"1", "pkg/b.py": b"2"}


def test_no_top_folder_is_left_out_where_none_is_shared(tmp_path: Path, tree: Path) -> None:
    unpack(make_tar(tmp_path / "a", [regular("a/a.py"), regular("b/b.py")]), tree, strip=True)
    assert sorted(tree_of(tree)) == ["a/a.py", "b/b.py"]


def test_without_strip_every_folder_stays(tmp_path: Path, tree: Path) -> None:
    unpack(make_tar(tmp_path / "a", [regular("src/a.py")]), tree, strip=False)
    assert sorted(tree_of(tree)) == ["src/a.py"]


@pytest.mark.parametrize("name", ["/tmp/evil.py", "../evil.py", "demo/../../evil.py"])
def test_a_member_outside_condemns_the_archive(tmp_path: Path, tree: Path, name: str) -> None:
    archive = make_tar(tmp_path / "a", [regular("demo/a.py"), regular(name)])
    with pytest.raises(InputFault, match="outside"):
        unpack(archive, tree, strip=False)
    assert not list(tmp_path.rglob("evil.py"))


def test_links_and_devices_are_dropped(tmp_path: Path, tree: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    members = [
        regular("demo/a.py"),
        ("demo/link", None, tarfile.SYMTYPE, str(outside)),
        regular("demo/link/planted.py"),
        ("demo/passwd", None, tarfile.SYMTYPE, "/etc/passwd"),
        ("demo/hard", None, tarfile.LNKTYPE, "/etc/passwd"),
        ("demo/null", None, tarfile.CHRTYPE, ""),
        ("demo/pipe", None, tarfile.FIFOTYPE, ""),
    ]
    assert unpack(make_tar(tmp_path / "a", members), tree, strip=True) == 5
    assert sorted(tree_of(tree)) == ["a.py", "link/planted.py"]
    assert not list(outside.iterdir()) and not (tree / "link").is_symlink()


def test_zip(tmp_path: Path, tree: Path) -> None:
    archive = tmp_path / "a.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("demo-1/pkg/a.py", "1")
        link = zipfile.ZipInfo("demo-1/link")
        link.external_attr = 0o120777 << 16
        file.writestr(link, "/etc/passwd")
    assert unpack(archive, tree, strip=True) == 1
    assert tree_of(tree) == {"pkg/a.py": b"1"}


def test_zip_with_a_member_outside(tmp_path: Path, tree: Path) -> None:
    archive = tmp_path / "a.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("../evil.py", "1")
    with pytest.raises(InputFault, match="outside"):
        unpack(archive, tree, strip=True)


def cut(raw: bytes) -> bytes:
    return raw[: len(raw) // 2]


@pytest.mark.parametrize("spoil", [cut, lambda _: b"not an archive", lambda _: b""], ids=["cut", "text", "empty"])
def test_a_broken_archive_is_one_fault(tmp_path: Path, tree: Path, spoil: Callable[[bytes], bytes]) -> None:
    archive = make_tar(tmp_path / "a", [regular(f"demo/{n}.py", bytes(range(256)) * 99) for n in range(9)])
    archive.write_bytes(spoil(archive.read_bytes()))
    with pytest.raises(InputFault, match="not a whole archive"):
        unpack(archive, tree, strip=True)
