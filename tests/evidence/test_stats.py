"""Statistics: numbers worked by hand, scipy as an independent implementation, and properties."""

import importlib.util
import json
import math
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from evidence import lifetimes, stats
from evidence.measurement import Measurement
from evidence.stats import comparisons

RNG = np.random.default_rng(7)


def close(measured: Measurement, value: float, low: float, high: float, tolerance: float = 5e-4):
    assert measured.value == pytest.approx(value, abs=tolerance)
    assert measured.low == pytest.approx(low, abs=tolerance)
    assert measured.high == pytest.approx(high, abs=tolerance)


# ---- intervals ----------------------------------------------------------------------------------


def test_t_interval_by_hand():
    # Mean 2, standard deviation 1, standard error 1/sqrt(3), t(0.975, 2) = 4.3027.
    measured = stats.t_interval([1.0, 2.0, 3.0], "run")
    half = 4.302653 / math.sqrt(3)
    close(measured, 2.0, 2 - half, 2 + half)
    assert (measured.n, measured.unit, measured.method) == (3, "run", "t 95%")


@pytest.mark.parametrize("estimate", [stats.t_interval, stats.bootstrap_interval, stats.interval])
def test_too_few_replicates_give_no_interval(estimate):
    assert estimate([], "run") == Measurement(None, None, None, 0, "run", "no interval: no run")
    assert estimate([2.0], "run") == Measurement(2.0, None, None, 1, "run", "no interval: one run")


@pytest.mark.parametrize("estimate", [stats.t_interval, stats.bootstrap_interval])
def test_constant_data_say_so(estimate):
    # 0.1 has no exact float: rounding in the mean must not be taken for spread.
    measured = estimate([0.1] * 12, "run")
    assert measured.low == measured.value == measured.high == pytest.approx(0.1)
    assert measured.method == "constant data"


def test_undefined_replicates_are_counted_out_loud():
    measured = stats.interval([1.0, None, 3.0, math.nan, 2.0], "run")
    assert measured.n == 3
    assert measured.value == pytest.approx(2.0)
    assert measured.method == "t 95%; 2 of 5 undefined"


def test_interval_changes_hands_at_ten():
    nine, ten = RNG.normal(size=9), RNG.normal(size=10)
    assert stats.interval(nine, "run").method == "t 95%"
    assert stats.other_interval(nine, "run").method == "expanded BCa bootstrap 95%"
    assert stats.interval(ten, "run").method == "expanded BCa bootstrap 95%"
    assert stats.other_interval(ten, "run").method == "t 95%"
    assert stats.difference_interval(nine, ten, "run").method == "Welch t 95%"
    assert stats.difference_interval(ten, ten + 1, "run").method == "expanded BCa bootstrap 95%"


def test_bca_is_skewed_where_the_data_are_and_repeatable():
    data = RNG.lognormal(size=40)
    first = stats.bootstrap_interval(data, "run")
    assert first == stats.bootstrap_interval(data, "run")
    assert first.high - first.value > first.value - first.low
    median = stats.bootstrap_interval(data, "run", np.median)
    assert median.low <= np.median(data) == median.value <= median.high


def test_expanded_bca_is_as_wide_as_t_where_the_data_are_symmetric():
    data = np.array([-3.0, -2.0, -1.5, -1.0, -0.5, 0.5, 1.0, 1.5, 2.0, 3.0])
    bootstrap, t = stats.bootstrap_interval(data, "run"), stats.t_interval(data, "run")
    assert bootstrap.low == pytest.approx(t.low, rel=0.06)
    assert bootstrap.high == pytest.approx(t.high, rel=0.06)
    plain = scipy.stats.bootstrap((data,), np.mean, method="BCa", rng=np.random.default_rng(0))
    assert plain.confidence_interval.high < 0.92 * t.high


