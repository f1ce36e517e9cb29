"""The memorisation probe: what a reference costs a generator, beside a twin of it under other names.

Both are priced after nothing but the signature of the function around them. A model that has read the text knows it
from so little, and does not know the twin: this is the neighbourhood comparison of Mattern et al. (2023), with renamed
identifiers, as ReCode (Wang et al., 2022) renames them, in place of a paraphrase.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ctxbench.bench import samples as sets
from ctxbench.bench.errors import InputFault, MachineFault
from ctxbench.bench.files import sha256
from ctxbench.bench.home import Home
from ctxbench.bench.languages.naming import identifiers, own_names, renamed
from ctxbench.bench.languages.syntax import Source
from ctxbench.bench.types import Reference, Sample
from ctxbench.harness.diagnostics.gains import Progress, open_pricer
from ctxbench.harness.generators import registry
from ctxbench.harness.generators.base import Generator
from ctxbench.harness.run.portions import NothingWorks, apart
from ctxbench.harness.run.pricer import Pricer
from ctxbench.harness.run.scoring import behind_cursor, has_answer
from ctxbench.harness.store.runs import SET_BACK, StoredRun, check_set
from ctxbench.harness.store.scores import TwinCosts, add_twins, planned_ids, twins_of
from ctxbench.harness.store.store import Store
from ctxbench.strategies.api import Block, BlockKind, Prompt

_PART = 32
"""Samples that are priced together, and stored in one transaction."""
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_SHORTEST = 3
"""Letters of a word that is replaced; shorter ones (``i``, ``to``) are the same in every project."""
_VOCABULARY = """
key row url tag log ref job env cfg src dst msg buf cmd arg tmp err pos num doc node item path data line text file
mode code user host port task unit rule form step page time cell field table event group token state model query
level label entry order scope cache queue shape batch frame theme route parser loader client server buffer record
option module result status source target number vector config filter header column writer reader context handler
message request version element counter default manager session storage network pattern process section segment
service wrapper content builder response template document registry location resource position operator property
metadata callback database argument category function iterator protocol schedule security variable attribute
component condition container converter directory extension generator interface operation parameter processor
reference scheduler structure validator character algorithm exception formatter collection connection controller
definition dictionary dispatcher evaluation expression identifier middleware permission repository serializer
statistics subscriber translator validation annotation background comparison application association certificate
combination description destination environment information instruction integration permissions transaction
translation transformer coordinates credentials development distributed placeholder replacement
"""
"""Words of 3 to 11 letters that are common in code, for files that have none of a length."""


@dataclass(frozen=True, slots=True)
class ProbeText:
    """A text to price, and all that is shown before it."""

    prompt: str
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryProbe:
    """What is known of a generator's memory of a run's samples after a call of `probe`."""

    run: StoredRun
    new: int
    """Samples that this call priced."""
    over_limit: int
    """Samples that the limit left unpriced."""
    costs: Mapping[str, TwinCosts]
    """Sample -> bits of its reference and its twin, of those that have a twin."""
    twinless: int
    """Samples whose reference has no name of the project's own, so that there is nothing to compare."""
    faults: Mapping[str, MachineFault] = field(default_factory=dict)
    """Sample -> why it could not be priced, though others could."""


