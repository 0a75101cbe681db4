"""Decks of context cards: drawn in integers, checked by the oracle both ways, worded last.

How a deck keeps its labels out of its surface. Cards come in *families*. A family has one layout
for each label, and its layouts agree in everything but the answer: as many facts, as many
denials, the same predicates, and each thing in the question named as often, in facts and in
denials alike. What differs is which name stands beside which. Wordings and order are drawn
without regard to the label, false objects are drawn as true ones are (from the predicate's own
triples, so that type and popularity match), and the rules of a predicate stand in all its cards.

Claims that would give themselves away by their form (a river that flows into itself, a length
below zero) are judged by the oracle but not drawn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from pydantic import Field

from epistemic.cards import Card, Claim, Statement
from epistemic.constraints import Constraints, inverse_name, symmetric_name
from epistemic.domain import Domain, Predicate
from epistemic.draws import Draws
from epistemic.graph import TYPE, Graph, canonical, sorted_unique
from epistemic.oracle import Compiled, Oracle, Verdict, compile_oracle, explain, judge, padded
from evidence.config import Settings


class CardSettings(Settings):
    """What to draw; see conf/epistemic/config.yaml."""

    per_type: int = Field(default=200, ge=1)
    predicates: tuple[str, ...] | None = None
    seed: int = Field(default=1337, ge=0)
    withhold: float = Field(default=0.3, ge=0, lt=1)


class Deck(NamedTuple):
    """Cards with the graph that they were drawn from.

    Attributes:
      cards: in the order to be asked.
      graph: the domain's less what was withheld; what systems may know.
      counts: cards by label, kind, predicate and family.
    """

    cards: list[Card]
    graph: Graph
    counts: dict[str, dict[str, int]]


# A slot is one fact: what it says, of whom, of what. "+" states the card's predicate and "-"
# denies it; "q" states another predicate of the domain, "g" the predicate that must be greater;
# "t" gives the class of its object. The claim is the card's predicate of (s, o).
Slot = tuple[str, str, str]

_STATED: tuple[Slot, ...] = (
    ("+", "s", "o"), ("+", "v", "u"), ("q", "t", "a"), ("-", "s", "w"), ("-", "t", "o"),
)  # fmt: skip
_ABSENT: tuple[Slot, ...] = (
    ("q", "s", "a"), ("+", "v", "o"), ("+", "t", "u"), ("-", "s", "w"), ("-", "t", "o"),
)  # fmt: skip

LAYOUTS: dict[str, dict[str, tuple[Slot, ...]]] = {
    "functional": {
        "E": _STATED,
        "C": (("+", "s", "u"), ("+", "v", "o"), ("q", "t", "a"), ("-", "s", "w"), ("-", "t", "o")),
        "U": _ABSENT,
    },
    "negated": {
        "E": _STATED,
        "C": (("q", "s", "a"), ("+", "t", "o"), ("+", "v", "u"), ("-", "s", "o"), ("-", "t", "w")),
        "U": _ABSENT,
    },
    "class": {
        "E": (("+", "s", "o"), ("q", "t", "x"), ("+", "v", "u"), ("t", "", "o"), ("t", "", "x")),
        "C": (("q", "s", "o"), ("+", "t", "x"), ("+", "v", "u"), ("t", "", "o"), ("t", "", "x")),
        "U": (("q", "s", "x"), ("+", "t", "o"), ("+", "v", "u"), ("t", "", "o"), ("t", "", "x")),
    },
    "asymmetric": {
        "E": (("+", "s", "o"), ("+", "v", "u")),
        "C": (("+", "o", "s"), ("+", "v", "u")),
        "U": (("+", "v", "s"), ("+", "o", "u")),
    },
    "less_than": {
        "E": (("+", "s", "o"), ("g", "s", "m"), ("q", "t", "a"), ("+", "v", "u")),
        "C": (("g", "s", "m"), ("q", "s", "a"), ("+", "t", "o"), ("+", "v", "u")),
        "U": (("g", "s", "m"), ("q", "s", "a"), ("+", "t", "o"), ("+", "v", "u")),
    },
}
_KINDS = {"max_count": "functional", "negative": "negated", "inverse_functional": "functional"}
_VERDICTS = {"E": Verdict.ENTAILED, "C": Verdict.CONTRADICTORY, "U": Verdict.UNKNOWN}
# So many rounds in a row without a fresh card, and a cell counts as exhausted.
_BARREN_ROUNDS = 5


@dataclass(frozen=True)
class Cell:
    """One predicate in one family, with the other predicates that its layouts need."""

    predicate: Predicate
    family: str
    beside: Predicate
    greater: Predicate | None = None


@dataclass
class Batch:
    """Cards of one cell and label as integers.

    Attributes:
      facts: i32[n, K, 3] and holds: bool[n, K], in the order shown.
      claims: i32[n, 3].
    """

    cell: Cell
    label: str
    facts: np.ndarray
    holds: np.ndarray
    claims: np.ndarray


def deck_graph(domain: Domain, settings: CardSettings) -> Graph:
    """The domain's graph less the values withheld from a share of each function's subjects.

    Without that, a claim about a function (one capital) would never be unknown.
    """
    triples = domain.graph.triples
    hidden = np.zeros(len(triples), bool)
    for stream, predicate in enumerate(domain.predicates.values()):
        if domain.constraints.functional(predicate.iri):
            mine = triples[:, 1] == domain.graph.ids[predicate.iri]
            chance = Draws(settings.seed, 100 + stream).uniform(len(domain.graph.terms))
            hidden |= mine & (chance[triples[:, 0]] < settings.withhold)
    return domain.graph.without(hidden)


def make_cards(domain: Domain, settings: CardSettings) -> Deck:
    """Draw a deck: `per_type` cards of each label, spread evenly over predicates and families.

    The same settings give the same bytes on every machine.

    Raises:
      ValueError: an unknown predicate, or a graph too small; says how many cards it could give.
    """
    drawer = Drawer(domain, deck_graph(domain, settings), settings)
    batches = drawer.draw(settings.per_type)
    cards = Wording(domain, settings.seed).cards(batches, drawer.deck)
    return Deck(cards, drawer.deck, counts(cards, domain))


def counts(cards: Sequence[Card], domain: Domain) -> dict[str, dict[str, int]]:
    """How many cards there are by label, kind, predicate and family."""

    def tally(values: Iterator[str]) -> dict[str, int]:
        return dict(sorted(Counter(values).items()))

    return {
        "label": tally(card.label for card in cards),
        "kind": tally(card.kind for card in cards),
        "predicate": tally(domain.by_iri[card.claim.pred].name for card in cards),
        "family": tally(card.family for card in cards),
    }


class Drawer:
    """Draws cards as integers."""

    def __init__(self, domain: Domain, deck: Graph, settings: CardSettings):
        self.domain, self.deck = domain, deck
        self.constraints = domain.constraints
        self.draws = Draws(settings.seed)
        self.whole = domain.oracle
        self.known = Oracle(deck, domain.constraints)
        self.ids = domain.graph.ids
        names: dict[str, int] = {}
        # Terms of one name are one for a reader.
        self.name = np.array(
            [names.setdefault(label.casefold(), len(names)) for label in domain.graph.labels]
        )
        self.by_subject = {
            predicate.iri: BySubject(deck.triples[deck.triples[:, 1] == self.ids[predicate.iri]])
            for predicate in domain.predicates.values()
            if predicate.iri in self.ids
        }
        self.numbers = np.array(sorted(self.ids[iri] for iri in self.by_subject), np.int32)
        self.taken = np.zeros(0, np.int64)
        self.cells = self._cells(settings.predicates)

    def _cells(self, wanted: tuple[str, ...] | None) -> list[Cell]:
        predicates = self.domain.predicates
        for name in wanted or ():
            if name not in predicates:
                raise ValueError(
                    f"cards.predicates: {name!r} is no predicate of {self.domain.name}; "
                    f"there are: {', '.join(predicates)}"
                )
        cells = []
        for name in wanted or predicates:
            predicate = predicates[name]
            kinds = {rule.kind for rule in self.constraints.of(predicate.iri)}
            if not len(self.by_subject[predicate.iri]):
                continue
            functional = self.constraints.functional(predicate.iri)
            # The families that a graph feeds least come first, before others take their claims.
            families: list[str] = [
                kind for kind in ("less_than", "asymmetric", "class") if kind in kinds
            ]
            families += ["functional"] * functional
            families += ["negated"] * (functional or predicate.complete)
            for family in families:
                cells += self._cell(predicate, family)
        if not cells:
            raise ValueError(
                f"{self.domain.name}: no claim could be contradictory. A predicate must be a "
                "function (owl:FunctionalProperty, sh:maxCount 1) or complete, and its subjects "
                "need a second predicate for the other facts of a card"
            )
        return cells

    def _cell(self, predicate: Predicate, family: str) -> list[Cell]:
        """The cell, or nothing where the domain has no predicate to set beside."""
        same = {iri for iri, _ in self.constraints.sayings(predicate.iri)}
        subjects = self.by_subject[predicate.iri].subjects
        greater = None
        if family == "less_than":
            rule = next(r for r in self.constraints.of(predicate.iri) if r.kind == "less_than")
            greater = self.domain.by_iri.get(rule.value[0])
            if greater is None:
                return []
        candidates = []
        for other in self.domain.predicates.values():
            if other.iri in same or other is greater or not len(self.by_subject[other.iri]):
                continue
            shared = np.isin(self.by_subject[other.iri].subjects, subjects).sum()
            if shared >= min(10, len(subjects) // 4 + 1) and (
                family != "class" or self._classes_differ(predicate, other)
            ):
                candidates.append(other)
        if not any(slot[0] == "q" for slot in LAYOUTS[family]["E"]):
            return [Cell(predicate, family, predicate)]
        if not candidates:
            return []
        beside = candidates[int(self.draws.below(len(candidates), 1)[0])]
        return [Cell(predicate, family, beside, greater)]

    def _class_of(self, predicate: Predicate) -> str | None:
        """The class that a predicate's values must have."""
        return next(
            (r.value[0] for r in self.constraints.of(predicate.iri) if r.kind == "class"), None
        )

    def _classes_differ(self, one: Predicate, other: Predicate) -> bool:
        first, second = self._class_of(one), self._class_of(other)
        apart = self.constraints.disjoint_classes()
        return first is not None and second in apart.get(first, frozenset())

    def draw(self, per_type: int) -> list[Batch]:
        """Batches that hold `per_type` cards of each label between them."""
        quotas = dict.fromkeys(range(len(self.cells)), 0)
        kept: dict[int, dict[str, Batch]] = {}
        open_ = list(quotas)
        missing = per_type
        while missing and open_:
            for turn, number in enumerate(open_):
                share = missing // len(open_) + (turn < missing % len(open_))
                quotas[number] += share
            for number in list(open_):
                there = len(kept[number]["E"].claims) if number in kept else 0
                if quotas[number] > there:
                    self._extend(number, quotas[number] - there, kept)
                got = len(kept[number]["E"].claims) if number in kept else 0
                if got < quotas[number]:
                    quotas[number] = got
                    open_.remove(number)
            missing = per_type - sum(quotas.values())
        if missing:
            by_predicate: Counter[str] = Counter()
            for number, cell in enumerate(self.cells):
                by_predicate[cell.predicate.name] += quotas[number]
            could = ", ".join(f"{name} {n}" for name, n in by_predicate.items())
            raise ValueError(
                f"cards.per_type={per_type}: the graph gives {per_type - missing} of each label "
                f"({could}); lower it or use a larger graph"
            )
        return [batch for number in sorted(kept) for batch in kept[number].values()]

    def _extend(self, number: int, wanted: int, kept: dict[int, dict[str, Batch]]) -> None:
        """Draw up to `wanted` more cards of each label in a cell, as many of one as of another."""
        cell = self.cells[number]
        found = {label: self._draw_label(cell, label, wanted) for label in "ECU"}
        if cell.family == "less_than":
            places = self._match_lengths(found)
        else:
            fewest = min(len(batch.claims) for batch in found.values())
            places = {label: np.arange(fewest) for label in found}
        for label, batch in found.items():
            at = places[label]
            found[label] = Batch(cell, label, batch.facts[at], batch.holds[at], batch.claims[at])
            # What is not kept may be drawn again.
            dropped = np.delete(batch.claims, at, axis=0)
            self.taken = self.taken[~np.isin(self.taken, self._keys(dropped))]
        if number not in kept:
            kept[number] = found
            return
        for label, batch in found.items():
            before = kept[number][label]
            kept[number][label] = Batch(
                cell,
                label,
                np.concatenate([before.facts, batch.facts]),
                np.concatenate([before.holds, batch.holds]),
                np.concatenate([before.claims, batch.claims]),
            )

    def _match_lengths(self, found: dict[str, Batch]) -> dict[str, np.ndarray]:
        """Rows with claimed numbers of equally many digits for each label."""
        digits = {
            label: np.array([len(self.deck.labels[o]) for o in batch.claims[:, 2]], int)
            for label, batch in found.items()
        }
        places: dict[str, list[np.ndarray]] = {label: [] for label in found}
        for width in range(1, 20):
            rows = {label: np.flatnonzero(digits[label] == width) for label in found}
            fewest = min(map(len, rows.values()))
            for label in found:
                places[label].append(rows[label][:fewest])
        return {label: np.concatenate(parts) for label, parts in places.items()}

    def _keys(self, claims: np.ndarray) -> np.ndarray:
        """i64[n]: one number for each claim."""
        wide, size = claims.astype(np.int64), len(self.deck.terms)
        predicate = np.searchsorted(self.numbers, claims[:, 1])
        return (wide[:, 0] * size + wide[:, 2]) * len(self.numbers) + predicate

    def _draw_label(self, cell: Cell, label: str, wanted: int) -> Batch:
        """Up to `wanted` cards of a label, each about a claim of its own."""
        slots = LAYOUTS[cell.family][label]
        parts = [_no_cards(len(slots))]
        missing, barren = wanted, 0
        while missing and barren < _BARREN_ROUNDS:
            facts, holds, claims = self._propose(cell, label, slots, 2 * missing + 256)
            keys = self._keys(claims)
            fresh = ~np.isin(keys, self.taken)
            first = np.zeros(len(keys), bool)
            first[np.unique(keys, return_index=True)[1]] = True
            rows = np.flatnonzero(fresh & first)
            rows = rows[self._holds_up(cell, label, facts[rows], holds[rows], claims[rows])]
            rows = rows[: missing + missing // 8 + 8]
            alone = judge_alone(
                self.deck, self.constraints, cell.predicate, facts[rows], holds[rows], claims[rows]
            )
            rows = rows[alone.verdict == _VERDICTS[label]][:missing]
            self.taken = np.concatenate([self.taken, keys[rows]])
            parts.append((facts[rows], holds[rows], claims[rows]))
            missing -= len(rows)
            barren = 0 if len(rows) else barren + 1
        return Batch(cell, label, *(np.concatenate(column) for column in zip(*parts, strict=True)))

    def _propose(
        self, cell: Cell, label: str, slots: tuple[Slot, ...], size: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Draw what each role stands for and lay the facts out; rows with a gap are left out."""
        bound: dict[str, np.ndarray] = {}
        whole = np.ones(size, bool)
        p = self.ids[cell.predicate.iri]
        mine = self.by_subject[cell.predicate.iri]
        relations = {"+": mine, "q": self.by_subject[cell.beside.iri]}
        if cell.greater is not None:
            relations["g"] = self.by_subject[cell.greater.iri]
        numbers = {"+": p, "-": p, "q": self.ids[cell.beside.iri]}
        if cell.greater is not None:
            numbers["g"] = self.ids[cell.greater.iri]
        everyone = np.unique(self.domain.graph.triples[self.domain.graph.triples[:, 1] == p, 0])
        for what, s, o in slots:
            if what not in relations:
                continue
            relation = relations[what]
            if s in bound:
                bound[o], there = relation.value_of(bound[s], self.draws)
                whole &= there
                continue
            if s == "v":
                bound[s], bound[o], there = self._bystanders(cell, label, bound, size)
                whole &= there
                continue
            rows = relation.triples
            if what != "+":
                # Whoever stands in for a subject of the predicate must be able to be one.
                rows = rows[np.isin(rows[:, 0], everyone)]
                if s == "s" and label == "U" and self.constraints.functional(cell.predicate.iri):
                    rows = rows[~np.isin(rows[:, 0], mine.subjects)]
            if not len(rows):
                return _no_cards(len(slots))
            drawn = rows[self.draws.below(len(rows), size)]
            bound[s], bound[o] = drawn[:, 0], drawn[:, 2]
        if any("w" in slot[1:] for slot in slots):
            bound["w"] = mine.triples[self.draws.below(len(mine.triples), size), 2]
        names = np.stack([self.name[column] for column in bound.values()])
        names.sort(axis=0)
        whole &= (names[1:] != names[:-1]).all(axis=0)
        facts = np.zeros((size, len(slots), 3), np.int32)
        for k, (what, s, o) in enumerate(slots):
            if what == "t":
                facts[:, k] = self._class_fact(cell, label, o, bound[o])
            else:
                facts[:, k] = np.stack([bound[s], np.full(size, numbers[what]), bound[o]], axis=1)
        holds = np.array([what != "-" for what, _, _ in slots])
        claims = np.stack([bound["s"], np.full(size, p), bound["o"]], axis=1)
        rows = np.flatnonzero(whole)
        return facts[rows], np.tile(holds, (len(rows), 1)), claims[rows].astype(np.int32)

    def _bystanders(
        self, cell: Cell, label: str, bound: dict[str, np.ndarray], size: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Someone else with a value of the predicate, and whether there is one for the row."""
        rows = self.by_subject[cell.predicate.iri].triples
        drawn = rows[self.draws.below(len(rows), size)]
        return drawn[:, 0], drawn[:, 2], np.ones(size, bool)

    def _class_fact(self, cell: Cell, label: str, role: str, who: np.ndarray) -> np.ndarray:
        """'Paris is a city': in a contradictory card the claimed object is of the other class."""
        other = (role == "x") != (label == "C")
        name = self._class_of(cell.beside if other else cell.predicate)
        assert name is not None
        fact = np.zeros((len(who), 3), np.int32)
        fact[:, 0], fact[:, 1], fact[:, 2] = who, self.ids[TYPE], self.ids[name]
        return fact

    def _holds_up(
        self, cell: Cell, label: str, facts: np.ndarray, holds: np.ndarray, claims: np.ndarray
    ) -> np.ndarray:
        """bool[n]: cards whose denials are true and whose gold the graph doesn't change."""
        if not len(claims):
            return np.zeros(0, bool)
        good = np.ones(len(claims), bool)
        for k in np.flatnonzero(~holds[0]):
            verdict = self.whole.judge_ids(facts[:, k]).verdict
            false = verdict == Verdict.CONTRADICTORY
            if cell.predicate.complete:
                false |= verdict == Verdict.UNKNOWN
            good &= false
        known = self.known.judge_ids(claims).verdict
        wanted = _VERDICTS[label]
        return good & ((known == wanted) | ((label == "C") & (known == Verdict.UNKNOWN)))


def _no_cards(slots: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return np.zeros((0, slots, 3), np.int32), np.zeros((0, slots), bool), np.zeros((0, 3), np.int32)


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


# -- Cards by themselves -----------------------------------------------------------------------


@dataclass(frozen=True)
class Alone:
    """What cards say by themselves.

    Attributes:
      verdict: i8[n].
      proof: i32[n, 2], see `judge`.
      compiled, graph: the cards' own graph, in which no two cards share a term.
      rows: i32[n, K + 1, 3], facts and then the claim in that graph's ids.
      holds: bool[n, K].
    """

    verdict: np.ndarray
    proof: np.ndarray
    compiled: Compiled
    graph: Graph
    rows: np.ndarray
    holds: np.ndarray

    def kinds(self) -> list[str]:
        """Each card's kind, see `Card`."""
        facts, claim = self.rows[:, :-1], self.rows[:, -1:]
        literally = ((facts == claim).all(axis=2) & self.holds).any(axis=1)
        broken = [name.split("(")[0] for name in self.compiled.names]

        def kind(i: int, verdict: int) -> str:
            if verdict == Verdict.UNKNOWN:
                return "U_absent"
            if verdict == Verdict.ENTAILED:
                return "E_stated" if literally[i] else "E_inferred"
            rule = broken[self.proof[i, 0]]
            return "C_" + _KINDS.get(rule, rule)

        return [kind(i, verdict) for i, verdict in enumerate(self.verdict.tolist())]

    def proofs(self) -> list[str]:
        """Each card's proof in one line."""
        return [
            explain(self.compiled, self.graph, verdict, proof)
            for verdict, proof in zip(self.verdict.tolist(), self.proof, strict=True)
        ]


def judge_alone(
    table: Graph,
    constraints: Constraints,
    predicate: Predicate,
    facts: np.ndarray,
    holds: np.ndarray,
    claims: np.ndarray,
) -> Alone:
    """Judge each card's claim from its own facts and its predicate's rules.

    Args:
      table: whose terms the ids are of.
      constraints, predicate: the rules are those that the predicate's sentences speak of.
      facts: i32[n, K, 3]; holds: bool[n, K]; claims: i32[n, 3].
    """
    axioms = [name for _, names in predicate.rules for name in names]
    return _judge_apart(table, constraints.only(axioms), facts, holds, claims)


def _judge_apart(
    table: Graph,
    rules: Constraints,
    facts: np.ndarray,
    holds: np.ndarray,
    claims: np.ndarray,
) -> Alone:
    """All cards in one graph in which no two share a term: each term is tagged with its card."""
    n, k = holds.shape
    size = len(table.terms)
    everything = np.concatenate([facts, claims[:, None]], axis=1)  # [n, k + 1, 3]
    tags = np.arange(n, dtype=np.int64)[:, None] * size
    is_type = everything[:, :, 1] == table.ids.get(TYPE, -1)
    things = np.stack([everything[:, :, 0] + tags, everything[:, :, 2] + tags])
    shared_names = {TYPE, *(name for pair in rules.subclass for name in pair)}
    for rule in rules.rules:
        shared_names |= {rule.predicate, *(rule.value if rule.kind != "max_count" else ())}
    shared_names |= {*rules.symmetric, *(p for pair in rules.inverse for p in pair)}
    shared_names |= {table.terms[p] for p in _distinct(everything[:, :, 1])}
    shared_names |= {table.terms[c] for c in _distinct(everything[:, :, 2][is_type])}
    shared = sorted(canonical(name) for name in shared_names)
    tagged, places = np.unique(things, return_inverse=True)
    own = (tagged % size).astype(np.int64)
    terms = [*shared, *(table.terms[i] for i in own.tolist())]
    rank = np.concatenate(
        [np.array([table.rank_of(name) for name in shared], np.int32), table.rank[own]]
    )
    number = np.full(size, -1, np.int32)
    for i, name in enumerate(shared):
        if name in table.ids:
            number[table.ids[name]] = i
    subjects, objects = places.reshape(2, n, k + 1) + len(shared)
    objects = np.where(is_type, number[everything[:, :, 2]], objects)
    rows = np.stack([subjects, number[everything[:, :, 1]], objects], axis=2).astype(np.int32)
    stated, denied = rows[:, :k][holds], rows[:, :k][~holds]
    graph = Graph(
        terms, sorted_unique(stated), rank, values=table.values, value_ranks=table.value_ranks
    )
    graph.__dict__["ids"] = {name: i for i, name in enumerate(shared)}
    graph.__dict__["labels"] = [
        *(table.labels[table.ids[name]] if name in table.ids else name for name in shared),
        *(table.labels[i] for i in own.tolist()),
    ]
    compiled = compile_oracle(graph, rules, spare=0, denied=denied)
    batch = np.zeros((padded(n), 3), np.int32)
    batch[:n] = rows[:, k]
    verdict, proof = (
        np.asarray(x)[:n] for x in judge(compiled.lookup, compiled.rows, jnp.asarray(batch))
    )
    return Alone(verdict, proof, compiled, graph, rows, holds)


def _distinct(ids: np.ndarray) -> list[int]:
    """The distinct ids among small non-negative integers, in order."""
    return np.flatnonzero(np.bincount(ids.ravel())).tolist()


def judge_cards(
    cards: Sequence[Card], constraints: Constraints, oracle: Oracle | None = None
) -> list[Verdict]:
    """Judge every card's claim from its own facts and rules, in one batch a set of rules.

    Args:
      cards: with their facts as data (`stated`); a card without any is unknown by itself.
      constraints: the domain's; a card rests on those that its `axioms` name.
      oracle: where the card alone says unknown, what its graph says.
    """
    texts = [
        triple for card in cards for triple in (*(fact[:3] for fact in card.stated), card.claim)
    ]
    table = Graph.from_triples([*texts, (TYPE, TYPE, TYPE)])
    ids = np.array([[table.ids[canonical(t)] for t in triple] for triple in texts], np.int32)
    starts = np.cumsum([0, *(len(card.stated) + 1 for card in cards)])
    verdicts = np.full(len(cards), int(Verdict.UNKNOWN))
    groups: dict[tuple[tuple[str, ...], int], list[int]] = {}
    for i, card in enumerate(cards):
        groups.setdefault((card.axioms, len(card.stated)), []).append(i)
    for (axioms, k), members in groups.items():
        rows = np.stack([ids[starts[i] : starts[i] + k + 1] for i in members])
        holds = np.array([[s.holds for s in cards[i].stated] for i in members], bool)
        if k:
            alone = _judge_apart(table, constraints.only(axioms), rows[:, :k], holds, rows[:, k])
            verdicts[members] = alone.verdict
    if oracle is not None:
        silent = np.flatnonzero(verdicts == Verdict.UNKNOWN).tolist()
        if silent:
            verdicts[silent] = oracle.judge([cards[i].claim for i in silent]).verdict
    return [Verdict(verdict) for verdict in verdicts]


# -- Words -------------------------------------------------------------------------------------


class Wording:
    """Puts batches into words; the only part that handles text."""

    def __init__(self, domain: Domain, seed: int):
        self.domain = domain
        self.draws = Draws(seed, stream=1)
        self.names: dict[tuple[int, str], str] = {}
        self._known: dict[tuple[int, int, bool], tuple[tuple[str, ...], str, int]] = {}

    def cards(self, batches: list[Batch], deck: Graph, prefix: str = "CARD") -> list[Card]:
        """The deck, in a random order."""
        drafts = [draft for batch in batches for draft in self._drafts(batch, deck)]
        order = self.draws.order(len(drafts)).tolist()
        return [
            Card(id=f"{prefix}_{drafts[place]['label']}_{number:06d}", **drafts[place])
            for number, place in enumerate(order)
        ]

    def _drafts(self, batch: Batch, deck: Graph) -> list[dict[str, Any]]:
        n, k = batch.holds.shape
        if not n:
            return []
        facts, holds = self._flipped(batch, deck)
        order = np.argsort(self.draws.uniform(n * k).reshape(n, k), axis=1)
        facts = np.take_along_axis(facts, order[:, :, None], axis=1)
        holds = np.take_along_axis(holds, order, axis=1)
        predicate = batch.cell.predicate
        alone = judge_alone(deck, self.domain.constraints, predicate, facts, holds, batch.claims)
        assert (alone.verdict == _VERDICTS[batch.label]).all()
        question = self.draws.below(len(predicate.questions), n).tolist()
        wording = self.draws.below(1 << 16, n * k).reshape(n, k).tolist()
        rules = tuple(sentence for sentence, _ in predicate.rules)
        axioms = tuple(name for _, names in predicate.rules for name in names)
        gold = _VERDICTS[batch.label].gold
        terms = deck.terms
        return [
            {
                **self._sentences(fact, hold, words, q),
                "question": predicate.questions[q].format(
                    s=self._name(claim[0], ""), o=self._name(claim[2], predicate.unit)
                ),
                "gold": gold,
                "label": batch.label,
                "claim": Claim(terms[claim[0]], terms[claim[1]], terms[claim[2]]),
                "kind": kind,
                "proof": proof,
                "rules": rules,
                "axioms": axioms,
                "family": f"{predicate.name}/{batch.cell.family}",
            }
            for fact, hold, words, claim, kind, proof, q in zip(
                facts.tolist(),
                holds.tolist(),
                wording,
                batch.claims.tolist(),
                alone.kinds(),
                alone.proofs(),
                question,
                strict=True,
            )
        ]

    def _flipped(self, batch: Batch, deck: Graph) -> tuple[np.ndarray, np.ndarray]:
        """Facts of the card's predicate said the other way round, half of them, where one can."""
        n, k = batch.holds.shape
        predicate, ids = batch.cell.predicate, self.domain.graph.ids
        spoken = {name for _, names in predicate.rules for name in names}
        flips = [
            ids[iri]
            for iri, swapped in self.domain.constraints.sayings(predicate.iri)
            if swapped and iri in self.domain.by_iri and self._licensed(predicate.iri, iri, spoken)
        ]
        coin = self.draws.uniform(n * k).reshape(n, k) < 0.5
        facts = batch.facts.copy()
        if flips:
            flip = coin & (facts[:, :, 1] == ids[predicate.iri])
            facts[flip] = facts[flip][:, ::-1]
            facts[:, :, 1][flip] = flips[0]
        return facts, batch.holds

    def _licensed(self, one: str, other: str, spoken: set[str]) -> bool:
        """Whether the card's rules say that the two predicates say the same."""
        both = {symmetric_name(one)} if one == other else set()
        return bool(spoken & {*both, inverse_name(one, other), inverse_name(other, one)})

    def _sentences(
        self, facts: list[list[int]], holds: list[bool], words: list[int], question: int
    ) -> dict[str, Any]:
        """The facts of one card as text, as data and as template numbers."""
        texts, stated, surface = [], [], [question]
        terms = self.domain.graph.terms
        for (s, p, o), hold, word in zip(facts, holds, words, strict=True):
            templates, unit, number = self._templates(p, o, hold)
            choice = word % len(templates)
            texts.append(templates[choice].format(s=self._name(s, ""), o=self._name(o, unit)))
            stated.append(Statement(terms[s], terms[p], terms[o], hold))
            surface.append(number + choice)
        return {"facts": tuple(texts), "stated": tuple(stated), "surface": tuple(surface)}

    def _templates(self, p: int, o: int, holds: bool) -> tuple[tuple[str, ...], str, int]:
        """Templates for a fact, the unit of its object and the number of the first of them."""
        key = (p, o if self.domain.graph.terms[p] == TYPE else -1, holds)
        if key not in self._known:
            iri = self.domain.graph.terms[p]
            if iri == TYPE:
                kind = self.domain.class_name(self.domain.graph.terms[o])
                templates: tuple[str, ...] = (
                    f"{{s}} is {kind}.",
                    f"It is known that {{s}} is {kind}.",
                )
                unit = ""
            else:
                predicate = self.domain.by_iri[iri]
                templates = predicate.facts if holds else predicate.denials
                unit = predicate.unit
            self._known[key] = (templates, unit, 16 * (1 + len(self._known)))
        return self._known[key]

    def _name(self, term: int, unit: str) -> str:
        key = (term, unit)
        if key not in self.names:
            self.names[key] = self.domain.name_of(self.domain.graph.terms[term], unit)
        return self.names[key]
