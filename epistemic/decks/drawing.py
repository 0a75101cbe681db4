"""Drawing cards as integers: proposed from the graph's triples, then proved by the oracle.

How a deck keeps its labels out of its surface: see `epistemic.decks.layouts`. Besides, wordings and
order are drawn without regard to the label, false objects are drawn as true ones are (from the
predicate's own triples, so that type and popularity match), and the rules of a predicate stand
in all cards of a family.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from epistemic.decks.families import Cell
from epistemic.decks.layouts import USUAL_WEIGHT, WEIGHTS
from epistemic.decks.proposals import Choose, Proposer, choose_nothing
from epistemic.decks.proving import Cards, Job, arranged, proved, true_and_known, withheld
from epistemic.decks.sources import Sources, among
from epistemic.logic.alone import Alone, AloneJudge, CardArrays
from epistemic.logic.draws import Draws

LABELS = "ECU"
# So many rounds in a row without a fresh card, and a cell counts as exhausted.
_BARREN_ROUNDS = 5
_NO_CLAIMS = np.zeros(0, np.int64)


class Streams(NamedTuple):
    """Independent draws of one seed: for families and names, and for the order of facts."""

    names: Draws
    order: Draws

    @classmethod
    def of(cls, seed: int) -> Streams:
        return cls(Draws(seed), Draws(seed, stream=3))


class Selection(NamedTuple):
    """What is drawn on purpose; by default nothing.

    Attributes:
      choose: names for roles.
      withheld: whether a claim may be asked that isn't meant to be true but is, in what systems
        may not know.
    """

    choose: Choose = choose_nothing
    withheld: bool = True


_ANYTHING = Selection()


@dataclass(frozen=True, eq=False)
class Batch:
    """Cards of one cell and label.

    Attributes:
      job: cell and label.
      said: facts i32[n, K, 3], holds i8[n, K] (1 stated, -1 denied), in the order shown, and
        claims i32[n, 3].
      alone: what each says by itself.
    """

    job: Job
    said: CardArrays
    alone: Alone

    def __len__(self) -> int:
        return len(self.said.claims)

    def at(self, rows: np.ndarray) -> Batch:
        """The cards at these places."""
        return Batch(self.job, self.said.at(rows), self.alone.at(rows))

    def with_more(self, other: Batch) -> Batch:
        """These cards, then the other's."""
        said = CardArrays.joined([self.said, other.said])
        return Batch(self.job, said, Alone.joined([self.alone, other.alone]))


class Drawn(NamedTuple):
    """Cards with what further ones need.

    Attributes:
      batches: the cards.
      judge: what judged them by themselves; their proofs name places in its lists.
      taken: i64[T], a number for each claim that has been used, in order.
    """

    batches: list[Batch]
    judge: AloneJudge
    taken: np.ndarray


@dataclass(frozen=True, eq=False)
class Drawer:
    """Draws cards as integers.

    Attributes:
      sources: what they are drawn from.
      streams: where chance comes from.
      selection: what is drawn on purpose.
    """

    sources: Sources
    streams: Streams
    selection: Selection = _ANYTHING

    def draw(
        self,
        cells: Sequence[Cell],
        per_type: int,
        setting: str = "cards.per_type",
        taken: np.ndarray = _NO_CLAIMS,
    ) -> Drawn:
        """Draw `per_type` cards of each label, spread evenly over the cells' sorts.

        Args:
          cells: their families.
          per_type: how many of each label, between all cells.
          setting: what an error calls that number.
          taken: claims not to be asked again, see `Drawn`.

        Raises:
          TooFew: there aren't so many; says how many there are.
        """
        rule_sets = sorted({cell.axioms for cell in cells})
        domain, used = self.sources.domain, _used(self.sources, cells)
        judge = AloneJudge(domain.graph, domain.constraints, rule_sets, used)
        stock = _Stock(self.sources, taken)
        proposer = Proposer(self.sources, self.streams.names, self.selection.choose)
        places = {names: i for i, names in enumerate(rule_sets)}
        rounds = _Rounds(self, proposer, judge, places, stock)
        quotas = dict.fromkeys(cells, 0)
        open_, missing = list(cells), per_type
        while missing and open_:
            for cell, share in shares(open_, missing).items():
                quotas[cell] += share
            rounds.fill({cell: quotas[cell] for cell in open_})
            for cell in list(open_):
                complete = stock.complete(cell)
                if complete < quotas[cell]:
                    quotas[cell] = complete
                    open_.remove(cell)
            missing = per_type - sum(quotas.values())
        if missing:
            found: Counter[str] = Counter()
            for cell, quota in quotas.items():
                found[cell.predicate.name] += quota
            raise TooFew(setting, per_type, found)
        batches = [
            batch for cell, quota in quotas.items() if quota for batch in stock.first(cell, quota)
        ]
        return Drawn(batches, judge, stock.taken)


