"""`ctxbench site-board`: a static site of strangers' packages, whose texts are never markup."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import jsonschema
import pytest

from ctxbench.bench.escaping import visible
from ctxbench.dashboard.site import MOST_BYTES
from ctxbench.harness.leaderboard import board, scales
from ctxbench.harness.submissions import format as files
from ctxbench.harness.submissions import records as form
from ctxbench.harness.submissions.records import PackageVerification, PartCheck, PartState, ValueDifference
from tests.dashboard.browser import DESKTOP, PHONE
from tests.dashboard.packages import make_package, scored, write
from tests.dashboard.test_accessible import findings
from tests.dashboard.test_report import HOSTILE, lines, read
from tests.harness.test_exports import RECORD
from tests.helpers.cli import Result, assert_fault, run_cli
from tests.helpers.runs import make_table

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

ROOT = Path(__file__).resolve().parents[2]
EVIL = HOSTILE.replace("\x0b", "") + " https://evil.example/x <base href='//evil.example'>" + "W" * 200


def build(folder: Path, out: Path, *options: str) -> Result:
    return run_cli("site-board", str(folder), "--out", str(out), *options)


def verified(package: form.Submission, differing: int = 0) -> PackageVerification:
    difference = ValueDifference(sample="a", what=EVIL, expected=EVIL, got="1")
    part = PartCheck(
        name="prompts",
        state=PartState.DERIVED,
        checked=32,
        of=32,
        note=EVIL,
        differing=differing,
        difference=difference if differing else None,
    )
    digest = form.digest_of(package.manifest)
    return PackageVerification(
        id=package.manifest.id, digest=digest, ctxbench="0.2.0", samples=32, of=32, parts=(part,)
    )


def ascii_of(text: str) -> str:
    return text.encode("ascii", "ignore").decode()


def make_folder(folder: Path, evil: str) -> dict[str, form.Submission]:
    """Write a package of every kind. `evil` fills every field in which a stranger can write."""
    first = make_package("lc.repocoder(window=20)", gain=0.1, title="Windows")
    packages = {
        "base": make_package(),
        "first": first,
        "better": make_package(
            "lc.repocoder(window=20)",
            gain=0.15,
            title="Windows, mended",
            date="2026-11-05",
            supersedes=first.manifest.id,
        ),
        "same": make_package("lc.repocoder(window=20)", gain=0.02, authors=("Bob",), supersedes=first.manifest.id),
        "evil": make_package(
            # A spec that names a file would be refused.
            re.sub("[/@.]", "", evil),
            gain=-0.04,
            text=evil,
            title=evil,
            authors=(evil,) * 3,
            license=evil,
            strategy={"version": evil},
            cost={"machine": evil},
        ),
        "other model": make_package(model={"spec": "incontext"}),
        "other metrics": make_package(gain=0.3, versions={"metrics": "f" * 64}),
        "withdrawn": make_package("mine", gain=0.4, withdrawn=form.Withdrawal(reason=evil, date="2026-11-09")),
        "foreign": make_package(
            re.sub("[/@.]", "", f"mine({evil})"),
            # The fields of the samples are hostile too.
            repos=[f"{number} {evil}" for number in range(8)],
            set={"name": "other", "protocol": evil},
            # Model names with other letters would be refused.
            model={"spec": f"hf(model={ascii_of(evil)})", "version": evil},
            versions={"ctxbench": evil, "coder": f"hf({ascii_of(evil)})"},
        ),
        "repeated": make_package("twice", gain=0.01, sampling={"seeds": (0, 1)}),
    }
    write(folder, *packages.values())
    for name, differing in (("base", 0), ("evil", 2)):
        package = packages[name]
        place = folder / package.manifest.id / files.VERIFICATION
        place.write_text(files.verification_text(verified(package, differing)).replace(EVIL, evil))
    return packages


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, form.Submission]]:
    folder = tmp_path_factory.mktemp("board")
    made = make_folder(folder / "submissions", EVIL)
    assert build(folder / "submissions", folder / "site", "--title", EVIL).code == 0
    return folder, made


def page_of(packages: tuple[Path, dict[str, form.Submission]], name: str) -> str:
    folder, made = packages
    return (folder / "site" / "submissions" / f"{made[name].manifest.id}.html").read_text(encoding="utf-8")


def test_numbers_equal_those_of_a_leaderboard_of_the_same_scores(packages: Any) -> None:
    folder, made = packages
    repos = [sample.repo for sample in made["base"].samples]
    tables = [
        make_table(
            {"es": scored(made[name], 0), "em": [0.0] * 32},
            repos,
            id=name,
            strategy=strategy,
            generator="hf(model=tiny)",
        )
        for name, strategy in (("base", "lc.infile"), ("evil", "evil"), ("same", "same"), ("better", "better"))
    ]
    (group,) = board(tables).groups
    row = next(row for row in group.rows if row.run.strategy == "better")
    tables_of = [
        next(read(path.read_text(encoding="utf-8")).all("table")) for path in (folder / "site" / "boards").iterdir()
    ]
    head, *rows = max(map(lines, tables_of), key=len)
    [mine] = [
        cells for cells in (dict(zip(head, row, strict=True)) for row in rows) if "replaces 1" in cells["strategy"]
    ]
    es = row.metrics["es"]
    assert mine["es % [95%]"] == scales.interval(es.mean, es.low, es.high)
    difference = row.difference["es"]
    # The interval also depends on the other rows.
    assert mine["vs lc.infile"].split()[0] == scales.written(difference.mean, 0.5, sign=True)


def test_valid_packages_are_ranked_and_all_packages_are_listed(packages: Any) -> None:
    folder, made = packages
    index = (folder / "site" / "index.html").read_text(encoding="utf-8")
    assert index.count("<li data-set") == len(made) == index.count('class="state')
    pages = {path: path.read_text(encoding="utf-8") for path in (folder / "site" / "boards").glob("*.html")}
    # Another model and other metrics each have a separate table.
    assert sorted(text.count('scope="row"') // text.count("<table") for text in pages.values()) == [1, 1, 1, 5]
    main = max(pages.values(), key=len)
    ids = {name: package.manifest.id for name, package in made.items()}
    folded = main.index(f"submissions/{ids['first']}.html")
    assert main.index("<details><summary>replaces 1") < folded < main.index("Other metrics and costs")
    scores = {name: next(read(page_of(packages, name)).all("li")).text for name in ("first", "better")}
    assert "not ranked" in scores["first"] and "rank 1" in scores["better"]
    assert "Superseded by" in page_of(packages, "first") and "Supersedes" in page_of(packages, "better")
    assert "The claim is ignored" in page_of(packages, "same")
    assert visible(EVIL) in read(main).text and "Withdrawn on 2026-11-09" in page_of(packages, "withdrawn")
    marks = {name: re.findall(r'class="state (\w+)"', page_of(packages, name))[0] for name in ("base", "evil", "same")}
    assert marks == {"base": "verified", "evil": "differs", "same": "unverified"}


def test_the_verification_of_another_package_is_ignored(tmp_path: Path) -> None:
    package, other = make_package(), make_package("b")
    folder = write(tmp_path / "in", package)
    text = files.verification_text(replace(verified(other), id=package.manifest.id))
    (folder / package.manifest.id / files.VERIFICATION).write_text(text)
    assert build(folder, tmp_path / "out").code == 0
    assert "not verified" in (tmp_path / "out" / "index.html").read_text(encoding="utf-8")


def test_a_verified_mark_counts_the_computed_prompts(tmp_path: Path) -> None:
    package = make_package()
    folder = write(tmp_path / "in", package)
    check = verified(package)
    part = replace(check.parts[0], checked=1)
    text = files.verification_text(replace(check, parts=(part,)))
    (folder / package.manifest.id / files.VERIFICATION).write_text(text)
    assert build(folder, tmp_path / "out").code == 0
    assert "verified, 1 of 32" in (tmp_path / "out" / "index.html").read_text(encoding="utf-8")


def test_a_wrong_protocol_does_not_create_another_table(tmp_path: Path) -> None:
    folder = write(tmp_path / "in", make_package(), make_package("b", gain=0.1, set={"protocol": "own"}))
    assert build(folder, tmp_path / "out").code == 0
    [page] = (tmp_path / "out" / "boards").glob("*.html")
    assert page.read_text(encoding="utf-8").count('scope="row"') >= 2


@pytest.mark.slow
def test_texts_of_a_package_are_never_markup(packages: Any, tmp_path: Path) -> None:
    folder, made = packages
    tame = make_folder(tmp_path / "in", "tame")
    assert build(tmp_path / "in", tmp_path / "out", "--title", "tame").code == 0
    names = {made[name].manifest.id: tame[name].manifest.id for name in made}
    for old, new in names.items():
        pair = (folder / "site" / "submissions" / f"{old}.html", tmp_path / "out" / "submissions" / f"{new}.html")
        hostile, plain = (read(path.read_text(encoding="utf-8")) for path in pair)
        for node, other in zip(hostile.nodes(), plain.nodes(), strict=True):
            assert node.tag == other.tag and node.attributes.keys() == other.attributes.keys()
    for path in (folder / "site").rglob("*.html"):
        tree = read(path.read_text(encoding="utf-8"))
        assert len(list(tree.all("script"))) == (path.name == "index.html")
        for node in tree.nodes():
            assert not {"src", "srcset", "action", "data"} & node.attributes.keys()
            assert not any(name.startswith("on") for name in node.attributes)
            href = node.attributes.get("href") or ""
            assert re.fullmatch(
                r"|#terms|feed\.xml|(\.\./)?(index\.html|(submissions|boards)/[0-9a-f]{12}\.html)", href
            )


def test_the_feed_and_the_badges_are_well_formed(packages: Any) -> None:
    folder, made = packages
    atom = "{http://www.w3.org/2005/Atom}"
    feed = ET.parse(folder / "site" / "feed.xml").getroot()
    assert [feed.findtext(f"{atom}{name}") for name in ("updated", "title")] == ["2026-11-09T00:00:00Z", visible(EVIL)]
    ids = [entry.findtext(f"{atom}id") for entry in feed.findall(f"{atom}entry")]
    assert sorted(ids) == sorted(f"urn:ctxbench:submission:{package.manifest.id}" for package in made.values())
    summaries = {entry.findtext(f"{atom}id", "")[-12:]: entry.findtext(f"{atom}summary", "") for entry in feed}
    assert ": Python lines es % " in summaries[made["better"].manifest.id]
    for package in made.values():
        badge = ET.parse(folder / "site" / "badges" / f"{package.manifest.id}.svg").getroot()
        assert {node.tag.partition("}")[2] for node in badge.iter()} == {"svg", "title", "rect", "text"}
        assert float(badge.get("width") or 0) < 850
        assert "Python lines: es % " in (badge.get("aria-label") or "")


@pytest.fixture
def page(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    (width, height), scheme = getattr(request, "param", (DESKTOP, "light"))
    size: Any = {"width": width, "height": height}
    with browser.new_context(viewport=size, color_scheme=scheme) as context:
        yield context.new_page()


@pytest.mark.slow
@pytest.mark.parametrize("page", [(DESKTOP, "light"), (PHONE, "dark")], indirect=True)
def test_a_browser_shows_every_page_without_extra_requests(packages: Any, page: Page, browser: Browser) -> None:
    folder, _ = packages
    asked: list[str] = []
    errors: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: errors.append(message.text))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("dialog", lambda dialog: errors.append(dialog.message))
    paths = sorted((folder / "site").rglob("*.html"))
    for path in paths:
        page.goto(path.as_uri())
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
        assert page.evaluate("getComputedStyle(document.querySelector('h1')).fontFamily").startswith("system-ui")
        assert path.stat().st_size < MOST_BYTES
    assert (errors, asked) == ([], [path.as_uri() for path in paths])
    assert page.viewport_size
    scheme: Any = "dark" if page.viewport_size["width"] == PHONE[0] else "light"
    with browser.new_context(viewport=page.viewport_size, color_scheme=scheme, bypass_csp=True) as context:
        tried = context.new_page()
        for path in paths:
            tried.goto(path.as_uri())
            tried.evaluate("document.querySelectorAll('details').forEach((box) => { box.open = true; })")
            assert findings(tried) == [], path


@pytest.mark.slow
def test_search_works_from_disk_and_without_scripts_all_packages_show(
    packages: Any, page: Page, browser: Browser
) -> None:
    folder, made = packages
    address = (folder / "site" / "index.html").as_uri()
    page.goto(address)
    entries = page.locator(".entries > li:visible")
    assert entries.count() == len(made)
    page.locator("input[type=search]").fill("windows MENDED")
    assert entries.count() == 1 and "1 of 10" in page.get_by_role("status").inner_text()
    page.locator("input[type=search]").fill("<script>alert")
    assert entries.count() == 2
    page.locator("input[type=search]").fill("")
    page.locator("select[name=model]").select_option(label="incontext")
    assert entries.count() == 1 and page.locator(".board-part:visible").count() == 1
    with browser.new_context(java_script_enabled=False) as context:
        plain = context.new_page()
        plain.goto(address)
        assert plain.locator(".entries > li:visible").count() == len(made)
        assert not plain.locator("#filters").is_visible()


def test_rebuilding_a_site_repeats_its_bytes_and_removes_old_pages(packages: Any, tmp_path: Path) -> None:
    folder, _ = packages
    out = tmp_path / "site"
    build(folder / "submissions", out)
    (out / "submissions" / "gone.html").write_text("old")
    first = {path: path.read_bytes() for path in out.rglob("*.*") if path.name != "gone.html"}
    build(folder / "submissions", out)
    assert {path: path.read_bytes() for path in out.rglob("*.*")} == first


@pytest.mark.parametrize(
    ("words", "changed"),
    [
        ("is 2, outside its range", make_package("b", scores={"es": 2.0})),
        ("evil", make_package("b", scores={"evil": 1.0})),
        ("sampling.seeds", make_package("b", sampling={"seeds": (1 << 80,)})),
        ("not a date", make_package("b", date="2026-99-99")),
        ("not a date", make_package("b", withdrawn=form.Withdrawal(reason="r", date="2026-02-31"))),
        ("in the future", make_package("b", withdrawn=form.Withdrawal(reason="r", date="9999-12-31"))),
        ("in the future", make_package("b", date="9999-12-31")),
        ("exclusions differ", make_package("b", repos="ijklmnop")),
        ("copyable_bits", make_package("b", scores={"copyable_bits": 1e300}, profile="context")),
    ],
)
def test_an_invalid_package_is_refused_and_left_out(words: str, changed: form.Submission, tmp_path: Path) -> None:
    folder = write(tmp_path / "in", make_package(), changed)
    (folder / "not one").mkdir()
    result = build(folder, tmp_path / "out")
    assert result.code == 1 and words in result.err and "packages refused: 1" in result.err
    assert (tmp_path / "out" / "index.html").read_text(encoding="utf-8").count("<li data-set") == 1


def test_wrong_arguments_are_reported_in_one_line(tmp_path: Path) -> None:
    folder = write(tmp_path / "in", make_package())
    other = tmp_path / "kept"
    other.mkdir()
    (other / "thesis.txt").write_text("mine")
    assert_fault(build(folder, other), "contains other files", "--out")
    assert_fault(build(other, tmp_path / "out"), "the folder contains no package", "results pack")
    assert_fault(build(folder, tmp_path / "out", "--url", "javascript:alert(1)"), "--url: ", "is not the URL of a site")
    assert [path.name for path in other.iterdir()] == ["thesis.txt"]


def test_a_package_is_exported_for_other_tools(tmp_path: Path) -> None:
    package = make_package(text="answer", sampling={"seeds": (3, 4)})
    folder = write(tmp_path / "in", package) / package.manifest.id

    def exported(name: str) -> Any:
        out = tmp_path / name
        result = run_cli(
            "results", "export", str(folder), "--format", name, "--out", str(out), "--home", str(tmp_path / "none")
        )
        assert result.code == 0 and "first of 2 repetitions" in result.err, result.err
        return json.loads(out.read_text(encoding="utf-8")) if name != "ctxbench" else out.read_text().splitlines()

    record = exported("every-eval-ever")
    jsonschema.validate(record, RECORD)
    assert record["evaluation_timestamp"].startswith("2026-11-01")
    es = next(part for part in record["evaluation_results"] if part["metric_config"]["metric_name"] == "es")
    assert es["score_details"]["score"] == pytest.approx(100 * sum(scored(package, 0)) / 32)
    log = exported("inspect")
    assert log["eval"]["created"].startswith("2026-11-01") and len(log["samples"]) == 32
    assert log["samples"][0]["output"]["choices"][0]["message"]["content"].startswith("answer")
    assert len(exported("ctxbench")) == 32


def test_the_example_board_lists_three_packages(tmp_path: Path) -> None:
    folder = ROOT / "examples" / "board" / "submissions"
    assert sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) < 400_000
    assert build(folder, tmp_path / "site").code == 0
    assert (tmp_path / "site" / "index.html").read_text(encoding="utf-8").count("<li data-set") == 3
    assert all(path.stat().st_size < MOST_BYTES for path in (tmp_path / "site").rglob("*.*"))
