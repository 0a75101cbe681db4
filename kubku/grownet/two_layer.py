"""`grownet_two_layer`: recalls facts, and judges what can't be stated by grown readers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from evidence.answers import Answer
from evidence.runtime.devices import for_each
from kubku.base_states import withheld
from kubku.grownet import growth, memory
from kubku.grownet.ensemble import in_order, opinion, passes
from kubku.grownet.growth import Layer, LayerRule
from kubku.grownet.lookup import look_up, remember_all
from kubku.grownet.memory import Memory
from kubku.grownet.region import windows
from kubku.grownet.slots import SlotRule
from kubku.halo import BASE, DERIVED, ENTITIES, Learner, Sample, Samples, Statement

QUESTIONS = 2 * DERIVED
"""M: a question is a (derived attribute, value)."""


@dataclass(frozen=True)
class TwoLayerRule:
    """The sizes of `grownet_two_layer`, and which of its ideas are at work.

    Attributes:
      entities: how many entities there is room for.
      neurons: room for neurons in each reader (N); it starts with one, and with room for no more
        it doesn't grow. Two attributes have up to 81 places, which 6 neurons of 16 slots hold.
      slots: room for slots in each neuron (S).
      reach: attributes that a reader looks at, 1 or 2. With 2 some reader sees all that a rule of
        two conditions depends on.
      canvas: (rows, columns) of a family laid out in space, whose readers of two look at cells
        that touch, see `within_windows`; None: at any two attributes.
      novelty: whether a reader that finds no slot says UNKNOWN, or nothing.
      told_unknown: whether readers, while they grow, are also told of questions whose answer is
        UNKNOWN; if not, a place without a slot is all that makes them say so.

    Raises:
      ValueError: a reader can't look at so many attributes.
    """

    entities: int = ENTITIES
    neurons: int = 6
    slots: int = 16
    reach: int = 2
    canvas: tuple[int, int] | None = None
    novelty: bool = True
    told_unknown: bool = True

    def __post_init__(self) -> None:
        if self.reach not in (1, 2):
            raise ValueError(
                f"reach={self.reach}: a place has two axes, so a reader can look at 1 or 2"
            )
        if self.canvas is not None and self.reach != 2:
            raise ValueError(f"reach={self.reach}: with a canvas readers look at 2 attributes")

    @property
    def reader(self) -> LayerRule:
        """How a reader grows."""
        slots = SlotRule(self.slots, (100.0, 100.0), anchor="origin", spatial=True)
        return LayerRule(slots, self.neurons, 1, patience=1)

    @property
    def attributes(self) -> np.ndarray:
        """What each reader looks at, i32[P, 2]; an attribute beside itself: at that one alone."""
        if self.canvas is not None:
            return within_windows(self.canvas)
        pairs = np.triu_indices(BASE) if self.reach == 2 else [np.arange(BASE)] * 2
        return np.stack(pairs, axis=-1)


class TwoLayerState(NamedTuple):
    """`grownet_two_layer`'s state.

    Attributes:
      memory: the facts stated; all that learning a sample changes.
      readers: layers with leading [M, P]: for each question and each of P sets of attributes one,
        of neurons that share a memory (`growth.listen`) of the values recalled.
      votes: f32[M, P, N, S, 3], answers that were right when those values were recalled.
      right: f32[M, P], times that a reader foresaw the answer before it was told.
      told: f32[M], answers told.
      focus: f32[], how much more a reader is trusted that was right more often.
      steps: i32[], passes over a sample.
    """

    memory: Memory
    readers: Layer
    votes: Array
    right: Array
    told: Array
    focus: Array
    steps: Array


def grownet_two_layer(rule: TwoLayerRule = TwoLayerRule()) -> Learner:
    """Recalls facts as `grownet_lookup` does, and judges what can't be stated by grown readers.

    A reader looks at two attributes in the frame that the memory recalls; there is one for every
    pair. The values that it finds, one of which may be 'nothing recalled', are the place of an
    event in an ORIGIN layer, and a slot counts the answers that were right there. A place without
    a slot is novel, and that reader says UNKNOWN. Readers that foresaw more answers while they
    grew weigh more.

    What was recalled answers itself, and somebody whom the memory doesn't recognise is unknown.
    """
    return Learner(
        init=partial(init, rule),
        learn=learn,
        answer=partial(answer, rule),
        bases={"empty": None, "grown": jax.jit(partial(grow, rule))},
        trials=tuple({"focus": float(4**power)} for power in range(8)),
        chunk=8,
    )


def init(rule: TwoLayerRule, key: Array) -> TwoLayerState:
    """No facts, and readers that were told nothing."""
    sizes = (QUESTIONS, len(rule.attributes))
    empty = growth.empty(rule.reader)
    readers = jax.tree.map(lambda x: jnp.broadcast_to(x, sizes + x.shape), empty)
    return TwoLayerState(
        memory=memory.empty(rule.entities),
        readers=readers,
        votes=jnp.zeros((*sizes, rule.neurons, rule.slots, 3)),
        right=jnp.zeros(sizes),
        told=jnp.zeros(QUESTIONS),
        focus=jnp.float32(32),
        steps=jnp.int32(1),
    )


def learn(state: TwoLayerState, sample: Sample) -> TwoLayerState:
    """Remember the sample's facts."""
    held = passes(state.steps, lambda held: remember_all(held, sample), state.memory)
    return state._replace(memory=held)


