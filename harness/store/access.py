"""Read the steps of a strategy that lets the model look around."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import select

from ctxbench.harness.store import schema as t
from ctxbench.harness.store.store import Store
from ctxbench.strategies.agent import ROLE
from ctxbench.strategies.chat import Message


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One call of a tool, or an answer without any."""

    number: int
    """Of the model's answer, from 1: one may call several tools."""
    text: str
    """What the model wrote beside its calls."""
    tool: str
    """Empty for an answer that calls none."""
    arguments: str
    """JSON, as the model wrote it."""


def steps_of(store: Store, run: str, sample: str) -> tuple[Step, ...]:
    """Return the steps of a sample's agent, in order; none for other strategies."""
    c, g = t.CALL_FACT.c, t.GENERATION_FACT.c
    query = (
        select(g.text)
        .select_from(t.CALL_FACT.join(t.GENERATION_FACT, c.generation == g.number))
        .where(c.key == t.key_of(run, sample), c.role == ROLE)
        .order_by(c.ordinal)
    )
    with store.reading() as connection:
        messages = [Message.read(answer) for answer in connection.scalars(query)]
    steps: list[Step] = []
    for number, message in enumerate(messages, 1):
        called = [(call.name, call.arguments) for call in message.calls] or [("", "")]
        steps += [Step(number=number, text=message.text, tool=tool, arguments=written) for tool, written in called]
    return tuple(steps)
