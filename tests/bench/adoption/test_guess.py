"""What the files of a repository tell: language, licence, version, and a Java project's module and encoding."""

from collections.abc import Mapping

import pytest

from ctxbench.bench.adoption.guess import UNKNOWN, Guess, guess, licence
from ctxbench.bench.errors import InputFault
from ctxbench.bench.repositories.manifest import TestSuite

POM = "<project><version>2.1</version>{}</project>"
CLASS = "class Till {}\n"
CASE = "class TillTest { @Test void opens() {} }\n"


def guessed(files: Mapping[str, str | bytes], *, wheel: bool = False) -> Guess:
    tree = {path: content.encode() if isinstance(content, str) else content for path, content in files.items()}
    return guess(tree, wheel=wheel)


def test_the_language_is_that_of_most_of_its_code() -> None:
    java = {
        "pom.xml": POM,
        "src/main/java/Till.java": CLASS * 9,
        "src/test/java/TillTest.java": CASE,
        "tools/x.py": "1",
    }
    assert (guessed(java).language, guessed(java).version) == ("java", "2.1")
    python = {"setup.py": "setup(name='demo', version='3')\n", "demo.py": "x = 1\n" * 9, "Glue.java": CLASS}
    result = guessed(python)
    assert (result.language, result.version) == ("python", "3")
    assert any("a part of it is Java" in doubt for doubt in result.doubts)


def test_a_repository_in_neither_language_is_refused() -> None:
    with pytest.raises(InputFault, match="neither Python nor Java"):
        guessed({"main.go": "package main"})


def test_vendored_code_gives_no_samples() -> None:
    assert guessed({"demo/__init__.py": "", "demo/_vendor/six.py": "x"}).exclude == ("**/_vendor/*",)
    assert guessed({"demo/__init__.py": "x"}).exclude == ()


MIT = "Permission is hereby granted, free of charge, to any person obtaining a copy"
LICENCES = [
    ({"pyproject.toml": '[project]\nlicense = "MIT OR Apache-2.0"\n'}, "MIT OR Apache-2.0"),
    ({"pyproject.toml": '[project]\nlicense = {text = "BSD 3-Clause"}\n'}, "BSD-3-Clause"),
    ({"pyproject.toml": '[project]\nclassifiers = ["License :: OSI Approved :: MIT License"]\n'}, "MIT"),
    ({"PKG-INFO": "Name: x\nLicense-Expression: MPL-2.0\n"}, "MPL-2.0"),
    ({"PKG-INFO": "Name: x\nLicense: BSD\nClassifier: License :: OSI Approved :: BSD License\n"}, "BSD-3-Clause"),
    ({"setup.py": "setup(name='x', license='Apache 2.0')\n"}, "Apache-2.0"),
    ({"setup.cfg": "[metadata]\nlicense = BSD\n"}, "BSD-3-Clause"),
    ({"pom.xml": "<licenses><license><name>Apache License, Version 2.0</name></license></licenses>"}, "Apache-2.0"),
    ({"LICENSE": MIT}, "MIT"),
    ({"COPYING.txt": "GNU LESSER GENERAL PUBLIC LICENSE\n  Version 3, 29 June 2007"}, "LGPL-3.0-or-later"),
    ({"docs/deep/LICENSE": MIT, "README": MIT}, UNKNOWN),
    ({"pyproject.toml": "["}, UNKNOWN),
    ({"pyproject.toml": "tool = 1\nproject = 2\n"}, UNKNOWN),
    ({"pyproject.toml": "[project]\nclassifiers = 1\n[tool]\npoetry = 1\n"}, UNKNOWN),
    ({"pyproject.toml": '[project]\nlicense = "(MIT OR Apache-2.0)"\n'}, "(MIT OR Apache-2.0)"),
    (
        {"pyproject.toml": '[project]\nlicense = "MIT AND (ISC OR GPL-2.0-only WITH Classpath-exception-2.0)"\n'},
        "MIT AND (ISC OR GPL-2.0-only WITH Classpath-exception-2.0)",
    ),
    ({"setup.py": "setup(name='x', license='GPLv3')\n"}, "GPL-3.0-or-later"),
    ({"setup.py": "setup(name='x', license='Apache2')\n"}, "Apache-2.0"),
    ({"setup.py": "setup(name='x', license='BSD3')\n"}, "BSD-3-Clause"),
]


@pytest.mark.parametrize(("files", "spdx"), LICENCES)
def test_the_licence_is_read_from_metadata_before_texts(files: Mapping[str, str], spdx: str) -> None:
    assert licence(files) == spdx


def test_a_licence_that_nothing_names_is_a_doubt() -> None:
    assert any("SPDX" in doubt for doubt in guessed({"demo.py": "x"}).doubts)


def test_of_several_modules_the_one_with_most_tests_is_taken() -> None:
    files: dict[str, str | bytes] = {"pom.xml": POM}
    for module, tests in (("api", 0), ("core", 2), ("web", 1)):
        files[f"{module}/pom.xml"] = POM
        files[f"{module}/src/main/java/Till.java"] = CLASS
        files |= {f"{module}/src/test/java/Till{number}Test.java": CASE for number in range(tests)}
    result = guessed(files)
    assert (result.source_dir, result.tests) == ("core", TestSuite())
    assert result.doubts[-1] == "it has several modules with tests; core has the most, others are web"


def test_java_without_tests_of_junit_or_without_mavens_folders_says_so() -> None:
    main = {"pom.xml": POM, "src/main/java/Till.java": CLASS}
    assert guessed({**main, "src/test/java/Helper.java": CLASS}).tests is None
    assert "declares a test" in guessed({**main, "src/test/java/Helper.java": CLASS}).doubts[-1]
    other = guessed({"source/Till.java": CLASS})
    assert other.tests is None and "Maven's layout" in other.doubts[-1]


def test_an_encoding_that_the_pom_does_not_name_is_seen() -> None:
    latin = 'class Till { String name = "Käse"; }\n'.encode("latin-1")
    files = {"pom.xml": POM, "src/main/java/Till.java": latin, "src/test/java/TillTest.java": CASE}
    result = guessed(files)
    assert result.tests is not None and result.tests.encoding == "ISO-8859-1"
    named = POM.replace(
        "{}", "<properties><project.build.sourceEncoding>ISO-8859-1</project.build.sourceEncoding></properties>"
    )
    told = guessed({**files, "pom.xml": named})
    assert told.tests is not None and told.tests.encoding == ""
