"""The dashboard: the stored runs as web pages and as one report file. It runs nothing.

Its pages only read the store. `ctxbench runs` lists the same runs, and also names and deletes them.
"""
