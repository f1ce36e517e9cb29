"""From javac's messages to what a person is told: errors, missing packages, and what may cure them."""

from __future__ import annotations

import stat
import zipfile
from pathlib import Path

import pytest

from ctxbench.bench.judging.java import errors as java_errors
from ctxbench.bench.judging.java import errors as java_jars
from ctxbench.bench.judging.java.errors import Jar, companion, jar_of
from ctxbench.bench.judging.java.layout import Dependency, Poms

SAID = """\
src/main/java/shop/Cart.java:3: error: package javax.annotation does not exist
import javax.annotation.Nonnull;
                       ^
src/main/java/shop/Cart.java:9: error: cannot find symbol
    @Nonnull Tax tax;
             ^
  symbol:   class Tax
  location: class Cart
src/main/java/shop/Cart.java:11: warning: [removal] finalize() in Object has been deprecated
src/main/java/shop/Tills.java:4: error: cannot find symbol
    int all = total();
              ^
  symbol:   method total()
  location: class Tills
src/main/java/shop/Tills.java:2: error: cannot find symbol
import org.known.Purse;
                ^
  symbol:   class Purse
  location: package org.known
src/main/java/shop/Tills.java:5: error: ';' expected
5 errors
"""
POM = b"""<project xmlns="http://maven.apache.org/POM/4.0.0"><dependencies><dependency>
<groupId>org.mockito</groupId><artifactId>mockito-core</artifactId><scope>test</scope></dependency></dependencies></project>
"""
COMPILED = ("src/main/java", "src/test/java")
DEPENDENCIES = Poms({"pom.xml": POM}).dependencies("")


def test_errors_are_read_with_file_line_and_symbol() -> None:
    errors = java_errors.read(SAID)
    assert [str(error) for error in errors] == [
        "src/main/java/shop/Cart.java:3: package javax.annotation does not exist",
        "src/main/java/shop/Cart.java:9: cannot find symbol: class Tax",
        "src/main/java/shop/Tills.java:4: cannot find symbol: method total",
        "src/main/java/shop/Tills.java:2: cannot find symbol: class Purse of package org.known",
        "src/main/java/shop/Tills.java:5: ';' expected",
    ]
    assert [error.type for error in errors] == ["", "Tax", "", "Purse", ""]
    assert java_errors.packages(errors, {}, COMPILED) == ("javax.annotation", "org.known")
    own = {"src/main/java/org/known/Coin.java": b"", "src/test/java/javax/annotation/Nonnull.java": b""}
    assert java_errors.packages(errors, own, COMPILED) == ()
    assert java_errors.packages(errors, own, COMPILED[:1]) == ("javax.annotation",)
    summary = java_errors.summary(errors)
    assert summary.startswith("5 errors: src/main/java/shop/Cart.java:3: package") and summary.endswith(" | …")
    assert java_errors.summary([errors[0], errors[4], errors[0]]).endswith(
        ": package javax.annotation does not exist | src/main/java/shop/Tills.java:5: ';' expected"
    )
    assert java_errors.summary(errors[4:]) == "1 error: src/main/java/shop/Tills.java:5: ';' expected"


def test_a_jar_that_is_known_is_named_as_the_manifest_wants_it() -> None:
    jars = {"javax.annotation": Jar("jsr305.jar", "libjsr305-java"), "org.known": Jar("purse.jar", "")}
    found = java_errors.cure(java_errors.read(SAID), {}, COMPILED, jars, ())
    assert found == 'add to [tests]: requirements = ["libjsr305-java"], jars = ["purse.jar", "jsr305.jar"]'


def test_a_package_whose_jar_is_not_known_is_named() -> None:
    found = java_errors.cure(java_errors.read(SAID)[:1], {}, COMPILED, {"javax.annotation": Jar("", "libany-java")}, ())
    assert found.startswith('add to [tests]: requirements = ["libany-java"], jars = []; and of the jars that')


def test_a_jar_whose_name_alone_fits_is_said_to_be_a_guess() -> None:
    jars = {
        "javax.annotation": Jar("jsr305.jar", "libjsr305-java"),
        "org.known": Jar("svm.jar", "libsvm-java", guessed=True),
    }
    cure = java_errors.cure(java_errors.read(SAID), {}, COMPILED, jars, ())
    assert 'jars = ["jsr305.jar", "svm.jar"]; of libsvm-java only the name fits: ' in cure


def test_a_package_of_the_jdk_needs_a_later_release_and_no_jar() -> None:
    message = "src/main/java/shop/Cart.java:3: error: package sun.misc does not exist\n"
    cure = java_errors.cure(java_errors.read(message), {}, COMPILED, {}, DEPENDENCIES)
    assert cure == 'sun.misc is of the JDK, but hidden by release 8: set release = "9" or later in [tests]'


def test_a_package_that_nothing_is_known_of_is_named_with_the_pom() -> None:
    found = java_errors.cure(java_errors.read(SAID), {}, COMPILED, {}, DEPENDENCIES)
    assert "for javax.annotation, org.known (the pom names org.mockito:mockito-core)" in found


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("src/main/kotlin/Tax.kt", "package shop\nclass Tax(val rate: Int)\n"),
        ("src/main/java/shop/taxes.kt", "package shop\n\ninternal object Tax\n"),
        ("src/main/kotlin/notes.kt", "@file:JvmName(\"Notes\")\npackage javax.annotation\n"),
    ],
)  # fmt: skip
def test_kotlin_that_java_needs_is_said_to_be_the_cause(path: str, text: str) -> None:
    tree = {path: text.encode(), "src/main/kotlin/Other.kt": b"package other\nclass Other\n"}
    found = java_errors.cure(java_errors.read(SAID), tree, COMPILED, {}, ())
    assert f"its Java needs its Kotlin ({path}), which is not compiled here" in found


