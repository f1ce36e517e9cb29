"""The recipes of the ICL family, and the options that a run can set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from ctxbench.bench.parameters import AtLeast


@dataclass(frozen=True, slots=True, kw_only=True)
class IclRecipe:
    """One row of the family's table."""

    blocks: Literal["none", "function", "scope", "file"] = "none"
    """The part of a retrieved function's file that is shown."""
    steps: bool = False
    """Whether the model plans first, and retrieval runs for each step."""
    infile: bool = False
    """Whether the current file comes last."""
    documents: Literal["no", "shown", "planned"] = "no"
    """Whether documentation of files is shown in place of code, or only to the model that plans."""
    instruction: Literal["A", "B", "direct"] = "B"

    def without_file(self) -> IclRecipe:
        """Return what it falls back to where the current file holds no function."""
        instruction: Literal["A", "B"] = "A" if self.blocks in ("function", "scope") and not self.steps else "B"
        if self.blocks == "none":
            return IclRecipe(blocks="function", instruction="A")
        return IclRecipe(blocks=self.blocks, steps=self.steps, instruction=instruction)


@dataclass(frozen=True, slots=True, kw_only=True)
class IclOptions:
    """The parameters of the family (see `MEANING`); each strategy has those that mean something to it."""

    encoder: str = "minilm"
    k: Annotated[int, AtLeast(1)] = 1
    instruction: Literal["default", "A", "B"] = "default"
    target_style: Literal["paper", "clean"] = "paper"
    show_paths: bool = False
    max_steps: Annotated[int, AtLeast(1)] = 3
    extra_files: Annotated[int, AtLeast(0)] = 0
    keep_nonfunction_current: bool = True
    retrieve_from_current: Literal["auto", "yes", "no"] = "auto"
    strip_license: bool = True
    window: Annotated[int, AtLeast(0)] = 0
    overflow: Literal["trim", "fail"] = "trim"
    trim_mode: Literal["around", "tail"] = "around"


MEANING = {
    "encoder": "What compares queries with functions: ``bm25``, ``jaccard``, or an encoder's spec.",
    "k": "How many functions or files are retrieved; for steps, of each.",
    "instruction": "Which printed instruction; ``default`` is the strategy's own.",
    "target_style": "How the closing section shows a Python docstring: as printed, quotes doubled, or as in a file.",
    "show_paths": "Name the file in each block's header.",
    "max_steps": "How many steps the model is asked for at most.",
    "extra_files": "How many files besides the current one are documented.",
    "keep_nonfunction_current": "Show a current file without functions, if not blank, after what is retrieved instead.",
    "retrieve_from_current": "Whether functions of the current file may be found; ``auto``: unless the file is shown.",
    "strip_license": "Take the comment at the top of a file out of its scopes.",
    "window": "Tokens that the model takes, its answer's 1024 included; 0: no limit.",
    "overflow": "What becomes of a prompt over the window: cut, or failed.",
    "trim_mode": "What is cut of a retrieved file first: what is far from the function found, or its end.",
}

_ALWAYS = ("instruction", "target_style", "window", "overflow")
_BLOCKS = ("show_paths", "trim_mode")
_RETRIEVAL = ("encoder", "k", "retrieve_from_current")


def parameters(recipe: IclRecipe) -> tuple[str, ...]:
    """Return the names of the choices that a strategy has, in the order of `IclOptions`."""
    names = set(_ALWAYS)
    if recipe.blocks != "none" or recipe.infile or recipe.documents == "shown":
        names.update(_BLOCKS)
    if recipe.blocks != "none" or recipe.infile:
        # The Infile strategies retrieve where the current file is empty.
        names.update(_RETRIEVAL)
    if recipe.blocks == "scope":
        names.add("strip_license")
    if recipe.infile:
        names.add("keep_nonfunction_current")
    if recipe.steps:
        names.add("max_steps")
    if recipe.documents != "no":
        names.update(("encoder", "extra_files"))
    return tuple(name for name in IclOptions.__dataclass_fields__ if name in names)


def documentation(recipe: IclRecipe, summary: str) -> str:
    """Return the docstring of a strategy."""
    arguments = "".join(f"    {name}: {MEANING[name]}\n" for name in parameters(recipe))
    return f"{summary}\n\nFrom the ICL-strategies paper; `docs/icl.md` says what is ours.\n\nArgs:\n{arguments}"
