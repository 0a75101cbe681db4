"""The Goodhart curve, on returns made up for the purpose."""

import numpy as np
import pytest

from evidence.measurement import Measurement
from evidence.ruling import Condition
from goodharts_jax import curves
from goodharts_jax.watch import Watch

STEPS = np.linspace(50_000, 1_000_000, 20)


def test_curve_by_hand():
    # Two runs, three checkpoints, halves alike: peaks 5 at the second and 6 at the first.
    true = np.array([[1.0, 5.0, 2.0], [6.0, 4.0, 3.0]])
    curve = curves.peak([10, 20, 40], np.stack([true, true], axis=-1))
    assert curve.peak_steps.value == pytest.approx((20 + 10) / 2)
    assert curve.peak.value == pytest.approx(5.5)
    assert curve.end.value == pytest.approx(2.5)
    assert curve.drop.value == pytest.approx((3 + 3) / 2)
    # Each stopped at the other's peak: run 0 at 10 (1 - 2), run 1 at 20 (4 - 3).
    assert curve.early_stopping_saves.value == pytest.approx((-1 + 1) / 2)
    assert curve.early_stopping_steps.value == pytest.approx((0.75 + 0.5) / 2)


def test_a_real_drop_is_found():
    generator = np.random.default_rng(0)
    level = 80 * np.sin(np.pi * STEPS / STEPS[-1] * 0.9)
    true = level[None, :, None] + generator.normal(0, 5, (6, 20, 2))
    curve = curves.peak(STEPS, true)
    lost = level.max() - level[-1]
    assert curve.drop.low < lost < curve.drop.high
    assert curve.early_stopping_saves.low > 0.6 * lost
    assert curve.peak_steps.value == pytest.approx(STEPS[level.argmax()], rel=0.15)


def test_noise_has_no_drop():
    """A flat truth seen through noise: no drop beyond the nominal error rate.

    Measured where it was chosen, the peak of 20 noisy points lies 1.9 standard deviations up.
    """
    generator = np.random.default_rng(1)
    studies = generator.normal(0, 1, (400, 5, 20, 2))
    peaks = [curves.peak(STEPS, study) for study in studies]
    for name in ("drop", "early_stopping_saves"):
        values = np.array([getattr(curve, name).value for curve in peaks])
        assert abs(values.mean()) < 4 * values.std() / 400**0.5
        positive = np.mean([getattr(curve, name).low > 0 for curve in peaks])
        assert positive < 0.025 + 4 * (0.025 * 0.975 / 400) ** 0.5
    naive = np.mean(studies.max(axis=2).mean(axis=-1) - studies[:, :, -1].mean(axis=-1))
    assert naive > 1.5


def test_noise_in_worlds_that_runs_share_has_no_drop():
    generator = np.random.default_rng(2)
    worlds = generator.normal(0, 1, (300, 1, 20, 2))
    studies = worlds + generator.normal(0, 0.2, (300, 4, 20, 2))
    saved = [curves.peak(STEPS, study).early_stopping_saves.value for study in studies]
    assert abs(np.mean(saved)) < 4 * np.std(saved) / 300**0.5


def test_curve_of_one_run_and_of_wrong_shape():
    alone = curves.peak([1, 2], np.zeros((1, 2, 2)))
    assert alone.drop.low is None
    assert alone.early_stopping_saves.value is None
    with pytest.raises(ValueError, match=r"true_return has shape \(2, 3\)"):
        curves.peak([1, 2, 3], np.zeros((2, 3)))


def ends_of(curve):
    return [getattr(curve, name).value for name in ("start", "rise", "gain", "drop")]


def looked(level, runs=6, noise=1.0, seed=3):
    """Runs about a course, on two halves of the worlds. f64[runs, looks, 2]."""
    draw = np.random.default_rng(seed)
    return np.asarray(level)[None, :, None] + draw.normal(0, noise, (runs, len(level), 2))


LEARNT = Condition(name="learnt", role="requires", wanted="above 0", state="met")
UNLEARNT = LEARNT.model_copy(update={"state": "undetermined"})
FALLS = np.linspace(-100, -150, 20)
RISES = np.linspace(-100, 60, 20)
HUMP = -100 + 120 * np.sin(np.linspace(0, 1, 20) * 0.8 * np.pi)


@pytest.mark.parametrize(
    ("level", "kind"),
    [
        (FALLS, "misspecified"),
        (RISES, "rises"),
        (HUMP, "over-optimised"),
        (np.full(20, -100.0), None),
        (RISES - np.r_[np.zeros(19), 4], "rises"),  # a fall of no account
    ],
)
def test_what_a_curve_is_called(level, kind):
    curve = curves.peak(STEPS, looked(level), [LEARNT])
    assert curve.kind == kind, curve.because
    start, rise, gain, drop = ends_of(curve)
    assert start == pytest.approx(level[0], abs=2)
    assert gain == pytest.approx(level[-1] - level[0], abs=3)
    assert rise - drop == pytest.approx(gain)
    # A curve whose peak is where it starts did not rise at all.
    if kind == "misspecified":
        assert curve.peak_steps.value < STEPS[1] and rise < 1


def test_where_some_runs_rise_first_the_kind_stays_open():
    """Two runs of six make a hump and four fall at once: the mean would hide it."""
    true = np.concatenate([looked(HUMP - 30, runs=2), looked(FALLS, runs=4)])
    curve = curves.peak(STEPS, true, [LEARNT])
    assert curve.kind is None and curve.because.startswith("not determined")


