"""Drawing cards as integers: proposed from the graph's triples, then proved by the oracle.

How a deck keeps its labels out of its surface: see `epistemic.layouts`. Besides, wordings and
order are drawn without regard to the label, false objects are drawn as true ones are (from the
predicate's own triples, so that type and popularity match), and the rules of a predicate stand
in all cards of a family.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from epistemic.alone import Alone, AloneJudge, contradiction
from epistemic.constraints import BOUNDS, Constraint, inverse_name, symmetric_name
from epistemic.domain import Domain, Predicate
from epistemic.draws import Draws
from epistemic.graph import TYPE, Graph, sorted_unique
from epistemic.layouts import LAYOUTS, USUAL_WEIGHT, WEIGHTS, Layout
from epistemic.oracle import Oracle, Verdict, allowed_terms

VERDICTS = {"E": Verdict.ENTAILED, "C": Verdict.CONTRADICTORY, "U": Verdict.UNKNOWN}
_VALUE_KINDS = ("datatype", "in", *BOUNDS)
# So many rounds in a row without a fresh card, and a cell counts as exhausted.
_BARREN_ROUNDS = 5
_MOST_FACTS = max(len(slots) for layouts in LAYOUTS.values() for slots in layouts.values())
# With fewer subjects than this in common, two predicates can't share a card.
_SHARED_SUBJECTS = 5


class BySubject:
    """Triples i32[T, 3] in order of subject, to be drawn from by subject."""

    def __init__(self, triples: np.ndarray):
        self.triples = triples
        self.subjects, self._start, self._count = np.unique(
            triples[:, 0], return_index=True, return_counts=True
        )

    def __len__(self) -> int:
        return len(self.triples)

    def value_of(self, subjects: np.ndarray, draws: Draws) -> tuple[np.ndarray, np.ndarray]:
        """A random value of each subject, and whether it has any."""
        if not len(self.subjects):
            return np.zeros(len(subjects), np.int32), np.zeros(len(subjects), bool)
        at = np.clip(np.searchsorted(self.subjects, subjects), 0, len(self.subjects) - 1)
        row = self._start[at] + draws.below(self._count[at], len(subjects))
        return self.triples[row, 2], self.subjects[at] == subjects


class Relation(NamedTuple):
    """What a sort of slot draws from: the predicate that its facts state, and triples."""

    predicate: int
    there: BySubject


Rule = tuple[str, tuple[str, ...]]
"""A sentence and the names of the constraints that it puts into words."""


@dataclass
class Cell:
    """One predicate in one family: cards of each label, alike in all but the answer.

    Attributes:
      predicate: what is claimed.
      family: names its layouts.
      sort: the kind of contradiction; cards are spread evenly over sorts.
      relations: sort of slot -> what it draws from.
      rules: those that stand in its cards.
      flips: the predicate that says the card's own facts the other way round, or -1.
      claimed: the class that is claimed, or -1.
      matched: "claim" where claimed numbers must be as long for every label, "all" where those in
        facts must too; else "".
      requires: what settles the gold, "card" or "graph".
    """

    predicate: Predicate
    family: str
    sort: str
    relations: dict[str, Relation]
    rules: tuple[Rule, ...]
    flips: int = -1
    claimed: int = -1
    matched: str = ""
    requires: str = "card"
    pools: dict[tuple[str, bool], np.ndarray] = field(default_factory=dict)

    @property
    def layouts(self) -> dict[str, Layout]:
        return LAYOUTS[self.family]

    @property
    def name(self) -> str:
        """The family of its cards, such as "mouth/functional"."""
        kind = self.sort if self.family == "value" else self.family
        said = "_inferred" if self.sort == "inferred" else ""
        return f"{self.predicate.name}/{kind}{said}"

    @property
    def axioms(self) -> tuple[str, ...]:
        return tuple(name for _, names in self.rules for name in names)


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


class Drawer:
    """Draws cards as integers.

    Args:
      domain: the graph, whole.
      deck: the graph that systems may know.
      seed: of the draws.
    """

    def __init__(self, domain: Domain, deck: Graph, seed: int):
        self.domain, self.deck = domain, deck
        self.constraints = domain.constraints
        self.draws = Draws(seed)
        self.order = Draws(seed, 3)
        self.whole = domain.oracle
        self.known = Oracle(deck, domain.constraints)
        self.ids = domain.graph.ids
        # Terms of one name are one for a reader.
        names: dict[str, int] = {}
        self.name = np.array(
            [names.setdefault(label.casefold(), len(names)) for label in domain.graph.labels]
        )
        self.spoken = _by_predicate(self.known, len(domain.graph.terms))
        self.truth = _by_predicate(self.whole, len(domain.graph.terms))
        self.taken = np.zeros(0, np.int64)
        self.found: dict[tuple[int, str], Batch] = {}
        # Of what is proposed and of what the graph allows, the share that was proved last time.
        self.rates: dict[tuple[int, str], float] = {}
        self.proof_rates: dict[tuple[int, str], float] = {}
        self._length = np.full(len(domain.graph.terms), -1)
        self.cells: list[Cell] = []

    # What there is to draw.

    def relation(self, iri: str) -> Relation:
        """All triples that systems may know of a predicate, stated or inferred."""
        number = self.ids.get(iri, -1)
        return Relation(number, self.spoken.get(number, _NOTHING))

    def predicates(self, wanted: Sequence[str] | None) -> list[Predicate]:
        """The predicates of these names, or all; being of a class is the last of them.

        Raises:
          ValueError: there is no such predicate; says which there are, with their triples.
        """
        there = {**self.domain.predicates}
        there.setdefault("type", self.domain.type)
        for name in wanted or ():
            if name not in there:
                said = ", ".join(
                    f"{n} ({len(self.truth.get(self.ids.get(p.iri, -1), _NOTHING)):,})"
                    for n, p in there.items()
                )
                raise ValueError(
                    f"No triples found for predicate {name!r} in {self.domain.name}; "
                    f"there are: {said}"
                )
        return [there[name] for name in (wanted or there)]

    def cells_of(self, predicate: Predicate) -> list[Cell]:
        """Every family that the graph and its constraints allow for a predicate.

        Families that a graph feeds least come first, before others take their claims.
        """
        if predicate.iri == TYPE:
            return self._class_cells()
        if not len(self.relation(predicate.iri).there):
            return []
        kinds = {rule.kind: rule for rule in self.constraints.of(predicate.iri)}
        functional, inverse = self._counted(predicate)
        families: list[Cell | None] = []
        if "irreflexive" in kinds and "asymmetric" not in kinds:
            families.append(self._cell(predicate, "irreflexive"))
        if "asymmetric" in kinds:
            families.append(self._cell(predicate, "asymmetric"))
        if not inverse:
            # In these, somebody else has what is claimed of a subject.
            if "less_than" in kinds:
                families.append(self._less_than(predicate, kinds["less_than"]))
            families += [
                self._value(predicate, kinds[kind]) for kind in _VALUE_KINDS if kind in kinds
            ]
            if "class" in kinds:
                families.append(self._cell(predicate, "class"))
        if functional and not inverse:
            families.append(self._cell(predicate, "functional"))
        if inverse and not functional:
            families.append(self._cell(predicate, "inverse_functional"))
            families.append(self._cell(predicate, "negated_of"))
        elif (functional or predicate.complete) and not inverse:
            families.append(self._cell(predicate, "negated"))
        cells = [cell for cell in families if cell is not None]
        flips = self._flips(predicate)
        if flips >= 0:
            cells += [
                replace(cell, sort="inferred", flips=flips, pools={})
                for cell in cells
                if cell.family in _FLIPPED
            ]
        return cells

    def graph_cells(self, predicate: Predicate) -> list[Cell]:
        """Cards that only the graph settles."""
        if predicate.iri == TYPE or self._counted(predicate) != (True, False):
            return []
        cell = self._cell(predicate, "graph")
        return [] if cell is None else [replace(cell, requires="graph", pools={})]

    def _counted(self, predicate: Predicate) -> tuple[bool, bool]:
        """Whether a subject has one value, and whether a value has one subject."""
        kinds = {rule.kind for rule in self.constraints.of(predicate.iri)}
        return self.constraints.functional(predicate.iri), "inverse_functional" in kinds

    def _flips(self, predicate: Predicate) -> int:
        """The predicate by which the other way round says the same, where rules say so; or -1."""
        said = {name for _, names in predicate.rules for name in names}
        for iri, swapped in self.constraints.sayings(predicate.iri):
            ways = {inverse_name(predicate.iri, iri), inverse_name(iri, predicate.iri)}
            if iri == predicate.iri:
                ways = {symmetric_name(iri)}
            if swapped and iri in self.domain.by_iri and said & ways:
                return self.ids[iri]
        return -1

    def _cell(self, predicate: Predicate, family: str) -> Cell | None:
        """The cell, or nothing where the domain has no predicate to set beside."""
        relations = {"+": self.relation(predicate.iri), "?": self.relation(predicate.iri)}
        if any(slot[0] == "q" for slot in LAYOUTS[family]["E"]):
            ours = relations["+"].there
            subjects = ours.subjects
            if family in ("inverse_functional", "negated_of"):
                subjects = np.unique(ours.triples[:, 2])
            beside = self._beside(predicate, family, subjects)
            if beside is None:
                return None
            relations["q"] = self.relation(beside.iri)
        return Cell(predicate, family, family, relations, _usual_rules(predicate))

    def _beside(
        self, predicate: Predicate, family: str, subjects: np.ndarray, *barred: str
    ) -> Predicate | None:
        """Another predicate that these subjects have, drawn from those that most of them have."""
        same = {iri for iri, _ in self.constraints.sayings(predicate.iri)}
        shared = {
            other.name: int(np.isin(self.relation(other.iri).there.subjects, subjects).sum())
            for other in self.domain.predicates.values()
            if other.iri not in same
            and other.iri not in barred
            and (family != "class" or self._classes_differ(predicate, other))
        }
        most = max(shared.values(), default=0)
        if most < min(_SHARED_SUBJECTS, len(subjects) // 4 + 1):
            return None
        candidates = [name for name, count in shared.items() if 2 * count >= most]
        name = candidates[int(self.draws.below(len(candidates), 1)[0])]
        return self.domain.predicates[name]

    def _less_than(self, predicate: Predicate, rule: Constraint) -> Cell | None:
        subjects = self.relation(predicate.iri).there.subjects
        beside = self._beside(predicate, "less_than", subjects, rule.value[0])
        if beside is None or rule.value[0] not in self.domain.by_iri:
            return None
        relations = {
            "+": self.relation(predicate.iri),
            "q": self.relation(beside.iri),
            "g": self.relation(rule.value[0]),
        }
        rules = _usual_rules(predicate)
        return Cell(predicate, "less_than", "less_than", relations, rules, matched="claim")

    def _value(self, predicate: Predicate, rule: Constraint) -> Cell | None:
        """Claims of values that a rule forbids: another predicate's, as long as allowed ones."""
        spoken = [entry for entry in predicate.rules if entry[1][0] == rule.name]
        if not spoken:
            return None
        forbidden = ~allowed_terms(self.domain.graph, rule)
        mine = self.relation(predicate.iri)
        lengths = self._lengths(mine.there.triples[:, 2])
        compared = {predicate.iri} | {
            iri
            for other in self.constraints.rules
            if other.kind == "less_than"
            for iri in (other.predicate, *other.value)
        }
        is_number = rule.kind != "in"
        best, most = None, (False, 0)
        for other in self.domain.predicates.values():
            if other.iri in compared:
                continue
            theirs = self.relation(other.iri)
            rows = theirs.there.triples
            # Values of the same sort: some of them are values here too.
            alike = bool(np.isin(rows[:, 2], mine.there.triples[:, 2]).any())
            if rule.kind == "in" and not alike:
                continue
            everyone = self.truth[mine.predicate].subjects
            rows = rows[forbidden[rows[:, 2]] & np.isin(rows[:, 0], everyone)]
            if is_number:
                # A name where a number belongs would be told by its form.
                rows = rows[self.domain.graph.rank[rows[:, 2]] > 0]
                rows = rows[np.isin(self._lengths(rows[:, 2]), lengths)]
            if len(rows) >= _SHARED_SUBJECTS and (alike, len(rows)) > most:
                best, most = Relation(theirs.predicate, BySubject(rows)), (alike, len(rows))
        if best is None:
            return None
        relations = {"+": mine, "q": best}
        rules = (*_usual_rules(predicate), *spoken)
        return Cell(
            predicate, "value", rule.kind, relations, rules, matched="all" if is_number else ""
        )

    def _lengths(self, terms: np.ndarray) -> np.ndarray:
        """How long a sentence's numbers are; a sign makes another length."""
        for term in np.unique(terms[self._length[terms] < 0]).tolist():
            said = self.domain.name_of(self.domain.graph.terms[term])
            self._length[term] = 2 * len(said) + said.startswith("-")
        return self._length[terms]

    def _class_cells(self) -> list[Cell]:
        """Claims that something is of a class, for each class that can be left unsaid of things
        which another predicate speaks of."""
        cells = []
        stated = self.relation(TYPE)
        types = stated.there.triples
        below = {child for child, _ in self.constraints.subclass}
        for name, apart in sorted(self.constraints.disjoint_classes().items()):
            if not apart or name not in self.ids:
                continue
            claimed = self.ids[name]
            others = [self.ids[other] for other in sorted(apart - below) if other in self.ids]
            relations = {
                "k": Relation(stated.predicate, BySubject(types[types[:, 2] == claimed])),
                "d": Relation(stated.predicate, BySubject(types[np.isin(types[:, 2], others)])),
            }
            beside = self._speaks_of(claimed)
            if beside is None or not all(len(relation.there) for relation in relations.values()):
                continue
            relations["q"] = beside
            rules = self.domain.type.rules
            cell = Cell(self.domain.type, "disjoint", "disjoint", relations, rules, claimed=claimed)
            narrower = [
                self.ids[child]
                for child, supers in self.constraints.superclasses().items()
                if name in supers and child != name and child in self.ids
            ]
            low = BySubject(types[np.isin(types[:, 2], narrower)])
            if len(low):
                narrow = {**relations, "k": Relation(stated.predicate, low)}
                cells.append(replace(cell, relations=narrow, sort="inferred", pools={}))
            cells.append(cell)
        return cells

    def _speaks_of(self, claimed: int) -> Relation | None:
        """A predicate with members of the class as its values, some of them untyped here."""
        types = self.truth[self.ids[TYPE]].triples
        members = types[types[:, 2] == claimed, 0]
        known = self.relation(TYPE).there.subjects
        candidates = []
        for other in self.domain.predicates.values():
            relation = self.relation(other.iri)
            values = np.unique(relation.there.triples[:, 2])
            values = values[np.isin(values, members)]
            if len(values) >= _SHARED_SUBJECTS and not np.isin(values, known).all():
                candidates.append(relation)
        return candidates[int(self.draws.below(len(candidates), 1)[0])] if candidates else None

    def _classes_differ(self, one: Predicate, other: Predicate) -> bool:
        first, second = self._class_of(one), self._class_of(other)
        apart = self.constraints.disjoint_classes()
        return first is not None and second in apart.get(first, frozenset())

    def _class_of(self, predicate: Predicate) -> str | None:
        """The class that a predicate's values must have."""
        return next(
            (r.value[0] for r in self.constraints.of(predicate.iri) if r.kind == "class"), None
        )

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
        return [self._kept(number, label, quota) for number, quota in quotas.items()
                for label in "ECU" if quota]  # fmt: skip

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
        claimed = self._lengths(batch.claims[:, 2])
        if not facts_too:
            return claimed
        things = batch.facts[:, :, 2]
        numbers = ~self.deck.is_name[things]
        said = self._lengths(things.ravel()).reshape(things.shape)
        return claimed * 10_000 + np.where(numbers, said, 0).sum(axis=1)

    def _kept(self, number: int, label: str, quota: int) -> Batch:
        """The first cards of a cell and label, as many as are wanted."""
        return self.found[number, label].at(self._rows(number)[label][:quota])

    # Drawing.

    def _fill(self, quotas: dict[int, int]) -> None:
        """Draw until every cell has its quota of each label or gives no more."""
        barren: Counter[int] = Counter()
        while True:
            wanted = {}
            for number, quota in quotas.items():
                if barren[number] >= _BARREN_ROUNDS:
                    continue
                rows = self._rows(number)
                for label in "ECU":
                    missing = quota - len(rows[label])
                    if missing > 0:
                        wanted[number, label] = missing
            if not wanted:
                return
            before = {number: self._complete(number) for number, _ in wanted}
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
        rows = np.flatnonzero(~np.isin(keys, self.taken))
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
        alone = self.alone.judge(self._rule_set[which], facts, holds, claims)
        proved = self._proved(jobs, job, alone)
        fresh = {}
        for i, (number, label) in enumerate(jobs):
            # The first of what is proved; what is over may be drawn again.
            mine = np.flatnonzero(proved & (job == i))
            self.rates[number, label] = len(mine) / max(1, sizes[i])
            self.proof_rates[number, label] = len(mine) / max(1, int((job == i).sum()))
            mine = mine[: wanted[number, label]]
            fresh[number, label] = len(mine)
            self.taken = np.concatenate([self.taken, keys[mine]])
            if not len(mine):
                continue
            cell = self.cells[number]
            k = int((holds[mine[0]] != 0).sum())
            batch = Batch(
                cell, label, facts[mine, :k], holds[mine, :k], claims[mine], alone.at(mine)
            )
            earlier = self.found.get((number, label))
            self.found[number, label] = batch if earlier is None else earlier.with_more(batch)
        return fresh

    def _alone_judge(self) -> AloneJudge:
        """For all cells so far: their sets of rules, each once."""
        axioms = sorted({cell.axioms for cell in self.cells})
        number = {names: i for i, names in enumerate(axioms)}
        self._rule_set = np.array([number[cell.axioms] for cell in self.cells], np.int32)
        used = {relation.predicate for cell in self.cells for relation in cell.relations.values()}
        used |= {cell.flips for cell in self.cells} | {cell.claimed for cell in self.cells}
        types = self.truth.get(self.ids[TYPE], _NOTHING).triples
        used |= set(np.unique(types[:, 2]).tolist())
        alone = AloneJudge(self.domain.graph, self.constraints, axioms, sorted(used - {-1}))
        if hasattr(self, "alone"):
            # Earlier cards' proofs name places in these.
            alone.names, alone.sayings = self.alone.names, self.alone.sayings
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
        raise NotImplementedError

    def _is_unknown(self, cell: Cell, label: str, s: str, o: str) -> bool:
        """Whether a slot speaks of what a card asks about and, by design, doesn't tell."""
        asked = o if cell.family == "disjoint" else s
        return label == "U" and asked == ("o" if cell.family in _OF else "s")

    def _somebody(self, cell: Cell, unknown: bool, size: int) -> tuple[np.ndarray, np.ndarray]:
        """Subjects (or, where those are asked for, objects) of the predicate, as often as it has
        them, for slots that state something else of them: all are known as well, for every label.
        """
        key = ("somebody", unknown)
        if key not in cell.pools:
            column = 2 if cell.family in _OF else 0
            relation = cell.relations["+"]
            everyone = self.truth[relation.predicate].triples[:, column]
            functional, inverse = self._counted(cell.predicate)
            if unknown and (inverse if cell.family in _OF else functional):
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
        if unknown and self._counted(cell.predicate)[0]:
            rows = rows[~np.isin(rows[:, 0], mine.there.subjects)]
        return rows

    def _class_fact(self, cell: Cell, label: str, role: str, who: np.ndarray) -> np.ndarray:
        """'Paris is a city': in a contradictory card the claimed object is of the other class."""
        other = (role == "x") != (label == "C")
        beside = self.domain.by_iri[self.deck.terms[cell.relations["q"].predicate]]
        name = self._class_of(beside if other else cell.predicate)
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
        silent = (wanted == Verdict.CONTRADICTORY) & (known == Verdict.UNKNOWN) & ~strict
        return good & ((known == wanted) | silent)

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


_FLIPPED = ("functional", "inverse_functional", "negated", "negated_of", "asymmetric")
_OF = ("inverse_functional", "negated_of")
# What else is stated is drawn by its value here, elsewhere by its subject.
_BY_VALUE = ("value", "disjoint")
_NOTHING = BySubject(np.zeros((0, 3), np.int32))


def _usual_rules(predicate: Predicate) -> tuple[Rule, ...]:
    """The rules that stand in a predicate's cards; those on single values only in their own."""
    return tuple(rule for rule in predicate.rules if rule[1][0].split("(")[0] not in _VALUE_KINDS)


def _by_predicate(oracle: Oracle, terms: int) -> dict[int, BySubject]:
    """All that a graph says, stated or inferred, by predicate."""
    triples = oracle.compiled.triples
    triples = triples[triples[:, 1] < terms]
    by_predicate = sorted_unique(triples[:, [1, 0, 2]])[:, [1, 0, 2]]
    numbers, starts = np.unique(by_predicate[:, 1], return_index=True)
    ends = [*starts[1:].tolist(), len(triples)]
    return {
        int(number): BySubject(by_predicate[start:end])
        for number, start, end in zip(numbers, starts.tolist(), ends, strict=True)
    }


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
