"""What an epistemic experiment finds, as typed objects: `results.json`.

A system's table is its record; whatever else is said of its answers can be computed again from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Generic, Literal, TypeVar

from pydantic import ConfigDict, Field

import evidence
from epistemic.linking.counts import LinkingCounts
from epistemic.usage import Usage
from evidence.measurement import Measurement
from evidence.record import Record

Role = Literal["ranked", "control", "reference"]
Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=0)]


@dataclass(frozen=True)
class Ratio(Measurement):
    """A share of cards, with its interval over subjects and the counts that it was made of.

    Attributes:
      value: numerator / denominator, or None where the denominator is 0.
      low, high: ends of the interval, in [0, 1].
      n: how many subjects have cards that count.
      numerator, denominator: cards for which it holds (F1 counts some twice), and that count.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    value: Share | None
    low: Share | None
    high: Share | None
    numerator: Count
    denominator: Count

    @property
    def measurement(self) -> Measurement:
        """The share without its counts."""
        return Measurement(self.value, self.low, self.high, self.n, self.unit, self.method)


Number = TypeVar("Number", bound=Measurement)


class Four(Record, Generic[Number]):
    """The four metrics, of a system or differences between two; see `scoring.metrics`."""

    AP: Number
    """Abstention precision: share of the abstentions that are right."""
    CVRR: Number
    """Constraint-violation rejection rate: share of the contradictory claims that are rejected."""
    FAR_NE: Number
    """False-answer rate on what is not entailed (contradictory and unknown claims)."""
    LA: Number
    """Licensed-answer accuracy: share of the entailed claims that are answered YES."""

    def __getitem__(self, metric: str) -> Number:
        return getattr(self, metric)


class Beside(Record, Generic[Number]):
    """Ratios that hold under every convention; INVALID counts in every denominator, ERROR in none
    but that of the error rate."""

    accuracy: Number
    """Share of the cards answered with the gold answer."""
    coverage: Number
    """Share of the cards answered YES or NO."""
    selective_accuracy: Number
    """Share right among the cards answered YES or NO."""
    abstention_precision: Number
    """Share of unknown claims among those answered UNKNOWN."""
    abstention_recall: Number
    """Share of the unknown claims answered UNKNOWN."""
    abstention_f1: Number
    """Harmonic mean of the two."""
    over_refusal: Number
    """Share of the entailed claims answered UNKNOWN."""
    invalid_rate: Number
    """Share of the replies that cannot be read."""
    error_rate: Number
    """Share of the calls that failed."""


class AnswerCounts(Record):
    """How many cards were answered how."""

    YES: Count
    """Answered YES."""
    NO: Count
    """Answered NO."""
    UNKNOWN: Count
    """Abstained."""
    INVALID: Count
    """Replies that cannot be read."""
    ERROR: Count
    """Calls that failed."""


class Table(Record):
    """Gold label by answer: the record of a system."""

    E: AnswerCounts
    """Of the entailed claims, gold YES."""
    C: AnswerCounts
    """Of the contradictory claims, gold NO."""
    U: AnswerCounts
    """Of the unknown claims, gold UNKNOWN."""


class Conventions(Record):
    """The four metrics under three conventions of what a right answer is; see `scoring.metrics`."""

    seed: Four[Ratio]
    """As the experiment's description has it: NO rejects a contradictory claim, and so does
    abstaining."""
    strict: Four[Ratio]
    """Abstaining is right on unknown claims alone; only a NO rejects."""
    published: Four[Ratio]
    """As the published code counts: UNKNOWN abstains, YES and NO both answer."""


class Bin(Record):
    """Answers of like confidence."""

    confidence: float
    """Mean of theirs, in [0, 1]."""
    accuracy: Share
    """Share right."""
    n: Count
    """How many."""


class Selective(Record):
    """How well confidence ranks and states the chance of being right; None where no card has a
    confidence."""

    AURC: Measurement | None
    """Area under the risk-coverage curve (Geifman and El-Yaniv 2017), in [0, 1]."""
    E_AURC: Measurement | None
    """That minus the area of the same answers in the best order (Geifman et al. 2019)."""
    brier: Measurement | None
    """Mean squared gap between confidence and being right."""
    ece: Measurement | None
    """Mean absolute gap over 15 bins of equal mass."""
    risk_coverage: tuple[tuple[Share, Share], ...] | None
    """(coverage, risk), the most confident answers first, at the end of each group of equals."""
    reliability: tuple[Bin, ...] | None
    """The 15 bins; fewer where confidences are equal."""
    n: Count
    """Cards with a confidence."""


class KindScores(Record):
    """How a system answered the cards of one kind, which all have one label."""

    table: Table
    """Gold label by answer."""
    accuracy: Ratio
    """Share answered with the gold answer."""


class PredicateScores(KindScores):
    """How a system answered the cards about one predicate."""

    seed: Four[Ratio]
    """The four metrics under the seed convention."""


class Latency(Record):
    """Seconds that a card took."""

    median: float
    """Of all cards."""
    p95: float
    """95 of 100 took less."""


