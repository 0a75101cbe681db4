"""How one cell is found: tune, expose, ask."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from evidence.runtime import timings
from evidence.runtime.language_models import Model
from kubku import audits, measures, protocol
from kubku.base_states import how_trained
from kubku.cells import Found
from kubku.halo import Learner, Samples, State, decide
from kubku.learners import language_model
from kubku.parts import Tuned
from kubku.samples import Splits, rows
from kubku.scoring import Scores, score_batch
from kubku.tasks import Family

AUDITED = 64
"""Samples of an audit, at most."""


class Amount(NamedTuple):
    """How much is asked of a learner.

    Attributes:
      test: the most samples that it is asked about.
      validation: the most samples that it is tuned on; None: all.
      sweep: samples of the sweep over steps; 0: no sweep.
      drift_alone: only the drift between pairs is wanted.
    """

    test: int
    validation: int | None
    sweep: int
    drift_alone: bool


def evaluate(
    learner: Learner,
    base: State,
    seconds_base: float,
    family: Family,
    splits: Splits,
    amount: Amount,
) -> Found:
    """Tune a learner on the validation split, then expose it to the others and ask.

    Args:
      learner: what is evaluated.
      base: the base state that it learns each sample from.
      seconds_base: that making it took; noted.
      family: of the samples.
      splits: what it is tuned and asked on.
      amount: how much of them.
    """
    clock = time.perf_counter()
    validation = rows(splits.validation, slice(0, amount.validation))
    with timings.part("tuning"):
        tuned = protocol.tune(learner, base, validation)
    with timings.part("measuring"):
        state = protocol.with_trial(base, tuned.trial)
        found = _measured(learner, state, tuned, family, splits, amount)
    matched = tuned.points[protocol.MATCHED]
    updates, level = how_trained(base)
    note = Tuned(
        trial=tuned.trial,
        threshold=matched.threshold,
        objective=matched.objective,
        thresholds={str(most): point.threshold for most, point in tuned.points.items()},
        reached={str(most): point.reached for most, point in tuned.points.items()},
        updates=updates,
        level=level,
        seconds=time.perf_counter() - clock,
        seconds_base=seconds_base,
        made_on=jax.devices()[0].device_kind,
    )
    return Found(found, note)


def _measured(
    learner: Learner,
    state: State,
    tuned: protocol.Tuned,
    family: Family,
    splits: Splits,
    amount: Amount,
) -> dict[str, np.ndarray]:
    """All that is found out about a tuned learner."""
    test = rows(splits.test, slice(0, amount.test))
    pairs = rows(splits.pairs, slice(0, amount.test // 2 * 2))
    threshold = tuned.points[protocol.MATCHED].threshold
    found: dict[str, np.ndarray] = {}
    if pairs.label.shape[0]:
        found |= measures.drift(learner, state, threshold, family, pairs)
    if amount.drift_alone:
        return found
    found |= _exposed(learner, state, tuned, test)
    # As many as a program takes at a time, which is compiled.
    few = rows(test, slice(0, protocol.PIECE))
    found["audit"] = np.asarray(protocol.audit(learner, state, few))
    found["carried"] = np.asarray(audits.carried(learner, state, few))
    found["split_read"] = np.asarray(audits.split_read(learner, state, threshold, few))
    if amount.sweep:
        swept = rows(test, slice(0, amount.sweep))
        found |= measures.by_steps(learner, state, threshold, swept)
    return found | measures.streaming(learner, state, threshold, splits.streams)


def _exposed(
    learner: Learner, state: State, tuned: protocol.Tuned, test: Samples
) -> dict[str, np.ndarray]:
    start = time.perf_counter()
    exposed = jax.block_until_ready(protocol.reset_to_base(learner, state, test))
    found = {"seconds_exposed": np.asarray(time.perf_counter() - start)}
    for most, point in tuned.points.items():
        found[f"answers.{most}"] = np.asarray(decide(exposed.after, point.threshold), np.int8)
    found["answers.forced"] = np.asarray(decide(exposed.after, 0.0), np.int8)
    threshold = tuned.points[protocol.MATCHED].threshold
    found["answers"] = found[f"answers.{protocol.MATCHED}"]
    found["before_answers"] = np.asarray(decide(exposed.before, threshold), np.int8)
    for when, scores in zip(("before", "after"), exposed, strict=True):
        found |= _named(when, protocol.judged(scores, threshold, test))
    curve = protocol.told(exposed.after, test).frontier
    return found | {"frontier.ku": curve.ku, "frontier.bku": curve.bku}


def _named(when: str, scores: Scores) -> Mapping[str, np.ndarray]:
    return {f"{when}.{name}": np.asarray(score) for name, score in scores._asdict().items()}


def ask(model: Model, family: Family, samples: Samples) -> Found:
    """Ask a language model about each sample, without the sample and with it in the prompt."""
    clock = time.perf_counter()
    before, after = (language_model.ask(model, family, samples, shown) for shown in (False, True))
    seconds = time.perf_counter() - clock
    found: dict[str, np.ndarray] = {
        "answers": after.astype(np.int8),
        "before_answers": before.astype(np.int8),
        # It is shown no halo that could be a wrong one, keeps nothing and reads names, not codes.
        **{name: np.asarray(np.nan) for name in ("audit", "carried", "split_read")},
        "seconds_exposed": np.asarray(seconds),
    }
    for when, answers in (("before", before), ("after", after)):
        found |= _named(when, score_batch(jnp.asarray(answers), samples))
    note = Tuned(
        objective=0.0,
        seconds=seconds,
        seconds_base=0.0,
        made_on=jax.devices()[0].device_kind,
        model=model.name,
    )
    return Found(found, note)
