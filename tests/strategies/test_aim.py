import dataclasses
import textwrap
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from ctxbench.bench.code_tokens import count
from ctxbench.bench.types import Kind, Place, StoredContext, StoredSnippet
from ctxbench.strategies import BlockKind, Execution, Prompt, resolve
from ctxbench.strategies.conformance import check
from ctxbench.strategies.infercom import API_HEADER
from ctxbench.strategies.layout import SIMILAR_HEADER, infile_prompt
from ctxbench.strategies.registry import get
from tests.strategies.projects import CHECKOUT, SHOP, Scripted, case

DRAFT, SUMMARY = "price_rules.apply_tax(cart.total, rate)\n", "Load the cart of a user"
APIS = """\
# Here are some APIs that may be used from other files
# demo-main/shop/price_rules.py
# def apply_tax(amount: float, rate: float = 0.2) -> float


# demo-main/shop/store.py
# class CartStore:
#     \n\
#     def load(self, user_id)



"""
FOREIGN = '''\
from ctxbench.strategies import *
from ctxbench.strategies.layout import infile_block


@strategy("foreign", kinds=(Kind.LINE, Kind.FUNCTION))
def foreign(query: Query, repo: Repository, *, scored: bool = True, last: str = "infile") -> Prompt:
    """Show three blocks."""
    def block(name, score):
        return Block(kind=BlockKind.SIMILAR, text=f"# {name}\\n", score=score if scored else None)
    blocks = (Block(kind=BlockKind.TEXT, text="# head\\n"), block("b", 0.5), block("c", 0.1), block("a", 0.9))
    here = infile_block(query, 4096)
    if last == "text":
        here = Block(kind=BlockKind.TEXT, text="\\nWrite it.\\n")
    return Prompt(blocks=(*blocks, here), flags=("own_flag",))


@strategy("runner")
def runner(query: Query, repo: Repository, generate: Generate, execute: Execute) -> Prompt:
    """Show what a program printed."""
    output = execute("print(1)").output
    return Prompt(blocks=(Block(kind=BlockKind.SIMILAR, text=f"# {output}\\n"), infile_block(query, 4096)))
'''


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    path = tmp_path / "foreign.py"
    path.write_text(FOREIGN)
    return path


def _aim(inner: str, *answers: str, more: str = "k_uer=1, k_fsr=1", instructs: bool = True) -> tuple[Prompt, Scripted]:
    model = Scripted(*(answers or (DRAFT, SUMMARY)), instructs=instructs)
    spec = f"aim({inner}, encoder=bm25, {more})"
    return resolve(spec)(*case(SHOP, "shop/checkout.py", CHECKOUT), model), model


def test_aim_over_infile_starts_with_the_apis() -> None:
    prompt, model = _aim("lc.infile")
    assert prompt.text == APIS + CHECKOUT and prompt.flags == ()
    query, _ = case(SHOP, "shop/checkout.py", CHECKOUT)
    assert model.asked[0] == infile_prompt(query, 4096) and model.calls == [("draft", 128), ("summary", 100)]


def test_aim_over_repocoder_keeps_its_context_and_drafts_with_its_prompt() -> None:
    prompt, model = _aim("lc.repocoder", "cart.first()\n", DRAFT, SUMMARY)
    assert [role for role, _ in model.calls] == ["draft", "draft", "summary"]
    inner = resolve("lc.repocoder")(*case(SHOP, "shop/checkout.py", CHECKOUT), Scripted("cart.first()\n"))
    assert model.asked[1] == inner and f"total = {DRAFT}" in model.asked[2].text
    assert inner.text.endswith(f"\n\n{CHECKOUT}") and inner.text.startswith(SIMILAR_HEADER)
    assert prompt.text == inner.text.removesuffix(CHECKOUT) + APIS + CHECKOUT
    assert [b for b in prompt.blocks if b.kind is BlockKind.SIMILAR] == list(inner.blocks[1:-2])


