"""How time and memory grow with the size of the work: `python -m benchmarks growth`.

Each size runs in a process of its own, whose peak memory stands beside the median seconds of the
work. What 24 GB carry is foretold by the two largest sizes, and run; where that would take longer
than `_PATIENCE_S` by the same two, the largest size that would not is run in its place.
`growth dry` tries the smallest sizes.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any

import jax
import numpy as np

from benchmarks import population, worlds
from benchmarks.oracle import index_bytes, mixed_claims
from benchmarks.timing import isolated, save, timed
from epistemic.decks.deck import CardSettings, make_cards
from epistemic.decks.synthetic import make_synthetic, synthetic_domain
from epistemic.logic.oracle import Oracle
from kubku import protocol
from kubku.base_states import Training
from kubku.learners import registry
from kubku.tasks import FAMILIES, generate

_MEMORY_MB, _SHARE, _PATIENCE_S = 24_000, 0.9, 120
_TRIPLES = 100_000


@dataclass(frozen=True)
class Axis:
    """What grows: `case` of this module takes a size, and tells the `seconds` of the work."""

    wing: str
    name: str
    case: str
    sizes: tuple[int, ...]
    work: str


_AXES = (
    Axis("goodharts_jax", "worlds", "step", (128, 1024, 8192, 131_072), "32 steps of each"),
    Axis("goodharts_jax", "runs", "train", (1, 10, 100, 1000), "an update of each"),
    Axis("epistemic", "claims", "judge", (1_000, 10_000, 100_000, 1_000_000), "judged as integers"),
    Axis("epistemic", "triples", "index", (10_000, 100_000, 1_000_000, 10_000_000), "indexed"),
    Axis("epistemic", "cards", "draw", (30, 300, 3_000, 30_000), "drawn and worded"),
    Axis("kubku", "samples, mlp", "mlp", (16, 160, 1_600, 16_000), "learnt and asked"),
    Axis("kubku", "samples, grownet", "grownet", (16, 160, 1_600, 16_000), "learnt and asked"),
    Axis("kubku", "learners, mlp", "learners", (1, 10, 100, 1_000), "an update of each base state"),
)


def main(how: str = "") -> None:
    """All axes; `how`: "dry" for the two smallest sizes, of which nothing is kept."""
    axes = []
    for axis in _AXES:
        rows = []
        for size in axis.sizes[:2] if how == "dry" else axis.sizes:
            rows.append(_row(axis, size))
        found = {} if how == "dry" else {"carried": carried(axis, rows)}
        axes.append({**asdict(axis), "rows": rows, **found})
    if how != "dry":
        limits = {"memory_mb": _MEMORY_MB, "patience_s": _PATIENCE_S}
        save("growth", {**limits, "axes": axes}, "peak memory of a process a size")


def _row(axis: Axis, size: int) -> dict[str, Any]:
    started = time.perf_counter()
    row = isolated(f"benchmarks.growth:{axis.case}", size=size)
    row["process_s"] = time.perf_counter() - started
    print(
        f"  {size:>11,} {axis.name}: {row['seconds']:.4f} s, {row['peak_mb']:,.0f} MB", flush=True
    )
    return row


def carried(axis: Axis, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The largest size that is run: that of the memory by the last two rows, less a tenth, or if it
    is less, that of the time.

    Returns:
      Its row, with `fit`, the size of the memory; None where it hardly grew.
    """
    small, large = rows[-2:]
    more = large["size"] - small["size"]

    def reaches(measured: str, most: float) -> float:
        grown = (large[measured] - small[measured]) / more
        return large["size"] + (most - large[measured]) / grown if grown > 0 else float("inf")

    # In whole parts of the smallest size, which is what blocks and labels divide.
    part = axis.sizes[0]
    tells = (large["peak_mb"] - small["peak_mb"]) * large["size"] / more >= 10
    fit = reaches("peak_mb", _SHARE * _MEMORY_MB) if tells else float("inf")
    most = min(fit, reaches("process_s", _PATIENCE_S))
    further = large["size"] < most < float("inf")
    row = _row(axis, int(most) // part * part) if further else large
    return {**row, "fit": int(fit) // part * part if tells else None}


def step(size: int) -> dict[str, Any]:
    """Worlds, block by block."""
    return _seconds(worlds.steps_per_second(size, steps=32, repeats=3))


def train(size: int) -> dict[str, Any]:
    """Runs, as a study has them."""
    return _seconds(population.training(size, repeats=2))


def judge(size: int) -> dict[str, Any]:
    """Claims about one graph."""
    made = make_synthetic(_TRIPLES)
    oracle = Oracle(made.graph, made.constraints)
    claims = mixed_claims(oracle.graph, size)
    return _seconds(timed(lambda _: oracle.judge_ids(claims).verdict, None, repeats=3))


def index(size: int) -> dict[str, Any]:
    """A graph, made beforehand; its index weighs `index_mb` of the process' memory."""
    made, oracles = make_synthetic(size), []

    def build(_: Any) -> Any:
        oracles[:] = [Oracle(made.graph, made.constraints)]
        return oracles[0].compiled.lookup.slots

    taken = _seconds(timed(build, None, repeats=1))
    return {**taken, "index_mb": index_bytes(oracles[0]) / 2**20}


def draw(size: int) -> dict[str, Any]:
    """A deck: as many cards of each of three labels, from a graph that gives as many."""
    domain = synthetic_domain(max(_TRIPLES, 4 * size))
    settings = CardSettings(per_type=size // 3)
    return _seconds(timed(lambda _: len(make_cards(domain, settings).cards), None, repeats=2))


def mlp(size: int) -> dict[str, Any]:
    """Samples of a network trained by gradient."""
    return _samples("mlp", size)


def grownet(size: int) -> dict[str, Any]:
    """Samples of GrowNet."""
    return _samples("grownet", size)


def learners(size: int) -> dict[str, Any]:
    """Base states trained side by side, each with weights of its own."""
    family = FAMILIES["stories"]
    learner = registry.make("mlp", family, Training(updates=1, batch=16))
    samples, make = generate(family, jax.random.key(1), 64, "pretrain"), learner.bases["meta"]
    assert make is not None
    train = jax.jit(jax.vmap(lambda key: make(learner.init(key), samples, key)))
    keys = jax.random.split(jax.random.key(0), size)
    return _seconds(timed(lambda _: train(keys), None, repeats=2))


def _samples(name: str, size: int) -> dict[str, Any]:
    family = FAMILIES["stories"]
    learner = registry.make(name, family, Training(updates=1, batch=1))
    state = learner.init(jax.random.key(0))
    batch = generate(family, jax.random.key(1), size, "test")
    ask = lambda _: np.asarray(protocol.reset_to_base(learner, state, batch).after)  # noqa: E731
    return _seconds(timed(ask, None, repeats=2))


def _seconds(taken: dict[str, Any]) -> dict[str, Any]:
    return {"seconds": taken["median_s"], "compile_s": taken["compile_s"]}
