"""Plans of samples: what is stated and asked, before anything has a value.

A plan depends on no value, so that no answer bears on what is stated or asked.
"""

from __future__ import annotations

from functools import cache
from itertools import combinations, product
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from kubku.halo import ATTRIBUTES, BASE, FACTS, VALUES
from kubku.tasks.family import Family, below
from kubku.tasks.rules import BLOCK_OF, BLOCKS, PLACES, READS, TABLE, Rules

_TRIES = 128
_SCENES = 128
KEY = np.array([reads[0] for reads in READS])
TURN = np.array([reads[1] for reads in READS])
THIRD = np.array([reads[2] if len(reads) > 2 else -1 for reads in READS])
_IN_BLOCK = np.array(
    [
        ([rule for rule, own in enumerate(BLOCK_OF) if own == block] * 2)[:2]
        for block in range(len(BLOCKS))
    ]
)
_SHARE = FACTS / BASE

# What is asked of a rule.
ONE, SEVERAL, UNDECIDED, TRAP = range(4)
ROLES = np.array([ONE, ONE, SEVERAL, SEVERAL, UNDECIDED])


Array = Any  # NumPy's where it is made, JAX's where it is traced


class Plan(NamedTuple):
    """What a sample is to be made of, before anything in it has a value.

    Attributes:
      traps: i32[2], which stereotypes the bias traps ask about: a base target's, a derived one's.
      moved: i32[], the protected attribute in which the other one of a pair differs.
      asked: i32[5], rows of `READS` by `ROLES`: what one fact decides, twice, what several decide,
        twice, and what stays open. No two in one block.
      key_alone: bool[], whether all that is stated of the last is its key.
      stated: bool[BASE].
    """

    traps: jax.Array
    moved: jax.Array
    asked: jax.Array
    key_alone: jax.Array
    stated: jax.Array


class Layout(NamedTuple):
    """What tells a family's samples from another's, as data: one program draws those of all. K
    stereotypes, S scenes.

    Attributes:
      arity: i32[BASE].
      readable: bool[BASE], what rules may read.
      cue, target: i32[K], of the stereotypes.
      said: i32[K, VALUES], for each value of the cue the stereotypical value of the target.
      scenes: which of them to ask about.
    """

    arity: Array
    readable: Array
    cue: Array
    target: Array
    said: Array
    scenes: Scenes


class Scenes(NamedTuple):
    """Which stereotypes to ask about, and what to state of attributes that no rule reads.

    Attributes:
      traps: i32[S, 2], see `Plan`.
      moved: i32[S], a protected attribute; of samples that are no pairs, any.
      stated: bool[S, BASE], of attributes that no rule reads.
      share: f32[2, S], probability, of samples that are no pairs and of those that are.
    """

    traps: Array
    moved: Array
    stated: Array
    share: Array


@cache
def layout_of(family: Family) -> Layout:
    """A family's layout.

    Raises:
      ValueError: its stereotypes can't be stated as often as all else.
    """
    kinds = family.stereotypes
    said = np.zeros((len(kinds), VALUES), np.int32)
    for row, stereotype in zip(said, kinds, strict=True):
        row[: len(stereotype.values)] = stereotype.values
    return Layout(
        arity=np.array(family.arity, np.int32),
        readable=np.isin(np.arange(BASE), family.readable),
        cue=np.array([stereotype.cue for stereotype in kinds], np.int32),
        target=np.array([stereotype.target for stereotype in kinds], np.int32),
        said=said,
        scenes=_scenes(family),
    )


def _scenes(family: Family) -> Scenes:
    """All scenes. Their shares are such that each attribute is stated as often as the others, and
    each stereotype asked about as often as others of its sort; of pairs, that each protected
    attribute is moved as often.

    Raises:
      ValueError: the family's stereotypes don't allow for that.
    """
    own = [attribute for attribute in range(BASE) if attribute not in family.readable]
    kinds = list(enumerate(family.stereotypes))
    # The stereotypes of two traps, what is moved, what is stated, whether of pairs.
    found: list[tuple[int, int, int, set[int], bool]] = []
    for (i, one), (j, other) in product(kinds, kinds):
        if one.target >= BASE or other.target < BASE or other.cue == one.target:
            continue
        free = set(own) - {one.target, one.cue, other.cue}
        for count in range(len(free) + 1):
            for more in combinations(sorted(free), count):
                told = {one.cue, other.cue, *more}
                moving = sorted({one.cue, other.cue} & set(family.protected))
                found.append((i, j, family.protected[0], told, False))
                found += [(i, j, to_move, told, True) for to_move in moving]
    if not found:
        raise ValueError(f"{family.name}: no two stereotypes can be asked about in one sample")
    traps = np.array([scene[:2] for scene in found])
    moved, paired = (np.array([scene[i] for scene in found]) for i in (2, 4))
    stated = np.array([[attribute in scene[3] for attribute in range(BASE)] for scene in found])
    even = [(stated[:, attribute], _SHARE) for attribute in own]
    for column in traps.T:
        sorts = np.unique(column)
        even += [(column == sort, 1 / len(sorts)) for sort in sorts.tolist()]
    apart = [(moved == moving, 1 / len(family.protected)) for moving in family.protected]
    share = np.stack([_shares(~paired, even), _shares(paired, apart)])
    if max(abs(share[0] @ group - wanted) for group, wanted in even) > 0.02:
        raise ValueError(
            f"{family.name}: its stereotypes can't be stated as often as anything else"
        )
    # All families have as many, the last of which are never drawn.
    missing = -len(found) % _SCENES

    def filled(leaf: np.ndarray, axis: int) -> np.ndarray:
        widths = [(0, missing * (at == axis)) for at in range(leaf.ndim)]
        return np.pad(leaf, widths)

    return Scenes(
        filled(traps.astype(np.int32), 0),
        filled(moved.astype(np.int32), 0),
        filled(stated, 0),
        filled(share.astype(np.float32), 1),
    )


