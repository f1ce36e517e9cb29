"""The data that all searches of a run share: indexed units, vectors, summaries. Strategies receive only results."""

from __future__ import annotations

import dataclasses
import functools
import logging
import re
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ctxbench.bench import code_tokens
from ctxbench.bench import spec as specs
from ctxbench.bench.concurrency import SharedCache
from ctxbench.bench.errors import InputFault, MachineFault, UnknownName
from ctxbench.bench.languages.base import Language
from ctxbench.bench.parameters import bind, parameters_of
from ctxbench.bench.retrieval.corpus import Corpus, Ranker, search, similarity
from ctxbench.bench.retrieval.rankers import BM25, Jaccard
from ctxbench.bench.retrieval.units import Built, Cutter, Hit, Summarise, Unit, VisibleTarget, cutter
from ctxbench.bench.windows import Tokens

if TYPE_CHECKING:
    from ctxbench.bench.retrieval.encoders import Encoder
    from ctxbench.bench.retrieval.encoders.vectors import Vectors

LEXICAL: Mapping[str, type[BM25] | type[Jaccard]] = {"bm25": BM25, "jaccard": Jaccard}
_BROUGHT = ("hashed", "minilm")
"""Encoders that need no file from the user, unless their spec names one."""
_COMMIT = re.compile("[0-9a-f]{40}")
_KEPT_CORPORA = 32
"""Number of cached corpora. Samples are processed repository by repository."""
_KEPT_CHARACTERS = 32_000_000
"""Maximum characters of all cached corpora. An index needs about 15 bytes per character."""
_KEPT_OWN = 256
_KEPT_RANKERS = 16
_MANY = 1000
_EVERY_SECONDS = 10.0
_LOG = logging.getLogger(__name__)


class NoRanker(InputFault):
    """Raised when an encoder is unknown or unusable here. Ends a run, unless a foreign strategy chose the encoder."""


def lexical_of(spec: str) -> tuple[str, Ranker] | None:
    """Return the canonical spec and the lexical ranker of `spec`; None if it names another ranker.

    Raises:
        InputFault: if the text is not a spec, or a parameter is invalid.
    """
    parsed = specs.parse(spec)
    if parsed.name not in LEXICAL:
        return None
    make = LEXICAL[parsed.name]
    arguments = bind(parameters_of(make.__init__, f"the ranker {parsed.name}"), parsed)
    return str(specs.Spec(parsed.name, arguments)), make(**arguments)  # type: ignore[arg-type]


def check_ranker(spec: str) -> None:
    """Check that a ranker exists, without looking for its weights.

    Raises:
        InputFault: if the ranker does not exist, or a parameter is invalid.
    """
    if lexical_of(spec) is None:
        _canonical(spec)


def encoder_of(spec: str) -> tuple[str, Encoder]:
    """Return an encoder's canonical spec and the encoder.

    Raises:
        InputFault: if the encoder does not exist or cannot be used here. For an unknown name, the error also suggests
            lexical rankers.
    """
    from ctxbench.bench.retrieval import encoders  # noqa: PLC0415 - it imports numpy

    return _canonical(spec), encoders.get(spec)


def _canonical(spec: str) -> str:
    from ctxbench.bench.retrieval import encoders  # noqa: PLC0415 - as above

    name = encoders.read(spec).name
    if name not in encoders.names():
        raise UnknownName("encoder", name, {*encoders.names(), *LEXICAL}, command=encoders.COMMAND)
    return encoders.canonical(spec)


def weights_of(spec: str) -> str:
    """Return an encoder's version if its spec does not determine its weights; otherwise an empty text.

    Raises:
        InputFault: if the encoder cannot be used here.
    """
    parsed = specs.parse(spec)
    name, path = parsed.name.partition(":")[0], parsed.arguments.get("path")
    decided = name in _BROUGHT or _COMMIT.fullmatch(str(parsed.arguments.get("revision")))
    if name in LEXICAL or (decided and not path):
        return ""
    from ctxbench.bench.retrieval import encoders  # noqa: PLC0415 - as above

    return encoder_of(spec)[1].version if name in encoders.names() else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedFiles:
    """A snapshot's files without the hidden ones. Searches replace the target file by its visible part."""

    digest: str
    """Digest that identifies `texts`. It is part of the cache key of everything that is built from the files."""
    texts: Mapping[str, str]
    language: Language
    repo: str = ""


def candidates(target: VisibleTarget, cut: Cutter, language: Language) -> list[Unit]:
    """Return the units of the target file that a search may return.

    Functions that contain the cursor, or end right before it, are left out. Units of text must end before the
    first line that the prompt shows.
    """
    units = cut(target.path, _parsable(target, language), language)
    if cut.of_text:
        return [unit for unit in units if unit.place.end <= target.context_start]
    last = target.text[: target.cut].rstrip().count("\n")
    return [unit for unit in units if not unit.place.start <= last < unit.place.end]


def _parsable(target: VisibleTarget, language: Language) -> str:
    """Return the text with a body for the function without one, which would otherwise absorb the next function."""
    before, after = target.text[: target.cut], target.text[target.cut :]
    bare = before.rstrip()
    if language.indented and after and bare.endswith(":"):
        return f"{bare} ...{before[len(bare) :]}{after}"
    return target.text


