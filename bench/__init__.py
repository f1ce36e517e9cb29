"""The benchmark: repositories, samples, reference answers, and the parts that strategies may see."""
