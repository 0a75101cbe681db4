"""What a Goodhart experiment finds, as typed objects: the page of nouns of results.json.

A number that is None is a ratio with total 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, Literal, TypeVar

from pydantic import Field

import evidence
from evidence.measurement import Measurement
from evidence.record import Integers, Number, Numbers, Record
from evidence.results import Manifest as _Manifest
from goodharts_jax.learnt_results import Forecast, LearntStudy, Remedies
from goodharts_jax.pressure import GoodhartCurve, PhaseCell

Quantity = TypeVar("Quantity")

UNIT = "run"
"""The unit of replication: one trained policy with its own seed."""


class Manifest(_Manifest):
    """What made a Goodhart result."""

    survival_horizon: int
    """Steps after which a life that goes on is censored; the same for all modes."""
    wall_seconds: dict[str, float]
    """By part of the run: training, evaluation, total."""
    joined: tuple[str, ...] = ()
    """The results that were joined into this one, as of a sweep's jobs."""


# ---- the table of modes -------------------------------------------------------------------------


class Metrics(Record, Generic[Quantity]):
    """What is measured of every policy; a step is a step of one agent."""

    survival_mean: Quantity
    """Mean age at death of all finished lives, steps."""
    survival_median: Quantity
    """Kaplan-Meier median of first lives, steps; None where fewer than half died."""
    survival_restricted_mean: Quantity
    """Kaplan-Meier mean of first lives up to `Manifest.survival_horizon`, steps."""
    deaths_per_1k_steps: Quantity
    """Deaths in 1,000 steps."""
    deaths_by_poison_share: Quantity
    """Share of deaths on a step that ate poison; None without deaths."""
    food_per_1k_steps: Quantity
    """Food eaten in 1,000 steps."""
    poison_per_1k_steps: Quantity
    """Poison eaten in 1,000 steps."""
    energy_per_1k_steps: Quantity
    """Energy gained less energy spent in 1,000 steps: the true return."""
    proxy_return_per_1k_steps: Quantity
    """Interestingness eaten in 1,000 steps: the same measure for every row."""
    own_return_per_1k_steps: Quantity
    """The mode's own reward, without shaping, in 1,000 steps; None for a script."""
    overall_efficiency: Quantity
    """food / (food + poison) over all that was eaten; None if nothing was."""
    efficiency_mean: Quantity
    """Mean over finished lives of food / (food + poison); 0.5 for a life that ate nothing."""
    efficiency_mean_eaters: Quantity
    """The same, lives that ate nothing left out."""
    selectivity: Quantity
    """Manly's alpha of food against poison, in [0, 1]; 0.5 is no preference."""


class Totals(Metrics[Number]):
    """The metrics of a group of lives, and how many lives and steps they rest on."""

    total_deaths: int
    """Finished lives."""
    total_steps: int
    """Steps of all agents together."""


class Intervals(Metrics[Measurement]):
    """The metrics as means over runs, with intervals."""


class SurvivalCurve(Record):
    """A Kaplan-Meier curve of first lives: a step function, whole in the ages at which it steps."""

    ages: Integers
    """Steps, rising; the last is the greatest age followed. i64[points]."""
    survival: Numbers
    """Share of lives that last longer. f64[points]."""


class History(Record):
    """A training's course: an entry an update, or the mean of a block of updates.

    All fields but `steps` are f64[entries].
    """

    steps: Integers
    """Training steps so far. i64[entries]."""
    food: Numbers
    """Eaten a step."""
    poison: Numbers
    """Eaten a step."""
    deaths: Numbers
    """A step."""
    reward: Numbers
    """The mode's own, a step."""
    entropy: Numbers
    """Of the policy, nats."""
    kl: Numbers
    """Divergence of the new policy from the old, nats."""
    clipped: Numbers
    """Share of probability ratios that were clipped."""
    policy_loss: Numbers
    """Clipped surrogate loss."""
    value_loss: Numbers
    """Half the squared error of the value."""
    explained_variance: Numbers
    """Share of the returns' variance that the value explains."""
    grad_norm: Numbers
    """Of the whole gradient, before it is clipped."""


class Training(Record):
    """How one policy was trained."""

    steps: int
    """Training steps in all."""
    steps_to_99_efficiency: int | None
    """Until 99% of what was eaten in eight updates in a row was food; None: not reached."""
    converged: bool
    """Whether return and value loss had levelled off."""
    history: History
    """Its course, thinned."""


class RunResults(Totals):
    """One run: a trained policy, or a script in the worlds of a seed."""

    seed: int
    """That its random streams started from."""
    survival: SurvivalCurve
    """Of first lives."""
    efficiency_histogram: Integers
    """Finished lives that ate, by efficiency in whole percent. i64[101]."""
    deaths_by_poison: int
    """Deaths on a step that ate poison."""
    deaths_by_hunger: int
    """All others."""
    training: Training | None = None
    """None for a script."""


class Spread(Record):
    """A quantity over runs and, within each, worlds: where its variation lies."""

    measured: Measurement
    """By a hierarchical bootstrap over runs and then worlds."""
    between_runs: Number
    """Standard deviation; None for fewer than two runs."""
    within_runs: Number
    """Standard deviation between the worlds of one run; None likewise."""


