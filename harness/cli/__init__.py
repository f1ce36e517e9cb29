"""The command line: parse, call, print. A file for each command; `main` holds the table and the error handler."""
