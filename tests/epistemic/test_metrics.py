"""Golden numbers: by hand from the definitions, and from the published tables."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epistemic.scoring import metrics
from epistemic.scoring.metrics import (
    CONVENTIONS,
    beside,
    measure,
    published,
    resample,
    seed,
    strict,
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
    assert four(seed, PERFECT) == [1, 1, 0, 1]
    assert four(strict, PERFECT) == [1, 1, 0, 1]
    assert four(published, PERFECT) == pytest.approx([1, 0, 2 / 3, 1])


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
    found = four(published, t)
    assert found == [None if e is None else pytest.approx(e, abs=6e-4) for e in expected]


def test_what_the_published_convention_hides_the_seed_convention_shows():
    assert four(seed, ENTAILED_NO) == [1, 1, 0, 0]
    assert four(seed, GRAPH_RAG) == [1, 1, 0, 1]
    assert four(strict, GRAPH_RAG) == [0.5, 0.5, 0, 1]
    assert four(seed, WRONG) == [None, 0, 1, 0]
    assert four(seed, CLOSED_WORLD) == [1, 1, pytest.approx(1 / 3), 1]


@pytest.mark.parametrize(
    "t, la, far, accuracy",
    [
        # Thirty balanced cards each: GPT-4 and Claude Sonnet 4, then Claude 3.5 Sonnet.
        (table({YES: 10}, {NO: 10}, {NO: 10}), 1.0, 0.5, 2 / 3),
        (table({YES: 6, NO: 4}, {NO: 10}, {NO: 10}), 0.6, 0.5, 16 / 30),
    ],
)
def test_the_recorded_real_replies_rescored(t, la, far, accuracy):
    assert four(published, t) == [None, 0, 1, 1]  # as published
    assert values(seed, t)["LA"] == la
    assert values(seed, t)["FAR_NE"] == far
    assert values(strict, t)["CVRR"] == 1
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
    ratios = {name: tuple(map(int, ratio)) for name, ratio in (seed(t) | beside(t)).items()}
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
    assert tuple(map(int, strict(t)["AP"])) == (5, 10)
    assert tuple(map(int, strict(t)["CVRR"])) == (4, 10)
    assert {name: tuple(map(int, ratio)) for name, ratio in published(t).items()} == {
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


def test_intervals_cover_the_truth_when_cards_come_in_clusters():
    # 150 simulated decks of 60 subjects with 5 cards each; a subject is known or not as a whole,
    # P = 0.7. An interval over cards would be too narrow by a factor of about sqrt(5).
    rng = np.random.default_rng(0)
    covered = width = 0.0
    for trial in range(150):
        known = rng.random(60) < 0.7
        by_subject = np.zeros((60, 3, 5), int)
        by_subject[known, 0, YES] = 5
        by_subject[~known, 0, UNKNOWN] = 5
        la = measure(seed, resample(by_subject, rng=trial, resamples=400))["LA"]
        covered += la["low"] <= 0.7 <= la["high"]
        width += (la["high"] - la["low"]) / 150
    assert 0.89 <= covered / 150 <= 0.99
    assert width == pytest.approx(2 * 1.96 * np.sqrt(0.7 * 0.3 / 60), rel=0.1)


def test_an_interval_at_the_edge_is_wilsons_on_the_effective_number():
    by_subject = np.zeros((4, 3, 5), int)
    by_subject[:, 0, YES] = [1, 1, 1, 5]
    la = measure(seed, resample(by_subject, rng=0, resamples=50))["LA"]
    effective = 8**2 / (3 + 25)
    assert (la["value"], la["high"], la["n"]) == (1.0, 1.0, 4)
    assert la["low"] == pytest.approx(1 / (1 + 1.959964**2 / effective))
    assert (la["numerator"], la["denominator"]) == (8, 8)


def test_an_undefined_ratio_is_none_with_its_counts():
    by_subject = np.zeros((2, 3, 5), int)
    by_subject[:, 0, YES] = 1
    ap = measure(seed, resample(by_subject, rng=0, resamples=50))["AP"]
    assert (ap["value"], ap["low"], ap["numerator"], ap["denominator"]) == (None, None, 0, 0)


def test_differences_are_paired():
    # Two systems that agree on every card differ by nothing, however noisy each is; but that none
    # of 80 pairs was discordant leaves room for z^2 / (80 + z^2) of them.
    rng = np.random.default_rng(1)
    by_subject = np.zeros((80, 2, 3, 5), int)
    by_subject[:, :, 0, YES] = (rng.random(80) < 0.5)[:, None]
    by_subject[:, :, 0, NO] = 1 - by_subject[:, :, 0, YES]
    drawn = resample(by_subject, rng=0, resamples=200)
    gap = metrics.difference(seed, drawn.at(0), drawn.at(1))["LA"]
    assert gap.value == 0 and "score" in gap.method
    np.testing.assert_allclose([gap.low, gap.high], [-0.04582, 0.04582], atol=1e-5)
    by_subject[0, 0, 0, [YES, NO]] = by_subject[0, 0, 0, [NO, YES]]
    drawn = resample(by_subject, rng=0, resamples=200)
    gap = metrics.difference(seed, drawn.at(0), drawn.at(1))["LA"]
    assert abs(gap.value) == pytest.approx(1 / 80) and "bootstrap" in gap.method


@pytest.mark.parametrize("cards", [1, 4])
@pytest.mark.parametrize("subjects", [12, 40, 70, 120])
def test_one_error_seen_makes_nothing_surer_than_none(subjects, cards):
    # The error is about the first subject, which has one card where others have several.
    by_subject = np.zeros((subjects, 2, 3, 5), int)
    by_subject[:, :, 0, YES] = cards
    by_subject[0, :, 0, YES] = 1
    lost = by_subject.copy()
    lost[0, 0, 0, [YES, UNKNOWN]] = 0, 1
    whole, one_lost = (resample(tables, rng=0) for tables in (by_subject, lost))
    lows = [measure(seed, drawn.at(0))["LA"]["low"] for drawn in (whole, one_lost)]
    assert lows[1] <= lows[0] + 1e-12
    gaps = [metrics.difference(seed, d.at(0), d.at(1))["LA"] for d in (whole, one_lost)]
    assert gaps[1].low <= gaps[0].low + 1e-12 and gaps[0].low < gaps[1].value


# --- Selective metrics ---


def ranked(answers, labels, confidence):
    n = len(answers)
    return metrics.selective(
        np.array(labels), np.array(answers), np.array(confidence, float), np.arange(n), rng=0
    )


def test_aurc_by_hand():
    # Three answers, most confident first: right, wrong, right; then one UNKNOWN.
    # Risks at the four ranks: 0, 1/2, 1/3, and 1/3 (abstaining adds nothing).
    found = ranked([YES, YES, YES, UNKNOWN], [0, 1, 0, 2], [0.9, 0.8, 0.7, 0.99])
    assert found["AURC"].value == pytest.approx((0 + 1 / 2 + 1 / 3 + 1 / 3) / 4)
    # Best order: right, right, wrong: 0, 0, 1/3, 1/3.
    assert found["E_AURC"].value == pytest.approx((1 / 2) / 4)
    assert found["risk_coverage"] == [
        pytest.approx(p) for p in ([0.25, 0], [0.5, 0.5], [0.75, 1 / 3])
    ]


def test_equal_confidences_are_one_group():
    # Whatever the order in the file: two right and two wrong at one confidence are risk 1/2
    # throughout.
    for answers in ([YES, YES, NO, NO], [NO, NO, YES, YES], [NO, YES, NO, YES]):
        found = ranked(answers, [0, 0, 0, 0], [0.5] * 4)
        assert found["AURC"].value == pytest.approx(0.5)
        assert found["risk_coverage"] == [[1.0, 0.5]]


def test_brier_and_ece_by_hand():
    found = ranked([YES, YES, NO, UNKNOWN], [0, 1, 1, 2], [1.0, 0.5, 0.5, 0.5])
    # Right, wrong, right, right: squared gaps 0, 0.25, 0.25, 0.25.
    assert found["brier"].value == pytest.approx(0.75 / 4)
    # Two bins: {1.0: all right}, {0.5: two of three right}, the latter off by 1/6 with weight 3/4.
    assert found["ece"].value == pytest.approx(3 / 4 * (2 / 3 - 1 / 2))


def test_a_calibrated_system_has_a_small_calibration_error_and_a_boastful_one_does_not():
    rng = np.random.default_rng(2)
    confidence = rng.random(6000)
    answers = np.where(rng.random(6000) < confidence, YES, NO)
    honest = ranked(answers, np.zeros(6000, int), confidence)["ece"]
    boastful = ranked(answers, np.zeros(6000, int), np.sqrt(confidence))["ece"]
    assert honest.value < 0.03
    assert boastful.value == pytest.approx(np.mean(np.sqrt(confidence) - confidence), abs=0.03)


def test_no_confidence_no_selective_metrics_and_errors_are_left_out():
    found = ranked([YES, ERROR], [0, 0], [np.nan, 0.5])
    assert found["n"] == 0
    assert found["AURC"] is None
    assert ranked([UNKNOWN, UNKNOWN], [2, 0], [1, 1])["AURC"].value is None


def test_what_states_no_confidence_ranks_behind_what_does():
    # Right and sure, wrong and unreadable, stopped by a licence: risks 0, 1/2, and 1/2 again.
    found = ranked([YES, INVALID, UNKNOWN], [0, 1, 2], [0.9, np.nan, np.nan])
    assert found["AURC"].value == pytest.approx((0 + 1 / 2 + 1 / 2) / 3)
    assert found["risk_coverage"] == [pytest.approx(p) for p in ([1 / 3, 0], [2 / 3, 0.5])]
    assert found["brier"].value == pytest.approx(0.01) and found["n"] == 1


def test_equal_labels_take_the_decks_ratios_out():
    # The same system (YES on half of E, NO on all C, YES on a fifth of U) on two decks.
    def deck(e, c, u):
        return table({YES: e // 2, UNKNOWN: e // 2}, {NO: c}, {YES: u // 5, UNKNOWN: u - u // 5})

    one, other = deck(20, 40, 20), deck(20, 20, 60)
    assert values(seed, one) != values(seed, other)
    balanced = [values(seed, metrics.at_equal_labels(t)) for t in (one, other)]
    assert balanced[0] == pytest.approx(balanced[1])
    assert balanced[0]["FAR_NE"] == pytest.approx(0.1)
