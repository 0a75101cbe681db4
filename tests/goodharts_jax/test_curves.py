"""The Goodhart curve, on returns made up for the purpose."""

import numpy as np
import pytest

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


def test_a_mode_has_its_returns_per_1000_steps_and_the_root_of_its_divergence():
    """Two runs, two checkpoints; halves of the worlds are averaged where a run is told of."""
    halves = np.array([[[1, 3], [5, 7]], [[2, 4], [6, 8]]], np.float32) / 1000
    unknown = np.full((2, 2, 2), np.nan)
    watch = Watch(
        energy=halves,
        reward=10 * halves,
        food=unknown,
        poison=unknown,
        deaths=unknown,
        items=unknown,
        kl=np.array([[0.04, 0.25], [-1e-9, 1.0]], np.float32),
    )
    curve = curves.curve([100, 200], [42, 43], watch)
    assert curve.steps == (100, 200) and [run.seed for run in curve.runs] == [42, 43]
    assert curve.runs[0].sqrt_kl == pytest.approx((0.2, 0.5))
    assert curve.runs[1].sqrt_kl == pytest.approx((0.0, 1.0))
    assert curve.runs[0].true_return == pytest.approx((2, 6))
    assert curve.runs[1].proxy_return == pytest.approx((30, 70))
    assert curve.end.value == pytest.approx((6 + 7) / 2)
