from dataclasses import replace

from ctxbench.bench.code_tokens import count
from ctxbench.bench.types import Cursor, Place
from ctxbench.bench.windows import WindowHit
from ctxbench.strategies.api import Block, BlockKind, Context, Snippet
from ctxbench.strategies.layout import (
    SIMILAR_HEADER,
    as_found,
    choose,
    draft_query,
    extended,
    fragment,
    render,
    similar_prompt,
    unfinished_query,
)
from tests.helpers.samples import make_query

LINES = [f"line {number}" for number in range(40)]
QUERY = make_query(prefix="\n".join(LINES[:30]) + "\n    total = ", cursor=Cursor(line=30, column=12))
NEXT = make_query(prefix="\n".join(LINES[:30]) + "\n", cursor=Cursor(line=30, column=0))

# The similar-code part and the in-file part of the byte-exact example in the InferCom replication notes.
EXPECTED = """\
# Here are some relevant code fragments from other files of the repo:
# --------------------------------------------------
# the below code fragment can be found in:
# shop/cart.py
# --------------------------------------------------
# cart = load_cart(user)
# total = price_rules.apply_tax(cart.total, rate)
# --------------------------------------------------

def checkout(store, user_id, rate):
    cart = store.load(user_id)
    total = """


def _candidate(text: str, path: str = "a.py", score: float = 0.5, start: int = 0) -> Block:
    place = Place(path=path, start=start, end=start + text.count("\n") + 1)
    return fragment([path], text, (place,), score)


def test_the_prompt_equals_the_published_layout() -> None:
    prefix = "def checkout(store, user_id, rate):\n    cart = store.load(user_id)\n    total = "
    text = "cart = load_cart(user)\ntotal = price_rules.apply_tax(cart.total, rate)"
    query = make_query(prefix=prefix, cursor=Cursor(line=2, column=12))
    prompt = similar_prompt(query, [_candidate(text, "shop/cart.py")])
    assert prompt.text == EXPECTED
    assert [block.kind for block in prompt.blocks] == [
        BlockKind.TEXT,
        BlockKind.SIMILAR,
        BlockKind.TEXT,
        BlockKind.INFILE,
    ]


def test_a_block_names_every_place_and_comments_blank_lines() -> None:
    hit = WindowHit(
        text="a\n\nb", score=1.0, places=(Place(path="x.java", start=0, end=3), Place(path="y.java", start=5, end=8))
    )
    (candidate,) = as_found([hit])
    rule = "# " + "-" * 50
    assert candidate.text == (
        f"# the below code fragment can be found in:\n# x.java\n# y.java\n{rule}\n# a\n# \n# b\n{rule}\n"
    )
    # The published program reads the window's text again and loses a blank line at its end.
    assert as_found([replace(hit, text="a\n\nb\n")])[0].text == candidate.text


def test_packing_puts_the_best_block_last_and_records_dropped_blocks() -> None:
    small, large = _candidate("x = 1"), _candidate("y = 2\n" * 900, "large.py", 0.9)
    candidates = [_candidate("first", score=0.95), large, *[_candidate(f"n = {i}", f"{i}.py") for i in range(12)]]
    blocks, dropped = choose(candidates)
    assert len(blocks) == 10 and "# first\n" in blocks[-1].text and "# n = 8\n" in blocks[0].text
    assert [(d.places[0].path, d.reason) for d in dropped] == [
        ("large.py", "budget"),
        *[(f"{i}.py", "limit") for i in range(9, 12)],
    ]
    tokens = count(small.text)
    assert choose([small], budget=20 + tokens)[0] == []  # the sum has to stay below the budget
    assert len(choose([small], budget=21 + tokens)[0]) == 1
    assert choose([small], most=0)[0] == [] and choose([])[0] == []


def test_a_header_without_blocks_is_shown_only_on_request() -> None:
    assert similar_prompt(QUERY, []).text == QUERY.prefix
    assert similar_prompt(QUERY, []).flags == ("no_candidates",)
    assert similar_prompt(QUERY, [], empty_header=True).text == SIMILAR_HEADER + "\n" + QUERY.prefix


def test_the_first_query_is_the_twenty_lines_before_the_cursor_line() -> None:
    assert unfinished_query(QUERY, 20) == "\n".join(LINES[10:30])
    assert unfinished_query(NEXT, 20) == "\n".join(LINES[10:30])
    later = make_query(prefix=QUERY.prefix, cursor=QUERY.cursor, context_start=25)
    assert unfinished_query(later, 20) == "\n".join(LINES[25:30])
    assert unfinished_query(make_query(prefix="tot", cursor=Cursor(line=0, column=3)), 20) == ""


