"""Samples of the lines that a history added after a day or a commit, checked with plain `git blame`."""

import contextlib
import json
import shlex
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from ctxbench.bench import standard
from ctxbench.bench.concurrency import Tick
from ctxbench.bench.errors import InputFault
from ctxbench.bench.files import plain_newlines
from ctxbench.bench.home import Home
from ctxbench.bench.lines.build import build
from ctxbench.bench.repositories import git as history
from ctxbench.bench.repositories import manifest
from ctxbench.bench.repositories.git import Since, open_history, read_since, with_history
from ctxbench.bench.repositories.manifest import RepoManifest
from ctxbench.bench.samples import SampleSet
from ctxbench.harness import cutoffs
from tests.helpers.cli import run_cli
from tests.helpers.repositories import git as run_git
from tests.helpers.trees import write_tree
from tests.independent.line_ages import not_newer, standing_before

HEAD = 'name = "shop"\nlanguage = "python"\nlicense = "MIT"\nversion = "1"\n'
DAY = date(2024, 6, 1)
TAX = "def apply_tax(amount, rate):\n    return amount * (1 + rate)\n"
USES = [f"    total_{n} = apply_tax(cart_{n}, rate_{n})" for n in range(6)]


def git(folder: Path, *arguments: str, written: str = "2020-01-01", committed: str = "") -> str:
    dates = {"GIT_AUTHOR_DATE": f"{written}T12:00:00Z", "GIT_COMMITTER_DATE": f"{committed or written}T12:00:00Z"}
    return run_git(folder, *arguments, **dates, HOME=str(folder))


def pay(lines: list[str]) -> str:
    return "\n".join(["from shop.tax import apply_tax", "", "", "def pay():", *lines, ""])


class Origin:
    """A repository whose history the test writes."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir()
        git(root, "init", "-q")

    def commit(self, written: str, files: dict[str, str | bytes], *, committed: str = "") -> str:
        write_tree(self.root, {path: text.encode() if isinstance(text, str) else text for path, text in files.items()})
        git(self.root, "add", ".")
        git(self.root, "commit", "-qm", "more", written=written, committed=committed)
        return git(self.root, "rev-parse", "HEAD")

    def manifest(self, *, local: str | None = None) -> RepoManifest:
        source = f'kind = "git"\nurl = "{self.root.as_uri()}"\ncommit = "{git(self.root, "rev-parse", "HEAD")}"\n'
        if local is not None:
            source = f'kind = "local"\npath = "{self.root / local}"\n'
        path = self.root.parent / "shop.toml"
        # The first source has no history, so the second one is used.
        archive = '[[source]]\nkind = "pypi"\nname = "shop"\nsha256 = "' + "ab" * 32 + '"\n'
        path.write_text(f"{HEAD}{archive}[[source]]\n{source}")
        return manifest.load(str(path))


@pytest.fixture
def origin(tmp_path: Path) -> Origin:
    place = Origin(tmp_path / "origin")
    place.commit("2023-01-01", {"shop/__init__.py": "", "shop/tax.py": TAX, "shop/pay.py": pay(USES[:2])})
    return place


@pytest.fixture
def built(origin: Origin, tmp_path: Path) -> Callable[[Since], SampleSet]:
    def build_since(since: Since, *, local: str | None = None) -> SampleSet:
        return build([origin.manifest(local=local)], Home(tmp_path / "home"), "new", since=since, force=True)

    return build_since


def lines_of(sample_set: SampleSet) -> dict[str, str]:
    """Map each sample's line, without its indentation, to its day."""
    lines = {}
    for sample in sample_set.samples:
        before = sample.prefix.rsplit("\n", 1)[-1]
        lines[(before + sample_set.references[sample.id].target).strip()] = str(sample.dated)
    return lines


def test_only_lines_after_the_day_are_taken(origin: Origin, built: Callable[..., SampleSet], tmp_path: Path) -> None:
    origin.commit("2024-06-01", {"shop/pay.py": pay(USES[:3])})
    last = origin.commit("2024-06-02", {"shop/pay.py": pay(USES[:5])})
    sample_set = built(DAY)
    assert lines_of(sample_set) == {USES[3].strip(): "2024-06-02", USES[4].strip(): "2024-06-02"}
    entry = sample_set.manifest["repositories"]["shop"]
    assert (entry["since"], entry["commit"], entry["drops"]["older"]) == ("2024-06-01", last, 3)
    assert not_newer(tmp_path / "home", "new", {"shop": origin.root}) == (2, [])
    # The checker itself can fail: all lines are newer than 2020, and none is newer than the last commit.
    for since, old in (("2020-01-01", 0), ("2024-06-02", 2)):
        account = tmp_path / "home" / "samples" / "new" / "manifest.json"
        account.write_text(
            json.dumps(json.loads(account.read_text()) | {"repositories": {"shop": {**entry, "since": since}}})
        )
        assert len(not_newer(tmp_path / "home", "new", {"shop": origin.root})[1]) == old


