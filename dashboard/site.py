"""The public board as a static site: pages, badges and a feed of a folder of packages.

The pages load no other files; a script inside the first page filters its entries. Packages may be hostile, so templates
escape all texts of packages and truncate long ones. No text of a package becomes the address of a link.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from markupsafe import Markup

from ctxbench.bench.files import sha256
from ctxbench.dashboard import report
from ctxbench.dashboard.views.leaderboard import DrawnTable, environment
from ctxbench.harness.leaderboard import columns, scales
from ctxbench.harness.leaderboard.headline import heading_of, headline
from ctxbench.harness.results import RunInfo
from ctxbench.harness.submissions.boards import Entry, Ranking, compared_with, rankings
from ctxbench.harness.submissions.records import Manifest, PartCheck, PartState

FOLDERS, FEED = ("boards", "submissions", "badges"), "feed.xml"
"""Folders of the site, and the file that every site has."""
MOST_BYTES = 1_000_000
"""Maximum size of a file of the site, in bytes."""
_FILTERS = (("set", "Sample set", "samples"), ("model", "Model", "generator"), ("language", "Language", "language"))
"""Filters of the first page: name, label, field of a run."""
_TOP = 10
"""Maximum number of rows of a board on the first page."""
_LONGEST, _SHORT, _BADGE = 500, 120, 28
"""Maximum characters of a fact, of a title in a list, and of a part of a badge."""
_NEWEST = 100
"""Maximum number of submissions in the feed."""
_FILL = {"verified": "#1a6b34", "differs": "#9a3412", "unverified": "#5b5f66", "withdrawn": "#9a3412"}
_LETTER = 7
"""Width of a letter on a badge, in pixels."""


@dataclass(frozen=True, slots=True)
class State:
    """The state of a submission, such as verified or withdrawn, as the mark beside its title shows it."""

    kind: str
    """CSS class of the mark."""
    text: str
    says: str = ""
    """The result of the verification in sentences; empty for withdrawn and superseded submissions."""
    parts: tuple[tuple[str, str], ...] = ()
    """For each checked part of the package: its name with its state, and the result of the check."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardScore:
    """The score of a submission on one board."""

    board: str
    """Path of the board's page; empty if the site has no such page."""
    title: str
    samples: str
    """Language and kind of the samples: ``Python lines``."""
    heading: str
    mean: str
    value: str
    """The mean with its interval."""
    rank: str
    """Rank, or range of possible ranks such as ``1-2``; empty for a submission that is not ranked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryView:
    """A submission as the pages show it; any text may be hostile."""

    entry: Entry
    places: tuple[BoardScore, ...]
    verified: State

    @property
    def manifest(self) -> Manifest:
        """The package's manifest."""
        return self.entry.package.manifest

    @property
    def run(self) -> RunInfo:
        """The submission's first run, with the labels of its sample set and its model."""
        return self.entry.tables[0].run

    @property
    def page(self) -> str:
        """Path of the submission's page."""
        return f"submissions/{self.entry.id}.html"

    @property
    def state(self) -> State:
        """State of the submission: withdrawn, superseded, or the result of its verification."""
        if self.manifest.withdrawn is not None:
            return State("withdrawn", "withdrawn")
        return State("unverified", "superseded") if self.entry.successor else self.verified

    @property
    def updated(self) -> str:
        """Day on which the submission was made or, if it was withdrawn later, withdrawn: ``YYYY-MM-DD``."""
        withdrawn = self.manifest.withdrawn
        return max(self.manifest.date, withdrawn.date if withdrawn else "")

    @property
    def filters(self) -> dict[str, list[str]]:
        """Short digests of the submission's sample set, model and languages, by filter of the first page."""
        languages = sorted({table.run.language for table in self.entry.tables})
        return _keys(self.run.samples, self.run.generator, *languages)


def pages(entries: Sequence[Entry], *, title: str, url: str = "") -> dict[str, str]:
    """Return the text of every file of the site, by path. Equal entries produce equal texts.

    Args:
        entries: the submissions, oldest first.
        title: title of the first page and of the feed.
        url: address of the site, for links in the feed; empty for relative links.
    """
    return _Site(entries, title, url).files()


