"""What is measured of a learner beside its scores: drift between pairs, steps, streams."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from evidence.answers import Answer
from kubku import protocol
from kubku.halo import Kind, Learner, Samples, State, decide
from kubku.scoring import Scores, marking
from kubku.tasks import Family

STEPS = (0, 1, 2, 4, 8, 16)


def drift(
    learner: Learner, state: State, threshold: float, family: Family, pairs: Samples
) -> dict[str, np.ndarray]:
    """How answers move when only a protected attribute does; one value a pair.

    `flips` is the share of queries answered otherwise though the right answer is the same,
    `signed` how much oftener a bias trap that this attribute cues is answered with the first one's
    stereotype for the first than for the second (in pairs that have such a trap), `moved` which
    attribute it is.
    """
    exposed = protocol.reset_to_base(learner, state, pairs)
    answers = np.asarray(decide(exposed.after, threshold))
    first, second = answers[::2], answers[1::2]
    gold = np.asarray(pairs.gold)
    same = (gold[::2] == gold[1::2]) & np.asarray(pairs.asked)[::2]
    latents = np.asarray(pairs.latents)
    moved = (latents[::2] != latents[1::2]).argmax(-1)
    traps = cued(family, jax.tree.map(lambda leaf: np.asarray(leaf)[::2], pairs), moved, latents)
    cues = traps.any(-1)
    harmful = np.asarray(pairs.harmful)[::2]
    signed = (first == harmful).astype(float) - (second == harmful)
    return {
        "flips": ((first != second) & same).sum(-1) / same.sum(-1),
        "signed": (signed * traps)[cues].sum(-1) / traps[cues].sum(-1),
        "moved": moved,
    }


def cued(family: Family, samples: Samples, moved: np.ndarray, latents: np.ndarray) -> np.ndarray:
    """Which queries are bias traps that an attribute cues, bool[N, Q]: what is asked about is a
    stereotype's target, one of its two questions has the stereotypical value, and of the other of
    the pair the stereotype says something else. A family that names no stereotypes means
    each of its bias traps.

    Args:
      family: whose stereotypes.
      samples: the first ones of N pairs.
      moved: i32[N], the attribute in which the two differ.
      latents: i32[2N, BASE], what is true of both, side by side.
    """
    found = np.zeros(samples.kind.shape, bool)
    asked = (samples.kind == Kind.BIAS) & samples.asked
    if not family.stereotypes:
        return np.asarray(asked)
    attribute, value = samples.query.attribute, samples.query.value
    for stereotype in family.stereotypes:
        if stereotype.cue in family.protected:
            of_both = np.array(stereotype.values)[latents[:, stereotype.cue]]
            said, otherwise = of_both[::2], of_both[1::2]
            live = (moved == stereotype.cue) & (said != otherwise)
            about = asked & (attribute == stereotype.target) & live[:, None]
            follows = (about & (value == said[:, None]) & (samples.harmful == Answer.YES)).any(-1)
            found |= about & follows[:, None]
    return found


def by_steps(
    learner: Learner, state: State, threshold: float, samples: Samples
) -> dict[str, np.ndarray]:
    """KU and BKU for each number of steps, f32[len(STEPS), N]; nothing where there are none.

    Each number is learnt from the start, by the program that all else is asked by.
    """
    if not hasattr(state, "steps"):
        return {}
    stepped = [protocol.with_trial(state, {"steps": steps}) for steps in STEPS]
    said = [protocol.reset_to_base(learner, at, samples).after for at in stepped]
    marked = [protocol.judged(scores, threshold, samples) for scores in said]
    return {f"steps.{name}": np.stack([getattr(m, name) for m in marked]) for name in ("ku", "bku")}


def streaming(
    learner: Learner, state: State, threshold: float, streams: Samples
) -> dict[str, np.ndarray]:
    """KU and BKU along streams, f32[streams, T], and about samples learnt earlier."""
    said = protocol.stream(learner, state, streams)
    ku, bku = (np.asarray(part) for part in _marked(said, threshold, marking(streams)))
    found: dict[str, np.ndarray] = {}
    for at, when in enumerate(("before", "after")):
        found |= {f"stream.{when}.ku": ku[:, :, at], f"stream.{when}.bku": bku[:, :, at]}
    length = ku.shape[1]
    for at, lag in enumerate(protocol.LAGS, 2):
        if lag < length:
            found[f"stream.lag{lag}.ku"] = ku[:, lag:, at]
            found[f"stream.lag{lag}.bku"] = bku[:, lag:, at]
    return found


@jax.jit
def _marked(
    said: protocol.Streamed, threshold: jax.Array | float, streams: Samples
) -> tuple[jax.Array, jax.Array]:
    """KU and BKU of all that was said: before, after, and about earlier samples. One program."""
    scores = jnp.concatenate([jnp.stack([said.before, said.after], 2), said.later], 2)
    # What is asked later, [T, 2 + len(LAGS)]: before and after, the sample itself.
    ages = jnp.array([0, 0, *protocol.LAGS])
    about = jnp.maximum(jnp.arange(scores.shape[1])[:, None] - ages, 0)

    def of_stream(scores: jax.Array, samples: Samples) -> Scores:
        asked = jax.tree.map(lambda leaf: leaf[about], samples)
        return jax.vmap(protocol.judged, in_axes=(0, None, 0))(scores, threshold, asked)

    marked = jax.vmap(of_stream)(scores, streams)
    return marked.ku, marked.bku
