"""Generators: requests in, responses out, what each can do; and generators by name.

A generator is registered by a factory function whose keyword-only parameters a spec may set:
``openai(model=…, url=…)``. A factory is cheap: it checks its parameters and knows its version; weights, processes and
connections wait for the first request, so that a finished run starts nothing. Parameters that only decide how fast
answers come (``concurrency``, ``workers``) are declared as such and are no part of the canonical spelling: a run that
goes on with fewer workers is the same run. Neither is ``cutoff``, which every spec may give: it says something of the
model and changes none of its answers.

What is known of models besides (prices, cutoffs) are TOML tables that users may override, read with all faults at once.
A table is about the models that its ``match`` fits: a shell pattern (``*``, ``?``), or a list of them, of which one
must fit the model's name or the generator's whole spec.
"""

from __future__ import annotations

import tomllib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ctxbench.bench.errors import InputFault, MachineFault, UnknownName
from ctxbench.bench.files import read_text, sha256
from ctxbench.bench.languages.base import Language
from ctxbench.bench.parameters import Parameter
from ctxbench.bench.registry import Factories
from ctxbench.bench.spec import Shorthand
from ctxbench.bench.types import Kind
from ctxbench.strategies.api import Prompt
from ctxbench.strategies.chat import Chat

if TYPE_CHECKING:
    from ctxbench.harness.generators.fim import Template


MOST_TOKENS = 100_000_000
"""Limit of tokens of a prompt or an answer: no model takes a tenth of it, and stored sums stay whole numbers."""
_LONGEST = 1e8
"""Limit of an answer's seconds: three years."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """Parameters of decoding; greedy by default, as in both papers."""

    max_tokens: int = 128
    temperature: float = 0.0
    top_p: float = 1.0
    seed: int = 0
    stop: tuple[str, ...] = ()
    fim: bool = False
    """Whether the model sees the text after the cursor and fills in the middle; see `harness.generators.fim`."""

    def __post_init__(self) -> None:
        """Bring numbers to their types: ids of runs and keys of answers are their spelling, and 0 equals 0.0."""
        for name, kind in (("max_tokens", int), ("temperature", float), ("top_p", float), ("seed", int), ("fim", bool)):
            object.__setattr__(self, name, kind(getattr(self, name)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request for one answer."""

    prompt: Prompt
    language: Language
    kind: Kind = Kind.LINE
    sampling: Sampling = field(default_factory=Sampling)
    index: int = 0
    """Which of n samples this is."""
    system: str = ""
    """What a model that follows instructions is told before the prompt, as its system message; empty for nothing."""
    chat: Chat | None = None
    """What `prompt` is the text of, for a generator that calls `tools` itself; its answer is that text's protocol."""
    one_line: bool = False
    """Whether only the answer's first line that is not blank counts: a generator may end it there."""
    reference: str | None = None
    """A text to price beside the answer, from the same reading of the prompt; decides nothing of the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """One answer."""

    text: str
    finish: str
    """``stop`` (ended by itself or at a stop text) or ``length`` (cut at max_tokens)."""
    tokens_in: int
    tokens_out: int
    seconds: float
    """Wall time of this answer; a batch's time is shared out evenly."""
    cached: int = 0
    """How many of `tokens_in` the service had cached from earlier requests, by its own account."""
    counted: bool = True
    """Whether the model's own tokens were counted; else those of ctxbench stand in."""
    bits: float | None = None
    """The price of the request's reference, as `Generator.bits` gives it; None: `bits` is asked for it afterwards."""


def sample_seed(base: int, index: int) -> int:
    """Return the seed of the sample with that index: 31 bits, the same everywhere, no two alike for long."""
    return int(sha256(f"{base} {index}")[:8], 16) & 0x7FFFFFFF


def accounted(response: Response) -> bool:
    """Return whether a response's account of itself is possible: its end, its tokens, its seconds."""
    return (
        response.finish in ("stop", "length")
        and all(type(tokens) is int for tokens in (response.tokens_in, response.tokens_out, response.cached))
        and 0 <= response.cached <= response.tokens_in <= MOST_TOKENS
        and 0 <= response.tokens_out <= MOST_TOKENS
        and type(response.seconds) in (int, float)
        and 0 <= response.seconds <= _LONGEST
    )


