"""From rows of answers to what results hold: every system's scores, and systems compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from epistemic.cards import Card
from epistemic.compared import DeckDifference
from epistemic.evaluate import Row, Rows
from epistemic.linking.counts import LinkingCounts
from epistemic.results import (
    Beside,
    Conventions,
    Four,
    KindScores,
    Latency,
    PredicateScores,
    Ratio,
    Scored,
    SystemComparison,
    SystemResults,
)
from epistemic.scoring import metrics
from epistemic.scoring.intervals import Resampled, difference, measure, resample
from epistemic.scoring.metrics import CONVENTIONS, LABELS, seed_convention
from epistemic.scoring.selective import selective
from epistemic.scoring.thesis import Thesis, conditions, is_ideal
from epistemic.systems import role_of
from epistemic.usage import Usage
from evidence import Measurement, Ruling, rule
from evidence.runtime import timings


class _Deck(NamedTuple):
    """Cards as numbers.

    Attributes:
      label: i32[N], rows of a table.
      subject: i[N], in [0, subjects).
      subjects: how many there are.
      member: i[N, 3], the groups each card is in: all, of its kind, of its predicate.
      kinds, predicates: group by name.
      groups: how many there are.
    """

    label: np.ndarray
    subject: np.ndarray
    subjects: int
    member: np.ndarray
    kinds: dict[str, int]
    predicates: dict[str, int]
    groups: int

    @staticmethod
    def of(cards: Sequence[Card]) -> _Deck:
        """Those of a deck."""
        label = np.array([LABELS.index(card.label) for card in cards], np.int32)
        subjects, subject = np.unique([card.subject for card in cards], return_inverse=True)
        kinds = {kind: i for i, kind in enumerate(sorted({c.kind for c in cards}), start=1)}
        iris = sorted({card.claim.pred for card in cards})
        predicates = {iri: i for i, iri in enumerate(iris, start=1 + len(kinds))}
        member = np.array([[0, kinds[c.kind], predicates[c.claim.pred]] for c in cards])
        groups = 1 + len(kinds) + len(predicates)
        return _Deck(label, subject, len(subjects), member, kinds, predicates, groups)


@timings.part("assessment")
def assess(cards: Sequence[Card], answers: Mapping[str, Rows], thesis: Thesis, seed: int) -> Scored:
    """Score systems that answered the same cards, compare them, and judge the thesis.

    Args:
      cards: the deck.
      answers: rows by system.
      thesis: states what is compared, and which values are ideal.
      seed: of the bootstrap.
    """
    deck, names = _Deck.of(cards), list(answers)
    said = _said(cards, list(answers.values()))
    counted = _count(deck.label, said, deck.subject, deck.member, deck.subjects, deck.groups)
    drawn = resample(counted, seed)
    systems = {}
    for i, name in enumerate(names):
        rows = [answers[name][card.id] for card in cards]
        confidence = np.array([np.nan if r.confidence is None else r.confidence for r in rows])
        conventions = _conventions(drawn.at(i, 0))
        beside = Beside[Ratio](**measure(metrics.beside, drawn.at(i, 0)))
        seconds = np.array([row.latency_s or 0.0 for row in rows])
        systems[name] = SystemResults(
            role=role_of(name),
            table=metrics.by_name(drawn.at(i, 0).total),
            conventions=conventions,
            beside=beside,
            ideal=is_ideal(thesis, conventions.seed, beside.error_rate.value),
            selective=selective(deck.label, said[i], confidence, deck.subject, seed),
            linking=_linking(rows),
            by_kind={kind: _kind(drawn.at(i, g)) for kind, g in deck.kinds.items()},
            by_predicate={iri: _predicate(drawn.at(i, g)) for iri, g in deck.predicates.items()},
            latency_s=Latency(
                median=float(np.median(seconds)), p95=float(np.percentile(seconds, 95))
            ),
            usage=_usage(rows),
        )
    whole = {name: drawn.at(i, 0) for i, name in enumerate(names)}
    ranked = [name for name in names if systems[name].role == "ranked"]
    return Scored(
        systems=systems,
        comparisons=tuple(_compare(pair, whole) for pair in combinations(ranked, 2)),
        thesis=_ruling(thesis, whole, systems),
    )


def _usage(rows: Sequence[Row]) -> Usage | None:
    """What a system's answers took, None where no reply was counted."""
    counted = [row for row in rows if row.prompt_tokens is not None]
    if not counted:
        return None
    costs = [row.cost for row in counted if row.cost is not None]
    return Usage(
        replies=len(counted),
        prompt_tokens=sum(row.prompt_tokens or 0 for row in counted),
        completion_tokens=sum(row.completion_tokens or 0 for row in counted),
        cost=sum(costs) if costs else None,
    )


def _ruling(
    thesis: Thesis, whole: Mapping[str, Resampled], systems: Mapping[str, SystemResults]
) -> Ruling:
    pair = (thesis.licensed, thesis.unlicensed)
    gaps, error_rates = None, {}
    if all(name in whole for name in pair):
        licensed, unlicensed = (whole[name] for name in pair)
        found = difference(CONVENTIONS[thesis.convention], licensed, unlicensed)
        gaps = Four[Measurement](**found)
        error_rates = {name: systems[name].beside.error_rate for name in pair}
    return rule(thesis.statement, conditions(thesis, gaps, error_rates))


