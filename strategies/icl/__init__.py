"""Strategies of the ICL-strategies paper: write a function from its signature, docstring and retrieved context."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_type_hints

from ctxbench.bench.parameters import AtLeast, EncoderSpec
from ctxbench.bench.repository import Repository
from ctxbench.bench.retrieval.units import Hit
from ctxbench.bench.types import Kind, Query
from ctxbench.strategies.api import Block, BlockKind, Generate, Prompt
from ctxbench.strategies.icl.prompts import (
    DOCUMENTATION_TOKENS,
    STEPS_TOKENS,
    ask_for_documentation,
    ask_for_steps,
    parse_steps,
    plain_documentation,
    plain_steps,
    render,
)
from ctxbench.strategies.icl.retrieved import Finder, shown_code
from ctxbench.strategies.icl.source import FileLines, SourceFile, read_file
from ctxbench.strategies.registry import strategy

MEANING = {
    "encoder": "How queries are compared with functions: ``bm25``, ``jaccard``, or an encoder's spec.",
    "k": "How many functions or files are retrieved, per step if the model plans.",
    "instruction": "Which of the paper's instructions to use; ``default`` is the strategy's own.",
    "target_style": "How the prompt's end shows a Python docstring: as in the paper, quotes doubled, or as in a file.",
    "max_steps": "Maximum number of steps that the model is asked for.",
    "extra_files": "How many files besides the current one are documented.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class IclOptions:
    """Parameters of the ICL strategies (see `MEANING`). Each strategy uses those that apply to it."""

    encoder: EncoderSpec = "minilm"
    k: Annotated[int, AtLeast(1)] = 1
    instruction: Literal["default", "A", "B"] = "default"
    target_style: Literal["paper", "clean"] = "paper"
    max_steps: Annotated[int, AtLeast(1)] = 3
    extra_files: Annotated[int, AtLeast(0)] = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class IclRecipe:
    """Settings of an ICL strategy: what it shows to the model, and what the model writes before its answer."""

    blocks: Literal["none", "function", "scope", "file"] = "none"
    steps: bool = False
    """Whether the model plans first, and each step is a search query."""
    infile: bool = False
    documents: Literal["no", "shown", "planned"] = "no"
    """Use of model-written documentation: ``no``, ``shown`` instead of code, or ``planned`` (only for the plan)."""
    extra_files: int = 0
    """Default number of files, besides the current one, for which the model writes documentation."""

    @property
    def instruction(self) -> str:
        """Key in `INSTRUCTIONS` of the instruction that this strategy uses by default."""
        if self.documents != "no" or (self.blocks in ("function", "scope") and not self.steps):
            return "A"
        return "B" if self.blocks != "none" or self.infile else "direct"


def parameters(recipe: IclRecipe) -> tuple[str, ...]:
    """Return a strategy's parameter names, in the order of `IclOptions`."""
    names = {"instruction", "target_style"}
    if recipe.blocks != "none" or recipe.infile:
        # If the current file is empty, the Infile strategies retrieve.
        names.update(("encoder", "k"))
    if recipe.steps:
        names.add("max_steps")
    if recipe.documents != "no":
        names.update(("encoder", "extra_files"))
    return tuple(name for name in IclOptions.__dataclass_fields__ if name in names)


class PromptBuilder:
    """Builds one sample's prompt."""

    def __init__(self, name: str, recipe: IclRecipe, choices: IclOptions, query: Query, repo: Repository) -> None:
        """Read the current file. If it has no function, fall back to another recipe."""
        self.query, self.repo, self.choices, self.recipe = query, repo, choices, recipe
        self.flags: list[str] = []
        self.extra = choices.extra_files
        self.current = read_file(repo, query.path, query)
        empty = not self.current.functions
        if empty and (recipe.infile or recipe.documents == "shown"):
            self.flags.append("empty_current_file")
            if recipe.infile:
                other = name.replace("infile_", "") if "infile_" in name else "icl.rag"
                self.recipe = _ROWS[other][1]
                self.flags.append(f"fallback:{other}")
            elif not self.extra:
                self.extra = 1
                self.flags.append("fallback:icl.selfdoc")
        self.file = self.current.lines if recipe.infile and not self.current.lines.blank else None
        if not self.current.exact:
            self.flags.append("parse_failed")
        self.finder = Finder(query, repo, encoder=choices.encoder, current=self.file is None)

    @property
    def question(self) -> str:
        """The search query: signature, newline, docstring. The ICL-strategies paper does not state how to join them."""
        return f"{self.query.signature or ''}\n{self.query.docstring or ''}".strip()

    def prompt(self, generate: Generate | None) -> Prompt:
        """Return the prompt, after asking the model for documentation and steps if the recipe needs them."""
        if self.recipe.documents == "shown" and generate is not None:
            return self._laid_out(self._documents(generate), ())
        if not self.recipe.steps or generate is None:
            return self._laid_out(self._code(self._ranked()), ())
        planned = self._steps(generate)
        if not planned:
            self.recipe = dataclasses.replace(self.recipe, blocks="function", steps=False)
            self.flags.append("fallback:icl.rag")
            return self._laid_out(self._code(self._ranked()), ())
        # The query is title and sentence, without the asterisks.
        questions = [step.replace("*", "") for step in planned]
        hits = [hit for question in questions for hit in self.finder.functions(question, self.choices.k)]
        return self._laid_out(self._code(hits), planned)

    def _ranked(self) -> list[Hit]:
        if self.recipe.blocks == "none" or not self.question:
            return []
        find = self.finder.in_files if self.recipe.blocks == "file" else self.finder.functions
        return find(self.question, self.choices.k)

    def _code(self, hits: Sequence[Hit]) -> list[Block]:
        if not hits and self.recipe.blocks != "none":
            self.flags.append("no_candidates")
        blocks = self.finder.show(hits, self.recipe.blocks)
        return blocks if self.file is None else [*blocks, shown_code(self.query.path, self.file)]

    def _laid_out(self, sections: Sequence[Block], planned: Sequence[str]) -> Prompt:
        requested = self.choices.instruction
        instruction = self.recipe.instruction if requested == "default" else requested
        prompt = render(
            self.query,
            sections,
            instruction=instruction if sections or self.recipe.instruction == "direct" else "direct",
            steps=planned,
            style=self.choices.target_style,
        )
        return prompt.flagged(*self.flags, *self.finder.flags)

    def _steps(self, generate: Generate) -> tuple[str, ...]:
        if not generate.instructs:
            self.flags.append("plain_steps")
            return plain_steps(self.query, self.choices.max_steps)
        documentation: list[Block] = []
        if self.recipe.documents == "planned":
            documentation = self._documents(generate)
        prompt = ask_for_steps(self.query, self.choices.max_steps, self.choices.target_style, documentation)
        return parse_steps(generate(prompt, role="steps", max_tokens=STEPS_TOKENS))

    def _documents(self, generate: Generate) -> list[Block]:
        hits: list[Hit] = []
        if self.extra and self.question:
            hits = self.finder.in_files(self.question, self.extra, without=(self.query.path,))
        if self.extra and not hits:
            self.flags.append("no_candidates")
        documentation = [self._document(self.finder.file(hit.place.path), hit, generate) for hit in hits]
        if self.current.functions:
            documentation.append(self._document(self.current, None, generate))
        return [block for block in documentation if block is not None]

    def _document(self, file: SourceFile, hit: Hit | None, generate: Generate) -> Block | None:
        if generate.instructs:
            text = generate(ask_for_documentation(file), role="documentation", max_tokens=DOCUMENTATION_TOKENS).strip()
        else:
            self.flags.append("plain_documentation")
            text = plain_documentation(file)
        if not text:
            self.flags.append("empty_documentation")
            return None
        score = None if hit is None else hit.score
        return Block(
            kind=BlockKind.API, text=FileLines.whole(text).text, places=file.lines.places(file.path), score=score
        )