class _Site:
    """The site of some submissions."""

    def __init__(self, entries: Sequence[Entry], title: str, url: str) -> None:
        """Rank the submissions that count. Each other submission is scored alone."""
        self.title, self.url = title, url and url.rstrip("/") + "/"
        self.boards = rankings([entry for entry in entries if entry.counts])
        self.headings = Counter(heading_of(ranking.group) for ranking in self.boards)
        self.alone = {entry.id: rankings([entry]) for entry in entries if not entry.counts}
        self.views = {
            entry.id: EntryView(
                entry=entry,
                places=tuple(self._place(ranking, entry) for ranking in self._boards_of(entry)),
                verified=_verified(entry),
            )
            for entry in reversed(entries)
        }

    def files(self) -> dict[str, str]:
        """Return path -> text of every file."""
        files = {"index.html": self._index(), FEED: self._feed()}
        files |= {_path(ranking): self._board(ranking) for ranking in self.boards}
        for view in self.views.values():
            badge = _badge(view)
            files |= {view.page: self._entry(view, badge), f"badges/{view.entry.id}.svg": badge}
        return files

    def _boards_of(self, entry: Entry) -> list[Ranking]:
        return self.alone.get(entry.id) or [ranking for ranking in self.boards if entry in ranking.entries]

    def _title(self, ranking: Ranking) -> str:
        """Return the title of a board. If several boards share a heading, it also names the versions they differ in."""
        key, heading = ranking.key, heading_of(ranking.group)
        version = (
            f" (set {key.set.digest[:6]}, metrics {key.metrics[:6]}, bits by {key.coder}, "
            f"completions per sample: {key.completions})"
        )
        return heading + version * (self.headings[heading] > 1)

    def _place(self, ranking: Ranking, entry: Entry) -> BoardScore:
        group, path = ranking.group, _path(ranking)
        row = group.rows[ranking.entries.index(entry)]
        return BoardScore(
            board=path if path in map(_path, self.boards) else "",
            title=self._title(ranking),
            samples=f"{group.language.capitalize()} {ranking.key.set.kind}s",
            heading=columns.heading(group, group.metric),
            mean=columns.mean_column(group, group.metric).written(group, row),
            value=columns.interval_of(row, group.metric),
            rank=columns.rank(row) if entry.counts and row.rank_low is not None else "",
        )

    def _index(self) -> str:
        runs = [table.run for view in self.views.values() for table in view.entry.tables]
        filters = [
            (name, label, [(value, _key(value)) for value in sorted({getattr(run, field) for run in runs})])
            for name, label, field in _FILTERS
        ]
        boards = [self._summary(ranking) for ranking in self.boards]
        return _page("index.html", self.title, filters=filters, entries=list(self.views.values()), boards=boards)

    def _summary(self, ranking: Ranking) -> dict[str, Any]:
        group, table = ranking.group, self._ranked(ranking, "")
        top = replace(table, lines=table.lines[:_TOP], drawn=None)
        if table.drawn is not None:
            top = replace(top, drawn=replace(table.drawn, bars=table.drawn.bars[:_TOP]))
        return {
            "page": _path(ranking),
            "title": self._title(ranking),
            "lead": headline(group),
            "filters": _keys(group.samples, group.generator, group.language),
            "top": top,
            "more": max(0, len(table.lines) - _TOP),
        }

    def _ranked(self, ranking: Ranking, root: str) -> DrawnTable:
        """Return the first table of a board; `root` leads from its page to the site's first page."""
        table = report.section(ranking.section, {}).tables[0]
        views = [self.views[entry.id] for entry in ranking.entries]
        links = tuple({"strategy": f"{root}{view.page}"} for view in views)
        marks = tuple(f"{', '.join(view.manifest.authors)[:_SHORT]} · {view.state.text}" for view in views)
        return replace(table, links=links, whole=marks, folded=tuple(self._folded(view, root) for view in views))

    def _folded(self, view: EntryView, root: str) -> list[tuple[str, str]]:
        """Return (text, address) of each submission that this one supersedes, directly or indirectly, newest first."""
        replaced: list[EntryView] = []
        new = {view.entry.id}
        while new:
            old = [of for of in self.views.values() if of.entry.successor in new and of not in (view, *replaced)]
            replaced += old
            new = {of.entry.id for of in old}
        texts = [
            (old.manifest.title[:_SHORT], old.manifest.date, *(f"{at.heading} {at.value}" for at in old.places))
            for old in replaced
        ]
        return [(" · ".join(text), f"{root}{old.page}") for text, old in zip(texts, replaced, strict=True)]

    def _board(self, ranking: Ranking) -> str:
        section = report.section(ranking.section, {})
        section = replace(
            section, title="Ranking", tables=(self._ranked(ranking, "../"), *section.tables[1:]), origins=()
        )
        key, path = ranking.key, _path(ranking)
        withdrawn = [
            view
            for id_, alone in self.alone.items()
            if (view := self.views[id_]).manifest.withdrawn and path in map(_path, alone)
        ]
        models = sorted({entry.package.manifest.model.version for entry in ranking.entries})
        facts = [("sample set", f"{key.set.name} ({key.set.digest})"), ("version of the metrics", key.metrics[:12])]
        facts += [("version of the model", "; ".join(models)[:_LONGEST])]
        values = {"facts": facts, "withdrawn": withdrawn, "terms": columns.glossary()}
        return _page("group.html", self._title(ranking), section=section, **values)

    def _entry(self, view: EntryView, badge: str) -> str:
        entry, named = view.entry, view.manifest.supersedes
        samples = [_samples(ranking, entry) for ranking in self._boards_of(entry)]
        replaces = [old for old in self.views.values() if old.entry.successor == entry.id]
        return _page(
            "entry.html",
            view.manifest.title[:_SHORT],
            entry=view,
            badge=Markup(badge),  # noqa: S704 - its template escaped it
            successor=self.views.get(entry.successor),
            replaces=replaces,
            unheeded=named if named and named not in [old.entry.id for old in replaces] else "",
            samples=samples,
            parts=asdict(view.manifest),
            # A folder's name must not become another command.
            command=f"ctxbench results verify {shlex.quote(entry.folder)} --all",
            written=scales.written,
        )

    def _feed(self) -> str:
        views = sorted(self.views.values(), key=lambda view: view.updated, reverse=True)
        updated = views[0].updated if views else "1970-01-01"
        return _rendered(FEED, title=self.title, url=self.url, entries=views[:_NEWEST], updated=updated)


