"""From answers to numbers: the table, three conventions over it, selective metrics, intervals.

The record of a system is its table, i32[3, 5]: gold (rows E, C, U) by answer (columns NO, UNKNOWN,
YES, INVALID, ERROR). Every ratio is a numerator and a denominator read off a table, so that the
same function serves one table, a table a subject and a thousand resampled tables: all take
`[..., 3, 5]`.

Three conventions differ in what a right answer on a contradictory claim is:

- `seed`: a NO rejects the claim, as the experiment's description has it, and so does abstaining.
- `strict`: abstaining is right on unknown claims alone, and only a NO rejects.
- `published`: what the published code computes: UNKNOWN abstains, YES and NO both answer, right or
  wrong. A system that gives every gold answer gets CVRR 0 and FAR-NE 0.67 by it; it is here so that
  published figures can be reproduced.

INVALID stays in denominators and is a false answer off E. ERROR, a call that failed, is left out of
every ratio but the error rate.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from epistemic.results import AnswerCounts, Table
from evidence.answers import Answer

LABELS = ("E", "C", "U")
"""Rows of a table: entailed, contradictory, unknown."""
E, C, U = range(3)
NO, UNKNOWN, YES, INVALID, ERROR = Answer
RIGHT = (YES, NO, UNKNOWN)
"""The gold answer of each row."""


class Fraction(NamedTuple):
    """A share of cards, numerator and denominator each `[...]`."""

    numerator: np.ndarray
    denominator: np.ndarray


Fractions = dict[str, Fraction]
Convention = Callable[[np.ndarray], Fractions]
"""From tables [..., 3, 5] to the fractions read off them, by name."""


@partial(jax.jit, static_argnames="groups")
def tables(label: jax.Array, answer: jax.Array, group: jax.Array, groups: int) -> jax.Array:
    """Count answers: a table a group.

    Args:
      label: i32[N], row of each card.
      answer: i32[N], an `Answer` each.
      group: i32[N] in [0, groups); cards with a group outside it are not counted.
      groups: how many tables.

    Returns:
      i32[groups, 3, 5].
    """
    cell = (group * 3 + label) * 5 + answer
    cell = jnp.where((group >= 0) & (group < groups), cell, groups * 15)
    return jnp.zeros(groups * 15, jnp.int32).at[cell].add(1, mode="drop").reshape(groups, 3, 5)


def seed_convention(t: np.ndarray) -> Fractions:
    """A NO on a contradictory claim is a rejection, and so counts among the right abstentions."""
    rejected = t[..., C, NO] + t[..., C, UNKNOWN]
    right = rejected + t[..., U, UNKNOWN]
    return {
        "AP": Fraction(right, right + t[..., E, UNKNOWN]),
        "CVRR": Fraction(rejected, _count(t, C)),
        "FAR_NE": _false_answers(t),
        "LA": Fraction(t[..., E, YES], _count(t, E)),
    }


def strict_convention(t: np.ndarray) -> Fractions:
    """Abstaining is right on unknown claims alone; only a NO rejects a contradictory one."""
    return seed_convention(t) | {
        "AP": Fraction(t[..., U, UNKNOWN], t[..., UNKNOWN].sum(-1)),
        "CVRR": Fraction(t[..., C, NO], _count(t, C)),
    }


def published_convention(t: np.ndarray) -> Fractions:
    """As the published code counts: only UNKNOWN abstains, YES and NO both answer."""
    abstained = t[..., UNKNOWN]
    answered = t[..., NO] + t[..., YES]
    off_e = abstained[..., C] + abstained[..., U]
    said = answered + t[..., INVALID]
    return {
        "AP": Fraction(off_e, off_e + abstained[..., E]),
        "CVRR": Fraction(abstained[..., C], _count(t, C)),
        "FAR_NE": Fraction(said[..., C] + said[..., U], _count(t, C) + _count(t, U)),
        "LA": Fraction(answered[..., E], _count(t, E)),
    }


def beside(t: np.ndarray) -> Fractions:
    """Ratios that hold under every convention.

    Abstention precision, recall and F1 take unknown claims as those to abstain on. Selective
    accuracy is the share right among YES and NO; coverage the share of cards answered so.
    """
    counted = t[..., :ERROR].sum((-2, -1))
    right = t[..., E, YES] + t[..., C, NO] + t[..., U, UNKNOWN]
    abstained = t[..., UNKNOWN].sum(-1)
    answered = t[..., YES].sum(-1) + t[..., NO].sum(-1)
    return {
        "accuracy": Fraction(right, counted),
        "coverage": Fraction(answered, counted),
        "selective_accuracy": Fraction(t[..., E, YES] + t[..., C, NO], answered),
        "abstention_precision": Fraction(t[..., U, UNKNOWN], abstained),
        "abstention_recall": Fraction(t[..., U, UNKNOWN], _count(t, U)),
        "abstention_f1": Fraction(2 * t[..., U, UNKNOWN], abstained + _count(t, U)),
        "over_refusal": Fraction(t[..., E, UNKNOWN], _count(t, E)),
        "invalid_rate": Fraction(t[..., INVALID].sum(-1), counted),
        "error_rate": Fraction(t[..., ERROR].sum(-1), t.sum((-2, -1))),
    }


CONVENTIONS: dict[str, Convention] = {
    "seed": seed_convention,
    "strict": strict_convention,
    "published": published_convention,
}


def _count(t: np.ndarray, row: int) -> np.ndarray:
    return t[..., row, :ERROR].sum(-1)


def _false_answers(t: np.ndarray) -> Fraction:
    """YES off E, NO on an unknown claim, or unreadable: said where nothing licensed it."""
    said = t[..., C, YES] + t[..., U, YES] + t[..., U, NO] + t[..., C, INVALID] + t[..., U, INVALID]
    return Fraction(said, _count(t, C) + _count(t, U))


def by_name(table: np.ndarray) -> Table:
    """i[3, 5] as results hold it."""
    rows = {
        label: AnswerCounts(**{answer.name: int(table[row, answer]) for answer in Answer})
        for row, label in enumerate(LABELS)
    }
    return Table(**rows)


def at_equal_labels(t: np.ndarray) -> np.ndarray:
    """Tables as shares of each row, so that every label weighs the same: f64[..., 3, 5].

    Metrics that mix labels (AP, FAR-NE) depend on a deck's label ratios; after this, two decks
    differ by what the system does alone. ERROR stays out of the shares, as out of every ratio.
    """
    counted = t[..., :ERROR].sum(-1, keepdims=True)
    return np.divide(t, counted, out=np.zeros(t.shape), where=counted > 0)
