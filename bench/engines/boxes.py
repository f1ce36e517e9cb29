"""The persistent boxes of a run's engines, one per target file or repository, and the order of their samples.

A file's box answers queries in cursor order, because the text before a cursor contains earlier samples' answers.
Such a box is replaced if the order breaks, after a function sample, and before a sample that masks lines already seen.
"""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

from ctxbench.bench import spec as specs
from ctxbench.bench.engines.box import (
    LIMITS,
    EngineBox,
    blank_out,
    masked_lines,
    tree_of_base,
    tree_of_file,
    tree_of_repository,
    view_lines,
)
from ctxbench.bench.engines.recipe import Recipe, check_readable, read
from ctxbench.bench.engines.types import EngineLost, EngineUse, Mode, Raised, ScoredPlace, places
from ctxbench.bench.errors import InputFault
from ctxbench.bench.files import explained
from ctxbench.bench.repositories.snapshot import Snapshot
from ctxbench.bench.types import Kind, Sample
from ctxbench.sandbox.errors import SandboxError
from ctxbench.sandbox.persistent import with_resident
from ctxbench.sandbox.types import Limits, Report, Sandbox

_MOST_BOXES = 8
"""Number of groups with boxes beyond which the boxes of groups without waiting samples end."""
_AHEAD = 2
"""Number of an engine's boxes that start in advance: a server takes longer to start than a model to write a line."""
GIVE_UP_AFTER = 3
"""Number of consecutive losses in a group of samples after which the group's engine is not started again."""
NEVER_ANSWERS = 12
"""Total number of losses after which an engine that has never answered is not started again."""
_MOST_TOP = 1000
_AGAIN = "run the same command again"


@dataclass(slots=True)
class _Room:
    """Samples that share boxes: those of one target file, or of one repository."""

    waiting: deque[str] = field(default_factory=deque)
    """Ids of announced samples, in order. The turn belongs to the first sample."""
    left: int = 0
    boxes: dict[str, EngineBox] = field(default_factory=dict)
    losses: Counter[str] = field(default_factory=Counter)
    """Number of losses since each engine's last answer, by the engine's spec."""


@dataclass(slots=True)
class _Base:
    """The files that all boxes of an engine start from, in one repository."""

    tree: dict[str, str]
    lock: threading.Lock = field(default_factory=threading.Lock)
    state: bytes | None = None
    """State saved after indexing; empty if the engine cannot save its state, None before indexing."""
    ahead: deque[Future[EngineBox]] = field(default_factory=deque)
    """The boxes for the next target files."""
    begun: set[str] = field(default_factory=set)
    """Target files whose box was started."""

    def next_box(self) -> Future[EngineBox] | None:
        try:
            return self.ahead.popleft()
        except IndexError:  # also if the run ends in another thread meanwhile
            return None

    def drop(self) -> None:
        while box := self.next_box():
            if not box.cancel():
                box.add_done_callback(lambda done: None if done.exception() else done.result().end())


