package ctxbench;

import com.sun.management.OperatingSystemMXBean;
import java.io.IOException;
import java.io.PrintWriter;
import java.lang.management.ManagementFactory;
import java.util.Arrays;
import java.util.BitSet;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.support.descriptor.MethodSource;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.TestPlan;
import org.junit.platform.reporting.legacy.LegacyReportingUtils;

/** Notes which blocks each test enters, with what sets up its class and makes its object. Blocks call {@link #hit}; JUnit calls the rest. */
public final class Probe implements TestExecutionListener {
    // Plain bytes: a probe stands in the hottest loops.
    private static final byte[] HITS = new byte[Integer.getInteger("ctxbench.probes", 0) + 1];

    // Processor time, and not the clock's: a busy machine makes no test slow.
    private static final OperatingSystemMXBean SYSTEM =
        (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

    private final StringBuilder lines = new StringBuilder();
    // What was met in each test and in the set-up of each class, by their ids.
    private final Map<String, BitSet> met = new HashMap<>();
    private TestPlan plan;
    private String last = "";
    private long began;

    public static void hit(int number) {
        HITS[number] = 1;
    }

    @Override
    public void testPlanExecutionStarted(TestPlan plan) {
        this.plan = plan;
        Arrays.fill(HITS, (byte) 0);
    }

    @Override
    public void executionStarted(TestIdentifier test) {
        String parent = test.getParentId().orElse("");
        // What runs before the first test of a class sets the class up; what runs before another one makes its object.
        credit(parent.equals(last) ? parent : test.getUniqueId());
        last = test.getUniqueId();
        began = SYSTEM.getProcessCpuTime();
    }

    @Override
    public void executionFinished(TestIdentifier test, TestExecutionResult result) {
        long took = SYSTEM.getProcessCpuTime() - began;
        credit(test.getUniqueId());
        last = "";
        if (!test.isTest()) {
            return;
        }
        BitSet all = met.remove(test.getUniqueId());
        for (Optional<TestIdentifier> up = plan.getParent(test); up.isPresent(); up = plan.getParent(up.get())) {
            all.or(met.getOrDefault(up.get().getUniqueId(), new BitSet()));
        }
        StringBuilder hits = new StringBuilder();
        all.stream().forEach(number -> hits.append(hits.length() == 0 ? "" : ",").append(number));
        String owner = LegacyReportingUtils.getClassName(plan, test);
        lines.append(owner).append('\t').append(test.getLegacyReportingName().replaceAll("\\s", " "));
        lines.append('\t').append(isOf(owner, test)).append('\t');
        lines.append(result.getStatus()).append('\t').append(took / 1000000).append('\t').append(hits).append('\n');
    }

    /** Add what was met since this was called last to what a test or a class met. */
    private void credit(String id) {
        BitSet hits = met.computeIfAbsent(id, absent -> new BitSet());
        for (int number = 0; number < HITS.length; number++) {
            if (HITS[number] != 0) {
                hits.set(number);
                HITS[number] = 0;
            }
        }
    }

    /** Say whether the method is its class's own: suites of JUnit 3 also hold tests of other classes. */
    private static boolean isOf(String owner, TestIdentifier test) {
        return test.getSource().filter(MethodSource.class::isInstance).map(MethodSource.class::cast)
            .map(source -> source.getClassName().equals(owner)).orElse(true);
    }

    @Override
    public void testPlanExecutionFinished(TestPlan plan) {
        try (PrintWriter out = new PrintWriter(System.getProperty("ctxbench.coverage"), "UTF-8")) {
            out.print(lines);
        } catch (IOException error) {
            throw new IllegalStateException(error);
        }
    }
}