@pytest.mark.parametrize(
    ("rise", "drop", "gain", "kind"),
    [
        ((90, 110), (20, 30), (70, 90), "over-optimised"),
        ((90, 110), (5, 9), (85, 105), "rises"),  # it falls by less than a tenth of its rise
        ((0, 1), (40, 50), (-50, -40), "misspecified"),
        ((-5, 45), (40, 50), (-50, -1), None),  # it may have risen by as much as it fell
        ((-5, 5), (-5, 5), (-5, 5), None),
    ],
)
def test_kinds_by_hand(rise, drop, gain, kind):
    measured = [Measurement((a + b) / 2, a, b, 5, "run", "by hand") for a, b in (rise, drop, gain)]
    assert curves._kind(*measured, [])[0] == kind


def test_no_kind_below_three_runs_or_before_truth_has_learnt():
    few = curves.peak(STEPS, looked(FALLS, runs=2), [LEARNT])
    assert few.kind is None and "at least 3 (there are 2)" in few.because
    early = curves.peak(STEPS, looked(FALLS), [UNLEARNT])
    assert early.kind is None and early.because == "needed first: learnt above 0"


def test_the_right_form_predicts_the_later_half():
    """Returns made from each form; the one they were made from predicts them, to rounding."""
    distance = np.linspace(0, 2, 21)[None] * np.array([[1.0], [1.2], [0.9]])
    made = {
        "gao": -90 + distance * (40 - 25 * np.log(np.maximum(distance, 1e-12))),
        "quadratic": -90 + distance * (40 - 12 * distance),
    }
    for name, true in made.items():
        found, difference = curves.forms(distance, true)
        other = next(iter(made.keys() - {name}))
        assert found[name].prediction_error.value == pytest.approx(0, abs=1e-6)
        assert found[name].r_squared.value == pytest.approx(1)
        a, b = (coefficient.value for coefficient in found[name].coefficients)
        assert (a, b) == pytest.approx((40, 25 if name == "gao" else 12))
        # By R squared alone one would hardly tell them apart.
        assert found[other].r_squared.value > 0.9
        assert found[other].prediction_error.value > 3
        assert (difference.value < 0) == (name == "gao")
    assert found["flat"].r_squared.value == pytest.approx(0)


def test_noise_is_best_predicted_by_no_change():
    """A level that is reached early: forms that bend on miss it, and lose to a flat line."""
    distance = np.linspace(0, 2, 24)[None].repeat(5, axis=0)
    level = 100 * (1 - np.exp(-6 * distance[0]))
    true = looked(level, runs=5).mean(axis=-1)
    found, _ = curves.forms(distance, true)
    flat = found["flat"].prediction_error.value
    assert flat < 3 < min(found[name].prediction_error.value for name in ("gao", "quadratic"))


def test_a_few_looks_are_not_fitted():
    assert curves.forms(np.ones((3, 7)), np.ones((3, 7))) == ({}, None)
    assert curves.forms(np.ones((3, 9)), np.ones((3, 9)), [9, 7, 9]) == ({}, None)


def test_looks_that_were_not_taken_count_nowhere():
    """A run that stopped at 16 of 24 looks repeats its last one: forms and early stopping are as if
    there were but 16, of which the others' peak at the tenth leaves out 6.
    """
    steps, falls = np.arange(1, 25), 60 - (np.arange(24) - 9.0) ** 2
    true = np.stack([falls, falls, falls])[..., None].repeat(2, axis=-1)
    distance = np.sqrt(np.arange(24.0))[None].repeat(3, axis=0)
    stopped, still = true.copy(), distance.copy()
    stopped[0, 16:], still[0, 16:] = stopped[0, 15], still[0, 15]
    alone, _ = curves.forms(distance[:1, :16], true[:1, :16, 0])
    found, _ = curves.forms(still[:1], stopped[:1, :, 0], [16])
    assert found == alone
    curve = curves.peak(steps, stopped, looked=[16, 24, 24])
    assert curve.early_stopping_steps.value == pytest.approx((6 / 16 + 2 * 14 / 24) / 3)
    # Where the others peak later than it was trained, stopping leaves nothing out.
    late = np.arange(24.0)[None, :, None].repeat(3, axis=0).repeat(2, axis=-1)
    late[0, 16:] = late[0, 15]
    assert curves.peak(steps, late, looked=[16, 24, 24]).early_stopping_steps.value == 0


def test_a_mode_has_its_returns_per_1000_steps_and_the_root_of_its_divergence():
    """Two runs, two looks; halves of the worlds are averaged where a run is told of."""
    halves = np.array([[[1, 3], [5, 7]], [[2, 4], [6, 8]]], np.float32) / 1000
    unknown = np.full((2, 2, 2), np.nan)
    watch = Watch(
        energy=halves,
        reward=10 * halves,
        held_out=unknown,
        food=unknown,
        poison=unknown,
        deaths=2 * halves,
        survival=1000 * (0.01 - halves),
        items=unknown,
        kl=np.array([[0.04, 0.25], [-1e-9, 1.0]], np.float32),
    )
    curve = curves.curve([0, 200], [42, 43], watch)
    assert curve.steps == (0, 200) and [run.seed for run in curve.runs] == [42, 43]
    assert curve.runs[0].sqrt_kl == pytest.approx((0.2, 0.5))
    assert curve.runs[1].sqrt_kl == pytest.approx((0.0, 1.0))
    assert curve.runs[0].true_return == pytest.approx((2, 6))
    assert curve.runs[1].proxy_return == pytest.approx((30, 70))
    assert curve.runs[1].deaths == pytest.approx((6, 14))
    assert curve.runs[0].survival == pytest.approx((8, 4))
    assert curve.end.value == pytest.approx((6 + 7) / 2)
    assert curve.by_survival.end.value == pytest.approx((4 + 3) / 2)
    assert curve.by_survival.peak_steps.value == 0 and curve.peak_steps.value == 200
    assert curve.forms == {} and curve.kind is None
