"""Drawing cards as integers: proposed from the graph's triples, then proved by the oracle.

How a deck keeps its labels out of its surface: see `epistemic.decks.layouts`. Besides, wordings and
order are drawn without regard to the label, false objects are drawn as true ones are (from the
predicate's own triples, so that type and popularity match), and the rules of a predicate stand
in all cards of a family.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from epistemic.decks.families import NOTHING, OF_OBJECTS, BySubject, Cell, Families, among
from epistemic.decks.layouts import LAYOUTS, USUAL_WEIGHT, WEIGHTS
from epistemic.domain import Domain
from epistemic.logic.alone import Alone, AloneJudge, CardArrays, contradiction
from epistemic.logic.draws import Draws
from epistemic.logic.graph import TYPE, Graph
from epistemic.logic.lookup import Verdict

VERDICTS = {"E": Verdict.ENTAILED, "C": Verdict.CONTRADICTORY, "U": Verdict.UNKNOWN}
# So many rounds in a row without a fresh card, and a cell counts as exhausted.
_BARREN_ROUNDS = 5
_MOST_FACTS = max(len(slots) for layouts in LAYOUTS.values() for slots in layouts.values())


@dataclass
class Batch:
    """Cards of one cell and label as integers.

    Attributes:
      facts: i32[n, K, 3] and holds: i8[n, K] (1 stated, -1 denied), in the order shown.
      claims: i32[n, 3].
      alone: what each says by itself.
    """

    cell: Cell
    label: str
    facts: np.ndarray
    holds: np.ndarray
    claims: np.ndarray
    alone: Alone

    def at(self, rows: np.ndarray) -> Batch:
        return Batch(
            self.cell, self.label, self.facts[rows], self.holds[rows], self.claims[rows],
            self.alone.at(rows),
        )  # fmt: skip

    def with_more(self, other: Batch) -> Batch:
        return Batch(
            self.cell,
            self.label,
            np.concatenate([self.facts, other.facts]),
            np.concatenate([self.holds, other.holds]),
            np.concatenate([self.claims, other.claims]),
            Alone.joined([self.alone, other.alone]),
        )


class Drawer(Families):
    """Draws cards as integers.

    Args:
      domain: the graph, whole.
      deck: the graph that systems may know.
      seed: of the draws.
    """

    def __init__(self, domain: Domain, deck: Graph, seed: int):
        super().__init__(domain, deck, seed)
        self.order = Draws(seed, 3)
        # Terms of one name are one for a reader.
        names = list(map(str.casefold, domain.graph.labels))
        places = dict(zip(names, range(len(names)), strict=True))
        self.name = np.fromiter(map(places.__getitem__, names), np.int32, len(names))
        self.taken = np.zeros(0, np.int64)
        found = (subject for v in self.whole.violations for subject in v.subjects)
        self._violators = np.array(sorted({self.ids[s] for s in found}), np.int32)
        self.found: dict[tuple[int, str], Batch] = {}
        # Of what is proposed and of what the graph allows, the share that was proved last time.
        self.rates: dict[tuple[int, str], float] = {}
        self.proof_rates: dict[tuple[int, str], float] = {}
        self.cells: list[Cell] = []
        self.alone = self._alone_judge()
        self._holders: dict[int, BySubject] = {}

    # How many of each.

    def draw(self, cells: list[Cell], per_type: int, setting: str) -> list[Batch]:
        """Batches that hold `per_type` cards of each label between them.

        Raises:
          ValueError: there aren't so many; names the setting and says how many there are.
        """
        start = len(self.cells)
        self.cells += cells
        self.alone = self._alone_judge()
        quotas = dict.fromkeys(range(start, len(self.cells)), 0)
        open_ = list(quotas)
        missing = per_type
        while missing and open_:
            for number, share in self._shares(open_, missing).items():
                quotas[number] += share
            self._fill({number: quotas[number] for number in open_})
            for number in list(open_):
                got = self._complete(number)
                if got < quotas[number]:
                    quotas[number] = got
                    open_.remove(number)
            missing = per_type - sum(quotas.values())
        if missing:
            by_predicate: Counter[str] = Counter()
            for number, quota in quotas.items():
                by_predicate[self.cells[number].predicate.name] += quota
            could = ", ".join(f"{name} {n}" for name, n in by_predicate.items())
            raise ValueError(
                f"{setting}={per_type}: the graph gives {per_type - missing} of each label "
                f"({could}); lower it or use a larger graph"
            )
        return [batch for number, quota in quotas.items() if quota
                for batch in self._kept(number, quota)]  # fmt: skip

    def _shares(self, open_: list[int], missing: int) -> dict[int, int]:
        """Spread cards evenly over sorts, and a sort's over its cells; whole numbers throughout."""
        sorts = Counter(self.cells[number].sort for number in open_)
        scale = int(np.lcm.reduce([*sorts.values()]))
        weights = [
            WEIGHTS.get(self.cells[number].sort, USUAL_WEIGHT)
            * (scale // sorts[self.cells[number].sort])
            for number in open_
        ]
        before, total, shares = 0, sum(weights), {}
        for number, weight in zip(open_, weights, strict=True):
            shares[number] = (before + weight) * missing // total - before * missing // total
            before += weight
        return shares

    def _complete(self, number: int) -> int:
        """How many cards of each label a cell has."""
        return min(len(rows) for rows in self._rows(number).values())

    def _rows(self, number: int) -> dict[str, np.ndarray]:
        """The rows of each label that can be used: all, or those whose numbers are as long."""
        batches = {label: self.found.get((number, label)) for label in "ECU"}
        if not self.cells[number].matched:
            return {
                label: np.arange(0 if batch is None else len(batch.claims))
                for label, batch in batches.items()
            }
        facts_too = self.cells[number].matched == "all"
        lengths = {
            label: self._number_lengths(batch, facts_too) for label, batch in batches.items()
        }
        rows: dict[str, list[np.ndarray]] = {label: [] for label in batches}
        for length in sorted(
            set.intersection(*(set(found.tolist()) for found in lengths.values()))
        ):
            places = {label: np.flatnonzero(found == length) for label, found in lengths.items()}
            fewest = min(map(len, places.values()))
            for label in rows:
                rows[label].append(places[label][:fewest])
        return {label: np.concatenate([np.zeros(0, int), *parts]) for label, parts in rows.items()}

    def _number_lengths(self, batch: Batch | None, facts_too: bool) -> np.ndarray:
        """i64[n]: the length of the claimed number and of all numbers in facts together."""
        if batch is None:
            return np.zeros(0, int)
        claimed = self.lengths(batch.claims[:, 2])
        if not facts_too:
            return claimed
        things = batch.facts[:, :, 2]
        numbers = ~self.deck.is_name[things]
        said = self.lengths(things.ravel()).reshape(things.shape)
        return claimed * 10_000 + np.where(numbers, said, 0).sum(axis=1)

    def _kept(self, number: int, quota: int) -> list[Batch]:
        """The first cards of a cell, as many of each label as are wanted."""
        rows = self._rows(number)
        return [self.found[number, label].at(rows[label][:quota]) for label in "ECU"]

    # Drawing.

    def _fill(self, quotas: dict[int, int]) -> None:
        """Draw until every cell has its quota of each label or gives no more."""
        barren: Counter[int] = Counter()
        while True:
            wanted: dict[tuple[int, str], int] = {}
            before: dict[int, int] = {}
            for number, quota in quotas.items():
                if barren[number] >= _BARREN_ROUNDS:
                    continue
                for label, rows in self._rows(number).items():
                    if len(rows) < quota:
                        wanted[number, label] = quota - len(rows)
                        before[number] = min(before.get(number, quota), len(rows))
            if not wanted:
                return
            fresh = self._round(wanted)
            for number, had in before.items():
                needed = [label for n, label in wanted if n == number]
                starved = any(not fresh[number, label] for label in needed)
                if self.cells[number].matched:
                    starved = self._complete(number) == had
                barren[number] = barren[number] + 1 if starved else 0

    def _round(self, wanted: dict[tuple[int, str], int]) -> dict[tuple[int, str], int]:
        """Propose cards for all that is wanted, keep what the oracle proves; how many were new."""
        sizes, proposals = [], []
        for (number, label), missing in wanted.items():
            rate = self.rates.get((number, label), 0.5)
            size = int(1.2 * missing / max(rate, 0.02)) + 32
            proposals.append(self._propose(self.cells[number], label, size))
            sizes.append(len(proposals[-1][2]))
        facts, holds, claims = (np.concatenate(column) for column in zip(*proposals, strict=True))
        jobs = list(wanted)
        job = np.repeat(np.arange(len(jobs)), sizes)
        keys = self._keys(claims)
        rows = np.flatnonzero(~among(self.taken, keys))
        rows = rows[self._true_and_known(jobs, job[rows], facts[rows], holds[rows], claims[rows])]
        rows = rows[np.sort(np.unique(keys[rows], return_index=True)[1])]
        # A few more than are missing: not every proposal is proved.
        limits = np.array(
            [
                int(1.2 * missing / max(self.proof_rates.get(key, 1.0), 0.02)) + 8
                for key, missing in wanted.items()
            ]
        )
        rows = rows[_places_within(job[rows]) < limits[job[rows]]]
        facts, holds = self._arranged(jobs, job[rows], facts[rows], holds[rows])
        claims, job, keys = claims[rows], job[rows], keys[rows]
        which = np.array([number for number, _ in jobs], np.int32)[job]
        alone = self.alone.judge(self._rule_set[which], CardArrays(facts, holds, claims))
        proved = self._proved(jobs, job, alone)
        fresh, kept = {}, [self.taken]
        for i, (number, label) in enumerate(jobs):
            # The first of what is proved; what is over may be drawn again.
            mine = np.flatnonzero(proved & (job == i))
            self.rates[number, label] = len(mine) / max(1, sizes[i])
            self.proof_rates[number, label] = len(mine) / max(1, int((job == i).sum()))
            mine = mine[: wanted[number, label]]
            fresh[number, label] = len(mine)
            kept.append(keys[mine])
            if not len(mine):
                continue
            cell = self.cells[number]
            k = int((holds[mine[0]] != 0).sum())
            batch = Batch(
                cell, label, facts[mine, :k], holds[mine, :k], claims[mine], alone.at(mine)
            )
            earlier = self.found.get((number, label))
            self.found[number, label] = batch if earlier is None else earlier.with_more(batch)
        self.taken = np.sort(np.concatenate(kept))
        return fresh

    def _alone_judge(self) -> AloneJudge:
        """For all cells so far: their sets of rules, each once."""
        axioms = sorted({cell.axioms for cell in self.cells})
        number = {names: i for i, names in enumerate(axioms)}
        self._rule_set = np.array([number[cell.axioms] for cell in self.cells], np.int32)
        used = {relation.predicate for cell in self.cells for relation in cell.relations.values()}
        used |= {cell.flips for cell in self.cells} | {cell.claimed for cell in self.cells}
        types = self.truth.get(self.ids[TYPE], NOTHING).triples
        used |= set(np.unique(types[:, 2]).tolist())
        alone = AloneJudge(self.domain.graph, self.constraints, axioms, sorted(used - {-1}))
        if self.cells:
            # Earlier cards' proofs name places in these.
            alone.names, alone.relations = self.alone.names, self.alone.relations
        return alone

    def _keys(self, claims: np.ndarray) -> np.ndarray:
        """i64[n]: one number for each claim."""
        wide, size = claims.astype(np.int64), len(self.deck.terms)
        numbers = np.array(sorted(self.spoken), np.int32)
        return (wide[:, 0] * size + wide[:, 2]) * len(numbers) + np.searchsorted(
            numbers, claims[:, 1]
        )

    def _propose(
        self, cell: Cell, label: str, size: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Draw what each role stands for and lay the facts out; rows with a gap are left out."""
        slots = cell.layouts[label]
        bound: dict[str, np.ndarray] = {}
        whole = np.ones(size, bool)
        for what, s, o in slots:
            if what in "-t":
                continue
            relation = cell.relations[what].there
            if s not in bound:
                chosen = self._chosen(cell, what, s, bound, size)
                if chosen is None and what == "q" and cell.family not in _BY_VALUE:
                    chosen = self._somebody(cell, self._is_unknown(cell, label, s, o), size)
                if chosen is not None:
                    bound[s], there = chosen
                    whole &= there
            if s in bound:
                bound[o], there = relation.value_of(bound[s], self.draws)
                whole &= there
                continue
            chosen = self._chosen(cell, what, o, bound, size)
            if chosen is not None:
                bound[o], there = chosen
                bound[s], held = self._holder(cell, bound[o])
                whole &= there & held
                continue
            rows = self._pool(cell, label, what, s, o)
            if not len(rows):
                return _no_cards()
            drawn = rows[self.draws.below(len(rows), size)]
            bound[s], bound[o] = drawn[:, 0], drawn[:, 2]
        spare = [slot for slot in slots if slot[0] == "-" and "w" in slot[1:]]
        if spare:
            mine = cell.relations["+"].there.triples
            column = 2 if spare[0][2] == "w" else 0
            bound["w"] = mine[self.draws.below(len(mine), size), column]
        bound.pop("z", None)
        names = np.stack([self.name[column] for column in bound.values()])
        names.sort(axis=0)
        whole &= (names[1:] != names[:-1]).all(axis=0)
        facts = np.full((size, _MOST_FACTS, 3), -1, np.int32)
        holds = np.zeros((size, _MOST_FACTS), np.int8)
        claimed = cell.relations["+" if "+" in cell.relations else "k"].predicate
        shown = [slot for slot in slots if slot[0] != "?"]
        for k, (what, s, o) in enumerate(shown):
            holds[:, k] = -1 if what == "-" else 1
            if what == "t":
                facts[:, k] = self._class_fact(cell, label, o, bound[o])
                continue
            predicate = claimed if what == "-" else cell.relations[what].predicate
            facts[:, k, 0], facts[:, k, 1], facts[:, k, 2] = bound[s], predicate, bound[o]
        claims = np.full((size, 3), claimed, np.int32)
        claims[:, 0] = bound["s"]
        claims[:, 2] = cell.claimed if cell.claimed >= 0 else bound.get("o", bound["s"])
        rows = np.flatnonzero(whole)
        return facts[rows], holds[rows], claims[rows]

    def _chosen(
        self, cell: Cell, what: str, role: str, bound: dict[str, np.ndarray], size: int
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """What a role stands for where that isn't left to chance, and whether there is any."""
        return None

    def _holder(self, cell: Cell, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """A random subject of each value, and whether systems may know of it."""
        number = cell.relations["+"].predicate
        who, held = self.holders(number).value_of(values, self.draws)
        size = len(self.deck.terms)
        known = self.spoken[number].triples.astype(np.int64)
        there = among(known[:, 0] * size + known[:, 2], who * np.int64(size) + values)
        return who, held & there

    def holders(self, number: int) -> BySubject:
        """The triples of a predicate the other way round, to be drawn from by value."""
        if number not in self._holders:
            held = self.truth[number].triples[:, ::-1]
            self._holders[number] = BySubject(held[np.argsort(held[:, 0], kind="stable")])
        return self._holders[number]

    def _is_unknown(self, cell: Cell, label: str, s: str, o: str) -> bool:
        """Whether a slot speaks of what a card asks about and, by design, doesn't tell."""
        asked = o if cell.family == "disjoint" else s
        return label == "U" and asked == ("o" if cell.family in OF_OBJECTS else "s")

    def _somebody(self, cell: Cell, unknown: bool, size: int) -> tuple[np.ndarray, np.ndarray]:
        """Subjects (or, where those are asked for, objects) of the predicate, as often as it has
        them, for slots that state something else of them: all are known as well, for every label.
        """
        key = ("somebody", unknown)
        if key not in cell.pools:
            column = 2 if cell.family in OF_OBJECTS else 0
            relation = cell.relations["+"]
            everyone = self.truth[relation.predicate].triples[:, column]
            functional, inverse = self.counted(cell.predicate)
            if unknown and (inverse if cell.family in OF_OBJECTS else functional):
                everyone = everyone[~np.isin(everyone, relation.there.triples[:, column])]
            cell.pools[key] = everyone
        pool = cell.pools[key]
        if not len(pool):
            return np.zeros(size, np.int32), np.zeros(size, bool)
        return pool[self.draws.below(len(pool), size)], np.ones(size, bool)

    def _pool(self, cell: Cell, label: str, what: str, s: str, o: str) -> np.ndarray:
        """i32[M, 3]: the triples that a slot with two fresh roles is drawn from."""
        key = (what, self._is_unknown(cell, label, s, o))
        if key not in cell.pools:
            cell.pools[key] = self._make_pool(cell, *key)
        return cell.pools[key]

    def _make_pool(self, cell: Cell, what: str, unknown: bool) -> np.ndarray:
        relation = cell.relations[what]
        rows = relation.there.triples
        if what not in "qg":
            return rows
        if cell.family == "disjoint":
            # Every value once, however many subjects have it.
            rows = rows[np.unique(rows[:, 2], return_index=True)[1]]
            members = np.isin(rows[:, 2], self.relation(TYPE).there.subjects)
            return rows[~members] if unknown else rows
        # Whoever stands in for a subject of the predicate must be able to be one.
        mine = cell.relations["+"]
        rows = rows[np.isin(rows[:, 0], self.truth[mine.predicate].subjects)]
        if unknown and self.counted(cell.predicate)[0]:
            rows = rows[~np.isin(rows[:, 0], mine.there.subjects)]
        return rows

    def _class_fact(self, cell: Cell, label: str, role: str, who: np.ndarray) -> np.ndarray:
        """'Paris is a city': in a contradictory card the claimed object is of the other class."""
        other = (role == "x") != (label == "C")
        beside = self.domain.by_iri[self.deck.terms[cell.relations["q"].predicate]]
        name = self.class_of(beside if other else cell.predicate)
        assert name is not None
        fact = np.zeros((len(who), 3), np.int32)
        fact[:, 0], fact[:, 1], fact[:, 2] = who, self.ids[TYPE], self.ids[name]
        return fact

    # Proving.

    def _true_and_known(
        self,
        jobs: list[tuple[int, str]],
        job: np.ndarray,
        facts: np.ndarray,
        holds: np.ndarray,
        claims: np.ndarray,
    ) -> np.ndarray:
        """bool[n]: cards whose denials are true and whose gold the graph doesn't change."""
        good = np.ones(len(claims), bool)
        complete = np.array([self.cells[number].predicate.complete for number, _ in jobs])
        denied = np.argwhere(holds == -1)
        if len(denied):
            verdict = self.whole.judge_ids(facts[denied[:, 0], denied[:, 1]]).verdict
            false = verdict == Verdict.CONTRADICTORY
            false |= (verdict == Verdict.UNKNOWN) & complete[job[denied[:, 0]]]
            good[denied[~false, 0]] = False
        known = self.known.judge_ids(claims).verdict if len(claims) else np.zeros(0, np.int8)
        wanted = np.array([VERDICTS[label] for _, label in jobs])[job]
        strict = np.array([self.cells[number].requires == "graph" for number, _ in jobs])[job]
        contradicts = wanted == Verdict.CONTRADICTORY
        silent = contradicts & (known == Verdict.UNKNOWN) & ~strict
        # Where the graph breaks a rule itself, what a card proves by that rule is nothing new.
        broken = np.isin(claims[:, 0], self._violators)
        broken |= np.isin(facts[:, :, 0], self._violators).any(axis=1)
        return good & ((known == wanted) | silent) & ~(contradicts & broken)

    def _arranged(
        self, jobs: list[tuple[int, str]], job: np.ndarray, facts: np.ndarray, holds: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """The facts in a random order, said the other way round where a cell wants that."""
        flips = np.array([self.cells[number].flips for number, _ in jobs], np.int32)[job]
        own = np.array(
            [self.ids[self.cells[number].predicate.iri] for number, _ in jobs], np.int32
        )[job]
        flip = (flips[:, None] >= 0) & (facts[:, :, 1] == own[:, None])
        facts = np.where(flip[:, :, None], facts[:, :, ::-1], facts)
        facts[:, :, 1] = np.where(flip, np.broadcast_to(flips[:, None], flip.shape), facts[:, :, 1])
        place = self.order.uniform(holds.size).reshape(holds.shape)
        order = np.argsort(np.where(holds == 0, 2.0, place), axis=1, kind="stable")
        return np.take_along_axis(facts, order[:, :, None], 1), np.take_along_axis(holds, order, 1)

    def _proved(self, jobs: list[tuple[int, str]], job: np.ndarray, alone: Alone) -> np.ndarray:
        """bool[n]: cards that say by themselves what they are labelled with, and for its reason."""
        wanted = []
        for number, label in jobs:
            settled = self.cells[number].requires == "card"
            wanted.append(VERDICTS[label] if settled else Verdict.UNKNOWN)
        good = alone.verdict == np.array(wanted)[job]
        kinds = np.array([contradiction(name) for name in self.alone.names] or [""])
        for i, (number, label) in enumerate(jobs):
            cell = self.cells[number]
            if label == "C" and cell.family == "value":
                right = kinds[alone.rule] == contradiction(cell.sort)
                good &= right | (job != i)
        return good


# What else is stated is drawn by its value here, elsewhere by its subject.
_BY_VALUE = ("value", "disjoint")


def _no_cards() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return (
        np.zeros((0, _MOST_FACTS, 3), np.int32),
        np.zeros((0, _MOST_FACTS), np.int8),
        np.zeros((0, 3), np.int32),
    )


def _places_within(groups: np.ndarray) -> np.ndarray:
    """Each row's place among those of its group, where groups are in order."""
    _, first, count = np.unique(groups, return_index=True, return_counts=True)
    return np.arange(len(groups)) - np.repeat(first, count)
