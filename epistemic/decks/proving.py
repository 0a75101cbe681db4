"""Which proposals may be cards: their denials are true and the oracle proves their golds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from epistemic.decks.families import Cell
from epistemic.decks.sources import Sources
from epistemic.logic.alone import Alone, CardArrays, contradiction
from epistemic.logic.draws import Draws
from epistemic.logic.lookup import Verdict

VERDICTS = {"E": Verdict.ENTAILED, "C": Verdict.CONTRADICTORY, "U": Verdict.UNKNOWN}


class Job(NamedTuple):
    """Cards of one cell and label, to be drawn together."""

    cell: Cell
    label: str

    @property
    def verdict(self) -> Verdict:
        """What the claim of each must be."""
        return VERDICTS[self.label]


class Cards(NamedTuple):
    """Proposals for several jobs.

    Attributes:
      jobs: what they are for.
      job: i64[n], the place of each one's among them, in order.
      said: what they say.
    """

    jobs: Sequence[Job]
    job: np.ndarray
    said: CardArrays

    def at(self, rows: np.ndarray) -> Cards:
        """The cards at these places."""
        return Cards(self.jobs, self.job[rows], self.said.at(rows))


def true_and_known(sources: Sources, cards: Cards) -> np.ndarray:
    """bool[n]: cards whose denials are true and whose gold the known graph doesn't change."""
    jobs, job, (facts, holds, claims) = cards
    good = np.ones(len(claims), bool)
    complete = np.array([cell.predicate.complete for cell, _ in jobs])
    denied = np.argwhere(holds == -1)
    if len(denied):
        verdict = sources.domain.oracle.judge_ids(facts[denied[:, 0], denied[:, 1]]).verdict
        false = verdict == Verdict.CONTRADICTORY
        false |= (verdict == Verdict.UNKNOWN) & complete[job[denied[:, 0]]]
        good[denied[~false, 0]] = False
    known = sources.known.judge_ids(claims).verdict if len(claims) else np.zeros(0, np.int8)
    wanted = np.array([one.verdict for one in jobs])[job]
    strict = np.array([cell.requires == "graph" for cell, _ in jobs])[job]
    contradicts = wanted == Verdict.CONTRADICTORY
    silent = contradicts & (known == Verdict.UNKNOWN) & ~strict
    # Where the graph breaks a rule itself, what a card proves by that rule is nothing new.
    broken = np.isin(claims[:, 0], sources.violators)
    broken |= np.isin(facts[:, :, 0], sources.violators).any(axis=1)
    return good & ((known == wanted) | silent) & ~(contradicts & broken)


def withheld(sources: Sources, cards: Cards) -> np.ndarray:
    """bool[n]: cards not meant to be true whose claim is, as the whole graph says."""
    claims = cards.said.claims
    if not len(claims):
        return np.zeros(0, bool)
    meant = np.array([label == "E" for _, label in cards.jobs])[cards.job]
    return ~meant & (sources.domain.oracle.judge_ids(claims).verdict == Verdict.ENTAILED)


def arranged(sources: Sources, cards: Cards, order: Draws) -> CardArrays:
    """The facts in a random order, said the other way round where a cell wants that."""
    jobs, job, (facts, holds, claims) = cards
    flips = np.array([cell.flips for cell, _ in jobs], np.int32)[job]
    own = np.array([sources.ids[cell.predicate.iri] for cell, _ in jobs], np.int32)[job]
    flip = (flips[:, None] >= 0) & (facts[:, :, 1] == own[:, None])
    facts = np.where(flip[:, :, None], facts[:, :, ::-1], facts)
    facts[:, :, 1] = np.where(flip, np.broadcast_to(flips[:, None], flip.shape), facts[:, :, 1])
    place = order.uniform(holds.size).reshape(holds.shape)
    rank = np.argsort(np.where(holds == 0, 2.0, place), axis=1, kind="stable")
    return CardArrays(
        np.take_along_axis(facts, rank[:, :, None], 1), np.take_along_axis(holds, rank, 1), claims
    )


def proved(cards: Cards, alone: Alone, names: Sequence[str]) -> np.ndarray:
    """bool[n]: cards that say by themselves what they are labelled with, and for its reason.

    Args:
      cards: what was proposed.
      alone: what each says by itself.
      names: of the constraints that `alone.rule` counts.
    """
    jobs, job, _ = cards
    settled = [cell.requires == "card" for cell, _ in jobs]
    wanted = [
        one.verdict if here else Verdict.UNKNOWN for one, here in zip(jobs, settled, strict=True)
    ]
    good = alone.verdict == np.array(wanted)[job]
    kinds = np.array([contradiction(name) for name in names] or [""])
    for i, (cell, label) in enumerate(jobs):
        if label == "C" and cell.family == "value":
            right = kinds[alone.rule] == contradiction(cell.sort)
            good &= right | (job != i)
    return good
