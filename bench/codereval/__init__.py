"""CoderEval's tasks: read, locate in repositories, judge by tests."""
