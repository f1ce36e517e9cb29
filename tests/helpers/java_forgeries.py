"""Wrong Java methods that try to pass: body of `total` -> part of the verdict's reason."""


def _tried(statements: str) -> str:
    """Return a body that runs statements with checked exceptions, and returns a wrong sum."""
    return (
        f"try {{\n{statements}\n}} catch (RuntimeException | Error error) {{\n    throw error;\n"
        "} catch (Throwable error) {\n    throw new IllegalStateException(error);\n}\nreturn 0;"
    )


OURS = 'java.nio.file.Paths.get(System.getProperty("java.class.path").split(":")[0]).resolveSibling("{}")'
"""Java expression for the path of a ctxbench file next to the completion's classes."""
TESTS, REPORTS = OURS.format("test.jar"), OURS.format("reports")
DENIED, WRONG, EARLY, REFUSED = "access denied", "tests did not pass", "ended early", "does not compile"
_TRIED = {
    "assertions emptied through an agent": (
        'Class.forName("sun.instrument.InstrumentationImpl").getDeclaredConstructors()[0].setAccessible(true);',
        DENIED,
    ),
    "memory written through Unsafe": (
        'java.lang.reflect.Field field = Class.forName("sun.misc.Unsafe").getDeclaredField("theUnsafe");\n'
        "field.setAccessible(true);\nfield.get(null);",
        DENIED,
    ),
    "a private lookup of the tests' class": (
        'Class<?> tests = Class.forName("shop.PricesTest");\n'
        "java.lang.invoke.MethodHandles.privateLookupIn(tests, java.lang.invoke.MethodHandles.lookup())\n"
        "    .defineClass(new byte[0]);",
        REFUSED,
    ),
    "the security manager's own field": ('System.class.getDeclaredField("security").setAccessible(true);', WRONG),
    "the policy replaced": ("java.security.Policy.setPolicy(null);", DENIED),
    "rights taken by a privileged action": (
        "java.security.AccessController.doPrivileged((java.security.PrivilegedExceptionAction<String>)\n"
        '    () -> System.getProperty("ctxbench.canary"));',
        DENIED,
    ),
    "rights taken in another thread": (
        "Throwable[] kept = new Throwable[1];\n"
        "Thread thread = new Thread(() -> System.setSecurityManager(null));\n"
        "thread.setUncaughtExceptionHandler((which, error) -> kept[0] = error);\n"
        "thread.start();\nthread.join();\nif (kept[0] != null) throw kept[0];",
        DENIED,
    ),
    "rights taken by a finalizer": (
        "new Object() {\n    protected void finalize() { System.setSecurityManager(null); }\n};\n"
        "System.gc();\nSystem.runFinalization();",
        WRONG,
    ),
    "rights taken while it is deserialised": (
        "java.io.ObjectInputStream in = new java.io.ObjectInputStream(\n"
        "    new java.io.ByteArrayInputStream(new byte[] {(byte) 0xac, (byte) 0xed, 0, 5})) {\n"
        "    { enableResolveObject(true); }\n};\nin.readObject();",
        DENIED,
    ),
    "the launcher's output replaced": (
        "System.setOut(new java.io.PrintStream(new java.io.ByteArrayOutputStream()));",
        DENIED,
    ),
    "the tests removed": (f"java.nio.file.Files.delete({TESTS});", DENIED),
    "the tests read": (f"java.nio.file.Files.readAllBytes({TESTS});", DENIED),
    "the tests read by a way from the repository": (
        'java.nio.file.Path here = java.nio.file.Paths.get(System.getProperty("user.dir"));\n'
        f'java.nio.file.Files.readAllBytes(java.nio.file.Paths.get("src", "..").resolve(here.relativize({TESTS})));',
        DENIED,
    ),
    "what lies beside the repository": ('if (new java.io.File("..").list() != null) return 0;', DENIED),
    "a test's class put into the repository": (
        'java.nio.file.Path folder = java.nio.file.Paths.get("src/test/resources/shop");\n'
        "java.nio.file.Files.createDirectories(folder);\n"
        'java.nio.file.Files.write(folder.resolve("PricesTest.class"), new byte[0]);',
        DENIED,
    ),
    "a link to the reports": (
        "java.nio.file.Files.createSymbolicLink(\n"
        f'    java.nio.file.Paths.get(System.getProperty("java.io.tmpdir"), "reports"), {REPORTS});',
        DENIED,
    ),
    "another virtual machine attached": (
        'Class.forName("com.sun.tools.attach.VirtualMachine").getMethod("list").invoke(null);',
        WRONG,
    ),
    "every thread stopped": ("for (Thread thread : Thread.getAllStackTraces().keySet()) thread.interrupt();", DENIED),
    "the group of threads ended": ("Thread.currentThread().getThreadGroup().interrupt();", WRONG),
    "the test's data changed": ("for (int n = 0; n < prices.size(); n++) prices.set(n, 0.0);", WRONG),
    "a native library": ('System.load("/lib/x86_64-linux-gnu/libc.so.6");', DENIED),
    "the default handler of exceptions": ("Thread.setDefaultUncaughtExceptionHandler((thread, error) -> { });", DENIED),
    "a provider of its own": (
        "java.security.Security.insertProviderAt(java.security.Security.getProviders()[0], 1);",
        DENIED,
    ),
    "a listener named to the launcher": (
        'System.setProperty("junit.platform.execution.listeners.deactivate", "*");',
        DENIED,
    ),
}
JAVA_FORGERIES = {
    **{name: (_tried(statements), reason) for name, (statements, reason) in _TRIED.items()},
    "an exception that says nothing": (
        "throw new RuntimeException() {\n    public String getMessage() { return null; }\n"
        "    public StackTraceElement[] getStackTrace() { return null; }\n};",
        "",
    ),
    "an error that a launcher does not take for a failure": ("throw new ThreadDeath();", WRONG),
    "memory without end": (
        "java.util.List<long[]> all = new java.util.ArrayList<>();\nwhile (true) all.add(new long[1 << 20]);",
        "",
    ),
    "a stack without end": ("return total(prices);", WRONG),
    "an endless text": (
        'StringBuilder text = new StringBuilder("x");\nfor (int n = 0; n < 22; n++) text.append(text);\n'
        "for (int n = 0; n < 40; n++) System.out.println(text);\nreturn 0;",
        "",
    ),
    "no number at all": ("return Double.NaN;", WRONG),
}
