"""The contract of cells: the protocol, the fault of a strategy, and a stand-in without isolation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from ctxbench.bench.errors import InputFault
from ctxbench.bench.repository import Repository
from ctxbench.bench.types import Kind, Query
from ctxbench.strategies import resolve
from ctxbench.strategies.api import Execute, Model, Prompt
from ctxbench.strategies.registration import Bound


class StrategyFault(InputFault):
    """Raised when a strategy failed on a sample: it raised, hung, died, or returned no prompt."""

    traceback: str = ""
    """The strategy's own traceback, if it raised; for the run's record, not for the one-line message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyCard:
    """A strategy's description for the runner, obtained without importing the strategy."""

    spec: str
    """The canonical spelling."""
    kinds: frozenset[Kind]
    drafts: bool
    """Whether it asks the model before its final prompt."""
    executes: bool
    """Whether it runs what the model wrote, in the sandbox."""
    version: str
    """A digest of the files that define it; empty if unknown."""
    summary: str
    """The first line of its docstring."""

    @classmethod
    def of(cls, bound: Bound[Any]) -> StrategyCard:
        """Return the card of a strategy with its parameters."""
        return cls(
            spec=bound.spec,
            kinds=bound.kinds,
            drafts=bound.drafts,
            executes=bound.executes,
            version=bound.version,
            summary=bound.strategy.summary,
        )


class Cells(Protocol):
    """Runs strategies. Safe to use from many threads at once."""

    def run(self, spec: str, query: Query, repo: Repository, generate: Model, execute: Execute | None = None) -> Prompt:
        """Return the strategy's prompt for one query.

        Args:
            spec: the strategy.
            query: the sample's query.
            repo: its view; stays on this side.
            generate: the model; called on this side, in the calling thread. Its exceptions are raised here.
            execute: the sandbox, for strategies that run the model's code; called as `generate` is.

        Raises:
            InputFault: if the spec is wrong.
            StrategyFault: if the strategy failed on this sample.
            MachineFault: if no cell could be had.
        """
        ...

    def card(self, spec: str) -> StrategyCard:
        """Return the card of a strategy.

        Raises:
            InputFault: if the spec is wrong, or its module cannot be imported.
        """
        ...

    def describe(self) -> Mapping[str, str]:
        """Return how strategies are kept apart, for the run's record; ``isolation`` is always there."""
        ...


class InlineCells:
    """Runs strategies in this process, for tests and conformance checks; hides nothing from them."""

    def run(self, spec: str, query: Query, repo: Repository, generate: Model, execute: Execute | None = None) -> Prompt:
        """Return the strategy's prompt."""
        return resolve(spec)(query, repo, generate, execute)

    def card(self, spec: str) -> StrategyCard:
        """Return the card of a strategy."""
        return StrategyCard.of(resolve(spec))

    def describe(self) -> Mapping[str, str]:
        """Say that there is no isolation."""
        return {"isolation": "none"}
