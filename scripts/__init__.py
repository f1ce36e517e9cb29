"""Programs for maintainers; nothing here is needed to use ctxbench."""
