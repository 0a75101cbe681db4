"""Drawing: proposals that layouts allow, proofs, quotas and rounds."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from epistemic.decks.drawing import LABELS, Batch, Drawer, Selection, Streams, _Stock, shares
from epistemic.decks.families import cells_of, graph_cells
from epistemic.decks.proposals import Chosen, Proposer
from epistemic.decks.proving import Cards, Job, arranged, true_and_known, withheld
from epistemic.logic.alone import Alone, CardArrays
from epistemic.logic.draws import Draws
from epistemic.logic.graph import LABEL, Graph
from epistemic.logic.lookup import Verdict

X = "http://x/"
PER_TYPE = 40


def all_cells(sources, draws, names=None):
    return [cell for one in sources.predicates(names) for cell in cells_of(sources, one, draws)]


def family(sources, name, kind):
    cells = all_cells(sources, Draws(0), [name])
    return next(cell for cell in cells if kind in (cell.family, cell.sort))


@pytest.fixture(scope="module")
def drawn(staff_sources):
    streams = Streams.of(3)
    return Drawer(staff_sources, streams).draw(all_cells(staff_sources, streams.names), PER_TYPE)


def said(sources, *cards):
    """Cards of texts, such as ["p1 boss b1", "not p2 boss b1", "p1 boss b2"]; the last is asked."""
    size = max(map(len, cards)) - 1
    facts, holds = np.full((len(cards), size, 3), -1), np.zeros((len(cards), size), np.int8)
    claims = np.zeros((len(cards), 3), np.int32)
    for i, card in enumerate(cards):
        for k, text in enumerate(card):
            words = text.removeprefix("not ").split()
            triple = [sources.ids[X + word] for word in words]
            if k == len(card) - 1:
                claims[i] = triple
            else:
                facts[i, k], holds[i, k] = triple, -1 if text.startswith("not ") else 1
    return CardArrays(facts, holds, claims)


def for_one(job, proposals):
    return Cards([job], np.zeros(len(proposals.claims), int), proposals)


# ---- what is drawn ------------------------------------------------------------------------------


def test_labels_are_balanced_in_every_family(drawn):
    counts = Counter()
    for batch in drawn.batches:
        counts[batch.job.cell.name, batch.job.label] += len(batch)
    for label in LABELS:
        assert sum(n for (_, own), n in counts.items() if own == label) == PER_TYPE
    for name in {name for name, _ in counts}:
        assert len({counts[name, label] for label in LABELS}) == 1, name


def test_no_claim_is_asked_twice_and_all_are_marked_as_taken(staff_sources, drawn):
    claims = np.concatenate([batch.said.claims for batch in drawn.batches])
    assert len(np.unique(claims, axis=0)) == len(claims) == 3 * PER_TYPE
    keys = _Stock(staff_sources, drawn.taken).keys(claims)
    assert np.isin(keys, drawn.taken).all() and (np.diff(drawn.taken) > 0).all()


def test_further_cards_ask_what_has_not_been_asked(staff_sources):
    streams = Streams.of(5)
    drawer = Drawer(staff_sources, streams)
    (boss,) = staff_sources.predicates(["boss"])
    first = drawer.draw(cells_of(staff_sources, boss, streams.names), 10)
    more = drawer.draw(graph_cells(staff_sources, boss, streams.names), 4, taken=first.taken)
    asked = [
        set(map(tuple, np.concatenate([b.said.claims for b in part.batches]).tolist()))
        for part in (first, more)
    ]
    assert not asked[0] & asked[1]
    assert len(more.taken) >= len(first.taken) + 12


def test_no_fact_gives_an_open_claim_away(drawn):
    """Of what is unknown no fact says anything; a contradictory claim is never stated, and an
    entailed one is, once, as it is or the other way round."""
    for batch in drawn.batches:
        cell, label = batch.job
        facts, holds, claims = batch.said
        same = (facts == claims[:, None]).all(axis=2)
        if cell.flips >= 0:
            turned = claims[:, ::-1].copy()
            turned[:, 1] = cell.flips
            same |= (facts == turned[:, None]).all(axis=2)
        stated, denied = (same & (holds == 1)).sum(axis=1), (same & (holds == -1)).sum(axis=1)
        assert set(stated) == {1 if label == "E" else 0}, cell.name
        is_denial = label == "C" and cell.family in ("negated", "negated_of")
        assert set(denied) == {1 if is_denial else 0}, cell.name


def test_facts_are_true_of_the_whole_graph(staff_sources, drawn):
    oracle = staff_sources.domain.oracle
    for batch in drawn.batches:
        facts, holds, _ = batch.said
        verdict = oracle.judge_ids(facts.reshape(-1, 3)).verdict.reshape(holds.shape)
        assert (verdict[holds == 1] == Verdict.ENTAILED).all()
        assert (verdict[holds == -1] != Verdict.ENTAILED).all()


def test_the_cards_of_a_family_have_as_many_facts_and_denials(drawn):
    by_family = {}
    for batch in drawn.batches:
        signs = {tuple(sorted(row)) for row in batch.said.holds.tolist()}
        by_family.setdefault(batch.job.cell.name, set()).update(signs)
    assert all(len(signs) == 1 for signs in by_family.values())


def test_the_answer_stands_anywhere(staff_sources):
    """The fact that entails a claim is in every place equally often."""
    cells = [family(staff_sources, "boss", "functional")]
    places = Counter()
    for seed in range(12):
        streams = Streams.of(seed)
        for batch in Drawer(staff_sources, streams).draw(cells, 12).batches:
            if batch.job.label == "E":
                same = (batch.said.facts == batch.said.claims[:, None]).all(axis=2)
                places.update(same.argmax(axis=1).tolist())
    assert places.total() == 144
    # Five places, 28.8 each; four standard deviations are 19.
    assert set(places) == set(range(5)) and max(places.values()) < 48


def test_too_many_cards_are_refused_with_how_many_there_are(staff_sources):
    cells = all_cells(staff_sources, Draws(0), ["type", "boss"])
    message = r"number=900: the graph gives (\d+) of each label \(type 8, boss \d+\); lower it"
    with pytest.raises(ValueError, match=message):
        Drawer(staff_sources, Streams.of(0)).draw(cells, 900, "number")


# ---- quotas -------------------------------------------------------------------------------------


def test_cards_are_spread_over_sorts_and_then_over_cells(staff_sources):
    cell = family(staff_sources, "boss", "functional")
    a, b, c = (replace(cell, sort=sort) for sort in ("one", "one", "two"))
    assert list(shares([a, b, c], 12).values()) == [3, 3, 6]
    assert sum(shares([a, b, c], 7).values()) == 7
    # One card in seven where the usual sort has six.
    seldom = replace(cell, sort="irreflexive")
    assert shares([c, seldom], 14) == {c: 12, seldom: 2}


def test_only_numbers_as_long_for_every_label_are_used(staff, staff_sources):
    """Lengths of claims are 2, 2, 4 digits for E, 2, 4, 4 for C, 4, 2, 2 for U: one of each."""
    age, who = staff_sources.ids[X + "joined"], staff_sources.ids[X + "p0"]
    short, long = (
        staff.graph.triples[staff.graph.triples[:, 1] == staff_sources.ids[X + name], 2][0]
        for name in ("desk", "left")
    )
    cell = family(staff_sources, "joined", "less_than")
    stock = _Stock(staff_sources, np.zeros(0, np.int64))
    for label, lengths in {"E": "ssl", "C": "sll", "U": "lss"}.items():
        claims = np.array([[who, age, short if one == "s" else long] for one in lengths])
        arrays = CardArrays(np.zeros((3, 0, 3), int), np.zeros((3, 0), np.int8), claims)
        stock.add(Batch(Job(cell, label), arrays, Alone.nothing()))
    assert stock.complete(cell) == 2
    rows = {label: own.tolist() for label, own in stock.usable(cell).items()}
    assert rows == {"E": [0, 2], "C": [0, 1], "U": [1, 0]}
    free = replace(cell, matched="")
    assert stock.complete(free) == 0


# ---- proposals ----------------------------------------------------------------------------------


def test_a_proposal_is_what_its_layout_says(staff_sources):
    """Functional, contradictory: s has u, v has o, t something else; s lacks w and t lacks o."""
    cell = family(staff_sources, "boss", "functional")
    facts, holds, claims = Proposer(staff_sources, Draws(1)).propose(cell, "C", 200)
    assert 20 < len(claims) <= 200
    boss, q = staff_sources.ids[X + "boss"], cell.relations["q"].predicate
    assert (facts[:, :5, 1] == [boss, boss, q, boss, boss]).all()
    assert (holds[:, :5] == [1, 1, 1, -1, -1]).all() and (holds[:, 5:] == 0).all()
    s, o = claims[:, 0], claims[:, 2]
    assert (facts[:, 0, 0] == s).all() and (facts[:, 3, 0] == s).all()
    assert (facts[:, 1, 2] == o).all() and (facts[:, 4, 2] == o).all()
    assert (facts[:, 2, 0] == facts[:, 4, 0]).all()
    assert (facts[:, 0, 2] != o).all()


def test_two_things_of_one_name_are_on_no_card(staff, staff_sources):
    labels = [(X + name, LABEL, '"Twin"') for name in ("b0", "b1")]
    labels += [tuple(staff.graph.terms[t] for t in row) for row in staff.graph.triples.tolist()]
    graph = Graph.from_triples(labels)
    domain = replace(staff, graph=graph)
    sources = type(staff_sources).of(domain, graph)
    cell = family(sources, "boss", "functional")
    facts, _, claims = Proposer(sources, Draws(0)).propose(cell, "E", 500)
    twins = [sources.ids[X + name] for name in ("b0", "b1")]
    named = [np.isin(twins, np.append(f[:, [0, 2]], c)) for f, c in zip(facts, claims, strict=True)]
    assert not np.array(named).all(axis=1).any()
    assert np.array(named).any()


def test_what_is_chosen_is_what_cards_speak_of(staff_sources):
    cell = family(staff_sources, "boss", "functional")
    who = staff_sources.ids[X + "p20"]

    def choose(cell, label, size, draws):
        there = np.arange(size) % 2 == 0
        return Chosen({"t": np.full(size, who)}, there)

    facts, _, claims = Proposer(staff_sources, Draws(0), choose).propose(cell, "E", 400)
    assert 20 < len(claims) <= 200
    assert (facts[:, 2, 0] == who).all()
    free = Proposer(staff_sources, Draws(0)).propose(cell, "E", 400)
    assert len(set(free.facts[:, 2, 0].tolist())) > 5


# ---- proofs -------------------------------------------------------------------------------------


def test_a_denial_must_be_false_or_of_what_is_completely_known(staff_sources):
    boss, knows = (
        Job(family(staff_sources, name, kind), "E")
        for name, kind in (("boss", "functional"), ("knows", "negated"))
    )
    cards = said(
        staff_sources,
        ["not p9 boss b3", "p9 boss b1"],
        ["not p9 boss b1", "p9 boss b1"],
        ["not p9 office o5", "p9 boss b1"],
    )
    # p9's boss is b1: b3 is none; whether p9 has another office, nobody knows.
    assert true_and_known(staff_sources, for_one(boss, cards)).tolist() == [True, False, False]
    cards = said(
        staff_sources,
        ["not p9 knows p20", "p9 knows p10"],
        ["not p9 knows p8", "p9 knows p10"],
    )
    assert true_and_known(staff_sources, for_one(knows, cards)).tolist() == [True, False]


@pytest.mark.parametrize(
    "label, right",
    [("E", [True, False, False]), ("C", [False, True, True]), ("U", [False, False, True])],
)
def test_the_graph_must_not_say_otherwise(staff_sources, label, right):
    """p9's boss is known to be b1; p1's, the same, is withheld. What is contradictory by its card
    alone may be open in the graph."""
    cards = said(staff_sources, ["p9 boss b1"], ["p9 boss b3"], ["p1 boss b3"])
    job = Job(family(staff_sources, "boss", "functional"), label)
    assert true_and_known(staff_sources, for_one(job, cards)).tolist() == right


def test_what_only_the_graph_settles_must_be_settled_by_it(staff_sources):
    (boss,) = staff_sources.predicates(["boss"])
    (cell,) = graph_cells(staff_sources, boss, Draws(0))
    cards = said(staff_sources, ["p9 boss b3"], ["p1 boss b3"])
    good = true_and_known(staff_sources, for_one(Job(cell, "C"), cards))
    assert good.tolist() == [True, False]


def test_withheld_truths_are_told_apart(staff_sources):
    cards = said(staff_sources, ["p1 boss b1"], ["p1 boss b3"])
    cell = family(staff_sources, "boss", "functional")
    assert withheld(staff_sources, for_one(Job(cell, "U"), cards)).tolist() == [True, False]
    assert withheld(staff_sources, for_one(Job(cell, "E"), cards)).tolist() == [False, False]
    nobody = Selection(withheld=False)
    drawer = Drawer(staff_sources, Streams.of(0), nobody)
    open_ = [b.said.claims for b in drawer.draw([cell], 10).batches if b.job.label == "U"]
    verdict = staff_sources.domain.oracle.judge_ids(np.concatenate(open_)).verdict
    assert len(verdict) == 10 and (verdict != Verdict.ENTAILED).all()


def test_arranging_keeps_what_is_said(staff_sources):
    """In another order; the predicate's own facts turned round where the cell says them so."""
    plain, turned = (
        Job(family(staff_sources, "knows", kind), "E") for kind in ("negated", "inferred")
    )
    card = ["p1 knows p2", "not p4 knows p8", "p3 boss b3", "p1 knows p2"]
    cards = said(staff_sources, *[card] * 50)
    for job in (plain, turned):
        facts, holds, claims = arranged(staff_sources, for_one(job, cards), Draws(0, 3))
        assert (claims == cards.claims).all()
        back = [f[::-1] if job is turned and f[1] == claims[0, 1] else f for f in cards.facts[0]]
        expected = {(*fact, sign) for fact, sign in zip(map(tuple, back), [1, -1, 1], strict=True)}
        orders = set()
        for row, signs in zip(facts.tolist(), holds.tolist(), strict=True):
            assert {(*fact, sign) for fact, sign in zip(row, signs, strict=True)} == expected
            orders.add(str(row))
        assert len(orders) == 6
