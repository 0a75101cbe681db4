"""How time and memory grow with the size of the work: `python -m benchmarks growth`.

Each size runs in a process of its own, whose peak memory stands beside the median seconds of the
work. The largest size that 24 GB carry is run, too; or one whose work takes an axis' patience,
where that is less. `growth dry` tries the smallest sizes; `growth CASE ...` measures some anew.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import jax
import numpy as np

from benchmarks import population, worlds
from benchmarks.oracle import index_bytes, mixed_claims
from benchmarks.timing import RESULTS, isolated, save, timed
from epistemic.decks.deck import CardSettings, make_cards
from epistemic.decks.synthetic import make_synthetic, synthetic_domain
from epistemic.logic.oracle import Oracle
from evidence.results import commit
from evidence.runtime.files import read_plain
from kubku import protocol
from kubku.base_states import Training
from kubku.learners import registry
from kubku.tasks import FAMILIES, generate

_MEMORY_MB, _SHARE = 24_000, 0.9
_TRIES = 3
"""For the largest size: memory may grow by leaps, and a size that was foretold not get through."""
_ONCE_S = 60
"""A first call that takes so long stands for all, its compilation with it."""
_TRIPLES = 100_000


@dataclass(frozen=True)
class Axis:
    """What grows: `case` of this module takes a size, and tells the `seconds` of the work, which
    are to be `patience_s` at most.
    """

    wing: str
    name: str
    case: str
    sizes: tuple[int, ...]
    work: str
    patience_s: float = 1_000


_AXES = (
    Axis("goodharts_jax", "worlds", "step", (128, 1024, 8192, 131_072), "32 steps of each"),
    Axis("goodharts_jax", "runs", "train", (1, 10, 100, 1000), "an update of each"),
    Axis("epistemic", "claims", "judge", (1_000, 10_000, 100_000, 1_000_000), "judged as integers"),
    Axis("epistemic", "triples", "index", (100_000, 1_000_000, 10_000_000, 40_000_000), "indexed"),
    Axis("epistemic", "cards", "draw", (30, 300, 3_000, 30_000), "drawn and worded"),
    # The memory is the protocol's, whoever learns: who learns fast fills it first.
    Axis(
        "kubku", "samples, dictionary", "dictionary", (16, 160, 1_600, 16_000), "learnt and asked"
    ),
    Axis("kubku", "samples, mlp", "mlp", (16, 160, 1_600, 16_000), "learnt and asked", 100),
    Axis("kubku", "samples, grownet", "grownet", (16, 160, 1_600, 16_000), "learnt and asked", 100),
    Axis("kubku", "learners, mlp", "learners", (1, 10, 100, 1_000), "an update of each base state"),
)


def main(*cases: str) -> None:
    """Axes, kept one by one.

    Args:
      cases: those to measure anew, all if there are none; "dry" for two sizes of each, of which
        nothing is kept.
    """
    if cases == ("dry",):
        for axis in _AXES:
            for size in axis.sizes[:2]:
                _row(axis, size)
        return
    if unknown := set(cases) - {axis.case for axis in _AXES}:
        raise ValueError(f"{', '.join(unknown)}: no case; there are {[a.case for a in _AXES]}")
    found = {axis["case"]: axis for axis in _kept()}
    for axis in _AXES:
        if not cases or axis.case in cases:
            rows = [_row(axis, size) for size in axis.sizes]
            found[axis.case] = {**asdict(axis), **carried(axis, rows), "commit": commit()}
            axes = [found[axis.case] for axis in _AXES if axis.case in found]
            results = {"memory_mb": _MEMORY_MB, "axes": axes}
            save("growth", results, "peak memory of a process a size")


def _kept() -> list[dict[str, Any]]:
    """Axes of an earlier run, each with its commit."""
    path = RESULTS / "growth.json"
    if not path.exists():
        return []
    kept = read_plain(path)
    return [{"commit": kept["manifest"]["commit"], **axis} for axis in kept["results"]["axes"]]


def _row(axis: Axis, size: int) -> dict[str, Any]:
    row = isolated(f"benchmarks.growth:{axis.case}", size=size)
    print(
        f"  {size:>11,} {axis.name}: {row['seconds']:.4f} s, {row['peak_mb']:,.0f} MB", flush=True
    )
    return row


def carried(axis: Axis, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The largest size, run; by way of one between, since two small sizes foretell badly.

    Returns:
      rows: those given and the one between. carried: the row of the largest, with `limit`: what
      keeps it from being larger, "memory" or "time".
    """
    size, _ = _reached(axis, rows[-2:])
    rows = [*rows, _row(axis, _whole(axis, math.sqrt(rows[-1]["size"] * size)))]
    size, limit = _reached(axis, rows[-2:])
    for _ in range(_TRIES):
        try:
            return {"rows": rows, "carried": {**_row(axis, _whole(axis, size)), "limit": limit}}
        except RuntimeError as error:
            print(f"  {size:>11,.0f} {axis.name}: did not get through. {error}", flush=True)
            size = math.sqrt(rows[-1]["size"] * size)
    raise RuntimeError(f"{axis.name}: no size got through beyond {rows[-1]}")


def _reached(axis: Axis, rows: list[dict[str, Any]]) -> tuple[float, str]:
    """The size at which a line through two rows fills the share of the memory, or takes too long;
    and which of both."""
    small, large = rows
    most = {"memory": ("peak_mb", _SHARE * _MEMORY_MB), "time": ("seconds", axis.patience_s)}
    sizes = {
        limit: large["size"]
        + (value - large[measured])
        * (large["size"] - small["size"])
        / max(large[measured] - small[measured], 1e-9)
        for limit, (measured, value) in most.items()
    }
    limit = min(sizes, key=sizes.__getitem__)
    return max(sizes[limit], large["size"]), limit


def _whole(axis: Axis, size: float) -> int:
    """In whole parts of the smallest size, which is what blocks and labels divide."""
    return int(size) // axis.sizes[0] * axis.sizes[0]


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
    return _work(lambda: oracle.judge_ids(claims).verdict)


def index(size: int) -> dict[str, Any]:
    """A graph, made beforehand; its index weighs `index_mb` of the process' memory."""
    made = make_synthetic(size)
    oracles: list[Oracle] = []

    def build() -> Any:
        oracles[:] = [Oracle(made.graph, made.constraints)]
        return oracles[0].compiled.lookup.slots

    taken = _work(build)
    return {**taken, "index_mb": index_bytes(oracles[0]) / 2**20}


def draw(size: int) -> dict[str, Any]:
    """A deck: as many cards of each of three labels, from a graph that gives as many."""
    domain = synthetic_domain(max(_TRIPLES, 4 * size))
    settings = CardSettings(per_type=size // 3)
    return _work(lambda: len(make_cards(domain, settings).cards))


def dictionary(size: int) -> dict[str, Any]:
    """Samples of a table of what was stated."""
    return _samples("dictionary", size)


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
    return _work(lambda: train(keys))


def _samples(name: str, size: int) -> dict[str, Any]:
    family = FAMILIES["stories"]
    learner = registry.make(name, family, Training(updates=1, batch=1))
    state = learner.init(jax.random.key(0))
    batch = generate(family, jax.random.key(1), size, "test")
    return _work(lambda: np.asarray(protocol.reset_to_base(learner, state, batch).after))


def _work(work: Callable[[], Any]) -> dict[str, Any]:
    return _seconds(timed(lambda _: work(), None, repeats=2, once=_ONCE_S))


def _seconds(taken: dict[str, Any]) -> dict[str, Any]:
    return {"seconds": taken["median_s"], "compile_s": taken["compile_s"]}
