"""The dashboard: the stored runs as web pages and as one report file. It runs nothing.

Its pages only read the store. `ctxbench runs`, which lists the same runs, also names and deletes them.
"""
