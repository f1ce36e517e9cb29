"""CoderEval's official image in small: its layout and its kinds of tests, with projects of our own."""

from __future__ import annotations

import io
import json
import tarfile
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ctxbench.sandbox.docker.engine import Client

PRICES = textwrap.dedent('''\
    """Prices of things."""

    import math


    class Cart:
        def __init__(self, prices):
            self.prices = prices

        def total(self, discount=0):
            """Return the sum of all prices.

            A discount is taken off the whole.
            """
            return sum(self.prices) - discount

        def count(self):
            return len(self.prices)


    def rounded(price, step):
        """Return a price rounded up to whole steps."""
        return math.ceil(price / step) * step


    def keys(prices):
        """Return the names of all prices."""
        return list(prices)
''')
"""The file `mini/prices.py` of `owner/mini`."""
WORDS = textwrap.dedent('''\
    def longest(words):
        """Return the longest of some words."""
        return max(words, key=len)
''')
"""A file of a project that the image has not: its test is standalone."""
TEXT = textwrap.dedent("""\
    package org.mini;

    public class Text {
        private static final String MARK = "!";

        /**
         * Returns a text in capitals with a mark.
         */
        @Deprecated
        private static String shout(String text) {
            return marked(text.toUpperCase());
        }

        /**
         * Returns how often a letter is in a text.
         */
        public static int count(final String text, char letter) {
            int found = 0;
            for (char each : text.toCharArray()) {
                found += each == letter ? 1 : 0;
            }
            return found;
        }

        static String marked(String text) {
            return Helper.twice(text) + MARK;
        }
    }
""")
"""The file `Text.java` of the project `mini-master`."""
_HELPER = """\
package org.mini;

class Helper {
    static String twice(String text) {
        return text + text;
    }
}
"""
_SHOUT = """\
package org.mini;

public class Text_shout {
    public static void main(String[] args) {
        System.out.println(Text.shout("a").equals("AA!") && Text.MARK.length() == 1);
    }
}
"""
_COUNT = """\
package org.mini;

public class Text_count {
    public static void main(String[] args) {
        System.out.println(Text.count("banana", 'a') == 3);
    }
}
"""
_DOCKERFILE = """\
FROM {base}
USER 0:0
COPY builds /home/travis/builds
RUN cd /home/travis/builds/java/mini-master && mkdir -p target/classes && cp src/main/java/org/mini/Text.java /tmp && \\
    sed -i 's/private /public /' src/main/java/org/mini/Text.java && \\
    javac -encoding utf8 -d target/classes $(find src -name '*.java') && mv /tmp/Text.java src/main/java/org/mini
ENTRYPOINT []
"""
"""Tests of private methods are compiled against the file that the harness makes public."""


def harness(source: str, check: str, path: str = "/home/travis/builds/repos/owner---mini/") -> str:
    """Return a test file as the harness keeps it: a copy of the source, and a check at its end."""
    head = f"import sys\nsys.path.append({path!r})\n"
    return f"{head}{source}\n\nif __name__ == '__main__':\n{textwrap.indent(check, '    ')}"


def wrong(condition: str) -> str:
    """Return a check that raises unless something holds."""
    return f"if not ({condition}):\n    raise Exception('Result not True!!!')\n"


def files() -> dict[str, str]:
    """Return what lies in `/home/travis/builds` of the image, path -> text."""
    mini = "repos/owner---mini/mini"
    java = "java/mini-master/src/main/java/org/mini"
    return {
        f"{mini}/__init__.py": "",
        f"{mini}/prices.py": PRICES,
        f"{mini}/names.py": "NAME = 'mini'\n",
        # It imports from its own project, as those of many tasks do.
        f"{mini}/prices_total_passk_validte.py": harness(
            "from mini.names import NAME\n" + PRICES, wrong("NAME == 'mini' and Cart([1, 2]).total(1) == 2")
        ),
        f"{mini}/prices_rounded_passk_validte.py": harness(PRICES, wrong("rounded(7, 5) == 10")),
        # As weak as some are: an empty body passes it.
        f"{mini}/prices_names_of_passk_validte.py": harness(PRICES, "keys({'a': 1})\n"),
        "repos/standalone/alone-words-longest.py": harness(WORDS, wrong("longest(['a', 'bb']) == 'bb'")),
        f"{java}/Text.java": TEXT,
        f"{java}/Helper.java": _HELPER,
        f"{java}/Text_shout.java": _SHOUT,
        f"{java}/Text_count.java": _COUNT,
        "CoderEval4Python.json": "not read",
    }


