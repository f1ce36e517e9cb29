"""One module a change; a released one is never edited."""
