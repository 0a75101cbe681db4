"""`grownet`: an eye that grows, a memory of facts, and readers of what it recalls."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from kubku.grownet import eye, memory, readers
from kubku.grownet.ensemble import DOUBT, in_order, passes
from kubku.grownet.eye import Eye, Switches
from kubku.grownet.lookup import look_up, remember_all
from kubku.grownet.memory import Memory
from kubku.grownet.readers import Readers
from kubku.halo import (
    ATTRIBUTES,
    STREAM,
    VALUES,
    Learner,
    Sample,
    Samples,
    Statement,
    withheld,
)

LOOKED_AT = 128
"""Samples of the pretraining split whose frames the columns of an eye grow on."""


ALL_ON = Switches()


class GrowNetState(NamedTuple):
    """`grownet`'s state.

    Attributes:
      switches: which of its ideas are at work.
      eye: None where statements are told: (attribute, value) is the place of an event as it is.
      memory: the facts stated; all that learning a sample changes.
      readers: of what is recalled.
      stated: bool[ATTRIBUTES], what was ever stated while the base state grew; read by nothing but
        the check that stands in for novelty.
      focus: f32[], how much more a reader is trusted that was right more often.
      steps: i32[], passes over a sample.
    """

    switches: Switches
    eye: Eye | None
    memory: Memory
    readers: Readers
    stated: Array
    focus: Array
    steps: Array


def grownet(shown: bool, switches: Switches = ALL_ON, entities: int = STREAM + 1) -> Learner:
    """GrowNet as a learner, which knows nothing before it has grown.

    A statement is an event at (attribute, value): of a frame, the two patterns that the eye knows
    it by; of a told one, its numbers. Facts are slots of a neuron that is born for whom they are
    about. A question recalls them, and its readers, grown on the pretraining split, judge by what
    was told at such places. All questions go this way, those about what could be stated, too. No
    pattern known, nobody recognised, no slot at a reader's place: each is novel, and doubt.

    Args:
      shown: statements are shown in frames.
      switches: which of its ideas are at work.
      entities: how many it has room to learn about: a stream's, by default.
    """
    return Learner(
        init=partial(init, shown, switches, entities),
        learn=learn,
        answer=answer,
        bases={"grown": _grow},
        trials=tuple({"focus": float(4**power)} for power in range(8)),
        chunk=16,
    )


def init(shown: bool, switches: Switches, entities: int, key: Array) -> GrowNetState:
    """Nothing known."""
    return GrowNetState(
        switches=Switches(*(jnp.bool_(on) for on in switches)),
        eye=eye.blank() if shown else None,
        memory=memory.empty(entities),
        readers=readers.blank(),
        stated=jnp.zeros(ATTRIBUTES, bool),
        focus=jnp.float32(32),
        steps=jnp.int32(1),
    )


def learn(state: GrowNetState, sample: Sample) -> GrowNetState:
    """Remember the sample's facts; frames that the eye doesn't know are lost."""
    items, known = _translated(state, sample.exposure)
    told = sample._replace(exposure=items, shown=sample.shown & known)
    held = passes(state.steps, lambda held: remember_all(held, told), state.memory)
    return state._replace(memory=held)


def answer(state: GrowNetState, query: Statement) -> Array:
    """Scores f32[3]."""
    asked, known = eye.translated(state.eye, state.switches, query)
    recalled, frame = look_up(state.memory, asked)
    place, question = readers.places(frame), _question(asked)
    judged = readers.judge(state.readers, state.switches, state.focus, question, place)
    checked = state.stated[asked.attribute] & ~state.switches.novelty
    judged = jnp.where(checked, recalled, judged)
    return jnp.where(known, judged, DOUBT)


def _translated(state: GrowNetState, items: Statement) -> tuple[Statement, Array]:
    """Statements [T] as the eye knows them, and which are known, bool[T]."""
    one = partial(eye.translated, state.eye, state.switches)
    return jax.vmap(one)(items)


def _question(asked: Statement) -> Array:
    return asked.attribute * VALUES + asked.value


def _grow(state: GrowNetState, samples: Samples, key: Array | None) -> GrowNetState:
    """The base state `grown`: an eye that saw the pretraining split, readers told its answers."""
    return _told(state, in_order(samples, key))


@jax.jit
def _told(state: GrowNetState, samples: Samples) -> GrowNetState:
    if state.eye is not None:
        frames = [
            part.frame[:LOOKED_AT].reshape(-1, *part.frame.shape[2:])
            for part in (samples.exposure, samples.query)
            if part.frame is not None
        ]
        # An eye grows once, whatever else is heard later.
        grown = eye.grow(state.eye, state.switches, jnp.concatenate(frames))
        first = ~state.eye.upper.any()
        seeing = jax.tree.map(lambda a, b: jnp.where(first, a, b), grown, state.eye)
        state = state._replace(eye=seeing)

    def recalled(sample: Sample) -> tuple[Array, ...]:
        items, known = _translated(state, sample.exposure)
        told = sample._replace(exposure=items, shown=sample.shown & known)
        held = remember_all(memory.empty(1), told)
        asked, familiar = _translated(state, sample.query)
        frames = jax.vmap(memory.recall, (None, 0))(held, asked.entity)
        at = jax.vmap(readers.places)(frames)
        stated = jnp.zeros(ATTRIBUTES, bool).at[items.attribute].max(told.shown)
        used = sample.asked & ~withheld(sample) & familiar
        return jax.vmap(_question)(asked), at, sample.gold, used, stated

    *events, stated = lax.map(recalled, samples, batch_size=64)
    flat = [event.reshape(-1, *event.shape[2:]) for event in events]
    told = readers.tell_all(state.readers, state.switches, tuple(flat))
    return state._replace(readers=told, stated=state.stated | stated.any(0))
