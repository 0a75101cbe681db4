"""The leakage audit must pass our decks and refuse leaky ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from epistemic.cards import Card, Claim, read_cards
from epistemic.decks.deck import CardSettings, make_cards
from epistemic.decks.leakage import GOLDS, SurfaceClassifier, audit, masked, published_rule
from epistemic.domain import built_in, find, load_domain


@pytest.fixture(scope="module", params=["countries", "rivers"])
def cards(request):
    return make_cards(load_domain(built_in(request.param)), CardSettings(per_type=100)).cards


def test_our_decks_do_not_leak(cards):
    found = audit(cards)
    assert found.chance == pytest.approx(1 / 3)
    assert not found.refused
    assert set(found.accuracy) == {"published_rule", "surface", "counts", "raw", "position"}


def test_above_the_limit_within_the_noise_of_few_cards_is_said():
    found = audit(read_cards(find("deck_rivers.jsonl")))
    above = max(accuracy.value for accuracy in found.accuracy.values())
    assert above > found.allowed
    assert found.undecided and not found.refused


@pytest.mark.full
@pytest.mark.parametrize("name, most", [("countries", 600), ("rivers", 180)])
def test_large_decks_do_not_leak_either(name, most):
    deck = make_cards(load_domain(built_in(name)), CardSettings(per_type=most, seed=5))
    assert not audit(deck.cards).refused


LEAKS = {
    "one fact more": lambda c: replace(c, facts=(*c.facts, c.facts[0])) if c.gold == "NO" else c,
    "a denial": lambda c: replace(
        c, facts=tuple(f.replace(".", " does not.") if c.gold == "NO" else f for f in c.facts)
    ),
    "a word in the question": lambda c: replace(
        c, question=c.question.replace("?", " surely?" if c.gold == "YES" else " really?")
    ),
    "the subject named more often": lambda c: replace(
        c, facts=tuple(f"{f} {c.question}" if c.gold == "UNKNOWN" else f for f in c.facts)
    ),
}


PLACE = {"NO": 0, "UNKNOWN": 1, "YES": 2}


def _sorted_by_label(card: Card) -> Card:
    """The facts in order where the answer is YES, the other way round where it is NO."""
    if card.gold == "UNKNOWN":
        return card
    order = sorted(range(len(card.facts)), key=card.facts.__getitem__, reverse=card.gold == "NO")
    return _with_facts(card, order)


def _subject_first(card: Card) -> Card:
    """A fact that names the claim's subject stands first where the answer is YES, else last."""
    order = sorted(
        range(len(card.facts)),
        key=lambda i: card.claim.subj not in (card.stated[i].subj, card.stated[i].obj),
        reverse=card.gold != "YES",
    )
    return _with_facts(card, order)


def _with_facts(card: Card, order: list[int]) -> Card:
    facts, stated = (tuple(part[i] for i in order) for part in (card.facts, card.stated))
    return replace(card, facts=facts, stated=stated)


def _renamed(card: Card) -> Card:
    """The subject's name begins with A, B or C by label."""
    name = f"http://x/{'ABC'[PLACE[card.gold]]}{card.claim.subj[-6:]}"
    return replace(card, claim=card.claim._replace(subj=name))


LEAKS |= {
    "the order of facts": _sorted_by_label,
    "the place of the subject's fact": _subject_first,
    "the last sign of a fact": lambda c: replace(
        c, facts=tuple(fact[:-1] + "!.."[PLACE[c.gold]] * (1 + PLACE[c.gold]) for fact in c.facts)
    ),
    "the wording of rules": lambda c: replace(
        c, rules=("Mind what is known.", "Know what is minded.", "Rules hold.")[PLACE[c.gold] :]
    ),
    "the order of rules": lambda c: replace(
        c, rules=("One rule.", "Other rules.")[:: -1 if c.gold == "YES" else 1]
    ),
    "odd spaces": lambda c: replace(
        c, question=c.question.replace(" ", "  ", 1) if c.gold == "YES" else c.question
    ),
    "a space that doesn't break": lambda c: replace(
        c, facts=tuple(f.replace(" ", "\u00a0", 1) if c.gold == "NO" else f for f in c.facts)
    ),
    "the subject's initial": _renamed,
}


def test_the_order_of_the_deck_is_read(cards):
    by_label = sorted(cards, key=lambda card: card.gold)
    in_turn = [
        card for three in zip(*np.split(np.array(by_label), 3), strict=True) for card in three
    ]
    for leaky in (by_label, in_turn):
        found = audit(leaky)
        assert found.refused and found.accuracy["position"].value > 0.9
        assert found.accuracy["surface"].value < found.allowed


@pytest.mark.parametrize("leak", LEAKS)
def test_a_leaky_deck_is_refused(cards, leak):
    assert audit([LEAKS[leak](card) for card in cards]).refused


def test_a_deck_of_the_published_kind_is_refused():
    """One true fact: YES; a 'DOES NOT': NO; someone else's fact: UNKNOWN."""
    made = []
    for i in range(60):
        claim = Claim(f"http://r/{i}", "http://r/mouth", f"http://r/sea{i % 7}")
        ask = f"Is Lake L{i % 7} the mouth of River R{i}?"
        fact = f"River R{i} mouth Lake L{i % 7}"
        other = f"River R{i} mouth Lake L{(i + 1) % 7}"
        made += [
            Card(f"E{i}", (fact,), ask, "YES", "E", claim),
            Card(
                f"C{i}",
                (other, f"River R{i} DOES NOT have mouth: Lake L{i % 7}"),
                ask,
                "NO",
                "C",
                claim,
            ),
            Card(f"U{i}", (other,), ask, "UNKNOWN", "U", claim),
        ]
    found = audit(made)
    assert found.refused
    assert found.accuracy["published_rule"].value > 0.95
    assert [published_rule(card) for card in made[:3]] == ["YES", "NO", "UNKNOWN"]


def test_masking_hides_every_name_and_keeps_the_wording():
    one = masked("The Democratic Republic of the Congo does not have 1,610 km as its length.")
    other = masked("The Democratic Republic of the Niger does not have 2,000 km as its length.")
    assert one == other == "the X of the X does not have X km as its length"


def test_probabilities_are_in_the_order_of_golds(cards):
    leaky = [LEAKS["one fact more"](card) for card in cards]
    chances = SurfaceClassifier().fit(leaky).predict_proba(leaky)
    assert chances.shape == (len(leaky), 3)
    np.testing.assert_allclose(chances.sum(axis=1), 1)
    says_no = chances.argmax(axis=1) == GOLDS.index("NO")
    assert np.mean(says_no == np.array([card.gold == "NO" for card in leaky])) > 0.95
