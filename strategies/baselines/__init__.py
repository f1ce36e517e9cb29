"""The baselines that the ICL-strategies paper compares with, each a port of what its released program does.

Where a program's last answer is one of several, the strategy asks the model for those before it and returns the
last prompt: the harness makes the last call, and cuts the function out of the answer.
"""

from __future__ import annotations

from ctxbench.strategies.baselines.cocogen import cocogen
from ctxbench.strategies.baselines.reacc import reacc
from ctxbench.strategies.baselines.rlcoder import repocoder_fn, rlcoder
from ctxbench.strategies.baselines.selfcollab import selfcollab

__all__ = ["cocogen", "reacc", "repocoder_fn", "rlcoder", "selfcollab"]
