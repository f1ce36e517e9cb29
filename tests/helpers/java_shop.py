"""A tiny Java repository with tests of JUnit 3, 4 and 5, and samples of its methods."""

import textwrap

from ctxbench.bench.judging.java.text import shift
from ctxbench.bench.languages.java import JAVA
from ctxbench.bench.types import Cursor, Kind, Reference, Sample

PATH = "src/main/java/shop/Prices.java"
PRICES = """\
package shop;

import java.util.List;

/** Prices. */
public class Prices {
    private static final double RATE = 0.25;

    /**
     * Return what the prices come to.
     *
     * @param prices each of them
     * @return the sum, with a rate above 100
     */
    @Deprecated
    public static double total(final List<Double> prices) {
        double sum = 0;
        for (final double price : prices) {
            sum += price;
        }
        if (sum > 100) {
            return sum * (1 + RATE);
        }
        return sum;
    }

    /** Say whether a price is round: caf\u00e9. */
    static boolean round(final int price) {
        return price % 10 == 0;
    }
}
"""
SUITES = {
    "src/main/java/shop/Coupon.java": """\
package shop;

/** Coupons. */
public class Coupon {
    /** Return what is left of a price. */
    static int reduced(final int price) {
        return price - 5;
    }

    /** Return what two coupons leave of a price. */
    static int twice(final int price) {
        return price - 9;
    }
}
""",
    "src/test/java/shop/SuiteTest.java": """\
package shop;

import junit.framework.Test;
import junit.framework.TestCase;
import junit.framework.TestSuite;

public class SuiteTest extends TestCase {
    public static class Reduced extends TestCase {
        private final int price;

        Reduced(int price) {
            super("testReduced");
            this.price = price;
        }

        public void testReduced() { assertEquals(price - 5, Coupon.reduced(price)); }
    }

    public static class Twice extends TestCase {
        Twice(String name) { super(name); }

        public void testTwice() { assertEquals(1, Coupon.twice(10)); }
    }

    public void testRound() { assertTrue(Prices.round(30)); }

    public static Test suite() {
        TestSuite reduced = new TestSuite("reduced prices");
        reduced.addTest(new Reduced(10));
        reduced.addTest(new Reduced(20));
        TestSuite coupons = new TestSuite("shop.Coupon");
        coupons.addTest(new Twice("testTwice"));
        TestSuite all = new TestSuite(SuiteTest.class);
        all.addTest(reduced);
        all.addTest(coupons);
        return all;
    }
}
""",
}
"""A JUnit 3 suite: one test can be selected alone, two with their class, and one not at all."""
FILES = {
    "pom.xml": """<project><properties>
<project.build.sourceEncoding>ISO-8859-1</project.build.sourceEncoding>
<maven.compiler.source>1.7</maven.compiler.source></properties></project>
""",
    PATH: PRICES,
    "src/main/java/shop/Cart.java": """\
package shop;
class Cart {
    double pays(java.util.List<Double> prices) { return Prices.total(prices); }
}
""",
    "src/test/java/shop/PricesTest.java": """\
package shop;

import java.util.Arrays;
import org.junit.jupiter.api.Assertions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class PricesTest {
    @Test
    void adds() { Assertions.assertEquals(3.5, Prices.total(Arrays.asList(1.0, 2.5))); }

    @Test
    void rates() { Assertions.assertEquals(250.0, Prices.total(Arrays.asList(100.0, 100.0))); }

    @ParameterizedTest
    @ValueSource(ints = {10, 20})
    void isRound(int price) { Assertions.assertTrue(Prices.round(price)); }

    @Test
    void fails() { Assertions.fail("always"); }
}
""",
    "src/test/java/shop/CartTest.java": """\
package shop;

import java.util.Arrays;
import org.junit.Assert;
import org.junit.Test;

public class CartTest {
    @Test
    public void pays() { Assert.assertEquals(2.0, new Cart().pays(Arrays.asList(2.0)), 0.0); }
}
""",
    "src/test/java/shop/OldTest.java": """\
package shop;

public class OldTest extends junit.framework.TestCase {
    public void testNotRound() { assertFalse(Prices.round(7)); }
}
""",
    "src/test/java/shop/BrokenTest.java": "package shop;\nclass BrokenTest { NoSuchType field; }\n",
}
MODULES = {
    "pom.xml": """<project><artifactId>all</artifactId><properties><java.version>11</java.version></properties>
<build><plugins><plugin><artifactId>maven-compiler-plugin</artifactId>
<configuration><source>${java.version}</source></configuration></plugin></plugins></build></project>
""",
    "core/pom.xml": """<project><artifactId>core</artifactId><dependencies>
<dependency><artifactId>units</artifactId></dependency>
<dependency><artifactId>goods</artifactId><scope>test</scope></dependency>
<dependency><groupId>org.other</groupId><artifactId>other</artifactId></dependency></dependencies></project>
""",
    **{f"core/{path}": text for path, text in SUITES.items()},
    "core/src/main/java/shop/Prices.java": """\
package shop;

public class Prices {
    /** Return a price as text. */
    public static String text(final int price) {
        return price + units.Unit.NAME;
    }

    static boolean round(final int price) { return price % 10 == 0; }
}
""",
    "core/src/main/java/shop/Offer.java": """\
package shop;

class Offer {
    private final long end;

    Offer() {
        this(60_000);
    }

    Offer(final long milliseconds) {
        end = Clocks.now() + milliseconds;
    }

    /** Say whether it can still be had. */
    boolean isOpen() {
        return end > 0;
    }
}

class Clocks {
    static long now() { return System.currentTimeMillis(); }
}
""",
    "core/src/test/java/shop/OfferTest.java": """\
package shop;

import org.junit.After;
import org.junit.Assert;
import org.junit.Test;

public class OfferTest {
    private final long began = System.nanoTime();

    @After
    public void isFast() { Assert.assertTrue(System.nanoTime() - began < 60_000_000_000L); }

    @Test
    public void isOpen() { Assert.assertTrue(new Offer().isOpen()); }

    @Test
    public void isText() { Assert.assertEquals("7 coins", Prices.text(7)); }
}
""",
    "core/src/main/java/shop/Stock.java": """\
package shop;

class Stock {
    /** Return how much fits in. */
    static int full(final int shelves) {
        return shelves * 8;
    }

    /** Return what is left of it. */
    static int left(final int sold) {
        return 24 - sold;
    }
}
""",
    "core/src/test/java/shop/FullTest.java": """\
package shop;

import org.junit.Assert;
import org.junit.BeforeClass;
import org.junit.Test;

public class FullTest {
    private static int full;

    @BeforeClass
    public static void fill() { full = Clocks.now() > 0 ? Stock.full(3) : 0; }

    @Test
    public void isFull() { Assert.assertEquals(24, full); }

    @Test
    public void staysFull() { Assert.assertEquals(24, full); }
}
""",
    "core/src/test/java/shop/EndTest.java": """\
package shop;

import org.junit.Test;

public class EndTest {
    @Test
    public void endsAll() { Runtime.getRuntime().halt(1); }
}
""",
    "core/src/test/java/shop/LeftTestCase.java": """\
package shop;

import org.junit.jupiter.api.Assertions;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

class LeftTestCase {
    private static int left;
    private final long began = Clocks.now();

    @BeforeAll
    static void sell() { left = Stock.left(4); }

    @Test
    void isLeft() { Assertions.assertEquals(20, left); }
}
""",
    "core/src/test/prices.txt": "7 coins",
    "core/src/test/java/shop/PricesTest.java": """\
package shop;

import java.nio.file.Files;
import java.nio.file.Paths;
import org.junit.Assert;
import org.junit.Test;

public class PricesTest {
    @Test
    public void asText() throws Exception {
        String expected = new String(Files.readAllBytes(Paths.get("src/test/prices.txt")));
        Assert.assertEquals(expected, Prices.text(goods.Sweet.PRICE));
    }
}
""",
    "units/pom.xml": "<project><artifactId>units</artifactId></project>",
    "units/src/main/java/units/Unit.java": """\
package units;

public class Unit { public static String NAME = " coins"; }
""",
    "goods/pom.xml": "<project><artifactId>goods</artifactId></project>",
    "goods/src/main/java/goods/Sweet.java": "package goods;\npublic class Sweet { public static int PRICE = 7; }\n",
    "unused/pom.xml": "<project><artifactId>unused</artifactId></project>",
    "unused/src/main/java/unused/Unused.java": "package unused;\nclass Unused { NoSuchType field; }\n",
}
"""A repository of modules: ``core`` needs ``units``; its tests need ``goods`` and their own file."""
TREE = {path: text.encode("iso-8859-1") for path, text in FILES.items()}
TOTAL_TESTS = ("shop.CartTest#pays", "shop.PricesTest#adds", "shop.PricesTest#rates")
ROUND_TESTS = ("shop.OldTest#testNotRound", "shop.PricesTest#isRound(int)[*]")


