package ctxbench;

import org.junit.jupiter.api.Assertions;
import org.junit.jupiter.api.Test;

/** A test that must fail, with a message that only the judge knows, while the policy is in force. */
class Canary {
    @Test
    void alarm() {
        Assertions.fail((System.getSecurityManager() == null ? "open " : "") + System.getProperty("ctxbench.canary"));
    }
}