def test_bca_undefined_falls_back_by_name():
    # The maximum of a resample is at the sample's maximum in most, and never above it.
    data = np.arange(30.0)
    measured = stats.bootstrap_interval(data, "run", lambda x, axis: np.sign(x.max(axis=axis)))
    assert measured.method == "expanded percentile bootstrap 95% (BCa undefined)"
    assert (measured.low, measured.high) == (1.0, 1.0)


def test_wilson_by_hand_and_at_the_ends():
    # 8 of 10: centre (0.8 + 1.9207/10) / 1.38415, half-width 1.95996/1.38415 sqrt(.016 + .009604).
    close(stats.wilson(8, 10, "card"), 0.8, 0.4902, 0.9433)
    close(stats.wilson(0, 20, "card"), 0.0, 0.0, 0.1611)
    close(stats.wilson(20, 20, "card"), 1.0, 0.8389, 1.0)
    assert stats.wilson(0, 0, "card").value is None
    reference = scipy.stats.binomtest(13, 37).proportion_ci(method="wilson")
    close(stats.wilson(13, 37, "card"), 13 / 37, reference.low, reference.high, 1e-9)
    with pytest.raises(ValueError, match="11 successes in 10"):
        stats.wilson(11, 10, "card")


def test_ratio_interval_against_fieller_in_closed_form():
    # With the denominator constant, a ratio is a mean rescaled.
    numerators = [3.0, 5.0, 4.0, 6.0]
    mean = stats.t_interval(numerators, "run")
    ratio = stats.ratio_interval(numerators, [2.0, 2.0, 2.0], "run")
    close(ratio, mean.value / 2, mean.low / 2, mean.high / 2, 1e-9)
    # And its inverse has the inverse interval, ends exchanged.
    inverse = stats.ratio_interval([2.0, 2.0, 2.0], numerators, "run")
    close(inverse, 2 / mean.value, 2 / mean.high, 2 / mean.low, 1e-9)
    # Every end lies where a Welch test just fails to reject mean(a) = r mean(b).
    a, b = RNG.uniform(50, 60, 5), RNG.uniform(4, 6, 7)
    measured = stats.ratio_interval(a, b, "run")
    for end in (measured.low, measured.high):
        assert stats.welch(a, end * b, "run").p_two_sided == pytest.approx(0.05, abs=1e-6)


def test_ratio_interval_of_a_denominator_near_zero():
    barely = stats.ratio_interval([100.0, 110.0, 120.0], [0.0, 0.0, 3.0], "run")
    assert barely.value == pytest.approx(110.0)
    assert 0 < barely.low < barely.value
    assert barely.high == math.inf
    assert stats.ratio_interval([1.0, 2.0], [0.0, 0.0], "run").value is None
    with pytest.raises(ValueError, match="negative"):
        stats.ratio_interval([1.0, 2.0], [-1.0, 1.0], "run")
    nothing = stats.ratio_interval([0.0, 0.0], [1.0, 2.0], "run")
    assert (nothing.value, nothing.low) == (0.0, 0.0)


# ---- bootstraps over clusters -------------------------------------------------------------------


def mean_of(tables: np.ndarray) -> np.ndarray:
    return tables


def test_cluster_bootstrap_of_a_mean_is_the_t_interval_for_few():
    data = RNG.normal(size=6)
    expected = stats.t_interval(data, "run")
    close(
        stats.cluster_bootstrap(data, mean_of, "run", resamples=40_000),
        expected.value,
        expected.low,
        expected.high,
        0.03,
    )


def test_cluster_bootstrap_of_counts():
    # A ratio of totals, clusters of very different size; percentiles expanded from 10 clusters on.
    totals = RNG.integers(1, 50, size=80)
    hits = RNG.binomial(totals, 0.3)
    tables = np.stack([hits, totals], axis=1)
    measured = stats.cluster_bootstrap(tables, lambda t: t[:, 0] / t[:, 1], "subject")
    assert measured.value == pytest.approx(hits.sum() / totals.sum())
    residuals = hits - measured.value * totals
    error = math.sqrt((residuals**2).sum()) / totals.sum()
    assert measured.high - measured.low == pytest.approx(2 * 1.99 * error, rel=0.08)
    assert measured.method == "expanded cluster bootstrap 95%"


