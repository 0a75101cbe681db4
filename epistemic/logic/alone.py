"""Cards by themselves: every claim judged from its own card's facts and rules, and nothing else.

Thousands of cards are judged at once, in one graph in which no two share a term: each card has a
place of its own for each of its names. Cards differ in their rules too, so each set of rules has
copies of the predicates and classes that it speaks of.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import jax.numpy as jnp
import numpy as np

from epistemic.cards import Card
from epistemic.logic.compilation import Cards, Compiled, allowed_terms, compile_oracle
from epistemic.logic.constraints import Constraint, Constraints
from epistemic.logic.graph import TYPE, Graph, canonical, sorted_unique
from epistemic.logic.lookup import Verdict, judge, padded
from epistemic.logic.oracle import Oracle

_KINDS = {"max_count": "functional", "negative": "negated"}
# So many places for names are judged at a time, and so many where there are few.
_PLACES, _FEW_PLACES = 98_304, 12_288


@dataclass(frozen=True)
class Alone:
    """What cards say by themselves.

    Attributes:
      verdict: i8[n] of `Verdict`.
      rule: i32[n], the broken constraint's place in `AloneJudge.names`, or -1.
      clash: i32[n, 3], the triple that entails or clashes: subject and object are terms of the
        table, the middle is a place in `AloneJudge.sayings`; -1 where there is none.
      stated: bool[n], whether a fact says the claim itself.
    """

    verdict: np.ndarray
    rule: np.ndarray
    clash: np.ndarray
    stated: np.ndarray

    def at(self, rows: np.ndarray) -> Alone:
        return Alone(self.verdict[rows], self.rule[rows], self.clash[rows], self.stated[rows])

    @staticmethod
    def joined(parts: Sequence[Alone]) -> Alone:
        return Alone(
            np.concatenate([part.verdict for part in parts]),
            np.concatenate([part.rule for part in parts]),
            np.concatenate([part.clash for part in parts]),
            np.concatenate([part.stated for part in parts]),
        )

    @staticmethod
    def nothing() -> Alone:
        return Alone(
            np.zeros(0, np.int8),
            np.zeros(0, np.int32),
            np.zeros((0, 3), np.int32),
            np.zeros(0, bool),
        )


class AloneJudge:
    """Judges cards by themselves.

    Args:
      table: whose terms the ids are of.
      constraints: those that rules can be of.
      axioms: sets of names of constraints; a card names its set by its place here.
      used: ids of every predicate and class in the cards' facts and claims.
    """

    def __init__(
        self,
        table: Graph,
        constraints: Constraints,
        axioms: Sequence[tuple[str, ...]],
        used: Iterable[int],
    ):
        self.table = table
        self.names: list[str] = []
        self.sayings: list[str] = []
        rule_sets = [constraints.only(names) for names in axioms]
        words = {table.terms[i] for i in used}.union(*map(_vocabulary, rule_sets)) - {TYPE}
        self._words = sorted(words)
        self._number = np.full(len(table.terms), -1, np.int32)
        for place, word in enumerate(self._words):
            if word in table.ids:
                self._number[table.ids[word]] = place
        self._type = table.ids.get(TYPE, -1)
        self._rules = _side_by_side(rule_sets)
        self._shared = [TYPE, *(_copy(i, w) for i in range(len(axioms)) for w in self._words)]
        self._ids = {name: i for i, name in enumerate(self._shared)}
        labels = [table.labels[table.ids[w]] if w in table.ids else w for w in self._words]
        self._labels = ["type", *(label for _ in axioms for label in labels)]

    def judge(
        self, which: np.ndarray, facts: np.ndarray, holds: np.ndarray, claims: np.ndarray
    ) -> Alone:
        """Judge each card's claim.

        Args:
          which: i32[n], the card's set of rules.
          facts: i32[n, K, 3]; holds: i8[n, K], 1 stated, -1 denied, 0 no fact.
          claims: i32[n, 3].
        """
        n, k = holds.shape
        if not n:
            return Alone.nothing()
        width = 2 * (k + 1)
        chunk = max(1, _PLACES // width)
        return Alone.joined(
            [
                self._judge(which[at], facts[at], holds[at], claims[at], chunk * width)
                for at in (slice(start, start + chunk) for start in range(0, n, chunk))
            ]
        )

    def _judge(
        self, which: np.ndarray, facts: np.ndarray, holds: np.ndarray, claims: np.ndarray, room: int
    ) -> Alone:
        n, k = holds.shape
        everything = np.concatenate([facts, claims[:, None]], axis=1)  # [n, k + 1, 3]
        things = np.concatenate([everything[:, :, 0], everything[:, :, 2]], axis=1)  # [n, 2k + 2]
        # A name's place is where its card names it first; a card's places lie side by side.
        first = (things[:, :, None] == things[:, None, :]).argmax(axis=2)
        base = len(self._shared)
        places = base + np.arange(n)[:, None] * things.shape[1] + first
        own = np.maximum(things, 0).ravel()
        copy = 1 + which[:, None] * len(self._words)
        predicate = copy + self._number[everything[:, :, 1]]
        is_type = everything[:, :, 1] == self._type
        predicate[is_type] = 0
        thing = np.where(is_type, copy + self._number[everything[:, :, 2]], places[:, k + 1 :])
        rows = np.stack([places[:, : k + 1], predicate, thing], axis=2).astype(np.int32)
        if n * things.shape[1] <= _FEW_PLACES:
            room = _FEW_PLACES
        compiled = self._compile(rows, holds, own, room)
        batch = np.zeros((padded(n), 3), np.int32)
        batch[:n] = rows[:, k]
        verdict, proof = (
            np.asarray(x)[:n] for x in judge(compiled.lookup, compiled.rows, jnp.asarray(batch))
        )
        clash = self._clashes(compiled, proof[:, 1], own)
        names = np.array([_place(self.names, name) for name in compiled.names] or [-1], np.int32)
        rule = np.where(proof[:, 0] >= 0, names[proof[:, 0]], -1)
        stated = ((facts == claims[:, None]).all(axis=2) & (holds == 1)).any(axis=1)
        return Alone(verdict, rule, clash, stated)

    def _compile(self, rows: np.ndarray, holds: np.ndarray, own: np.ndarray, room: int) -> Compiled:
        """The oracle of a graph that is made of cards."""
        base, k = len(self._shared), holds.shape[1]
        unnamed = [""] * (room if room >= len(own) else len(own))
        rank = np.zeros(base + len(unnamed), np.int32)
        rank[base : base + len(own)] = self.table.rank[own]
        graph = Graph([*self._shared, *unnamed], sorted_unique(rows[:, :k][holds == 1]), rank)
        is_name = np.ones(len(rank), bool)
        is_name[base : base + len(own)] = self.table.is_name[own]
        graph.__dict__.update(ids=self._ids, labels=[*self._labels, *unnamed], is_name=is_name)

        def allowed(rule: Constraint) -> np.ndarray:
            column = np.zeros(len(rank), bool)
            column[base : base + len(own)] = allowed_terms(self.table, rule)[own]
            return column

        claims = rows[:, k]
        claimed = {self._shared[c] for c in np.unique(claims[claims[:, 1] == 0, 2])}
        cards = Cards(rows[:, :k][holds == -1], allowed, frozenset(claimed), room // 2)
        return compile_oracle(graph, self._rules, spare=0, cards=cards)

    def _clashes(self, compiled: Compiled, places: np.ndarray, own: np.ndarray) -> np.ndarray:
        """i32[n, 3]: the triples at these places, see `Alone`."""
        if not len(compiled.triples):
            return np.full((len(places), 3), -1, np.int32)
        base = len(self._shared)
        word = np.array([self.table.ids.get(word, -1) for word in self._words] or [-1], np.int32)
        triples = compiled.triples[places]
        saying = np.zeros(len(places), np.int32)
        for number in np.unique(triples[:, 1]).tolist():
            name = compiled.pseudo.get(number) or self._labels[number]
            saying[triples[:, 1] == number] = _place(self.sayings, name)

        def in_table(ids: np.ndarray) -> np.ndarray:
            shared = word[(ids - 1) % max(1, len(self._words))]
            return np.where(ids < base, shared, own[np.clip(ids - base, 0, len(own) - 1)])

        found = np.stack([in_table(triples[:, 0]), saying, in_table(triples[:, 2])], axis=1)
        return np.where(places[:, None] >= 0, found, -1).astype(np.int32)

    def kinds(self, found: Alone) -> list[str]:
        """Each card's kind, see `Card`."""
        # Where no rule is broken, at -1, the last of these stands until the next lines.
        kinds = np.array([*map(contradiction, self.names), ""], object)[found.rule]
        kinds[found.verdict == Verdict.UNKNOWN] = "U_absent"
        entailed = found.verdict == Verdict.ENTAILED
        kinds[entailed] = np.where(found.stated[entailed], "E_stated", "E_inferred")
        return kinds.tolist()

    def proofs(self, found: Alone) -> list[str]:
        """Each card's proof in one line."""
        labels = self.table.labels
        said = [
            f"{labels[s]} | {self.sayings[saying]} | {labels[o]}" if s >= 0 else ""
            for s, saying, o in found.clash.tolist()
        ]
        for i in np.flatnonzero(found.verdict == Verdict.CONTRADICTORY).tolist():
            clash = f"; clashes with: {said[i]}" if said[i] else ""
            said[i] = self.names[found.rule[i]] + clash
        return said


