"""The ground floor: what turns numbers into claims. Imports none of the three wings, nor JAX."""

from evidence.measurement import Measurement
from evidence.results import Results, load
from evidence.ruling import Condition, Ruling, rule

__all__ = ["Condition", "Measurement", "Results", "Ruling", "load", "rule"]
