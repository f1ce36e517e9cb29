"""Ranks stored runs, with intervals and paired tests over repositories. Reads no store and prints nothing."""

from ctxbench.harness.leaderboard.rows import Board, Group, Row
from ctxbench.harness.leaderboard.table import board

__all__ = ["Board", "Group", "Row", "board"]
