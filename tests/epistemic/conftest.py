"""A deck small enough to read, and systems that answer from a table."""

import itertools

import pytest

from epistemic.cards import Card, Claim, Statement
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