def build(client: Client, base: str, tag: str) -> str:
    """Build the image on one with Python and a JDK; return its id."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as tar:
        texts = {f"builds/{path}": text for path, text in files().items()}
        for path, text in {**texts, "Dockerfile": _DOCKERFILE.format(base=base)}.items():
            entry = tarfile.TarInfo(path)
            entry.size, entry.mode = len(text.encode()), 0o644
            tar.addfile(entry, io.BytesIO(text.encode()))
    data.seek(0)
    said = [
        str(step.get("error", ""))
        for step in client.api.build(fileobj=data, custom_context=True, tag=tag, rm=True, forcerm=True, decode=True)
    ]
    assert not any(said), said
    return str(client.api.inspect_image(tag)["Id"])


def python_task(number: int, name: str, **changes: Any) -> dict[str, Any]:
    """Return a task of `PRICES` in the shape of `CoderEval4Python.json`."""
    source = changes.get("file_content", PRICES)
    lines = source.split("\n")
    start = next(at for at, line in enumerate(lines) if line.lstrip().startswith(f"def {name}("))
    end = next((at for at in range(start + 1, len(lines)) if lines[at].lstrip().startswith("def ")), len(lines))
    while not lines[end - 1].strip():
        end -= 1
    docstring = textwrap.dedent("\n".join(lines[start + 1 : end])).split('"""')[1]
    return {
        "_id": f"62{number:022x}",
        "name": name,
        "code": "\n".join(lines[start:end]) + "\n",
        "docstring": textwrap.dedent(docstring).strip(),
        "human_label": "",
        "file_content": source,
        "file_path": "mini/prices.py",
        "package": "",
        "project": "owner/mini",
        "lineno": str(start + 1),
        "end_lineno": str(end),
        "level": "self_contained",
        "all_context": "{}",
        "oracle_context": "{}",
        "dependency": "",
        "test_name": "",
        "test_lineno": "",
        **changes,
    }


def java_task(number: int, name: str, docstring: str) -> dict[str, Any]:
    """Return a task of `TEXT` in the shape of `CoderEval4Java.json`."""
    lines = TEXT.split("\n")
    start = next(at for at, line in enumerate(lines) if f" {name}(" in line and line.endswith("{"))
    end = next(at for at in range(start, len(lines)) if lines[at] == "    }") + 1
    return {
        "_id": f"63{number:022x}",
        "name": name,
        "code": "\n".join(lines[start:end]),
        "docstring": f"/** \n * {docstring}\n */\n",
        "human_label": "",
        "file_content": TEXT,
        "file_name": "Text.java",
        "class_name": "Text",
        "package": "org.mini",
        "project": "mini-master",
        "lineno": str(start + 1),
        "end_lineno": str(end),
        "level": "class_runnable",
        "all_context": "{}",
        "oracle_context": "{}",
    }


def tasks() -> dict[str, list[dict[str, Any]]]:
    """Return language -> tasks; each kind of test name, a task that the image has no test of, one vacuous."""
    return {
        "python": [
            python_task(1, "total", level="class_runnable"),
            python_task(2, "rounded"),
            python_task(3, "longest", file_content=WORDS, file_path="alone/words.py", project="nobody/alone"),
            python_task(4, "keys"),
            python_task(5, "rounded", project="nobody/elsewhere", file_path="elsewhere/prices.py"),
        ],
        "java": [
            java_task(1, "shout", "Returns a text in capitals with a mark."),
            java_task(2, "count", "Returns how often a letter is in a text."),
        ],
    }


def write(folder: Path, language: str, records: Mapping[str, Any] | None = None) -> Path:
    """Write a task file of a language; return its path."""
    file = folder / f"CoderEval4{language.title()}.json"
    file.write_text(json.dumps(records or {"RECORDS": tasks()[language]}), encoding="utf-8")
    return file
