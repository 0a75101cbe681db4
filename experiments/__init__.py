"""Hydra entry points: compose, run, save."""