def contradiction(constraint: str) -> str:
    """The kind of card that breaks the constraint of that name, such as "C_functional"."""
    kind = constraint.split("(")[0]
    return "C_" + _KINDS.get(kind, kind)


def _place(entries: list[str], entry: str) -> int:
    if entry not in entries:
        entries.append(entry)
    return entries.index(entry)


def _copy(number: int, iri: str) -> str:
    """The copy of a predicate or class that one set of rules speaks of; its last segment stays."""
    return f"{number}#{iri}"


def _vocabulary(rules: Constraints) -> set[str]:
    """Predicates and classes that the rules speak of."""
    found = {*rules.symmetric}.union(*rules.inverse, *rules.subclass)
    for rule in rules.rules:
        found.add(rule.predicate)
        if rule.kind in ("class", "disjoint", "less_than"):
            found.update(rule.value)
    return found


def _side_by_side(rule_sets: Sequence[Constraints]) -> Constraints:
    """All sets of rules at once, each over its own copies of predicates and classes."""

    def pair(i: int, names: tuple[str, str]) -> tuple[str, str]:
        return _copy(i, names[0]), _copy(i, names[1])

    rules = []
    for i, one in enumerate(rule_sets):
        for rule in one.rules:
            value = rule.value
            if rule.kind in ("class", "disjoint", "less_than"):
                value = tuple(_copy(i, name) for name in value)
            rules.append(replace(rule, predicate=_copy(i, rule.predicate), value=value))
    return Constraints(
        tuple(rules),
        frozenset(_copy(i, p) for i, one in enumerate(rule_sets) for p in one.symmetric),
        frozenset(pair(i, both) for i, one in enumerate(rule_sets) for both in one.inverse),
        frozenset(pair(i, both) for i, one in enumerate(rule_sets) for both in one.subclass),
    )