class Engines:
    """A run's engines. A context manager that ends all boxes on exit. Thread-safe."""

    def __init__(
        self,
        opens: Callable[[], Sandbox],
        *,
        hidden: Sequence[Path] = (),
        limits: Limits = LIMITS,
        report: Report = lambda _: None,
    ) -> None:
        """Store the settings. Nothing is started.

        Args:
            opens: opens the back end when it is needed.
            hidden: folders whose files engines must not read.
        """
        self._opens, self._hidden, self._limits, self._report = opens, hidden, limits, report
        self._lock = threading.Lock()
        self._turn = threading.Condition(self._lock)
        self._rooms: dict[object, _Room] = defaultdict(_Room)
        self._bases: dict[tuple[str, str], _Base] = {}
        self._starter = ThreadPoolExecutor(_MOST_BOXES, thread_name_prefix="engine-starter")
        self._sandbox: Sandbox | None = None
        self._recipes: dict[str, Recipe] = {}
        self._losses: Counter[str] = Counter()
        self._answered: set[str] = set()
        self._samples: Mapping[object, Sequence[Sample]] = {}
        self._shared = self._closed = False

    def __enter__(self) -> Engines:
        return self

    def __exit__(self, *_: object) -> None:
        """End all boxes, and wake samples that wait for their turn."""
        with self._lock:
            self._closed = True
            self._turn.notify_all()
        self.leave()
        self._starter.shutdown(wait=False)

    def read(self, text: str) -> Recipe:
        """Return an engine's recipe by its spec.

        Raises:
            InputFault: if the spec is invalid, or a file of the engine is in a hidden folder.
        """
        recipe = read(text)
        check_readable(recipe, self._hidden)
        return recipe

    def prepare(self, engines: Sequence[str], samples: Sequence[Sample]) -> None:
        """Install a strategy's engines, and store the samples that may use them.

        Args:
            engines: the engines' specs, as in the strategy's parameters.
            samples: all samples of the set, even those that this run skips, so that all runs index the same files.

        Raises:
            InputFault: if an engine's spec or file is invalid.
            SandboxUnavailable: if a back end is missing, or an engine cannot be installed.
        """
        self.leave()
        self._recipes = {str(specs.parse(text)): self.read(text) for text in engines}
        recipes = self._recipes.values()
        self._shared = any(recipe.mode is Mode.SHARED for recipe in recipes)
        by_room: dict[object, list[Sample]] = defaultdict(list)
        for sample in samples:
            by_room[sample.repo, sample.path].append(sample)
            by_room[sample.repo].append(sample)
        self._samples = by_room
        boxed = [recipe for recipe in recipes if not recipe.remote]
        if boxed and self._sandbox is None:
            self._sandbox = self._opens()
        for recipe in boxed:
            assert self._sandbox
            with explained(recipe.spec):
                self._sandbox.prepare(with_resident(recipe.environment), self._report)

    def leave(self) -> None:
        """End all boxes and forget announced samples."""
        with self._lock:
            boxes = [box for room in self._rooms.values() for box in room.boxes.values()]
            bases = list(self._bases.values())
            self._rooms.clear()
            self._bases.clear()
        _end(boxes, bases)

    def ordered(self, missing: Sequence[Sample], lanes: int) -> list[Sample]:
        """Sort samples by group (samples that share boxes) and cursor, and take turns between `lanes` queues of groups.

        The first group is random, so that a repeated command does not always start with a group that fails.
        """
        by_room: dict[object, list[Sample]] = defaultdict(list)
        for sample in sorted(missing, key=lambda s: (s.repo, s.path, s.cursor.line, s.cursor.column)):
            by_room[self._key(sample)].append(sample)
        queues: list[list[Sample]] = [[] for _ in range(max(1, lanes))]
        rooms = list(by_room.values())
        first = random.randrange(len(rooms) or 1)  # noqa: S311 - no number depends on it
        for samples in rooms[first:] + rooms[:first]:
            min(queues, key=len).extend(samples)
        with self._lock:
            for key, samples in by_room.items():
                self._rooms[key].left = len(samples)
        longest = max(map(len, queues))
        return [queue[at] for at in range(longest) for queue in queues if at < len(queue)]

    def _key(self, sample: Sample) -> object:
        return sample.repo if self._shared else (sample.repo, sample.path)

    def announce(self, sample: Sample) -> None:
        """Queue a sample for its box. The caller must later call `turn` or `withdraw`."""
        with self._lock:
            self._rooms[self._key(sample)].waiting.append(sample.id)

    def withdraw(self, sample: Sample) -> None:
        """Give up a sample's turn. The last sample of a group ends the group's boxes. Repeated calls do nothing."""
        key = self._key(sample)
        with self._lock:
            room = self._rooms.get(key)
            if room is None or sample.id not in room.waiting:
                return
            room.waiting.remove(sample.id)
            room.left -= 1
            boxes, bases = [], []
            if room.left <= 0 and not room.waiting:
                boxes = list(self._rooms.pop(key).boxes.values())
                if not self._to_come(sample.repo, frozenset()):
                    bases = [self._bases.pop(name) for name in list(self._bases) if name[1] == sample.repo]
            self._turn.notify_all()
        _end(boxes, bases)

    @contextlib.contextmanager
    def turn(self, sample: Sample, snapshot: Snapshot | None) -> Iterator[EngineSession]:
        """Wait for a sample's turn, and open its session. The next sample's turn begins when the context ends."""
        key = self._key(sample)
        with self._lock:
            if sample.id not in self._rooms[key].waiting:
                self._rooms[key].waiting.append(sample.id)
            room = self._rooms[key]
            self._turn.wait_for(lambda: self._closed or room.waiting[0] == sample.id)
            if self._closed:
                raise EngineLost("the run has ended", where=sample.id, cure=_AGAIN)
        session = EngineSession(self, room, sample, snapshot)
        try:
            yield session
        finally:
            session.close()
            self.withdraw(sample)

    def recipe(self, text: str, where: str) -> Recipe:
        """Return the recipe of an engine of this run's strategy.

        Raises:
            InputFault: if no parameter of the strategy names the engine.
        """
        with contextlib.suppress(InputFault):
            text = str(specs.parse(text))
        if text in self._recipes:
            return self._recipes[text]
        raise InputFault(
            f"the strategy searches with the engine {text!r:.80}, but has no parameter with this engine",
            where=where,
            cure='add a parameter `engine: EngineSpec = "ripgrep"`, and call repo.engine(engine)',
        )

    def masked(self, sample: Sample, snapshot: Snapshot) -> frozenset[str]:
        """Return the lines that any sample of the target file masks. Queries to the file's boxes omit these lines."""
        return masked_lines(snapshot, self._samples[sample.repo, sample.path])

    def box(self, recipe: Recipe, room: _Room, sample: Sample, snapshot: Snapshot) -> tuple[EngineBox, float]:
        """Return the box for a sample, and the seconds that the sample waited for indexing.

        Raises:
            EngineLost: if no box can be started, or the box is lost.
        """
        box = room.boxes.get(recipe.spec)
        if box is not None and recipe.mode is Mode.PER_FILE and box.may_know(sample):
            self.drop(recipe, room)
            box = None
        seconds = 0.0
        if box is None:
            began = time.monotonic()
            with self.losing(recipe, room, sample):
                box = room.boxes[recipe.spec] = self._start(recipe, room, sample, snapshot)
            seconds = time.monotonic() - began
        if recipe.mode is Mode.SHARED and box.cut != sample.id:
            seconds += self._cut(recipe, room, box, sample, snapshot)
        if not box.asked or box.asked[-1].id != sample.id:
            box.asked.append(sample)
        return box, seconds

    def _start(self, recipe: Recipe, room: _Room, sample: Sample, snapshot: Snapshot) -> EngineBox:
        never_answers = recipe.spec not in self._answered and self._losses[recipe.spec] >= NEVER_ANSWERS
        if never_answers or room.losses[recipe.spec] >= GIVE_UP_AFTER:
            room_name = sample.repo if self._shared else sample.path
            raise EngineLost(
                f"the engine was lost {NEVER_ANSWERS} times before its first answer, so it is not started again"
                if never_answers
                else f"the engine was lost {GIVE_UP_AFTER} times in a row, so it is not started again for {room_name}",
                where=f"{recipe.spec} on {sample.id}",
                cure=f"repair the engine (`ctxbench engine check {recipe.spec!r}` tests it), then {_AGAIN}",
            )
        self._spare()
        with explained(recipe.spec):
            if recipe.mode is Mode.SHARED:
                tree = tree_of_repository(snapshot, self._samples[sample.repo])
                return EngineBox(recipe, tree, self._sandbox, self._limits)
            tree = tree_of_file(snapshot, self._samples[sample.repo, sample.path])
            base = self._base(recipe, sample.repo, snapshot)
            if recipe.remote or not base.tree:
                return EngineBox(recipe, tree, self._sandbox, self._limits)
            base.begun.add(sample.path)
            with base.lock:
                waiting = base.next_box()
                started = waiting.result() if waiting else self._with_base(recipe, base)
                box = room.boxes[recipe.spec] = started
                if base.state is None:
                    base.state = box.state()
                again = sample.kind is Kind.FUNCTION and room.left > 1
                with self._lock:
                    needed = 0 if self._closed else again + self._to_come(sample.repo, base.begun)
                    while len(base.ahead) < min(_AHEAD, needed):
                        base.ahead.append(self._starter.submit(self._with_base, recipe, base))
            box.fill(tree)
            return box

    def _base(self, recipe: Recipe, repo: str, snapshot: Snapshot) -> _Base:
        with self._lock:
            if (recipe.spec, repo) not in self._bases:
                self._bases[recipe.spec, repo] = _Base(tree_of_base(snapshot, self._samples[repo]))
            return self._bases[recipe.spec, repo]

    def _with_base(self, recipe: Recipe, base: _Base) -> EngineBox:
        return EngineBox(recipe, base.tree, self._sandbox, self._limits, whole=False, state=base.state or b"")

    def _to_come(self, repo: str, begun: Set[str]) -> int:
        """Return how many other files of a repository have samples left. The caller holds the lock."""
        rooms = {key: room for key, room in self._rooms.items() if isinstance(key, tuple)}
        return sum(room.left > 0 and key[0] == repo and key[1] not in begun for key, room in rooms.items())

    def _spare(self) -> None:
        with self._lock:
            rooms = [room for room in self._rooms.values() if room.boxes]
            idle = [room for room in rooms if not room.waiting][: max(0, len(rooms) + 1 - _MOST_BOXES)]
            boxes = [box for room in idle for box in room.boxes.values()]
            for room in idle:
                room.boxes.clear()
        _end(boxes)

    def _cut(self, recipe: Recipe, room: _Room, box: EngineBox, sample: Sample, snapshot: Snapshot) -> float:
        began = time.monotonic()
        texts: dict[str, str | None] = {box.cut_path: box.tree.get(box.cut_path)} if box.cut_path else {}
        texts[sample.path] = view_lines(snapshot, [sample])
        with self.losing(recipe, room, sample):
            box.update(texts)
        box.cut, box.cut_path = sample.id, sample.path
        return time.monotonic() - began

    def drop(self, recipe: Recipe, room: _Room) -> None:
        """End an engine's box. The next query starts a new one."""
        if (box := room.boxes.pop(recipe.spec, None)) is not None:
            box.end()

    @contextlib.contextmanager
    def losing(self, recipe: Recipe, room: _Room, sample: Sample) -> Iterator[None]:
        """Turn the loss of an engine's box in this context into an `EngineLost`, and drop the box.

        Raises:
            EngineLost: if the box was lost, the engine raised an exception, or its answer is invalid.
        """
        try:
            yield
        except (SandboxError, Raised, ValueError) as error:
            self._losses[recipe.spec] += 1
            room.losses[recipe.spec] += 1
            self.drop(recipe, room)
            how = "raised" if isinstance(error, Raised) else "was lost:"
            raise EngineLost(f"the engine {how} {error}", where=f"{recipe.spec} on {sample.id}", cure=_AGAIN) from error

    def answered(self, recipe: Recipe, room: _Room) -> None:
        """Record that an engine answered, and reset the engine's consecutive losses."""
        self._answered.add(recipe.spec)
        room.losses[recipe.spec] = 0


