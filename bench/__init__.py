"""The benchmark: repositories, samples, answers and strategies' views of them. Independent of models and strategies."""
