package ctxbench;

import java.io.IOException;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.List;
import org.junit.platform.commons.JUnitException;
import org.junit.platform.engine.DiscoverySelector;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.discovery.DiscoverySelectors;
import org.junit.platform.launcher.Launcher;
import org.junit.platform.launcher.LauncherDiscoveryRequest;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.TestPlan;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;
import org.junit.platform.reporting.legacy.LegacyReportingUtils;

/** Runs what each selector selects when it stands alone: a line of output for each test that it ran. */
public final class Alone {
    private static final String METHOD = "--select-method=";
    private static final String CLASS = "--select-class=";

    private Alone() { }

    /** Take the file of selectors, as JUnit's console takes them, a line each, and the file to write. */
    public static void main(String[] arguments) throws IOException {
        Launcher launcher = LauncherFactory.create();
        List<String> selectors = Files.readAllLines(Paths.get(arguments[0]), StandardCharsets.UTF_8);
        // Written as it goes: a test that ends the program takes no result of others with it.
        try (PrintWriter out = new PrintWriter(Files.newBufferedWriter(Paths.get(arguments[1])), true)) {
            for (int number = 0; number < selectors.size(); number++) {
                try {
                    LauncherDiscoveryRequest request =
                        LauncherDiscoveryRequestBuilder.request().selectors(selector(selectors.get(number))).build();
                    launcher.execute(request, new Listener(number, out));
                } catch (JUnitException error) {
                    // Nothing is found by it: it has no line.
                }
            }
        }
        System.exit(0);
    }

    private static DiscoverySelector selector(String option) {
        return option.startsWith(METHOD)
            ? DiscoverySelectors.selectMethod(option.substring(METHOD.length()))
            : DiscoverySelectors.selectClass(option.substring(CLASS.length()));
    }

    private static final class Listener implements TestExecutionListener {
        private final int number;
        private final PrintWriter out;
        private TestPlan plan;

        Listener(int number, PrintWriter out) {
            this.number = number;
            this.out = out;
        }

        @Override
        public void testPlanExecutionStarted(TestPlan plan) {
            this.plan = plan;
        }

        @Override
        public void executionFinished(TestIdentifier test, TestExecutionResult result) {
            if (test.isTest()) {
                out.println(number + "\t" + LegacyReportingUtils.getClassName(plan, test) + "\t"
                    + test.getLegacyReportingName().replaceAll("\\s", " ") + "\t" + result.getStatus());
            }
        }
    }
}
