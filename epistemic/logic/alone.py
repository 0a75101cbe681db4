"""Cards by themselves: every claim judged from its own card's facts and rules, and nothing else.

Thousands of cards are judged at once, in one graph in which no two share a term: each card has a
place of its own for each of its names. Cards differ in their rules too, so each set of rules has
copies of the predicates and classes that it speaks of.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from epistemic.cards import Card
from epistemic.logic.compilation import Compiled, compile_oracle
from epistemic.logic.constraints import Constraints
from epistemic.logic.graph import TYPE, Graph, sorted_unique
from epistemic.logic.kinds import KINDS
from epistemic.logic.lookup import Verdict, judge, padded
from epistemic.logic.oracle import Oracle
from epistemic.logic.tables import CardsSay, ValueTest
from epistemic.logic.terms import canonical

# So many places for names are judged at a time, and so many where there are few.
_PLACES, _FEW_PLACES = 98_304, 12_288


class CardArrays(NamedTuple):
    """Cards as integers: what their facts say and what they claim.

    Attributes:
      facts: i32[n, K, 3]; -1 where there is no fact.
      holds: i8[n, K], 1 stated, -1 denied, 0 no fact.
      claims: i32[n, 3].
    """

    facts: np.ndarray
    holds: np.ndarray
    claims: np.ndarray

    def at(self, rows: np.ndarray | slice) -> CardArrays:
        """The cards at these places."""
        return CardArrays(self.facts[rows], self.holds[rows], self.claims[rows])

    @staticmethod
    def joined(parts: Sequence[CardArrays]) -> CardArrays:
        """All of these, one after the other."""
        return CardArrays(*map(np.concatenate, zip(*parts, strict=True)))


@dataclass(frozen=True)
class Alone:
    """What cards say by themselves.

    Attributes:
      verdict: i8[n] of `Verdict`.
      rule: i32[n], the broken constraint's place in `AloneJudge.names`, or -1.
      clash: i32[n, 3], the triple that entails or clashes: subject and object are terms of the
        table, the middle is a place in `AloneJudge.relations`; -1 where there is none.
      stated: bool[n], whether a fact says the claim itself.
    """

    verdict: np.ndarray
    rule: np.ndarray
    clash: np.ndarray
    stated: np.ndarray

    def at(self, rows: np.ndarray) -> Alone:
        """What the cards at these places say."""
        return Alone(self.verdict[rows], self.rule[rows], self.clash[rows], self.stated[rows])

    @staticmethod
    def joined(parts: Sequence[Alone]) -> Alone:
        """All of these, one after the other."""
        return Alone(
            np.concatenate([part.verdict for part in parts]),
            np.concatenate([part.rule for part in parts]),
            np.concatenate([part.clash for part in parts]),
            np.concatenate([part.stated for part in parts]),
        )

    @staticmethod
    def nothing() -> Alone:
        """What no cards say."""
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

    Attributes:
      names: of the constraints that were broken so far, by number.
      relations: names of the predicates that clashing triples had so far, by number.
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
        self.relations: list[str] = []
        rule_sets = [constraints.only(names) for names in axioms]
        spoken_of = {table.terms[i] for i in used}.union(*(one.vocabulary for one in rule_sets))
        self._words = sorted(spoken_of - {TYPE})
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

    def judge(self, which: np.ndarray, cards: CardArrays) -> Alone:
        """Judge each card's claim.

        Args:
          which: i32[n], the card's set of rules.
          cards: as integers.
        """
        n, k = cards.holds.shape
        if not n:
            return Alone.nothing()
        width = 2 * (k + 1)
        chunk = max(1, _PLACES // width)
        return Alone.joined(
            [
                self._judge(which[at], cards.at(at), chunk * width)
                for at in (slice(start, start + chunk) for start in range(0, n, chunk))
            ]
        )

    def _judge(self, which: np.ndarray, cards: CardArrays, room: int) -> Alone:
        n, k = cards.holds.shape
        rows, own = self._placed(which, cards)
        room = room if len(own) > _FEW_PLACES else _FEW_PLACES
        compiled = self._compile(rows, cards.holds, own, room)
        batch = np.zeros((padded(n), 3), np.int32)
        batch[:n] = rows[:, k]
        verdict, proof = (
            np.asarray(x)[:n] for x in judge(compiled.lookup, compiled.rows, jnp.asarray(batch))
        )
        clash = self._clashes(compiled, proof[:, 1], own)
        names = np.array([_place(self.names, name) for name in compiled.names] or [-1], np.int32)
        rule = np.where(proof[:, 0] >= 0, names[proof[:, 0]], -1)
        is_claim = (cards.facts == cards.claims[:, None]).all(axis=2)
        return Alone(verdict, rule, clash, (is_claim & (cards.holds == 1)).any(axis=1))

    def _placed(self, which: np.ndarray, cards: CardArrays) -> tuple[np.ndarray, np.ndarray]:
        """Facts and claims in a graph where each card has places of its own for its names.

        Returns:
          i32[n, K + 1, 3] of the facts and, last, the claim; and i32[places], the term of the
          table that stands at each place.
        """
        n, k = cards.holds.shape
        triples = np.concatenate([cards.facts, cards.claims[:, None]], axis=1)  # [n, k + 1, 3]
        names = np.concatenate([triples[:, :, 0], triples[:, :, 2]], axis=1)  # [n, 2k + 2]
        # A name's place is where its card names it first; a card's places lie side by side.
        first = (names[:, :, None] == names[:, None, :]).argmax(axis=2)
        places = len(self._shared) + np.arange(n)[:, None] * names.shape[1] + first
        copy = 1 + which[:, None] * len(self._words)
        predicate = copy + self._number[triples[:, :, 1]]
        is_type = triples[:, :, 1] == self._type
        predicate[is_type] = 0
        thing = np.where(is_type, copy + self._number[triples[:, :, 2]], places[:, k + 1 :])
        rows = np.stack([places[:, : k + 1], predicate, thing], axis=2).astype(np.int32)
        return rows, np.maximum(names, 0).ravel()

    def _compile(self, rows: np.ndarray, holds: np.ndarray, own: np.ndarray, room: int) -> Compiled:
        """The oracle of a graph that is made of cards.

        Args:
          rows, own: see `_placed`.
          holds: i8[n, K], see `CardArrays`.
          room: places for names at least, so that sizes don't vary.
        """
        base, k = len(self._shared), holds.shape[1]
        unnamed = [""] * max(room, len(own))
        rank = np.zeros(base + len(unnamed), np.int32)
        rank[base : base + len(own)] = self.table.rank[own]
        is_name = np.ones(len(rank), bool)
        is_name[base : base + len(own)] = self.table.is_name[own]
        labels = [*self._labels, *unnamed]
        graph = Graph(
            terms=[*self._shared, *unnamed],
            ids=self._ids,
            triples=sorted_unique(rows[:, :k][holds == 1]),
            is_name=is_name,
            rank=rank,
            label_source=lambda: labels,
        )

        def allowed(test: ValueTest) -> np.ndarray:
            column = np.zeros(len(rank), bool)
            column[base : base + len(own)] = test.allowed(self.table)[own]
            return column

        claims = rows[:, k]
        claimed = {self._shared[c] for c in np.unique(claims[claims[:, 1] == 0, 2])}
        cards = CardsSay(rows[:, :k][holds == -1], allowed, frozenset(claimed), room // 2)
        return compile_oracle(graph, self._rules, spare=0, cards=cards)

    def _clashes(self, compiled: Compiled, places: np.ndarray, own: np.ndarray) -> np.ndarray:
        """i32[n, 3]: the triples at these places, see `Alone`."""
        if not len(compiled.triples):
            return np.full((len(places), 3), -1, np.int32)
        base = len(self._shared)
        word = np.array([self.table.ids.get(word, -1) for word in self._words] or [-1], np.int32)
        triples = compiled.triples[places]
        relation = np.zeros(len(places), np.int32)
        for number in np.unique(triples[:, 1]).tolist():
            name = compiled.pseudo.get(number) or self._labels[number]
            relation[triples[:, 1] == number] = _place(self.relations, name)

        def in_table(ids: np.ndarray) -> np.ndarray:
            shared = word[(ids - 1) % max(1, len(self._words))]
            return np.where(ids < base, shared, own[np.clip(ids - base, 0, len(own) - 1)])

        clashes = np.stack([in_table(triples[:, 0]), relation, in_table(triples[:, 2])], axis=1)
        return np.where(places[:, None] >= 0, clashes, -1).astype(np.int32)

    def kinds(self, alone: Alone) -> list[str]:
        """Each card's kind, see `Card`."""
        # Where no rule is broken, at -1, the last of these stands until the next lines.
        kinds = np.array([*map(contradiction, self.names), ""], object)[alone.rule]
        kinds[alone.verdict == Verdict.UNKNOWN] = "U_absent"
        entailed = alone.verdict == Verdict.ENTAILED
        kinds[entailed] = np.where(alone.stated[entailed], "E_stated", "E_inferred")
        return kinds.tolist()

    def proofs(self, alone: Alone) -> list[str]:
        """Each card's proof in one line."""
        labels = self.table.labels
        proofs = [
            f"{labels[s]} | {self.relations[relation]} | {labels[o]}" if s >= 0 else ""
            for s, relation, o in alone.clash.tolist()
        ]
        for i in np.flatnonzero(alone.verdict == Verdict.CONTRADICTORY).tolist():
            clash = f"; clashes with: {proofs[i]}" if proofs[i] else ""
            proofs[i] = self.names[alone.rule[i]] + clash
        return proofs