def test_repocoders_context_is_repacked_without_blocks_that_do_not_fit() -> None:
    files = {"a.py": CHECKOUT, "b.py": f"{CHECKOUT}(\n    {'0, ' * 30})\n", "c.py": "def pay(user_id):\n    pass\n"}
    spec = "lc.repocoder(iterations=1)"
    inner = resolve(spec)(*case(files, "main.py", CHECKOUT), Scripted())
    best_last = [b for b in inner.blocks if b.kind is BlockKind.SIMILAR]
    assert [b.places[0].path for b in best_last] == ["c.py", "b.py", "a.py"]
    room = 20 + count(best_last[2].text) + count(best_last[0].text) + 1
    aim = f"aim({spec}, encoder=bm25, fsr=off, similar={{}})"
    prompt = resolve(aim.format(room))(*case(files, "main.py", CHECKOUT), Scripted(DRAFT))
    assert [b for b in prompt.blocks if b.kind is BlockKind.SIMILAR] == [best_last[0], best_last[2]]
    assert [d.places for d in prompt.dropped] == [best_last[1].places]
    none = resolve(aim.format(19))(*case(files, "main.py", CHECKOUT), Scripted(DRAFT))
    assert none.text.startswith(API_HEADER) and len(none.dropped) == 3


def test_an_empty_header_of_repocoder_is_kept() -> None:
    spec = "aim(lc.repocoder(iterations=1, empty_header=on), encoder=bm25, fsr=off)"
    prompt = resolve(spec)(*case({}, "main.py", CHECKOUT), Scripted(DRAFT))
    assert prompt.text == f"{SIMILAR_HEADER}\n{API_HEADER}\n{CHECKOUT}" and prompt.flags == ("no_candidates", "no_apis")


@pytest.mark.parametrize("apis", [0, 1])
def test_aim_over_infercom_keeps_its_headings(apis: int) -> None:
    spec = f"lc.infercom(encoder=bm25, k_uer={apis}, k_fsr=0)"
    inner = resolve(spec)(*case(SHOP, "shop/checkout.py", CHECKOUT), Scripted(DRAFT))
    kinds = [block.kind for block in inner.blocks]
    assert kinds.count(BlockKind.API) == apis and kinds.count(BlockKind.SIMILAR) > 1 and API_HEADER in inner.text
    prompt, _ = _aim(spec, DRAFT, DRAFT, SUMMARY)
    assert prompt.text.startswith(inner.text.removesuffix(CHECKOUT)) and prompt.text.endswith(APIS + CHECKOUT)
    assert prompt.text.count(API_HEADER) == 2 and prompt.text.count(SIMILAR_HEADER) == 1


def test_infercoms_apis_do_not_count_as_similar_code() -> None:
    spec = "lc.infercom(encoder=bm25, k_uer=1, k_fsr=0)"
    inner = resolve(spec)(*case(SHOP, "shop/checkout.py", CHECKOUT), Scripted(DRAFT))
    similar, api_section = inner.text.removesuffix(CHECKOUT).split(API_HEADER)
    room = count(f"{API_HEADER}{api_section}") + 5
    prompt, _ = _aim(spec, DRAFT, DRAFT, SUMMARY, more=f"k_uer=1, k_fsr=1, similar={room}")
    assert similar and prompt.text == API_HEADER + api_section + APIS + CHECKOUT
    assert len(prompt.dropped) == sum(block.kind is BlockKind.SIMILAR for block in inner.blocks)


def test_repofuses_context_is_cut_at_the_first_block_that_does_not_fit() -> None:
    spec = "lc.repofuse(encoder=bm25, rationale=off)"
    inner = resolve(spec)(*case(SHOP, "shop/checkout.py", CHECKOUT), Scripted())
    sizes = [count(b.text) for b in inner.blocks[:-1]]
    assert len(sizes) == 4
    prompt, _ = _aim(spec, more=f"k_uer=1, k_fsr=1, similar={sum(sizes[:3])}")
    assert prompt.blocks[:3] == inner.blocks[:3] and prompt.blocks[3].text == API_HEADER
    prompt, _ = _aim(spec, more=f"k_uer=1, k_fsr=1, similar={sum(sizes[:2]) - 1}")
    assert prompt.text == APIS + CHECKOUT and len(prompt.dropped) == 3


