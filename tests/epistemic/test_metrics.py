"""Golden numbers: by hand from the definitions, and from the published tables."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epistemic.scoring import metrics
from epistemic.scoring.metrics import (
    CONVENTIONS,
    beside,
    published_convention,
    seed_convention,
    strict_convention,
)

NO, UNKNOWN, YES, INVALID, ERROR = range(5)


def table(e, c, u):
    """Rows given as {answer: count}."""
    found = np.zeros((3, 5), int)
    for row, counts in enumerate((e, c, u)):
        for answer, count in counts.items():
            found[row, answer] = count
    return found


def values(convention, t):
    return {
        name: None if ratio.denominator == 0 else float(ratio.numerator / ratio.denominator)
        for name, ratio in convention(t).items()
    }


def four(convention, t):
    found = values(convention, t)
    return [found[name] for name in ("AP", "CVRR", "FAR_NE", "LA")]


PERFECT = table({YES: 200}, {NO: 400}, {UNKNOWN: 200})
# The published graph_rag run: 200 explicit C answered NO, 200 distractors answered UNKNOWN.
GRAPH_RAG = table({YES: 200}, {NO: 200, UNKNOWN: 200}, {UNKNOWN: 200})
FIXED = table({YES: 200}, {UNKNOWN: 400}, {UNKNOWN: 200})
ENTAILED_NO = table({NO: 200}, {UNKNOWN: 400}, {UNKNOWN: 200})
WRONG = table({NO: 200}, {YES: 400}, {YES: 200})
CLOSED_WORLD = table({YES: 200}, {NO: 400}, {NO: 200})
ALWAYS_UNKNOWN = table({UNKNOWN: 200}, {UNKNOWN: 400}, {UNKNOWN: 200})


def test_a_perfect_answerer():
    assert four(seed_convention, PERFECT) == [1, 1, 0, 1]
    assert four(strict_convention, PERFECT) == [1, 1, 0, 1]
    assert four(published_convention, PERFECT) == pytest.approx([1, 0, 2 / 3, 1])


@pytest.mark.parametrize(
    "t, expected",
    [
        (GRAPH_RAG, [1.000, 0.500, 0.333, 1.000]),
        (FIXED, [1, 1, 0, 1]),
        (ENTAILED_NO, [1, 1, 0, 1]),
        (WRONG, [None, 0, 1, 1]),
        (CLOSED_WORLD, [None, 0, 1, 1]),
        (ALWAYS_UNKNOWN, [0.75, 1, 0, 0]),
        # Scaled rivers: 497 of 997 C cards are distractors; philosophers: 145 of 295.
        (table({YES: 500}, {NO: 500, UNKNOWN: 497}, {UNKNOWN: 500}), [1.000, 0.498, 0.334, 1.000]),
        (table({YES: 150}, {NO: 150, UNKNOWN: 145}, {UNKNOWN: 150}), [1.000, 0.492, 0.337, 1.000]),
        # kg in the scaled run: two distractors and one U answered YES through substring matches.
        (
            table({YES: 500}, {NO: 500, UNKNOWN: 495, YES: 2}, {UNKNOWN: 499, YES: 1}),
            [1.000, 0.496, 0.336, 1.000],
        ),
    ],
)
def test_the_published_tables_are_reproduced(t, expected):
    found = four(published_convention, t)
    assert found == [None if e is None else pytest.approx(e, abs=6e-4) for e in expected]


def test_what_the_published_convention_hides_the_seed_convention_shows():
    assert four(seed_convention, ENTAILED_NO) == [1, 1, 0, 0]
    assert four(seed_convention, GRAPH_RAG) == [1, 1, 0, 1]
    assert four(strict_convention, GRAPH_RAG) == [0.5, 0.5, 0, 1]
    assert four(seed_convention, WRONG) == [None, 0, 1, 0]
    assert four(seed_convention, CLOSED_WORLD) == [1, 1, pytest.approx(1 / 3), 1]


@pytest.mark.parametrize(
    "t, la, far, accuracy",
    [
        # Thirty balanced cards each: GPT-4 and Claude Sonnet 4, then Claude 3.5 Sonnet.
        (table({YES: 10}, {NO: 10}, {NO: 10}), 1.0, 0.5, 2 / 3),
        (table({YES: 6, NO: 4}, {NO: 10}, {NO: 10}), 0.6, 0.5, 16 / 30),
    ],
)
def test_the_recorded_real_replies_rescored(t, la, far, accuracy):
    assert four(published_convention, t) == [None, 0, 1, 1]  # as published
    assert values(seed_convention, t)["LA"] == la
    assert values(seed_convention, t)["FAR_NE"] == far
    assert values(strict_convention, t)["CVRR"] == 1
    assert values(beside, t)["abstention_recall"] == 0
    assert values(beside, t)["accuracy"] == pytest.approx(accuracy)


def test_every_ratio_by_hand():
    # E: 6 YES, 1 NO, 2 UNKNOWN, 1 INVALID, 5 ERROR; C: 1 YES, 4 NO, 3 UNKNOWN, 2 INVALID;
    # U: 2 YES, 1 NO, 5 UNKNOWN, 0 INVALID, 2 ERROR.
    t = table(
        {YES: 6, NO: 1, UNKNOWN: 2, INVALID: 1, ERROR: 5},
        {YES: 1, NO: 4, UNKNOWN: 3, INVALID: 2},
        {YES: 2, NO: 1, UNKNOWN: 5, ERROR: 2},
    )
    ratios = {
        name: tuple(map(int, ratio)) for name, ratio in (seed_convention(t) | beside(t)).items()
    }
    assert ratios == {
        "AP": (12, 14),
        "CVRR": (7, 10),
        "FAR_NE": (1 + 2 + 1 + 2, 18),
        "LA": (6, 10),
        "accuracy": (15, 28),
        "coverage": (15, 28),
        "selective_accuracy": (10, 15),
        "abstention_precision": (5, 10),
        "abstention_recall": (5, 8),
        "abstention_f1": (10, 18),
        "over_refusal": (2, 10),
        "invalid_rate": (3, 28),
        "error_rate": (7, 35),
    }
    assert tuple(map(int, strict_convention(t)["AP"])) == (5, 10)
    assert tuple(map(int, strict_convention(t)["CVRR"])) == (4, 10)
    assert {name: tuple(map(int, ratio)) for name, ratio in published_convention(t).items()} == {
        "AP": (8, 10),
        "CVRR": (3, 10),
        "FAR_NE": (7 + 3, 18),
        "LA": (7, 10),
    }


COUNTS = st.lists(st.integers(0, 30), min_size=15, max_size=15)


@given(COUNTS)
@settings(deadline=None)
def test_errors_change_no_ratio_but_their_own(counts):
    t = np.array(counts).reshape(3, 5)
    without = t.copy()
    without[:, ERROR] = 0
    for convention in CONVENTIONS.values():
        assert values(convention, t) == values(convention, without)


@given(COUNTS)
@settings(deadline=None)
def test_ratios_lie_between_0_and_1_and_serve_batches(counts):
    t = np.array(counts).reshape(3, 5)
    for convention in (*CONVENTIONS.values(), beside):
        stacked = convention(np.stack([t, t]))
        for name, ratio in convention(t).items():
            assert 0 <= ratio.numerator <= ratio.denominator, name
            assert [int(n) for n in stacked[name].numerator] == [int(ratio.numerator)] * 2


@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.integers(0, 4), st.integers(-1, 3)),
        min_size=1,
        max_size=60,
    )
)
@settings(deadline=None, max_examples=40)
def test_counting_agrees_with_a_loop(rows):
    label, answer, group = (np.array(column, np.int32) for column in zip(*rows, strict=True))
    expected = np.zeros((3, 3, 5), int)
    for one, two, three in rows:
        if 0 <= three < 3:
            expected[three, one, two] += 1
    # Padded to one shape, so that one compilation serves every example.
    padded = [np.pad(a, (0, 60 - len(rows)), constant_values=-1) for a in (label, answer, group)]
    np.testing.assert_array_equal(metrics.tables(*padded, groups=3), expected)


def test_equal_labels_take_the_decks_ratios_out():
    # The same system (YES on half of E, NO on all C, YES on a fifth of U) on two decks.
    def deck(e, c, u):
        return table({YES: e // 2, UNKNOWN: e // 2}, {NO: c}, {YES: u // 5, UNKNOWN: u - u // 5})

    one, other = deck(20, 40, 20), deck(20, 20, 60)
    assert values(seed_convention, one) != values(seed_convention, other)
    balanced = [values(seed_convention, metrics.at_equal_labels(t)) for t in (one, other)]
    assert balanced[0] == pytest.approx(balanced[1])
    assert balanced[0]["FAR_NE"] == pytest.approx(0.1)