def test_only_lines_after_the_commit_are_taken(origin: Origin, built: Callable[..., SampleSet], tmp_path: Path) -> None:
    middle = origin.commit("2023-02-01", {"shop/pay.py": pay(USES[:3])})
    # This commit's clock is wrong. The order of commits does not depend on their days.
    origin.commit("2022-01-01", {"shop/pay.py": pay(USES[:4])})
    assert lines_of(built(middle[:10])) == {USES[3].strip(): "2022-01-01"}
    assert not_newer(tmp_path / "home", "new", {"shop": origin.root}) == (1, [])


def test_moved_indented_and_rebased_lines_keep_their_age(origin: Origin, built: Callable[..., SampleSet]) -> None:
    moved = [f"    grand_total_{n} = apply_tax(purchases_of_customer_{n}, percent_of_country_{n})" for n in range(9)]
    origin.commit("2023-02-01", {"shop/pay.py": pay([*USES[:2], *moved])})
    origin.commit(
        "2025-01-01",
        {
            "shop/pay.py": pay(["    if True:", *(f"    {line}" for line in USES[:2])]),
            "shop/moved.py": pay(moved).replace("def pay", "def moved"),
        },
    )
    origin.commit(
        "2023-03-01",
        {"shop/pay.py": pay(["    if True:", *(f"    {line}" for line in USES[:2]), USES[2]])},
        committed="2025-02-01",
    )
    origin.commit("2025-03-01", {"shop/other.py": pay([USES[3]]).replace("def pay", "def other")})
    assert lines_of(built(DAY)) == {USES[3].strip(): "2025-03-01"}


def test_only_committed_files_of_a_local_clone_become_samples(origin: Origin, built: Callable[..., SampleSet]) -> None:
    more = pay(USES[3:4]).replace("def pay", "def more")
    origin.commit("2025-01-01", {"shop/more.py": more, "shop/pay.py": pay(USES[:3])})
    write_tree(origin.root, {"shop/pay.py": pay([*USES[:2], USES[4]])})
    sample_set = built(DAY, local=".")
    # Committed lines of a changed file are dropped too, because their line numbers no longer match the history.
    assert set(lines_of(sample_set)) == {USES[3].strip()}
    assert sample_set.manifest["repositories"]["shop"]["drops"]["uncommitted"] == 3


def test_a_folder_of_a_clone_has_the_clones_history(origin: Origin, built: Callable[..., SampleSet]) -> None:
    inner = {"lib/shop/__init__.py": "", "lib/shop/tax.py": TAX, "lib/shop/pay.py": pay(USES[:1])}
    origin.commit("2023-02-01", inner)
    origin.commit("2025-01-01", {"lib/shop/pay.py": pay([USES[0], USES[5]])})
    assert lines_of(built(DAY, local="lib")) == {USES[5].strip(): "2025-01-01"}


def test_a_file_whose_lines_git_counts_differently_has_no_days(origin: Origin, tmp_path: Path) -> None:
    text = pay(USES[:3]).replace("def pay():\n", "def pay():\r", 1).encode()
    origin.commit("2025-01-01", {"shop/pay.py": text, "shop/crlf.py": pay(USES[3:5]).replace("\n", "\r\n").encode()})
    past = open_history(with_history(origin.manifest()), Home(tmp_path), DAY, report=lambda _: None)
    paths = ("shop/pay.py", "shop/crlf.py", "shop/tax.py")
    texts = {path: plain_newlines((origin.root / path).read_bytes().decode()) for path in paths}
    days = past.days(dict.fromkeys(paths, range(5)), root=origin.root, texts=texts)
    assert [days[path] and list(days[path] or ()) for path in paths] == [None, list(range(5)), {}]


def test_merged_lines_keep_their_day_on_the_branch(origin: Origin, built: Callable[..., SampleSet]) -> None:
    git(origin.root, "checkout", "-qb", "other")
    origin.commit("2024-05-01", {"shop/early.py": pay(USES[2:3]).replace("pay", "early")})
    origin.commit("2024-07-01", {"shop/late.py": pay(USES[3:4]).replace("pay", "late")})
    git(origin.root, "checkout", "-q", "main")
    origin.commit("2024-08-01", {"shop/pay.py": pay([*USES[:2], USES[4]])})
    git(origin.root, "merge", "-q", "--no-ff", "-m", "both", "other", written="2024-09-01")
    assert lines_of(built(DAY)) == {USES[3].strip(): "2024-07-01", USES[4].strip(): "2024-08-01"}


