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
from evidence.record import Integers, Number, Record
from evidence.results import Manifest as _Manifest
from kubku.parts import (
    AtBKU,
    AtSteps,
    ByReplicate,
    Curve,
    Drift,
    Growth,
    Halos,
    Histogram,
    Streaming,
    Tuned,
    Unexposed,
)

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


class BaseStateResults(Record):
    """A learner from one of its base states, in one family."""

    KU_avg: Measurement
    """Good knowledge: mean KU after learning."""
    BKU_avg: Measurement
    """Bad knowledge: mean BKU after learning, traps as they were dealt; NO and YES count."""
    BKU_balanced: Measurement | None = None
    """The same, traps weighted equally by stratum."""
    frontier: Mapping[str, AtBKU] = Field(default_factory=dict)
    """By limit of BKU. All else here is at "0.2"; empty where no scores are given."""
    curve: Curve | None = None
    """Of which `frontier` holds points; of the trial that was chosen for "0.2"."""
    unlearnt: int = 0
    """Replicates in which KU after a sample isn't surely above that before (t over samples)."""
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
    invalid: Measurement | None = None
    """Share of all queries whose reply can't be read: neither good nor bad knowledge."""
    errors: Measurement | None = None
    """Share of all queries whose call failed: neither good nor bad knowledge."""
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
    when they get others of their own: 0 is right; more is `audits.SURE` standard errors from it at
    least. The largest of all replicates; None for a language model."""
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
    """The base state with the highest mean `objective` on the validation split."""
    exposure: Exposure
    """How it takes a sample in."""


class FamilyResults(Record):
    """One family of tasks."""

    learners: Mapping[str, LearnerResults]
    """By learner."""
    streaming: Mapping[str, Mapping[str, Streaming]]
    """By learner and base state."""
    growth: Growth | None = None
    """Of `grownet`; None where it wasn't asked to grow."""


class Comparison(Record):
    """The thesis' learner minus an opponent, each on its base state, in one family, each at the
    BKU that the thesis names.

    p-values are of a paired t-test over replicates of the difference of KU, one-sided.
    """

    learner: str = ""
    """The thesis' learner."""
    family: str
    """Of tasks."""
    opponent: str
    """A learner."""
    KU: Measurement
    """Difference of KU at matched BKU."""
    BKU: Measurement
    """Difference of the BKU that came of it on the test split."""
    beside: Mapping[str, Measurement] = Field(default_factory=dict)
    """Difference of KU at other limits of BKU."""
    kept: bool = True
    """The thesis' learner kept to the limit on the test split: its BKU lies below limit + slack."""
    kept_by_opponent: bool = True
    """So did the opponent."""
    opponent_learnt: bool = True
    """The opponent's induced KU lies above 0; a win over who hasn't learnt is none."""
    needed: int | None = None
    """Replicates that find the difference worth finding with the power the thesis names, given the
    spread of this comparison's differences."""
    p_dominates: Number
    """That KU isn't higher; Holm-adjusted over the map of wins. None where one replicate leaves it
    undefined."""
    p_dominated: Number
    """The same the other way round."""
    p_dominates_alone: Number
    """`p_dominates` of this comparison alone."""
    p_dominated_alone: Number
    """`p_dominated` of this comparison alone."""
    dominates: bool
    """In the map of wins: KU is surely higher, by interval and adjusted p; BKU is kept."""
    dominated: bool
    """KU is surely lower, at a BKU that the opponent keeps."""


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
    answer: str | None = None
    """What came out, in a sentence."""
    comparisons: tuple[Comparison, ...] = ()
    """Every comparison that the thesis rests on: the map of wins."""
    families: Mapping[str, FamilyResults]
    """By family."""
    examples: tuple[Example, ...]
    """Some samples of each family."""
