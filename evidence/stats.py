"""Numbers with their uncertainty."""

from __future__ import annotations

from typing import NamedTuple


class Measurement(NamedTuple):
    """A number as it appears in every results file, table and figure.

    Attributes:
      value: the estimate, or None where it is undefined (a ratio with total 0).
      low: lower end of the interval, or None where no interval can be given.
      high: upper end of the interval, or None.
      n: how many replicates the interval rests on.
      unit: the unit of replication, such as "run", "sample" or "subject".
      method: how the interval was made, such as "t 95%" or "BCa bootstrap 95%".
    """

    value: float | None
    low: float | None
    high: float | None
    n: int
    unit: str
    method: str