class TooFew(ValueError):
    """A graph gives fewer cards than were asked for.

    Args:
      setting: that asked for them.
      asked: its value.
      found: predicate -> how much of that the graph gives.
      what: is counted.

    Attributes:
      setting: as given.
      found: as given.
      most: the value that the graph allows.
    """

    def __init__(
        self, setting: str, asked: int, found: Mapping[str, int], what: str = "of each label"
    ) -> None:
        self.setting, self.found, self.most = setting, found, sum(found.values())
        could = ", ".join(f"{name} {number}" for name, number in found.items())
        super().__init__(
            f"{setting}={asked}: the graph gives {self.most} {what} ({could}); lower it or use a "
            "larger graph"
        )


def shares(cells: Sequence[Cell], cards: int) -> dict[Cell, int]:
    """Spread cards evenly over sorts, and a sort's over its cells; whole numbers throughout."""
    sorts = Counter(cell.sort for cell in cells)
    scale = int(np.lcm.reduce([*sorts.values()]))
    weights = [WEIGHTS.get(cell.sort, USUAL_WEIGHT) * (scale // sorts[cell.sort]) for cell in cells]
    before, total, spread = 0, sum(weights), {}
    for cell, weight in zip(cells, weights, strict=True):
        spread[cell] = (before + weight) * cards // total - before * cards // total
        before += weight
    return spread


def _used(sources: Sources, cells: Iterable[Cell]) -> list[int]:
    """Every predicate and class that the cells' cards speak of."""
    used = set(sources.classes.tolist())
    for cell in cells:
        used |= {relation.predicate for relation in cell.relations.values()}
        used |= {cell.flips, cell.claimed}
    return sorted(used - {-1})


class _Stock:
    """The cards that have been proved so far, of each job."""

    def __init__(self, sources: Sources, taken: np.ndarray):
        self._sources = sources
        self._batches: dict[Job, Batch] = {}
        self._predicates = np.array(sorted(sources.spoken), np.int32)
        self.taken = taken

    def add(self, batch: Batch) -> None:
        """Keep more cards of a job."""
        earlier = self._batches.get(batch.job)
        self._batches[batch.job] = batch if earlier is None else earlier.with_more(batch)

    def take(self, claims: np.ndarray) -> None:
        """Ask no more of these claims."""
        self.taken = np.sort(np.concatenate([self.taken, self.keys(claims)]))

    def keys(self, claims: np.ndarray) -> np.ndarray:
        """i64[n]: one number for each claim."""
        wide, size = claims.astype(np.int64), len(self._sources.domain.graph.terms)
        predicate = np.searchsorted(self._predicates, claims[:, 1])
        return (wide[:, 0] * size + wide[:, 2]) * len(self._predicates) + predicate

    def complete(self, cell: Cell) -> int:
        """How many cards of each label a cell has."""
        return min(len(rows) for rows in self.usable(cell).values())

    def first(self, cell: Cell, quota: int) -> list[Batch]:
        """The first cards of a cell, as many of each label."""
        rows = self.usable(cell)
        return [self._batches[Job(cell, label)].at(rows[label][:quota]) for label in LABELS]

    def usable(self, cell: Cell) -> dict[str, np.ndarray]:
        """Label -> the places of its cards that can be used: all, or those whose numbers are as
        long as other labels'."""
        batches = {label: self._batches.get(Job(cell, label)) for label in LABELS}
        if not cell.matched:
            return {
                label: np.arange(0 if batch is None else len(batch))
                for label, batch in batches.items()
            }
        lengths = {
            label: self._number_lengths(batch, cell.matched == "all")
            for label, batch in batches.items()
        }
        rows: dict[str, list[np.ndarray]] = {label: [] for label in batches}
        for length in sorted(set.intersection(*(set(own.tolist()) for own in lengths.values()))):
            places = {label: np.flatnonzero(own == length) for label, own in lengths.items()}
            fewest = min(map(len, places.values()))
            for label in rows:
                rows[label].append(places[label][:fewest])
        return {label: np.concatenate([np.zeros(0, int), *parts]) for label, parts in rows.items()}

    def _number_lengths(self, batch: Batch | None, facts_too: bool) -> np.ndarray:
        """i64[n]: the length of the claimed number and of all numbers in facts together."""
        if batch is None:
            return np.zeros(0, int)
        lengths = self._sources.lengths
        claimed = lengths[batch.said.claims[:, 2]]
        if not facts_too:
            return claimed
        things = batch.said.facts[:, :, 2]
        is_number = ~self._sources.domain.graph.is_name[things]
        return claimed * 10_000 + np.where(is_number, lengths[things], 0).sum(axis=1)


@dataclass
class _Rate:
    """Of what is proposed and of what the graph allows, the share that was proved last time."""

    proposed: float = 0.5
    allowed: float = 1.0


@dataclass(eq=False)
class _Rounds:
    """Proposes and proves cards, round by round, into a stock."""

    drawer: Drawer
    proposer: Proposer
    judge: AloneJudge
    rule_sets: Mapping[tuple[str, ...], int]
    stock: _Stock
    rates: dict[Job, _Rate] = field(default_factory=dict)

    def fill(self, quotas: Mapping[Cell, int]) -> None:
        """Draw until every cell has its quota of each label or gives no more."""
        barren: Counter[Cell] = Counter()
        while True:
            wanted: dict[Job, int] = {}
            before: dict[Cell, int] = {}
            for cell, quota in quotas.items():
                if barren[cell] >= _BARREN_ROUNDS:
                    continue
                for label, rows in self.stock.usable(cell).items():
                    if len(rows) < quota:
                        wanted[Job(cell, label)] = quota - len(rows)
                        before[cell] = min(before.get(cell, quota), len(rows))
            if not wanted:
                return
            fresh = self._round(wanted)
            for cell, had in before.items():
                starved = any(not fresh[job] for job in wanted if job.cell is cell)
                if cell.matched:
                    starved = self.stock.complete(cell) == had
                barren[cell] = barren[cell] + 1 if starved else 0

    def _round(self, wanted: Mapping[Job, int]) -> dict[Job, int]:
        """Propose cards for all that is wanted, keep what is proved; how many were new."""
        cards = self._proposed(wanted)
        sizes = np.bincount(cards.job, minlength=len(wanted))
        cards = self._allowed(cards, wanted)
        cards = cards._replace(said=arranged(self.drawer.sources, cards, self.drawer.streams.order))
        which = np.array([self.rule_sets[cell.axioms] for cell, _ in cards.jobs], np.int32)
        alone = self.judge.judge(which[cards.job], cards.said)
        good = proved(cards, alone, self.judge.names)
        fresh, kept = {}, []
        for i, (job, missing) in enumerate(wanted.items()):
            # The first of what is proved; what is over may be drawn again.
            mine = np.flatnonzero(good & (cards.job == i))
            allowed = int((cards.job == i).sum())
            self.rates[job] = _Rate(len(mine) / max(1, sizes[i]), len(mine) / max(1, allowed))
            mine = mine[:missing]
            fresh[job] = len(mine)
            kept.append(mine)
            if len(mine):
                said = cards.said.at(mine)
                k = int((said.holds[0] != 0).sum())
                said = CardArrays(said.facts[:, :k], said.holds[:, :k], said.claims)
                self.stock.add(Batch(job, said, alone.at(mine)))
        self.stock.take(cards.said.claims[np.concatenate(kept)])
        return fresh

    def _proposed(self, wanted: Mapping[Job, int]) -> Cards:
        """Some more than are wanted: as many as were needed last time."""
        parts = []
        for job, missing in wanted.items():
            rate = self.rates.get(job, _Rate()).proposed
            size = int(1.2 * missing / max(rate, 0.02)) + 32
            parts.append(self.proposer.propose(job.cell, job.label, size))
        job_of = np.repeat(np.arange(len(parts)), [len(part.claims) for part in parts])
        return Cards(list(wanted), job_of, CardArrays.joined(parts))

    def _allowed(self, cards: Cards, wanted: Mapping[Job, int]) -> Cards:
        """Those with a fresh claim that the graph allows: a few more than are missing."""
        keys = self.stock.keys(cards.said.claims)
        rows = np.flatnonzero(~among(self.stock.taken, keys))
        rows = rows[self._right(cards.at(rows))]
        rows = rows[np.sort(np.unique(keys[rows], return_index=True)[1])]
        limits = np.array(
            [
                int(1.2 * missing / max(self.rates.get(job, _Rate()).allowed, 0.02)) + 8
                for job, missing in wanted.items()
            ]
        )
        job = cards.job[rows]
        return cards.at(rows[_places_within(job) < limits[job]])

    def _right(self, cards: Cards) -> np.ndarray:
        """bool[n]: cards that say nothing false and whose golds the graph doesn't change."""
        sources = self.drawer.sources
        good = true_and_known(sources, cards)
        return good if self.drawer.selection.withheld else good & ~withheld(sources, cards)


def _places_within(groups: np.ndarray) -> np.ndarray:
    """Each row's place among those of its group, where groups are in order."""
    _, first, count = np.unique(groups, return_index=True, return_counts=True)
    return np.arange(len(groups)) - np.repeat(first, count)
