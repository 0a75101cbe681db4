"""GrowNet's samples a second, laid out as the protocol does, beside its reference's ticks."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from kubku.grownet.two_layer import grownet_two_layer
from kubku.grownet.vote import VoteRule, grownet_vote

from benchmarks.timing import isolated, save, timed
from evidence.runtime.devices import over_runs, shard
from kubku.grownet import growth
from kubku.grownet.growth import LayerRule
from kubku.grownet.lookup import grownet_lookup
from kubku.grownet.slots import SlotRule
from kubku.halo import BASE, EXPOSURES, QUERIES, Sample, Statement

_SAMPLES = 8192
_NEURONS, _SLOTS, _TICKS = 64, 16, 16
# Recorded by running the reference's Python on one thread of a machine like this one.
_REFERENCE = {
    "scalar_region_23_neurons_ticks_per_second": 7481,
    "image_8x8_dense_frames_ticks_per_second": 959,
}


def main() -> None:
    """The voting ensemble by chunk, each learner on whole samples, and a layer that nobody asks."""
    ensemble = {"neurons": _NEURONS, "initial": _NEURONS, "slots": _SLOTS}
    cases: list[tuple[str, dict[str, int], int, int, int | None]]
    cases = [("grownet_vote", ensemble, _SAMPLES, _TICKS, chunk) for chunk in (64, 128, 256)] + [
        ("grownet_vote", {}, _SAMPLES, EXPOSURES, None),
        ("grownet_lookup", {}, _SAMPLES // 4, EXPOSURES, None),
        ("grownet_two_layer", {}, _SAMPLES // 8, EXPOSURES, None),
    ]
    rows = []
    for name, sizes, samples, ticks, chunk in cases:
        row = isolated(
            "benchmarks.grownet:reset_to_base",
            name=name,
            sizes=sizes,
            samples=samples,
            ticks=ticks,
            chunk=chunk,
        )
        rows.append(row)
        print(f"  {name}, {ticks} ticks, chunk {chunk}: {row['samples_per_second']:,.0f} samples/s")
    layer = isolated("benchmarks.grownet:layer_alone", samples=_SAMPLES, chunk=256)
    print(f"  layer alone: {layer['neuron_updates_per_second']:,.0f} neuron updates/s")
    # Of the 64 neurons a statement reaches one in four; the others are computed and masked.
    updates = max(row["samples_per_second"] for row in rows[:3]) * _TICKS * _NEURONS
    times = updates / (23 * _REFERENCE["scalar_region_23_neurons_ticks_per_second"])
    print(f"  {times:,.0f} times the reference's neuron updates, on all cores beside its one")
    results = {
        "learners": rows,
        "layer_alone": layer,
        "reference": _REFERENCE,
        "neuron_updates_beside_reference": times,
    }
    save("grownet", results, "median of 5 repeats; one device a core; queries are asked once")


def reset_to_base(
    name: str, sizes: dict[str, Any], samples: int, ticks: int, chunk: int | None
) -> dict[str, Any]:
    """Learn each of `samples` from the base state by `ticks` exposures, then answer its halo."""
    made = {
        "grownet_vote": lambda: grownet_vote(VoteRule(**sizes)),
        "grownet_lookup": grownet_lookup,
        "grownet_two_layer": grownet_two_layer,
    }
    learner = made[name]()
    learner = learner._replace(chunk=chunk or learner.chunk)
    state, shown = learner.init(jax.random.key(0)), _random_samples(samples, ticks)

    def expose(state: Any, sample: Sample) -> jax.Array:
        return jax.vmap(learner.answer, in_axes=(None, 0))(
            learner.learn(state, sample), sample.query
        )

    run, told = over_runs(expose, block=learner.chunk), shard(shown, block=learner.chunk)
    taken = timed(lambda _: run(state, told), None)
    return {
        **taken,
        "chunk": learner.chunk,
        "queries": QUERIES,
        "samples_per_second": samples / taken["median_s"],
    }


def layer_alone(samples: int, chunk: int) -> dict[str, Any]:
    """A layer that hears a sample's scalar events on one device, nobody asking."""
    rule = LayerRule(SlotRule(_SLOTS), capacity=_NEURONS, initial=_NEURONS)

    def one(drives: jax.Array) -> jax.Array:
        def tick(layer: growth.Layer, drive: jax.Array) -> Any:
            layer, response = growth.present(layer, drive, drive[:, None], rule)
            return growth.end_tick(layer), response.fired.sum()

        return lax.scan(tick, growth.empty(rule), drives)[1]

    drives = 1 + jax.random.uniform(jax.random.key(0), (samples, _TICKS, _NEURONS))
    run = jax.jit(partial(lax.map, one, batch_size=chunk))
    taken = timed(lambda _: run(drives), None)
    ticks = samples * _TICKS / taken["median_s"]
    return {**taken, "ticks_per_second": ticks, "neuron_updates_per_second": ticks * _NEURONS}


def _random_samples(n: int, ticks: int) -> Sample:
    """Random statements, `ticks` of them shown and QUERIES asked; nobody looks at the scores."""
    key = jax.random.key(0)

    def statement(key: jax.Array, size: int) -> Statement:
        # Of templates, entities, attributes that can be stated, and values.
        limits = zip(jax.random.split(key, 4), (2, 96, BASE, 4), strict=True)
        return Statement(*(jax.random.randint(k, (n, size), 0, limit) for k, limit in limits))

    shown, asked = jax.random.split(key)
    return Sample(
        exposure=statement(shown, ticks),
        label=jnp.tile(2 * (jnp.arange(ticks) < ticks // 2), (n, 1)),
        shown=jnp.ones((n, ticks), bool),
        query=statement(asked, QUERIES),
        asked=jnp.ones((n, QUERIES), bool),
        kind=jnp.zeros((n, QUERIES), jnp.int32),
        stratum=jnp.zeros((n, QUERIES), jnp.int32),
        gold=jnp.zeros((n, QUERIES), jnp.int32),
        harmful=jnp.full((n, QUERIES), -1),
        pair=jnp.full(n, -1),
        latents=jnp.zeros((n, BASE), jnp.int32),
    )


if __name__ == "__main__":
    main()
