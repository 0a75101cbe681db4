"""Learners that take gradient steps on the sample: K steps of SGD on all its items at once.

Exposure is the sample's statements with their labels. The closed-book query is put to the changed
weights; the sample is not in view any more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax

from evidence.answers import Answer
from kubku.base_states import UNTRAINED, Through, Trained
from kubku.halo import (
    ATTRIBUTES,
    DRAWN,
    ENTITY_CODE,
    TEMPLATES,
    VALUES,
    Learner,
    Parts,
    Sample,
    Sizes,
    Statement,
    features,
    parts,
)

_BOUND_AT = TEMPLATES + ENTITY_CODE.shape[1] + ATTRIBUTES

# Eight settings, as many as every other learner that is tuned. One step at rate 1 is what `meta`
# base states were trained through.
TRIALS = tuple(
    {"steps": steps, "rate": rate}
    for steps, rates in ((1, (0.3, 1.0, 3.0, 10.0)), (8, (0.1, 0.3, 1.0, 3.0)))
    for rate in rates
)


class GradientState(NamedTuple):
    """Weights and how they are changed.

    Attributes:
      params: the network's weights.
      pace: for each weight a factor on the learning rate; 1 unless a base state has learnt it.
      rate: f32[], learning rate.
      steps: i32[], gradient steps taken on a sample (the protocol's K).
      replay: Statement of i32[R], items of other samples that every sample is learnt along with,
        as UNKNOWN; None but in the arms that are named for it.
      trained: how the base state was, see `Trained`.
    """

    params: Any
    pace: Any
    rate: jax.Array
    steps: jax.Array
    replay: Statement | None = None
    trained: Trained = UNTRAINED


class MLP(nn.Module):
    """Two hidden layers over a statement's features."""

    width: int = 128

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        for _ in range(2):
            x = nn.relu(nn.Dense(self.width)(x))
        return nn.Dense(3)(x)


class CNN(nn.Module):
    """Convolutions over the place a statement speaks of, or its frame, then what it says beside.

    Attributes:
      canvas: (rows, columns) of either.
      depth: numbers at each: of every value one, or a grey alone.
    """

    canvas: tuple[int, int]
    depth: int = VALUES
    channels: int = 32
    width: int = 64

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        rows, columns = self.canvas
        # The value drawn at its place, [..., rows, columns, depth]; blank where it has none.
        drawn = x[..., _BOUND_AT : _BOUND_AT + rows * columns * self.depth]
        image = drawn.reshape(*x.shape[:-1], rows, columns, self.depth)
        for _ in range(2):
            image = nn.relu(nn.Dense(self.channels)(neighbourhoods(image)))
        flat = image.reshape(*image.shape[:-3], -1)
        x = nn.relu(nn.Dense(self.width)(jnp.concatenate([flat, x], -1)))
        return nn.Dense(3)(x)


def neighbourhoods(image: jax.Array) -> jax.Array:
    """The 3 x 3 neighbourhood of each cell, side by side: f32[..., R, C, N] to f32[..., R, C, 9N].

    With a dense layer it is a convolution; weights that differ from sample to sample make it one
    batched product, where XLA's grouped convolution would crawl on a CPU.
    """
    rows, columns = image.shape[-3:-1]
    padded = jnp.pad(image, [(0, 0)] * (image.ndim - 3) + [(1, 1), (1, 1), (0, 0)])
    shifted = [padded[..., i : i + rows, j : j + columns, :] for i in range(3) for j in range(3)]
    return jnp.concatenate(shifted, -1)


class GRU(nn.Module):
    """A gated recurrent unit over a statement's tokens."""

    width: int = 64

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        states: Any = nn.RNN(nn.GRUCell(self.width))(nn.Dense(self.width // 2)(x))
        return nn.Dense(3)(states[..., -1, :])


class Transformer(nn.Module):
    """Two pre-norm encoder layers over a statement's tokens, averaged at the end."""

    layers: int = 2
    width: int = 64
    heads: int = 2

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        place = self.param("place", nn.initializers.normal(0.02), (x.shape[-2], self.width))
        x = nn.Dense(self.width)(x) + place
        for _ in range(self.layers):
            x = block(x, self.heads)
        return nn.Dense(3)(nn.LayerNorm()(x.mean(-2)))


def block(
    x: jax.Array, heads: int, to: jax.Array | None = None, mask: jax.Array | None = None
) -> jax.Array:
    """One pre-norm layer, made inside a module's compact call: x, f32[..., T, width], attends to
    `to`, f32[..., S, width], or to itself.
    """
    width, norm = x.shape[-1], nn.LayerNorm()
    attended = norm(x if to is None else to)
    x = x + nn.MultiHeadDotProductAttention(heads)(norm(x), attended, mask=mask)
    hidden = nn.gelu(nn.Dense(2 * width)(nn.LayerNorm()(x)))
    return x + nn.Dense(width)(hidden)


def exposed_to(sample: Sample, replay: Statement | None) -> tuple[Statement, jax.Array, jax.Array]:
    """A sample's items and those replayed, their labels, and which of them count."""
    items, label, shown = sample.exposure, sample.label, sample.shown
    if replay is not None:
        items = jax.tree.map(lambda a, b: jnp.concatenate([a, b]), items, replay)
        label = jnp.concatenate([label, jnp.full_like(replay.attribute, int(Answer.UNKNOWN))])
        shown = jnp.concatenate([shown, jnp.ones_like(replay.attribute, bool)])
    return items, label, shown


def exposure_loss(
    network: nn.Module,
    encode: Callable[[Statement], jax.Array],
    replay: Statement | None,
    sample: Sample,
) -> Callable[[Any], jax.Array]:
    """Mean cross-entropy of a sample's items and those replayed, as a function of the weights."""
    items, label, shown = exposed_to(sample, replay)
    inputs = encode(items)

    def loss(params: Any) -> jax.Array:
        logits = network.apply(params, inputs)
        each = optax.softmax_cross_entropy_with_integer_labels(logits, label)
        return (each * shown).sum() / jnp.maximum(shown.sum(), 1)

    return loss


def one_step(
    network: nn.Module, encode: Callable[[Statement], jax.Array], chunk: int = 4
) -> Through:
    """`learn` of a gradient learner by SGD with one step at rate 1, and nothing else, and `answer`.

    Unlike `learn`, whose number of steps is a traced number, it can be differentiated backwards.
    """

    def learn(state: GradientState, sample: Sample) -> GradientState:
        slope = jax.grad(exposure_loss(network, encode, state.replay, sample))(state.params)
        moved = jax.tree.map(lambda w, p, g: w - p * g, state.params, state.pace, slope)
        return state._replace(params=moved)

    def answer(state: GradientState, query: Statement) -> jax.Array:
        return jax.nn.softmax(network.apply(state.params, encode(query)[None])[0])

    return Through(learn, answer, chunk)


class Step(NamedTuple):
    """What one step of gradient descent did to an `MLP`, not yet added to its weights.

    Attributes:
      params: the weights before it, by layer.
      paces: by layer: of a kernel's inputs, of its outputs, of the bias.
      inputs: what each layer was given for each item, f32[T, inputs], as `Parts`.
      slopes: the loss's derivative by what each layer gave before its relu, f32[T, outputs].
    """

    params: list[Any]
    paces: list[tuple[jax.Array, jax.Array, jax.Array]]
    inputs: list[Parts]
    slopes: list[jax.Array]


def one_step_of_mlp(sizes: Sizes = DRAWN, chunk: int = 64) -> Through:
    """The same as `one_step` of an `MLP` whose paces are factored, in a fraction of the time.

    A kernel moves by the sum over items of input times slope, so that what it makes of h after the
    step is h W - sum over items of (h . input) slope (the dual form of gradient descent, Irie et
    al., 2022). No sample has weights of its own, and all samples share the products with W. Of a
    column that holds 1 the first layer's row is looked up.
    """

    def encode(said: Statement) -> Parts:
        return (
            parts(said, sizes) if jax.default_backend() == "cpu" else whole(features(said, sizes))
        )

    def learn(state: GradientState, sample: Sample) -> Step:
        items, label, shown = exposed_to(sample, state.replay)
        layers = _layers(state.params)
        inputs, x = [], encode(items)
        for layer in layers:
            inputs.append(x)
            logits = product(x, layer["kernel"]) + layer["bias"]
            x = whole(nn.relu(logits))
        counts = shown[:, None] / jnp.maximum(shown.sum(), 1)
        slope = (nn.softmax(logits) - jax.nn.one_hot(label, 3)) * counts
        slopes = [slope]
        for layer, x in zip(layers[:0:-1], inputs[:0:-1], strict=True):
            slopes.insert(0, slope := (slope @ layer["kernel"].T) * (x.dense > 0))
        paces = [(*layer["kernel"], layer["bias"]) for layer in _layers(state.pace)]
        return Step(layers, paces, inputs, slopes)

    def answer(step: Step, query: Statement) -> jax.Array:
        x = encode(query)
        for layer, (of_input, of_output, of_bias), items, slopes in zip(*step, strict=True):
            moved = of_output * (overlap(items, x, of_input) @ slopes) + of_bias * slopes.sum(0)
            logits = product(x, layer["kernel"]) + layer["bias"] - moved
            x = whole(nn.relu(logits))
        return nn.softmax(logits)

    return Through(learn, answer, chunk, factored=True)


def whole(x: jax.Array) -> Parts:
    """An input as `Parts`, all of it dense."""
    return Parts(x, jnp.zeros((*x.shape[:-1], 0), jnp.int32))


def product(x: Parts, kernel: jax.Array) -> jax.Array:
    """x times a kernel, f32[..., outputs]."""
    return x.dense @ kernel[: x.dense.shape[-1]] + kernel[x.ones].sum(-2)


def overlap(items: Parts, x: Parts, weight: jax.Array) -> jax.Array:
    """Inner products of one input with each item's, every column weighted, f32[T]."""
    dense = items.dense @ (weight[: x.dense.shape[-1]] * x.dense)
    return dense + ((items.ones == x.ones) * weight[x.ones]).sum(-1)


def _layers(params: Any) -> list[Any]:
    """Those of an `MLP` in order."""
    of = params["params"]
    return [of[f"Dense_{number}"] for number in range(len(of))]


def adam(
    rate: jax.Array | float, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8
) -> optax.GradientTransformation:
    """`optax.adam`, equal to rounding, in the order of Kingma and Ba (2015, end of section 2): what
    corrects the moments is two numbers a step, so that a weight costs one root and one division.
    """

    def init(params: Any) -> optax.ScaleByAdamState:
        blank = jax.tree.map(jnp.zeros_like, params)
        return optax.ScaleByAdamState(jnp.int32(0), blank, blank)

    def update(slopes: Any, memory: Any, params: Any = None) -> tuple[Any, Any]:
        count = memory.count + 1
        root = jnp.sqrt(1 - b2**count)
        size, least = rate * root / (1 - b1**count), eps * root
        mu = jax.tree.map(lambda m, g: b1 * m + (1 - b1) * g, memory.mu, slopes)
        nu = jax.tree.map(lambda v, g: b2 * v + (1 - b2) * g * g, memory.nu, slopes)
        change = jax.tree.map(lambda m, v: -size * m / (jnp.sqrt(v) + least), mu, nu)
        return change, optax.ScaleByAdamState(count, mu, nu)

    return optax.GradientTransformation(init, update)


def gradient_learner(
    network: nn.Module,
    encode: Callable[[Statement], jax.Array],
    chunk: int,
    optimiser: Callable[[jax.Array], optax.GradientTransformation] = optax.sgd,
    replayed: int = 0,
) -> Learner:
    """A learner that fits `network` to the sample's items by gradient steps.

    Args:
      network: from an encoded statement to three logits.
      encode: from a statement to the network's input.
      chunk: see `Learner.chunk`.
      optimiser: from a learning rate to an optax optimiser (`adam` here is the quicker one); its
        state starts afresh each sample.
      replayed: items of other samples that it learns each sample with; its base states choose them.
    """

    def init(key: jax.Array) -> GradientState:
        blank = Statement(*[jnp.zeros((), jnp.int32)] * 4)  # a frame is as wide
        params = network.init(key, encode(blank)[None])
        pace = jax.tree.map(jnp.ones_like, params)
        state = GradientState(params, pace, jnp.float32(0.3), jnp.int32(8))
        if not replayed:
            return state
        return state._replace(replay=Statement(*[jnp.zeros(replayed, jnp.int32)] * 4))

    def learn(state: GradientState, sample: Sample) -> GradientState:
        slope = jax.grad(exposure_loss(network, encode, state.replay, sample))
        update = optimiser(state.rate)

        def step(_: jax.Array, carry: tuple[Any, Any]) -> tuple[Any, Any]:
            params, memory = carry
            change, memory = update.update(slope(params), memory, params)
            paced = jax.tree.map(jnp.multiply, change, state.pace)
            return optax.apply_updates(params, paced), memory

        start = state.params, update.init(state.params)
        params, _ = jax.lax.fori_loop(0, state.steps, step, start)
        return state._replace(params=params)

    def answer(state: GradientState, query: Statement) -> jax.Array:
        return jax.nn.softmax(network.apply(state.params, encode(query)[None])[0])

    return Learner(init, learn, answer, {"random": None}, TRIALS, chunk, "gradient")