def probe(
    home: Home,
    store: Store,
    run: StoredRun,
    *,
    limit: int | None,
    progress: Progress,
    resolve: Callable[[str], Generator] = registry.resolve,
) -> MemoryProbe:
    """Price the samples of a run beside their twins, as far as no run of this generator has it done already.

    Args:
        home: where the run's sample set is.
        store: where the run is.
        run: the run; its strategy does not matter.
        limit: samples to price at most; None for all. Those that cannot be priced do not count.
        progress: shows how far it is.
        resolve: how to make the generator; for tests.

    Raises:
        InputFault: if the set is not the run's, or the run's generator did not price it.
        MachineFault: if the generator was lost; finished samples are kept.
    """
    sample_set = sets.load(home, run.samples)
    check_set(run.id, run.samples_digest, sample_set, cure=SET_BACK)
    samples = {sample.id: sample for sample in sample_set.samples}
    if run.coder.rpartition(" ")[0] != run.generator:
        raise InputFault(
            f"{run.generator} gives no log-probabilities, so that nothing tells what it has memorised",
            cure="choose a run of a generator that prices texts (see `ctxbench generator check`)",
        )
    ids = [id_ for id_ in planned_ids(store, run.id) if has_answer(sample_set.references[id_])]
    with open_pricer(run, resolve) as pricer:
        if pricer.name != run.coder:
            raise InputFault(
                f"the generator is {pricer.name!r} by now, and was {run.coder!r} when the run {run.id} was made",
                cure="run the strategy again, then probe that run",
            )
        stored = twins_of(store, run.samples_digest, pricer.name)
        missing = [id_ for id_ in ids if id_ not in stored and pricer.coder.knows(samples[id_].language)]
        most, new = len(missing) if limit is None else min(limit, len(missing)), 0
        faults: dict[str, MachineFault] = {}
        with progress(run.generator, most) as tick:
            for ids_tried, costs in _priced(pricer, [samples[id_] for id_ in missing], sample_set.references, most):
                if isinstance(costs, MachineFault):
                    faults |= dict.fromkeys(ids_tried, costs)
                    continue
                add_twins(store, run.samples_digest, pricer.name, costs)
                new += len(costs)
                tick(len(costs))
        stored = twins_of(store, run.samples_digest, pricer.name)
    of_run = {id_: stored[id_] for id_ in ids if id_ in stored}
    pairs = {id_: cost for id_, cost in of_run.items() if cost is not None}
    over_limit, twinless = len(missing) - new - len(faults), len(of_run) - len(pairs)
    return MemoryProbe(run=run, new=new, over_limit=over_limit, costs=pairs, twinless=twinless, faults=faults)


def twins(sample: Sample, reference: Reference) -> tuple[ProbeText, ProbeText] | None:
    """Return a sample's reference after its function's signature, and the twin of both.

    Of a line the beginning is shown as well, and outside any function nothing else. Renamed are the names that the file
    gives to its own things, and those of the project that the reference needs; None if the reference has no such name.
    """
    target = behind_cursor(sample, reference)
    text = sample.prefix + target + (sample.suffix or "")
    source = Source(text, sample.language)
    cursor = len(sample.prefix.encode("utf-8", "replace"))
    end = cursor + len(target.encode("utf-8", "replace"))
    spans = [*_signature(sample, text), (source.data.rfind(b"\n", 0, cursor) + 1, cursor), (cursor, end)]
    needed = {part for use in sample.uses for part in use.name.split(".")}
    own = own_names(source, sample.language, needed)
    names = [source.text(node) for start, stop in spans for node in identifiers(source.root, start, stop)]
    replaced = twin_names(
        [name for name in dict.fromkeys(names) if name in own],
        reserved={*names, *sample.language.reserved, *sample.language.library},
        words=_words(map(source.text, identifiers(source.root))),
        seed=sha256(f"{sample.prefix}\0{target}"),
    )

    def priced(under: Mapping[str, str]) -> ProbeText:
        *context, end_text = (renamed(source, start, stop, under) for start, stop in spans)
        return ProbeText("".join(context), end_text)

    original, twin = priced({}), priced(replaced)
    return None if original.target == twin.target else (original, twin)


