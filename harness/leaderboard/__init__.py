"""Ranks runs, with intervals and paired tests over repositories. Callers read the store and print the boards."""

from ctxbench.harness.leaderboard.rows import Board, Group, Row
from ctxbench.harness.leaderboard.table import board

__all__ = ["Board", "Group", "Row", "board"]
