"""Boxes for untrusted code, one job at a time; knows nothing of samples, models or verdicts.

    environment ──prepare──> image ──open──> pool ──run(job)──> outcome

Back ends: ``docker`` and ``bubblewrap``. There is no other way to run such code.
"""
