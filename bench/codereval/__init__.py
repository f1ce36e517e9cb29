"""CoderEval's tasks: their records, what they ask for, the tests that judge them, recorded predictions."""
