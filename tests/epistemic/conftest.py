"""A deck small enough to read, and systems that answer from a table."""

import itertools

import numpy as np
import pytest

from epistemic.cards import Card, Claim, Statement
from epistemic.decks.sources import Sources
from epistemic.domain import Domain
from epistemic.logic.compilation import with_vocabulary
from epistemic.logic.constraints import Constraints
from epistemic.logic.graph import TYPE, Graph
from epistemic.logic.kinds import (
    Disjoint,
    InverseFunctional,
    Irreflexive,
    LessThan,
    MaxCount,
    MinInclusive,
)
from epistemic.logic.terms import literal
from epistemic.predicates import PredicateSettings, in_words
from evidence.answers import Answer

CAPITALS = {"France": "Paris", "Spain": "Madrid", "Italy": "Rome", "Peru": "Lima", "Chad": "Kofu"}


def handmade_deck():
    """Fifteen cards: each of five countries with its capital (E), another's (C), and none (U)."""
    cards = []
    others = dict(zip(CAPITALS, [*list(CAPITALS.values())[1:], "Paris"], strict=True))
    number = itertools.count(1)
    for country, capital in CAPITALS.items():
        rule = "A country has one capital."
        fact = Statement(country, "capital", capital)
        for label, gold, asked, stated in (
            ("E", "YES", capital, fact),
            ("C", "NO", others[country], fact),
            ("U", "UNKNOWN", capital, Statement(country, "capital", others[country], False)),
        ):
            verb = "is" if stated.holds else "is not"
            cards.append(
                Card(
                    id=f"CARD_{label}_{next(number):06d}",
                    facts=(f"{stated.obj} {verb} the capital of {country}.",),
                    question=f"Is {asked} the capital of {country}?",
                    gold=gold,
                    label=label,
                    claim=Claim(country, "capital", asked),
                    kind={"E": "E_stated", "C": "C_functional", "U": "U_absent"}[label],
                    proof=f"{stated.obj} {verb} stated",
                    rules=(rule,),
                    stated=(stated,),
                )
            )
    return cards


class Scripted:
    """Answers from a function of the query; counts what it was asked."""

    def __init__(self, answer):
        self._answer = answer
        self.asked = []

    def answer(self, queries):
        for query in queries:
            self.asked.append(query.id)
            yield self._answer(query)


@pytest.fixture
def scripted():
    return Scripted


@pytest.fixture
def deck():
    return handmade_deck()


@pytest.fixture
def gold_system(deck):
    golds = {card.id: Answer[card.gold] for card in deck}
    return Scripted(lambda query: golds[query.id])


# ---- a domain small enough to count by hand -----------------------------------------------------

STAFF = 24


def small_domain() -> Domain:
    """Twenty-four people: one boss and one office each (four of them, and six), two badges of
    their own, the next one in a ring whom they know, an age of 18 or more, a desk number below 18
    or not, a year of joining before one of leaving; every other one bears no class."""
    rows = [(f"o{i}", TYPE, "Office") for i in range(6)]
    rows += [(f"c{i}", TYPE, "Office") for i in range(3)]
    for i in range(STAFF):
        rows += [
            (f"p{i}", "boss", f"b{i % 4}"),
            (f"p{i}", "office", f"o{i % 6}"),
            (f"p{i}", "badge", f"k{2 * i}"),
            (f"p{i}", "badge", f"k{2 * i + 1}"),
            (f"p{i}", "knows", f"p{(i + 1) % STAFF}"),
            (f"p{i}", "age", literal(20 + i)),
            (f"p{i}", "desk", literal(10 + i)),
            (f"p{i}", "joined", literal(1950 + i)),
            (f"p{i}", "left", literal(1955 + i)),
            (f"k{2 * i}", "colour", f"c{i % 3}"),
            (f"k{2 * i + 1}", "colour", f"c{(i + 1) % 3}"),
        ]
        if i % 2:
            rows.append((f"p{i}", TYPE, "Person"))
    constraints = Constraints(
        (
            Disjoint(X + "Office", (X + "Person",)),
            InverseFunctional(X + "badge"),
            Irreflexive(X + "knows"),
            LessThan(X + "joined", (X + "left",)),
            MaxCount(X + "boss", ("1",)),
            MaxCount(X + "age", ("1",)),
            MinInclusive(X + "age", (literal(18),)),
        ),
        symmetric=frozenset({X + "knows"}),
    )
    triples = ((_term(s), _term(p), _term(o)) for s, p, o in rows)
    graph = with_vocabulary(Graph.from_triples(triples), constraints)
    said = {
        "knows": PredicateSettings(
            iri=X + "knows",
            complete=True,
            questions=("Does {s} know {o}?",),
            facts=("{s} knows {o}.",),
            denials=("{s} does not know {o}.",),
        ),
        "age": PredicateSettings(iri=X + "age", unit="years"),
    }
    names = ("boss", "office", "badge", "knows", "age", "desk", "joined", "left", "colour")
    predicates = {
        name: in_words(name, said.get(name, PredicateSettings(iri=X + name)), constraints)
        for name in names
    }
    return Domain("staff", graph, constraints, predicates)


X = "http://x/"


def _term(text: str) -> str:
    return text if text == TYPE or text.startswith('"') else X + text


@pytest.fixture(scope="session")
def staff():
    return small_domain()


@pytest.fixture(scope="session")
def staff_sources(staff):
    """Systems know no boss, age or class of the first eight people, and not whose the last twelve
    badges are."""
    graph = staff.graph
    people = [graph.ids[f"{X}p{i}"] for i in range(8)]
    badges = [graph.ids[f"{X}k{i}"] for i in range(36, 48)]
    s, p, o = graph.triples.T
    withheld = [graph.ids[X + "boss"], graph.ids[X + "age"], graph.ids[TYPE]]
    hidden = np.isin(p, withheld) & np.isin(s, people)
    hidden |= (p == graph.ids[X + "badge"]) & np.isin(o, badges)
    return Sources.of(staff, graph.without(hidden))