def test_only_new_commits_are_fetched_and_blamed(
    origin: Origin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, ...]] = []
    real = history.git
    monkeypatch.setattr(
        history, "git", lambda bare, *words, source: asked.append(words) or real(bare, *words, source=source)
    )

    def build_since(since: Since) -> tuple[int, list[str]]:
        """Return the number of fetches of the history, and the files that were blamed."""
        asked.clear()
        sets = [
            build([origin.manifest()], Home(tmp_path / home), "new", since=since, force=True)
            for home in ("home", "fresh")
        ]
        assert sets[0].digest == sets[1].digest
        shutil.rmtree(tmp_path / "fresh")
        words = asked[: next(at for at, words in enumerate(asked) if words[0] == "init" and "fresh" in words[-1])]
        blames = [words[-1] for words in words if words[0] == "blame" and "-C" not in words]
        return sum(words[0] == "fetch" and "--depth=1" not in words for words in words), blames

    more = {f"shop/more_{n}.py": pay([USES[n]]).replace("pay", f"more_{n}") for n in (2, 3)}
    middle = origin.commit("2024-07-01", {"shop/more_2.py": more["shop/more_2.py"]})
    origin.commit("2024-08-01", {"shop/more_3.py": more["shop/more_3.py"]})
    assert build_since(DAY) == (1, sorted(more))
    assert build_since(DAY) == (0, [])
    origin.commit("2024-09-01", {"shop/pay.py": pay([*USES[:2], USES[4]])})
    assert build_since(DAY) == (1, ["shop/pay.py"])
    assert build_since(middle) == (0, ["shop/more_3.py", "shop/pay.py"])


def test_an_interrupt_keeps_the_ages_found_so_far(origin: Origin, tmp_path: Path) -> None:
    origin.commit("2025-01-01", {f"shop/more_{n}.py": pay([USES[n]]) for n in (2, 3)})

    @contextlib.contextmanager
    def interrupted(_: str, __: int) -> Iterator[Tick]:
        def tick(_: int) -> None:
            raise KeyboardInterrupt

        yield tick

    with pytest.raises(KeyboardInterrupt):
        build([origin.manifest()], Home(tmp_path), "new", since=DAY, progress=interrupted)
    (kept,) = (tmp_path / "cache" / "history").glob("shop-*/ages/2024-06-01.json")
    stored = json.loads(kept.read_text())
    assert list(stored.values()) == [{"4": "2025-01-01"}]
    digests = set()
    for number, text in enumerate((kept.read_text(), "", '{"a":', "[]", '{"k": 5}', '{"k": {"x": 1}}')):
        kept.write_text(text)
        digests.add(build([origin.manifest()], Home(tmp_path), f"new{number}", since=DAY).digest)
    assert len(digests) == 1, "what cannot be read is blamed again"


def test_a_shallow_history_is_refused(origin: Origin, tmp_path: Path) -> None:
    origin.commit("2025-01-01", {"shop/pay.py": pay(USES[:3])})
    shallow = tmp_path / "shallow"
    git(tmp_path, "clone", "-q", "--depth=1", origin.root.as_uri(), str(shallow))
    shutil.rmtree(origin.root)
    shallow.rename(origin.root)
    with pytest.raises(InputFault, match="cut off") as caught:
        build([origin.manifest(local=".")], Home(tmp_path / "home"), "new", since=DAY)
    assert "git fetch --unshallow" in str(caught.value)
    assert not list((tmp_path / "home" / "cache" / "history").glob("*/bare"))


def test_faults_name_a_fix(origin: Origin, built: Callable[..., SampleSet], tmp_path: Path) -> None:
    with pytest.raises(InputFault, match="type an earlier --since"):
        built(DAY)
    with pytest.raises(InputFault, match="has a hash that starts with abcdef0"):
        built("abcdef0")
    path = tmp_path / "shop.toml"
    path.write_text(HEAD + '[[source]]\nkind = "local"\npath = "plain"\n')
    write_tree(tmp_path, {"plain/shop/tax.py": TAX})
    with pytest.raises(InputFault, match='no source of the repository has a history.*kind = "git"'):
        with_history(manifest.load(str(path)))
    for text in ("yesterday", "main", "abc", "2024-13-01"):
        with pytest.raises(ValueError, match="neither a day such as 2024-06-01 nor a commit"):
            read_since(text)


