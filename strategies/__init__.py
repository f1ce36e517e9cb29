"""The one import a researcher needs: ``from strategies import Context, Query, Repository, Snippet, strategy``."""

from bench.repository import Repository
from bench.types import Kind, Language, Place, Query
from bench.windows import WindowHit
from strategies.api import Block, BlockKind, Context, Dropped, Generate, Prompt, Snippet
from strategies.parameters import AtLeast
from strategies.registry import BoundStrategy, resolve, strategy

__all__ = [
    "AtLeast",
    "Block",
    "BlockKind",
    "BoundStrategy",
    "Context",
    "Dropped",
    "Generate",
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
