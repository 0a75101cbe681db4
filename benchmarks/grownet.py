"""GrowNet's samples a second, laid out as the protocol does, beside its reference's ticks."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from benchmarks.timing import isolated, save, timed
from evidence.runtime.devices import over_runs, shard
from kubku.grownet import growth
from kubku.grownet.growth import LayerRule
from kubku.grownet.learner import grownet
from kubku.grownet.lookup import grownet_lookup
from kubku.grownet.slots import SlotRule
from kubku.halo import BASE, EXPOSURES, FRAME, QUERIES, Sample, Statement

_SAMPLES = 8192
_NEURONS, _SLOTS, _TICKS = 64, 16, 16
# Recorded by running the reference's Python on one thread of a machine like this one.
_REFERENCE = {
    "scalar_region_23_neurons_ticks_per_second": 7481,
    "image_8x8_dense_frames_ticks_per_second": 959,
}


def main() -> None:
    """Each learner on whole samples, and a layer that nobody asks."""
    rows = []
    for name in ("grownet", "grownet_shown", "grownet_lookup"):
        row = isolated("benchmarks.grownet:reset_to_base", name=name, samples=_SAMPLES // 4)
        rows.append(row)
        print(f"  {name}: {row['samples_per_second']:,.0f} samples/s")
    layer = isolated("benchmarks.grownet:layer_alone", samples=_SAMPLES, chunk=256)
    print(f"  layer alone: {layer['neuron_updates_per_second']:,.0f} neuron updates/s")
    times = layer["neuron_updates_per_second"] / (
        23 * _REFERENCE["scalar_region_23_neurons_ticks_per_second"]
    )
    print(f"  {times:,.0f} times the reference's neuron updates, one core each")
    results = {
        "learners": rows,
        "layer_alone": layer,
        "reference": _REFERENCE,
        "neuron_updates_beside_reference": times,
    }
    save("grownet", results, "median of 5 repeats; one device a core; queries are asked once")


def reset_to_base(name: str, samples: int) -> dict[str, Any]:
    """Learn each of `samples` from the base state, then answer its halo."""
    is_shown = name == "grownet_shown"
    learner = grownet_lookup() if name == "grownet_lookup" else grownet(is_shown)
    state, shown = learner.init(jax.random.key(0)), _random_samples(samples, is_shown)

    def expose(state: Any, sample: Sample) -> jax.Array:
        return jax.vmap(learner.answer, in_axes=(None, 0))(
            learner.learn(state, sample), sample.query
        )

    run, told = over_runs(expose, block=learner.chunk), shard(shown, block=learner.chunk)
    taken = timed(lambda _: run(state, told), None)
    return {
        **taken,
        "name": name,
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


def _random_samples(n: int, is_shown: bool) -> Sample:
    """Random statements, or frames; nobody looks at the scores."""
    key = jax.random.key(0)

    def statement(key: jax.Array, size: int) -> Statement:
        # Of templates, entities, attributes that can be stated, and values.
        limits = zip(jax.random.split(key, 4), (2, 96, BASE, 4), strict=True)
        said = Statement(*(jax.random.randint(k, (n, size), 0, limit) for k, limit in limits))
        if not is_shown:
            return said
        grey = jax.random.randint(key, (n, size, *FRAME), 0, 256)
        return said._replace(frame=grey.astype(jnp.uint8))

    shown, asked = jax.random.split(key)
    return Sample(
        exposure=statement(shown, EXPOSURES),
        label=jnp.tile(2 * (jnp.arange(EXPOSURES) < EXPOSURES // 2), (n, 1)),
        shown=jnp.ones((n, EXPOSURES), bool),
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
