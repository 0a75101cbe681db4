"""Cards and where they come from: families, drawing, wording, near misses, the leakage audit."""
