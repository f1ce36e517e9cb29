import pytest

from ctxbench.bench.languages.python import PYTHON as PYTHON_LANGUAGE
from ctxbench.bench.repository import View
from ctxbench.bench.retrieval.units import Hit, units
from ctxbench.strategies.api import BlockKind
from ctxbench.strategies.baselines.reacc import DENSE, LEXICAL, UNIT
from tests.strategies.baselines.shop import made
from tests.strategies.icl.shop import PYTHON, Model, java_query, query

HEAD = query().prefix
STORE = PYTHON["shop/store.py"].rstrip("\n")
FRAME = (
    f"""\
You are an expert developer. You must write a function or method based on the function signature, docstring and \
implementations provided in the context of the function (restate the function signature). If a method signature is \
provided, implement just the method, do not implement the whole class. The generated code must be between [CODE] and \
[/CODE] tags.

### Context with implementations:
#####
FILE 1
#####
{STORE}

### Function docstring:
"""
    + '''\
def checkout(store, user, rate): """
    """
    Take the money of a user.

    Add the tax to the cart.
    """'''
)
LONG = "".join(f"word_{number} = load_cart(user_{number})\n\n" for number in range(250))
CHUNKS = units("shop/long.py", LONG, PYTHON_LANGUAGE, UNIT)


def ranked(monkeypatch: pytest.MonkeyPatch, dense: dict[int, float], lexical: dict[int, float]) -> None:
    """Make both rankings return the given chunks of the long file with the given scores."""

    def search(self: View, text: str, *, unit: str, ranker: str, top: int) -> tuple[Hit, ...]:
        found = lexical if ranker == "bm25" else dense
        return tuple(Hit(place=CHUNKS[at].place, text=CHUNKS[at].text, score=score) for at, score in found.items())

    monkeypatch.setattr(View, "search", search)


def shown(spec: str = "base.reacc(whole=9000)") -> str:
    prompt = made(spec, files={**PYTHON, "shop/long.py": LONG}, model=Model(instructs=False))
    [block] = [one for one in prompt.blocks if one.kind is BlockKind.SIMILAR]
    return block.text


def test_a_model_with_instructions_sees_one_file() -> None:
    prompt = made("base.reacc(encoder=hashed)", files={name: PYTHON[name] for name in (query().path, "shop/store.py")})
    assert prompt.text == FRAME and prompt.flags == ()


def test_a_model_without_instructions_sees_the_chunk_before_the_file() -> None:
    files = {name: PYTHON[name] for name in (query().path, "shop/store.py")}
    prompt = made("base.reacc(encoder=hashed)", files=files, model=Model(instructs=False))
    assert prompt.text == f"{STORE}\n\n{HEAD}" and prompt.flags == ()
    cut = made("base.reacc(encoder=hashed, whole=85)", files=files, model=Model(instructs=False))
    assert prompt.text.endswith(cut.text) and cut.flags == ("overflow_trimmed",) and len(cut.blocks) == 2
    bare = made("base.reacc(encoder=hashed, whole=20)", files=files, model=Model(instructs=False))
    assert HEAD.endswith(bare.text) and len(bare.blocks) == 1


def test_reacc_builds_prompts_for_java() -> None:
    prompt = made("base.reacc(encoder=hashed)", java_query())
    assert "FILE 1\n#####\n/* A licence. */" in prompt.text and prompt.text.endswith(
        "double pay(double amount) throws Broke"
    )


def test_the_chunk_is_followed_by_the_next_one_of_its_file(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(CHUNKS) == 3
    ranked(monkeypatch, {1: 1.0}, {1: 1.0})
    text = shown().removesuffix("\n\n")
    assert text in LONG and text.startswith(CHUNKS[1].text) and text.endswith(CHUNKS[2].text)
    ranked(monkeypatch, {2: 1.0}, {2: 1.0})
    assert shown().removesuffix("\n\n") == CHUNKS[2].text


def test_scores_are_added_and_a_missing_score_counts_as_the_smallest(monkeypatch: pytest.MonkeyPatch) -> None:
    ranked(monkeypatch, {0: 0.5, 2: 0.4}, {1: 30.0, 2: 20.0})
    # 0: 50 + 22, 1: 40 + 33, 2: 40 + 22
    assert (DENSE, LEXICAL) == (100.0, 1.1) and shown().startswith(CHUNKS[1].text)
    ranked(monkeypatch, {0: 0.5, 2: 0.4}, {1: 29.0, 2: 20.0})
    assert shown().startswith(CHUNKS[0].text)


def test_a_chunk_that_ends_inside_a_line_continues_there(monkeypatch: pytest.MonkeyPatch) -> None:
    text = " ".join(f"w{number}" for number in range(700))
    chunks = units("shop/long.py", text, PYTHON_LANGUAGE, UNIT)
    hit = Hit(place=chunks[0].place, text=chunks[0].text, score=1.0)
    monkeypatch.setattr(View, "search", lambda *_, **__: (hit,))
    prompt = made("base.reacc(whole=9000)", files={**PYTHON, "shop/long.py": text}, model=Model(instructs=False))
    assert prompt.blocks[0].text == " ".join(f"w{number}" for number in range(600)) + "\n\n"


def test_chunks_of_one_line_keep_their_own_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    text = " ".join(f"w{number}" for number in range(900))
    chunks = units("shop/long.py", text, PYTHON_LANGUAGE, UNIT)
    hits = [Hit(place=chunk.place, text=chunk.text, score=1 / at) for at, chunk in enumerate(chunks, 1)]
    assert len({hit.place for hit in hits}) == 1 < len(hits)
    monkeypatch.setattr(View, "search", lambda *_, **__: tuple(hits))
    prompt = made("base.reacc(whole=9000)", files={**PYTHON, "shop/long.py": text}, model=Model(instructs=False))
    assert prompt.blocks[0].text.startswith("w0 ") and prompt.blocks[0].score == DENSE + LEXICAL


@pytest.mark.parametrize("instructs", [True, False])
def test_a_repository_of_one_file_has_no_candidates(instructs: bool) -> None:
    files = {query().path: PYTHON[query().path]}
    prompt = made("base.reacc(encoder=hashed)", files=files, model=Model(instructs=instructs))
    assert prompt.flags == ("no_candidates",)
    assert prompt.text.startswith("You are an expert") if instructs else prompt.text == HEAD
