"""What growing optimisation pressure does, as typed objects: the second page of nouns of
results.json.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from evidence.measurement import Measurement
from evidence.record import Integers, Numbers, Record

Kind = Literal["rises", "over-optimised", "misspecified"]


class Peak(Record):
    """Where a true return peaks under growing pressure, and what is lost after; over runs.

    Peaks are chosen on one half of the evaluation worlds and measured on the other. All but the
    steps are in the units of the return.
    """

    peak_steps: Measurement
    """Training steps at the peak."""
    peak: Measurement
    """The return at the peak."""
    end: Measurement
    """At the last look."""
    drop: Measurement
    """peak less end."""
    early_stopping_saves: Measurement
    """Gained by stopping each run where the others peak; undefined for one run."""
    early_stopping_steps: Measurement
    """Share of the training that this leaves out; undefined for one run."""
    start: Measurement
    """Before any training."""
    rise: Measurement
    """peak less start."""
    gain: Measurement
    """end less start."""
    kind: Kind | None = None
    """over-optimised: the return rises, and then falls by a tenth of that or more; misspecified: it
    falls from its start on; rises: it ends higher, with no such fall. None where intervals leave
    that open, with fewer than three runs, or where the truth has not learnt."""
    because: str = ""
    """What decided the kind."""


class RunCurve(Record):
    """One run's returns at each look. f64[looks] each."""

    seed: int
    """Of the run."""
    sqrt_kl: Numbers
    """Square root of the divergence of the policy from the initial one, a step of its own rollouts,
    nats^0.5."""
    proxy_return: Numbers
    """The mode's own reward per 1,000 steps."""
    true_return: Numbers
    """Energy per 1,000 steps."""
    deaths: Numbers
    """Per 1,000 steps."""
    survival: Numbers
    """Restricted mean of first lives, up to 256 steps."""
    looks: int | None = None
    """How many of these were taken before it stopped; those after them repeat the last. None for
    all."""


class Form(Record):
    """How a form in d, the root of the divergence, follows the gain of energy since the start.

    gao: d (a - b log d), which Gao, Schulman & Hilton (2023) found for optimisation by
    reinforcement learning; quadratic: d (a - b d), theirs for best-of-n; flat: no more change.
    """

    coefficients: tuple[Measurement, ...]
    """a and b, fitted to the earlier half of a run's looks; over runs."""
    prediction_error: Measurement
    """Root mean square over the later half, energy per 1,000 steps; over runs."""
    r_squared: Measurement
    """Fitted to all looks: the share of the variance that it explains; over runs."""


class GoodhartCurve(Peak):
    """A mode's own and its true return while its training goes on, energy being the truth."""

    steps: Integers
    """Training steps at each look. i64[looks]."""
    runs: tuple[RunCurve, ...]
    """One a seed."""
    by_survival: Peak
    """The same with the restricted mean of first lives as the truth, steps."""
    forms: Mapping[str, Form] = Field(default_factory=dict)
    """By name: gao, quadratic, flat. Empty with fewer than eight looks."""
    gao_less_quadratic: Measurement | None = None
    """Difference of their prediction errors, over runs; None without them."""


class Returns(Record):
    """What policies gain, by each measure; over runs."""

    energy_per_1k_steps: Measurement
    """The true return by energy."""
    survival: Measurement
    """The true return by survival: restricted mean of first lives up to 256 steps."""
    reward_per_1k_steps: Measurement
    """The cell's own reward."""


class PhaseCell(Record):
    """One cell of the phase diagram after some training; intervals over runs."""

    poison_reward: float
    """For eating poison, where food's is 1."""
    distance: float
    """Between what food and poison look like."""
    steps: int
    """Training steps: the pressure."""
    overall_efficiency: Measurement
    """food / (food + poison) over all that was eaten."""
    selectivity: Measurement
    """Manly's alpha of food against poison; 0.5 is no preference."""
    deaths_per_1k_steps: Measurement
    """Deaths in 1,000 steps."""
    drop: Measurement
    """Of the true return after its peak, energy per 1,000 steps (`Peak.drop`)."""
    reward_correlation_random: Measurement
    """Between the cell's reward and the true one, over the steps of a random walk."""
    reward_correlation_trained: Measurement
    """The same over the steps of the trained policy."""
    converged: int
    """Runs that had levelled off by the end of their training."""
    trained: Returns
    """What the policies gain."""
    untrained: Returns
    """What they gained before any training, in the same worlds."""
    gain: Measurement
    """Energy per 1,000 steps that training brought: trained less untrained, run by run."""
