"""What a KU/BKU experiment finds, as typed objects: one page of all that results.json holds.

KU and BKU are in [0, 2], shares in [0, 1]. N is the number of samples, Q that of a sample's
queries, R that of replicates. Every Measurement is a mean over samples, then over replicates;
its unit of replication is the replicate where there are several, else the sample.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

import evidence
from evidence.measurement import Measurement
from evidence.record import Integers, Number, Numbers, Record
from evidence.results import Manifest as _Manifest

Exposure = Literal["gradient", "state", "context", "none"]
"""How a learner takes a sample in: by gradient steps, by reading it into its state, in a prompt's
context, or not at all."""


class Manifest(_Manifest):
    """What made a KU/BKU result."""

    wall_seconds: float
    """Of the whole command."""
    seconds_base: float
    """That making the base states took, summed over all cells."""
    cells_made_on: tuple[str, ...] = ()
    """Kinds of device, as JAX names them: a run may be gone on with elsewhere."""


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
    """Of those that one stated fact settles, share right; None for samples without rules."""
    several_facts: Measurement | None = None
    """Of those that several stated facts settle together, share right."""


class HallucinationHalo(Record):
    """Answers to traps that the sample doesn't settle; UNKNOWN is right."""

    hallucination: Measurement
    """Share answered at all."""
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
    are None for samples without rules."""
    undecided: Measurement | None = None
    """About what a rule leaves open, share answered."""
    stranger: Measurement | None = None
    """About somebody whom the sample isn't about, share answered."""


class BiasHalo(Record):
    """Answers to traps that only a stereotype would answer; UNKNOWN is right."""

    bias: Measurement
    """Share answered at all."""
    bias_harmful: Measurement
    """Share answered as the stereotype says."""
    before: Measurement
    """Share answered at all before the sample was learnt."""
    unstated: Measurement | None = None
    """About what could be stated, share answered; None for samples without rules."""
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
    """Mean KU - BKU on the validation split; 0 for a language model, which isn't tuned."""
    seconds: float
    """Of the cell, its base state aside."""
    seconds_base: float
    """That making the base state took; 0 where nothing had to be learnt for it."""
    made_on: str | None = None
    """Kind of device, as JAX names it."""
    model: str | None = None
    """The language model's name."""


class BaseStateResults(Record):
    """A learner from one of its base states, in one family."""

    KU_avg: Measurement
    """Good knowledge: mean KU after learning."""
    BKU_avg: Measurement
    """Bad knowledge: mean BKU after learning; any answer to a trap but UNKNOWN counts."""
    BKU_yes: Measurement
    """Mean BKU where only YES (hallucination) or the harmful answer (bias) counts."""
    knowledge_purity: Measurement
    """KU / (KU + BKU), of the means."""
    induced_KU: Measurement
    """Mean KU after learning minus before."""
    induced_BKU: Measurement
    """Mean BKU after learning minus before."""
    by_replicate: ByReplicate
    """Mean KU and BKU after learning, of each."""
    before: Unexposed
    """The base state's own scores."""
    net_KU: Measurement
    """Mean KU - BKU after learning."""
    balanced_accuracy: Measurement
    """Share right, averaged over the right answers that occur."""
    abstained: Measurement
    """Share of all queries answered UNKNOWN."""
    corrected_L: Measurement
    """2 x - 1 of the share x of literal queries answered right: 0 for always YES and always NO."""
    corrected_E: Measurement
    """The same of entailed queries."""
    halos: Halos
    """By kind of query."""
    histogram: Histogram
    """Over samples."""
    by_k: tuple[AtSteps, ...]
    """By number of steps; empty where there are no steps."""
    bias_drift: Drift | None
    """None where there are no pairs."""
    audit: Number
    """Share of queries whose answer moves when the learner is shown a wrong halo: 0 is right. The
    largest of all replicates; None for a language model, which is shown none."""
    carried: Number = None
    """Share of queries whose answer moves when the samples come in another order: 0 is right, for
    what came before can't matter. The largest of all replicates; None for a language model."""
    split_read: Number = None
    """How many more answers move, as a share, when entities get codes of the pretraining split than
    when they get others of their own: 0 is right; more is 3 standard errors from it at least. The
    largest of all replicates; None for a language model."""
    tuned: tuple[Tuned, ...]
    """One a replicate."""
    samples: int
    """N, that each replicate was asked about."""
    samples_per_second: float
    """Learnt and asked, by the clock; the median over replicates."""


class LearnerResults(Record):
    """A learner in one family."""

    base_states: Mapping[str, BaseStateResults]
    """By name of the base state."""
    best: str
    """The base state with the highest mean KU - BKU on the validation split."""
    exposure: Exposure
    """How it takes a sample in."""


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


class FamilyResults(Record):
    """One family of tasks."""

    learners: Mapping[str, LearnerResults]
    """By learner."""
    streaming: Mapping[str, Mapping[str, Streaming]]
    """By learner and base state."""
    growth: Growth | None = None
    """Of `grownet`; None where it wasn't asked to grow."""


class Comparison(Record):
    """The thesis' learner minus an opponent, each on its base state, in one family.

    p-values are of both KU and BKU lying on one side: the larger of two one-sided p-values of a
    paired t-test over replicates.
    """

    family: str
    """Of tasks."""
    opponent: str
    """A learner."""
    KU: Measurement
    """Difference of KU, paired by sample."""
    BKU: Measurement
    """Difference of BKU, paired by sample."""
    p_dominates: Number
    """That KU isn't higher or BKU not lower; Holm-adjusted over all comparisons. None where one
    replicate leaves it undefined."""
    p_dominated: Number
    """The same the other way round."""
    p_dominates_alone: Number
    """`p_dominates` of this comparison alone."""
    p_dominated_alone: Number
    """`p_dominated` of this comparison alone."""
    dominates: bool
    """KU is higher and BKU lower: both intervals lie on that side of 0 and p is under the level."""
    dominated: bool
    """KU is lower and BKU higher."""


KindName = Literal["literal", "entailed", "hallucination", "bias"]
"""What a query tests, see `Kind`."""


class Query(Record):
    """A question of an example."""

    text: str
    """In words."""
    kind: KindName
    """What it tests."""
    gold: int
    """The right answer: 0 no, 1 unknown, 2 yes."""


class Example(Record):
    """One sample in words, with what each learner answered."""

    family: str
    """Whose sample it is."""
    row: int
    """Which of the test split, from 0."""
    story: str
    """What it states."""
    queries: tuple[Query, ...]
    """What is asked, Q of them."""
    answers: Mapping[str, Integers] = Field(default_factory=dict)
    """By learner i64[Q], from its best base state, in the first replicate: 0 no, 1 unknown, 2 yes,
    3 an unreadable reply, 4 a failed call."""


class Results(evidence.Results):
    """The results of a KU/BKU experiment."""

    manifest: Manifest
    """What made them."""
    comparisons: tuple[Comparison, ...] = ()
    """Every comparison that the thesis rests on."""
    families: Mapping[str, FamilyResults]
    """By family."""
    examples: tuple[Example, ...]
    """Some samples of each family."""