class SystemResults(Record):
    """One system on one deck."""

    role: Role
    """control: must not look ideal; reference: decides the gold answers, and so is not ranked."""
    table: Table
    """Gold label by answer."""
    conventions: Conventions
    """The four metrics."""
    beside: Beside[Ratio]
    """Ratios that hold under every convention."""
    ideal: bool
    """Whether the four metrics lie in the thesis' ideal ranges under the seed convention, with few
    enough failed calls."""
    selective: Selective
    """What its confidence is worth."""
    linking: LinkingCounts | None = None
    """For a system that finds the claim in the question's words; None for those given it."""
    by_kind: Mapping[str, KindScores] = Field(default_factory=dict)
    """By kind of card, such as "C_functional"; kept files leave it out."""
    by_predicate: Mapping[str, PredicateScores] = Field(default_factory=dict)
    """By the predicate's IRI; kept files leave it out."""
    latency_s: Latency | None = None
    """Seconds a card; kept files leave it out."""
    usage: Usage | None = None
    """What asking the model took; None: nothing was counted."""


class SystemComparison(Record):
    """Two systems on the same cards: `one` minus `other`, intervals paired by subject."""

    one: str
    """A system's name."""
    other: str
    """Another's."""
    seed: Four[Measurement]
    """Differences of the four metrics under the seed convention."""
    beside: Beside[Measurement]
    """Differences of the other ratios."""


class CardCounts(Record):
    """How many cards a deck has."""

    total: Count
    """In all."""
    label: Mapping[str, Count]
    """By label: E, C, U."""
    kind: Mapping[str, Count]
    """By how the gold follows, such as "E_stated"."""
    predicate: Mapping[str, Count] = Field(default_factory=dict)
    """By predicate's short name; empty for a deck that was given."""
    family: Mapping[str, Count] = Field(default_factory=dict)
    """By the layout of the facts; empty for a deck that was given."""
    requires: Mapping[str, Count] = Field(default_factory=dict)
    """By what settles the gold, "card" or "graph"; empty for a deck that was given."""


class LeakageAudit(Record):
    """Whether the answers can be told from the cards' form; see `decks.leakage`."""

    cards: Count
    """How many were looked at."""
    chance: Share
    """Share of the commonest gold answer."""
    allowed: float
    """Accuracy that is still no leak: chance + 0.05."""
    accuracy: Mapping[str, Measurement]
    """By classifier, cross-validated; the unit of replication is the card."""
    refused: bool
    """Whether a classifier is above what is allowed and, beyond noise, above chance."""
    undecided: bool
    """Whether one is above what is allowed, within the noise of so few cards."""
    seconds: float
    """That the audit took."""


class KnowledgeGraph(Record):
    """The graph that a deck was drawn from."""

    triples: Count
    """In the whole graph."""
    digest: str
    """Of the whole graph."""
    known: str
    """Digest of the graph less what the deck withholds: what systems may know."""
    violations: Mapping[str, Count]
    """Subjects that break a rule in the graph itself, by rule; their cards are left out."""
    shared_labels: Count
    """Names that several things bear."""
    judged_by_pyshacl: Count
    """Claims that only pySHACL could judge."""
    axioms_unread: Mapping[str, Count] = Field(default_factory=dict)
    """Axioms that nothing reads, by kind: what only they settle is unknown."""
    attribution: str
    """What the data's licence asks to be said."""


class Deck(Record):
    """A deck of cards."""

    domain: str
    """Name of the domain."""
    hash: str = Field(pattern="^[0-9a-f]{64}$")
    """SHA-256 of its lines."""
    counts: CardCounts
    """How many cards, by parts."""
    leakage_audit: LeakageAudit
    """Whether form alone tells the answers."""
    graph: KnowledgeGraph
    """Where it was drawn from."""


class QualityPoint(Record):
    """A point of the sweep over graph quality: the licence with a worse graph, the same cards."""

    keep: Share
    """Share of the triples of claim predicates that is kept."""
    wrong: Share
    """Share of those whose object is swapped for another."""
    triples: Count
    """That are left."""
    systems: Mapping[str, Four[Ratio]]
    """By system, under the seed convention."""


class NearMiss(Record):
    """The systems on the deck of near misses."""

    deck: Deck
    """Claims close to true ones."""
    systems: Mapping[str, SystemResults]
    """By name."""


class Scored(Record):
    """Systems that answered the same cards."""

    systems: Mapping[str, SystemResults] = Field(min_length=1)
    """By name."""
    comparisons: tuple[SystemComparison, ...] = ()
    """Every two that are neither control nor reference; kept files leave them out."""
    thesis: evidence.Ruling
    """The verdict on these cards."""


class WholeGraph(Record):
    """Systems that are shown no facts: right is what the whole graph says, withheld or not."""

    labels: Mapping[str, Count]
    """Cards by label, by the whole graph."""
    changed: Count
    """Cards whose label by their own facts is another."""
    systems: Mapping[str, SystemResults]
    """By name; controls stand beside."""


class Results(evidence.Results):
    """The results of an epistemic experiment."""

    deck: Deck
    """The deck."""
    systems: Mapping[str, SystemResults] = Field(min_length=1)
    """By name, on the cards that their own facts settle; those shown no facts are left out."""
    comparisons: tuple[SystemComparison, ...] = ()
    """Every two that are neither control nor reference; kept files leave them out."""
    needs_graph: Scored | None = None
    """The systems on the cards that only the graph settles; None: the deck has none."""
    whole_graph: WholeGraph | None = None
    """The systems shown no facts, against all that the graph knows; None: there was none."""
    near_miss: NearMiss | None = None
    """The systems on near misses; None: none were made."""
    quality: tuple[QualityPoint, ...] = ()
    """The sweep over graph quality."""
    skipped: Mapping[str, str] = Field(default_factory=dict)
    """Systems that were left out, and why."""
