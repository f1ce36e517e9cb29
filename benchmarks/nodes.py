"""Two Ray nodes of one core each against one: lines with the built-in model, and functions in bubblewrap.

Needs a quiet machine of at least 3 free cores (one plans and merges), and `make quickstart` before. Wall time of
a whole command: `python -m benchmarks.nodes HOME [SAMPLES [FUNCTIONS]]`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def timed(address: str, options: list[str]) -> float:
    """Return the seconds that a run on a cluster takes, to a database of its own."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", "from ctxbench.harness.cli.main import main; main()", "run", *options]
        command += ["--engine", "ray", "--address", address, "--db", f"sqlite:///{folder}/results.db"]
        began = time.monotonic()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return time.monotonic() - began


def measured(nodes: int, options: list[str]) -> float:
    """Return the seconds of a second run on a new cluster: its nodes have Ray's processes ready."""
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    try:
        for _ in range(nodes):
            cluster.add_node(num_cpus=1, object_store_memory=200 << 20)
        timed(cluster.address, [*options, "--limit", "8"])
        return timed(cluster.address, options)
    finally:
        cluster.shutdown()


def main() -> None:
    """Print both ratios."""
    os.environ |= {"RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0", "CTXBENCH_HOME": sys.argv[1]}
    lines = sys.argv[2] if len(sys.argv) > 2 else "ctxbench-1-lite"
    functions = sys.argv[3] if len(sys.argv) > 3 else "functions"
    strategy = ["--strategy", "lc.repocoder(iterations=1)", "--generator", "incontext"]
    works = [("lines", ["--samples", lines, *strategy], 1.8)]
    if (Path(sys.argv[1]) / "samples" / functions).is_dir():
        direct = ["--strategy", "lc.infile", "--generator", "incontext", "--sandbox", "bubblewrap"]
        works.append(("tests", ["--samples", functions, *direct], 1.7))
    for name, options, aim in works:
        alone, both = measured(1, options), measured(2, options)
        print(
            f"{name}: {alone:.1f} s on one node, {both:.1f} s on two: {alone / both:.2f} times (aim {aim})", flush=True
        )


if __name__ == "__main__":
    main()