def test_cluster_bootstrap_pairs_what_is_stacked():
    # Two systems that differ by 0.1 on every cluster: the difference has no spread at all.
    first = RNG.normal(size=25)
    tables = np.stack([first, first - 0.1], axis=1)
    measured = stats.cluster_bootstrap(tables, lambda t: t[:, 0] - t[:, 1], "subject")
    assert measured.high - measured.low < 1e-9
    assert measured.value == pytest.approx(0.1)


def test_cluster_bootstrap_says_how_often_it_was_undefined():
    tables = np.array([[1.0, 1.0], *[[0.0, 0.0]] * 11])
    measured = stats.cluster_bootstrap(tables, lambda t: t[:, 0] / t[:, 1], "subject")
    assert measured.value == 1.0
    empty = stats.cluster_bootstrap(tables[1:], lambda t: t[:, 0] / t[:, 1], "subject")
    assert empty == Measurement(None, None, None, 11, "subject", "undefined")
    mixed = np.array([[1.0, 2.0], [1.0, 1.0], *[[0.0, 0.0]] * 10])
    method = stats.cluster_bootstrap(mixed, lambda t: t[:, 0] / t[:, 1], "subject").method
    # Neither of the two is drawn with probability (10/12)^12 = 11%.
    assert method == "expanded cluster bootstrap 95%; 11% of resamples undefined"


def test_statistics_of_the_wrong_shape_are_refused():
    with pytest.raises(ValueError, match="the statistic gave shape"):
        stats.cluster_bootstrap(np.ones((5, 2)), lambda t: t, "run")


def test_hierarchical_bootstrap_sees_both_levels():
    # Clusters alike but noisy inside: the clusters alone show the noise of their means, the
    # second stage adds it once more. Standard errors: sqrt(s2/(n m) (1 + (n - 1)/n)).
    groups = [RNG.normal(size=50) for _ in range(12)]
    one_level = stats.cluster_bootstrap([group.mean() for group in groups], mean_of, "run")
    both = stats.hierarchical_bootstrap(groups, mean_of, "run")
    assert both.value == pytest.approx(one_level.value)
    wider = (both.high - both.low) / (one_level.high - one_level.low)
    assert 1.1 < wider < 1.8
    # Clusters far apart, members alike: the clusters are all there is.
    groups = [[float(i)] * 5 for i in range(12)]
    one_level = stats.cluster_bootstrap(np.arange(12.0), mean_of, "run")
    both = stats.hierarchical_bootstrap(groups, mean_of, "run")
    close(both, one_level.value, one_level.low, one_level.high, 0.15)


def test_crossed_members_are_resampled_once_for_all_clusters():
    # Three clusters of the same members: nested resampling takes their noise for independent
    # and comes out at s / sqrt(3 m), crossed at s / sqrt(m).
    groups = [RNG.normal(size=200)] * 3
    nested, crossed = (
        stats.hierarchical_bootstrap(groups, mean_of, "seed", crossed=of) for of in (False, True)
    )
    assert (crossed.high - crossed.low) / (nested.high - nested.low) == pytest.approx(
        3**0.5, rel=0.1
    )
    # Members that say nothing leave the clusters, as there.
    flat = [[float(i)] * 5 for i in range(12)]
    one_level = stats.cluster_bootstrap(np.arange(12.0), mean_of, "run")
    both = stats.hierarchical_bootstrap(flat, mean_of, "run", crossed=True)
    close(both, one_level.value, one_level.low, one_level.high, 0.15)
    with pytest.raises(ValueError, match="as many in every cluster"):
        stats.hierarchical_bootstrap([[1.0], [1.0, 2.0]], mean_of, "seed", crossed=True)


