"""What learnt proxies, forecasts and remedies come to, as typed objects: the third page of nouns of
results.json.
"""

from __future__ import annotations

from collections.abc import Mapping

from evidence.measurement import Measurement
from evidence.record import Integers, Number, Numbers, Record


class PressureCurve(Record):
    """One run under growing pressure, from the policy that it began with. One entry a look."""

    step: Integers
    """Training steps."""
    gold: Numbers
    """True return: energy per 1,000 steps, in worlds where nobody starves."""
    proxy: Numbers
    """The proxy's return per 1,000 steps, without remedies."""
    held_out: Numbers
    """That of reward models fitted to the same labels which nothing optimises; 0 without any."""
    kl: Numbers
    """Divergence of the policy from the one that it began with, nats a step."""


class BestOf(Record):
    """The best of n segments by the proxy, from the policy that the run began with: pressure
    without training.
    """

    n: Integers
    """How many are drawn."""
    kl: Numbers
    """log n - (n - 1) / n, nats a segment."""
    gold: Numbers
    """True return of the chosen one, energy per 1,000 steps."""


class StudyRun(Record):
    """One policy trained on one proxy."""

    proxy: str
    """Its name."""
    seed: int
    """Of the labels, the reward model and the training."""
    remedy: str | None
    """Its name; None without one."""
    strength: int
    """Which of the remedy's strengths, from 0."""
    settings: Mapping[str, float | str | None]
    """Of the proxy."""
    accuracy: Number
    """Share of fresh pairs, drawn as the labels were, that it ranks as the truth does; None for a
    proxy that is not learnt."""
    correlation: Number
    """With the truth, over the steps of the policy that the run began with."""
    curve: PressureCurve
    """Its training."""
    best_of: BestOf | None
    """Beside it; None in a study of remedies."""
    collapsed: bool
    """Whether it ends with less energy than it began with."""
    scores: Mapping[str, Number] = {}
    """What each test says before training, by name; greater is worse. Empty without a forecast."""


class ProxyRow(Record):
    """A proxy's runs without a remedy, in the study's own world; over runs."""

    proxy: str
    """Its name."""
    accuracy: Measurement
    """See `StudyRun.accuracy`."""
    correlation: Measurement
    """See `StudyRun.correlation`."""
    start: Measurement
    """Energy per 1,000 steps before training."""
    peak: Measurement
    """At the look at which the other runs' mean is highest."""
    end: Measurement
    """After training."""
    collapsed: int
    """Runs that end with less than they began with."""
    runs: int
    """Of how many."""


class LearntStudy(Record):
    """Every run of a study, and its rows."""

    runs: tuple[StudyRun, ...]
    """One entry a run."""
    rows: tuple[ProxyRow, ...]
    """One entry a proxy."""


class ForecastScore(Record):
    """How well one test tells collapse before training."""

    auc: Measurement
    """Area under the ROC curve on the proxies that fixed nothing."""
    lead: Measurement
    """Area less that of inaccuracy, on the same proxies."""
    threshold: Number
    """Fixed on the other half of the proxies."""
    right: Measurement
    """Share of unseen runs that are on its right side."""
    r_squared: Measurement
    """Of the energy lost or gained, by a monotone fit to the other half."""
    auc_elsewhere: Measurement | None
    """Area in the other world, with none of its runs seen; None without one."""
    right_elsewhere: Measurement | None
    """Share there by the same threshold."""


class Forecast(Record):
    """Collapse, told before training."""

    auc: Mapping[str, Number]
    """Area under the ROC curve on unseen proxies, by test."""
    scores: Mapping[str, ForecastScore]
    """The tests and their rivals, by name."""
    fixed_on: tuple[str, ...]
    """Proxies that fixed thresholds and fits."""
    judged_on: tuple[str, ...]
    """Proxies that were not looked at before."""
    elsewhere: tuple[StudyRun, ...]
    """Runs in the other world."""


class RemedyRow(Record):
    """What a remedy restores of the gap between no remedy and training on the truth; over runs."""

    name: str
    """Of the remedy, or of a control."""
    best: Measurement
    """At the strength that is best for each proxy: an upper bound, for it was chosen there."""
    chosen: Measurement
    """At the strength that is best on the *other* proxies."""
    by_proxy: Mapping[str, Measurement]
    """At the strength chosen on the others, proxy by proxy."""
    strengths: Mapping[str, int]
    """Which strength that is."""
    elsewhere: Measurement | None = None
    """At the same strengths in another world; None without one."""


class Remedies(Record):
    """Remedies side by side."""

    rows: tuple[RemedyRow, ...]
    """Controls among them: `not_training`, `audit_alone`, `placebo`."""
    proxies: tuple[str, ...]
    """Those with a gap to close."""
    left_out: tuple[str, ...]
    """Those without: trained on them, policies end about as well as on the truth."""
    elsewhere: tuple[StudyRun, ...] = ()
    """Runs in the other world."""
    elsewhere_on: tuple[str, ...] = ()
    """Those of `proxies` with a gap there, too: a row's `elsewhere` counts no others."""
