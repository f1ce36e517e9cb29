"""Converting a GGUF file with transformers: once, completely or not at all, and equally on every machine."""

import hashlib
import json
import shutil
import types
from collections import namedtuple
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ctxbench.bench.errors import InputFault, MachineFault
from ctxbench.harness.generators import local, models
from ctxbench.harness.generators.models import adding, table
from tests.helpers.extras import needed


class Network:
    def __init__(self) -> None:
        self.hf_quantizer = self.config = types.SimpleNamespace(quantization_config=1)

    def save_pretrained(self, folder: Path) -> None:
        assert not hasattr(self.config, "quantization_config")
        assert self.hf_quantizer is None
        (folder / "config.json").write_text(json.dumps({"transformers_version": "9", "model_type": "llama"}))
        (folder / "model.safetensors").write_bytes(b"weights")


class Library:
    """A fake transformers library for a model whose file lacks the given tensors."""

    def __init__(self, missing: list[str] | None = None, error: Exception | None = None) -> None:
        self.missing, self.error, self.calls = missing or [], error, 0
        self.AutoModelForCausalLM = self.AutoTokenizer = self

    def from_pretrained(self, folder: Path, *, output_loading_info: bool = False, **_: object) -> Any:
        self.calls += 1
        if self.error:
            raise self.error
        return (Network(), {"missing_keys": self.missing}) if output_loading_info else self

    def save_pretrained(self, folder: Path) -> None:
        (folder / "tokenizer.json").write_text("{}")


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> models.NamedModel:
    monkeypatch.setattr(models.weights, "need", lambda *_, **__: None)
    table.home().mkdir(parents=True)
    (table.home() / table.FILE).write_text(
        f'[[model]]\nname = "tiny"\nfile = "tiny.gguf"\nbytes = 4\nsha256 = "{hashlib.sha256(b"GGUF").hexdigest()}"\n'
        'license = "MIT"\nwindow = 64\n[[model.source]]\nkind = "file"\npath = "x"\n'
    )
    model = models.find("tiny")
    model.place.parent.mkdir()
    model.place.write_bytes(b"GGUF")
    return model


def test_a_file_is_converted_once(fetched: models.NamedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    library = Library()
    monkeypatch.setattr(local, "transformers_module", lambda: library)
    folder = models.folder("tiny")
    assert folder == models.folder("tiny") == fetched.place.parent / "bfloat16"
    assert library.calls == 3
    assert json.loads((folder / "config.json").read_text()) == {"model_type": "llama"}
    assert all(path.stat().st_mode & 0o777 == 0o644 for path in folder.iterdir())


@pytest.mark.parametrize(
    ("library", "message"),
    [
        (
            Library(missing=["a.weight"]),
            r"1 tensors are missing \(a.weight\); run the file with llama.cpp: --generator serve",
        ),
        (
            Library(error=ValueError("no such architecture\nmore")),
            r"cannot convert the file \(ValueError: no such architec",
        ),
        (Library(error=OSError("not a file")), r"cannot convert the file \(OSError: not a file\)"),
    ],
)
def test_a_failed_conversion_leaves_no_file(
    fetched: models.NamedModel, monkeypatch: pytest.MonkeyPatch, library: Library, message: str
) -> None:
    monkeypatch.setattr(local, "transformers_module", lambda: library)
    with pytest.raises(InputFault, match=message):
        models.folder("tiny")
    assert [path.name for path in fetched.place.parent.iterdir() if not path.name.startswith(".")] == ["tiny.gguf"]
    assert not list(fetched.place.parent.glob(".ctxbench-*"))


def test_a_full_disk_is_a_machine_fault(fetched: models.NamedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "transformers_module", lambda: Library(error=OSError(28, "No space left")))
    with pytest.raises(MachineFault, match="the disk is full"):
        models.folder("tiny")
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(10, 9, 1))
    with pytest.raises(MachineFault, match="free some space"):
        models.folder("tiny")


def test_missing_packages_are_named(fetched: models.NamedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = table.home()
    monkeypatch.undo()
    monkeypatch.setenv(table.MODELS, str(folder))
    monkeypatch.setattr(models.weights.importlib.util, "find_spec", lambda name: None if name == "gguf" else 1)
    with pytest.raises(InputFault, match=r"model tiny: gguf must be installed; pip install 'ctxbench\[hf\]'"):
        models.folder("tiny")


@pytest.mark.slow
def test_a_real_file_is_converted_by_transformers(tmp_path: Path) -> None:
    gguf, tokenizers, transformers = (needed(name, "hf") for name in ("gguf", "tokenizers", "transformers"))
    file = tmp_path / "tiny.gguf"
    writer = gguf.GGUFWriter(str(file), "llama")
    writer.add_license("mit")
    writer.add_context_length(64)
    writer.add_embedding_length(32)
    writer.add_block_count(1)
    writer.add_feed_forward_length(64)
    writer.add_head_count(2)
    writer.add_head_count_kv(2)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10000.0)
    writer.add_tokenizer_model("gpt2")
    tokens = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    writer.add_token_list([*tokens, "<|end|>", "ab"])
    writer.add_token_merges(["a b"])
    writer.add_bos_token_id(256)
    writer.add_eos_token_id(256)
    shapes = {"token_embd": (258, 32), "output_norm": (32,), "output": (258, 32)}
    shapes |= {f"blk.0.attn_{name}": (32, 32) for name in ("q", "k", "v", "output")}
    shapes |= {"blk.0.attn_norm": (32,), "blk.0.ffn_norm": (32,), "blk.0.ffn_gate": (64, 32), "blk.0.ffn_up": (64, 32)}
    shapes |= {"blk.0.ffn_down": (32, 64)}
    numbers = np.random.default_rng(0)
    for name, shape in shapes.items():
        writer.add_tensor(f"{name}.weight", numbers.normal(size=shape).astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    [model] = adding.add(file, name="", license_name="", chat=False)
    shutil.copytree(tmp_path, model.place.parent, ignore=shutil.ignore_patterns("models", "home"), dirs_exist_ok=True)
    folder = models.folder("tiny")
    assert local.configured_dtype(folder) == "bfloat16"
    assert local.configured_window(folder) == 64
    _, report = transformers.AutoModelForCausalLM.from_pretrained(folder, output_loading_info=True)
    assert not report["missing_keys"]
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    assert tokenizer("abb")["input_ids"] == [257, tokens.index("b")]
