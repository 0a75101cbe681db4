"""Cards by themselves: each by its own facts and its own rules, however many are judged at once."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.agreement import X
from epistemic.cards import Card, Claim, Statement
from epistemic.logic.alone import AloneJudge, CardArrays, contradiction, judge_cards
from epistemic.logic.constraints import Constraints
from epistemic.logic.graph import TYPE, Graph
from epistemic.logic.kinds import Disjoint, MaxCount
from epistemic.logic.lookup import Verdict

E, C, U = Verdict.ENTAILED, Verdict.CONTRADICTORY, Verdict.UNKNOWN
ONE = "max_count(capital, 1)"
APART = "disjoint(City, River)"
CONSTRAINTS = Constraints(
    tuple(sorted([MaxCount(X + "capital", ("1",)), Disjoint.of(X + "City", X + "River")]))
)


def terms(text: str) -> tuple[str, str, str]:
    s, p, o = text.split()
    return X + s, TYPE if p == "a" else X + p, X + o


def card(facts: list[str], claim: str, *axioms: str) -> Card:
    stated = tuple(
        Statement(*terms(fact.removeprefix("not ")), not fact.startswith("not ")) for fact in facts
    )
    return Card("id", (), "?", "YES", "E", Claim(*terms(claim)), stated=stated, axioms=axioms)


CARDS = [
    (card(["fr capital paris"], "fr capital paris"), E),
    (card(["fr capital paris"], "fr capital lyon", ONE), C),
    (card(["fr capital paris"], "fr capital lyon"), U),  # no rule says that there is one
    (card(["de capital bonn"], "fr capital lyon", ONE), U),  # of another card's France
    (card(["not fr capital lyon"], "fr capital lyon"), C),
    (card(["x a City"], "x a River", APART), C),
    (card(["x a City"], "x a River", ONE), U),
    (card([], "fr capital paris", ONE), U),
    (card(["fr capital paris", "de capital bonn"], "de capital paris", ONE), C),
]


def test_every_card_by_its_own_facts_and_rules_alone():
    cards, verdicts = zip(*CARDS, strict=True)
    assert judge_cards(cards, CONSTRAINTS) == list(verdicts)
    assert [judge_cards([one], CONSTRAINTS)[0] for one in cards] == list(verdicts)


def test_kinds_and_proofs_name_what_was_broken():
    table = Graph.from_triples(
        [terms("fr capital paris"), terms("fr capital lyon"), (TYPE, TYPE, TYPE)]
    )

    def ids(text: str) -> list[int]:
        return [table.ids[term] for term in terms(text)]

    judge = AloneJudge(table, CONSTRAINTS, [(), (ONE,)], [table.ids[X + "capital"]])
    paris, lyon = ids("fr capital paris"), ids("fr capital lyon")
    cards = CardArrays(
        np.array([[paris], [paris], [paris], [paris]], np.int32),
        np.array([[1], [1], [1], [-1]], np.int8),
        np.array([paris, lyon, lyon, paris], np.int32),
    )
    alone = judge.judge(np.array([0, 0, 1, 0]), cards)
    assert alone.verdict.tolist() == [E, U, C, C]
    assert judge.kinds(alone) == ["E_stated", "U_absent", "C_functional", "C_negated"]
    assert judge.proofs(alone) == [
        "fr | capital | paris",
        "",
        "max_count(capital, 1); clashes with: fr | capital | paris",
        "negative(capital); clashes with: fr | not capital | paris",
    ]
    again = judge.judge(np.array([1]), cards.at(np.array([2])))
    assert judge.proofs(again) == [judge.proofs(alone)[2]]


@pytest.mark.parametrize(
    "constraint, kind",
    [(ONE, "C_functional"), ("negative(p)", "C_negated"), ("less_than(p, q)", "C_less_than"),
     ("target(City)", "C_target")],
)  # fmt: skip
def test_what_a_contradiction_is_called(constraint: str, kind: str):
    assert contradiction(constraint) == kind
