"""The registry of metric profiles; all of them, ours too, come in by the entry-point group ``ctxbench.metrics``.

A plugin's module calls `profile` when it is imported; it is imported when its name is first asked for.
"""

from __future__ import annotations

from ctxbench.bench.errors import InputFault
from ctxbench.bench.registry import Registry
from ctxbench.harness.metrics.context import PASS, find
from ctxbench.harness.metrics.profile import Profile

_REGISTRY: Registry[Profile] = Registry("metric profile", group="ctxbench.metrics", command="ctxbench score --help")
DEFAULT = "ctxbench"


def profile(definition: Profile) -> Profile:
    """Register a profile under its own name.

    Raises:
        InputFault: if another profile has the name, or one of its metrics the name of one that every board has.
    """
    for metric in definition.metrics:
        if metric.name == PASS or find(metric.name) is not None:
            raise InputFault(
                f"the metric {metric.name!r} of profile {definition.name!r} has the name of one that every board has",
                cure="give it another name",
            )
    return _REGISTRY.add(definition.name, definition, origin=f"{definition.score.__module__}")


def load(name: str) -> Profile:
    """Return the profile called `name`.

    Raises:
        UnknownName: if there is none; the message names the nearest.
        InputFault: if its plugin cannot be imported.
    """
    return _REGISTRY.get(name)


PROFILES: tuple[str, ...] = (DEFAULT, *(name for name in _REGISTRY.names() if name != DEFAULT))
"""The default first; the published ones are exact to the official code, its bugs included."""
