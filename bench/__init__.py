"""The benchmark: repositories, samples, references, and the views that strategies see."""
