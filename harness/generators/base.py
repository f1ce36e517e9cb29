"""The interface and registry of generators, and the reader for their tables of prices and training cutoffs.

The decorator `generator` registers a factory function. A spec sets its keyword-only parameters: ``openai(model=…,
url=…)``. The factory only checks parameters. The first request loads weights, starts processes or opens connections.
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
"""Maximum tokens of a prompt or an answer: ten times what any model reads, but small enough for exact sums."""
_LONGEST = 1e8


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """Decoding parameters; by default greedy with at most 128 tokens, as in the InferCom paper."""

    max_tokens: int = 128
    temperature: float = 0.0
    top_p: float = 1.0
    seed: int = 0
    stop: tuple[str, ...] = ()
    fim: bool = False
    """Whether the model sees the text after the cursor too; see `harness.generators.fim`."""

    def __post_init__(self) -> None:
        """Convert numbers to their declared types, because run ids and cache keys depend on the spelling (0 or 0.0)."""
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
    """Index of the completion among the n completions of a sample, from 0."""
    system: str = ""
    """System message for a model that follows instructions; empty for none."""
    chat: Chat | None = None
    """The chat whose text is in `prompt`, for generators with the capability `tools`; None for other requests."""
    one_line: bool = False
    """Whether only the first non-blank line of the answer counts. A generator may stop after it."""
    reference: str | None = None
    """Text whose bits the generator may measure in the same pass. The text does not affect the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """A generator's answer to one request."""

    text: str
    finish: str
    """``stop`` (the model ended, or a stop text appeared) or ``length`` (truncated at max_tokens)."""
    tokens_in: int
    tokens_out: int
    seconds: float
    """Wall-clock seconds of this answer. The time of a batch is divided evenly among its answers."""
    cached: int = 0
    """Number of tokens in `tokens_in` that the service reports as cached from earlier requests."""
    counted: bool = True
    """Whether `tokens_in` and `tokens_out` count the model's own tokens. Otherwise they count ctxbench's tokens."""
    bits: float | None = None
    """Bits of the request's reference, as from `Generator.bits`; None if not measured."""


def sample_seed(base: int, index: int) -> int:
    """Return the seed of completion `index` under the seed `base`: 31 bits of a hash, the same on every machine."""
    return int(sha256(f"{base} {index}")[:8], 16) & 0x7FFFFFFF


def accounted(response: Response) -> bool:
    """Return whether the finish, tokens and seconds of a response are plausible."""
    return (
        response.finish in ("stop", "length")
        and all(type(tokens) is int for tokens in (response.tokens_in, response.tokens_out, response.cached))
        and 0 <= response.cached <= response.tokens_in <= MOST_TOKENS
        and 0 <= response.tokens_out <= MOST_TOKENS
        and type(response.seconds) in (int, float)
        and 0 <= response.seconds <= _LONGEST
    )


class TooLong(MachineFault):
    """Raised for a request that is too long for the model. Other requests may still succeed."""


class CutShort(MachineFault):
    """Raised if the service truncated the prompt silently.

    Unlike `TooLong`, this fault counts as a failure of the generator, so a run that gets only such faults ends.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a generator can do. `harness.generators.conformance` tests most declared capabilities."""

    batch_size: int = 1
    """Maximum number of requests at once, in one call or in concurrent calls."""
    concurrent: bool = False
    """Whether up to `batch_size` threads may call `generate` at once, each with one request. Otherwise only one may."""
    instructs: bool = False
    """Whether the model follows instructions. Models that only continue text cannot plan or summarise."""
    log_likelihoods: bool = False
    """Whether `bits` can measure texts, by the model's log-likelihoods."""
    fills: bool = False
    """Whether the model may support fill in the middle; `infilling` checks whether it does."""
    counts: bool = False
    """Whether `count` counts the model's own tokens. Prompts are then truncated to `window`."""
    thinking: int = 0
    """Maximum tokens of thoughts that the model writes in addition to the answer."""
    tools: bool = False
    """Whether `Request.chat` may contain tools. Otherwise tool calls are written and parsed as text."""
    weights: bool = False
    """Whether the generator loads the model's weights into ctxbench's process."""
    service: bool = False
    """Whether a service runs the model. Then `served` names the model, and `generator check` tests long prompts."""
    writes: bool = True
    """Whether the generator writes answers. Otherwise a run stores only prompts and their diagnostics."""


