"""Every attack on the box, by group."""

from tests.sandbox.attacks.case import Case
from tests.sandbox.attacks.cases import (
    channel,
    files,
    kernel,
    leaks,
    network,
    notes,
    pools,
    processes,
    resources,
    results,
)

GROUPS: dict[str, tuple[Case, ...]] = {
    "Using up the machine": resources.CASES,
    "Taking what all boxes share": pools.CASES,
    "Processes and signals": processes.CASES,
    "The network": network.CASES,
    "The kernel": kernel.CASES,
    "Reading what is not the job's": leaks.CASES,
    "Files that hurt whoever removes them": files.CASES,
    "Notes for the next job": notes.CASES,
    "The channel to the pool": channel.CASES,
    "Results": results.CASES,
}
