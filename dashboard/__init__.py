"""The dashboard: the stored runs as web pages and as one report file.

Its pages only read the store and run nothing. `ctxbench runs` also names and deletes runs.
"""
