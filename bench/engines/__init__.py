"""Engines: external programs, in boxes or on servers, that index a repository and answer queries with places in it."""
