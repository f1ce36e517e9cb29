"""Generators by name, and the scripted generator."""

from pathlib import Path

import pytest

from ctxbench.bench.errors import InputFault, MachineFault, UnknownName
from ctxbench.bench.retrieval.encoders import weights
from ctxbench.harness.generators import base
from ctxbench.harness.generators.base import Generator
from ctxbench.harness.generators.scripted import Scripted
from tests.helpers.requests import make_request as ask


def answer(made: Generator, text: str, **changes: object) -> str:
    return made.generate([ask(text, **changes)])[0].text


def test_a_canonical_spec_sorts_parameters_and_omits_defaults() -> None:
    assert base.canonical("scripted( text='x = 1', mode=fixed, delay=0 )") == "scripted(text='x = 1')"
    assert base.canonical("scripted(mode=echo,delay=1)") == "scripted(delay=1.0, mode=echo)"


def test_a_canonical_spec_omits_parameters_that_do_not_affect_answers() -> None:
    assert base.canonical("incontext(workers=1)") == "incontext"
    with pytest.raises(InputFault, match="no parameter 'wrkers'"):
        base.generator("bad", machine=["wrkers"])(lambda *, workers=1: Scripted(str))


def test_the_scripted_generator_answers_a_fixed_text_or_an_echo() -> None:
    assert answer(base.resolve("scripted(text='a + b')"), "x = ") == "a + b"
    assert answer(base.resolve("scripted(mode=echo)"), "one\ntwo = \n\n") == "two = "


def test_scripted_answers_are_chosen_by_condition(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"contains": "cart", "index": 1, "text": "second"}\n{"contains": "cart", "text": "first"}\n')
    made = base.resolve(f"scripted(answers='{path}')")
    assert answer(made, "cart = ") == "first"
    assert answer(made, "cart = ", index=1) == "second"
    with pytest.raises(InputFault, match="no record fits"):
        answer(made, "other")


def test_the_version_depends_on_the_scripted_answers(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "a"}\n')
    before = base.resolve(f"scripted(answers='{path}')").version
    path.write_text('{"text": "b"}\n')
    assert base.resolve(f"scripted(answers='{path}')").version != before


def test_the_scripted_generator_cuts_answers_and_raises_planned_faults() -> None:
    made = Scripted(lambda _: "one two three", faults={2})
    response = made.generate([ask("x", max_tokens=2)])[0]
    assert (response.text, response.finish, response.tokens_out) == ("one two", "length", 2)
    with pytest.raises(MachineFault, match="as planned"):
        made.generate([ask("x")])


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("scripted(txt=a)", "known parameters: answers, text, mode, delay"),
        ("scripted(delay=fast)", "give a number"),
        ("scripted(mode=loud)", "give fixed or echo"),
        ("scripted(answers=/no/such/file.jsonl)", "check the path"),
        ("scripted(answers=a.jsonl, text=b)", "use one of them"),
        ("scripted(delay=-1)", "at least 0"),
        ("scripted(", "write it as name"),
        ("scriptd", "did you mean scripted"),
        *(
            (f"{engine}(model=m, {given})", given.partition("=")[2])
            for engine in ("hf", "vllm")
            for given in ("dtype=int8", "batch=0", "window=-1", "chat=maybe")
        ),
        ("hf(model=m, device=gpu)", "gpu"),
        ("hf(model=m, device=cuda:x)", "cuda:x"),
        ("vllm(model=m, tensor_parallel=0)", "tensor_parallel=0"),
        ("vllm(model=m, gpu_memory=0)", "gpu_memory=0"),
        ("vllm(model=m, gpu_memory=1.5)", "gpu_memory=1.5"),
        ("serve(model=a, window=1)", "window=1"),
        ("serve(model=a, threads=-1)", "threads=-1"),
        ("incontext(workers=-2)", "0 (one per core) or more"),
        ("incontext(workers=many)", "many"),
        ("incontext(temperature=1)", "temperature"),
    ],
)
def test_bad_specs_are_refused_in_one_line(spec: str, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "need", lambda *_, **__: None)
    with pytest.raises(InputFault) as caught:
        base.resolve(spec)
    assert words in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "offered"),
    [
        ("gpt-4o", "did you mean openai:gpt-4o?"),
        ("qwen2.5-coder-0.5b", "did you mean hf:qwen2.5-coder-0.5b or serve:qwen2.5-coder-0.5b?"),
        ("vlm", "did you mean vllm?"),
    ],
)
def test_a_model_name_used_as_a_generator_gets_a_suggestion(name: str, offered: str) -> None:
    with pytest.raises(UnknownName) as caught:
        base.resolve(name)
    assert offered in str(caught.value)


@pytest.mark.parametrize("record", ['{"txt": "a"}', '{"text": 1}', '{"text": "a", "index": "0"}', "[1]", '{"text": '])
def test_bad_answer_files_name_the_line(tmp_path: Path, record: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "fine"}\n' + record + "\n")
    with pytest.raises(InputFault) as caught:
        base.resolve(f"scripted(answers='{path}')")
    assert "a.jsonl:2" in str(caught.value)


def test_positional_factories_are_refused() -> None:
    with pytest.raises(InputFault, match="keyword-only"):
        base.generator("bad")(lambda text: Scripted(lambda _: text))
