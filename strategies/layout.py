"""Parts of prompts that strategies share: in-file text, similar code, and the request for a function.

Budgets are in `ctxcode-1` tokens, or p50k_base tokens if the run has that vocabulary.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ctxbench.bench import code_tokens
from ctxbench.bench.repository import Repository
from ctxbench.bench.types import Kind, Place, Query
from ctxbench.bench.windows import WindowHit, code_lines, spans, split_lines
from ctxbench.strategies.api import TRIMMED, Block, BlockKind, Context, Dropped, Prompt, text_block

WHOLE = 4096
"""Maximum tokens of a prompt with in-file text only."""
HALF = 2048
"""Maximum tokens of the in-file text if there is other context."""
RULE = "# " + "-" * 50
SIMILAR_HEADER = f"# Here are some relevant code fragments from other files of the repo:\n{RULE}\n"
HEADER_TOKENS = 20
"""Tokens that the header costs with any tokenizer."""
BUDGET = 2000
"""Maximum tokens of the similar code, header included."""
BLOCKS = 10
TITLE = "### Function docstring:\n"
_STEP = "    "
_HEADING = ("#", "//")
"""Starts of a heading above retrieved code. Instructions start with a word."""
_p50k: code_tokens.P50kBase | None = None
"""This process's tokenizer. The run sets it before its first strategy."""


def count_in(tokenizer: code_tokens.P50kBase | None) -> None:
    """Set this process's tokenizer for all budgets; None for `ctxcode-1`."""
    global _p50k  # noqa: PLW0603 - strategies count by plain functions
    _p50k = tokenizer


def count(text: str) -> int:
    """Return a text's number of tokens."""
    return code_tokens.count(text) if _p50k is None else _p50k.count(text)


def tokenize(text: str) -> list[str]:
    """Split a text into its tokens."""
    return code_tokens.tokenize(text) if _p50k is None else _p50k.tokenize(text)


def build_infile(text: str, limit: int) -> str:
    """Return the last lines of `text` that have at most `limit` tokens, without counting newlines.

    If even the last nonempty line is too long, return its last `limit` tokens. (InferCom's release returns nothing
    then.)
    """
    lines, _ = _shown_up_to(text)
    start, used = len(lines), 0
    while start:
        used += count(lines[start - 1])
        if used > limit:
            break
        start -= 1
    tail = lines[start:]
    if start and not any(tail):
        tail = [last_tokens(lines[start - 1], limit), *tail]
    return "\n".join(tail)


def _shown_up_to(text: str) -> tuple[list[str], Sequence[int]]:
    """Return `code_lines` of a text that ends at the cursor. The last line is the cursor's, even if empty."""
    lines, rows = code_lines(f"{text}.")
    return [*lines[:-1], lines[-1][:-1]], rows


def infile_block(query: Query, limit: int) -> Block:
    """Return a query's in-file text as a prompt's last block."""
    text = build_infile(query.prefix, limit)
    cut = len(text) < len(query.prefix)
    return Block(kind=BlockKind.INFILE, text=text, places=_shown_lines(query, text), cut=cut)


def first_shown_line(query: Query, limit: int) -> int:
    """Return the 0-based number of the target file's first line that the in-file text contains."""
    return _first_line(query, build_infile(query.prefix, limit))


def _shown_lines(query: Query, text: str) -> tuple[Place, ...]:
    start, end = _first_line(query, text), query.cursor.line + 1
    if query.kind is Kind.FUNCTION and not query.prefix.rpartition("\n")[2].strip():
        end -= 1  # the blank line at the cursor is the body's place, and not a line of the file
    return (Place(path=query.path, start=start, end=end),) if start < end else ()


def _first_line(query: Query, text: str) -> int:
    _, rows = _shown_up_to(query.prefix)
    return max(0, query.cursor.line - rows[-1] + rows[max(0, len(rows) - 1 - text.count("\n"))])


def infile_flags(query: Query, block: Block, *, by_lines: bool = True) -> tuple[str, ...]:
    """Return the in-file text's flags. With `by_lines`, truncation between lines sets no flag."""
    flags = ["empty_current_file"] if not query.prefix.strip() else []
    if block.cut and not (by_lines and _text_of(query).endswith("\n" + block.text)):
        flags.append(TRIMMED)
    return tuple(flags)


def _text_of(query: Query) -> str:
    return "\n".join(_shown_up_to(query.prefix)[0])


def infile_prompt(query: Query, limit: int) -> Prompt:
    """Return the prompt with only the target file up to the cursor, at most `limit` tokens."""
    block = infile_block(query, limit)
    return Prompt(blocks=(block,), flags=infile_flags(query, block))


def fragment(paths: Iterable[str], text: str, places: tuple[Place, ...], score: float) -> Block:
    """Return a block of similar code. Every line is a `#` comment, for Java too.

    Args:
        paths: source files that the block names.
        places: places with exactly this text.
    """
    named = "".join(f"# {path}\n" for path in paths)
    code = "".join(f"# {line}\n" for line in text.splitlines())
    shown = f"# the below code fragment can be found in:\n{named}{RULE}\n{code}{RULE}\n"
    return Block(kind=BlockKind.SIMILAR, text=shown, places=places, score=score)