def sample(name: str, tests: tuple[str, ...], text: str = PRICES) -> tuple[Sample, Reference]:
    """Return the sample of a method of `Prices`, by its bare name."""
    lines = text.split("\n")
    start = next(number for number, line in enumerate(lines) if f" {name}(" in line and line.endswith("{"))
    end = next(number for number in range(start, len(lines)) if lines[number] == "    }") + 1
    cursor = Cursor(line=start + 1, column=0)
    made = Sample(
        id=f"shop/{PATH}::Prices.{name}",
        benchmark="ctxbench",
        language=JAVA,
        kind=Kind.FUNCTION,
        subkind="slib_runnable",
        repo="shop",
        path=PATH,
        cursor=cursor,
        prefix="".join(f"{line}\n" for line in lines[: start + 1]),
        suffix="\n".join(lines[end - 1 :]),
        name=f"Prices.{name}",
        span=(start, end),
        hidden=("src/test/",),
    )
    target = "\n".join(shift(lines[start:end], ""))
    return made, Reference(id=made.id, target=target, tests=tests)


TOTAL, TOTAL_REFERENCE = sample("total", TOTAL_TESTS)
ROUND, ROUND_REFERENCE = sample("round", ROUND_TESTS)


def total(body: str) -> str:
    return "public static double total(final List<Double> prices) {\n" + textwrap.indent(body, "    ") + "\n}"
