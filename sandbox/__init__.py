"""Runs untrusted code in boxes, one job at a time in each. Knows nothing of samples, models or verdicts.

    environment ──prepare──> image ──open──> pool ──run(job)──> outcome

The back ends are ``docker`` and ``bubblewrap``. Both isolate the code.
"""