def twin_names(names: Iterable[str], *, reserved: Collection[str], words: Sequence[str], seed: str) -> dict[str, str]:
    """Return name -> another of as many words, each as long and in the same style: ``cart_total`` -> ``shop_price``.

    A word has the same twin in every name, so that names that belong together still do. It is drawn from words of the
    same file, the more often the more often they stand there, so that a twin is no odder than what it stands for.

    Args:
        names: in a fixed order; of words of the same length the first one chooses first.
        reserved: names whose words no twin may have.
        words: of the file, with repeats, in small letters.
        seed: any text.
    """
    names = list(names)
    used = set(_words(reserved))
    twin_of: dict[str, str] = {}
    for word in dict.fromkeys(_words(names)):
        if len(word) >= _SHORTEST:
            twin_of[word] = _drawn(len(word), words, used, f"{seed} {word}") or word

    def in_style(match: re.Match[str]) -> str:
        word = match[0]
        twin = twin_of.get(word.lower(), word)
        return twin.upper() if word.isupper() else twin.capitalize() if word[0].isupper() else twin

    return {name: _WORD.sub(in_style, name) for name in names}


def _words(names: Iterable[str]) -> list[str]:
    return [word.lower() for name in names for word in _WORD.findall(name)]


def _drawn(length: int, words: Sequence[str], used: set[str], seed: str) -> str:
    """Return an unused word of that many letters, or two in one; empty if there is none."""
    for candidates in (words, _VOCABULARY.split()):
        free = [word for word in candidates if len(word) == length and word not in used]
        if free:
            word = free[int(sha256(seed), 16) % len(free)]
            used.add(word)
            return word
    if length < 2 * _SHORTEST:
        return ""
    halves = [_drawn(half, words, used, seed) for half in (length // 2, length - length // 2)]
    return "".join(halves) if all(halves) else ""


def _signature(sample: Sample, text: str) -> list[tuple[int, int]]:
    """Return the bytes of the signature of the innermost function whose body the cursor is in; none outside any."""
    row = sample.prefix.count("\n")
    around = [
        (function.head, max(function.body[0], function.head + 1))
        for function in sample.language.outline(text).functions
        if function.has_body and max(function.body[0], function.head + 1) <= row < function.lines[1]
    ]
    if not around:
        return []
    first, last = max(around)
    lines = text.split("\n")
    start, end = (len("".join(f"{line}\n" for line in lines[:at]).encode("utf-8", "replace")) for at in (first, last))
    return [(start, end)]


def _priced(
    pricer: Pricer, samples: Sequence[Sample], references: Mapping[str, Reference], most: int
) -> Iterator[tuple[Sequence[str], dict[str, TwinCosts | None] | MachineFault]]:
    """Yield ids of samples with their costs or their fault, until `most` samples have costs.

    Raises:
        NothingWorks: if the generator was lost.
    """
    price = functools.partial(_costs, pricer.coder, references)
    while samples and most > 0:
        part, samples = samples[: min(_PART, most)], samples[min(_PART, most) :]
        works = functools.partial(pricer.works, {sample.language for sample in part})
        for tried, outcome in apart(price, part, works):
            if isinstance(outcome, NothingWorks):
                raise outcome
            if not isinstance(outcome, MachineFault):
                most -= len(outcome)
            yield [sample.id for sample in tried], outcome


def _costs(
    coder: Generator, references: Mapping[str, Reference], samples: Sequence[Sample]
) -> dict[str, TwinCosts | None]:
    """Return sample -> bits of its reference and its twin; None of one without a twin."""
    pairs = {sample.id: pair for sample in samples if (pair := twins(sample, references[sample.id])) is not None}
    costs: dict[str, TwinCosts | None] = {sample.id: None for sample in samples}
    for language in {sample.language for sample in samples}:
        ids = [sample.id for sample in samples if sample.language == language and sample.id in pairs]
        texts = [text for id_ in ids for text in pairs[id_]]
        if texts:
            prompts = [Prompt(blocks=(Block(kind=BlockKind.INFILE, text=text.prompt),)) for text in texts]
            bits = coder.bits(prompts, [text.target for text in texts], language)
            costs |= {id_: TwinCosts(*pair) for id_, *pair in zip(ids, bits[::2], bits[1::2], strict=True)}
    return costs
