"""The format of the weights on a processor: measured once, kept, and part of what decides answers."""

import json
from pathlib import Path

import pytest

from ctxbench.harness.generators import precision
from ctxbench.harness.generators.hf import HF
from ctxbench.harness.generators.local import LocalModel, configured_dtype
from ctxbench.harness.generators.models import table


@pytest.fixture
def timed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Time nothing: every format but bfloat16 is slow; the formats that were timed are returned."""
    formats: list[str] = []

    def ratio(dtype: str) -> float:
        formats.append(dtype)
        return 0.4 if dtype == "bfloat16" else 50.0

    monkeypatch.setattr(precision, "_ratio", ratio)
    monkeypatch.setattr(precision, "version", lambda _: "2.13.0")
    return formats


def test_a_format_is_timed_once(timed: list[str]) -> None:
    assert [precision.is_fast("bfloat16") for _ in range(3)] == [True] * 3
    assert [precision.is_fast("float16") for _ in range(2)] == [False] * 2
    assert timed == ["bfloat16", "float16"]
    assert sorted(json.loads((table.home() / "processors.json").read_text()).values()) == [0.4, 50.0]


@pytest.mark.parametrize("text", ["broken", "[]", '{"x": "y"}', "\xff"])
def test_what_cannot_be_read_is_measured_anew(timed: list[str], text: str) -> None:
    table.home().mkdir(parents=True)
    (table.home() / "processors.json").write_text(text, encoding="latin-1")
    assert precision.is_fast("bfloat16")
    assert precision.is_fast("bfloat16")
    assert timed == ["bfloat16"]


def test_a_folder_that_cannot_be_written_is_no_fault(timed: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(table.MODELS, "/proc/none")
    assert precision.is_fast("bfloat16")


def local(folder: Path, stored: str, *, dtype: str = "auto", device: str = "cpu") -> HF:
    (folder / "config.json").write_text(json.dumps({"dtype": stored}))
    (folder / "model.safetensors").write_bytes(b"weights")
    settings = LocalModel(by="hf", model=str(folder), revision="", dtype=dtype, batch=1, window=0, chat=False)
    model = HF(settings, device=device)
    # As if torch had been asked.
    model.__dict__["_device"] = device
    return model


@pytest.mark.parametrize(
    ("stored", "dtype", "device", "used"),
    [
        ("bfloat16", "auto", "cpu", "auto"),
        ("float16", "auto", "cpu", "float32"),
        ("float16", "auto", "cuda", "auto"),
        ("float16", "float16", "cpu", "float16"),
        ("float32", "auto", "cpu", "auto"),
        ("", "auto", "cpu", "auto"),
    ],
)
def test_auto_is_what_this_processor_computes_faster(
    tmp_path: Path, timed: list[str], stored: str, dtype: str, device: str, used: str
) -> None:
    model = local(tmp_path, stored, dtype=dtype, device=device)
    assert model._dtype == used
    assert model.version.endswith("-float32") == (used == "float32")


def test_older_configurations_call_it_by_another_name(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"torch_dtype": "float16"}')
    assert configured_dtype(tmp_path) == "float16"
