"""The command line: parse, call, print. A file a command; `main` holds the table and the error handler."""
