"""Answer a cell's questions about the repository, trusting none of their arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ctxbench.bench import spec as specs
from ctxbench.bench.errors import InputFault, MachineFault
from ctxbench.bench.repository import Repository
from ctxbench.bench.retrieval import encoders
from ctxbench.bench.retrieval.retrieval import LEXICAL, NoRanker
from ctxbench.harness.cells import protocol, wire
from ctxbench.harness.cells.protocol import Account, Excess
from ctxbench.harness.cells.wire import ARGUMENTS, misfit

_CALLS = ("files", "read", "similar_windows", "search", "similarity", "grep", "engine")
_DUMPS: Mapping[str, Callable[[Any], Any]] = {
    "similar_windows": wire.dump_hits,
    "search": wire.dump_found,
    "grep": wire.dump_found,
    "engine": wire.dump_found,
}
_NAMES: Mapping[str, int] = {
    "path": protocol.PATH,
    "pattern": protocol.SENTENCE,
    "unit": protocol.WORD,
    "ranker": protocol.PATH,
    "name": protocol.PATH,
}
"""Arguments that name something -> characters that they may have."""
MOST_CHARACTERS = 1_000_000
"""Of all texts of one question together."""


class Questions:
    """One strategy's questions about one query's repository."""

    def __init__(self, repo: Repository, spec: str, account: Account, *, trusted: bool) -> None:
        """Answer the strategy that the user spelled as `spec` from the query's view, and count on its account.

        `trusted` says whether it is our own: then the user is to install a missing encoder that it needs, whether the
        user or a default names it.
        """
        self._repo, self._account, self._trusted = repo, account, trusted
        self._named = frozenset(specs.within(spec))
        self._spec = spec

    def answer(self, call: str, arguments: Mapping[str, Any]) -> Any:
        """Return the answer to one question, as JSON data.

        Args:
            call: the name of one of the view's methods.
            arguments: of the call.

        Raises:
            Garbage: if there is no such question, or an argument is missing, of another type or too long.
            Excess: if it is one too many.
            NoRanker: if the user has to install an encoder.
            InputFault: from the view, or if a text is too long or the ranker is not the strategy's to choose.
        """
        self._account.take("questions")
        _check(call, arguments)
        try:
            if "ranker" in arguments:
                self._account.take("searches")
                self._check_ranker(arguments["ranker"])
            if call == "engine":
                self._account.take("searches")
            with self._account.asking(_index(call, arguments)):
                value = self._ask(call, arguments)
        except NoRanker as fault:
            if self._trusted or _spelled(arguments["ranker"]) in self._named:
                raise
            raise InputFault(fault.what, where=fault.where, cure=fault.cure) from None
        except (InputFault, MachineFault, Excess):
            raise
        except Exception as error:
            # An argument that passed every check has caused it: no other sample may suffer.
            raise InputFault(f"{call} cannot answer this ({type(error).__name__})", cure="ask otherwise") from error
        return _DUMPS[call](value) if call in _DUMPS else value

    def _ask(self, call: str, arguments: Mapping[str, Any]) -> Any:
        if call == "engine":
            asked = {key: value for key, value in arguments.items() if key != "name"}
            return self._repo.engine(arguments["name"]).search(**asked)
        return getattr(self._repo, call)(**arguments)

    def _check_ranker(self, ranker: str) -> None:
        """Refuse an encoder's parameters that the strategy, not the user, chose: it would open files on this side."""
        spec = encoders.read(ranker)
        if spec.arguments and spec.name not in LEXICAL and _spelled(ranker) not in self._named:
            raise InputFault(
                f"the strategy may not choose the ranker {ranker!r} by itself",
                where=self._spec,
                cure="give it among the strategy's parameters",
            )


def _check(call: str, arguments: Mapping[str, Any]) -> None:
    if call not in _CALLS or arguments.keys() != ARGUMENTS[call].keys():
        raise protocol.Garbage(f"asks for {call!r:.40}")
    if wrong := misfit(call, arguments):
        raise protocol.Garbage(wrong)
    for key in _NAMES.keys() & arguments.keys():
        with wire.named(key):
            wire.text(arguments[key], _NAMES[key])
    candidates = wire.items(arguments.get("candidates", []), protocol.CANDIDATES, "candidates")
    texts = [*candidates, arguments.get("text", "")]
    if sum(map(len, texts)) > MOST_CHARACTERS:
        raise InputFault(f"the texts to compare are over {MOST_CHARACTERS} characters", cure="give shorter ones")
    if call == "similar_windows" and arguments["size"] > protocol.OVERLAP * max(1, arguments["stride"]):
        raise InputFault(
            f"windows of {arguments['size']} lines every {arguments['stride']} overlap too often",
            cure=f"give a stride of 1/{protocol.OVERLAP} of the size at least",
        )


def _index(call: str, arguments: Mapping[str, Any]) -> tuple[object, ...] | None:
    """Return the key of the index that a question needs; None if it needs none."""
    if call == "similar_windows":
        return call, arguments["size"], arguments["stride"]
    return (call, arguments.get("unit"), arguments["ranker"]) if "ranker" in arguments else None


def _spelled(ranker: str) -> str:
    return str(specs.parse(ranker))
