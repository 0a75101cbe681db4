"""From measurements to a verdict: one machinery for every thesis.

What supports or falsifies a thesis, and what must hold before it can be judged, is the wing's to
say. Here is what follows from it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from pydantic import Field

from evidence.measurement import Measurement
from evidence.record import Record

State = Literal["met", "refuted", "undetermined"]
Verdict = Literal["supported", "not as stated", "falsified", "inconclusive"]

LEAST_REPLICATES = 3
"""No verdict is given on fewer."""


class Condition(Record):
    """One condition of a thesis, and what was measured of it."""

    name: str
    """What the condition is about, in words."""
    role: Literal["requires", "supports", "falsifies"]
    """requires: without it there is no verdict; supports: all must be met; falsifies: one that is
    met suffices."""
    wanted: str
    """Where the measurement must lie, in words."""
    state: State
    """Met or refuted at 95%, else undetermined."""
    measured: Mapping[str, Measurement] = Field(default_factory=dict)
    """What decided, by quantity."""

    def __str__(self) -> str:
        told = "; ".join(
            f"{name} {measured}" if len(self.measured) > 1 else str(measured)
            for name, measured in self.measured.items()
        )
        return f"{self.name} {self.wanted}" + (f": {told}" if told else "")


class Ruling(Record):
    """The verdict on a thesis."""

    statement: str
    """The thesis, as it was stated before the run."""
    verdict: Verdict | None
    """falsified: a falsifying condition is met; not as stated: a supporting one is refuted;
    supported: all supporting ones are met; inconclusive: anything else. None: no verdict is given,
    since a required condition is not met."""
    because: str
    """The condition that decided, with what was measured."""
    conditions: tuple[Condition, ...]
    """All of them."""

    def __str__(self) -> str:
        return f"{self.verdict or 'no verdict'}: {self.because}"


def rule(statement: str, conditions: Sequence[Condition]) -> Ruling:
    """Judge a thesis by its conditions.

    Args:
      statement: what is judged.
      conditions: the first that decides is named, so the most telling comes first.
    """

    def first(role: str, *states: State) -> Condition | None:
        return next((c for c in conditions if c.role == role and c.state in states), None)

    verdict: Verdict | None
    if missing := first("requires", "refuted", "undetermined"):
        verdict, because = None, f"needed first: {missing}"
    elif against := first("falsifies", "met"):
        verdict, because = "falsified", f"it holds that {against}"
    elif refuted := first("supports", "refuted"):
        verdict, because = "not as stated", f"refuted: {refuted}"
    elif unclear := first("supports", "undetermined"):
        verdict, because = "inconclusive", f"not determined: {unclear}"
    elif met := first("supports", "met"):
        verdict, because = "supported", f"all conditions are met; {met}"
    else:
        verdict, because = "inconclusive", "the thesis states no condition that supports it"
    return Ruling(
        statement=statement, verdict=verdict, because=because, conditions=tuple(conditions)
    )


def enough_replicates(n: int, unit: str) -> Condition:
    """The condition that a verdict rests on three replicates at least."""
    return Condition(
        name=f"{unit}s",
        role="requires",
        wanted=f"at least {LEAST_REPLICATES} (there are {n})",
        state="met" if n >= LEAST_REPLICATES else "refuted",
    )


def state_of(
    measured: Measurement, *, above: float | None = None, below: float | None = None
) -> State:
    """Whether an interval lies on the right side of its bounds, on the wrong side of one, or on
    both sides.

    Args:
      measured: with its interval; without one nothing is determined.
      above: the whole interval must lie above it; None: no such bound.
      below: the whole interval must lie below it.
    """
    if measured.low is None or measured.high is None:
        return "undetermined"
    if (above is not None and measured.high <= above) or (
        below is not None and measured.low >= below
    ):
        return "refuted"
    if (above is None or measured.low > above) and (below is None or measured.high < below):
        return "met"
    return "undetermined"
