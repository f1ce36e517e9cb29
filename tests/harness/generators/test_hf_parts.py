"""Parts of `hf` without torch: parameters, files, ends of answers, measured tokens, and the weights' format."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ctxbench.bench.errors import InputFault
from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.retrieval.encoders import weights
from ctxbench.bench.retrieval.encoders.weights import weight_files
from ctxbench.bench.types import Kind
from ctxbench.harness.generators import hf as package
from ctxbench.harness.generators import precision
from ctxbench.harness.generators.answers import End, end_of
from ctxbench.harness.generators.base import Request, Sampling
from ctxbench.harness.generators.fitting import encode_pair, rolling_windows
from ctxbench.harness.generators.hf import HF
from ctxbench.harness.generators.local import LocalModel, configured_dtype, configured_window, is_chat, model_digest
from ctxbench.harness.generators.models import table
from ctxbench.strategies.api import Block, BlockKind, Prompt
from tests.helpers.extras import needed


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "need", lambda *_, **__: None)


def folder(path: Path, **config: Any) -> Path:
    path.mkdir(exist_ok=True)
    (path / "config.json").write_text(json.dumps(config))
    (path / "model.safetensors").write_bytes(bytes(range(256)) * 1024)
    return path


# Parameters


def test_a_missing_extra_is_named_with_its_install_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(weights.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputFault, match=r"torch and transformers must be installed.*pip install 'ctxbench\[hf\]'"):
        package.hf(model="m")


@pytest.mark.parametrize(
    ("model", "chat"),
    [
        ("meta-llama/Llama-3.1-8B-Instruct", True),
        ("/models/deepseek-coder-7b-instruct-v1.5", True),
        ("/cache/models--meta-llama--Llama-3.2-1B-Instruct/snapshots/0a1b2c", True),
        ("codellama/CodeLlama-7b-hf", False),
        ("/chat/models/starcoder2-7b", False),
        ("Qwen/Qwen2.5-Coder-7B", False),
    ],
)
def test_a_models_name_determines_whether_it_follows_instructions(model: str, chat: bool) -> None:
    assert package.hf(model=model).capabilities.instructs is is_chat("auto", model) is chat
    assert (
        package.hf(model=model, chat="on").capabilities.instructs
        and not package.hf(model=model, chat="off").capabilities.instructs
    )


# Files


def test_the_version_depends_on_every_file_that_affects_answers(tmp_path: Path) -> None:
    one = folder(tmp_path / "one", max_position_embeddings=64)
    same = folder(tmp_path / "same", max_position_embeddings=64)
    made = package.hf(model=str(one))
    assert made.version == package.hf(model=str(same)).version and made.window == 64
    seen = {made.version}
    for name, content in (
        ("config.json", b"{}"),
        ("tokenizer.json", b"{}"),
        ("chat_template.jinja", b"{{ messages }}"),
        ("model.safetensors", bytes(range(256)) * 1024 + b"."),
        ("model-2.safetensors", b"more"),
    ):
        (same / name).write_bytes(content)
        seen.add(newest := package.hf(model=str(same)).version)
    assert len(seen) == 6
    (same / "README.md").write_text("no matter")
    assert package.hf(model=str(same)).version == newest


def test_weights_of_equal_size_with_other_content_have_other_digests(tmp_path: Path) -> None:
    one, other = folder(tmp_path / "one"), folder(tmp_path / "other")
    trained = bytearray((other / "model.safetensors").read_bytes())
    trained[1000:] = bytes(len(trained) - 1000)
    (other / "model.safetensors").write_bytes(trained)
    assert model_digest(one) != model_digest(other)


def test_the_digest_reads_only_parts_of_large_weights(tmp_path: Path) -> None:
    made = folder(tmp_path / "large")
    with (made / "model.safetensors").open("wb") as handle:
        handle.truncate(40 << 30)  # a sparse file: it takes no space, but hours to read
    assert model_digest(made)


def test_safetensors_are_preferred(tmp_path: Path) -> None:
    made = folder(tmp_path / "both")
    before = model_digest(made)
    (made / "pytorch_model.bin").write_bytes(b"old")
    assert model_digest(made) == before and [path.suffix for path in weight_files(made)] == [".safetensors"]


@pytest.mark.parametrize(
    ("config", "window"),
    [
        ({"max_position_embeddings": 4096}, 4096),
        ({"n_positions": 1024}, 1024),
        ({"text_config": {"max_position_embeddings": 8192}}, 8192),
        ({"alibi": True}, 0),
        ({"max_position_embeddings": "many"}, 0),
    ],
)
def test_the_window_is_read_from_the_configuration(tmp_path: Path, config: dict[str, Any], window: int) -> None:
    made = folder(tmp_path / "m", **config)
    assert configured_window(made) == window == package.hf(model=str(made)).window
    assert package.hf(model=str(made), window=7).window == 7


def test_an_invalid_configuration_is_named(tmp_path: Path) -> None:
    (folder(tmp_path / "m") / "config.json").write_text("[]")
    with pytest.raises(InputFault, match=r"config\.json.*fetch the model again"):
        configured_window(tmp_path / "m")


def test_a_folder_without_a_model_is_not_looked_up_on_the_hub(tmp_path: Path) -> None:
    with pytest.raises(InputFault, match="does not contain a model"):
        _ = package.hf(model=str(tmp_path)).version


def cached(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty cache of the model hub, with the hub itself offline."""
    constants = needed("huggingface_hub.constants", "hf")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(home))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    return home


