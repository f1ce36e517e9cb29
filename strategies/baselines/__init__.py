"""Baselines of the ICL-strategies paper, ported from their released programs."""

from __future__ import annotations

from ctxbench.strategies.baselines.cocogen import cocogen
from ctxbench.strategies.baselines.reacc import reacc
from ctxbench.strategies.baselines.rlcoder import repocoder_fn, rlcoder
from ctxbench.strategies.baselines.selfcollab import selfcollab

__all__ = ["cocogen", "reacc", "repocoder_fn", "rlcoder", "selfcollab"]
