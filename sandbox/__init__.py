"""The room for running untrusted code in isolation; knows nothing of samples or models.

Nothing model-written is run by ctxbench yet: line samples are scored as text.
"""
