"""Engines that cheat or break, each in its own way, and an honest one. They run only in boxes."""

import contextlib
import json
import os
import socket
import sys
import time
from pathlib import Path

OTHER = "shop/rates.py"
TOLD: list[str] = []
"""Kept in the module, apart from an object's saved state."""


class Honest:
    """Answers with the first lines of another file."""

    def __init__(self, *, start: int = 0, again: bool = True) -> None:
        self.start = start

    def index(self, root):
        self.root = root
        return "honest", "1.0"

    def search(self, text, path, line, top):
        return [(OTHER, self.start, self.start + 2, 1.0)]


class Remembers(Honest):
    """Keeps every text that it saw of a file. Ranks by the line at the cursor if it knows that line."""

    def index(self, root):
        self.root, self.seen = root, {}
        self._look()
        return "remembers", "1"

    def update(self, paths):
        self._look()

    def _look(self):
        for file in Path(self.root).rglob("*.py"):
            name = file.relative_to(self.root).as_posix()
            self.seen.setdefault(name, []).append(file.read_text())

    def search(self, text, path, line, top):
        self.seen.setdefault(path, []).append(text)
        longest = max((version.split("\n") for version in self.seen[path]), key=len)
        answer = longest[line] if line < len(longest) else ""
        rates = (Path(self.root) / OTHER).read_text().split("\n")
        for number, row in enumerate(rates):
            name = row.removeprefix("def ").partition("(")[0]
            if row.startswith("def ") and f"{name}(" in answer:
                return [(OTHER, number, number + 1, 1.0)]
        return [(OTHER, 0, 1, 1.0)]


class Outside(Honest):
    """Reads files outside its tree, and answers with a place there."""

    def search(self, text, path, line, top):
        found = [str(p) for p in Path("/").glob("*/*/references.jsonl")]
        found += [str(p) for root in ("/root", "/home", "/tmp") for p in Path(root).rglob("references.jsonl")]
        return [("../" * 3 + (found[0] if found else "etc/passwd"), 0, 1, 1.0)]


class Text(Honest):
    """Answers with a place and text."""

    def search(self, text, path, line, top):
        return [(OTHER, 0, 2, 1.0, "apply the tax of shop0")]


class Words(Honest):
    """Answers with words instead of places."""

    def search(self, text, path, line, top):
        return "look at rates"


class Absolute(Honest):
    """Answers with absolute paths."""

    def search(self, text, path, line, top):
        return [(f"{self.root}/{OTHER}", 0, 2, 1.0)]


class Behind(Honest):
    """Answers with places of the target file at and after the cursor."""

    def search(self, text, path, line, top):
        return [
            (path, line, line + 5, 3.0),
            (path, line + 1, line + 2, 2.0),
            (path, 0, 10_000, 1.0),
            (OTHER, 0, 2, 0.5),
        ]


class Hangs(Honest):
    """Never answers."""

    def search(self, text, path, line, top):
        time.sleep(1000)


class Floods(Honest):
    """Returns an answer that is too long."""

    def search(self, text, path, line, top):
        return [(OTHER, 0, 2, 1.0)] * 1_000_000


class Prints(Honest):
    """Prints too much output, also in the form of answers. Its own answer is honest."""

    def search(self, text, path, line, top):
        for _ in range(200):
            print('{"answer": [["shop/pay.py", 0, 99, 9.0]]}' * 100, flush=True)
        sys.stderr.write("x" * 1_000_000)
        return super().search(text, path, line, top)


class Dies(Honest):
    """Ends its process during a search."""

    def search(self, text, path, line, top):
        print("good bye", flush=True)
        os._exit(7)


class TooBig(Honest):
    """Ends its process while indexing one of the first three repositories."""

    def index(self, root):
        rates = (Path(root) / OTHER).read_text()
        if any(f"zq_amount * {repo}\n" in rates for repo in range(3)):
            os._exit(7)
        return super().index(root)


class Raises(Honest):
    """Raises an ordinary exception."""

    def search(self, text, path, line, top):
        raise KeyError("no such symbol")


class RaisesOddly(Honest):
    """Raises an exception whose text is unsafe for a terminal."""

    def search(self, text, path, line, top):
        raise ValueError("half \ud800 \x1b[31mred\nsecond line")


class Forks(Honest):
    """Forks until it cannot, and leaves its child processes running."""

    def search(self, text, path, line, top):
        children = 0
        while children < 5000:
            try:
                if os.fork() == 0:
                    time.sleep(1000)
                    os._exit(0)
            except OSError:
                break
            children += 1
        return [(OTHER, 0, 2, 1.0)] if children < 5000 else [(OTHER, 4, 6, 1.0)]


class CallsOut(Honest):
    """Tries to open network connections."""

    def search(self, text, path, line, top):
        reached = 0
        for address in (("192.0.2.1", 80), ("1.1.1.1", 53), ("127.0.0.1", 22)):
            try:
                socket.create_connection(address, timeout=1).close()
                reached += 1
            except OSError:
                pass
        return [(OTHER, 4 if reached else 0, 6 if reached else 2, 1.0)]


class Numbers(Honest):
    """Answers with a score that is not a number."""

    def search(self, text, path, line, top):
        return [(OTHER, 0, 2, float("nan"))]


class Backwards(Honest):
    """Answers with invalid lines: the end comes before the start."""

    def search(self, text, path, line, top):
        return [(OTHER, 5, 2, 1.0)]


class Nameless(Honest):
    """Returns no name and no version."""

    def index(self, root):
        return None


class Carries(Remembers):
    """Leaves everything it saw wherever it can, and looks there for what another box has left."""

    saves = True

    def __init__(self):
        self.seen, self.root = {}, "."

    def __setstate__(self, state):
        vars(self).update(state)
        self._exchange()

    def _look(self):
        super()._look()
        self._exchange()

    def search(self, text, path, line, top):
        self.seen.setdefault(path, []).append(text)
        self._exchange()
        return super().search(text, path, line, top)

    def _exchange(self):
        for data in self._left():
            with contextlib.suppress(ValueError, AttributeError):
                for path, texts in json.loads(data).items():
                    self.seen[path] = [*{*self.seen.get(path, []), *texts}]
        data = json.dumps(self.seen)
        TOLD.append(data)
        os.environ["SEEN"] = data[-100_000:]
        for folder in self._folders():
            with contextlib.suppress(OSError):
                Path(folder, ".seen").write_text(data)
        with contextlib.suppress(OSError):
            # A child process stays and sends the data to every client.
            server = socket.socket(socket.AF_UNIX)
            server.bind("\0seen")
            server.listen()
            port = socket.create_server(("127.0.0.1", 8765))
            if os.fork() == 0:
                os.setsid()
                while True:
                    for listener in (server, port):
                        listener.settimeout(0.05)
                        with contextlib.suppress(OSError):
                            listener.accept()[0].sendall(data.encode())

    def _folders(self):
        places = ("/dev/shm", "/tmp", "/var/tmp", "/work", "/work/tmp", "/ctxbench/lib", "/ctxbench/site", "/", "..")
        return [self.root, Path.home(), *places]

    def _left(self):
        yield from TOLD
        yield os.environ.get("SEEN", "")
        for folder in self._folders():
            with contextlib.suppress(OSError):
                yield from (file.read_text() for file in Path(folder).glob(".seen*"))
        for family, address in ((socket.AF_UNIX, "\0seen"), (socket.AF_INET, ("127.0.0.1", 8765))):
            with contextlib.suppress(OSError), socket.socket(family) as asked:
                asked.settimeout(1)
                asked.connect(address)
                with asked.makefile() as words:
                    yield words.read()