def lines_before(query: Query, most: int, start: int = 0) -> list[str]:
    """Return up to `most` lines before the cursor line.

    Args:
        start: first line that counts. A stored `context_start` of the sample has priority.
    """
    lines, rows = _shown_up_to(query.prefix)
    # The prefix of an imported sample may begin inside the file.
    first, start = query.cursor.line - rows[-1], query.context_start or start
    shown = [line for line, row in zip(lines, rows, strict=True) if start - first <= row < rows[-1]]
    return shown[-most:]


def unfinished_query(query: Query, size: int, start: int = 0) -> str:
    """Return the search text without a draft: up to `size` lines before the cursor line."""
    return "\n".join(lines_before(query, size, start))


def draft_query(
    query: Query, draft: str, size: int, *, start: int = 0, join: bool = True, first_only: bool = False
) -> str:
    """Return the search text with a draft: half a window of lines before the cursor line, then as many drafted lines.

    Args:
        size: window size in lines. Blank lines are left out, but those before the cursor are counted.
        start: first line that counts, as in `lines_before`.
        join: join the partial cursor line and the first drafted line. Otherwise the partial line is left out.
        first_only: use only the draft's first nonblank line; stripped unless joined, as in InferCom's release.
    """
    drafted = draft.splitlines()
    if first_only:
        drafted = [line if join else line.strip() for line in drafted if line.strip()][:1]
    if join and any(line.strip() for line in drafted):
        drafted[0] = _shown_up_to(query.prefix)[0][-1] + drafted[0]
    drafted = [line for line in drafted if line.strip()][: size // 2]
    return "\n".join([*(line for line in lines_before(query, size // 2, start) if line.strip()), *drafted])


def as_found(hits: Iterable[WindowHit], folder: str = "") -> list[Block]:
    """Return windows as blocks, with `folder` before their paths."""
    return [fragment([folder + place.path for place in h.places], h.text, h.places, h.score) for h in hits]


def extended(hits: Iterable[WindowHit], repo: Repository, size: int, stride: int, folder: str = "") -> list[Block]:
    """Return windows as blocks moved one stride forward, to show what follows each match at its first place."""
    fragments = []
    for hit in hits:
        place = hit.places[0]
        lines, rows = code_lines(repo.read(place.path))
        windows = ((rows[start], rows[end - 1] + 1, end) for start, end in spans(len(lines), size, stride))
        ends = (end for *file_lines, end in windows if file_lines == [place.start, place.end])
        end = min(next(ends, place.end) + stride, len(lines))
        start = max(0, end - size)
        moved = Place(path=place.path, start=rows[start], end=rows[end - 1] + 1)
        paths = [folder + place.path for place in hit.places]
        fragments.append(fragment(paths, "".join(f"{line}\n" for line in lines[start:end]), (moved,), hit.score))
    return fragments


def choose(blocks: Iterable[Block], *, budget: int = BUDGET, most: int = BLOCKS) -> tuple[list[Block], list[Dropped]]:
    """Choose up to `most` blocks that fit the budget. Return them, best last, and the dropped blocks.

    Args:
        blocks: candidates, best first. A block that does not fit is skipped.
        budget: limit in tokens that header and chosen blocks stay below.
    """
    packed: list[Block] = []
    dropped: list[Dropped] = []
    used = HEADER_TOKENS
    for block in blocks:
        tokens = count(block.text) if len(packed) < most else 0
        reason = "limit" if len(packed) >= most else "budget" if used + tokens >= budget else ""
        if reason:
            dropped.append(Dropped.of(block, reason))
            continue
        used += tokens
        packed.append(block)
    return packed[::-1], dropped


def framed(blocks: Sequence[Block], *, empty_header: bool = False) -> list[Block]:
    """Return the section of similar code. Without blocks: its header if `empty_header`, as in InferCom's release."""
    header, gap = (text_block(text) for text in (SIMILAR_HEADER, "\n"))
    return [header, *blocks, gap] if blocks or empty_header else []


def drop_block(blocks: Sequence[Block], gone: int) -> list[Block]:
    """Remove the block at index `gone`, and its section's heading and gaps if the section becomes empty."""
    first, last = gone, gone + 1
    while first and _in_section(blocks[first - 1]):
        first -= 1
    while last < len(blocks) and _in_section(blocks[last]):
        last += 1
    others = any(is_retrieved(blocks[at]) for at in range(first, last) if at != gone)
    head = blocks[first - 1] if first else None
    if others or head is None or head.kind is not BlockKind.TEXT or not head.text.lstrip().startswith(_HEADING):
        return [*blocks[:gone], *blocks[gone + 1 :]]
    return [*blocks[: first - 1], *blocks[last:]]


def _in_section(block: Block) -> bool:
    return is_retrieved(block) or (block.kind is BlockKind.TEXT and not block.text.strip())


def is_retrieved(block: Block) -> bool:
    """Return whether a block contains retrieved code or descriptions of APIs."""
    return block.kind in (BlockKind.SIMILAR, BlockKind.API)


def similar_prompt(
    query: Query,
    candidates: Sequence[Block],
    *,
    budget: int = BUDGET,
    most: int = BLOCKS,
    infile: int = HALF,
    empty_header: bool = False,
) -> Prompt:
    """Return a prompt in the similar-code layout: similar code, an empty line, the in-file text.

    Args:
        candidates: blocks of `fragment`, best first.
        most: maximum number of blocks of similar code.
        infile: maximum tokens of the in-file text.
        empty_header: show the header without blocks too, as InferCom's release does.
    """
    file_block = infile_block(query, infile)
    blocks, dropped = choose(candidates, budget=budget, most=most)
    prompt_blocks = [*framed(blocks, empty_header=empty_header), file_block]
    flags = infile_flags(query, file_block)
    if not candidates:
        flags = (*flags, "no_candidates")
    return Prompt(blocks=tuple(prompt_blocks), dropped=tuple(dropped), flags=flags)


def render(query: Query, context: Context) -> Prompt:
    """Return the prompt for ranked snippets, in the similar-code layout."""
    fragments = []
    for snippet in context.snippets:
        places = (Place(path=snippet.path, start=snippet.start, end=snippet.end),) if snippet.end else ()
        fragments.append(fragment([snippet.path], snippet.text.removesuffix("\n"), places, snippet.score))
    return similar_prompt(query, fragments)


def closing(query: Query, style: str = "paper") -> tuple[Block, Block]:
    """Return a prompt's last two blocks: title, signature with docstring (ICL-strategies paper, Listing of RAG).

    Args:
        style: ``paper`` as printed there, with doubled quotes; ``clean`` as in a Python file.
    """
    return (text_block(TITLE), Block(kind=BlockKind.INFILE, text=target(query, style)))


def target(query: Query, style: str = "paper") -> str:
    """Return signature and docstring, without a final newline.

    Args:
        style: as for `closing`. Java ignores it: the Javadoc comes first, then the signature without its brace.
    """
    signature, doc = query.signature or "", query.docstring or ""
    if not query.language.indented:
        return _javadoc(doc) + signature.rstrip().removesuffix("{").rstrip()
    body = f"{textwrap.indent(doc, _STEP)}\n" if doc else ""
    quotes = f'{_STEP}"""'
    if style == "paper":
        return f'{signature} """\n{quotes}\n{body}{quotes}'
    return f"{signature}\n{quotes}\n{body}{quotes}" if doc else signature


def _javadoc(doc: str) -> str:
    if not doc.strip():
        return ""
    if doc.lstrip().startswith("/*"):
        return f"{doc.strip()}\n"
    # Samples that ctxbench mines store only the text of the Javadoc.
    lines = "".join(f" * {line}".rstrip() + "\n" for line in doc.split("\n"))
    return f"/**\n{lines} */\n"


def stretches(path: str, lines: Iterable[int]) -> tuple[Place, ...]:
    """Return runs of consecutive line numbers as places. `lines` are ascending."""
    runs: list[Place] = []
    for line in lines:
        start = runs.pop().start if runs and runs[-1].end == line else line
        runs.append(Place(path=path, start=start, end=line + 1))
    return tuple(runs)


def filled_stretches(repo: Repository, place: Place) -> tuple[Place, ...]:
    """Return the parts of a place between its blank lines."""
    lines = split_lines(repo.read(place.path))
    filled = (at for at in range(place.start, min(place.end, len(lines))) if lines[at].strip())
    return stretches(place.path, filled)


class RepositoryFiles(Mapping[str, str]):
    """A repository's files as a mapping from path to text. Files are read on access."""

    def __init__(self, repo: Repository) -> None:
        self._read, self._paths = repo.read, dict.fromkeys(repo.files())

    def __getitem__(self, path: str) -> str:
        """Return a file's text."""
        if path not in self._paths:
            raise KeyError(path)
        return self._read(path)

    def __contains__(self, path: object) -> bool:
        """Return whether the file exists."""
        return path in self._paths

    def __iter__(self) -> Iterator[str]:
        """Iterate over the paths, sorted."""
        return iter(self._paths)

    def __len__(self) -> int:
        """Return the number of files."""
        return len(self._paths)


def bare_name(name: str) -> str:
    """Return a function's name without classes and parameter types."""
    return name.partition("(")[0].rpartition(".")[2]


def last_tokens(text: str, most: int) -> str:
    """Return a text's last `most` tokens, possibly from within a line.

    A character that is only partly in these tokens is left out.
    """
    tail = tokenize(text)[-most:] if most > 0 else []
    while tail and count("".join(tail)) > most:
        del tail[0]
    return "".join(tail)


def left_block(query: Query, most: int) -> Block:
    """Return the code before the cursor, at most `most` tokens, as a prompt's last block."""
    text = last_tokens(query.prefix, most)
    return Block(kind=BlockKind.INFILE, text=text, places=_shown_lines(query, text), cut=text != query.prefix)
