"""Reads CoderEval's predictions, and locates and rebuilds CoderEval's tasks in repositories."""