def _linking(rows: Sequence[Row]) -> LinkingCounts | None:
    """How the claims of a system's cards were found, and its replies read."""
    if all(row.linking is None for row in rows):
        return None
    found = Counter(row.linking for row in rows)
    read = Counter(row.reading for row in rows if row.raw is not None)
    return LinkingCounts(
        right=found["right"],
        wrong=found["wrong"],
        ambiguous=found["ambiguous"],
        not_found=found["not_found"],
        no_claim=found["no_claim"],
        by_word=read["word"],
        by_statement=read["statement"] + read["other"],
        unread=read[None],
        cut=sum(row.finish == "length" for row in rows),
    )


def _conventions(drawn: Resampled) -> Conventions:
    found = {name: Four[Ratio](**measure(each, drawn)) for name, each in CONVENTIONS.items()}
    return Conventions(**found)


def _compare(pair: tuple[str, str], whole: Mapping[str, Resampled]) -> SystemComparison:
    one, other = (whole[name] for name in pair)
    return SystemComparison(
        one=pair[0],
        other=pair[1],
        seed=Four[Measurement](**difference(seed_convention, one, other)),
        beside=Beside[Measurement](**difference(metrics.beside, one, other)),
    )


def _kind(drawn: Resampled) -> KindScores:
    accuracy = measure(metrics.beside, drawn)["accuracy"]
    return KindScores(table=metrics.by_name(drawn.total), accuracy=accuracy)


def _predicate(drawn: Resampled) -> PredicateScores:
    return PredicateScores(
        table=metrics.by_name(drawn.total),
        accuracy=measure(metrics.beside, drawn)["accuracy"],
        seed=_four(drawn),
    )


def _four(drawn: Resampled) -> Four[Ratio]:
    return Four[Ratio](**measure(seed_convention, drawn))


def _said(cards: Sequence[Card], answers: Sequence[Rows]) -> np.ndarray:
    """i32[K, N] of `Answer`, a row a system."""
    return np.array([[rows[card.id].answer for card in cards] for rows in answers], np.int32)


def _count(
    label: np.ndarray,
    said: np.ndarray,
    subject: np.ndarray,
    member: np.ndarray,
    subjects: int,
    groups: int,
) -> np.ndarray:
    """i32[S, K, G, 3, 5]: a table for each subject, system and group of cards.

    Args:
      label: i[N]. said: i[K, N]. subject: i[N]. member: i[N, M], the groups each card is in.
    """
    systems = said.shape[0]
    cell = (subject[None, :, None] * systems + np.arange(systems)[:, None, None]) * groups
    cell = cell + member[None]
    shape = cell.shape
    flat = metrics.tables(
        np.broadcast_to(label[None, :, None], shape).reshape(-1).astype(np.int32),
        np.broadcast_to(said[:, :, None], shape).reshape(-1).astype(np.int32),
        cell.reshape(-1).astype(np.int32),
        groups=subjects * systems * groups,
    )
    return np.asarray(flat).reshape(subjects, systems, groups, 3, 5)


def scores(cards: Sequence[Card], rows: Rows, seed: int) -> Four[Ratio]:
    """The four metrics of one system under the seed convention, for sweeps."""
    return _four(_drawn(cards, rows, seed))


def compare_decks(
    one: tuple[Sequence[Card], Mapping[str, Rows]],
    other: tuple[Sequence[Card], Mapping[str, Rows]],
    seed: int,
) -> dict[str, DeckDifference]:
    """How each system differs between two decks, and how much of that is the decks' own making.

    At equal labels the decks' label ratios are taken out, so that what is left is a real difference
    where its interval keeps clear of 0.

    Args:
      one, other: cards with every system's rows. Systems that both decks have are compared.
      seed: of the bootstrap.
    """
    found = {}
    for name in one[1]:
        if name in other[1]:
            first = _drawn(one[0], one[1][name], seed)
            second = _drawn(other[0], other[1][name], seed + 1)
            dealt = difference(seed_convention, first, second, paired=False)
            equal = difference(_at_equal_labels, first, second, paired=False)
            found[name] = DeckDifference(
                as_dealt=Four[Measurement](**dealt), at_equal_labels=Four[Measurement](**equal)
            )
    return found


def _at_equal_labels(t: np.ndarray) -> metrics.Fractions:
    return seed_convention(metrics.at_equal_labels(t))


def _drawn(cards: Sequence[Card], rows: Rows, seed: int) -> Resampled:
    deck = _Deck.of(cards)
    everything = np.zeros((len(cards), 1), int)
    said = _said(cards, [rows])
    counted = _count(deck.label, said, deck.subject, everything, deck.subjects, 1)
    return resample(counted, seed).at(0, 0)


def plain_metrics(systems: Mapping[str, SystemResults]) -> dict[str, dict[str, float | None]]:
    """Values alone by system, as the published metrics.json has them, under the seed convention."""
    return {
        name: {
            metric: ratio.value
            for part in (system.conventions.seed, system.beside)
            for metric, ratio in part
        }
        for name, system in systems.items()
    }
