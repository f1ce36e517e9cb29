"""From javac's messages to what a person is told: errors, missing packages, and what may cure them."""

from ctxbench.bench.judging.java import build as java_build
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
    errors = java_build.read_errors(SAID)
    assert [str(error) for error in errors] == [
        "src/main/java/shop/Cart.java:3: package javax.annotation does not exist",
        "src/main/java/shop/Cart.java:9: cannot find symbol: class Tax",
        "src/main/java/shop/Tills.java:4: cannot find symbol: method total",
        "src/main/java/shop/Tills.java:2: cannot find symbol: class Purse of package org.known",
        "src/main/java/shop/Tills.java:5: ';' expected",
    ]
    assert [error.type for error in errors] == ["", "Tax", "", "Purse", ""]
    assert java_build.packages(errors, {}, COMPILED) == ("javax.annotation", "org.known")
    own = {"src/main/java/org/known/Coin.java": b"", "src/test/java/javax/annotation/Nonnull.java": b""}
    assert java_build.packages(errors, own, COMPILED) == ()
    assert java_build.packages(errors, own, COMPILED[:1]) == ("javax.annotation",)
    summary = java_build.summary(errors)
    assert summary.startswith("5 errors: src/main/java/shop/Cart.java:3: package") and summary.endswith(" | …")
    assert java_build.summary([errors[0], errors[4], errors[0]]).endswith(
        ": package javax.annotation does not exist | src/main/java/shop/Tills.java:5: ';' expected"
    )
    assert java_build.summary(errors[4:]) == "1 error: src/main/java/shop/Tills.java:5: ';' expected"


def test_a_package_of_the_jdk_needs_a_later_release_and_no_jar() -> None:
    message = "src/main/java/shop/Cart.java:3: error: package sun.misc does not exist\n"
    cure = java_build.cure(java_build.read_errors(message), {}, COMPILED, DEPENDENCIES)
    assert cure == 'sun.misc is of the JDK, but hidden by release 8: set release = "9" or later in [tests]'


def test_a_package_that_nothing_is_known_of_is_named_with_the_pom() -> None:
    found = java_build.cure(java_build.read_errors(SAID), {}, COMPILED, DEPENDENCIES)
    assert "for javax.annotation, org.known (the pom names org.mockito:mockito-core)" in found


def test_a_pom_says_what_only_tests_need() -> None:
    mockito = Dependency(group="org.mockito", artifact="mockito-core", test=True, of_tests=False)
    assert list(DEPENDENCIES) == [mockito]
