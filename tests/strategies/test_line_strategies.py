import dataclasses

import pytest

from ctxbench.bench.errors import MachineFault
from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.repository import Repository
from ctxbench.bench.types import Cursor, Kind, Place, Query
from ctxbench.strategies import BlockKind, Prompt, layout, resolve
from ctxbench.strategies.layout import (
    RULE,
    SIMILAR_HEADER,
    build_infile,
    first_shown_line,
    infile_block,
    infile_prompt,
    last_tokens,
)
from ctxbench.strategies.tiny import TARGET, bare_case, query_for, view_for
from tests.helpers.samples import make_query
from tests.helpers.views import make_view

TEXT = "import os\n\ndef pay(user):\n    total = "


def test_the_file_is_kept_line_by_line_from_its_end() -> None:
    assert build_infile(TEXT, 4096) == TEXT
    assert build_infile(TEXT, 10) == "\ndef pay(user):\n    total = "  # 5 tokens and 4; "import os" would make 11
    assert build_infile("a b c\nd\n", 1) == "d\n"
    assert build_infile("", 5) == ""


@pytest.mark.parametrize(
    ("text", "limit", "shown", "first"),
    [
        ("a\x0cb\n\x0c\nc = ", 99, "a\nb\n\n\nc = ", 0),
        ("a\x0cb\n\x0c\nc = ", 4, "b\n\n\nc = ", 0),
        ("a\x0cb\n\x0c\nc = ", 3, "\n\nc = ", 1),
        ("x = 1\n\x1cy\u2028z", 1, "z", 1),
        ("a\x0b", 9, "a\n", 0),
    ],
)
def test_lines_are_split_as_published_and_counted_as_in_the_file(text: str, limit: int, shown: str, first: int) -> None:
    query = make_query(prefix=text, cursor=Cursor(line=text.count("\n"), column=len(text.rpartition("\n")[2])))
    block = infile_block(query, limit)
    assert block.text == shown and first_shown_line(query, limit) == first
    assert block.places == (Place(path=query.path, start=first, end=query.cursor.line + 1),)
    assert infile_prompt(query, limit).flags == ()


def test_a_line_over_the_limit_and_all_lines_before_it_are_dropped() -> None:
    long = "x = [" + "1, " * 99
    assert build_infile(f"a\n{long}\nb\nc", 20) == "b\nc"


def test_a_last_line_over_the_limit_keeps_its_last_tokens() -> None:
    assert build_infile("a\nuser . cart . total", 2) == " . total"
    assert build_infile("a\nuser . cart . total\n", 2) == " . total\n"  # a next-line task ends with a newline
    query = make_query(prefix="a\nuser . cart . total", cursor=Cursor(line=1, column=19))
    prompt = infile_prompt(query, 2)
    assert prompt.flags == ("overflow_trimmed",) and prompt.blocks[0].cut
    assert prompt.blocks[0].places == (Place(path=query.path, start=1, end=2),)


class Bytes:
    """A tokenizer with one token per byte, like p50k_base for characters without a token of their own."""

    def count(self, text: str) -> int:
        return len(text.encode())

    def tokenize(self, text: str) -> list[str]:
        return [piece for char in text for piece in [*[""] * (len(char.encode()) - 1), char]]


def test_a_character_of_several_tokens_is_kept_whole_or_not_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "_p50k", Bytes())
    text = "ab\u8fd4\u56de"
    kept = ["", "", "", "\u56de", "\u56de", "\u56de", "\u8fd4\u56de", "b\u8fd4\u56de", text]
    assert [last_tokens(text, most) for most in range(9)] == kept
    assert [build_infile(f"x\n{text}", most) for most in range(9)] == kept


