"""Where the seconds of a run go: `timings=true` ends a run with one line that says so.

A run has parts, by the clock and in order: what comes before the study (the interpreter, imports,
settings), then what the study names by `part`. Within one part threads may work side by side on
parts of their own, whose seconds are added up. Beside them stands what JAX does while they run:
tracing, lowering, compiling, loading of compiled programs. Two threads may do that at once, so
these are the seconds in which any does.
"""

from __future__ import annotations

import os
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from rich.console import Console

_SPANS = {
    "/jax/core/compile/jaxpr_trace_duration": "tracing",
    "/jax/core/compile/jaxpr_to_mlir_module_duration": "lowering",
    "/jax/core/compile/backend_compile_duration": "compiling",
}
_LOADING = "/jax/compilation_cache/cache_retrieval_time_sec"


class _Thread(threading.local):
    """What a thread is within: the seconds of the parts in each part that it has begun."""

    def __init__(self) -> None:
        self.within = [0.0]


class Timings:
    """Seconds of a run.

    Attributes:
      parts: of each part, without the parts within it, in the order in which they ended.
      beside: the same of what other threads than the first did, all together.
      loaded: of each compiled program that was loaded.
    """

    def __init__(self, before: float = 0.0):
        """`before`: seconds that were spent before this."""
        self._before = before
        self._started = time.perf_counter()
        self._thread = _Thread()
        self._first, self._adding = threading.get_ident(), threading.Lock()
        self._spans: dict[str, list[tuple[float, float]]] = defaultdict(list)
        self.parts: dict[str, float] = {}
        self.beside: dict[str, float] = {}
        self.loaded: list[float] = []

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Count the seconds of what is done here to the part of that name."""
        within = self._thread.within
        parts = self.parts if threading.get_ident() == self._first else self.beside
        if parts is self.parts and not parts and len(within) == 1:
            parts["start"] = self._before + time.perf_counter() - self._started
        began = time.perf_counter()
        within.append(0.0)
        try:
            yield
        finally:
            taken = time.perf_counter() - began
            inner = within.pop()
            within[-1] += taken
            with self._adding:
                parts[name] = parts.get(name, 0.0) + taken - inner

    def heard(self, event: str, start_time: float, end_time: float, **_: str | int) -> None:
        """A listener to JAX's time spans."""
        if event in _SPANS:
            self._spans[_SPANS[event]].append((start_time, end_time))

    def heard_of(self, event: str, duration_secs: float, **_: str | int) -> None:
        """A listener to JAX's durations."""
        if event == _LOADING:
            self.loaded.append(duration_secs)

    def told(self) -> str:
        """All in one line."""
        total = self._before + time.perf_counter() - self._started
        rest = total - sum(self.parts.values())
        by_clock = {**self.parts, "rest": rest, "total": total}
        of_jax = {name: covered(self._spans[name]) for name in _SPANS.values()}
        of_jax["loading"] = sum(self.loaded)
        of_jax["compiling"] = max(0.0, of_jax["compiling"] - of_jax["loading"])
        side_by_side = f"In threads side by side: {_row(self.beside)}. " if self.beside else ""
        return (
            f"Seconds: {_row(by_clock)}. {side_by_side}Of these {_row(of_jax)} "
            f"(programs: {len(self._spans['compiling'])}, loaded: {len(self.loaded)})."
        )


def covered(spans: list[tuple[float, float]]) -> float:
    """The length of what intervals cover together, however they overlap."""
    length, reached = 0.0, float("-inf")
    for began, ended in sorted(spans):
        length += max(0.0, ended - max(began, reached))
        reached = max(reached, ended)
    return length


def _row(seconds: dict[str, float]) -> str:
    return ", ".join(f"{name} {taken:.1f}" for name, taken in seconds.items())


_current: ContextVar[Timings | None] = ContextVar("timings", default=None)


@contextmanager
def part(name: str) -> Iterator[None]:
    """What is done here is a part of the run, such as "training"; nothing where nobody counts."""
    timings = _current.get()
    if timings is None:
        yield
        return
    with timings.part(name):
        yield


@contextmanager
def counting(wanted: bool, console: Console) -> Iterator[None]:
    """Count the seconds of a run and say at its end where they went, if that is wanted."""
    if not wanted:
        yield
        return
    from jax import monitoring

    timings = Timings(before=_age())
    monitoring.register_event_time_span_listener(timings.heard)
    monitoring.register_event_duration_secs_listener(timings.heard_of)
    token = _current.set(timings)
    try:
        yield
        console.print(timings.told(), soft_wrap=True, highlight=False)
    finally:
        _current.reset(token)
        monitoring.unregister_event_time_span_listener(timings.heard)
        monitoring.unregister_event_duration_listener(timings.heard_of)


def _age() -> float:
    """Seconds since this process began; 0 where the system doesn't say."""
    status = Path("/proc/self/stat")
    if not status.is_file():
        return 0.0
    ticks = int(status.read_text().rpartition(")")[2].split()[19])
    since_boot = float(Path("/proc/uptime").read_text().split()[0])
    return max(0.0, since_boot - ticks / os.sysconf("SC_CLK_TCK"))
