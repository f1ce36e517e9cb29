"""Import predictions and verdicts that others recorded as stored runs."""