def test_the_empty_first_line_of_a_body_is_not_a_shown_place() -> None:
    head = "import os\ndef pay(user):\n"
    for indent in ("", "    "):
        body = make_query(kind=Kind.FUNCTION, prefix=head + indent, cursor=Cursor(line=2, column=len(indent)))
        assert infile_block(body, 99).places == (Place(path=body.path, start=0, end=2),)
        assert infile_block(body, 6).text == f"def pay(user):\n{indent}"
        assert infile_block(body, 6).places == (Place(path=body.path, start=1, end=2),)
    assert infile_block(body, 1).text == "    " and infile_block(body, 1).places == ()
    assert first_shown_line(body, 1) == 2
    brace = make_query(kind=Kind.FUNCTION, prefix="int pay() {", cursor=Cursor(line=0, column=11))
    assert infile_block(brace, 99).places == (Place(path=brace.path, start=0, end=1),)
    line = make_query(prefix=f"{head}    ", cursor=Cursor(line=2, column=4))
    assert infile_block(line, 99).places == (Place(path=line.path, start=0, end=3),)


def test_an_empty_file_is_flagged() -> None:
    query, repo = bare_case(Kind.LINE)
    for spec in ("lc.infile", "lc.repocoder"):
        prompt = resolve(spec)(query, repo, lambda *_, **__: "")
        assert prompt.text == "" and "empty_current_file" in prompt.flags


class _Model:
    def __init__(self, *answers: str) -> None:
        self.answers, self.asked, self.roles = list(answers), [], []
        self.asked: list[Prompt]
        self.roles: list[str]

    def __call__(self, prompt: Prompt, *, role: str = "draft", max_tokens: int = 128) -> str:
        self.asked.append(prompt)
        self.roles.append(role)
        return self.answers.pop(0)


FILES = {
    "a.py": "\n".join(f"alpha_{i} = read(alpha, {i})" for i in range(40)) + "\n",
    "b.py": "\n".join(f"beta_{i} = write(beta, {i})" for i in range(40)) + "\n",
    "main.py": "\n".join(f"alpha_{i} = read(alpha, {i})" for i in range(5, 15)) + "\nresult = write(beta, 22)\n",
}
MAIN = Query(
    id="m",
    benchmark="b",
    language=PYTHON,
    kind=Kind.LINE,
    subkind="single-line",
    repo="demo",
    path="main.py",
    cursor=Cursor(line=10, column=9),
    prefix="\n".join(FILES["main.py"].split("\n")[:10]) + "\nresult = ",
)


def _view(query: Query = MAIN, files: dict[str, str] = FILES) -> Repository:
    return make_view(query, files)


def _starts(prompt: Prompt) -> list[tuple[str, int, int]]:
    return [(p.path, p.start, p.end) for b in prompt.blocks if b.kind is BlockKind.SIMILAR for p in b.places]


def test_repocoder_shows_following_windows_and_then_windows_like_the_draft() -> None:
    model = _Model("write(beta, 22)\nbeta_23 = write(beta, 23)\nbeta_24 = write(beta, 24)\n" * 4)
    prompt = resolve("lc.repocoder(blocks=1)")(MAIN, _view(), model)
    assert model.roles == ["draft"]
    # Lines 0 to 10 or 0 to 20 of a.py are similar. The prompt shows the window one stride further.
    assert _starts(model.asked[0])[0][0] == "a.py" and _starts(model.asked[0])[0][2] in (20, 30)
    assert [path for path, _, _ in _starts(prompt)] == ["b.py"]
    assert prompt.text.startswith(SIMILAR_HEADER) and prompt.text.endswith("\n\n" + MAIN.prefix)
    assert len(prompt.dropped) > 0 and {d.reason for d in prompt.dropped} == {"limit"}


@pytest.mark.parametrize("strategy", ["lc.repocoder(iterations=1{})", "lc.infercom(encoder=bm25, k_fsr=0{})"])
def test_windows_of_the_target_file_are_shown_before_its_shown_text(strategy: str) -> None:
    lines = [f"gamma_{i} = send(gamma, {i})" for i in range(60)]
    query = dataclasses.replace(MAIN, prefix="\n".join(lines) + "\nresult = ", cursor=Cursor(line=60, column=9))
    files = {**FILES, "main.py": query.prefix + "send(gamma, 60)\n"}
    shown = {}
    for spec in (strategy.format(", infile=90"), strategy.format(", infile=90, own_file=no"), strategy.format("")):
        prompt = resolve(spec)(query, _view(query, files), _Model("send(gamma, 60)"))
        shown[spec] = [(start, end) for path, start, end in _starts(prompt) if path == "main.py"]
    own, without, whole_file_shown = shown.values()
    first_shown = prompt_start(resolve(strategy.format(", infile=90"))(query, _view(query, files), _Model("x")))
    assert 30 < first_shown < 60 and own and without == whole_file_shown == []
    # In its first round, RepoCoder shows the window one stride after the window that it found.
    assert all(end <= first_shown + 10 * ("iterations" in strategy) for _, end in own)


