"""CoderEval's tasks: records, locating their functions, tests that judge them, recorded predictions."""
