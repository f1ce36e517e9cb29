"""The command line: parse options, call the harness, print. `main` lists the commands."""