def test_lines_of_a_partial_prefix_are_counted_from_the_cursor() -> None:
    stored = make_query(prefix="\n".join(LINES[:30]) + "\n", cursor=Cursor(line=100, column=0), context_start=70)
    assert unfinished_query(stored, 20) == "\n".join(LINES[10:30])
    assert unfinished_query(stored, 50) == "\n".join(LINES[:30])


def test_the_second_query_joins_the_draft_to_the_partial_line() -> None:
    before = "\n".join(LINES[20:30])
    draft = "apply_tax(cart)\n\n    return total\n"
    assert draft_query(QUERY, draft, 20) == f"{before}\n    total = apply_tax(cart)\n    return total"
    assert draft_query(QUERY, draft, 20, join=False) == f"{before}\napply_tax(cart)\n    return total"
    many = "".join(f"line_{i}\n\n" for i in range(30))
    assert draft_query(NEXT, many, 20) == before + "".join(f"\nline_{i}" for i in range(10))
    assert draft_query(QUERY, draft, 20, first_only=True) == f"{before}\n    total = apply_tax(cart)"
    assert draft_query(QUERY, draft, 20, join=False, first_only=True) == f"{before}\napply_tax(cart)"
    assert draft_query(NEXT, draft, 20) == f"{before}\napply_tax(cart)\n    return total"


def test_the_second_query_has_at_most_twenty_lines_without_blank_ones() -> None:
    draft = "\n".join(f"d{i}" for i in range(30))
    lines = draft_query(NEXT, draft, 20).split("\n")
    assert lines == [*LINES[20:30], *[f"d{i}" for i in range(10)]]
    gaps = make_query(prefix="a\n\n  \nb\n", cursor=Cursor(line=4, column=0))
    assert draft_query(gaps, "c", 20) == "a\nb\nc"
    odd = make_query(prefix="a\x0cb\n\x1cz = ", cursor=Cursor(line=1, column=5))
    assert unfinished_query(odd, 20) == "a\nb" and unfinished_query(odd, 1) == "b"
    assert draft_query(odd, "1\r2\u2028\n 3", 20) == "a\nb\nz = 1\n2\n 3"
    assert draft_query(odd, "\x0c 1\n2", 20, join=False, first_only=True) == "a\nb\n1"


def test_an_empty_draft_adds_nothing() -> None:
    for draft in ("", "\n", "  \n \n"):
        assert draft_query(QUERY, draft, 20) == "\n".join(LINES[20:30])
    assert draft_query(QUERY, "\n    more()", 20).endswith("line 29\n    total = \n    more()")
    assert draft_query(QUERY, "\n    more()", 20, first_only=True).endswith("line 29\n    total =     more()")


class _Files:
    def read(self, path: str) -> str:
        return {"a.py": "\n".join(LINES) + "\n", "short.py": "one\ntwo\n"}[path]


def test_an_extended_block_is_the_window_one_stride_further() -> None:
    def hit(path: str, start: int, end: int) -> WindowHit:
        places = (Place(path=path, start=start, end=end), Place(path="b.py", start=3, end=9))
        return WindowHit(text="", score=0.5, places=places)

    hits = [hit("a.py", 0, 10), hit("a.py", 10, 30), hit("a.py", 30, 40), hit("short.py", 0, 2)]
    found = extended(hits, _Files(), 20, 10)  # type: ignore[arg-type]
    assert [(c.places[0].start, c.places[0].end) for c in found] == [(0, 20), (20, 40), (20, 40), (0, 2)]
    moved = (Place(path="a.py", start=20, end=40),)
    assert found[1] == fragment(["a.py", "b.py"], "\n".join(LINES[20:40]), moved, 0.5)


def test_a_returned_context_is_packed_in_the_same_layout() -> None:
    snippets = [Snippet(path=f"{i}.py", text=f"x = {i}\n", score=i, start=2, end=3) for i in range(3)]
    prompt = render(QUERY, Context.ranked(snippets))
    assert [b.text.split("\n")[3] for b in prompt.blocks if b.kind is BlockKind.SIMILAR] == [
        "# x = 0",
        "# x = 1",
        "# x = 2",
    ]
    assert (
        prompt.blocks[-2].text == "\n" and prompt.text.startswith(SIMILAR_HEADER) and prompt.text.endswith(QUERY.prefix)
    )
    assert render(QUERY, Context(())).text == QUERY.prefix