def test_variance_components_by_hand():
    # Means 1 and 5, within-group variance 2 each: mean square between 16, (16 - 2) / 2 = 7.
    parts = stats.variance_components([[0.0, 2.0], [4.0, 6.0]])
    assert parts == (pytest.approx(7.0), pytest.approx(2.0), pytest.approx(7 / 9))
    groups = [
        RNG.normal(mean, 1.0, size)
        for mean, size in zip(RNG.normal(0, 3, 400), [5, 9] * 200, strict=True)
    ]
    parts = stats.variance_components(groups)
    assert parts.between == pytest.approx(9.0, rel=0.2)
    assert parts.within == pytest.approx(1.0, rel=0.1)
    with pytest.raises(ValueError, match="two groups"):
        stats.variance_components([[1.0, 2.0]])


# ---- tests and effects --------------------------------------------------------------------------


def test_welch_and_paired_against_scipy():
    a, b = RNG.normal(1, 1, 6), RNG.normal(0, 3, 9)
    ours = stats.welch(a, b, "run")
    theirs = scipy.stats.ttest_ind(a, b, equal_var=False)
    ends = theirs.confidence_interval()
    assert ours.t == pytest.approx(theirs.statistic)
    assert ours.df == pytest.approx(theirs.df)
    assert ours.p_two_sided == pytest.approx(theirs.pvalue)
    one_sided = scipy.stats.ttest_ind(a, b, equal_var=False, alternative="greater")
    assert ours.p_greater == pytest.approx(one_sided.pvalue)
    close(ours.difference, a.mean() - b.mean(), ends.low, ends.high, 1e-9)
    assert ours.difference.n == 6
    theirs = scipy.stats.ttest_rel(a, b[:6])
    assert stats.paired(a, b[:6], "run").p_two_sided == pytest.approx(theirs.pvalue)
    with pytest.raises(ValueError, match="6 replicates beside 9"):
        stats.paired(a, b, "run")


def test_welch_without_spread_makes_no_test():
    same = stats.welch([1.0, 1.0, 1.0], [0.4, 0.4, 0.4], "run")
    close(same.difference, 0.6, 0.6, 0.6)
    assert same.p_two_sided is None and same.difference.method == "constant data"
    # One group without spread is enough for a test.
    assert stats.welch([1.0, 1.0, 1.0], [0.3, 0.4, 0.5], "run").p_greater < 0.01
    assert stats.welch([1.0], [0.3, 0.4], "run").p_greater is None


def test_effect_sizes_by_hand():
    # Means 3 and 1, pooled variance 1: d = 2. J(4 degrees) = gamma(2) / (sqrt(2) gamma(1.5)).
    a, b = [2.0, 3.0, 4.0], [0.0, 1.0, 2.0]
    d, g = stats.cohens_d(a, b, "run"), stats.hedges_g(a, b, "run")
    assert d.value == pytest.approx(2.0)
    assert g.value == pytest.approx(2.0 * 1 / (math.sqrt(2) * math.gamma(1.5)), rel=1e-9)
    # The published approximation 1 - 3/(4 N - 9) is within 1% of it.
    assert g.value == pytest.approx(2.0 * (1 - 3 / 15), rel=0.01)
    assert (g.low, g.high) == (d.low, d.high)
    # Each end is the true effect at which so extreme a t has probability 2.5%.
    t = 2.0 / math.sqrt(2 / 3)
    for end, tail in ((d.low, scipy.stats.nct.sf), (d.high, scipy.stats.nct.cdf)):
        assert tail(t, 4, end / math.sqrt(2 / 3)) == pytest.approx(0.025, abs=1e-6)
    assert stats.cohens_d([1.0, 1.0], [0.0, 0.0], "run").value is None
    # Far apart, the spread of the pooled standard deviation is all there is: d sqrt(V / df).
    far = stats.cohens_d([1e5, 1e5 + 1, 1e5 + 2], b, "run")
    chi = scipy.stats.chi2.ppf([0.025, 0.975], 4)
    close(far, 1e5, *(1e5 * np.sqrt(chi / 4)), tolerance=1e-3 * 1e5)
    swapped = stats.cohens_d(b, a, "run")
    close(swapped, -d.value, -d.high, -d.low, 1e-6)


