"""Graphs, what they may not say, and the oracle that judges claims by both."""
