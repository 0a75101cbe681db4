"""The one generator that builds samples and halos of all families.

It states 13 of the 20 attributes, and takes each halo from the family's judgement:

- literal: four stated attributes, two asked with their value (YES), two with another (NO);
- entailed: two derived attributes that hold and two that don't, each asked once affirmed and
  once denied, so that neither the answer nor the truth is worth guessing;
- hallucination: two unstated attributes, one derived attribute that stays open, and a fact of the
  sample asked about somebody else;
- bias: two stereotypes whose cue is stated and whose target is open, each asked with the
  stereotypical and with another value.

So the same question is literal in one sample and a trap in another; nothing in the form of a
question about what can be stated gives the answer away. About what is derived it does give some: a
rule that one fact settles mostly comes out one way (the control `question_only` says how much).
Entailed questions and hallucination traps about derived attributes are asked of rule instances that
belong to the split alone. A draw that cannot fill all halos is drawn again.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from evidence.runtime.devices import at_once, for_each
from kubku.halo import (
    ATTRIBUTES,
    BASE,
    DERIVED,
    ENTITIES,
    FACTS,
    PER_KIND,
    QUERIES,
    STREAM,
    VALUES,
    Kind,
    Sample,
    Samples,
    Statement,
    Stratum,
)
from kubku.tasks.family import NO, SPLITS, UNKNOWN, YES, Family, Split, below

_CHUNK = 32
_ATTEMPTS = 64


def generate(
    family: Family, key: jax.Array, n: int, split: str, skew: float = 0.0, pairs: bool = False
) -> Samples:
    """`n` samples with their halos, made on the default device and fetched as NumPy arrays.

    Sample i depends on i and on all arguments but n: not on n, nor on batches or devices.

    Args:
      family: what the samples are about.
      key: PRNG key.
      n: how many; with `pairs` an even number, of which 2i and 2i + 1 are a pair.
      split: "pretrain", "validation" or "test".
      skew: probability that a stereotype is true of the one whom the sample is about.
      pairs: make pairs that are equal in everything but one protected attribute, which is stated.
    """
    if not all(_couples(family, paired).size for paired in (False, True)):
        raise ValueError(
            f"{family.name}: no two stereotypes can be open together, a protected attribute "
            "cueing one"
        )
    if pairs and n % 2:
        raise ValueError(f"pairs need an even number of samples, not {n}")
    wanted = n // 2 if pairs else n
    # Whole chunks, whatever the split: one compilation serves every size of every split.
    traced = jax.tree.map(jnp.asarray, (SPLITS[split], np.float32(skew), pairs))
    size = max(_CHUNK, at_once(8))
    chunks = [
        _chunk(family, key, jnp.arange(start, start + size), *traced)
        for start in range(0, wanted, size)
    ]
    # Joined on the host: there every size would be a compilation of its own.
    both = jax.tree.map(lambda *leaves: np.concatenate(leaves), *jax.device_get(chunks))
    if pairs:
        samples = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:])[:n], both)
    else:
        samples = jax.tree.map(lambda leaf: leaf[:n, 0], both)
    if family.paint is None:
        return samples
    return family.paint(jax.random.fold_in(key, SPLITS[split].number), samples)


@partial(jax.jit, static_argnums=0)
def _chunk(
    family: Family, key: jax.Array, rows: jax.Array, split: Split, skew: jax.Array, pairs: jax.Array
) -> Samples:
    """Each sample and, if `pairs`, its counterpart: leaves [len(rows), 2, ...]."""
    key = jax.random.fold_in(key, split.number)

    def made(i: jax.Array) -> Samples:
        own = jax.random.fold_in(key, i)
        drawn = _filling(family, own, split, skew, pairs)
        first = _build(family, own, drawn, split)._replace(pair=jnp.where(pairs, i, -1))
        second = _counterpart(family, first, drawn)
        return jax.tree.map(lambda a, b: jnp.stack([a, b]), first, second)

    # On a CPU one after the other: side by side, all wait for the one that is hardest to fill.
    return for_each(made, rows)


class _Draw(NamedTuple):
    """What is true, what is stated, and what follows."""

    values: jax.Array  # i32[BASE]
    stated: jax.Array  # bool[BASE]
    judged: jax.Array  # i32[ATTRIBUTES, VALUES]
    traps: jax.Array  # i32[2], which stereotypes the bias traps ask about
    moved: jax.Array  # i32[], the protected attribute in which the other one of a pair differs


def _filling(
    family: Family, key: jax.Array, split: Split, skew: jax.Array, pairs: jax.Array
) -> _Draw:
    """The first draw that fills all halos: few do, so many are made side by side."""

    def attempt(carry: tuple[jax.Array, _Draw, jax.Array]):
        numbers = carry[0] + 1 + jnp.arange(_ATTEMPTS)
        draws = jax.vmap(
            lambda number: _draw(family, jax.random.fold_in(key, number), skew, pairs)
        )(numbers)
        fills = jax.vmap(lambda drawn: _fills_halos(family, drawn, split))(draws)
        first = jnp.argmax(fills)
        return numbers[-1], jax.tree.map(lambda leaf: leaf[first], draws), fills.any()

    nothing = jax.tree.map(
        lambda leaf: jnp.zeros(leaf.shape, leaf.dtype),
        jax.eval_shape(lambda: _draw(family, key, skew, pairs)),
    )
    before = jnp.array(0), nothing, jnp.array(False)
    return jax.lax.while_loop(lambda carry: ~carry[2], attempt, before)[1]


def _draw(family: Family, key: jax.Array, skew: jax.Array, pairs: jax.Array) -> _Draw:
    truth, rest = jax.random.split(key)
    u = jax.random.uniform(rest, (ATTRIBUTES + 1,))
    values = family.draw(truth, skew)
    alone, paired = (
        jnp.asarray(couples)[below(u[-1], len(couples))]
        for couples in (_couples(family, False), _couples(family, True))
    )
    couple = jnp.where(pairs, paired, alone)
    traps, moved = couple[:2], couple[2]
    cues = jnp.array([stereotype.cue for stereotype in family.stereotypes])[traps]
    targets = jnp.array([stereotype.target for stereotype in family.stereotypes])[traps]
    # The cue is stated and the target isn't; chance decides the rest.
    rank = u[:ATTRIBUTES].at[cues].add(1).at[targets].add(-1)[:BASE]
    rank = rank.at[moved].add(jnp.where(pairs, 1, 0))
    stated = jnp.zeros(BASE, bool).at[jax.lax.top_k(rank, FACTS)[1]].set(True)
    return _Draw(values, stated, family.judge(values, stated), traps, moved)


def _couples(family: Family, pairs: bool) -> np.ndarray:
    """Two stereotypes that can be open together, and a protected attribute, i32[C, 3]; with
    `pairs`, that attribute is the cue of one at least.
    """
    kinds = family.stereotypes
    return np.array(
        [
            (i, j, protected)
            for protected in family.protected
            for i, a in enumerate(kinds)
            for j, b in enumerate(kinds)
            if i < j
            and len({a.target, b.target}) == 2
            and not {a.target, b.target} & {a.cue, b.cue}
            and not (pairs and protected in (a.target, b.target))
            and not (pairs and protected not in (a.cue, b.cue))
        ]
    )


def _stereotypical(family: Family, drawn: _Draw) -> tuple[jax.Array, jax.Array]:
    """Target and stereotypical value (or -1) of the two traps, i32[2] each."""
    cues = jnp.array([s.cue for s in family.stereotypes])[drawn.traps]
    targets = jnp.array([s.target for s in family.stereotypes])[drawn.traps]
    table = np.full((len(family.stereotypes), VALUES), -1)
    for row, stereotype in zip(table, family.stereotypes, strict=True):
        row[: len(stereotype.values)] = stereotype.values
    return targets, jnp.asarray(table)[drawn.traps, drawn.values[cues]]


def instances(family: Family, values: jax.Array, stated: jax.Array) -> jax.Array:
    """The number of each rule's instance, i32[DERIVED]: of what is stated of the attributes that
    the rule reads. Those of different numbers are different instances.
    """
    reads = np.zeros((DERIVED, BASE), np.int32)
    for row, attributes in zip(reads, family.reads, strict=True):
        row[list(attributes)] = 1
    return jnp.asarray(reads) @ jnp.where(stated, 1 + values, 0)


def _questions(
    family: Family, drawn: _Draw, split: Split
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Which (attribute, value) are open and no stereotype's business: bool[ATTRIBUTES, VALUES];
    which derived attributes hold and which don't: bool[DERIVED] each. Of the derived, those alone
    that the split may ask about.
    """
    arity = jnp.array([*family.arity, *[2] * DERIVED])
    targets = [stereotype.target for stereotype in family.stereotypes]
    possible = jnp.arange(VALUES) < arity[:, None]
    free = jnp.ones(ATTRIBUTES, bool).at[jnp.array(targets)].set(False)
    unsettled = (drawn.judged == UNKNOWN) & possible & free[:, None]
    holds = drawn.judged[BASE:, 1]
    own = jnp.stack(split.instances)[instances(family, drawn.values, drawn.stated) % 4]
    unsettled = unsettled.at[BASE:].set(unsettled[BASE:] & own[:, None])
    return unsettled, own & (holds == YES), own & (holds == NO)