def answer(rule: TwoLayerRule, state: TwoLayerState, query: Statement) -> Array:
    """Scores f32[3]: what was recalled, or what the readers make of it."""
    recalled, frame = look_up(state.memory, query)
    question = _question(query)
    judged = _judged(rule, state, jnp.maximum(question, 0), frame)
    return jnp.where((question >= 0) & frame.any(), judged, recalled)


def grow(
    rule: TwoLayerRule, state: TwoLayerState, samples: Samples, key: Array | None
) -> TwoLayerState:
    """The base state `grown`: readers told the answers of the pretraining split."""
    samples = in_order(samples, key)

    def recalled(sample: Sample) -> Array:
        held = remember_all(memory.empty(1), sample)
        return memory.recall(held, sample.exposure.entity[0])

    frames = lax.map(recalled, samples, batch_size=256)
    asked = samples.asked & ~withheld(samples)
    if not rule.told_unknown:
        asked &= samples.gold != int(Answer.UNKNOWN)
    question = jnp.where(asked, _question(samples.query), -1)

    def one(events: tuple[Array, Layer, Array, Array]) -> tuple[tuple[Layer, Array, Array], Array]:
        """All samples that ask one question, in order."""
        number, readers, votes, right = events
        asks = question == number  # at most once in a sample
        gold = jnp.where(asks, samples.gold, 0).max(-1)

        def tick(carry, item):
            frame, gold, told = item
            event = _places(rule, frame), gold
            return lax.cond(told, partial(_tell, rule), lambda same, _: same, carry, event), None

        told = lax.scan(tick, (readers, votes, right), (frames, gold, asks.any(-1)))[0]
        return told, asks.sum()

    events = jnp.arange(QUESTIONS), state.readers, state.votes, state.right
    (readers, votes, right), told = for_each(one, events)
    return state._replace(readers=readers, votes=votes, right=right, told=state.told + told)


def within_windows(canvas: tuple[int, int]) -> np.ndarray:
    """What readers look at where a grid feeds them, i32[P, 2]: two cells that the core's windowed
    wiring would carry to one centre, or one attribute alone (beside itself).

    Args:
      canvas: (rows, columns) of the first attributes; a window is 2 x 2, or as much of it as fits.
    """
    rows, columns = canvas
    reaches = windows(canvas, (min(rows, 2), min(columns, 2))).astype(int)
    together = np.argwhere(np.triu(reaches @ reaches.T, 1))
    alone = np.stack([np.arange(BASE)] * 2, axis=-1)
    return np.concatenate([alone, together])


def _question(query: Statement) -> Array:
    """Which of the QUESTIONS a query asks; -1 if it asks about what can be stated."""
    derived = (query.attribute >= BASE) & (query.value < 2)
    return jnp.where(derived, 2 * (query.attribute - BASE) + query.value, -1)


def _places(rule: TwoLayerRule, frame: Array) -> Array:
    """Where the recalled frame puts each reader's event, f32[P, 2]: 0 or 1 + value."""
    held = frame[:BASE]
    recalled = jnp.where(held.any(-1), 1 + jnp.argmax(held, -1), 0)
    return recalled[rule.attributes].astype(jnp.float32)


def _find(rule: TwoLayerRule, reader: Layer, place: Array) -> tuple[Array, Array, Array]:
    """Neuron and slot of a place in one reader, and whether it has any."""
    everywhere = jnp.broadcast_to(place, (rule.neurons, 2))
    response = growth.probe(reader, jnp.ones(rule.neurons), everywhere, rule.reader)
    row = jnp.argmax(response.familiar)
    return row, response.slot[row], response.familiar[row]


def _judged(rule: TwoLayerRule, state: TwoLayerState, question: Array, frame: Array) -> Array:
    """Scores f32[3] of a question i32[] before a recalled frame."""
    readers = jax.tree.map(lambda leaf: leaf[question], state.readers)
    row, slot, familiar = jax.vmap(partial(_find, rule))(readers, _places(rule, frame))
    record = state.right[question] / jnp.maximum(state.told[question], 1)
    weight = jnp.exp(state.focus * (record - record.max()))
    if not rule.novelty:
        weight *= familiar
    each = np.arange(len(rule.attributes))
    return opinion(state.votes[question, each, row, slot], familiar, weight)


def _tell(
    rule: TwoLayerRule, carry: tuple[Layer, Array, Array], event: tuple[Array, Array]
) -> tuple[Layer, Array, Array]:
    """Each reader of one question foresees an answer, then is told it."""
    readers, votes, right = carry
    place, gold = event
    each, rows = np.arange(len(rule.attributes)), np.arange(rule.neurons)
    row, slot, familiar = jax.vmap(partial(_find, rule))(readers, place)
    foreseen = jnp.argmax(votes[each, row, slot], -1)
    foreseen = jnp.where(familiar, foreseen, int(Answer.UNKNOWN))
    readers, heard = jax.vmap(
        lambda reader, at: growth.listen(reader, jnp.float32(1), at, rule.reader)
    )(readers, place)
    votes = votes.at[each[:, None], rows, heard.slot, gold].add(heard.landed)
    return jax.vmap(growth.end_tick)(readers), votes, right + (foreseen == gold)