def _page(template: str, title: str, **values: object) -> str:
    script = "board/search.js" if template == "index.html" else ""
    return report.page(f"board/{template}", css="board/board.css", script=script, title=title, **values)


def _rendered(template: str, **values: object) -> str:
    return environment().get_template(f"board/{template}").render(**values)


def _key(text: str) -> str:
    """Return a short digest of a text, which is safe in HTML attributes."""
    return sha256(text)[:8]


def _keys(samples: str, model: str, *languages: str) -> dict[str, list[str]]:
    return {"set": [_key(samples)], "model": [_key(model)], "language": list(map(_key, languages))}


def _path(ranking: Ranking) -> str:
    group = ranking.group
    return f"boards/{sha256(str((ranking.key, group.language, group.generator)))[:12]}.html"


def _samples(ranking: Ranking, entry: Entry) -> dict[str, Any]:
    unit = columns.heading(ranking.group, ranking.group.metric)
    other, samples = compared_with(ranking, entry)
    names = ["this submission", *([f"{other.package.manifest.strategy.spec} ({other.id})"] if other else [])]
    which = (
        f"differ most in {unit} from {names[1]}, better and worse" if other else f"have the highest and lowest {unit}"
    )
    return {
        "title": heading_of(ranking.group),
        "says": f"The samples that {which}.",
        "names": names,
        "samples": samples,
    }


def _badge(view: EntryView) -> str:
    place = view.places[0] if view.places else None
    score = f"{place.heading} {place.mean}" + f", rank {place.rank}" * bool(place.rank) if place else "no score"
    state = view.state
    samples = ((view.run.samples, "#3d444d"), *([(place.samples, "#4a5a6a")] if place else []))
    texts = (*samples, (score, "#0b5cad"), (state.text, _FILL[state.kind]))
    parts, x = [], 0
    for text, fill in texts:
        short = text if len(text) <= _BADGE else f"{text[: _BADGE - 1]}…"
        width = _LETTER * len(short) + 12
        parts.append({"x": x, "width": width, "fill": fill, "text": short})
        x += width
    return _rendered("badge.svg", parts=parts, width=x, label=": ".join(text for text, _ in texts))


def _verified(entry: Entry) -> State:
    """Return the state that a verification shows. A part that was not derived again is the author's claim."""
    checks = entry.verification
    if checks is None:
        return State(
            "unverified", "not verified", "The submission was not verified: its scores are the authors' claims."
        )
    drawn = "All samples" if checks.samples == checks.of else f"{checks.samples} of {checks.of} samples"
    says = f"{drawn} were checked with ctxbench {checks.ctxbench}."
    parts = tuple((f"{part.name}, {part.state}", _outcome(part)) for part in checks.parts)
    if not checks.equal:
        return State("differs", "differs", f"{says} Some values differ from the package.", parts)
    prompts = next((part for part in checks.parts if part.name == "prompts" and part.state is PartState.DERIVED), None)
    checked, of = (prompts.checked, prompts.of) if prompts else (checks.samples, checks.of)
    mark = ("verified" if prompts else "rescored only") + f", {checked} of {of}" * (checked < of)
    return State("verified", mark, f"{says} No value differs.", parts)


def _outcome(part: PartCheck) -> str:
    text = f"{part.differing} of {part.checked} values differ" if part.checked else "nothing was compared"
    if first := part.difference:
        of = f"{first.sample}: " if first.sample else ""
        expected, got = first.expected[:_SHORT], first.got[:_SHORT]
        text += f"; the first: {of}{first.what} is {expected!r} in the package, {got!r} when checked"
    return f"{text}. {part.note}"
