"""The docs' example package with a language is installed. Line samples in it are built, run and scored."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ctxbench.bench import samples as sets
from ctxbench.bench.home import Home
from tests.test_plugin import files_of_the_page

PACKAGE = ("ctxbench_typescript.py", "pyproject.toml")
CART = """\
export class Cart {
    private items: number[] = [];

    add(price: number): void {
        this.items.push(price);
    }

    total(): number {
        return this.items.reduce((sum, price) => sum + price, 0);
    }
}

export function emptyCart(): Cart {
    const fresh = new Array<number>();
    return Object.assign(Object.create(null), { items: fresh });
}
"""
CHECKOUT = """\
import { Cart, emptyCart as freshCart } from "./cart";
import { readFileSync } from "fs";

// `Cart` in a comment is no use of it.
export function checkout(prices: number[], taxes: Map<string, number>): number {
    const cart: Cart = freshCart();
    for (const price of prices) {
        cart.add(price * (1 + (taxes.get("vat") ?? 0)));
    }
    const text = `${readFileSync("x")} costs`;
    return cart.total() + new Cart().total() + text.length;
}
"""
SHADOWED = """\
import { Cart } from "./cart";
export function count(Cart: string[]): number {
    return Cart.length + Cart.map((name) => name.length).length;
}
"""


def test_the_repository_page_shows_a_short_package() -> None:
    files = files_of_the_page("repository.md")
    assert set(files) == set(PACKAGE)
    assert len([line for line in files[PACKAGE[0]].splitlines() if line.strip()]) <= 50


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the page's package in a separate folder."""
    folder = tmp_path_factory.mktemp("outside")
    for name, content in files_of_the_page("repository.md").items():
        (folder / name).write_text(content, encoding="utf-8")
    command = [sys.executable, "-m", "pip", "install", "--no-deps", "--target", str(folder / "site"), str(folder)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder / "site"


def ctxbench(site: Path, *arguments: str, code: int = 0) -> str:
    """Run `ctxbench` with the package on its path; return what it prints."""
    command = [sys.executable, "-c", "from ctxbench.harness.cli.main import main; main()", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(site)}
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


@pytest.mark.network
@pytest.mark.slow
def test_typescript_lines_are_built_masked_run_and_scored(site: Path, tmp_path: Path) -> None:
    shop, home = tmp_path / "shop", Home(tmp_path / "home")
    (shop / "src").mkdir(parents=True)
    for name, text in {"cart": CART, "checkout": CHECKOUT, "shadowed": SHADOWED}.items():
        (shop / "src" / f"{name}.ts").write_text(text, encoding="utf-8")
    manifest = tmp_path / "shop.toml"
    manifest.write_text(
        'name = "shop"\nlanguage = "typescript"\nlicense = "MIT"\nversion = "1"\n'
        '[[source]]\nkind = "local"\npath = "shop"\n'
    )
    place = ("--home", str(home.root))
    assert "--language [java|python|typescript]" in ctxbench(site, "samples", "build", "--help")
    ctxbench(site, "samples", "build", "ts", "--repo", str(manifest), *place)
    records = [json.loads(line) for line in (home.samples / "ts" / sets.SAMPLES).read_text().splitlines()]
    lines = {record["cursor"]["line"]: record for record in records}
    assert {record["language"] for record in records} == {"typescript"}
    # Line 5 is the first to use both names, so the import is hidden for it. Line 10 uses one of them again.
    assert {(record["path"], line) for line, record in lines.items()} == {
        ("src/checkout.ts", 5),
        ("src/checkout.ts", 10),
    }
    assert [lines[5]["masked"], lines[10]["masked"]] == [[[0, 1]], []]
    assert lines[5]["prefix"].startswith("\nimport { readFileSync }") and "./cart" in lines[10]["prefix"]
    assert lines[5]["uses"][0]["module"] == "src.cart"

    script = tmp_path / "script.jsonl"
    script.write_text(json.dumps({"text": "cart.total()"}) + "\n")
    chosen = ("--strategy", "lc.infile", "--strategy", "lc.repocoder", "--strategy", "lc.infercom(encoder=bm25)")
    printed = ctxbench(site, "run", "--samples", "ts", *chosen, "--generator", f"scripted(answers={script})", *place)
    assert printed.count("scored 2  model-failed 0  missing 0") == 3
    rows = json.loads(ctxbench(site, "leaderboard", "--samples", "ts", "--format", "json", *place))
    assert {row["language"] for row in rows} == {"typescript"} and len(rows) == 3

    refused = ctxbench(site, "run", "--samples", "ts", *chosen[:2], "--generator", "incontext", *place, code=1)
    assert "incontext does not support TypeScript" in refused
    manifest.write_text(manifest.read_text() + '[tests]\npaths = ["src"]\n')
    refused = ctxbench(site, "samples", "build", "f", "--kind", "function", "--repo", str(manifest), *place, code=1)
    assert "cannot build function samples of TypeScript" in refused
