"""Intervals that cover, keep their width at the edge, and pair what is paired."""

import numpy as np
import pytest

from epistemic.scoring.intervals import difference, measure, resample
from epistemic.scoring.metrics import NO, UNKNOWN, YES, seed_convention


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
        la = measure(seed_convention, resample(by_subject, seed=trial, resamples=400))["LA"]
        covered += la.low <= 0.7 <= la.high
        width += (la.high - la.low) / 150
    assert 0.89 <= covered / 150 <= 0.99
    assert width == pytest.approx(2 * 1.96 * np.sqrt(0.7 * 0.3 / 60), rel=0.1)


def test_an_interval_at_the_edge_is_wilsons_on_the_effective_number():
    by_subject = np.zeros((4, 3, 5), int)
    by_subject[:, 0, YES] = [1, 1, 1, 5]
    la = measure(seed_convention, resample(by_subject, seed=0, resamples=50))["LA"]
    effective = 8**2 / (3 + 25)
    assert (la.value, la.high, la.n) == (1.0, 1.0, 4)
    assert la.low == pytest.approx(1 / (1 + 1.959964**2 / effective))
    assert (la.numerator, la.denominator) == (8, 8)


def test_an_undefined_ratio_is_none_with_its_counts():
    by_subject = np.zeros((2, 3, 5), int)
    by_subject[:, 0, YES] = 1
    ap = measure(seed_convention, resample(by_subject, seed=0, resamples=50))["AP"]
    assert (ap.value, ap.low, ap.numerator, ap.denominator) == (None, None, 0, 0)


def test_differences_are_paired():
    # Two systems that agree on every card differ by nothing, however noisy each is; but that none
    # of 80 pairs was discordant leaves room for z^2 / (80 + z^2) of them.
    rng = np.random.default_rng(1)
    by_subject = np.zeros((80, 2, 3, 5), int)
    by_subject[:, :, 0, YES] = (rng.random(80) < 0.5)[:, None]
    by_subject[:, :, 0, NO] = 1 - by_subject[:, :, 0, YES]
    drawn = resample(by_subject, seed=0, resamples=200)
    gap = difference(seed_convention, drawn.at(0), drawn.at(1))["LA"]
    assert gap.value == 0 and "score" in gap.method
    np.testing.assert_allclose([gap.low, gap.high], [-0.04582, 0.04582], atol=1e-5)
    by_subject[0, 0, 0, [YES, NO]] = by_subject[0, 0, 0, [NO, YES]]
    drawn = resample(by_subject, seed=0, resamples=200)
    gap = difference(seed_convention, drawn.at(0), drawn.at(1))["LA"]
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
    whole, one_lost = (resample(tables, seed=0) for tables in (by_subject, lost))
    lows = [measure(seed_convention, drawn.at(0))["LA"].low for drawn in (whole, one_lost)]
    assert lows[1] <= lows[0] + 1e-12
    gaps = [difference(seed_convention, d.at(0), d.at(1))["LA"] for d in (whole, one_lost)]
    assert gaps[1].low <= gaps[0].low + 1e-12 and gaps[0].low < gaps[1].value
