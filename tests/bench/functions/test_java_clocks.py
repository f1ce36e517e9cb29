"""Java code that reads a clock: the positions of the probes that detect it in tests."""

import pytest

from ctxbench.bench.functions.java.covering import clock_blocks, probed

READS = {
    "nanoseconds": "long start = System.nanoTime();",
    "by a static import": "long start = nanoTime();",
    "a method reference": "measure(System::currentTimeMillis);",
    "an instant": "Instant now = Instant.now();",
    "a date": "Object now = java.time.LocalDateTime.now(zone);",
    "an old date": "Object now = new Date();",
    "a clock": "Clock clock = Clock.systemUTC();",
    "a stop watch": "StopWatch watch = StopWatch.createStarted();",
    "a sleep": "Thread.sleep(50);",
    "a sleep of units": "TimeUnit.SECONDS.sleep(1);",
    "a latch": "latch.await(5, TimeUnit.SECONDS);",
    "a future, with a static import": "future.get(5, SECONDS);",
    "a latch, with units that are given": "latch.await(timeout, unit);",
    "a condition": "left = condition.awaitNanos(left);",
    "a condition, until a date": "condition.awaitUntil(end);",
    "an object, with a time that is given": "lock.wait(milliseconds);",
    "a thread": "thread.join(1000L);",
    "a thread, with a time that is given": "workerThreads[0].join(limit);",
    "what is scheduled": "jobs().schedule(task, 0L, period);",
    "a duration": "waiter.atMost(Duration.ofSeconds(1));",
    "an assertion": "Assertions.assertTimeoutPreemptively(limit, this::work);",
}


@pytest.mark.parametrize("statement", READS.values(), ids=READS)
def test_a_block_that_reads_a_clock_gets_a_probe(statement: str) -> None:
    assert with_probes(f"class A {{ void a() {{ work(); }} void b() {{ {statement} }} }}") == (
        f"class A {{ void a() {{ work(); }} void b() {{PROBE {statement} }} }}"
    )


HARMLESS = {
    "a date that is given": "Object date = new Date(5L);",
    "a converted time": "long x = TimeUnit.SECONDS.convert(5, TimeUnit.HOURS);",
    "an element": "list.get(5);",
    "joined text": "text.join(',', \"now\");",
    "joined parts": "joiner.join(parts);",
    "an order": "orders.schedule(order);",
    "a thread's end": "thread.join();",
    "no limit": "object.wait(0);",
    "words": 'String name = "System.nanoTime()"; // Thread.sleep(5)',
    "a name of its own": "long x = clock.now();",
    "no Java": "System.nanoTime(",
}


@pytest.mark.parametrize("statement", HARMLESS.values(), ids=HARMLESS)
def test_a_block_that_reads_no_clock_gets_no_probe(statement: str) -> None:
    assert clock_blocks(f"class A {{ void a() {{ {statement} }} }}") == ()


TIMED = {
    "JUnit 5": "class A {{ @Timeout(1) void a() {{{0} }} void b() {{ }} }}",
    "JUnit 4": "class A {{ @Test(timeout = Limits.SHORT) void a() {{{0} }} @Test void b() {{ }} }}",
    "a class": "@Timeout(1) class A {{ void a() {{{0} }} class B {{ void b() {{{0} }} }} }} class C {{ }}",
    "a rule": "class A {{ @Rule Timeout limit = Timeout.seconds(1); A() {{ }} void a() {{{0} }} }}",
    "a rule of the class": "class A {{ @ClassRule static Timeout limit = new Timeout(9); void a() {{{0} }} }}",
    "a field": "class A {{ long began = System.nanoTime(); void a() {{{0} }} }}",
    "a constant": "class A {{ static final long BEGAN = System.nanoTime(); void a() {{ }} }}",
    "a constructor": "class A {{ A() {{ this(1);{0} b = System.nanoTime(); }} A(int x) {{ }} }}",
    "an anonymous class": "class A {{ Object o = new B() {{ void b() {{{0} nanoTime(); }} }}; void a() {{ }} }}",
    "an inner block": "class A {{ void a() {{ if (x) {{{0} nanoTime(); }} else {{ b(); }} }} }}",
    "no body": "interface A {{ @Timeout(1) void a(); }}",
}


@pytest.mark.parametrize("source", TIMED.values(), ids=TIMED)
def test_a_probe_is_placed_where_timed_code_runs(source: str) -> None:
    assert with_probes(source.format("")) == source.format("PROBE")


def with_probes(text: str) -> str:
    found = probed(text.encode(), "UTF-8", dict(enumerate(clock_blocks(text)))).decode()
    for number in range(9):
        found = found.replace(f"ctxbench.Probe.hit({number});", "PROBE")
    return found
