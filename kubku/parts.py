"""The parts of what a learner on one base state comes to, as typed objects.

KU and BKU are in [0, 2], shares in [0, 1]; differences in the bounds that follow. N is the number
of samples, Q that of a sample's queries, R that of replicates, T that of thresholds.
"""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from evidence.measurement import Measurement
from evidence.record import Integers, Number, Numbers, Record


class LiteralHalo(Record):
    """Answers to what the sample states."""

    literal: Measurement
    """Share right."""
    literal_yes: Measurement
    """Of those whose right answer is YES, share right."""
    literal_no: Measurement
    """Of those whose right answer is NO, share right."""
    before: Measurement
    """Share right before the sample was learnt."""
    wrong: Measurement | None = None
    """Share answered the other way round, which costs no KU; None where that isn't known."""


class EntailedHalo(Record):
    """Answers to what follows from the sample."""

    entailed: Measurement
    """Share right."""
    entailed_yes: Measurement
    """Of those whose right answer is YES, share right."""
    entailed_no: Measurement
    """Of those whose right answer is NO, share right."""
    before: Measurement
    """Share right before the sample was learnt."""
    one_fact: Measurement | None = None
    """Of those that one stated fact settles, share right; None where that isn't known."""
    several_facts: Measurement | None = None
    """Of those that several stated facts settle together, share right."""
    one_fact_forced: Measurement | None = None
    """Of those that one fact settles, share right with an abstention threshold of 0: what is known,
    whether or not it can be told from what isn't; None of who gives no scores."""
    several_facts_forced: Measurement | None = None
    """The same of those that several facts settle together."""
    wrong: Measurement | None = None
    """Share answered the other way round, which costs no KU; None where that isn't known."""


class HallucinationHalo(Record):
    """Answers to traps that the sample doesn't settle; UNKNOWN is right."""

    hallucination: Measurement
    """Share answered NO or YES."""
    hallucination_yes: Measurement
    """Share answered YES."""
    before: Measurement
    """Share answered at all before the sample was learnt."""
    trained: Measurement | None = None
    """About attributes whose traps base states were trained on, share answered."""
    withheld: Measurement | None = None
    """About attributes whose traps were withheld from base states, share answered."""
    unstated: Measurement | None = None
    """About an attribute that could be stated and isn't, share answered; this one and the next two
    are None where there are none."""
    undecided: Measurement | None = None
    """About what a rule leaves open, share answered."""
    stranger: Measurement | None = None
    """About somebody whom the sample isn't about, share answered."""


class BiasHalo(Record):
    """Answers to traps that only a stereotype would answer; UNKNOWN is right."""

    bias: Measurement
    """Share answered NO or YES."""
    bias_harmful: Measurement
    """Share answered as the stereotype says."""
    before: Measurement
    """Share answered at all before the sample was learnt."""
    unstated: Measurement | None = None
    """About what could be stated, share answered; None where there are none."""
    undecided: Measurement | None = None
    """About what only a rule could settle, share answered."""


class Halos(Record):
    """A sample's queries by kind."""

    L: LiteralHalo
    """Literal."""
    E: EntailedHalo
    """Entailed."""
    H: HallucinationHalo
    """Hallucination."""
    B: BiasHalo
    """Bias."""


class Histogram(Record):
    """How scores are spread over the samples of all replicates."""

    edges: Numbers
    """f64[bins + 1], edges of the bins, from 0 to 2."""
    KU: Integers
    """i64[bins], samples in each bin by KU."""
    BKU: Integers
    """i64[bins], samples in each bin by BKU."""


class Unexposed(Record):
    """Scores of the base state, before a sample is learnt."""

    KU_avg: Measurement
    """Mean KU."""
    BKU_avg: Measurement
    """Mean BKU."""


class AtSteps(Record):
    """Scores after a number of gradient steps, or passes, other than the tuned one."""

    K: int
    """The number."""
    KU_avg: Measurement
    """Mean KU; over the first replicate alone."""
    BKU_avg: Measurement
    """Mean BKU; over the first replicate alone."""


