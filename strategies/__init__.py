"""The one import a researcher needs: ``from strategies import Context, Query, Repository, Snippet, strategy``."""

from bench.repository import Repository
from bench.retrieval.types import Hit
from bench.types import Kind, Language, Place, Query
from bench.windows import WindowHit
from strategies.api import Block, BlockKind, Context, Dropped, Execute, Execution, Generate, Prompt, Snippet
from strategies.parameters import AtLeast, Inner
from strategies.registry import BoundStrategy, resolve, strategy

__all__ = [
    "AtLeast",
    "Block",
    "BlockKind",
    "BoundStrategy",
    "Context",
    "Dropped",
    "Execute",
    "Execution",
    "Generate",
    "Hit",
    "Inner",
    "Kind",
    "Language",
    "Place",
    "Prompt",
    "Query",
    "Repository",
    "Snippet",
    "WindowHit",
    "resolve",
    "strategy",
]