class TooLong(MachineFault):
    """Raised for a request that is too long for the model; says nothing against the generator's health."""


class CutShort(MachineFault):
    """Raised for an answer to a prompt that the service silently cut.

    Counts against its health, as `TooLong` does not: a run in which nothing else comes back is given up.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a generator can do; `harness.generators.conformance` tries each that is declared."""

    batch_size: int = 1
    """The most requests that are worth sending at once: in one call, or in calls side by side."""
    concurrent: bool = False
    """Whether as many threads as `batch_size` may call `generate`, each with one request: none waits for a slower one.
    Else one thread at a time does."""
    instructs: bool = False
    """Whether it follows instructions; one that only continues text can neither plan nor summarise."""
    prices: bool = False
    """Whether it gives log-probabilities, by `bits`."""
    fills: bool = False
    """Whether its model may have been trained to fill in the middle, see `infilling`."""
    counts: bool = False
    """Whether it counts tokens as its model does, by `count`, so that prompts are cut to `window`."""
    thinking: int = 0
    """Tokens that it may write beside those of the answer."""
    tools: bool = False
    """Whether it takes chats with tools as such, in `Request.chat`; others read and write them as text."""
    weights: bool = False
    """Whether it loads a model's weights into the process that asks it."""
    service: bool = False
    """Whether others run the model: it names who answered in `served`, and is tried with a long prompt."""
    writes: bool = True
    """Whether it answers. The run of a generator that does not has prompts and their diagnostics, and no completion."""


class Generator(ABC):
    """A model behind a spec. A call that fails is a `MachineFault`; it never returns a made-up text."""

    version: str = ""
    """Everything besides the spec that decides the output: weights' digest, revision. Part of the cache key."""
    capabilities: Capabilities = Capabilities()
    window: int = 0
    """Tokens of prompt and answer, where it `counts`; 0 if unknown."""

    @abstractmethod
    def generate(self, requests: Sequence[Request]) -> Sequence[Response | MachineFault]:
        """Answer every request, in order; one that failed alone has its fault in its place.

        Raises:
            MachineFault: if all of them failed.
            InputFault: if no request can be answered until the user mends something; ends the run.
        """

    def bits(self, prompts: Sequence[Prompt], texts: Sequence[str], language: Language) -> Sequence[float]:
        """Return, for each pair, minus log2 of the probability of the text (line end included) after the prompt.

        One thread may be here while another is in `generate`, so that one works in the other's pauses; a model that
        cannot do both at once takes a lock of its own.
        """
        raise self._undefined("prices", "bits")

    def knows(self, language: Language) -> bool:
        """Say whether it has learnt a language; references in others have no costs."""
        return True

    def infilling(self) -> Template:
        """Return the template for text after the cursor.

        Raises:
            InputFault: if the model was not trained for that, judging by its vocabulary or name.
        """
        raise self._undefined("fills", "infilling")

    def count(self, request: Request) -> int:
        """Return how many tokens a request's prompt has for the model, with everything put around it."""
        raise self._undefined("counts", "count")

    @property
    def remark(self) -> str:
        """A line about its work so far, shown at the end of a run; empty if there is nothing to say."""
        return ""

    @property
    def served(self) -> tuple[str, ...]:
        """The models that answered so far, by their service's own account; empty if it names no more than the spec."""
        return ()

    def wake(self, language: Language) -> None:  # noqa: B027 - most need nothing
        """Start everything that a language's requests need, and return when it is ready.

        Raises:
            MachineFault: if it was lost.
        """

    def close(self) -> None:  # noqa: B027 - as above
        """Release processes, connections and memory; threads that wait in a call get its fault at once."""

    def _undefined(self, capability: str, method: str) -> MachineFault:
        where, cure = f"generator {type(self).__name__}", f"define {method}, or leave {capability} out of Capabilities"
        return MachineFault(f"it declares {capability} and has no {method}", where=where, cure=cure)