@pytest.mark.parametrize(
    ("given", "context"), [("scored=on", "# head\n# b\n# a\n\n"), ("scored=off", "# head\n# c\n# a\n\n")]
)
def test_the_least_relevant_block_of_a_foreign_strategy_is_dropped(foreign: Path, given: str, context: str) -> None:
    whole, _ = _aim(f"{foreign}@foreign({given})")
    assert whole.text == f"# head\n# b\n# c\n# a\n\n{APIS}{CHECKOUT}" and whole.flags == ("own_flag",)
    total = sum(count(text) for text in ("# head\n", "# b\n", "# c\n", "# a\n"))
    cut, _ = _aim(f"{foreign}@foreign({given})", more=f"k_uer=1, k_fsr=1, similar={total - 1}")
    assert cut.text == context + APIS + CHECKOUT and [d.reason for d in cut.dropped] == ["budget"]


@pytest.mark.parametrize("inner", ["lc.repobench", "lc.crosscodeeval"])
def test_a_heading_is_dropped_with_its_snippet(inner: str) -> None:
    query, repo = case(SHOP, "shop/checkout.py", CHECKOUT)
    snippets = tuple(StoredSnippet(path=f"pkg/m{at}.py", text=f"value_{at} = {at}\n" * 5) for at in range(4))
    query = dataclasses.replace(query, stored=(StoredContext(name="cross_file", snippets=snippets),))
    whole = resolve(inner)(query, repo, Scripted())
    room = sum(count(block.text) for block in whole.blocks[:-1]) - 1
    prompt = resolve(f"aim({inner}, encoder=bm25, fsr=off, similar={room})")(query, repo, Scripted(DRAFT))
    assert [f"pkg/m{at}.py" in prompt.text for at in range(4)] == [False, True, True, True]
    assert [f"value_{at} =" in prompt.text for at in range(4)] == [False, True, True, True]
    assert prompt.text.startswith(whole.blocks[0].text) and len(prompt.dropped) == 1


def test_a_target_file_over_the_infile_limit_is_cut_to_it() -> None:
    before = "".join(f"line_{i} = {i}\n" for i in range(40)) + "total = "
    query, repo = case(SHOP, "shop/checkout.py", before)
    prompt = resolve("aim(lc.infile, encoder=bm25, infile=30)")(query, repo, Scripted(DRAFT, SUMMARY))
    last = prompt.blocks[-1]
    assert last == infile_prompt(query, 30).blocks[0] and last.cut and last.places[0].start > 30
    short = resolve("aim(lc.infile(limit=20), encoder=bm25, infile=30)")(query, repo, Scripted(DRAFT, SUMMARY))
    assert short.blocks[-1] == infile_prompt(query, 20).blocks[0]


@pytest.mark.parametrize(
    ("more", "paths", "roles"),
    [
        ("fsr=off, k_uer=1", ["shop/price_rules.py"], ["draft"]),
        ("uer=off, k_fsr=1", ["shop/store.py"], ["draft", "summary"]),
        ("uer=off, fsr=off", [], ["draft"]),
    ],
)
def test_each_api_list_can_be_switched_off(more: str, paths: list[str], roles: list[str]) -> None:
    prompt, model = _aim("lc.infile", more=more)
    assert [b.places[0].path for b in prompt.blocks if b.kind is BlockKind.API] == paths
    assert [role for role, _ in model.calls] == roles and prompt.text.startswith(API_HEADER)


def test_a_wrapped_strategy_gets_the_sandbox(foreign: Path) -> None:
    bound = resolve(f"aim({foreign}@runner, encoder=bm25, fsr=off, uer=off)")
    assert bound.executes and bound.kinds == {Kind.LINE}
    query, repo = case(SHOP, "shop/checkout.py", CHECKOUT)
    prompt = bound(query, repo, Scripted(DRAFT), lambda program, seconds=10.0: Execution(finished=True, output="one"))
    assert prompt.text.startswith("# one\n\n# Here are some APIs")


# Functions

