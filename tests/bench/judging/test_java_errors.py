"""Reading javac's messages as errors, and a pom as dependencies."""

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
    summary = java_build.summary(errors)
    assert summary.startswith("5 errors: src/main/java/shop/Cart.java:3: package") and summary.endswith(" | …")
    assert java_build.summary([errors[0], errors[4], errors[0]]).endswith(
        ": package javax.annotation does not exist | src/main/java/shop/Tills.java:5: ';' expected"
    )
    assert java_build.summary(errors[4:]) == "1 error: src/main/java/shop/Tills.java:5: ';' expected"


def test_dependencies_of_tests_are_read_from_a_pom() -> None:
    mockito = Dependency(artifact="mockito-core", test=True, of_tests=False)
    assert list(DEPENDENCIES) == [mockito]