def test_a_model_in_the_hubs_cache_is_not_fetched_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = cached(tmp_path / "hub", monkeypatch) / "models--org--tiny"
    commit = "a" * 40
    (home / "snapshots").mkdir(parents=True)
    there = folder(home / "snapshots" / commit, max_position_embeddings=99)
    (home / "refs").mkdir()
    (home / "refs" / "main").write_text(commit)
    made = package.hf(model="org/tiny")
    assert made.window == 99 and made.version == f"2-{model_digest(there)}"
    assert package.hf(model="org/tiny", revision=commit).version == made.version


def test_a_missing_model_is_named_with_its_cure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cached(tmp_path / "hub", monkeypatch)
    with pytest.raises(InputFault, match=r"hf org/none.*name its folder"):
        _ = package.hf(model="org/none").version


# Ends of answers and measured tokens


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("", None),
        ("x = 1", None),
        ("x = 1\n", "x = 1"),
        ("x = 1\ny = 2\n", "x = 1"),
        ("\n\n    x = 1", None),
        ("\n\n    x = 1\n", "\n\n    x = 1"),
        ("  \n \n", None),
    ],
)
def test_a_line_answer_ends_with_its_first_complete_nonblank_line(text: str, answer: str | None) -> None:
    at = End(line=True).find(text)
    assert (None if at is None else text[:at]) == answer


def test_an_answer_ends_before_its_first_stop_text() -> None:
    end = End(stops=("[/CODE]", "\ndef "))
    assert end.find("x = 1\n[/COD") is None and end.find("a[/CODE]\ndef b") == 1 and end.find("a\ndef b[/CODE]") == 1
    assert End(stops=("=",), line=True).find("x = 1\n") == 2


def test_only_line_answers_end_with_a_line() -> None:
    prompt = Prompt(blocks=(Block(kind=BlockKind.INFILE, text="x"),))
    line = Request(prompt=prompt, language=PYTHON, sampling=Sampling(stop=("", "#")), one_line=True)
    function = Request(prompt=prompt, language=PYTHON, kind=Kind.FUNCTION)
    assert end_of(line, chat=False) == End(stops=("#",), line=True)
    assert end_of(line, chat=True) == End(stops=("#",))
    assert not end_of(function, chat=False) and end_of(line, chat=False)


def letters(text: str) -> list[int]:
    return [ord(letter) for letter in text]


def pairs(text: str) -> list[int]:
    """Encode a text as a tokenizer that joins two letters and adds a token at the beginning."""
    return [1, *(sum(map(ord, text[at : at + 2])) for at in range(0, len(text), 2))]


