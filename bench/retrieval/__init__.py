"""Retrieval: units of a repository's files, and rankers that compare them with a query."""
