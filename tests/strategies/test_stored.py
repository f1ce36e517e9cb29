"""Stored contexts in prompts that equal those of the benchmarks' own programs, byte for byte."""

from typing import Any

import pytest

from ctxbench.bench.code_tokens import count, tokenize
from ctxbench.bench.errors import InputFault
from ctxbench.bench.formats import Options, Table, Task, repobench
from ctxbench.bench.languages.java import JAVA
from ctxbench.bench.types import Cursor, Query, StoredContext, StoredSnippet
from ctxbench.strategies import BlockKind, Prompt, resolve
from ctxbench.strategies.layout import infile_prompt
from tests.helpers.samples import make_query
from tests.helpers.views import make_view

PREFIX = "from shop.tax import add\n\n\ndef pay(cart, rate):\n    total = "
SNIPPETS = (
    StoredSnippet(path="shop/tax.py", text="def add(amount, rate):\n\n    return amount + rate\n", score=3.5),
    StoredSnippet(path="shop/x.py", text="x = 1", score=1.0),
)
TEXT = """\
# Here are some relevant code fragments from other files of the repo:

# the below code fragment can be found in:
# shop/tax.py
# def add(amount, rate):
#{blank}
#     return amount + rate

# the below code fragment can be found in:
# shop/x.py
# x = 1

""".format(blank=" ")
CHUNKS = """\
# Here are some relevant code fragments from other files of the repo:

# the below code fragment is found in shop/tax.py
# def add(amount, rate):
#     return amount + rate

# the below code fragment is found in shop/x.py
# x = 1

"""
RG1 = StoredContext(name="rg1_bm25", text=TEXT, snippets=SNIPPETS)
GRAPH = StoredContext(name="definition", snippets=SNIPPETS[1:])


def query(*stored: StoredContext, **changes: Any) -> Query:
    cursor = Cursor(line=4, column=12)
    return make_query(**{"prefix": PREFIX, "cursor": cursor, "subkind": "statement", "stored": stored, **changes})


def ask(spec: str, asked: Query) -> Prompt:
    return resolve(spec)(asked, make_view(asked, {}), None)  # type: ignore[arg-type]


def code(prompt: Prompt) -> list[str]:
    return [block.text for block in prompt.blocks if block.kind is BlockKind.SIMILAR]


def test_chunks_are_shown_in_the_evaluation_programs_layout() -> None:
    prompt = ask("lc.crosscodeeval", query(GRAPH, RG1))
    assert prompt.text == CHUNKS + PREFIX
    assert [block.score for block in prompt.blocks if block.kind is BlockKind.SIMILAR] == [3.5, 1.0]
    assert prompt.blocks[-1].text == PREFIX and prompt.flags == () and prompt.dropped == ()


def test_java_prompts_use_java_comments() -> None:
    prompt = ask("lc.crosscodeeval", query(RG1, language=JAVA, path="a/B.java"))
    assert prompt.text == CHUNKS.replace("# ", "// ") + PREFIX


@pytest.mark.parametrize("stored", [RG1, StoredContext(name="rg1_bm25", snippets=SNIPPETS)], ids=["text", "list alone"])
def test_layout_text_shows_the_text_of_the_data_files(stored: StoredContext) -> None:
    prompt = ask("lc.crosscodeeval(layout=text)", query(stored))
    assert prompt.text == TEXT + "\n" + PREFIX
    assert code(prompt) == [TEXT]


def test_whole_chunks_are_shown_while_they_fit() -> None:
    first = CHUNKS[: CHUNKS.rindex("# the below")]
    for budget, shown, left in ((count(CHUNKS), CHUNKS, []), (count(CHUNKS) - 1, first, [1.0]), (20, "", [3.5, 1.0])):
        prompt = ask(f"lc.crosscodeeval(max_context={budget})", query(RG1))
        assert prompt.text == shown + PREFIX
        assert [(one.score, one.reason) for one in prompt.dropped] == [(score, "budget") for score in left]
        codes = code(ask("lc.crosscodeeval", query(RG1)))
        assert [one.tokens for one in prompt.dropped] == [count(text) for text in codes[len(codes) - len(left) :]]


def test_the_file_gets_the_tokens_that_the_chunks_leave() -> None:
    prompt = ask(f"lc.crosscodeeval(max_prompt={count(CHUNKS) + 5})", query(RG1))
    assert prompt.text == CHUNKS + "".join(tokenize(PREFIX)[-5:])
    assert prompt.blocks[-1].cut and "overflow_trimmed" in prompt.flags


def test_the_text_is_cut_at_its_end_and_the_file_at_its_beginning() -> None:
    prompt = ask("lc.crosscodeeval(layout=text, max_context=30, max_prompt=40)", query(RG1))
    assert prompt.text == "".join(tokenize(TEXT)[:30]) + "\n" + "".join(tokenize(PREFIX)[-10:])
    assert [block.cut for block in prompt.blocks if block.kind is BlockKind.SIMILAR] == [True]
    nothing = ask("lc.crosscodeeval(layout=text, max_context=0)", query(RG1))
    assert nothing.text == "\n" + PREFIX, "as their program writes the file alone"


