"""Engines that come with ctxbench.

Each file runs in a box, with what its ``# /// script`` comment names; none is imported here.
"""