def _end(boxes: Sequence[EngineBox], bases: Sequence[_Base] = ()) -> None:
    for base in bases:
        base.drop()
    for box in boxes:
        box.end()


class EngineSession:
    """The engines that one sample may search in its turn (see `bench.engines.types.EngineDoor`)."""

    def __init__(self, engines: Engines, room: _Room, sample: Sample, snapshot: Snapshot | None) -> None:
        self._engines, self._room, self._sample, self._snapshot = engines, room, sample, snapshot
        self._uses: dict[str, EngineUse] = {}
        self._open = True

    @property
    def uses(self) -> tuple[EngineUse, ...]:
        """Records of each engine's work for this sample so far."""
        return tuple(self._uses.values())

    def search(self, engine: str, text: str, top: int) -> Sequence[ScoredPlace]:
        """Return the places that an engine finds (see `bench.engines.types.EngineDoor.search`)."""
        recipe = self._engines.recipe(engine, self._sample.id)
        if not self._open:
            raise InputFault(
                f"the sample's turn has ended, so the engine {recipe.spec} cannot search",
                where=self._sample.id,
                cure="search before the strategy returns",
            )
        if self._snapshot is None:
            raise InputFault(
                f"the sample set lacks the repository {self._sample.repo}, so the engine {recipe.spec} cannot search",
                where=self._sample.id,
                cure="import the set again with --repos FOLDER",
            )
        # The text before this cursor may be masked for a later sample, and a box remembers queries.
        text = blank_out(text, self._engines.masked(self._sample, self._snapshot))
        box, indexing = self._engines.box(recipe, self._room, self._sample, self._snapshot)
        began = time.monotonic()
        left = box.patience.sample - sum(use.query_seconds for use in self._uses.values())
        if left <= 0:
            raise EngineLost(
                f"the engine's searches for one sample took more than {box.patience.sample:.0f} seconds",
                where=f"{recipe.spec} on {self._sample.id}",
                cure=f"make the strategy search less often, or the engine answer faster; then {_AGAIN}",
            )
        with self._engines.losing(recipe, self._room, self._sample):
            answer = box.search(text, self._sample, min(top, _MOST_TOP), left)
        self._engines.answered(recipe, self._room)
        use = self._uses.get(recipe.spec) or EngineUse(engine=recipe.spec, version=box.version, mode=recipe.mode)
        self._uses[recipe.spec] = replace(
            use,
            version=box.version,
            index_seconds=use.index_seconds + indexing,
            query_seconds=use.query_seconds + time.monotonic() - began,
            calls=use.calls + 1,
            index_bytes=box.size,
        )
        path, target_lines = self._sample.path, self._sample.cursor.line
        if recipe.mode is Mode.SHARED:
            # The shared box has contained the whole file, so the engine may name any line.
            target_lines = self._snapshot.texts.get(path, "").count("\n") + 1
        return places(answer, box.lines, path, target_lines, top, recipe.spec)

    def note(self, engine: str, *, returned: int, cut: int) -> None:
        """Record how many places of the last answer the strategy received, and how many reached into hidden lines."""
        spec = self._engines.recipe(engine, self._sample.id).spec
        use = self._uses[spec]
        self._uses[spec] = replace(use, places=use.places + returned, cut=use.cut + cut)

    def close(self) -> None:
        """Reject further queries."""
        self._open = False