@pytest.mark.slow
def test_commands_of_the_fidelity_page_work(origin: Origin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    origin.commit("2024-12-01", {"shop/pay.py": pay(USES[:4])})
    origin.commit("2025-03-01", {"shop/pay.py": pay(USES[:5])})
    origin.manifest()
    page = (Path(__file__).parents[3] / "docs" / "fidelity.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".ctxbench").mkdir()
    (tmp_path / ".ctxbench" / "cutoffs.toml").write_text(page.partition("```toml\n")[2].partition("```")[0])
    outputs = []
    for line in page.partition("```sh\n")[2].partition("```")[0].replace("\\\n", "").splitlines():
        program, *words = shlex.split(line)
        result = run_cli(*words)
        assert program == "ctxbench" and result.code == 0, result.err
        outputs.append(result.out)
    assert len(outputs) == 6 and "new: 3 samples" in outputs[0] and "2024-12-01 to 2025-03-01" in outputs[1]
    assert all(board.startswith("new[after 2025-01-01], ") for board in (outputs[3], outputs[5]))
    assert cutoffs.of_home(Home(tmp_path / ".ctxbench")).day("hf(model=/my-model)") == DAY


def test_a_part_of_a_standard_set_is_not_compared_with_the_published_set(
    origin: Origin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    origin.commit("2025-01-01", {"shop/pay.py": pay(USES[:4])})
    origin.manifest()
    small = replace(standard.load("ctxbench-2"), domains={str(tmp_path / "shop.toml"): "shops"})
    monkeypatch.setattr(standard, "load", lambda _: small)
    command = ("samples", "build", "new", "--set", "ctxbench-2", "--since", "2024-06-01")
    result = run_cli(*command, "--home", str(tmp_path / "home"))
    assert result.code == 0 and "published" not in result.err


def test_the_build_command_accepts_a_day(origin: Origin, tmp_path: Path) -> None:
    origin.commit("2025-01-01", {"shop/pay.py": pay(USES[:4])})
    origin.manifest()
    home = ("--home", str(tmp_path / "home"))
    command = ("samples", "build", "new", "--repo", str(tmp_path / "shop.toml"), "--since")
    result = run_cli(*command, "2024-06-01", *home)
    assert result.code == 0 and "new: 2 samples" in result.out, result.err
    assert "shop: ages of lines, files: 1 of 1\n" in result.err
    shown = run_cli("samples", "show", "new", *home).out
    assert "dated        2025-01-01\n" in shown and "older 2" in shown
    assert run_cli(*command, "soon", *home).code == 2
    assert run_cli(*command, "2024-06-01", "--kind", "function", *home).code == 2
    none = run_cli(*command[:-1], "--after", "2024-06-01", *home)
    assert none.code == 1 and "none of the repositories was released after 2024-06-01: shop (no day)" in none.err


NEW = "    fresh = apply_tax(cart_9, rate_9)"
OLD = "    total_of_the_customer = apply_tax(cart_of_the_customer, rate_of_the_country)"
WRAPPED = "    total_of_the_customer = apply_tax(\n        cart_of_the_customer,\n        rate_of_the_country,\n    )"


@pytest.mark.parametrize(
    ("before", "gone", "after"),
    [
        ({"shop/pay.py": pay([WRAPPED])}, {}, {"shop/pay.py": pay([OLD, NEW])}),
        ({"shop/pay.py": pay([OLD])}, {"shop/pay.py": pay(["    pass"])}, {"shop/pay.py": pay([OLD, NEW])}),
        ({"notes/old.py": f'"""\n>>> {OLD.strip()}\n"""\n'}, {"notes/old.py": ""}, {"shop/new.py": pay([OLD, NEW])}),
        (
            {"shop/pay.py": pay([OLD.replace(" = ", "\t=\t").replace("apply_tax(", "apply_tax( ")])},
            {"shop/pay.py": pay(["    # " + OLD.strip()])},
            {"shop/new.py": pay([OLD, NEW])},
        ),
    ],
    ids=["wrapped", "taken out and back", "a doctest of another file that went later", "another layout"],
)
@pytest.mark.parametrize("by_day", [True, False])
def test_a_line_whose_tokens_existed_before_the_cutoff_is_dropped(
    origin: Origin,
    built: Callable[..., SampleSet],
    tmp_path: Path,
    before: dict[str, str],
    gone: dict[str, str],
    after: dict[str, str],
    by_day: bool,
) -> None:
    cutoff = origin.commit("2023-06-01", {**before})
    if "shop/pay.py" in gone:
        cutoff = origin.commit("2023-07-01", {**gone})
    origin.commit("2025-01-01", {**{path: "" for path in before if path not in after}, **after})
    sample_set = built(DAY if by_day else cutoff)
    assert list(lines_of(sample_set)) == [NEW.strip()]
    assert sample_set.manifest["repositories"]["shop"]["drops"]["seen_before"] == 1
    home = tmp_path / "home"
    assert standing_before(home, "new", origin.root, cutoff) == []
    # The checker itself can fail: the old line is in the cutoff's tree or in an earlier version of its file.
    for file, wrong in (("samples.jsonl", {"prefix": ""}), ("references.jsonl", {"target": OLD})):
        place = home / "samples" / "new" / file
        place.write_text(json.dumps({**json.loads(place.read_text()), **wrong}) + "\n")
    assert len(standing_before(home, "new", origin.root, cutoff)) == 1
