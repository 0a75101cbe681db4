"""The oracle beside every SHACL engine that is installed: `python -m benchmarks engines`.

Every engine is given the same graph, shapes and claims as texts, in a process of its own, and they
are asked in turn, round after round. Times are processor seconds, of all threads, and seconds on
the clock; what an engine does before its first claim is timed apart. All must find the same claims
broken. `pip install 'goodharts-jax[engines]'` installs the others; those absent are named.
"""

from __future__ import annotations

import importlib.util
import multiprocessing
import statistics
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import binom

from benchmarks.shacl_engines import ENGINES, OURS, Engine, Key, Task, written
from benchmarks.timing import peak_mb, save
from epistemic.decks.synthetic import BASE, make_synthetic
from epistemic.logic.constraints import Constraints
from epistemic.logic.graph import TYPE, Graph
from epistemic.logic.oracle import Oracle

SIZES = (2_000, 100_000)
ROUNDS = ((1.0, 25), (20.0, 6))
"""How often an engine is asked whose batch takes at most so many seconds; a slower one, once."""
LEAST_S = 0.2
"""Of asking one engine the same in a round."""
NOTE = (
    "claims as texts to verdicts; medians of rounds in which all took turns, with 95% intervals of "
    "the median"
)
PATHS = ("mouth", "length", "mouthElevation", "country", "width", "flow", "zone")


class Batch(NamedTuple):
    """Claims that a report tells apart: no two share subject and predicate.

    Attributes:
      name: of the batch.
      claims: as N-Triples.
      number: of claims.
    """

    name: str
    claims: str
    number: int


def task_of(triples: int) -> tuple[Task, list[Batch]]:
    """Made-up rivers, what SHACL's own words say of them, and claims about every river.

    Half of the values are the predicate's own, half another's. One claim a river is what a report
    tells apart at a glance; one a river and predicate is the best case of an engine that reads the
    graph anew.
    """
    made = make_synthetic(triples, seed=1)
    kept = tuple(rule for rule in made.constraints.rules if rule.parameter and rule.classes)
    graph = Oracle(made.graph, made.constraints)
    terms, said = graph.graph.terms, graph.compiled.by_predicate
    classes = {terms[o] for o in np.unique(said[graph.graph.ids[TYPE]][:, 2])}
    shapes = Constraints(kept, complete=frozenset(classes)).as_shacl()
    text = written([(terms[s], terms[p], terms[o]) for s, p, o in np.concatenate([*said.values()])])
    task = Task(text, shapes.serialize(format="turtle"), tuple(sorted(classes)))
    many = list(_claims(graph.graph, said))
    rivers = len(many) // len(PATHS)
    drawn = np.random.default_rng(2).integers(len(PATHS), size=rivers) * rivers
    few = [many[place] for place in (drawn + np.arange(rivers)).tolist()]
    return task, [
        Batch("one claim a subject", written(few), len(few)),
        Batch("one claim a subject and predicate", written(many), len(many)),
    ]


def _claims(graph: Graph, said: dict[int, np.ndarray]) -> Iterator[tuple[str, str, str]]:
    """A claim of each predicate about each river, predicate after predicate."""
    rng = np.random.default_rng(1)
    rivers = np.unique(said[graph.ids[BASE + PATHS[0]]][:, 0]).tolist()
    values = [said[graph.ids[BASE + path]][:, 2] for path in PATHS]
    for i, path in enumerate(PATHS):
        for river in rivers:
            pool = values[i] if rng.random() < 0.5 else values[(i + 3) % len(PATHS)]
            yield graph.terms[river], BASE + path, graph.terms[pool[rng.integers(len(pool))]]


# ---- in an engine's own process ----


class Times(NamedTuple):
    """Processor seconds, of all threads, and seconds on the clock."""

    cpu_s: float
    wall_s: float


_made: dict[str, Engine] = {}


def _timed_since(cpu: float, wall: float, times: int = 1) -> Times:
    return Times((time.process_time() - cpu) / times, (time.perf_counter() - wall) / times)


def prepare(name: str, task: Task) -> Times:
    """Make the engine in this process."""
    cpu, wall = time.process_time(), time.perf_counter()
    try:
        _made[name] = ENGINES[name].make(task)
    except BaseException as error:  # a panic in Rust is no Exception
        raise RuntimeError(f"{name}: {error!r}"[:500]) from None
    return _timed_since(cpu, wall)


def warm(name: str, claims: str) -> Times:
    """The time of an engine's first batch, with whatever it compiles or puts off until then."""
    cpu, wall = time.process_time(), time.perf_counter()
    try:
        _made[name].ask(claims)
    except BaseException as error:
        raise RuntimeError(f"{name}: {error!r}"[:500]) from None
    return _timed_since(cpu, wall)


