"""Models by name: the table, the places of files, and facts from GGUF files and folders, also from invalid ones."""

import hashlib
import json
import struct
from pathlib import Path

import pytest

from ctxbench.bench.errors import InputFault
from ctxbench.harness.cli.main import run
from ctxbench.harness.generators import local, models
from ctxbench.harness.generators.models import adding, table

ENTRY = """
[[model]]
name = "tiny"
file = "tiny.gguf"
bytes = 4
sha256 = "{sha}"
license = "MIT"
window = 64

[[model.source]]
kind = "file"
path = "tiny.gguf"
"""


def write_table(text: str) -> Path:
    table.home().mkdir(parents=True)
    (path := table.home() / table.FILE).write_text(text, encoding="utf-8")
    return path


def test_the_shipped_table_is_valid() -> None:
    assert [model.name for model in table.builtin()] == ["smollm2-135m", "qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b"]
    assert all(model.license == "Apache-2.0" and model.title and not model.chat for model in table.builtin())
    assert all(source.by for model in table.builtin() for source in model.sources)


def test_paths_and_hub_names_are_not_known_models() -> None:
    write_table("broken")
    assert models.known("/models/tiny") is None
    assert models.known("Qwen/Qwen2.5-Coder-0.5B") is None


def test_the_users_table_adds_models() -> None:
    path = write_table(ENTRY.format(sha="0" * 64))
    [model] = table.of_user()
    assert models.names()[-1] == "tiny"
    assert models.find("tiny") == model
    assert model.sources == (table.FileSource(path=path.parent / "tiny.gguf"),)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('license = "MIT"\n', "", r"model\[1\].license: is missing; name the licence of the weights, e.g. license = "),
        ('license = "MIT"', 'license = " "', "license: ' ' is blank"),
        ('name = "tiny"', 'name = "../tiny"', "name of lower-case letters"),
        ('name = "tiny"', 'name = "smollm2-135m"', "is taken; use another name"),
        ('file = "tiny.gguf"', 'file = "../tiny.gguf"', "not the name of a GGUF file"),
        ("bytes = 4", "bytes = 0", "less than 1"),
        ("0000", "zz", "not a sha256"),
        ("window = 64", 'window = 64\nfim = "made-up"', "'made-up' is unknown; use qwen, "),
        ("window = 64", "window = 64\nwindw = 1", "did you mean 'window'"),
        ('kind = "file"\npath = "tiny.gguf"', 'kind = "wheels"\nwheels = []', "wheels: the list is empty"),
        (
            'kind = "file"\npath = "tiny.gguf"',
            'kind = "wheels"\nwheels = [{wheel = "--index-url=x", member = "x"}]',
            "not a name==version",
        ),
        ('kind = "file"\npath = "tiny.gguf"', 'kind = "hub"\nrepo = "../../x"', "not a name on the model hub"),
        ("[[model.source]]\nkind", "[model.x]\nkind", "source: is missing"),
    ],
)
def test_an_invalid_entry_is_named_with_its_cure(old: str, new: str, message: str) -> None:
    write_table(ENTRY.format(sha="0" * 64).replace(old, new, 1))
    with pytest.raises(InputFault, match=message):
        models.find("tiny")


@pytest.mark.parametrize("chat", ["on", "off", "auto"])
def test_the_table_decides_whether_a_model_uses_its_chat_template(chat: str) -> None:
    write_table(ENTRY.format(sha="0" * 64).replace("window", "chat = true\nwindow"))
    assert local.is_chat(chat, "tiny") == (chat != "off")
    assert not local.is_chat("auto", "qwen2.5-coder-1.5b")


def test_a_named_model_takes_precedence_over_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "smollm2-135m").mkdir()
    settings = local.LocalModel(by="hf", model="smollm2-135m", revision="", dtype="auto", batch=1, window=0, chat=False)
    with pytest.raises(InputFault, match=r"run `ctxbench model fetch smollm2-135m`"):
        local.model_folder(settings)


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value.encode())) + value.encode()


def words(values: list[str]) -> bytes:
    return struct.pack("<IIQ", 9, 8, len(values)) + b"".join(map(text, values))


FACTS = {
    "general.architecture": struct.pack("<I", 8) + text("llama"),
    "general.name": struct.pack("<I", 8) + text("Tiny \x1b[31mmodel"),
    "general.license": struct.pack("<I", 8) + text("mit"),
    "llama.context_length": struct.pack("<II", 4, 64),
    "llama.scale": struct.pack("<If", 6, 0.5),
    "tokenizer.ggml.scores": struct.pack("<IIQ3f", 9, 6, 3, 0, 0, 0),
    "tokenizer.ggml.tokens": words(["a", "<fim_prefix>", "<fim_suffix>", "<fim_middle>"]),
}


def gguf(path: Path, facts: dict[str, bytes] = FACTS, *, count: int | None = None) -> Path:
    body = b"".join(text(key) + value for key, value in facts.items())
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, len(facts) if count is None else count) + body)
    return path


def without(key: str, **more: bytes) -> dict[str, bytes]:
    return {name: value for name, value in FACTS.items() if name != key} | more


def add(path: Path, name: str = "", license_name: str = "") -> models.NamedModel:
    [model] = adding.add(path, name=name, license_name=license_name, chat=False)
    return model


