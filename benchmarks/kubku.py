"""Reset to base: one program over all samples beside a plain loop, in one run; then every learner.

Beside the loop stand an MLP 64-128-128-3 (25,219 weights) on 16 statements and a transformer of two
layers of 64 (on 6 statements of 12 tokens), K = 8 steps, 16 queries. The floor is what the same
machine reaches on per-sample products of the same shape, [chunk, 16, 128] x [chunk, 128, 128]. The
program and the products have all cores, the loop what JAX makes of one device.
Every learner is timed as the study runs it, on a family's own samples, asked before and after. What
GrowNet does is elementwise, and stands beside passes of such operations over a layer's slots: what
is fused into fewer passes can surpass them. Arithmetic is counted operation by operation.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from benchmarks.timing import in_turn, isolated, save, timed
from evidence.runtime.devices import over_runs, shard
from kubku import protocol
from kubku.base_states import Training
from kubku.halo import QUERIES, Learner, Sample, Statement
from kubku.learners import registry
from kubku.learners.gradient import MLP, Transformer, adam, gradient_learner
from kubku.tasks import FAMILIES, Family, generate

STEPS = 8


def samples(n: int, statements: int) -> Sample:
    """Samples of the bars' shapes; what they say makes no difference to the time."""
    keys = jax.random.split(jax.random.key(0), 3)

    def said(key: jax.Array, count: int) -> Statement:
        return Statement(
            *[jax.random.randint(k, (n, count), 0, 8) for k in jax.random.split(key, 4)]
        )

    nothing = jnp.zeros((n, QUERIES), jnp.int32)
    return Sample(
        exposure=said(keys[0], statements),
        label=2 * jax.random.randint(keys[2], (n, statements), 0, 2),
        shown=jnp.ones((n, statements), bool),
        query=said(keys[1], QUERIES),
        asked=nothing == 0,
        kind=nothing,
        stratum=nothing,
        gold=nothing,
        harmful=nothing,
        pair=jnp.zeros(n, jnp.int32),
        latents=jnp.zeros((n, 1), jnp.int32),
    )


def wide(statement: Statement) -> jax.Array:
    """A statement as f32[..., 64]."""
    return jnp.concatenate([jax.nn.one_hot(part, 16) for part in statement[:4]], -1)


def worded(statement: Statement) -> jax.Array:
    """A statement as twelve tokens, f32[..., 12, 64]."""
    ids = jnp.stack([*statement[:4]] * 3, -1)
    return jax.nn.one_hot(ids + 8 * jnp.arange(12) % 56, 64)


ARMS: dict[str, tuple[Any, Callable, tuple[Callable, Callable], int, int, int]] = {
    # network, encoding, optimiser of the program and the loop's, statements, chunk, samples
    "mlp sgd": (MLP(), wide, (optax.sgd, optax.sgd), 16, 2, 2048),
    "mlp adam": (MLP(), wide, (adam, optax.adam), 16, 2, 1024),
    "transformer adam": (Transformer(), worded, (adam, optax.adam), 6, 8, 128),
}


def by_loop(step: Callable, ask: Callable, state: Any, batch: Sample) -> np.ndarray:
    """The plain loop: for each sample, K dispatches of a jitted step, then one of the queries."""
    answers = []
    for i in range(batch.label.shape[0]):
        sample = jax.tree.map(lambda leaf: leaf[i], batch)  # noqa: B023
        learnt, memory = state, None
        for _ in range(STEPS):
            learnt, memory = step(learnt, memory, sample)
        answers.append(np.asarray(ask(learnt, sample.query)))
    return np.array(answers)


def stepper(network: Any, encode: Callable, optimiser: Callable, rate: float) -> Callable:
    """One jitted gradient step, written as one would without this package."""
    update = optimiser(rate)

    @jax.jit
    def step(state: Any, memory: Any, sample: Sample) -> tuple[Any, Any]:
        def loss(params: Any) -> jax.Array:
            logits = network.apply(params, encode(sample.exposure))
            return optax.softmax_cross_entropy_with_integer_labels(logits, sample.label).mean()

        memory = update.init(state.params) if memory is None else memory
        change, memory = update.update(jax.grad(loss)(state.params), memory, state.params)
        return state._replace(params=optax.apply_updates(state.params, change)), memory

    return step