class ModeResults(Record):
    """A row of the table: the runs of a trained mode, or of a scripted policy."""

    scripted: bool
    """Whether nothing was trained."""
    aggregates: Totals
    """Of all runs' lives pooled; of joined results, means over runs."""
    intervals: Intervals
    """Means over runs, with intervals over runs."""
    other_intervals: Intervals | None = None
    """The same by another method, as a second opinion."""
    spread: Mapping[str, Spread] = Field(default_factory=dict)
    """Of overall_efficiency and deaths_per_1k_steps; empty for joined results."""
    runs: tuple[RunResults, ...] = Field(min_length=1)
    """One a seed."""


Modes = Mapping[str, ModeResults]
"""Trained modes and scripted policies by name."""


# ---- what is made of it -------------------------------------------------------------------------


class Comparison(Record):
    """Welch's t-test between the runs of two modes on one metric."""

    a: str
    """A mode."""
    b: str
    """Another."""
    metric: str
    """A field of `Metrics`."""
    family: Literal["primary", "secondary"]
    """In which the p-values are corrected: the pairs of the protocol's modes, or all others."""
    difference: Measurement
    """Mean of a less mean of b."""
    t: Number
    """Welch's statistic."""
    df: Number
    """Welch and Satterthwaite's degrees of freedom."""
    p_one_sided: Number
    """Against a being greater."""
    p_two_sided: Number
    """Against any difference."""
    p_bonferroni: Number
    """p_two_sided, corrected."""
    p_holm: Number
    """p_two_sided, corrected."""
    cohens_d: Measurement
    """Standardised difference."""
    hedges_g: Measurement
    """The same, corrected for few runs."""
    label: str
    """What hedges_g is called in words."""


class LogRank(Record):
    """The log-rank statistic over two modes' first lives: a description, for lives of one policy
    are no replicates.
    """

    a: str
    """A mode."""
    b: str
    """Another."""
    z: Number
    """Positive where a dies more than its share; None where nobody of one was at risk when one of
    the other died."""


class Directions(Record):
    """How a mode's policies answer one item alone in view; means over runs."""

    approach_food: tuple[Numbers, ...]
    """Probability of a step towards the food. f64[8 directions in the order of MOVES, radius]."""
    approach_poison: tuple[Numbers, ...]
    """Of a step towards the poison. f64[8, radius]."""
    chance: tuple[Numbers, ...]
    """Of a random walk's step towards it. f64[8, radius]."""
    food_accuracy: Number
    """Share of these views whose likeliest step approaches the food."""
    poison_accuracy: Number
    """Share whose likeliest step doesn't approach the poison."""


class SurvivalFloor(Record):
    """Whether a mode outlives scripts that have learnt nothing."""

    survival: Measurement
    """Restricted mean over runs, steps."""
    floor: Number
    """The best script's mean; None without a script."""
    script: str | None
    """Its name."""
    above: bool | None
    """Whether the whole interval lies above the floor; None without an interval or a script."""


class Verification(Record):
    """The checks of one mode."""

    directions: Directions
    """Where it goes."""
    converged: bool
    """Whether every run had levelled off."""
    survival_floor: SurvivalFloor
    """Whether it does better than a script."""


class DeviceAgreement(Record):
    """One policy's action probabilities, as each kind of device at hand computes them."""

    devices: tuple[str, ...]
    """Those compared."""
    largest_difference: Number
    """Between any and the first; None where there is one device."""
    tolerance: float
    """Greatest difference that counts as rounding."""
    agree: bool | None
    """Whether they do; None where there is one device."""


# ---- all of it -----------------------------------------------------------------------------------


class Results(evidence.Results):
    """The results of a Goodhart experiment; a part that was not computed is empty or None."""

    manifest: Manifest
    """What made them."""
    modes: Modes
    """The table: trained modes and scripted policies by name."""
    ratios: Mapping[str, Measurement] = Field(default_factory=dict)
    """survival_restricted_mean, truth over proxy; deaths_per_1k_steps, proxy over truth."""
    beside_chance: Mapping[str, Mapping[str, Measurement]] = Field(default_factory=dict)
    """By trained mode, its energy_per_1k_steps, deaths_per_1k_steps and survival_restricted_mean
    less those of a random walk in the same worlds: the two truths, which may disagree."""
    comparisons: tuple[Comparison, ...] = ()
    """Every pair of modes on three metrics."""
    logrank: tuple[LogRank, ...] = ()
    """Every pair of modes."""
    verification: Mapping[str, Verification] = Field(default_factory=dict)
    """Checks by mode."""
    device_agreement: DeviceAgreement | None = None
    """Of the first mode's first policy."""
    goodhart_curves: Mapping[str, GoodhartCurve] = Field(default_factory=dict)
    """By mode."""
    phase_diagram: tuple[PhaseCell, ...] = ()
    """Cells at each of some pressures."""
    study: LearntStudy | None = None
    """The runs of a study of proxies."""
    forecast: Forecast | None = None
    """Its forecast."""
    remedies: Remedies | None = None
    """Its remedies."""