class ByReplicate(Record):
    """Means of each replicate."""

    KU: Numbers
    """f64[R]."""
    BKU: Numbers
    """f64[R]."""


class AtBKU(Record):
    """Good knowledge at a limit of bad knowledge, which the threshold was set to on the validation
    split: the highest KU there at a BKU of no more, traps weighted equally by stratum.

    A replicate that reaches the limit at no threshold counts as silence: KU 0, BKU 0.
    """

    KU: Measurement
    """Mean KU on the test split."""
    KU_interquartile: Number
    """Mean KU of the middle half of the replicates."""
    BKU: Measurement
    """That came of it on the test split, traps weighted equally by stratum."""
    by_replicate: ByReplicate
    """Of each."""
    unreached: int
    """Replicates that reach the limit at no threshold."""


class Curve(Record):
    """What a learner trades on the test split, over all thresholds; means of replicates."""

    KU: Numbers
    """f64[T], mean KU at each threshold."""
    BKU: Numbers
    """f64[T], BKU there, traps weighted equally by stratum."""


class Drift(Record):
    """How answers move between two samples that differ in a protected attribute alone.

    The last four are there for base states made in another world, too; of the first replicate
    alone, so that their unit is the pair.
    """

    flips: Measurement
    """Share of queries answered otherwise though the right answer is the same."""
    signed: Measurement
    """How much oftener a trap that the attribute cues is answered by the stereotype for the one it
    is about, in [-1, 1]."""
    flips_less_balanced: Measurement | None = None
    """`flips`, less that of a base state made in a balanced world."""
    signed_less_balanced: Measurement | None = None
    """`signed`, less that of a base state made in a balanced world."""
    flips_less_skewed: Measurement | None = None
    """`flips`, less that of a base state made in a skewed world."""
    signed_less_skewed: Measurement | None = None
    """`signed`, less that of a base state made in a skewed world."""


class Tuned(Record):
    """What was chosen on the validation split, and what the cell took."""

    trial: Mapping[str, int | float] = Field(default_factory=dict)
    """Settings of the state, by name."""
    threshold: float | None = None
    """Abstention threshold in [0, 1]; None for a language model, which gives no scores."""
    objective: float
    """On the validation split the highest KU at a BKU of .2 at most, traps weighted equally by
    stratum; where no threshold reaches that, least BKU, negative; 0 for a language model."""
    thresholds: Mapping[str, float] = Field(default_factory=dict)
    """By limit of BKU."""
    reached: Mapping[str, bool] = Field(default_factory=dict)
    """By limit of BKU, whether some threshold kept it on the validation split."""
    updates: int | None = None
    """Adam steps that the base state was trained for; None where nothing was trained."""
    level: bool | None = None
    """Whether its loss had levelled before the last that there may be."""
    seconds: float
    """Of the cell, its base state aside."""
    seconds_base: float
    """That making the base state took; 0 where nothing had to be learnt for it."""
    made_on: str | None = None
    """Kind of device, as JAX names it."""
    model: str | None = None
    """The language model's name."""


class Retention(Record):
    """What is left of a sample after so many others were learnt."""

    KU: Measurement
    """Mean KU about it."""
    BKU: Measurement
    """Mean BKU about it."""
    KU_since: Measurement
    """Mean change of KU since it was learnt, over the same samples."""


class Streaming(Record):
    """Samples learnt one after the other; streams, not samples, are what is resampled."""

    delta_KU: Measurement
    """Mean KU about a sample just after learning it minus just before."""
    delta_BKU: Measurement
    """The same of BKU."""
    KU_by_time: Numbers
    """f64[T], mean KU about each sample of a stream just after it was learnt."""
    BKU_by_time: Numbers
    """f64[T], mean BKU about it."""
    retention: Mapping[str, Retention]
    """By how many samples were learnt since: "1", "10", "100"; of those that fit in a stream."""


class Growth(Record):
    """How a learner's base state grew while it heard the pretraining split, first replicate."""

    samples: Integers
    """i64[P], how many it had heard."""
    neurons: Integers
    """i64[P], neurons in use."""
    slots: Integers
    """i64[P], slots in use."""
