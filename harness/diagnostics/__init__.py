"""Static diagnostics: the use and cost of a context, and the names that a completion invents. No model is asked.

Definitions, ranges and limits are in docs/diagnostics.md. They are stored beside context gain, whatever the metric
profile, and rank nothing unless asked to.
"""

from ctxbench.harness.diagnostics.measures import HALLUCINATED, MADE_UP, RECALL, WASTE, Diagnostics

__all__ = ["HALLUCINATED", "MADE_UP", "RECALL", "WASTE", "Diagnostics"]
