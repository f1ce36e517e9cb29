"""The Java suite on a tiny repository, in both back ends: verdicts, and what judged code may not do."""

import secrets
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from ctxbench.bench.errors import InputFault, MachineFault
from ctxbench.bench.home import Home
from ctxbench.bench.judging import java
from ctxbench.bench.judging.java import SECONDS, JavaSuite
from ctxbench.bench.judging.java.build import built
from ctxbench.bench.judging.java.layout import layout
from ctxbench.bench.judging.types import TAMPERED, Judgement, Verdict
from ctxbench.bench.repositories.manifest import TestSuite
from ctxbench.bench.types import Reference, Sample
from ctxbench.sandbox.types import Pool, Sandbox
from tests.helpers.java_forgeries import JAVA_FORGERIES, REPORTS
from tests.helpers.java_shop import (
    MODULES,
    PATH,
    ROUND,
    ROUND_REFERENCE,
    TOTAL,
    TOTAL_REFERENCE,
    TREE,
    total,
)
from tests.helpers.sandboxes import bubblewrap_sandbox, docker_sandbox, real_sandbox

__all__ = ["bubblewrap_sandbox", "docker_sandbox", "real_sandbox"]
TESTS = TestSuite()
ONE_BACK_END = pytest.mark.parametrize("real_sandbox", ["docker"], indirect=True)
"""For tests that do not depend on the back end. All others run in both."""
REUSE = 20
"""Jobs per box, including forgeries: leftovers of one job must not help the next."""


def silent(_: str) -> None:
    return


@dataclass(frozen=True)
class Shop:
    suite: JavaSuite
    pool: Pool

    def judge(
        self, text: str, sample: Sample = TOTAL, reference: Reference = TOTAL_REFERENCE, seconds: float = SECONDS
    ) -> Judgement:
        secret = secrets.token_hex(8)
        outcome = self.pool.run(replace(self.suite.job(sample, reference, text, secret), seconds=seconds))
        return self.suite.judge(reference, outcome, secret)


@pytest.fixture(scope="module")
def shop(real_sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    home = Home(tmp_path_factory.mktemp("home"))
    where = layout(TESTS, TREE)
    suite = JavaSuite(TESTS, where, TREE, built(TESTS, where, TREE, home, real_sandbox, silent))
    real_sandbox.prepare(suite.environment, silent)
    with real_sandbox.open(suite.environment, limits=suite.limits, reuse=REUSE) as pool:
        yield Shop(suite, pool)


def test_layouts_come_from_the_pom_and_the_manifest() -> None:
    found = layout(TESTS, TREE)
    assert (found.encoding, found.release, found.resources) == ("ISO-8859-1", "8", ())
    named = layout(TestSuite(encoding="UTF-8", release="17"), TREE | {"src/test/resources/a.txt": b""})
    assert (named.encoding, named.release, named.resources) == ("UTF-8", "17", ("src/test/resources",))
    with pytest.raises(InputFault, match="Maven's layout"):
        layout(TESTS, {"A.java": b""})


def test_the_layout_of_a_module_includes_the_modules_that_it_needs() -> None:
    tree = {path: text.encode() for path, text in MODULES.items()}
    found = layout(TESTS, tree, "core")
    assert found == layout(TESTS, tree, "core/src/main/java/shop")
    assert (found.folder, found.release) == ("core", "11")
    assert found.main == ("core/src/main/java", "units/src/main/java")
    assert found.test == ("core/src/test/java", "goods/src/main/java")
    with pytest.raises(InputFault, match="to one of its modules: core, goods, units, unused"):
        layout(TESTS, tree)
    with pytest.raises(InputFault, match="has no units/src/test/java"):
        layout(TESTS, tree, "units")


def test_a_module_may_need_the_tests_of_another_module() -> None:
    needs = "<dependency><artifactId>units</artifactId><type>test-jar</type></dependency>"
    tree = {path: text.encode() for path, text in MODULES.items()}
    tree["core/pom.xml"] = f"<project><dependencies>{needs}</dependencies></project>".encode()
    tree["units/src/test/java/units/Help.java"] = b""
    found = layout(TESTS, tree, "core")
    assert (found.main, found.test) == (("core/src/main/java",), ("core/src/test/java", "units/src/test/java"))


def test_the_pom_may_name_the_source_folders() -> None:
    named = "<sourceDirectory>${basedir}/code</sourceDirectory><testSourceDirectory>checks</testSourceDirectory>"
    tree = {"pom.xml": f"<project><build>{named}</build></project>".encode()}
    found = layout(TESTS, tree | {"code/A.java": b"", "checks/B.java": b"", "broken/pom.xml": b"<project"})
    assert (found.main, found.test) == (("code",), ("checks",))


def test_properties_that_refer_to_each_other_are_ignored() -> None:
    pom = b"<project><properties><a>${b}</a><b>${a}</b><maven.compiler.release>${a}</maven.compiler.release>"
    tree = TREE | {"pom.xml": pom + b"</properties></project>"}
    assert layout(TESTS, tree).release == "8"


def test_without_a_sandbox_an_uncached_build_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MachineFault, match="name a sandbox"):
        built(TESTS, layout(TESTS, TREE), TREE, Home(tmp_path), None, silent)


