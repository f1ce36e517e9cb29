"""A completion of a function sample, judged by the repository's own tests in a sandbox."""
