"""Unpacking: no archive can write outside the folder."""

import io
import lzma
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ctxbench.bench.errors import InputFault
from ctxbench.bench.repositories.sources import unpack

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


def test_top_folders_are_kept_if_there_are_several(tmp_path: Path, tree: Path) -> None:
    unpack(make_tar(tmp_path / "a", [regular("a/a.py"), regular("b/b.py")]), tree, strip=True)
    assert sorted(tree_of(tree)) == ["a/a.py", "b/b.py"]


def test_without_strip_every_folder_stays(tmp_path: Path, tree: Path) -> None:
    unpack(make_tar(tmp_path / "a", [regular("src/a.py")]), tree, strip=False)
    assert sorted(tree_of(tree)) == ["src/a.py"]


@pytest.mark.parametrize("name", ["/tmp/evil.py", "../evil.py", "demo/../../evil.py"])
def test_a_tar_member_outside_the_folder_is_a_fault(tmp_path: Path, tree: Path, name: str) -> None:
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


def test_a_zip_archive_is_unpacked_without_links(tmp_path: Path, tree: Path) -> None:
    archive = tmp_path / "a.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("demo-1/pkg/a.py", "1")
        link = zipfile.ZipInfo("demo-1/link")
        link.external_attr = 0o120777 << 16
        file.writestr(link, "/etc/passwd")
    assert unpack(archive, tree, strip=True) == 1
    assert tree_of(tree) == {"pkg/a.py": b"1"}


@pytest.mark.parametrize(("offset", "value"), [(6, 1), (8, 99)], ids=["encrypted", "unknown compression"])
def test_an_unreadable_zip_member_is_a_fault(tmp_path: Path, tree: Path, offset: int, value: int) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("a.py", "x = 1\n")
    data = bytearray((tmp_path / "a.zip").read_bytes())
    # The member's local header, and its entry in the directory.
    data[offset] = data[data.index(b"PK\x01\x02") + offset + 2] = value
    (tmp_path / "a.zip").write_bytes(data)
    with pytest.raises(InputFault, match="not a complete archive"):
        unpack(tmp_path / "a.zip", tree, strip=False)


def test_a_zip_member_outside_the_folder_is_a_fault(tmp_path: Path, tree: Path) -> None:
    archive = tmp_path / "a.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("../evil.py", "1")
    with pytest.raises(InputFault, match="outside"):
        unpack(archive, tree, strip=True)


def cut(raw: bytes) -> bytes:
    return raw[: len(raw) // 2]


@pytest.mark.parametrize("spoil", [cut, lambda _: b"not an archive", lambda _: b""], ids=["cut", "text", "empty"])
def test_a_damaged_archive_is_a_fault(tmp_path: Path, tree: Path, spoil: Callable[[bytes], bytes]) -> None:
    archive = make_tar(tmp_path / "a", [regular(f"demo/{n}.py", bytes(range(256)) * 99) for n in range(9)])
    archive.write_bytes(spoil(archive.read_bytes()))
    with pytest.raises(InputFault, match="not a complete archive"):
        unpack(archive, tree, strip=True)


class Zeros(io.RawIOBase):
    def __init__(self, size: int) -> None:
        self.left = size

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = min(len(buffer), self.left)
        buffer[:count] = bytes(count)
        self.left -= count
        return count


def many_zeros(path: Path, kind: str, size: int) -> Path:
    if kind == "zip":
        with (
            zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
            archive.open("demo/zeros", "w", force_zip64=True) as out,
        ):
            shutil.copyfileobj(io.BufferedReader(Zeros(size)), out, 1 << 20)
    else:
        with tarfile.open(path, f"w:{kind}", **({"compresslevel": 1} if kind == "gz" else {})) as tar:  # type: ignore[call-overload]
            info = tarfile.TarInfo("demo/zeros")
            info.size = size
            tar.addfile(info, io.BufferedReader(Zeros(size)))
    return path


@pytest.mark.parametrize("kind", ["gz", "zip"])
def test_an_archive_that_unpacks_to_too_many_bytes_is_refused(
    tmp_path: Path, tree: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ctxbench.bench.repositories.sources.MAX_BYTES", 64 << 20)
    small = many_zeros(tmp_path / "bomb", kind, 65 << 20)
    assert small.stat().st_size < 1 << 20
    with pytest.raises(InputFault, match="unpacks to more than 64 MiB; if you trust the archive, unpack it yourself"):
        unpack(small, tree, strip=True)
    assert tree_of(tree) == {}


def test_an_archive_of_too_many_members_is_refused(tmp_path: Path, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctxbench.bench.repositories.sources.MAX_MEMBERS", 10)
    archive = make_tar(tmp_path / "a", [regular(f"demo/{number}.py") for number in range(11)])
    with pytest.raises(InputFault, match="has more than 10 members"):
        unpack(archive, tree, strip=True)


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME])
def test_a_huge_header_is_not_read_into_memory(tmp_path: Path, tree: Path, kind: bytes) -> None:
    header = tarfile.TarInfo("long")
    header.type, header.size = kind, 2 << 30
    archive = tmp_path / "a.tar"
    archive.write_bytes(header.tobuf(tarfile.USTAR_FORMAT) + bytes(1 << 16))
    with pytest.raises(InputFault, match="a header of 2048 MiB"):
        unpack(archive, tree, strip=True)


def test_an_xz_archive_with_a_huge_dictionary_is_refused(tmp_path: Path, tree: Path) -> None:
    plain = make_tar(tmp_path / "a.tar", [regular("demo/a.py")], "w").read_bytes()
    packed = bytearray(lzma.compress(plain, filters=[{"id": lzma.FILTER_LZMA2, "preset": 0}]))
    # One byte of the block header encodes the dictionary size: 38 means 2 GiB. The header ends with its checksum.
    header = packed[12 : 12 + (packed[12] + 1) * 4]
    place = header.index(b"\x21\x01") + 2
    header[place] = 38
    header[-4:] = zlib.crc32(header[:-4]).to_bytes(4, "little")
    packed[12 : 12 + len(header)] = header
    archive = tmp_path / "a.tar.xz"
    archive.write_bytes(packed)
    with pytest.raises(InputFault, match="not a complete archive .*[Mm]emory usage limit"):
        unpack(archive, tree, strip=True)
