"""Prompts for the built-in generator, in the layouts of the line strategies."""

from ctxbench.strategies.api import Block, BlockKind, Prompt

RULE = "# " + "-" * 50


def similar(*windows: tuple[str, str]) -> Block:
    """Return a similar-code block of (path, code) windows."""
    parts = [f"# Here are some relevant code fragments from other files of the repo:\n{RULE}\n"]
    for path, code in windows:
        marked = "".join(f"# {line}\n" for line in code.split("\n"))
        parts.append(f"# the below code fragment can be found in:\n# {path}\n{RULE}\n{marked}{RULE}\n")
    return Block(kind=BlockKind.SIMILAR, text="".join(parts) + "\n")


def api(path: str, *lines: str) -> Block:
    head = f"# Here are some APIs that may be used from other files\n# {path}\n"
    return Block(kind=BlockKind.API, text=head + "".join(f"# {line}\n" for line in lines) + "\n\n")


def prompt(infile: str, *blocks: Block) -> Prompt:
    return Prompt(blocks=(*blocks, Block(kind=BlockKind.INFILE, text=infile)))
