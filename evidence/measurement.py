"""A number as every results file, table and figure has it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Measurement:
    """An estimate with its interval, and what both rest on.

    Attributes:
      value: the estimate, or None where it is undefined (a ratio with total 0).
      low: lower end of the interval, or None where no interval can be given.
      high: upper end of the interval, or None.
      n: how many replicates the interval rests on.
      unit: the unit of replication, such as "run", "sample" or "subject".
      method: how the interval was made, such as "t 95%" or "Wilson 95%".
    """

    value: float | None
    low: float | None
    high: float | None
    n: int
    unit: str
    method: str

    def __str__(self) -> str:
        if self.value is None:
            return f"undefined ({self.method})"
        if self.low is None or self.high is None:
            return f"{self.value:.4g} ({self.method})"
        return f"{self.value:.4g} [{self.low:.4g}, {self.high:.4g}]"
