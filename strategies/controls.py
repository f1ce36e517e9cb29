"""The names of controls: rows made with the answer, to check the measure itself. Nothing else may be called so.

Controls are not strategies: they need the reference, so they are no plugins and run in no cell. The harness makes
them (`harness.run.controls`); only their names are here, for the code that lists or refuses them.
"""

from __future__ import annotations

from collections.abc import Mapping

NAMES: Mapping[str, str] = {
    "gold": "The completion is the reference: what a perfect model would score.",
    "blank": "The completion is empty: what a model that says nothing scores.",
    "oracle-context": "The prompt holds code and signatures retrieved with the reference; the model completes.",
    "oracle-stored": "The prompt holds what the benchmark's authors retrieved with the reference; the model completes.",
}
"""Name -> one line on what it is."""
_PREFIXES = ("control.", "oracle.")


def is_control(spec: str) -> bool:
    """Return whether a row of this strategy is a control: shown, never ranked.

    Besides the reserved names, these are strategies whose author says so by a name that begins with ``control.``
    or ``oracle.``, in a file too.

    Args:
        spec: a canonical spec.
    """
    name = spec.partition("(")[0]
    return name in NAMES or name.rpartition("@")[2].startswith(_PREFIXES)
