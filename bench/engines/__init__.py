"""Context engines: external programs that index a repository and answer queries with places, in persistent boxes."""
