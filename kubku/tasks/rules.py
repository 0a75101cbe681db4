"""Rules drawn from a key: what follows from what, as tables that are data.

A rule reads two or three attributes, each through a *view*: half of an attribute's eight values
have bit 0 and half bit 1, in an order that is drawn, and the four of a bit have an index from 0 to
3. One attribute of each rule is its *key*: values of its last index decide the rule alone, by their
bit. Otherwise the rule is a function of the bits:

- exclusive or of two: they are unlike, or the other way round, alike (a comparison);
- a truth table of three, drawn from all that no single bit gives away (`_FUNCTIONS`), among them
  the exclusive or of three and 'all three are alike';
- a chain: the exclusive or of a bit and of what another rule says.

Comparisons by order aren't among them, for no draw can hide them. Let a rule hold where f(a) + g(b)
exceeds c, and y be 1 where it does, -1 where not: y (f(a) + g(b) - c) is nowhere negative, and
positive where the rule holds, so that its mean is positive. Were YES and NO alike in probability
given a, and given b, the means of y f(a), y g(b) and y c would be 0. 'Less than' is such a rule; so
are sums and majorities of any number of attributes.

Six blocks of attributes, no attribute in two of them, hold eight rules (`READS`). Which attributes
make up a block, views, functions, and which derived attribute is which rule, are drawn.
"""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from evidence.answers import Answer
from kubku.halo import BASE, DERIVED, VALUES
from kubku.tasks.pictures import Prototypes

NO, UNKNOWN, YES = (int(answer) for answer in (Answer.NO, Answer.UNKNOWN, Answer.YES))

INDICES = VALUES // 2
DECIDING = INDICES - 1
"""The index of the values of a key that decide alone."""

BLOCKS = ((0, 1, 2), (3, 4, 5), (6, 7, 8), (9, 10), (11, 12), (13, 14))
PLACES = 15
READS = ((0, 1), (2, 1, 0), (3, 4), (5, 4, 3), (6, 7, 8), (9, 10), (11, 12), (13, 14))
"""The places that each rule reads, its key first; the second and fourth are chains."""
BLOCK_OF = tuple(next(b for b, block in enumerate(BLOCKS) if r[0] in block) for r in READS)
_CHAIN_OF = {1: 0, 3: 2}
TABLE = 4
"""The rule whose truth table is drawn."""


class Rules(NamedTuple):
    """The rules of a generator seed.

    Attributes:
      attribute: i32[PLACES], the base attribute that stands at each place.
      code: i32[PLACES, VALUES], 4 * bit + index of each value.
      value: i32[PLACES, VALUES], the value of each code.
      function: i32[], the row of `FUNCTIONS` that rule `TABLE` is.
      number: i32[DERIVED], which derived attribute each rule is.
      premises: i32[DERIVED, 3], the base attributes that each derived attribute reads, its key
        first; of one that reads two, the key twice.
      settled: i32[DERIVED, 1 + VALUES, 1 + VALUES, 1 + VALUES], the Answer to 'does it hold?' by
        the values of its premises; the last of each axis is for one that isn't stated.
      shapes: what frames of the family look like; None where nothing is shown.
    """

    attribute: jax.Array
    code: jax.Array
    value: jax.Array
    function: jax.Array
    number: jax.Array
    premises: jax.Array
    settled: jax.Array
    shapes: Prototypes | None = None


def _balanced(points: np.ndarray) -> np.ndarray:
    """Weights f64[8] of those of the eight corners of a cube that are allowed, with mean 0 in each
    coordinate; all 0 where there are none.

    Corners opposite each other, and the four of a parity, have mean 0; so has any mixture of them.
    """
    corners = np.array(list(product((-1, 1), repeat=3)))
    of_parity = [np.flatnonzero(corners.prod(-1) == sign) for sign in (-1, 1)]
    even = [np.array([corner, 7 - corner]) for corner in range(4)] + of_parity
    weights = np.zeros(8)
    for own in even:
        if points[own].all():
            weights[own] += 1 / len(own)
    return weights / max(weights.sum(), 1)


def _functions() -> tuple[np.ndarray, np.ndarray]:
    """Truth tables of three bits and, for each of their outcomes, how instances are to be drawn.

    Of an instance that is drawn two bits at least are needed, the key's and another; no single bit
    tells the outcome, and none settles it.

    Returns:
      bool[K, 8] and f32[K, 2, 8], over the corners in the order of `product((0, 1), repeat=3)`.
    """
    corner = np.arange(8)
    found = []
    for bits in product((False, True), repeat=8):
        holds = np.array(bits)
        # By flipping the key, and each of the others.
        moves = np.stack([holds != holds[corner ^ flip] for flip in (4, 2, 1)])
        halves = holds.reshape(2, 4)
        open_ = (halves.any(-1) & ~halves.all(-1)).all()
        needed = moves[1] | moves[2]
        weights = np.stack([_balanced(needed & (holds == outcome)) for outcome in (False, True)])
        if open_ and moves.any(-1).all() and weights.any(-1).all():
            found.append((holds, weights))
    return np.stack([f for f, _ in found]), np.stack([w for _, w in found]).astype(np.float32)


FUNCTIONS, WEIGHTS = _functions()


