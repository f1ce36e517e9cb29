"""The baselines of the ICL-strategies paper, each a port of the method's released program.

If a program chooses among several answers, the strategy asks the model for the earlier ones and returns the last
prompt. The harness makes the last call and cuts the function out of the answer.
"""

from __future__ import annotations

from ctxbench.strategies.baselines.cocogen import cocogen
from ctxbench.strategies.baselines.reacc import reacc
from ctxbench.strategies.baselines.rlcoder import repocoder_fn, rlcoder
from ctxbench.strategies.baselines.selfcollab import selfcollab

__all__ = ["cocogen", "reacc", "repocoder_fn", "rlcoder", "selfcollab"]
