"""Timings, side by side in one run, as files in `benchmarks/results/`."""
