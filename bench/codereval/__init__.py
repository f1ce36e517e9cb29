"""CoderEval's tasks: their records, the functions that they ask for, and the tests that judge them."""