@pytest.mark.slow
def test_compile_errors_are_summarised_and_logged_in_full(tmp_path: Path, bubblewrap_sandbox: Sandbox) -> None:
    path = "src/main/java/shop/Many.java"
    imports = "".join(f"import org.nowhere.part{number}.Thing;\n" for number in range(300))
    tree = TREE | {path: f"package shop;\n{imports}class Many {{ }}\n".encode()}
    with pytest.raises(InputFault, match="the sources do not compile with JDK 17: 300 errors: ") as fault:
        built(TESTS, layout(TESTS, tree), tree, Home(tmp_path), bubblewrap_sandbox, silent)
    assert f"{path}:2: package org.nowhere.part0 does not exist | {path}:3: package" in str(fault.value)
    assert "part2 does not exist | …; add the missing library" in str(fault.value)
    log = next(tmp_path.rglob("javac.log"))
    assert str(log) in str(fault.value)
    assert log.read_text().count(": error: ") == 300


@pytest.mark.slow
def test_a_name_declared_in_kotlin_is_explained_in_the_error(tmp_path: Path, bubblewrap_sandbox: Sandbox) -> None:
    kotlin = {"src/main/kotlin/shop/Tax.kt": b"package shop\n\nclass Tax(val rate: Double)\n"}
    tree = TREE | kotlin | {"src/main/java/shop/Till.java": b"package shop;\nclass Till { Tax tax; }\n"}
    with pytest.raises(InputFault, match="for names declared in Kotlin or another module, choose") as f:
        built(TESTS, layout(TESTS, tree), tree, Home(tmp_path), bubblewrap_sandbox, silent)
    assert "1 error: src/main/java/shop/Till.java:2: cannot find symbol: class Tax;" in str(f.value)


