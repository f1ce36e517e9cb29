"""The command line: parse, call, print. A file a noun; `main` holds the table and the error handler."""
