"""Metric throughput: the exact `crosscodeeval` profile, and its ratio to a port of the cut's definition.

The inputs are made from the standard library's own sources, seeded. Times are CPU seconds of one process.
"""

from __future__ import annotations

import random
import sysconfig
import time
from pathlib import Path

import tree_sitter
import tree_sitter_python

from ctxbench.harness.metrics import Case, crosscodeeval
from ctxbench.harness.metrics.crosscodeeval import first_statement

SAMPLES, COMPARED, HEAD = 2000, 60, 200


def cases(count: int, seed: str) -> list[Case]:
    """Cut lines of the standard library: the file's head (at most 200 lines) and what a model may write."""
    rng = random.Random(seed)
    files = sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))
    texts = [path.read_text("utf-8", errors="replace").split("\n") for path in files]
    texts = [lines for lines in texts if len(lines) > 40]
    sampled: list[Case] = []
    while len(sampled) < count:
        lines = rng.choice(texts)
        at = rng.randrange(10, min(HEAD, len(lines) - 8))
        line = lines[at]
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        column = rng.randrange(len(line) - len(line.lstrip()), len(line))
        target = line[column:]
        following = "\n".join(lines[at + 1 : at + 1 + rng.randrange(6)])
        prediction = rng.choice((f"{target}\n{following}", target, f"{target[: len(target) // 2]}x)\n{following}"))
        prompt = "\n".join([*lines[:at], line[:column]])
        sampled.append(Case(language="python", prompt=prompt, prediction=prediction, ground_truth=target))
    return sampled


def grown_cut(prompt: str, prediction: str) -> str:
    """Cut by the definition: grow the prefix by a character, parse all of it anew, look at every node."""
    parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_python.language()))

    def broken(node: tree_sitter.Node) -> bool:
        return node.type == "ERROR" or any(broken(child) for child in node.children)

    for size in range(1, len(prediction)):
        if broken(parser.parse((prompt + prediction[:size]).encode("utf-8")).root_node):
            continue
        if prediction[size] == "\n":
            return prediction[:size].rstrip()
    return prediction


def main() -> None:
    many = cases(SAMPLES, "throughput")
    started = time.process_time()
    for case in many:
        crosscodeeval.score(case.language, case.prompt, case.prediction, case.ground_truth)
    rate = len(many) / (time.process_time() - started)
    characters = sum(len(case.prompt) for case in many) / len(many)
    print(
        f"crosscodeeval, exact: {rate:.0f} samples a CPU second (prompts of {characters:.0f} characters; wanted: 400)"
    )

    few = cases(COMPARED, "ratio")
    started = time.process_time()
    ours = [first_statement("python", case.prompt, case.prediction) for case in few]
    fast = time.process_time() - started
    started = time.process_time()
    theirs = [grown_cut(case.prompt, case.prediction) for case in few]
    slow = time.process_time() - started
    if ours != theirs:
        raise SystemExit("the cut differs from its definition")
    print(f"statement cut against its definition: {slow / fast:.0f} times as fast, equal on {len(few)}")
    started = time.process_time()
    for case in few:
        crosscodeeval.score(case.language, case.prompt, case.prediction, case.ground_truth)
    whole = time.process_time() - started
    # The port's whole score: its cut, and the rest as we do it.
    ratio = (slow + whole - fast) / whole
    print(f"whole crosscodeeval score against a port of the definition: {ratio:.0f} times as fast (wanted: 20)")


if __name__ == "__main__":
    main()
