"""kubku."""
