"""What is measured and what counts as right: repositories, samples, views. Knows no model and no strategy."""
