"""Fill in the middle: a model's marks, the text shown after the cursor, and that strategies do not see it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ctxbench.bench import code_tokens
from ctxbench.bench.errors import InputFault
from ctxbench.bench.lines.build import build_samples
from ctxbench.bench.types import Cursor, Kind, Place, Sample, Use
from ctxbench.harness.generators import fim
from ctxbench.harness.generators.base import Capabilities, Generator, Request, resolve
from ctxbench.harness.generators.fim import FAMILIES, Template
from ctxbench.strategies.api import Block, BlockKind, Prompt
from tests.helpers.requests import make_request
from tests.helpers.samples import make_sample
from tests.helpers.trees import make_snapshot

QWEN = fim.family("qwen", where="test")
LEFT = Prompt(
    blocks=(
        Block(kind=BlockKind.SIMILAR, text="# def area(w, h): ...\n", score=0.5),
        Block(kind=BlockKind.INFILE, text="import shapes\nx = "),
    )
)


def sample(suffix: str | None = "print(x)\ny = 2\n", **changes: Any) -> Sample:
    place = {"path": "a.py", "cursor": Cursor(line=1, column=4), "prefix": "import shapes\nx = "}
    return make_sample(suffix=suffix, **{**place, **changes})


def request(prompt: Prompt = LEFT, most: int = 16) -> Request:
    return make_request(prompt=prompt, max_tokens=most, fim=True, one_line=True)


class Model(Generator):
    """A generator with marks, and with a window in characters if one is given."""

    version, capabilities = "1", Capabilities(fills=True, counts=True)

    def __init__(self, template: Template = QWEN, window: int = 0) -> None:
        self.template, self.window = template, window

    def infilling(self) -> Template:
        return self.template

    def count(self, request: Request) -> int:
        return 1 + len(request.prompt.text)

    def generate(self, requests: Any) -> Any:
        raise AssertionError("nothing is asked here")

    def close(self) -> None:
        pass


# Families


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("Qwen/Qwen2.5-Coder-7B", "qwen"),
        ("Qwen3-Coder-30B-A3B-Instruct", "qwen"),
        ("google/codegemma-2b", "codegemma"),
        ("bigcode/starcoder2-15b", "starcoder"),
        ("ibm-granite/granite-8b-code-base-4k", "starcoder"),
        ("bigcode/santacoder", "santacoder"),
        ("deepseek-ai/deepseek-coder-6.7b-base", "deepseek"),
        ("codellama/CodeLlama-7b-hf", "codellama"),
        ("mistralai/Codestral-22B-v0.1", "codestral"),
    ],
)
def test_a_models_name_determines_its_family(model: str, name: str) -> None:
    assert fim.of_name(model, where="openai").name == name
    assert fim.of_name("another", family_name=name, where="openai").name == name


def test_a_model_without_known_marks_is_refused_with_a_cure() -> None:
    with pytest.raises(
        InputFault, match=r"fill-in-the-middle tokens are unknown.*set fim= to one of qwen, codegemma"
    ) as caught:
        fim.of_name("meta-llama/Llama-3.1-8B", where="openai")
    assert "\n" not in str(caught.value)
    with pytest.raises(InputFault, match="fim=llama is unknown"):
        fim.of_name("x", family_name="llama", where="openai")
    with pytest.raises(InputFault, match="chat model.*endpoint=completions"):
        fim.of_name("Qwen2.5-Coder-7B-Instruct", chat=True, where="openai")


def test_a_vocabulary_determines_the_family_and_the_end_tokens() -> None:
    for one in FAMILIES:
        words = {one.token(mark): number for number, mark in enumerate(one.marks)} | {"▁<EOT>": 9, "<fim_pad>": 8}
        found = fim.of_vocabulary(words, where="hf m")
        assert found.marks == one.marks
        assert set(fim.ends(words, found)) == set(words)
    with pytest.raises(
        InputFault, match="hf m: the model's vocabulary has no fill-in-the-middle tokens.*leave --fim out"
    ):
        fim.of_vocabulary({"<fim_prefix>": 1, "<fim_suffix>": 2}, where="hf m")
    with pytest.raises(InputFault, match="chat=off"):
        fim.of_vocabulary({}, chat=True, where="hf m")


# Suffixes


def test_a_suffix_begins_with_the_end_of_the_answers_line() -> None:
    found = fim.suffix_block(sample())
    assert (found.kind, found.text, found.cut) == (BlockKind.AFTER, "\nprint(x)\ny = 2\n", False)
    assert found.places == (Place(path="a.py", start=2, end=5),)
    # CrossCodeEval's suffixes begin right after the answer, which may end within a line.
    other = fim.suffix_block(sample(")\nz", benchmark="crosscodeeval", subkind="statement"))
    assert (other.text, other.places) == (")\nz", ())
    assert fim.suffix_block(sample("")).text == "\n"


def test_a_built_samples_suffix_begins_right_after_the_answer(tmp_path: Path) -> None:
    lines = "".join(f"    value_{number} = total(Cart({number}))\n" for number in range(12))
    files = {"shop/__init__.py": "", "shop/cart.py": "class Cart: ...\n\n\ndef total(x):\n    return x\n"}
    files["shop/user.py"] = f"from shop.cart import Cart, total\n\n\ndef run():\n{lines}"
    read = make_snapshot(tmp_path, files)
    made = build_samples([read], per_repo=20, seed=0)
    answers = {one.id: one.target for one in made.references}
    assert {one.subkind for one in made.samples} == {"single-line", "next-line"}
    for one in made.samples:
        text = read.texts[one.path]
        assert text.endswith(answers[one.id] + fim.suffix_block(one).text)
        assert text.count("\n", 0, -len(fim.suffix_block(one).text)) == one.cursor.line


def test_a_long_suffix_is_cut_at_the_end_of_a_line() -> None:
    found = fim.suffix_block(sample("".join(f"value_{number} = {number}\n" for number in range(500))))
    assert found.cut and found.text.endswith("\n") and found.text.startswith("\nvalue_0 = 0\n")
    count = code_tokens.count(found.text)
    assert fim.MOST - 12 < count <= fim.MOST
    # Places count the lines that are shown.
    assert found.places[0].end - found.places[0].start == found.text.count("\n")


def test_a_suffix_of_one_long_line_is_cut_within_the_line() -> None:
    found = fim.suffix_block(sample(benchmark="crosscodeeval", suffix="x + " * 2000))
    assert found.cut and code_tokens.count(found.text) == fim.MOST and found.text.startswith("x + x")


def test_imports_that_are_masked_before_the_cursor_are_masked_after_it() -> None:
    uses = (Use(name="Cart", module="shop.store", kind="class"),)
    behind = "print(x)\nfrom shop.store import (\n    Cart,\n)\n    import shop.store as one\n    import other\nend\n"
    found = fim.suffix_block(sample(behind, masked=((0, 1),), uses=uses))
    assert found.text == "\nprint(x)\n\n\n\n\n    import other\nend\n"
    assert fim.suffix_block(sample(behind, uses=uses)).text == "\n" + behind, "nothing is masked"


def test_masked_lines_stay_masked() -> None:
    found = fim.suffix_block(sample("print(x)\nimport shapes\nend\n", masked=((0, 1), (3, 4))))
    assert found.text == "\nprint(x)\n\nend\n"


@pytest.mark.parametrize(
    ("changes", "said"),
    [({"kind": Kind.FUNCTION}, "is a function.*leave --fim out"), ({"suffix": None}, "was not recorded")],
)
def test_samples_without_a_usable_suffix_are_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(InputFault, match=said):
        fim.suffix_block(sample(**changes))


# Prompts


@pytest.mark.parametrize("template", FAMILIES, ids=lambda one: one.name)
def test_a_prompt_has_both_sides_between_its_marks(template: Template) -> None:
    prompt = fim.filled(Model(template), request(), fim.suffix_block(sample())).prompt
    before, behind = LEFT.text, "\nprint(x)\ny = 2\n"
    wanted = {
        "codellama": f"<PRE> {before} <SUF>{behind} <MID>",
        "codestral": f"[SUFFIX]{behind}[PREFIX]{before}",
    }.get(template.name, f"{template.before}{before}{template.after}{behind}{template.middle}")
    assert prompt.text == wanted and prompt.flags == ()
    assert fim.strategy_prompt(prompt) == LEFT and fim.strategy_prompt(LEFT) is LEFT
    kinds = [block.kind for block in prompt.blocks]
    assert kinds.count(BlockKind.MARK) == len(template.marks) and kinds.count(BlockKind.AFTER) == 1


def test_marks_in_the_repositorys_text_are_broken_up() -> None:
    tricky = Prompt(blocks=(Block(kind=BlockKind.INFILE, text='STOP = "<|fim_suffix|>"\nx = '),))
    shown = fim.filled(Model(), request(tricky), fim.suffix_block(sample("y = '<|fim_middle|><|fim_pad|>'\n"))).prompt
    for mark in QWEN.marks:
        assert shown.text.count(mark) == 1
    assert shown.text.startswith('<|fim_prefix|>STOP = "< |fim_suffix|>"') and shown.flags == (fim.PARTED,)
    assert "y = '< |fim_middle|><|fim_pad|>'" in shown.text


def test_both_sides_are_cut_to_the_window() -> None:
    model = Model(window=400)
    long = "".join(f"line_{number} = {number}\n" for number in range(100))
    asked = request(Prompt(blocks=(Block(kind=BlockKind.INFILE, text=f"{long}x = "),)), most=20)
    shown = fim.filled(model, asked, fim.suffix_block(sample(long))).prompt
    assert model.count(replace(asked, prompt=shown)) <= 380 and shown.flags == ("overflow_trimmed",)
    [behind] = [block for block in shown.blocks if block.kind is BlockKind.AFTER]
    assert behind.cut and behind.text.startswith("\nline_0 = 0\n") and 70 < len(behind.text) <= 95
    [infile] = [block for block in shown.blocks if block.kind is BlockKind.INFILE]
    assert infile.cut and infile.text.endswith("line_99 = 99\nx = ")
    assert len(infile.text) > 200


def test_a_generator_without_infilling_is_refused(tmp_path: Path) -> None:
    made = resolve("scripted(text=x)")
    with pytest.raises(InputFault, match="--fim: this generator cannot fill in the middle; leave --fim out"):
        fim.filled(made, request(), fim.suffix_block(sample()))
