"""The dashboard: stored runs as web pages and report files. Pages only read the store."""