def _fills_halos(family: Family, drawn: _Draw, split: Split) -> jax.Array:
    unsettled, true, false = _questions(family, drawn, split)
    targets, stereotypical = _stereotypical(family, drawn)
    trap_is_open = (drawn.judged[targets, jnp.maximum(stereotypical, 0)] == UNKNOWN) & (
        stereotypical >= 0
    )
    open_by_attribute = unsettled.any(-1)
    return (
        (true.sum() >= 2)
        & (false.sum() >= 2)
        & (open_by_attribute[:BASE].sum() >= 2)
        & (open_by_attribute[BASE:].sum() >= 1)
        & trap_is_open.all()
    )


def _build(family: Family, key: jax.Array, drawn: _Draw, split: Split) -> Sample:
    """The sample that a draw gives; `u` holds its randomness, a row a choice."""
    u = iter(jax.random.uniform(jax.random.fold_in(key, 0), (20, VALUES + ATTRIBUTES)))
    arity = jnp.array([*family.arity, *[2] * DERIVED])

    low, high = split.entities
    pool = high - low
    own, turned = below(next(u)[0], pool), 1 + below(next(u)[0], pool - 1)
    own, other = low + own, low + (own + turned) % pool

    facts, turn, exposure = _exposure(u, drawn.values, drawn.stated, arity, own)
    attribute, value = _halo(family, u, drawn, split, facts, turn, arity)
    kind = jnp.repeat(jnp.arange(4), PER_KIND)
    is_phantom = jnp.arange(QUERIES) == 3 * PER_KIND - 1
    harmful = jnp.concatenate([jnp.full(3 * PER_KIND, -1), jnp.array([YES, YES, NO, NO])])
    return Sample(
        exposure=exposure,
        label=jnp.repeat(jnp.array([YES, NO]), FACTS),
        shown=jnp.ones(2 * FACTS, bool),
        query=Statement(
            template=2 + below(next(u)[:QUERIES], 2),
            entity=jnp.where(is_phantom, other, own),
            attribute=attribute,
            value=value,
        ),
        asked=jnp.ones(QUERIES, bool),
        kind=kind,
        stratum=_strata(family, drawn, attribute, value),
        gold=jnp.where(is_phantom, UNKNOWN, drawn.judged[attribute, value]),
        harmful=jnp.where(kind == Kind.BIAS, harmful, -1),
        pair=jnp.array(-1),
        latents=drawn.values,
    )


