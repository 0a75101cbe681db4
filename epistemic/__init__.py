"""epistemic."""