def prompt_start(prompt: Prompt) -> int:
    return prompt.blocks[-1].places[0].start


def test_the_most_similar_block_is_last() -> None:
    prompt = resolve("lc.repocoder(iterations=1, budget=9000)")(MAIN, _view(), _Model())
    scores = [b.score or 0 for b in prompt.blocks if b.kind is BlockKind.SIMILAR]
    assert scores == sorted(scores) and len(scores) == 8 and scores[-1] > scores[0]


@pytest.mark.parametrize(("rounds", "asked"), [(0, 0), (1, 0), (2, 1), (4, 3)])
def test_every_round_but_the_last_asks_the_model_once(rounds: int, asked: int) -> None:
    model = _Model(*["write(beta, 1)"] * asked)
    prompt = resolve(f"lc.repocoder(iterations={rounds})")(MAIN, _view(), model)
    assert len(model.asked) == asked
    if rounds == 0:
        assert prompt == infile_prompt(MAIN, 2048)


def test_an_empty_draft_is_flagged_and_retrieval_continues() -> None:
    prompt = resolve("lc.repocoder")(MAIN, _view(), _Model("\n"))
    assert prompt.flags == ("empty_draft",) and _starts(prompt)


def test_a_machine_fault_of_the_model_is_raised() -> None:
    def down(prompt: Prompt, *, role: str = "draft", max_tokens: int = 128) -> str:
        raise MachineFault("down")

    with pytest.raises(MachineFault):
        resolve("lc.repocoder")(MAIN, _view(), down)


def test_a_repository_of_one_file_shows_only_the_target_file() -> None:
    files = {"main.py": FILES["main.py"]}
    prompt = resolve("lc.repocoder")(MAIN, _view(files=files), _Model("x"))
    assert prompt.text == MAIN.prefix and prompt.flags == ("no_candidates",)
    prompt = resolve("lc.repocoder(empty_header=on)")(MAIN, _view(files=files), _Model("x"))
    assert prompt.text == SIMILAR_HEADER + "\n" + MAIN.prefix


def test_a_cursor_on_the_first_line_retrieves_nothing() -> None:
    query = dataclasses.replace(MAIN, cursor=Cursor(line=0, column=3), prefix="alp")
    prompt = resolve("lc.repocoder(iterations=1)")(query, _view(query), _Model())
    assert prompt.text == "alp" and prompt.flags == ("no_candidates",)


def test_budgets_limit_similar_code_and_the_target_file() -> None:
    for spec, rules in (("lc.repocoder(iterations=1, budget=20)", 0), ("lc.repocoder(iterations=1, blocks=2)", 5)):
        text = resolve(spec)(MAIN, _view(), _Model()).text
        assert text.count(RULE) == rules
    short = resolve("lc.repocoder(iterations=1, infile=13)")(MAIN, _view(), _Model())
    assert short.blocks[-1].cut and short.blocks[-1].text == "alpha_14 = read(alpha, 14)\nresult = "


def test_the_first_prompt_equals_the_published_layout() -> None:
    query = query_for(Kind.LINE)
    prompt = resolve("lc.repocoder(iterations=1, blocks=1)")(query, view_for(query), _Model())
    store = view_for(query).read("shop/store.py").rstrip("\n").split("\n")
    assert _starts(prompt) == [("shop/store.py", 0, 20)]
    body = "".join(f"# {line}\n" for line in store[:20])
    assert prompt.text == (
        "# Here are some relevant code fragments from other files of the repo:\n"
        f"{RULE}\n# the below code fragment can be found in:\n# shop/store.py\n{RULE}\n{body}{RULE}\n\n{query.prefix}"
    )
    assert query.path == TARGET
