"""What a context brought and what it cost, and what a completion made up: static measures, no model asked.

Definitions, ranges and limits are in docs/diagnostics.md. They are stored beside context gain, whatever the metric
profile, and rank nothing unless asked to.
"""

from ctxbench.harness.diagnostics.measures import HALLUCINATED, MADE_UP, RECALL, WASTE, Diagnostics

__all__ = ["HALLUCINATED", "MADE_UP", "RECALL", "WASTE", "Diagnostics"]
