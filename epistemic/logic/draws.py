"""Random draws that are the same on every machine, hash seed and library version."""

from __future__ import annotations

import numpy as np


class Draws:
    """A stream of draws, made from Philox's raw output alone.

    NumPy promises that a bit generator's raw stream never changes, which it doesn't promise of
    `Generator.integers` and the like; so those few are written out here.

    Args:
      seed: any non-negative integer.
      stream: names an independent stream of the same seed.
    """

    def __init__(self, seed: int, stream: int = 0):
        self._bits = np.random.Philox(key=np.array([seed, stream], np.uint64))

    def uniform(self, size: int) -> np.ndarray:
        """f64[size] in [0, 1)."""
        return (self._bits.random_raw(size) >> np.uint64(11)) * 2.0**-53

    def below(self, limit: int | np.ndarray, size: int) -> np.ndarray:
        """i64[size] in [0, limit); limit may be an array of that size."""
        return np.floor(self.uniform(size) * limit).astype(np.int64)

    def order(self, size: int) -> np.ndarray:
        """A permutation of i64[size]."""
        return np.argsort(self._bits.random_raw(size), kind="stable")
