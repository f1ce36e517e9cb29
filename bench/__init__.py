"""The benchmark: repositories, samples, answers and the views that strategies get. Knows no model and no strategy."""