def test_a_gguf_file_is_added_with_its_own_facts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = gguf(tmp_path / "Tiny_Model.gguf")
    assert run(["model", "add", str(file)]) == 0
    model = models.find("tiny_model")
    assert (model.license, model.window, model.family, model.fim) == ("mit", 64, "llama", "starcoder")
    assert model.sha256 == hashlib.sha256(file.read_bytes()).hexdigest()
    assert models.gguf("tiny_model").read_bytes() == file.read_bytes()
    assert run(["model", "list"]) == 0
    assert "\x1b" not in capsys.readouterr().out


def test_an_entry_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    entries = "".join(adding._text_of(model) for model in table.builtin()[:1])
    [again] = table.parse(f"[[model]]\n{entries}", tmp_path / "x.toml", ())
    assert again == table.builtin()[0]


def test_a_model_without_a_licence_is_refused(tmp_path: Path) -> None:
    file = gguf(tmp_path / "tiny.gguf", without("general.license"))
    with pytest.raises(InputFault, match="the licence of its weights; look it up .* add --license NAME"):
        add(file)
    assert add(file, license_name="MIT").license == "MIT"


def test_a_name_can_be_used_only_once(tmp_path: Path) -> None:
    file = gguf(tmp_path / "tiny.gguf")
    add(file)
    for name in ("", "smollm2-135m"):
        with pytest.raises(InputFault, match="is taken; use another name; use another --name"):
            add(file, name)
    assert add(file, "other").name == "other"


def test_a_broken_table_is_named(tmp_path: Path) -> None:
    table.home().mkdir()
    (table.home() / table.FILE).write_text("broken")
    with pytest.raises(InputFault, match=rf"{table.FILE}: the file is not valid TOML"):
        add(gguf(tmp_path / "tiny.gguf"))


def test_a_model_without_a_window_is_refused(tmp_path: Path) -> None:
    file = gguf(tmp_path / "tiny.gguf", without("llama.context_length"))
    with pytest.raises(InputFault, match=r"window: 0 is less than 1.*add a TOML file with the entry"):
        add(file)
    assert not (table.home() / table.FILE).exists()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"ELF",
        b"GGUF",
        b"GGUF" + struct.pack("<IQQ", 1, 0, 0),
        b"GGUF" + struct.pack("<IQQ", 3, 0, 1 << 60),
        b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", 1 << 60),
        b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text("key") + struct.pack("<I", 99),
        b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text("key") + struct.pack("<IIQ", 9, 8, 1 << 60),
        b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text("key") + struct.pack("<IIQ", 9, 9, 1),
        b"GGUF" + struct.pack("<IQQ", 3, 0, 2) + text("key") + struct.pack("<IIQ", 9, 10, 3_000_000),
    ],
)
def test_an_invalid_gguf_file_is_refused(tmp_path: Path, content: bytes) -> None:
    (file := tmp_path / "tiny.gguf").write_bytes(content)
    with pytest.raises(InputFault, match=r"is not a valid GGUF file \(.*\); use a complete GGUF file"):
        add(file, license_name="MIT")


def folder(path: Path, readme: str = "---\nlicense: apache-2.0\n---\n") -> Path:
    path.mkdir()
    (path / "config.json").write_text(json.dumps({"model_type": "qwen2", "max_position_embeddings": 128}))
    (path / "model.safetensors").write_bytes(b"weights")
    (path / "README.md").write_text(readme)
    return path


def test_an_added_folder_stays_where_it_is(tmp_path: Path) -> None:
    model = add(folder(tmp_path / "My Model"))
    assert (model.name, model.license, model.window) == ("my-model", "apache-2.0", 128)
    assert models.folder("my-model") == tmp_path / "My Model"
    with pytest.raises(InputFault, match="is a transformers folder, not a GGUF file; use hf:my-model"):
        models.gguf("my-model")


def test_added_entries_of_a_table_keep_their_sources(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = gguf(tmp_path / "tiny.gguf")
    (tmp_path / "group.toml").write_text(f"""
[[model]]
name = "tiny"
file = "tiny.gguf"
bytes = {file.stat().st_size}
sha256 = "{hashlib.sha256(file.read_bytes()).hexdigest()}"
license = "MIT"
window = 64
chat = true
[[model.source]]
kind = "file"
path = "tiny.gguf"
by = "the \\u001b group"
""")
    assert run(["model", "add", str(tmp_path / "group.toml")]) == 0
    assert not models.find("tiny").is_fetched
    assert run(["model", "fetch", "tiny"]) == 0
    assert run(["model", "fetch", "tiny"]) == 0
    said = capsys.readouterr()
    assert said.out.count(f"tiny\t{models.gguf('tiny')}") == 2
    assert "\x1b" not in said.err
    assert models.find("tiny").chat


def test_the_command_prints_a_fault_on_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["model", "fetch", "smollm2"]) == 1
    assert "did you mean smollm2-135m? (see `ctxbench model list`)" in capsys.readouterr().err
    assert run(["model", "fetch", "smollm2-135m", "--from", "/nowhere"]) == 1
    assert "the file does not exist" in capsys.readouterr().err.splitlines()[-1]