def contradiction(constraint: str) -> str:
    """The kind of card that breaks the constraint of that name, such as "C_functional"."""
    name = constraint.split("(")[0]
    kind = KINDS.get(name)
    return f"C_{(kind and kind.card_kind) or name}"


def _place(entries: list[str], entry: str) -> int:
    if entry not in entries:
        entries.append(entry)
    return entries.index(entry)


def _copy(number: int, iri: str) -> str:
    """The copy of a predicate or class that one set of rules speaks of; its last segment stays."""
    return f"{number}#{iri}"


def _side_by_side(rule_sets: Sequence[Constraints]) -> Constraints:
    """All sets of rules at once, each over its own copies of predicates and classes."""

    def pair(i: int, names: tuple[str, str]) -> tuple[str, str]:
        return _copy(i, names[0]), _copy(i, names[1])

    return Constraints(
        tuple(
            rule.renamed(partial(_copy, i)) for i, one in enumerate(rule_sets) for rule in one.rules
        ),
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
    verdicts = np.full(len(cards), int(Verdict.UNKNOWN))
    for members, arrays in _by_length(cards, ids):
        which = np.array([number[cards[i].axioms] for i in members], np.int32)
        verdicts[members] = alone.judge(which, arrays).verdict
    if oracle is not None:
        silent = np.flatnonzero(verdicts == Verdict.UNKNOWN).tolist()
        if silent:
            verdicts[silent] = oracle.judge([cards[i].claim for i in silent]).verdict
    return [Verdict(verdict) for verdict in verdicts]


def _by_length(cards: Sequence[Card], ids: np.ndarray) -> Iterator[tuple[list[int], CardArrays]]:
    """Cards with equally many facts together, those without any left out.

    Args:
      cards: with their facts as data.
      ids: i32[T, 3], each card's facts and then its claim, one card after the other.

    Yields:
      Places in `cards`, and those cards as integers.
    """
    starts = np.cumsum([0, *(len(card.stated) + 1 for card in cards)])
    by_length: dict[int, list[int]] = {}
    for i, card in enumerate(cards):
        by_length.setdefault(len(card.stated), []).append(i)
    for k, members in by_length.items():
        if k:
            rows = np.stack([ids[starts[i] : starts[i] + k + 1] for i in members])
            holds = [[1 if fact.holds else -1 for fact in cards[i].stated] for i in members]
            yield members, CardArrays(rows[:, :k], np.array(holds, np.int8), rows[:, k])