@pytest.mark.slow
class TestVerdicts:
    def test_the_box_does_not_contain_the_answer(self, shop: Shop) -> None:
        assert PATH not in shop.suite.environment.tree
        assert shop.suite.build.dropped == ("src/test/java/shop/BrokenTest.java",)
        assert "BrokenTest.java:2: error: cannot find symbol" in shop.suite.build.messages

    def test_references_pass(self, shop: Shop) -> None:
        found = shop.judge(TOTAL_REFERENCE.target)
        assert (found.verdict, found.reason, found.tests_run) == (Verdict.PASSED, "", 3)
        found = shop.judge(ROUND_REFERENCE.target, ROUND, ROUND_REFERENCE)
        assert (found.verdict, found.reason, found.tests_run) == (Verdict.PASSED, "", 2)

    def test_blanks_fail(self, shop: Shop) -> None:
        for sample, reference in ((TOTAL, TOTAL_REFERENCE), (ROUND, ROUND_REFERENCE)):
            found = shop.judge(shop.suite.blank(sample), sample, reference)
            assert found.verdict is Verdict.FAILED
            assert "tests did not pass" in found.reason

    def test_tests_can_read_the_repository_and_jdk_without_ctxbenchs_files(self, shop: Shop) -> None:
        """Tests may list their working folder, as the tests of a library that filters files do."""
        judgement = shop.judge(total(LISTS))
        assert (judgement.verdict, judgement.reason) == (Verdict.PASSED, "")

    @pytest.mark.parametrize(
        ("body", "verdict", "reason"),
        [
            ("return prices;", Verdict.FAILED, "does not compile"),
            ("return prices.size();", Verdict.FAILED, "tests did not pass"),
            ("throw new RuntimeException();", Verdict.FAILED, "tests did not pass"),
            ("double[][] all = new double[9999][]; for (int i = 0;; i++) all[i] = new double[9999999];",
             Verdict.FAILED, "ended early"),
        ],
    )  # fmt: skip
    def test_faulty_code_fails_with_its_reason(self, shop: Shop, body: str, verdict: Verdict, reason: str) -> None:
        found = shop.judge(total(body))
        assert found.verdict is verdict
        assert reason in found.reason

    # The guest's own limit does not depend on the back end.
    @ONE_BACK_END
    def test_an_endless_loop_runs_out_of_processor_time(self, shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(java, "PROCESSOR_SECONDS", 4)
        # On a busy machine, minutes may pass before the loop has used this processor time.
        found = shop.judge(total("while (true) { }"), seconds=600.0)
        assert (found.verdict, found.reason) == (Verdict.TIMED_OUT, "ran out of processor time")

    def test_tests_that_do_not_exist_never_pass(self, shop: Shop) -> None:
        gone = Reference(id=TOTAL.id, target="", tests=("shop.PricesTest#gone",))
        found = shop.judge(TOTAL_REFERENCE.target, TOTAL, gone)
        assert found.verdict is Verdict.FAILED and "JUnit wrote no report" in found.reason

    def test_a_failing_test_fails(self, shop: Shop) -> None:
        both = Reference(id=TOTAL.id, target="", tests=("shop.PricesTest#adds", "shop.PricesTest#fails"))
        assert shop.judge(TOTAL_REFERENCE.target, TOTAL, both).verdict is Verdict.FAILED

    def test_a_fault_that_does_not_compile_is_not_detected_by_tests(self, shop: Shop) -> None:
        for text, noticed in [(total("return 0;"), set(TOTAL_REFERENCE.tests)), (total("return null;"), None)]:
            outcome = shop.pool.run(shop.suite.trial(TOTAL, TOTAL_REFERENCE, text, "secret"))
            assert shop.suite.failing(TOTAL_REFERENCE, outcome) == noticed


LISTS = f"""\
for (java.io.File file : new java.io.File(".").listFiles()) {{
    if (file.getName().startsWith(".") || file.isFile() != file.getName().equals("pom.xml")) {{
        throw new IllegalStateException(file + " is not of the repository");
    }}
}}
if (!new java.io.File(System.getProperty("java.io.tmpdir")).canWrite()) {{
    throw new IllegalStateException("there is no folder for temporary files");
}}
try (java.io.InputStream in = Object.class.getResource("Object.class").openStream()) {{
    in.read();
}} catch (java.io.IOException error) {{
    throw new IllegalStateException(error);
}}
{TOTAL_REFERENCE.target.partition("{")[2].rpartition("}")[0]}"""
WRITE = f"""\
try {{
    java.nio.file.Files.createDirectories({REPORTS});
    java.nio.file.Files.write({REPORTS}.resolve("TEST-forged.xml"),
        "<testsuite><testcase name='adds()' classname='shop.PricesTest' time='0'/></testsuite>".getBytes());
}} catch (java.io.IOException error) {{
    throw new IllegalStateException(error);
}}
return 0;"""
PRIVATE = """\
try {
    java.lang.reflect.Field field = Class.forName("org.junit.platform.engine.TestExecutionResult$Status")
        .getDeclaredField("$VALUES");
    field.setAccessible(true);
    field.get(null);
} catch (ReflectiveOperationException error) {
    throw new IllegalStateException(error);
}
return 0;"""
PROGRAM = """\
try {
    new ProcessBuilder("sh", "-c", "kill -9 $PPID").start();
} catch (java.io.IOException error) {
    throw new IllegalStateException(error);
}
return 0;"""
THREAD = """\
Thread thread = new Thread(() -> Runtime.getRuntime().halt(1));
thread.start();
try {
    thread.join();
} catch (InterruptedException error) {
    throw new IllegalStateException(error);
}
return 0;"""
FORGERIES = {
    "exit": ("System.exit(0); return 0;", "ended early"),
    "exit as the launcher does": ("System.exit(1); return 0;", "ended early"),
    "halt": ("Runtime.getRuntime().halt(1); return 0;", "ended early"),
    "another thread": (THREAD, "ended early"),
}
REFUSED = {
    "a report of its own": (WRITE, "access denied"),
    "reflection on what is private": (PRIVATE, "access denied"),
    "the policy taken away": ("System.setSecurityManager(null); return 0;", "access denied"),
    "a program": (PROGRAM, "access denied"),
    "a hook at the end": ("Runtime.getRuntime().addShutdownHook(new Thread()); return 0;", "access denied"),
    "the canary's secret": (
        'throw new IllegalStateException(System.getProperty("ctxbench.canary"));',
        "access denied",
    ),
    "a skipped test": ("throw new org.opentest4j.TestAbortedException();", "does not compile"),
    "a loader": ("new java.net.URLClassLoader(new java.net.URL[0]); return 0;", "access denied"),
    **JAVA_FORGERIES,
}
"""Code that Java's policy, compiler or launcher refuses in any box."""


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("name", FORGERIES)
def test_forgeries_fail(shop: Shop, name: str) -> None:
    assert_fails(shop, *FORGERIES[name])


@pytest.mark.long
@pytest.mark.slow
@ONE_BACK_END
@pytest.mark.parametrize("name", REFUSED)
def test_forgeries_that_java_itself_refuses_fail(shop: Shop, name: str) -> None:
    assert_fails(shop, *REFUSED[name])


def assert_fails(shop: Shop, body: str, reason: str) -> None:
    found = shop.judge(total(body))
    assert found.verdict is Verdict.FAILED, found
    assert reason in found.reason, found


@pytest.mark.slow
def test_a_class_that_hides_another_is_tampering(shop: Shop) -> None:
    text = TOTAL_REFERENCE.target + "\n}\nclass PricesTest {\n    void adds() { }"
    with pytest.raises(InputFault, match="whole method"):
        shop.judge(text)
    job = shop.suite.job(TOTAL, TOTAL_REFERENCE, TOTAL_REFERENCE.target, "s")
    changed = dict(job.files)
    changed[PATH] += b"class PricesTest { }\n"
    outcome = shop.pool.run(type(job)(action=job.action, files=changed, seconds=job.seconds))
    found = shop.suite.judge(TOTAL_REFERENCE, outcome, "s")
    assert (found.verdict, found.reason.partition(":")[0]) == (Verdict.FAILED, TAMPERED)


@pytest.mark.slow
def test_the_original_classes_are_removed_from_the_box(shop: Shop) -> None:
    body = """\
java.io.InputStream in = Prices.class.getResourceAsStream("/.ctxbench/main.jar");
try {
    java.util.Enumeration<java.net.URL> all = Prices.class.getClassLoader().getResources("shop/Prices.class");
    int found = 0;
    while (all.hasMoreElements()) { all.nextElement(); found++; }
    throw new IllegalStateException("found " + found);
} catch (java.io.IOException error) {
    throw new IllegalStateException(error);
}"""
    found = shop.judge(total(body))
    assert found.verdict is Verdict.FAILED
    assert "found 1" in found.reason or "found 0" in found.reason