def judge_cards(
    cards: Sequence[Card], constraints: Constraints, oracle: Oracle | None = None
) -> list[Verdict]:
    """Judge every card's claim from its own facts and rules.

    Args:
      cards: with their facts as data (`stated`); a card without any is unknown by itself.
      constraints: the domain's; a card rests on those that its `axioms` name.
      oracle: where the card alone says unknown, what its graph says.
    """
    if not cards:
        return []
    texts = [
        triple for card in cards for triple in (*(fact[:3] for fact in card.stated), card.claim)
    ]
    table = Graph.from_triples([*texts, (TYPE, TYPE, TYPE)])
    ids = np.array([[table.ids[canonical(t)] for t in triple] for triple in texts], np.int32)
    axioms = sorted({card.axioms for card in cards})
    number = {names: i for i, names in enumerate(axioms)}
    used = set(ids[:, 1].tolist()) | set(ids[ids[:, 1] == table.ids[TYPE], 2].tolist())
    alone = AloneJudge(table, constraints, axioms, used)
    starts = np.cumsum([0, *(len(card.stated) + 1 for card in cards)])
    verdicts = np.full(len(cards), int(Verdict.UNKNOWN))
    by_length: dict[int, list[int]] = {}
    for i, card in enumerate(cards):
        by_length.setdefault(len(card.stated), []).append(i)
    for k, members in by_length.items():
        rows = np.stack([ids[starts[i] : starts[i] + k + 1] for i in members])
        holds = np.array(
            [[1 if s.holds else -1 for s in cards[i].stated] for i in members], np.int8
        )
        which = np.array([number[cards[i].axioms] for i in members], np.int32)
        if k:
            verdicts[members] = alone.judge(which, rows[:, :k], holds, rows[:, k]).verdict
    if oracle is not None:
        silent = np.flatnonzero(verdicts == Verdict.UNKNOWN).tolist()
        if silent:
            verdicts[silent] = oracle.judge([cards[i].claim for i in silent]).verdict
    return [Verdict(verdict) for verdict in verdicts]