class Generator(ABC):
    """A model that completes prompts. A failed request raises or returns a fault; text is never invented."""

    version: str = ""
    """Version of everything besides the spec that determines the output, e.g. a weights digest; part of cache keys."""
    capabilities: Capabilities = Capabilities()
    window: int = 0
    """Maximum tokens of prompt and answer together, if `capabilities.counts`; 0 if unknown."""

    @abstractmethod
    def generate(self, requests: Sequence[Request]) -> Sequence[Response | MachineFault]:
        """Answer every request, in order. A failed request gets a fault instead of a response.

        Raises:
            MachineFault: if all requests failed.
            InputFault: if the user must change something before any request can succeed. The run then ends.
        """

    def bits(self, prompts: Sequence[Prompt], texts: Sequence[str], language: Language) -> Sequence[float]:
        """Return minus log2 of the probability of each text, with a newline, after its prompt.

        One thread may call `bits` while another calls `generate`. A generator that cannot do both at once needs a lock.
        """
        raise self._undefined("log_likelihoods", "bits")

    def knows(self, language: Language) -> bool:
        """Return whether the model supports a language. Bits are not measured in other languages."""
        return True

    def infilling(self) -> Template:
        """Return the model's fill-in-the-middle template.

        Raises:
            InputFault: if the model's vocabulary or name shows that it was not trained to fill in.
        """
        raise self._undefined("fills", "infilling")

    def count(self, request: Request) -> int:
        """Return the number of the model's tokens in a request's prompt, including the template and special tokens."""
        raise self._undefined("counts", "count")

    @property
    def remark(self) -> str:
        """A line that a run prints at its end, such as token counts; may be empty."""
        return ""

    @property
    def served(self) -> tuple[str, ...]:
        """Names that the service reports for the models that answered; empty if they add nothing to the spec."""
        return ()

    def wake(self, language: Language) -> None:  # noqa: B027 - most need nothing
        """Start everything that requests in a language need, and wait until all is ready.

        Raises:
            MachineFault: if the generator does not start.
        """

    def close(self) -> None:  # noqa: B027 - as above
        """Release processes, connections and memory. Any thread may call this."""

    def _undefined(self, capability: str, method: str) -> MachineFault:
        where, cure = f"generator {type(self).__name__}", f"define {method}, or leave {capability} out of Capabilities"
        return MachineFault(f"the generator declares {capability}, but has no method {method}", where=where, cure=cure)


Factory = Callable[..., Generator]
F = TypeVar("F", bound=Factory)
COMMAND = "ctxbench generator list"
CUTOFF = Parameter(name="cutoff", kind=str, is_day=True, optional=True)


class _Generators(Factories[Generator]):
    def get(self, name: str) -> Factory:
        try:
            return super().get(name)
        except UnknownName:
            # Imported only here, because the import reads the table of models.
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
        machine: parameters that do not affect the content of answers.
        shorthand: a short spelling, such as ``name:MODEL``.

    Raises:
        InputFault: if the name is taken, a parameter of the factory is not keyword-only, or a parameter in `machine` or
            `shorthand` does not exist.
    """
    return lambda factory: _REGISTRY.register(name, factory, machine=machine, shorthand=shorthand)


names = _REGISTRY.names
"""Returns the sorted names of all installed generators, without importing the generators."""
summary = _REGISTRY.summary
"""Returns the first line of a generator's docstring. The generator is imported but not created."""
parameters = _REGISTRY.parameters
read = _REGISTRY.read
canonical = _REGISTRY.canonical
"""Returns the spec under which a generator's results are stored. This spec lacks parameters that do not affect answers,
so pass the user's own spec to `resolve`."""