@pytest.mark.parametrize("confidence", [0.5, 0.8, 0.95, 0.999])
def test_quantiles_are_those_of_scipys_distributions(confidence):
    """Student's t in the interval of a mean, and the normal one in that of a share of 1, where
    Wilson's lower end is 1 / (1 + z^2 / n).
    """
    at = (1 + confidence) / 2
    for n in (2, 3, 5, 30, 1000):
        data = np.arange(n, dtype=float)
        measured = stats.t_interval(data, "run", confidence=confidence)
        t = (measured.high - measured.value) / (data.std(ddof=1) / math.sqrt(n))
        assert t == pytest.approx(scipy.stats.t.ppf(at, n - 1), rel=1e-12)
        low = stats.wilson(n, n, "card", confidence=confidence).low
        z = scipy.stats.norm.ppf(at)
        assert low == pytest.approx(1 / (1 + z**2 / n), rel=1e-12)


@pytest.mark.parametrize("df", [1, 2, 4, 18, 200.5])
def test_quantiles_of_a_standard_deviation_are_those_of_chi_squared(df):
    by_chi_squared = np.sqrt(scipy.stats.chi2.ppf([1e-12, 1 - 1e-12], df) / df)
    np.testing.assert_allclose(comparisons._ends(df), by_chi_squared, rtol=1e-12)


def test_effect_labels():
    sizes = [None, 0.0, -0.19, 0.2, -0.5, 0.8, 2.9, -3.0]
    words = ["undefined", *["negligible"] * 2, "small", "medium", "large", "large", "huge"]
    assert [stats.effect_label(size) for size in sizes] == words


def test_corrections_by_hand():
    p_values = {"a": 0.01, "b": 0.04, "c": 0.03, "d": None}
    bonferroni, holm = stats.bonferroni(p_values), stats.holm(p_values)
    assert bonferroni == {
        "a": pytest.approx(0.04),
        "b": pytest.approx(0.16),
        "c": pytest.approx(0.12),
        "d": None,
    }
    # Sorted 0.01 x 4, 0.03 x 3, then 0.04 x 2 = 0.08, which may not undercut 0.09.
    assert holm == {
        "a": pytest.approx(0.04),
        "b": pytest.approx(0.09),
        "c": pytest.approx(0.09),
        "d": None,
    }
    assert list(holm) == list(p_values)


@given(st.dictionaries(st.text(max_size=3), st.floats(0, 1), min_size=1, max_size=8))
def test_holm_is_between_raw_and_bonferroni(p_values):
    bonferroni, holm = stats.bonferroni(p_values), stats.holm(p_values)
    for name, p in p_values.items():
        assert p <= holm[name] <= bonferroni[name] <= 1
    order = sorted(p_values, key=p_values.get)
    assert [holm[name] for name in order] == sorted(holm.values())


def test_runs_needed_matches_published_tables():
    # Cohen (1988), table 2.4.1, two-sided 5%, power 0.8: 393, 64, 26 (394 by exact computation).
    assert [stats.runs_needed(d) for d in (0.2, 0.5, 0.8)] == [394, 64, 26]
    assert stats.runs_needed(0.5, power=0.9) == 86
    assert stats.runs_needed(0.5, two_sided=False) == 51
    assert stats.runs_needed(-0.5) == 64
    assert stats.runs_needed(5.0) == 3
    assert stats.runs_needed(20.0) == 2
    with pytest.raises(ValueError, match="d=0"):
        stats.runs_needed(0)


# ---- survival -----------------------------------------------------------------------------------


def counts(deaths: list[int], alive: list[int]) -> tuple[np.ndarray, np.ndarray]:
    size = max([0, *deaths, *alive]) + 1
    return np.bincount(deaths, minlength=size), np.bincount(alive, minlength=size)