class Retrieval:
    """Corpora, vectors and summaries, shared by all views of a run."""

    def __init__(
        self,
        folder: Path | None = None,
        *,
        summarise: Summarise | None = None,
        built: Built | None = None,
        tokens: Tokens = code_tokens.tokenize,
    ) -> None:
        """Store the settings. Nothing is read or built yet.

        Args:
            folder: folder for vectors, kept across runs; None for memory only.
            summarise: writes summaries for ``summary`` units; None for the plain summaries of `bench.apis`.
            built: called after each build from a whole repository, with the arguments that `Built` describes.
            tokens: tokenizer of window retrieval.
        """
        self.tokens = tokens
        self._folder, self._summarise, self._closed = folder, summarise, threading.Event()
        self.searched_summaries = threading.Event()  # every search by summary sets it; its reader clears it
        self._built = built
        self._last_report = -_EVERY_SECONDS
        self._vectors: SharedCache[Vectors] = SharedCache(1)
        self._shared: SharedCache[Corpus] = SharedCache(
            _KEPT_CORPORA, weigh=lambda corpus: corpus.characters, heaviest=_KEPT_CHARACTERS
        )
        self._own: SharedCache[Corpus] = SharedCache(_KEPT_OWN)
        self._rankers: SharedCache[tuple[str, Ranker]] = SharedCache(_KEPT_RANKERS)

    def close(self) -> None:
        """Stop other threads that encode texts: they raise a `MachineFault`."""
        self._closed.set()

    def note(self, repo: str, what: str, seconds: float) -> None:
        """Report what was built from a repository, and how long it took, to the `built` callback."""
        if self._built is not None:
            self._built(repo, what, seconds)

    def search(
        self, text: str, *, files: IndexedFiles, target: VisibleTarget, unit: str, ranker: str, top: int
    ) -> tuple[Hit, ...]:
        """Return the units most similar to a text, best first.

        Args:
            files: files to search. Their version of the target file is not used.
            target: visible part of the target file, which replaces that file.

        Raises:
            InputFault: if `unit` is invalid; `NoRanker` if the ranker's encoder does not exist or cannot be used here.
        """
        cut = cutter(unit)
        name, compare = self._ranker(ranker)
        if cut.name == "summary":
            self.searched_summaries.set()
        if not text.strip():
            return ()
        shared = self._shared.get((files.digest, files.language, cut.spec), lambda: self._corpus_of(files, cut))
        own = self._own.get(
            (target, files.language, cut.spec),
            lambda: Corpus(self._keyed(candidates(target, cut, files.language), cut, files.language)),
        )
        return search(text, shared=shared, own=own, path=target.path, name=name, ranker=compare, top=top)

    def similarity(self, text: str, candidates: Sequence[str], *, ranker: str) -> tuple[float, ...]:
        """Return the similarity of a text to each candidate, in order.

        Raises:
            InputFault: if a parameter is invalid; `NoRanker` if the encoder does not exist or cannot be used here.
        """
        return similarity(text, candidates, self._ranker(ranker)[1])

    def _ranker(self, spec: str) -> tuple[str, Ranker]:
        return self._rankers.get(spec, lambda: self._resolved(spec))

    def _resolved(self, spec: str) -> tuple[str, Ranker]:
        if (lexical := lexical_of(spec)) is not None:
            return lexical
        # Imported here: most importers of this module need no encoder, and so no numpy.
        from ctxbench.bench.retrieval.encoders.vectors import Vectors  # noqa: PLC0415
        from ctxbench.bench.retrieval.rankers import Dense  # noqa: PLC0415

        try:
            name, encoder = encoder_of(spec)
        except InputFault as fault:
            raise NoRanker(fault.what, where=fault.where, cure=fault.cure) from fault
        vectors = self._vectors.get("", lambda: Vectors(self._folder))
        return name, Dense(encoder, name, vectors, progress=functools.partial(self._go_on, name))

    def _go_on(self, encoder: str, encoded: int, of: int) -> None:
        if self._closed.is_set():
            raise MachineFault(
                f"the run stopped with {encoded} of {of} texts encoded", cure="run the same command again to continue"
            )
        if of >= _MANY and (time.monotonic() - self._last_report >= _EVERY_SECONDS or encoded == of):
            self._last_report = time.monotonic()
            _LOG.info("%s: %d of %d texts encoded; the vectors are kept for later runs", encoder, encoded, of)

    def _corpus_of(self, files: IndexedFiles, cut: Cutter) -> Corpus:
        start = time.perf_counter()
        units = [unit for path, text in files.texts.items() for unit in cut(path, text, files.language)]
        ended = time.perf_counter()
        self.note(files.repo, f"units {cut.spec}", ended - start)
        units = self._keyed(units, cut, files.language)
        if cut.name == "summary":
            self.note(files.repo, f"summaries of {cut.spec}", time.perf_counter() - ended)
        return Corpus(units, built=lambda name, seconds: self.note(files.repo, f"index {name} of {cut.spec}", seconds))

    def _keyed(self, units: list[Unit], cut: Cutter, language: Language) -> list[Unit]:
        return self._summarised(units, language) if cut.name == "summary" else units

    def _summarised(self, units: Sequence[Unit], language: Language) -> list[Unit]:
        """Set each API's summary as its key or, without one, its first usage example (InferCom's release)."""
        summaries = self._summarise(language, units) if self._summarise else [unit.summary for unit in units]
        return [
            dataclasses.replace(unit, keys=(summary or (unit.keys or (unit.name,))[0],))
            for unit, summary in zip(units, summaries, strict=True)
        ]
