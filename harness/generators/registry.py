"""Generators by name: the decorator, the entry points and the check of their parameters.

A generator is registered by a factory function whose keyword-only parameters a spec may set:
``openai(model=…, url=…)``. A factory is cheap: it checks its parameters and knows its version; weights, processes and
connections wait for the first request, so that a finished run starts nothing. Parameters that only decide how fast
answers come (``concurrency``, ``workers``) are declared as such and are no part of the canonical spelling: a run that
goes on with fewer workers is the same run. Neither is ``cutoff``, which every spec may give: it says something of the
model and changes none of its answers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ctxbench.bench.errors import InputFault
from ctxbench.bench.parameters import Parameter
from ctxbench.bench.registry import Factories
from ctxbench.bench.spec import Shorthand, spelled
from ctxbench.harness.generators.base import Generator

Factory = Callable[..., Generator]
F = TypeVar("F", bound=Factory)
COMMAND = "ctxbench generator list"
CUTOFF = Parameter(name="cutoff", kind=str, is_day=True, optional=True)
_REGISTRY: Factories[Generator] = Factories("generator", group="ctxbench.generators", command=COMMAND, facts=(CUTOFF,))


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratorCard:
    """The description of a registered generator, without making one."""

    name: str
    summary: str
    """The first line of its docstring."""
    parameters: tuple[tuple[str, str], ...]
    """Name and default as a spec spells it; an empty default means that the parameter must be given."""


def generator(
    name: str,
    *,
    machine: Sequence[str] = (),
    shorthand: Shorthand | None = None,
) -> Callable[[F], F]:
    """Register a factory function as the generator `name`.

    Args:
        name: how specs call it.
        machine: the parameters that do not affect the content of answers.
        shorthand: a short spelling, such as ``name:MODEL``.

    Raises:
        InputFault: if the name is taken, the factory has parameters that are not keyword-only, or it lacks one of
            `machine` or of the short spelling's.
    """
    return lambda factory: _REGISTRY.register(name, factory, machine=machine, shorthand=shorthand)


names = _REGISTRY.names
"""The names of all installed generators, sorted; imports none."""
read = _REGISTRY.read
"""Read a generator's spec, short spellings too."""
canonical = _REGISTRY.canonical
"""The spelling under which a generator's results are kept.

Parameters that do not affect answers are left out, so `resolve` takes the user's own spelling."""


def cutoff(spec: str) -> str | None:
    """Return the last day of what a generator was trained on, as its spec says: ``YYYY-MM-DD``; None if it says none.

    Raises:
        InputFault: as `resolve`, for the spec's own faults.
    """
    day = _REGISTRY.facts(spec).get(CUTOFF.name)
    return None if day is None else str(day)


def resolve(spec: str) -> Generator:
    """Make the generator that a spec spells.

    Raises:
        InputFault: if the spec cannot be read, the name is unknown, a parameter is unknown, missing or of the wrong
            type, or the factory returns something else.
    """
    model: object = _REGISTRY.make(spec)
    if not isinstance(model, Generator):
        what = f"the factory returned {type(model).__name__}, which is no Generator"
        cure = "write class …(Generator), imported from ctxbench.harness.generators"
        raise InputFault(what, where=f"generator {read(spec).name}", cure=cure)
    return model


def card(name: str) -> GeneratorCard:
    """Describe a generator.

    Raises:
        InputFault: if there is none of that name, or its plugin cannot be imported.
    """
    parameters = _REGISTRY.parameters(name)
    return GeneratorCard(
        name=name,
        summary=_REGISTRY.summary(name),
        parameters=tuple((p.name, "" if p.required else spelled(p.default)) for p in parameters),
    )
