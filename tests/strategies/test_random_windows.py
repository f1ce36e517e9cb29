import dataclasses

from ctxbench.bench.windows import spans
from ctxbench.strategies import BlockKind, Prompt, resolve
from ctxbench.strategies.layout import SIMILAR_HEADER
from tests.strategies.projects import Scripted, case

FILES = {f"{name}.py": "".join(f"{name}_{i} = {i}\n" for i in range(100)) for name in "abcdef"}
QUERY, REPO = case(FILES, "main.py", "alpha = 1\nbeta = ")


def _prompt(spec: str = "lc.random_windows", **changed: object) -> Prompt:
    return resolve(spec)(dataclasses.replace(QUERY, **changed), REPO, Scripted())  # type: ignore[arg-type]


def _places(prompt: Prompt) -> list[tuple[str, int, int]]:
    return [(p.path, p.start, p.end) for b in prompt.blocks if b.kind is BlockKind.SIMILAR for p in b.places]


def test_the_draw_depends_only_on_seeds_and_sample() -> None:
    assert _prompt() == _prompt()
    draws = [_prompt(), _prompt(seed=1), _prompt(id="another"), _prompt("lc.random_windows(seed=1)")]
    assert len({prompt.text for prompt in draws}) == len(draws)


def test_windows_of_other_files_are_shown_in_repocoders_layout() -> None:
    prompt = _prompt("lc.random_windows(budget=9000)")
    places = _places(prompt)
    assert len(places) == len(set(places)) == 10 and "main.py" not in {path for path, _, _ in places}
    assert {(start, end) for _, start, end in places} <= set(spans(100, 20, 10))
    assert prompt.text.startswith(SIMILAR_HEADER) and prompt.text.endswith(f"\n\n{QUERY.prefix}")


def test_blocks_and_windows_can_be_set() -> None:
    places = _places(_prompt("lc.random_windows(blocks=2, window=6, stride=3)"))
    assert len(places) == 2 and all(end - start <= 6 for _, start, end in places)
    assert _places(_prompt("lc.random_windows(blocks=0)")) == []


def test_a_repository_of_one_file_shows_only_the_target_file() -> None:
    query, repo = case({}, "main.py", "alpha = 1\n")
    prompt = resolve("lc.random_windows")(query, repo, Scripted())
    assert prompt.text == "alpha = 1\n" and prompt.flags == ("no_candidates",)