_RETRIEVING: dict[str, tuple[str, IclRecipe]] = {
    "icl.rag": ("Show the function that is most similar to the signature and docstring.", IclRecipe(blocks="function")),
    "icl.rag_s": (
        "Show the function most similar to the signature and docstring, in its file without the other functions.",
        IclRecipe(blocks="scope"),
    ),
    "icl.filerag": (
        "Show the whole file of the function that is most similar to the signature and docstring.",
        IclRecipe(blocks="file"),
    ),
    "icl.ragot": (
        "Let the model plan; show the function that is most similar to each step.",
        IclRecipe(blocks="function", steps=True),
    ),
    "icl.ragot_s": (
        "Let the model plan; show the function most similar to each step, in its file without the other functions.",
        IclRecipe(blocks="scope", steps=True),
    ),
    "icl.fileragot": (
        "Let the model plan; show the whole file of the function that is most similar to each step.",
        IclRecipe(blocks="file", steps=True),
    ),
}
_ROWS: dict[str, tuple[str, IclRecipe]] = {
    "icl.direct": ("Show the signature and the docstring alone.", IclRecipe()),
    **_RETRIEVING,
    "icl.infile": ("Show the current file without the function.", IclRecipe(infile=True)),
    **{
        name.replace("icl.", "icl.infile_"): (
            f"Show what {name} shows, then the current file.",
            dataclasses.replace(recipe, infile=True),
        )
        for name, (_, recipe) in _RETRIEVING.items()
    },
    "icl.selfdoc": (
        "Show the model's documentation of the current file and of similar files, without their code.",
        IclRecipe(documents="shown"),
    ),
    "icl.selfdoc_ragot_s": (
        "Let the model document files and plan with the documentation; show what icl.ragot_s shows.",
        IclRecipe(blocks="scope", steps=True, documents="planned", extra_files=1),
    ),
}


def _register(name: str, summary: str, recipe: IclRecipe) -> None:
    defaults = IclOptions(extra_files=recipe.extra_files)

    def quiet(query: Query, repo: Repository, **arguments: Any) -> Prompt:
        return asking(query, repo, None, **arguments)

    def asking(query: Query, repo: Repository, generate: Generate | None, **arguments: Any) -> Prompt:
        choices = dataclasses.replace(defaults, **arguments)
        return PromptBuilder(name, recipe, choices, query, repo).prompt(generate)

    function: Any = asking if recipe.steps or recipe.documents != "no" else quiet
    options, hints = parameters(recipe), get_type_hints(IclOptions, include_extras=True)
    *fixed, _ = inspect.signature(function).parameters.values()
    # The registry reads the parameters off the signature.
    kind = inspect.Parameter.KEYWORD_ONLY
    keywords = [
        inspect.Parameter(option, kind, default=getattr(defaults, option), annotation=hints[option])
        for option in options
    ]
    function.__signature__ = inspect.Signature([*fixed, *keywords])
    meanings = "".join(f"    {option}: {MEANING[option]}\n" for option in options)
    function.__doc__ = (
        f"{summary}\n\nFrom the ICL-strategies paper; `docs/strategies.md` describes it.\n\nArgs:\n{meanings}"
    )
    strategy(name, kinds=(Kind.FUNCTION,))(function)


for _name, (_summary, _recipe) in _ROWS.items():
    _register(_name, _summary, _recipe)
