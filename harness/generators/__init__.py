"""Generators, which run models. This package exports the interface for authors of generators."""

from ctxbench.bench.spec import Shorthand
from ctxbench.harness.generators.base import Capabilities, Generator, Request, Response, TooLong, generator

__all__ = ["Capabilities", "Generator", "Request", "Response", "Shorthand", "TooLong", "generator"]