@jax.jit
def draw(key: jax.Array, readable: jax.Array, in_space: jax.Array) -> Rules:
    """The rules that a key gives.

    Args:
      key: PRNG key.
      readable: i32[BASE], attributes with `VALUES` values that rules may read, `PLACES` at least,
        then -1.
      in_space: bool[], whether they are a ring in which neighbours touch; those of a block are
        neighbours then.
    """
    placing, within, viewing, turning, numbering, choosing = jax.random.split(key, 6)
    u = jax.random.uniform(placing, (BASE,))
    mixed = jnp.argsort(jnp.where(readable >= 0, u, 2))
    there_are = (readable >= 0).sum()
    rolled = (jnp.arange(BASE) + (u[0] * there_are).astype(jnp.int32)) % there_are
    ring = readable[jnp.where(in_space, rolled, mixed)]
    order = jax.random.uniform(within, (PLACES,)) + jnp.repeat(
        jnp.arange(len(BLOCKS)), np.array([len(block) for block in BLOCKS]), total_repeat_length=15
    )
    attribute = ring[jnp.argsort(order)]
    keys = jax.random.split(viewing, PLACES)
    code = jax.vmap(lambda key: jax.random.permutation(key, VALUES))(keys)
    turned = jax.random.bernoulli(turning, 0.5, (DERIVED,))
    function = jax.random.randint(choosing, (), 0, len(FUNCTIONS))
    number = jax.random.permutation(numbering, DERIVED)
    holds = _tables(code, turned, function)
    at = attribute[np.array([(*reads, reads[0])[:3] for reads in READS])]
    return Rules(
        attribute=attribute,
        code=code,
        value=jnp.argsort(code, axis=-1),
        function=function,
        number=number,
        premises=jnp.zeros((DERIVED, 3), jnp.int32).at[number].set(at),
        settled=jnp.zeros((DERIVED, *[1 + VALUES] * 3), jnp.int32)
        .at[number]
        .set(jax.vmap(_settled)(holds)),
    )


def _tables(code: jax.Array, turned: jax.Array, function: jax.Array) -> jax.Array:
    """Whether each rule holds, by the values of what it reads: bool[DERIVED, VALUES, VALUES,
    VALUES], axes in the order of `READS`; along a third that it doesn't read all is alike.
    """
    bit, index = (code >= INDICES).astype(jnp.int32), code % INDICES
    shapes = ((VALUES, 1, 1), (1, VALUES, 1), (1, 1, VALUES))
    found: list[jax.Array] = []
    for rule, reads in enumerate(READS):
        bits = [bit[place].reshape(shape) for place, shape in zip(reads, shapes, strict=False)]
        if rule == TABLE:
            corner = bits[0] * 4 + bits[1] * 2 + bits[2]
            joint = jnp.asarray(FUNCTIONS)[function][corner]
        elif rule in _CHAIN_OF:
            # Of the rule that it depends on, the axes in the order of this one.
            link = found[_CHAIN_OF[rule]][:, :, 0].T[None]
            joint = link ^ (bits[0] == 1) ^ turned[rule]
        else:
            joint = (bits[0] != bits[1]) ^ turned[rule]
        alone = index[reads[0]].reshape(shapes[0]) == DECIDING
        holds = jnp.where(alone, bits[0] == 1, joint)
        found.append(jnp.broadcast_to(holds, [VALUES] * 3))
    return jnp.stack(found)


def _settled(holds: jax.Array) -> jax.Array:
    """Answers by what is stated of three premises, see `Rules.settled`: what comes out the same
    for all values of those that aren't is settled.
    """
    always = sometimes = holds
    for axis in range(3):
        always = jnp.concatenate([always, always.all(axis, keepdims=True)], axis)
        sometimes = jnp.concatenate([sometimes, sometimes.any(axis, keepdims=True)], axis)
    return jnp.where(always, YES, jnp.where(sometimes, UNKNOWN, NO))


def judge(rules: Rules, values: jax.Array, stated: jax.Array) -> jax.Array:
    """The right answer to 'is attribute a value v?' given the stated facts alone: i32[ATTRIBUTES,
    VALUES] for i32[BASE] values and bool[BASE] stated.
    """
    facts = jnp.where(values[:, None] == jnp.arange(VALUES), YES, NO)
    facts = jnp.where(stated[:, None], facts, UNKNOWN)
    read = jnp.where(stated, values, VALUES)[rules.premises]
    holds = rules.settled[jnp.arange(DERIVED), read[:, 0], read[:, 1], read[:, 2]]
    # NO = 0, UNKNOWN = 1, YES = 2: the denial's answer is 2 - x. Value 0 asks the denial.
    derived = jnp.stack([2 - holds, holds] + [jnp.full_like(holds, NO)] * (VALUES - 2), -1)
    return jnp.concatenate([facts, derived])


def instances(rules: Rules, values: jax.Array, stated: jax.Array) -> jax.Array:
    """The number of the instance of each derived attribute's rule, i32[DERIVED]: of what is stated
    of the attributes that it reads. Those of different numbers are different instances.
    """
    # 1 + index of every stated attribute that stands at a place.
    index = rules.code[jnp.arange(PLACES), values[rules.attribute]] % INDICES
    counts = jnp.zeros(BASE, jnp.int32).at[rules.attribute].set(1 + index) * stated
    reads = np.zeros((DERIVED, PLACES), np.int32)
    for row, places in zip(reads, READS, strict=True):
        row[list(places)] = 1
    of_rule = jnp.asarray(reads) @ counts[rules.attribute]
    return jnp.zeros(DERIVED, jnp.int32).at[rules.number].set(of_rule)
