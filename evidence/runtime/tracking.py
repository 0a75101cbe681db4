"""Numbers of a run for a tracker: TensorBoard's event files, or trackio's local database. Nothing
leaves the machine.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Literal

from evidence.measurement import Measurement
from evidence.runtime.files import is_first_process

Tracker = Literal["none", "tensorboard", "trackio"]
Log = Callable[[str, int, Mapping[str, float]], None]
"""Told the name of a course, a step of it, and numbers by name."""

_NEEDS = {"tensorboard": "tensorboardX", "trackio": "trackio"}


def require(tracker: Tracker) -> None:
    """Say before a run begins that its tracker is not installed.

    Raises:
      ValueError: how to install it.
    """
    module = _NEEDS.get(tracker)
    if module is not None and importlib.util.find_spec(module) is None:
        raise ValueError(
            f"tracker={tracker} needs an extra: pip install 'goodharts-jax[{tracker}]'"
        )


@contextmanager
def tracking(tracker: Tracker, project: str, folder: Path) -> Iterator[Log]:
    """What takes a run's numbers while it lasts.

    TensorBoard's are written as they come, to `folder/tensorboard`, a folder a course. Those of
    trackio, which takes one course at a time, are written at the end, even of a run that failed:
    to its own place (`TRACKIO_DIR`), each course a run called after the folder.

    Args:
      tracker: which.
      project: in trackio; the experiment's name.
      folder: of the run.
    """
    if tracker == "none" or not is_first_process():
        yield lambda course, step, numbers: None
        return
    require(tracker)
    module: Any = importlib.import_module(_NEEDS[tracker])
    with ExitStack() as stack:
        if tracker == "tensorboard":
            yield _tensorboard(module, folder / "tensorboard", stack)
        else:
            yield _trackio(module, project, folder.name, stack)


def measured(log: Log, measurements: Iterable[tuple[str, Measurement]]) -> None:
    """Log what was found, a course a thing: `modes.proxy` with `intervals/selectivity`, say.

    Args:
      log: of `tracking`.
      measurements: by place; those of `evidence.Results.measurements`.
    """
    found: dict[str, dict[str, float]] = defaultdict(dict)
    for place, measurement in measurements:
        parts = place.split(".")
        if measurement.value is not None:
            found[".".join(parts[:2])]["/".join(parts[2:] or parts)] = measurement.value
    for course, numbers in found.items():
        log(course, 0, numbers)


def _tensorboard(module: Any, folder: Path, stack: ExitStack) -> Log:
    writers: dict[str, Any] = {}

    def log(course: str, step: int, numbers: Mapping[str, float]) -> None:
        if course not in writers:
            writers[course] = stack.enter_context(module.SummaryWriter(str(folder / course)))
        for name, number in numbers.items():
            writers[course].add_scalar(name, number, step)

    return log


def _trackio(module: Any, project: str, prefix: str, stack: ExitStack) -> Log:
    kept: dict[str, list[tuple[int, dict[str, float]]]] = defaultdict(list)

    def write() -> None:
        for course, rows in kept.items():
            quiet = {"embed": False, "auto_log_gpu": False, "auto_log_cpu": False}
            run = module.init(project, name=f"{prefix}/{course}", **quiet)
            for step, numbers in rows:
                run.log(numbers, step=step)
            module.finish()

    stack.callback(write)
    return lambda course, step, numbers: kept[course].append((step, dict(numbers)))
