"""Watching a training as it goes: metrics.jsonl, a progress bar or a dashboard, a tracker."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.live import Live
from rich.table import Table

from evidence.runtime import files, progress, tracking
from evidence.runtime.files import is_first_process
from goodharts_jax.ppo import History
from goodharts_jax.settings import Experiment
from goodharts_jax.training import Observer

Labels = Sequence[tuple[str, int]]
"""Mode and seed of each run of a population."""

_SPARKS = " ▁▂▃▄▅▆▇█"
_SHOWN = ("food", "poison", "deaths", "reward", "value_loss", "entropy")
_WIDTH = 24


@contextmanager
def observing(
    labels: Labels,
    steps: int,
    settings: Experiment,
    folder: Path,
    console: Console,
    updates: int | None = None,
) -> Iterator[Observer]:
    """All that wants to know of a training, as one observer of it.

    Args:
      labels: of the runs.
      steps: world steps of one run in an update.
      settings: which watchers there are.
      folder: of `metrics.jsonl` and event files.
      console: of the bar or the dashboard.
      updates: of each run; None for as many as the settings say.
    """
    total = (updates or settings.num_updates) * steps * len(labels)
    with ExitStack() as stack:
        watchers: list[Observer] = [_log(labels, steps, folder / "metrics.jsonl")]
        if settings.tracker != "none":
            log = stack.enter_context(tracking.tracking(settings.tracker, "goodhart", folder))
            watchers.append(_tracked(labels, steps, log))
        if settings.dashboard:
            watchers.append(stack.enter_context(_dashboard(labels, steps, total, console)))
        else:
            title = f"training {len(labels)} runs"
            advance = stack.enter_context(
                progress.bar(title, total, "steps", console, compiles=True)
            )
            watchers.append(lambda _, history: advance(int(_made(history).sum()) * steps))

        def observe(first_update: int, history: History) -> None:
            for watcher in watchers:
                watcher(first_update, history)

        yield observe


def _log(labels: Labels, steps: int, path: Path) -> Observer:
    """One line a run and update. A resumed training tells its past first, so it starts afresh."""
    if is_first_process():
        path.unlink(missing_ok=True)

    def observe(first_update: int, history: History) -> None:
        for mode, seed, taken, numbers in _told(labels, steps, first_update, history):
            files.append_jsonl(path, {"mode": mode, "seed": seed, "steps": taken, **numbers})

    return observe


def _tracked(labels: Labels, steps: int, log: tracking.Log) -> Observer:
    def observe(first_update: int, history: History) -> None:
        for mode, seed, taken, numbers in _told(labels, steps, first_update, history):
            log(f"{mode}-{seed}", taken, numbers)

    return observe


def _told(
    labels: Labels, steps: int, first_update: int, history: History
) -> Iterator[tuple[str, int, int, dict[str, float]]]:
    """Mode, seed, steps and numbers of each run's every update that was made."""
    for update, run in np.argwhere(_made(history).T):
        (mode, seed), columns = labels[run], history._asdict().items()
        numbers = {name: float(column[run, update]) for name, column in columns}
        yield mode, seed, int(first_update + update + 1) * steps, numbers


@contextmanager
def _dashboard(labels: Labels, steps: int, total: int, console: Console) -> Iterator[Observer]:
    """A row a mode, its runs averaged, each number with its recent course."""
    past: dict[str, list[np.ndarray]] = {}
    clock: deque[tuple[float, int]] = deque([(time.perf_counter(), 0)], maxlen=10)
    names = list(dict.fromkeys(mode for mode, _ in labels))

    def table() -> Table:
        (then, before), (now, done) = clock[0], clock[-1]
        rate = (done - before) / (now - then) if now > then else 0.0
        drawn = Table(title=f"{done:,} of {max(total, done):,} steps, {rate:,.0f} steps/s")
        drawn.add_column("mode")
        for heading in ("efficiency", *_SHOWN):
            drawn.add_column(heading)
        if past:
            whole = {name: np.concatenate(columns, axis=1) for name, columns in past.items()}
            eaten = whole["food"] + whole["poison"]
            whole["efficiency"] = whole["food"] / np.maximum(eaten, 1e-12)
            for name in names:
                own = [run for run, (mode, _) in enumerate(labels) if mode == name]
                courses = [_mean(whole[column][own]) for column in ("efficiency", *_SHOWN)]
                drawn.add_row(name, *(f"{sparkline(c)} {c[-1]:.3g}" for c in courses))
        return drawn

    with Live(table(), console=console, refresh_per_second=2) as live:

        def observe(first_update: int, history: History) -> None:
            for name, column in history._asdict().items():
                past.setdefault(name, []).append(column)
            done = clock[-1][1] + int(_made(history).sum()) * steps
            clock.append((time.perf_counter(), done))
            live.update(table())

        yield observe


def _mean(runs: np.ndarray) -> np.ndarray:
    """Over the runs that were still trained, as long as one was. f64[updates]."""
    return np.nanmean(runs[:, ~np.isnan(runs).all(axis=0)], axis=0)


def sparkline(course: np.ndarray) -> str:
    """The last stretch of a course of numbers, as a line of bars."""
    parts = np.array_split(course, min(_WIDTH, len(course)))
    means = np.array([part.mean() for part in parts])
    low, height = means.min(), np.ptp(means)
    heights = (means - low) / height if height > 0 else np.full(len(means), 0.5)
    return "".join(_SPARKS[1 + round(h * (len(_SPARKS) - 2))] for h in heights)


def _made(history: History) -> np.ndarray:
    """Which updates were made: not those of a run that had stopped. bool[runs, updates]."""
    return ~np.isnan(history.food)