def cutoff(spec: str) -> str | None:
    """Return the last training day (``YYYY-MM-DD``) that a generator's spec states, or None.

    Raises:
        InputFault: if the spec is invalid; see `resolve`.
    """
    day = _REGISTRY.facts(spec).get(CUTOFF.name)
    return None if day is None else str(day)


def resolve(spec: str) -> Generator:
    """Create the generator of a spec.

    Raises:
        InputFault: if the spec cannot be parsed, the name is unknown, a parameter is unknown, missing or invalid, or
            the factory does not return a `Generator`.
    """
    model: object = _REGISTRY.make(spec)
    if not isinstance(model, Generator):
        what = f"the factory returned {type(model).__name__}, not a Generator"
        cure = "return a subclass of Generator (ctxbench.harness.generators)"
        raise InputFault(what, where=f"generator {read(spec).name}", cure=cure)
    return model


def settings_of(generator: str) -> dict[str, str]:
    """Return the parameters of a generator's spec, with `openai`'s default ``url``; empty if the spec is invalid."""
    # Imported only here, because `openai` imports this module.
    from ctxbench.harness.generators.openai.settings import OFFICIAL  # noqa: PLC0415

    try:
        parsed = read(generator)
    except InputFault:
        # The label of an imported run need not be a spec.
        return {}
    default = {"url": OFFICIAL} if parsed.name == "openai" else {}
    return default | {name: str(value) for name, value in parsed.arguments.items()}


def fits(match: Sequence[str], *names: str) -> bool:
    """Return whether any shell pattern in `match` fits any of the names. Empty names are ignored."""
    return any(fnmatchcase(name, pattern) for pattern in match for name in names if name)


def patterns(table: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the patterns under a table's key ``match``."""
    value = table.get("match")
    return tuple(value) if isinstance(value, list) else (value,)


def read_tables(
    path: Path, name: str, faults: Callable[[Mapping[str, Any]], Iterator[str]], *, cure: str
) -> list[Mapping[str, Any]]:
    """Return the tables ``[[name]]`` of a TOML file.

    Args:
        faults: yields the faults of a table, except those of its ``match``.
        cure: last part of the error message.

    Raises:
        InputFault: if the file cannot be read or is invalid; the message lists every fault.
    """
    text = read_text(path)
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # not TOML, a number with thousands of digits, or deeply nested lists
        raise InputFault(f"the file is not valid TOML: {error}", where=str(path), cure=cure) from None
    tables = data.get(name, [])
    lines = [
        f"the key {key!r} is unknown; the top level contains only [[{name}]] tables"
        for key in sorted(data.keys() - {name})
    ]
    if isinstance(tables, list) and all(isinstance(table, dict) for table in tables):
        lines += [
            f"{name} {number}: {fault}"
            for number, table in enumerate(tables, 1)
            for fault in (*_pattern_faults(table), *faults(table))
        ]
    else:
        lines.append(f"{name} is not a list of tables")
    if lines:
        raise InputFault("; ".join(lines), where=str(path), cure=cure)
    return list(tables)


def _pattern_faults(table: Mapping[str, Any]) -> Iterator[str]:
    of_table = patterns(table)
    if not of_table or not all(isinstance(pattern, str) and pattern.strip() for pattern in of_table):
        yield "match must be a pattern or a list of patterns"


def unknown_keys(table: Mapping[str, Any], keys: Sequence[str]) -> Iterator[str]:
    """Yield a fault for each key of a table that is not in `keys`."""
    for key in sorted(table.keys() - set(keys)):
        yield f"the key {key!r} is unknown"


def is_day(value: object) -> bool:
    """Return whether a value is a date without a time."""
    return isinstance(value, date) and not isinstance(value, datetime)