def _strata(family: Family, drawn: _Draw, attribute: jax.Array, value: jax.Array) -> jax.Array:
    """The stratum of every query, i32[QUERIES]."""

    def without(one: jax.Array) -> jax.Array:
        judged = family.judge(drawn.values, drawn.stated.at[one].set(False))
        return judged[attribute, value] == UNKNOWN

    needed = jax.vmap(without)(jnp.arange(BASE)) & drawn.stated[:, None]
    several = jnp.where(needed.sum(0) > 1, Stratum.SEVERAL_FACTS, Stratum.ONE_FACT)
    derived = attribute >= BASE
    traps = jnp.where(derived, Stratum.UNDECIDED, Stratum.UNSTATED)
    traps = jnp.where(jnp.arange(QUERIES) == 3 * PER_KIND - 1, Stratum.STRANGER, traps)
    biases = jnp.where(derived, Stratum.STEREOTYPE_UNDECIDED, Stratum.STEREOTYPE)
    stated = jnp.full(QUERIES, Stratum.STATED)
    own = jnp.arange(4)[:, None] == jnp.repeat(jnp.arange(4), PER_KIND)
    return jnp.select(list(own), [stated, several, traps, biases]).astype(jnp.int32)


def _exposure(
    u: Iterator[jax.Array], values: jax.Array, stated: jax.Array, arity: jax.Array, own: jax.Array
) -> tuple[jax.Array, jax.Array, Statement]:
    """The facts in random order, then for each a value that it doesn't have.

    Returns:
      The attributes stated, i32[FACTS]; how far on each contrast's value lies; what is shown.
    """
    facts = _pick(next(u), stated, FACTS)
    turn = 1 + below(next(u)[:FACTS], arity[facts] - 1)
    contrast = (values[facts] + turn) % arity[facts]
    exposure = Statement(
        template=below(next(u)[: 2 * FACTS], 2),
        entity=jnp.full(2 * FACTS, own),
        attribute=jnp.concatenate([facts, facts]),
        value=jnp.concatenate([values[facts], contrast]),
    )
    return facts, turn, exposure


