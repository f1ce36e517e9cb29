"""The benchmark: repositories, samples, reference answers, and what strategies may see of them."""