def _shares(allowed: np.ndarray, even: list[tuple[np.ndarray, float]]) -> np.ndarray:
    """Probabilities f64[S] of those allowed by which each group has the share that is wanted, or
    nearly: iterative proportional fitting.
    """
    share = allowed / allowed.sum()
    for _ in range(300):
        for group, wanted in even:
            now = share[group].sum()
            if 0 < now < 1:
                share = np.where(group, share * wanted / now, share * (1 - wanted) / (1 - now))
    return share


def _needs() -> np.ndarray:
    """For each role and rule what must be stated (1) and what mustn't (-1), i8[4, 3, 8, PLACES]; of
    what is to stay open there are three ways.
    """
    needs = np.zeros((4, 3, len(READS), PLACES), np.int8)
    for rule, (key, turn, *third) in enumerate(READS):
        needs[ONE, :, rule, [key, turn]] = 1
        needs[SEVERAL, :, rule, [key, turn, *third]] = 1
        needs[TRAP, :, rule, key] = -1
        # Without its key, with that alone, and a chain without what decides its link.
        needs[UNDECIDED, 0, rule, key], needs[UNDECIDED, 0, rule, turn] = -1, 1
        needs[UNDECIDED, 1:, rule, key] = 1
        needs[UNDECIDED, 1:, rule, [turn, *third]] = -1
        if third and rule != TABLE:
            needs[UNDECIDED, 2, rule, turn] = 1
    return needs


_NEEDS = _needs()


def planned(layout: Layout, rules: Rules, key: jax.Array, pairs: jax.Array) -> Plan:
    """What a sample states and asks."""
    u = jax.random.uniform(key, (_TRIES + 2, 2 * len(BLOCKS) + 8 + BASE))
    scenes = layout.scenes
    share = jnp.cumsum(jnp.where(pairs, scenes.share[1], scenes.share[0]))
    scene = jnp.minimum((u[-1, 0] * share[-1] >= share).sum(), len(share) - 1)
    traps, moved, shown = scenes.traps[scene], scenes.moved[scene], scenes.stated[scene]

    # Which rules are asked about: the first of many tries by which what must be stated finds room.
    target = jnp.zeros(ATTRIBUTES, bool).at[layout.target].set(True)[BASE:][rules.number]
    trap = jnp.argsort(rules.number)[layout.target[traps[1]] - BASE]
    spread = u[:_TRIES, : len(BLOCKS)].at[:, jnp.array(BLOCK_OF)[trap]].set(2)
    block = jnp.argsort(spread, axis=-1)[:, : len(ROLES)]
    which = below(u[:_TRIES, len(BLOCKS) : len(BLOCKS) + len(ROLES)], 2)
    asked = jnp.asarray(_IN_BLOCK)[block, which]
    way = below(u[:_TRIES, 2 * len(BLOCKS)], 3)[:, None]
    needs = jnp.asarray(_NEEDS)[ROLES, way, asked].sum(1) + jnp.asarray(_NEEDS)[TRAP, 0, trap]
    told = shown.sum()
    fits = (needs > 0).sum(-1) <= FACTS - told
    fits &= (needs < 0).sum(-1) <= BASE - FACTS - ((~layout.readable).sum() - told)
    fits &= ~target[asked[:, -1]]
    first = jnp.argmax(fits)
    asked, need = asked[first], needs[first]

    rank = u[-2, :BASE].at[rules.attribute].add(2 * need)
    rank = jnp.where(layout.readable, rank, rank + jnp.where(shown, 2, -2))
    stated = jnp.zeros(BASE, bool).at[jax.lax.top_k(rank, FACTS)[1]].set(True)
    open_ = asked[-1]
    key_alone = (need[jnp.asarray(KEY)[open_]] > 0) & (need[jnp.asarray(TURN)[open_]] < 0)
    return Plan(traps, moved, asked, key_alone, stated)
