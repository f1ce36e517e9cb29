"""The command line. `main` lists the commands; each module implements related ones."""
