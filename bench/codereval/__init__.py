"""CoderEval's tasks: read records, locate functions, judge completions by tests, read recorded predictions."""