def ask(name: str, claims: str) -> tuple[set[Key], Times]:
    """What the engine finds broken, and the time that one batch takes."""
    engine = _made[name]
    cpu, wall, times = time.process_time(), time.perf_counter(), 0
    try:
        while not times or time.perf_counter() - wall < LEAST_S:
            report = engine.ask(claims)
            times += 1
        return engine.broken(report, claims), _timed_since(cpu, wall, times)
    except BaseException as error:
        raise RuntimeError(f"{name}: {error!r}"[:500]) from None


# ---- all of them side by side ----


class Contestant(NamedTuple):
    """An engine with its process, the memory that this had before, and the time to make it."""

    name: str
    pool: ProcessPoolExecutor
    before_mb: float
    prepared: Times


def contestants(task: Task) -> Iterator[Contestant]:
    """Every engine that is installed and takes the task; the others are named."""
    for name, package in ENGINES.items():
        if importlib.util.find_spec(package.module) is None:
            print(f"{name}: not installed; pip install 'goodharts-jax[engines]'", file=sys.stderr)
            continue
        pool = ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))
        try:
            before = pool.submit(peak_mb).result()
            yield Contestant(name, pool, before, pool.submit(prepare, name, task).result())
        except RuntimeError as error:
            print(f"{name}: left out, {error}", file=sys.stderr)
            pool.shutdown()


def measured(triples: int) -> Iterator[dict[str, Any]]:
    """Both batches on one size of graph, by every engine, each in fresh processes."""
    task, batches = task_of(triples)
    for batch in batches:
        all_ = list(contestants(task))
        row = compared(all_, batch)
        for one in all_:
            peak = one.pool.submit(peak_mb).result()
            row["engines"][one.name]["added_mb"] = round(peak - one.before_mb, 1)
            one.pool.shutdown()
        yield {"triples": task.graph.count("\n"), **row}


def compared(all_: list[Contestant], batch: Batch) -> dict[str, Any]:
    """A batch, asked of all in turn; ratios are of the same round."""
    times: dict[str, list[Times]] = {one.name: [] for one in all_}
    first = {one.name: one.pool.submit(warm, one.name, batch.claims).result() for one in all_}
    found: dict[str, set[Key]] = {}
    rounds = {name: rounds_of(taken.wall_s) for name, taken in first.items()}
    for number in range(max(rounds.values())):
        for one in all_:
            if number < rounds[one.name]:
                found[one.name], taken = one.pool.submit(ask, one.name, batch.claims).result()
                times[one.name].append(taken)
        print(f"  {batch.name}: round {number + 1} done", flush=True)
    rows = {
        one.name: {
            "version": version(ENGINES[one.name].distribution),
            "claims_per_cpu_second": batch.number / _median(t.cpu_s for t in times[one.name]),
            "claims_per_second": batch.number / _median(t.wall_s for t in times[one.name]),
            "prepare_cpu_s": one.prepared.cpu_s,
            "first_batch_cpu_s": one.prepared.cpu_s + first[one.name].cpu_s,
            "batch_cpu_s": _median(t.cpu_s for t in times[one.name]),
            "batch_s": _median(t.wall_s for t in times[one.name]),
            "disagreements": len(found[one.name] ^ found[OURS]),
        }
        for one in all_
    }
    others = [name for name in rows if name != OURS]
    best = max(others, key=lambda name: rows[name]["claims_per_cpu_second"], default=None)
    ratios = {
        other: [theirs.cpu_s / ours.cpu_s for theirs, ours in zip(times[other], times[OURS])]  # noqa: B905
        for other in others
    }
    for other, each in ratios.items():
        rows[other]["oracle_times_faster"] = _median(each)
    return {
        "batch": batch.name,
        "claims": batch.number,
        "contradicted": len(found[OURS]),
        "engines": rows,
        "best": best,
        "times_best": median_with_interval(ratios[best]) if best else None,
    }


def rounds_of(seconds: float) -> int:
    """How many rounds an engine takes part in whose batch takes so long."""
    return next((rounds for most, rounds in ROUNDS if seconds <= most), 1)


def median_with_interval(values: list[float]) -> dict[str, float | None]:
    """The median, and the least and the most of its 95% interval: the ranks within which a median
    lies whatever the distribution (of 25 values the 8th to the 18th, of 6 all of them). Fewer than
    6 have none: all of 5 hold the median with 94% only.
    """
    below, ordered = int(binom.ppf(0.025, len(values), 0.5)), sorted(values)
    least, most = (ordered[below - 1], ordered[-below]) if below else (None, None)
    return {"median": _median(values), "least": least, "most": most}


def _median(values: Any) -> float:
    return statistics.median(values)


def main() -> None:
    """Both sizes; engines that find other claims broken than the oracle are named."""
    results = [row for triples in SIZES for row in measured(triples)]
    for row in results:
        for name, engine in row["engines"].items():
            if engine["disagreements"]:
                print(f"{name}: {engine['disagreements']} claims judged otherwise, {row['batch']}")
    save("engines", results, NOTE)


if __name__ == "__main__":
    main()