class Floor(NamedTuple):
    """What so much arithmetic takes here in a program that does nothing else.

    Attributes:
      run: the program, on all devices as the protocol has them.
      gflops: billions of operations that it does.
    """

    run: Callable[[], Any]
    gflops: float


FLOOR_SAMPLES = 2048


def products(chunk: int) -> Floor:
    """16 per-sample products for each of `FLOOR_SAMPLES` samples, in chunks."""
    n = FLOOR_SAMPLES
    a = shard(jax.random.normal(jax.random.key(0), (n // chunk, chunk, 16, 128)))
    b = jax.random.normal(jax.random.key(1), (chunk, 128, 128)) / 11

    def chain(b: jax.Array, a: jax.Array) -> jax.Array:
        return jax.lax.fori_loop(0, 16, lambda _, x: jnp.tanh(x @ b), a)

    return Floor(partial(over_runs(chain), b, a), n * 16 * 2 * 16 * 128 * 128 / 1e9)


def passes(chunk: int) -> Floor:
    """64 passes for each sample over 64 neurons of 16 slots: a comparison, a choice, two others."""
    n = FLOOR_SAMPLES
    start = shard(jax.random.normal(jax.random.key(0), (n // chunk, chunk, 64, 16)))

    def chain(limit: jax.Array, x: jax.Array) -> jax.Array:
        return jax.lax.fori_loop(0, 64, lambda _, x: jnp.where(x > limit, x * limit, x + limit), x)

    return Floor(partial(over_runs(chain), jnp.float32(0.9), start), n * 64 * 4 * 64 * 16 / 1e9)


def beside(
    floor: Floor, program: Callable[[], Any], gflops: float, *others: Callable[[], Any]
) -> tuple[dict[str, Any], list[list[float]]]:
    """The rate of a program of so many GFLOP beside that of its floor, as the median ratio of
    neighbours in time; and the seconds of the program and of others, timed in turn with both.
    """
    own, least, *rest = in_turn(program, floor.run, *others)
    ratios = [gflops / a * b / floor.gflops for a, b in zip(own, least, strict=True)]
    reached = {
        "seconds": own,
        "median_s": statistics.median(own),
        "gflops_per_second": gflops / statistics.median(own),
        "floor_gflops_per_second": floor.gflops / statistics.median(least),
        "share_of_floor_rate": statistics.median(ratios),
    }
    return reached, [own, *rest]


def per_sample(
    learner: Learner, state: Any, batch: Sample, steps: int = 1, all_kinds: bool = False
) -> float:
    """Operations a sample, learnt in so many steps and asked before and after, of a chunk that
    shares its base state: of products alone, or of all kinds.
    """

    def expose(state: Any, sample: Sample) -> Any:
        ask = jax.vmap(learner.answer, in_axes=(None, 0))
        return ask(state, sample.query), ask(learner.learn(state, sample), sample.query)

    chunk = jax.tree.map(lambda leaf: leaf[: learner.chunk], batch)
    made = jax.make_jaxpr(jax.vmap(expose, in_axes=(None, 0)))(state, chunk)
    return operations(made.jaxpr, steps, all_kinds) / learner.chunk


_MOVES = {
    *("broadcast_in_dim", "concatenate", "convert_element_type", "copy", "dynamic_slice"),
    *("dynamic_update_slice", "gather", "iota", "pad", "reshape", "scatter", "slice", "split"),
    *("squeeze", "stop_gradient", "transpose"),
}


def operations(jaxpr: Any, turns: int = 1, all_kinds: bool = True) -> float:
    """Elementary operations: two for each number that a product multiplies and, of `all_kinds`, one
    for each that anything else makes or reduces; moving costs none. A scan counts all its turns, a
    loop of unknown length `turns`.
    """
    total = 0.0
    for equation in jaxpr.eqns:
        name, parameters = equation.primitive.name, equation.params
        inner = [parameters[k] for k in ("jaxpr", "call_jaxpr", "body_jaxpr") if k in parameters]
        inner += parameters.get("branches", ())
        made = sum(out.aval.size for out in equation.outvars)
        if inner:
            times = parameters["length"] if name == "scan" else turns if name == "while" else 1
            parts = (operations(getattr(p, "jaxpr", p), turns, all_kinds) for p in inner)
            total += times * max(parts)
        elif name == "dot_general":
            (summed, _), _ = parameters["dimension_numbers"]
            left = equation.invars[0].aval.shape
            total += 2 * made * math.prod(left[axis] for axis in summed)
        elif all_kinds and name not in _MOVES:
            reduces = name.startswith(("reduce", "arg", "scatter"))  # a scatter's updates are last
            total += equation.invars[-1].aval.size if reduces else made
    return total


def reset_to_base(name: str) -> dict[str, Any]:
    """One arm: samples a second both ways, compile time, distance to the products' rate."""
    network, encode, (optimiser, usual), statements, chunk, n = ARMS[name]
    learner = gradient_learner(network, encode, chunk, optimiser)
    state = learner.init(jax.random.key(0))._replace(steps=jnp.int32(STEPS), rate=jnp.float32(0.01))
    batch = samples(n, statements)
    # In NumPy: cutting a sample out of JAX arrays would be most of the loop's time.
    few = jax.tree.map(lambda leaf: np.asarray(leaf[: n // 16]), batch)
    ask = jax.jit(jax.vmap(learner.answer, in_axes=(None, 0)))
    plain = partial(by_loop, stepper(network, encode, usual, 0.01), ask, state)

    def together() -> Any:
        return protocol.reset_to_base(learner, state, batch).after

    first = timed(lambda _: together(), None, repeats=1)
    apart = np.abs(np.asarray(protocol.reset_to_base(learner, state, few).after) - plain(few)).max()
    weights = sum(leaf.size for leaf in jax.tree.leaves(state.params))
    gflops = n * per_sample(learner, state, batch, STEPS) / 1e9
    reached, (own, alone) = beside(products(chunk), together, gflops, lambda: plain(few))
    rates = [(n / a, (n // 16) / b) for a, b in zip(own, alone, strict=True)]
    return {
        "compile_s": first["compile_s"],
        "weights": weights,
        "samples": n,
        "chunk": chunk,
        "samples_per_second": n / reached["median_s"],
        "loop_samples_per_second": (n // 16) / statistics.median(alone),
        "speed_up": statistics.median(a / b for a, b in rates),
        **reached,
        "largest_difference_of_scores": float(apart),
    }


def family_for(entry: registry.Entry) -> Family:
    """The first that a learner can handle."""
    return next(family for family in FAMILIES.values() if entry.can_handle(family))


def as_studied(name: str) -> dict[str, Any]:
    """One learner on a family's samples, from its first base state."""
    entry = registry.LEARNERS[name]
    family = family_for(entry)
    learner = registry.make(name, family, Training(updates=1, batch=1))
    state = learner.init(jax.random.key(0))
    n = 64 if "transformer" in name else 256 if entry.group in ("gradient", "replaying") else 2048
    batch = generate(family, jax.random.key(1), n, "test")

    def program() -> Any:
        return protocol.reset_to_base(learner, state, batch).after

    row = timed(lambda _: program(), None, repeats=3)
    row |= {"samples": n, "chunk": learner.chunk, "samples_per_second": n / row["median_s"]}
    if entry.group == "control":
        return row  # with no arithmetic to speak of
    ours = entry.group in ("grownet", "ablation")
    steps = int(getattr(state, "steps", 1))
    gflops = n * per_sample(learner, state, batch, steps, all_kinds=ours) / 1e9
    row |= beside((passes if ours else products)(learner.chunk), program, gflops)[0]
    row["samples_per_second"] = n / row["median_s"]
    return row


def main() -> None:
    """Every case in a process of its own."""
    rows = [isolated("benchmarks.kubku:reset_to_base", name=name) for name in ARMS]
    for row in rows:
        print(
            f"  {row['name']}: {row['samples_per_second']:,.0f} samples/s, {row['speed_up']:.1f} "
            f"times the loop, {row['share_of_floor_rate']:.0%} of the product rate"
        )
    studied = []
    for name in registry.LEARNERS:
        studied.append(isolated("benchmarks.kubku:as_studied", name=name))
        row = studied[-1]
        share = row.get("share_of_floor_rate")
        print(
            f"| {name} | {row['samples_per_second']:,.0f} | {row['compile_s']:.1f} | "
            f"{row['peak_mb']:,.0f} | {'' if share is None else f'{share:.0%}'} |",
            flush=True,
        )
    results = {"beside_a_loop": rows, "as_studied": studied}
    save("kubku", results, f"{STEPS} gradient steps and {QUERIES} queries a sample; medians")
