"""The metric profiles by name; each is imported when it is first asked for."""

from __future__ import annotations

import functools
import importlib

from bench.errors import UnknownName
from harness.metrics.profile import Profile

_MODULES = {
    "ctxbench": "harness.metrics.ctxbench",
    "crosscodeeval": "harness.metrics.crosscodeeval",
    "repocoder": "harness.metrics.repocoder",
    "infercom": "harness.metrics.infercom",
    "rlcoder_repoeval": "harness.metrics.rlcoder",
}

PROFILES: tuple[str, ...] = tuple(_MODULES)
"""The default first; the others are exact to the official code of published work, its bugs included."""


@functools.cache
def load(name: str) -> Profile:
    """Return the profile called `name`.

    Raises:
        UnknownName: if there is none; the message names the nearest.
    """
    if name not in _MODULES:
        raise UnknownName("metric profile", name, PROFILES, command="ctxbench score --help")
    profile: Profile = importlib.import_module(_MODULES[name]).PROFILE
    return profile