Factory = Callable[..., Generator]
F = TypeVar("F", bound=Factory)
COMMAND = "ctxbench generator list"
CUTOFF = Parameter(name="cutoff", kind=str, is_day=True, optional=True)


class _Generators(Factories[Generator]):
    """All generators; whoever gives a model's name in place of one's is told how to ask the model."""

    def get(self, name: str) -> Factory:
        """Return the factory called `name`; raises as `Registry.get`."""
        try:
            return super().get(name)
        except UnknownName:
            # Only now: it reads the table of models.
            from ctxbench.harness.generators.models import table  # noqa: PLC0415

            spellings = (f"hf:{name}", f"serve:{name}") if table.known(name) else (f"openai:{name}",)
            raise UnknownName(self.kind, name, self.names(), command=self.command, instead=spellings) from None


_REGISTRY = _Generators("generator", group="ctxbench.generators", command=COMMAND, facts=(CUTOFF,))


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
summary = _REGISTRY.summary
"""The first line of a generator's docstring; it is imported for it, not made."""
parameters = _REGISTRY.parameters
"""The parameters that a generator's spec may set."""
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


def settings_of(generator: str) -> dict[str, str]:
    """Return the parameters of a generator, given as its canonical spec; empty if it is none.

    A hosted model has its service's address under ``url``, also where the spec leaves it out.
    """
    # Not at the top: `openai` imports this module.
    from ctxbench.harness.generators.openai.settings import OFFICIAL  # noqa: PLC0415

    try:
        parsed = read(generator)
    except InputFault:
        # Labels of imported runs need not be specs.
        return {}
    default = {"url": OFFICIAL} if parsed.name == "openai" else {}
    return default | {name: str(value) for name, value in parsed.arguments.items()}


def fits(match: Sequence[str], *names: str) -> bool:
    """Return whether a pattern fits one of the names; an empty name is none."""
    return any(fnmatchcase(name, pattern) for pattern in match for name in names if name)


def patterns(table: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the patterns of a table."""
    value = table.get("match")
    return tuple(value) if isinstance(value, list) else (value,)


def read_tables(
    path: Path, name: str, faults: Callable[[Mapping[str, Any]], Iterator[str]], *, cure: str
) -> list[Mapping[str, Any]]:
    """Return the tables ``[[name]]`` of a file.

    Args:
        path: the file.
        name: what its tables are called.
        faults: yields what is wrong with a table besides its ``match``.
        cure: the end of the message.

    Raises:
        InputFault: if it cannot be read or is wrong; it names every fault.
    """
    text = read_text(path)
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # no TOML, a number of thousands of digits, lists in lists
        raise InputFault(f"is not TOML: {error}", where=str(path), cure=cure) from None
    tables = data.get(name, [])
    lines = [f"there is no key {key!r} at the top, only tables [[{name}]]" for key in sorted(data.keys() - {name})]
    if isinstance(tables, list) and all(isinstance(table, dict) for table in tables):
        lines += [
            f"{name} {number}: {fault}"
            for number, table in enumerate(tables, 1)
            for fault in (*_pattern_faults(table), *faults(table))
        ]
    else:
        lines.append(f"{name} is no list of tables")
    if lines:
        raise InputFault("; ".join(lines), where=str(path), cure=cure)
    return list(tables)


def _pattern_faults(table: Mapping[str, Any]) -> Iterator[str]:
    of_table = patterns(table)
    if not of_table or not all(isinstance(pattern, str) and pattern.strip() for pattern in of_table):
        yield "match must be a pattern or a list of them"


def unknown_keys(table: Mapping[str, Any], keys: Sequence[str]) -> Iterator[str]:
    """Yield a fault for each key that such a table does not have."""
    for key in sorted(table.keys() - set(keys)):
        yield f"there is no key {key!r}"


def is_day(value: object) -> bool:
    """Return whether a value of a table is a date without a time."""
    return isinstance(value, date) and not isinstance(value, datetime)