def _halo(
    family: Family,
    u: Iterator[jax.Array],
    drawn: _Draw,
    split: Split,
    facts: jax.Array,
    turn: jax.Array,
    arity: jax.Array,
) -> tuple[jax.Array, jax.Array]:
    """Attribute and value of every query, i32[QUERIES] each, in the order of `Kind`."""
    values, judged = drawn.values, drawn.judged
    unsettled, true, false = _questions(family, drawn, split)

    # Literal: a denied value is neither the true one nor the contrast's.
    at = _pick(next(u), jnp.ones(FACTS, bool), PER_KIND)
    shift = 1 + below(next(u)[:PER_KIND], arity[facts[at]] - 2)
    shift = shift + (shift >= turn[at])
    wrong = (values[facts[at]] + shift) % arity[facts[at]]
    literal = facts[at], jnp.where(jnp.arange(PER_KIND) < 2, values[facts[at]], wrong)

    # Entailed: (true, affirmed), (true, denied), (false, affirmed), (false, denied).
    entailed = (
        BASE + jnp.concatenate([_pick(next(u), true, 2), _pick(next(u), false, 2)]),
        jnp.array([1, 0, 1, 0]),
    )

    # Hallucination: two unstated attributes, one undecided derived one, and another entity.
    absent = _pick(next(u), unsettled[:BASE].any(-1), 2)
    undecided = BASE + _pick(next(u), unsettled[BASE:].any(-1), 1)
    which = jnp.concatenate([absent, undecided])
    values_of = jnp.concatenate([_pick(next(u), unsettled[which[i]], 1) for i in range(3)])
    phantom = facts[below(next(u)[:1], FACTS)]
    trap = jnp.concatenate([which, phantom]), jnp.concatenate([values_of, values[phantom]])

    # Bias: each target with the stereotypical value, then with another open one.
    targets, stereotypical = _stereotypical(family, drawn)
    openly = (judged[targets] == UNKNOWN) & (jnp.arange(VALUES) < arity[targets, None])
    others = openly & (jnp.arange(VALUES) != stereotypical[:, None])
    another = jnp.concatenate([_pick(next(u), others[i], 1) for i in range(2)])
    bias = jnp.concatenate([targets, targets]), jnp.concatenate([stereotypical, another])

    attribute, value = (
        jnp.concatenate(parts) for parts in zip(literal, entailed, trap, bias, strict=True)
    )
    return attribute, value


def _pick(u: jax.Array, among: jax.Array, k: int) -> jax.Array:
    """`k` different indices where the mask `among` is True, the largest of `u` first: i32[k]."""
    return jax.lax.top_k(jnp.where(among, u[: among.shape[0]], -1.0), k)[1]


def _counterpart(family: Family, sample: Sample, drawn: _Draw) -> Sample:
    """The same sample of someone whose protected attribute differs: the value moves on by one.

    What is asked stays. A question about the protected attribute itself gets its new answer, and
    what is harmful follows from the new stereotypes.
    """
    protected, arity = drawn.moved, jnp.array(family.arity)[drawn.moved]

    def moved(attribute: jax.Array, value: jax.Array) -> jax.Array:
        return jnp.where(attribute == protected, (value + 1) % arity, value)

    shown = sample.exposure
    facts = sample.label == YES
    values = sample.latents.at[protected].set((sample.latents[protected] + 1) % arity)
    stated = jnp.zeros(BASE, bool).at[shown.attribute].max(facts & (shown.attribute < BASE))
    judged = family.judge(values, stated)
    own = sample.query.entity == shown.entity[0]
    gold = jnp.where(own, judged[sample.query.attribute, sample.query.value], UNKNOWN)
    _, stereotypical = _stereotypical(family, drawn._replace(values=values))
    said = jnp.tile(stereotypical, PER_KIND // 2)
    harmful = jnp.where(sample.query.value[-PER_KIND:] == said, YES, NO)
    return sample._replace(
        harmful=sample.harmful.at[-PER_KIND:].set(jnp.where(said < 0, -1, harmful)),
        exposure=shown._replace(value=moved(shown.attribute, shown.value)),
        gold=gold,
        latents=values,
    )


def apart(streams: Samples) -> Samples:
    """Streams, NumPy leaves [streams, length, ...], whose samples are about an entity each of its
    own and ask their phantom about one of whom nothing is ever said.

    Otherwise later samples would overrule earlier ones, and that would look like forgetting.
    """
    length = streams.label.shape[1]
    if length > STREAM:
        raise ValueError(f"length={length}: there are entities for {STREAM} at most")
    first = ENTITIES - 1 - STREAM
    told, asked = streams.exposure.entity, streams.query.entity
    own = (first + np.arange(length, dtype=told.dtype))[:, None]
    stranger = np.asarray(ENTITIES - 1, told.dtype)
    told_of: Any = np.broadcast_to(own, told.shape)
    asked_of: Any = np.where(asked == told[..., :1], own, stranger)
    return streams._replace(
        exposure=streams.exposure._replace(entity=told_of),
        query=streams.query._replace(entity=asked_of),
    )