def test_kaplan_meier_by_hand():
    # Lives 1, 2, 2+, 3, 4+ (+ still alive): S = 4/5, then x 3/4, then x 1/2.
    curve = lifetimes.kaplan_meier(*counts([1, 2, 3], [2, 4]))
    np.testing.assert_allclose(curve.survival, [1, 0.8, 0.6, 0.3, 0.3])
    np.testing.assert_array_equal(curve.at_risk, [5, 5, 4, 2, 1])
    assert lifetimes.median_survival(curve) == 3
    # Area to 4: S(0) + S(1) + S(2) + S(3).
    assert lifetimes.restricted_mean(curve, 4).value == pytest.approx(2.7)
    # Nobody was seen beyond age 4, and not all are dead.
    assert lifetimes.restricted_mean(curve, 6).value is None
    with pytest.raises(ValueError, match="horizon=0"):
        lifetimes.restricted_mean(curve, 0)
    assert lifetimes.median_survival(lifetimes.kaplan_meier([0, 1], [0, 9])) is None


@pytest.mark.filterwarnings("ignore:The confidence interval is undefined")
@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.integers(1, 12), min_size=1, max_size=40),
    st.lists(st.integers(1, 12), max_size=40),
)
def test_kaplan_meier_against_scipy(deaths, alive):
    curve = lifetimes.kaplan_meier(*counts(deaths, alive))
    data = scipy.stats.CensoredData(uncensored=deaths, right=alive)
    reference = scipy.stats.ecdf(data).sf
    known = ~np.isnan(curve.survival)
    np.testing.assert_allclose(curve.survival[known], reference.evaluate(curve.age[known]))
    with np.errstate(all="ignore"):
        band = reference.confidence_interval(method="log-log")
    at = np.searchsorted(reference.quantiles, curve.age, side="right") - 1
    for ours, theirs in ((curve.low, band.low), (curve.high, band.high)):
        expected = theirs.probabilities[np.maximum(at, 0)]
        usable = (
            known & (at >= 0) & np.isfinite(expected) & (curve.survival > 0) & (curve.survival < 1)
        )
        np.testing.assert_allclose(ours[usable], expected[usable], atol=1e-9)


@given(st.lists(st.integers(1, 30), min_size=1, max_size=60), st.integers(1, 40))
def test_restricted_mean_of_finished_lives_is_a_plain_mean(lives, horizon):
    curve = lifetimes.kaplan_meier(*counts(lives, []))
    measured = lifetimes.restricted_mean(curve, horizon)
    capped = np.minimum(lives, horizon)
    assert measured.value == pytest.approx(capped.mean())
    # Without censoring Greenwood's error is that of a mean, with n in place of n - 1.
    half = 1.959964 * capped.std() / math.sqrt(len(lives))
    assert measured.high - measured.value == pytest.approx(half, abs=1e-6)


def test_counts_are_checked():
    with pytest.raises(ValueError, match="shapes"):
        lifetimes.kaplan_meier([1, 2], [1])
    with pytest.raises(ValueError, match="negative"):
        lifetimes.kaplan_meier([1, -2], [1, 0])


def test_logrank_against_scipy():
    a, b = RNG.geometric(0.2, 40), RNG.geometric(0.3, 60)
    seen_a, seen_b = RNG.random(40) < 0.8, RNG.random(60) < 0.8
    groups = [
        scipy.stats.CensoredData(uncensored=lives[seen], right=lives[~seen])
        for lives, seen in ((a, seen_a), (b, seen_b))
    ]
    expected = scipy.stats.logrank(*groups).statistic
    ours = lifetimes.logrank_descriptive(
        *counts(a[seen_a], a[~seen_a]), *counts(b[seen_b], b[~seen_b])
    )
    assert abs(ours) == pytest.approx(abs(expected))
    assert ours < 0  # the first group dies less
    assert math.isnan(lifetimes.logrank_descriptive([0, 0], [0, 5], [0, 0], [0, 5]))


# ---- calibration --------------------------------------------------------------------------------


