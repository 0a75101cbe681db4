"""The Goodhart curve: a mode's own and its true return under growing optimisation pressure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from evidence import stats
from evidence.measurement import Measurement
from goodharts_jax.results import UNIT, GoodhartCurve, Peak, RunCurve
from goodharts_jax.watch import Watch


def peak(steps: ArrayLike, true_return: ArrayLike) -> Peak:
    """Where the true return peaks under growing pressure, and what is lost after it.

    The peak is chosen on one half of the evaluation worlds and measured on the other, and the
    other way round, then averaged: the highest of many noisy points, measured where it was
    chosen, lies above the truth, and a drop from it would be found in pure noise.

    Early stopping stops each run where the other runs' mean peaks: what one who can't see this
    run's true return could do.

    Args:
      steps: [checkpoints], training steps at each evaluation (or any other pressure), rising.
      true_return: f[runs, checkpoints, 2], what is truly gained, on the two halves of the worlds.

    Raises:
      ValueError: the shapes don't fit, or fewer than two checkpoints.
    """
    pressure = np.asarray(steps, dtype=np.float64)
    true = np.asarray(true_return, dtype=np.float64)
    if true.ndim != 3 or true.shape[1:] != (len(pressure), 2) or len(pressure) < 2:
        raise ValueError(
            f"true_return has shape {true.shape}, not (runs, {len(pressure)}, 2) "
            "with at least two checkpoints"
        )
    runs = np.arange(len(true))
    chosen, measured = true, true[..., ::-1]
    peaks = chosen.argmax(axis=1)
    highest = measured[runs[:, None], peaks, [0, 1]].mean(axis=1)
    end = true[:, -1].mean(axis=1)
    if len(true) > 1:
        # Runs may share their evaluation worlds, so here too a half is judged by the other.
        stops = ((chosen.sum(axis=0) - chosen) / (len(true) - 1)).argmax(axis=1)
        saved = measured[runs[:, None], stops, [0, 1]].mean(axis=1) - end
        left_out = 1 - pressure[stops].mean(axis=1) / pressure[-1]
        saves, leaves_out = stats.interval(saved, UNIT), stats.interval(left_out, UNIT)
    else:
        saves = Measurement(None, None, None, 1, UNIT, "undefined: needs another run")
        leaves_out = saves
    return Peak(
        peak_steps=stats.interval(pressure[peaks].mean(axis=1), UNIT),
        peak=stats.interval(highest, UNIT),
        end=stats.interval(end, UNIT),
        drop=stats.interval(highest - end, UNIT),
        early_stopping_saves=saves,
        early_stopping_steps=leaves_out,
    )


def curve(steps: Sequence[int], seeds: Sequence[int], watch: Watch) -> GoodhartCurve:
    """The curve of one mode.

    Args:
      steps: training steps at each checkpoint, two at least.
      seeds: of its runs.
      watch: what was counted at each. Leading axes [runs, checkpoints].
    """
    runs = tuple(
        RunCurve(
            seed=seed,
            sqrt_kl=tuple(np.sqrt(np.maximum(watch.kl[run], 0)).tolist()),
            proxy_return=tuple((1000 * watch.reward[run].mean(axis=-1)).tolist()),
            true_return=tuple((1000 * watch.energy[run].mean(axis=-1)).tolist()),
        )
        for run, seed in enumerate(seeds)
    )
    return GoodhartCurve(**dict(peak(steps, 1000 * watch.energy)), steps=tuple(steps), runs=runs)