HEAD = 'def checkout(store, user_id, rate):\n    """Take the money."""\n'
BODY = "cart = store.load(user_id)\ntotal = price_rules.apply_tax(cart.total, rate)\nreturn total\n"
ANSWER = "Sure.\n[CODE]\ndef checkout(store, user_id, rate):\n" + textwrap.indent(BODY, "    ") + "[/CODE]"


def _function(inner: str, *answers: str, more: str = "k_uer=2, k_fsr=1") -> tuple[Prompt, Scripted]:
    query, repo = case(SHOP, "shop/checkout.py", HEAD, after="\n\ndef refund():\n    return 0\n")
    query = dataclasses.replace(
        query,
        name="checkout",
        signature="def checkout(store, user_id, rate):",
        docstring="Take the money.",
        cursor=dataclasses.replace(query.cursor, column=0),
    )
    model = Scripted(*answers)
    return resolve(f"aim({inner}, encoder=bm25, {more})")(query, repo, model), model


SECTION = """\
#####
APIS THAT MAY BE USED
#####
demo-main/shop/store.py
class CartStore:
    \n\
    def load(self, user_id)

demo-main/shop/price_rules.py
def apply_tax(amount: float, rate: float = 0.2) -> float

demo-main/shop/store.py
class CartStore:
    \n\
    def load(self, user_id)

### Function docstring:
def checkout(store, user_id, rate): \"\"\"
    \"\"\"
    Take the money.
    \"\"\""""


def test_for_a_function_the_apis_are_a_section_after_the_last_file() -> None:
    prompt, model = _function("icl.rag(encoder=bm25)", ANSWER, SUMMARY)
    assert model.calls == [("draft", 1024), ("summary", 100)]
    inner = model.asked[0].text
    before, mark, _ = inner.partition("### Function docstring:")
    assert mark and "FILE 1\n" in before and prompt.text == before + SECTION
    assert f"code:\n{BODY.strip()}\nsummary:" in model.asked[1].text
    places = [b.places for b in prompt.blocks if b.kind is BlockKind.API]
    assert places[1] == (Place(path="shop/price_rules.py", start=0, end=2),) and len(places) == 3


def test_for_a_function_without_context_the_api_section_is_the_context() -> None:
    prompt, _ = _function("icl.direct", ANSWER, SUMMARY)
    assert f"### Context with implementations:\n{SECTION}" in prompt.text


def test_the_apis_precede_a_target_file_that_ends_with_the_function() -> None:
    prompt, model = _function("lc.infile", BODY, SUMMARY)
    assert prompt.text.startswith(f"{API_HEADER}# demo-main/shop/store.py\n") and prompt.text.endswith(
        f"\n\n\n\n{HEAD}"
    )
    assert f"code:\n{BODY.strip()}\nsummary:" in model.asked[1].text


def test_the_api_section_precedes_the_blocks_of_a_foreign_strategy(foreign: Path) -> None:
    prompt, _ = _function(f"{foreign}@foreign(last=text)", BODY, SUMMARY)
    assert prompt.text.startswith("#####\nAPIS THAT MAY BE USED\n#####\ndemo-main/shop/store.py\n")
    assert prompt.text.endswith("def load(self, user_id)\n\n# head\n# b\n# c\n# a\n\nWrite it.\n")
    alone, _ = _function(f"{foreign}@foreign(last=text)", BODY, more="uer=off, fsr=off")
    assert alone.text == "# head\n# b\n# c\n# a\n\nWrite it.\n"


@pytest.mark.slow
# Only installed strategies, because other tests register their own strategies in this process.
@pytest.mark.parametrize("name", sorted(entry_points(group="ctxbench.strategies").names - {"aim"}))
def test_every_installed_strategy_can_be_wrapped(name: str) -> None:
    found = get(name)
    inner = f"{name}(encoder=hashed)" if any(p.name == "encoder" for p in found.parameters) else name
    bound = resolve(f"aim({inner}, encoder=hashed)")
    assert bound.kinds == found.kinds and bound.executes == found.executes
    assert [finding for finding in check(bound) if not finding.passed] == []
