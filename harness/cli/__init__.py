"""The command line: parse options, call the harness, print. Each file is a noun; `main` lists the commands."""
