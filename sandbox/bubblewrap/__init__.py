"""Boxes made of the kernel's own parts by bwrap: namespaces, read-only mounts, control groups where we are root."""

from __future__ import annotations

from ctxbench.sandbox.bubblewrap.backend import BubblewrapSandbox

__all__ = ["BubblewrapSandbox"]
