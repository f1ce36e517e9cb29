"""Context engines: external programs that index a repository and answer queries with places.

An engine runs in a persistent box of the sandbox, on files without answers, and returns only places. ctxbench then
reads the text at these places itself, without hidden lines.
"""
