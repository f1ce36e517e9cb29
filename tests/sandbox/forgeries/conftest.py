"""Fixtures for the real back ends."""

from tests.helpers.sandboxes import bubblewrap_sandbox, docker_sandbox, real_sandbox

__all__ = ["bubblewrap_sandbox", "docker_sandbox", "real_sandbox"]