def test_limits_that_leave_no_tokens_for_the_file_are_refused() -> None:
    with pytest.raises(InputFault, match="max_context=50 leaves no tokens of max_prompt=50"):
        ask("lc.crosscodeeval(layout=text, max_context=50, max_prompt=50)", query(RG1))


def test_the_context_parameter_selects_the_stored_context() -> None:
    other = StoredContext(name="rg1_unixcoder", snippets=SNIPPETS[1:])
    assert code(ask("lc.crosscodeeval(context=rg1_unixcoder)", query(RG1, other, GRAPH))) == ["# x = 1\n\n"]
    assert code(ask("lc.crosscodeeval(context=definition)", query(RG1, GRAPH))) == ["# x = 1\n\n"]


@pytest.mark.parametrize("spec", ["lc.crosscodeeval", "lc.crosscodeeval(layout=text)", "lc.crosscodeeval(context=y)"])
def test_without_a_stored_context_only_the_file_is_shown(spec: str) -> None:
    asked = query(*((RG1,) if "=y" in spec else (GRAPH,)))
    prompt = ask(spec, asked)
    assert prompt.text == infile_prompt(asked, 4096).text == PREFIX
    assert prompt.flags == ("no_stored_context",)


BENCH = (
    StoredContext(name="context", snippets=SNIPPETS),
    StoredContext(name="import_statement", text="from shop.tax import add"),
    StoredContext(name="cropped_code", text="def pay(cart, rate):\n\n\n\n\n    cart.open()\n\n"),
)
NEXT = {"repo": "owner/shop", "prefix": "from shop.tax import add\ndef pay(cart, rate):\n\n\n\n\n    cart.open()\n"}
HEAD = "# Repo Name: owner/shop\n# Path: shop/tax.py\ndef add(amount, rate):\n\n    return amount + rate\n\n\n"
HERE = "# Path: shop/checkout.py\nfrom shop.tax import add\ndef pay(cart, rate):\n\n    cart.open()\n"


def test_the_repobench_prompt_shows_all_snippets_and_the_file() -> None:
    prompt = ask("lc.repobench", query(*BENCH, **NEXT))
    assert prompt.text == HEAD + "# Path: shop/x.py\nx = 1\n\n" + HERE
    assert prompt.blocks[-1].text == HERE.partition("\n")[2] and prompt.flags == ()


def test_repobench_drops_snippet_lines_from_the_end() -> None:
    # The program drops lines until more tokens than the excess are gone, then writes two line ends.
    whole = ask("lc.repobench", query(*BENCH, **NEXT))
    limit = count(HEAD + "# Path: shop/x.py\nx = 1\n\n") + count(HERE.replace("):\n\n", "):\n\n\n\n\n"))
    assert ask(f"lc.repobench(max_prompt={limit})", query(*BENCH, **NEXT)) == whole
    cut = ask(f"lc.repobench(max_prompt={limit - 1})", query(*BENCH, **NEXT))
    assert cut.text == HEAD + "# Path: shop/x.py\n\n" + HERE
    assert [(one.score, one.tokens) for one in cut.dropped] == [(1.0, count("x = 1\n\n"))]
    bare = ask("lc.repobench(max_prompt=1)", query(*BENCH, **NEXT))
    assert bare.text == "\n\n" + HERE, "the file is never cut"


def test_a_repobench_record_contains_all_parts_of_its_prompt() -> None:
    record = {
        "repo_name": "owner/shop",
        "file_path": "shop/checkout.py",
        "context": [{"identifier": "x", "path": one.path, "snippet": one.text} for one in SNIPPETS],
        "import_statement": BENCH[1].text,
        "cropped_code": BENCH[2].text,
        "all_code": NEXT["prefix"],
        "next_line": "    return cart",
        "gold_snippet_index": 1,
    }
    [made] = repobench.read([Table(name="t", source="t", digest="", rows=[("t:1", record)])], Options())
    assert isinstance(made, Task)
    assert ask("lc.repobench", made.sample.query()).text == ask("lc.repobench", query(*BENCH, **NEXT)).text


def test_the_repobench_prompt_works_for_samples_of_other_benchmarks() -> None:
    prompt = ask("lc.repobench", query(RG1))
    assert prompt.text.endswith("# Path: shop/checkout.py\n" + PREFIX) and prompt.flags == ()
    alone = ask("lc.repobench", query())
    assert alone.text == "# Repo Name: demo\n# Path: shop/checkout.py\n" + PREFIX
    assert alone.flags == ("no_stored_context",)
    assert ask("lc.repobench(max_prompt=9)", query()).blocks[-1].cut
