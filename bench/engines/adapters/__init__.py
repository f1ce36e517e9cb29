"""Engines that ship with ctxbench. Each file runs in a box and is never imported here."""
