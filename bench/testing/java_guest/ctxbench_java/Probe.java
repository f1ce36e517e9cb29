package ctxbench;

import java.io.IOException;
import java.io.PrintWriter;
import java.util.Arrays;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.TestPlan;
import org.junit.platform.reporting.legacy.LegacyReportingUtils;

/** Notes which methods each test enters. Methods call {@link #hit}; JUnit calls the rest. */
public final class Probe implements TestExecutionListener {
    // Plain bytes: a probe stands in the hottest loops.
    private static final byte[] HITS = new byte[Integer.getInteger("ctxbench.probes", 0) + 1];

    private final StringBuilder lines = new StringBuilder();
    private TestPlan plan;
    private long began;

    public static void hit(int number) {
        HITS[number] = 1;
    }

    @Override
    public void testPlanExecutionStarted(TestPlan plan) {
        this.plan = plan;
    }

    @Override
    public void executionStarted(TestIdentifier test) {
        if (test.isTest()) {
            Arrays.fill(HITS, (byte) 0);
            began = System.nanoTime();
        }
    }

    @Override
    public void executionFinished(TestIdentifier test, TestExecutionResult result) {
        if (!test.isTest()) {
            return;
        }
        long took = System.nanoTime() - began;
        StringBuilder hits = new StringBuilder();
        for (int number = 0; number < HITS.length; number++) {
            if (HITS[number] != 0) {
                hits.append(hits.length() == 0 ? "" : ",").append(number);
            }
        }
        lines.append(LegacyReportingUtils.getClassName(plan, test)).append('\t');
        lines.append(test.getLegacyReportingName().replaceAll("\\s", " ")).append('\t');
        lines.append(result.getStatus()).append('\t').append(took / 1000000).append('\t').append(hits).append('\n');
    }

    @Override
    public void testPlanExecutionFinished(TestPlan plan) {
        try (PrintWriter out = new PrintWriter(System.getProperty("ctxbench.survey"), "UTF-8")) {
            out.print(lines);
        } catch (IOException error) {
            throw new IllegalStateException(error);
        }
    }
}
