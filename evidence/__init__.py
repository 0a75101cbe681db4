"""The ground floor: what turns numbers into claims. Imports none of the three wings."""

from evidence.runs import load
from evidence.stats import Measurement

__all__ = ["Measurement", "load"]