def test_welch_rejects_a_true_null_at_its_nominal_rate():
    rejected = np.array(
        [
            [test.p_two_sided < 0.05, test.p_greater < 0.05]
            for test in (
                stats.welch(RNG.normal(0, 1, 5), RNG.normal(0, 3, 8), "run") for _ in range(2000)
            )
        ]
    )
    # Within four standard errors of 5%, and Welch's own small-sample error.
    np.testing.assert_allclose(rejected.mean(axis=0), 0.05, atol=0.02)


def test_intervals_cover_the_truth():
    """A quick look; the full table is made by benchmarks/calibration.py."""
    covers = {"t": 0, "fieller": 0, "wilson": 0, "g": 0}
    repeats = 1000
    for _ in range(repeats):
        a, b = RNG.normal(10, 2, 5), RNG.normal(5, 1, 5)
        t, fieller = stats.t_interval(a, "run"), stats.ratio_interval(a, b, "run")
        wilson = stats.wilson(int(RNG.binomial(30, 0.2)), 30, "card")
        g = stats.hedges_g(RNG.normal(1, 1, 5), RNG.normal(0, 1, 5), "run")
        for name, measured, truth in (
            ("t", t, 10), ("fieller", fieller, 2), ("wilson", wilson, 0.2), ("g", g, 1),
        ):  # fmt: skip
            covers[name] += measured.low <= truth <= measured.high
    for name, count in covers.items():
        assert 0.92 < count / repeats < 0.98, name


def test_documented_calibration_is_the_measured_one():
    root = Path(__file__).parents[2]
    path = root / "benchmarks" / "calibration.py"
    spec = importlib.util.spec_from_file_location("calibration", path)
    calibration = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(calibration)
    results = json.loads(calibration.RESULTS.read_text())
    printed = calibration.MARKERS[0] + calibration.tables(results) + calibration.MARKERS[1]
    assert printed in calibration.DOCS.read_text()
    # The simulated cells that this page's advice rests on.
    covered = {(c["interval"], c["population"], c["n"]): c["covered"] for c in results["coverage"]}
    for n in calibration.REPLICATES:
        assert 0.93 < covered["mean, t", "normal", n] < 0.97
    # From where BCa is chosen over t, it covers no less.
    for population in calibration.POPULATIONS:
        for n in (10, 30):
            bootstrap = covered["mean, expanded BCa bootstrap", population, n]
            assert bootstrap > covered["mean, t", population, n] - 0.015


def test_an_interval_on_the_logit_scale_by_hand():
    """Shares .7, .8, .9: mean .8, standard error .0577, t 4.303; logit 1.386 +- .2484 / .16."""
    found = stats.t_interval([0.7, 0.8, 0.9], "run", bounds=(0, 1))
    reach = 4.302653 * 0.1 / 3**0.5 / 0.16
    ends = [1 / (1 + np.exp(-(np.log(4) + side * reach))) for side in (-1, 1)]
    assert (found.low, found.high) == pytest.approx(ends, rel=1e-5)
    assert stats.t_interval([0.7, 0.8, 0.9], "run").high > 1 > found.high
    scaled = stats.t_interval([1.4, 1.6, 1.8], "run", bounds=(0, 2))
    assert (scaled.low, scaled.high) == pytest.approx([2 * end for end in ends], rel=1e-5)
    for few in ([0.0, 0.0, 0.001], [0.0, 1.0, 1.0], [1.0, 0.999, 1.0]):
        for measured in (
            stats.t_interval(few, "run", bounds=(0, 1)),
            stats.cluster_bootstrap(few, lambda table: table, "run", bounds=(0, 1)),
            stats.hierarchical_bootstrap([[x] for x in few], np.ravel, "run", bounds=(0, 1)),
        ):
            assert 0 < measured.low < measured.value < measured.high < 1
            assert "logit" in measured.method


def test_pairs_needed_is_what_tables_give():
    """One-sample t, two-sided 5%, power .8 (Cohen's tables): d 1, .8, .5, .2."""
    needed = [stats.pairs_needed(d, alpha=0.025) for d in (1.0, 0.8, 0.5, 0.2)]
    assert needed == [10, 15, 34, 199]