def test_kotlin_that_nothing_needs_is_not_the_cause() -> None:
    tree = {
        "src/main/kotlin/Other.kt": b"package other\nclass Other\n",
        "mock/src/main/kotlin/Tax.kt": b"package shop.mock\nclass Tax\n",
    }
    assert "Kotlin" not in java_errors.cure(java_errors.read(SAID), tree, COMPILED, {}, ())


def test_sources_that_stand_in_another_folder_are_named() -> None:
    tree = {"src/old/java/shop/Tax.java": b"", "src/main/java/shop/Cart.java": b""}
    found = java_errors.cure(java_errors.read(SAID), tree, COMPILED, {}, ())
    assert found.startswith("what is missing stands in src/old/java/shop/Tax.java")


def jar(folder: Path, name: str, *classes: str) -> None:
    with zipfile.ZipFile(folder / name, "w") as archive:
        for each in classes:
            archive.writestr(each, b"")


def program(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(stat.S_IRWXU)


def test_jars_of_this_machine_are_looked_into(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jar(tmp_path, "few.jar", "a/b/One.class")
    jar(tmp_path, "most-1.0.jar", "a/b/One.class", "a/b/Two.class")
    jar(tmp_path, "most.jar", "a/b/One.class", "a/b/Two.class")
    jar(tmp_path, "deeper.jar", "a/b/c/One.class", "a/b/c/Two.class", "a/b/c/Three.class")
    (tmp_path / "broken.jar").write_bytes(b"PK")
    program(tmp_path, "dpkg-query", 'echo "libmost-java: $2"')
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert jar_of("a.b", (), share=tmp_path) == Jar("most.jar", "libmost-java")
    assert jar_of("a", (), share=tmp_path) is None


def test_jars_of_other_packages_are_found_by_the_pom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path, "apt-file", "exit 1")
    program(tmp_path, "apt-cache", "echo libmockito-java; echo libmockito-java-doc")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert jar_of("org.mockito.stubbing", DEPENDENCIES, share=tmp_path) == Jar(
        "mockito-core.jar", "libmockito-java", guessed=True
    )
    assert jar_of("org.easymock", DEPENDENCIES, share=tmp_path) is None
    program(tmp_path, "apt-file", f'[ "$3" = "{java_jars.SHARE}/mockito-core.jar" ] && echo "libother-java: $3"')
    assert jar_of("org.mockito", DEPENDENCIES, share=tmp_path) == Jar("mockito-core.jar", "libother-java")
    folder = "/usr/share/maven-repo/org/mockito/mockito-core/"
    program(tmp_path, "apt-file", f'[ "$2" = {folder} ] && echo "libthird-java: $2/1/mockito-core-1.jar"')
    assert jar_of("org.mockito", DEPENDENCIES, share=tmp_path) == Jar("", "libthird-java")


def test_an_artifact_of_the_same_company_is_not_taken_for_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path, "apt-file", "exit 1")
    program(tmp_path, "apt-cache", "echo libjsr305-java")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    names = {"gson": "com.google.code.gson", "jsr305": "com.google.code.findbugs"}
    needed = [Dependency(group=group, artifact=name, test=False, of_tests=False) for name, group in names.items()]
    assert jar_of("com.google.gson", needed, share=tmp_path) is None


def test_the_artifact_that_is_named_as_the_package_is_taken_before_those_that_add_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path, "apt-file", "exit 1")
    program(tmp_path, "apt-cache", "echo libjboss-logging-java")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    names = ("jboss-logging-annotations", "jboss-logging-processor", "jboss-logging")
    needed = [Dependency(group="org.jboss.logging", artifact=name, test=False, of_tests=False) for name in names]
    jar = jar_of("org.jboss.logging", needed, share=tmp_path)
    assert jar == Jar("jboss-logging.jar", "libjboss-logging-java", guessed=True)


def test_a_pom_says_what_only_tests_need() -> None:
    mockito = Dependency(group="org.mockito", artifact="mockito-core", test=True, of_tests=False)
    assert list(DEPENDENCIES) == [mockito]


def test_what_a_librarys_own_library_brings_is_looked_for_among_what_debian_says_it_depends_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = {
        "libmockito-java": "  Depends: libbyte-buddy-java\n  Depends: libobjenesis-java\n  Depends: libc6",
        "libbyte-buddy-java libobjenesis-java": "  Depends: libasm3-java\n  Suggests: libjna-java",
    }
    cases = "".join(f'  "{names}") echo "{text}" ;;\n' for names, text in answers.items())
    program(tmp_path, "apt-cache", f'shift\ncase "$*" in\n{cases}esac')
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert companion("net.bytebuddy.agent", ["libmockito-java"]) == Jar("byte-buddy.jar", "libbyte-buddy-java", True)
    assert companion("org.objectweb.asm", ["libmockito-java"]) == Jar("asm3.jar", "libasm3-java", True)
    assert companion("com.sun.jna", ["libmockito-java"]) is None
    assert companion("org.objenesis", []) is None