@pytest.mark.parametrize(
    ("prompt", "text", "tokens", "begin", "ids", "priced"),
    [
        ("x = ", "12", letters, 0, letters("x = 12\n"), 3),
        ("ab", "cd", pairs, 0, pairs("abcd\n"), 2),
        ("abc", "de", pairs, 0, pairs("abcde\n"), 2),  # a token that begins in the prompt is measured completely
        ("", "ab", letters, 7, [7, *letters("ab\n")], 3),  # after the start token
        ("", "ab", pairs, 7, pairs("ab\n"), 2),
    ],
)
def test_the_texts_tokens_and_its_line_end_are_measured(
    prompt: str, text: str, tokens: Callable[[str], list[int]], begin: int, ids: list[int], priced: int
) -> None:
    assert encode_pair(prompt, text, tokens, begin) == (ids, priced)


@pytest.mark.parametrize(("tokens", "priced", "window"), [(30, 25, 8), (30, 29, 7), (9, 8, 2), (100, 3, 5)])
def test_every_token_of_a_long_text_is_measured_once(tokens: int, priced: int, window: int) -> None:
    found = list(rolling_windows(range(tokens), priced, window))
    assert [token for ids, count in found for token in ids[-count:]] == list(range(tokens - priced, tokens))
    for ids, count in found:
        assert len(ids) <= window and ids == list(range(ids[0], ids[-1] + 1))
        assert len(ids) - count >= min(window // 2, ids[-1] - count + 1) > 0


@pytest.mark.slow
def test_a_finished_run_does_not_import_torch(tmp_path: Path) -> None:
    made = folder(tmp_path / "m", max_position_embeddings=64)
    program = (
        "import sys\n"
        "from ctxbench.bench.retrieval.encoders import weights\n"
        "weights.need = lambda *_, **__: None\n"
        "from ctxbench.harness.generators import hf\n"
        "made = hf.hf(model=sys.argv[1])\n"
        "print(made.version, made.window, made.capabilities.instructs)\n"
        "made.close()\n"
        "print(sorted({'torch', 'transformers', 'tokenizers', 'huggingface_hub'} & sys.modules.keys()))\n"
    )
    command = [sys.executable, "-c", program, str(made)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.splitlines() == [f"2-{model_digest(made)} 64 False", "[]"], done.stderr


@pytest.fixture
def timed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Replace the timing: every format but bfloat16 is slow. Return the formats that were timed."""
    formats: list[str] = []

    def ratio(dtype: str) -> float:
        formats.append(dtype)
        return 0.4 if dtype == "bfloat16" else 50.0

    monkeypatch.setattr(precision, "_ratio", ratio)
    monkeypatch.setattr(precision, "version", lambda _: "2.13.0")
    return formats


def test_a_weight_format_is_timed_once(timed: list[str]) -> None:
    assert [precision.is_fast("bfloat16") for _ in range(3)] == [True] * 3
    assert [precision.is_fast("float16") for _ in range(2)] == [False] * 2
    assert timed == ["bfloat16", "float16"]
    assert sorted(json.loads((table.home() / "processors.json").read_text()).values()) == [0.4, 50.0]


@pytest.mark.parametrize("text", ["broken", "[]", '{"x": "y"}', "\xff"])
def test_an_unreadable_timing_file_is_measured_again(timed: list[str], text: str) -> None:
    table.home().mkdir(parents=True)
    (table.home() / "processors.json").write_text(text, encoding="latin-1")
    assert precision.is_fast("bfloat16")
    assert precision.is_fast("bfloat16")
    assert timed == ["bfloat16"]


def test_an_unwritable_folder_does_not_stop_timing(timed: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(table.MODELS, "/proc/none")
    assert precision.is_fast("bfloat16")


def local_model(folder: Path, stored: str, *, dtype: str = "auto", device: str = "cpu") -> HF:
    (folder / "config.json").write_text(json.dumps({"dtype": stored}))
    (folder / "model.safetensors").write_bytes(b"weights")
    settings = LocalModel(by="hf", model=str(folder), revision="", dtype=dtype, batch=1, window=0, chat=False)
    model = HF(settings, device=device)
    # Set the device without asking torch.
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
def test_auto_selects_the_faster_format_on_this_processor(
    tmp_path: Path, timed: list[str], stored: str, dtype: str, device: str, used: str
) -> None:
    model = local_model(tmp_path, stored, dtype=dtype, device=device)
    assert model._dtype == used
    assert model.version.endswith("-float32") == (used == "float32")


def test_the_format_is_read_from_older_configurations(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"torch_dtype": "float16"}')
    assert configured_dtype(tmp_path) == "float16"
