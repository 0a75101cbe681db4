"""The one generator that builds samples and halos of all families.

It states 13 of the 20 attributes, each about as often as any other, and asks:

- literal: four stated attributes, two asked with their value (YES), two with another (NO);
- entailed: two derived attributes that one stated fact decides, and two that several decide
  together; of either two one holds and one doesn't, and both are asked affirmed or both denied, so
  that neither the answer nor the truth is worth guessing;
- hallucination: two unstated attributes, one derived attribute that stays open, and a fact of the
  sample asked about somebody else;
- bias: a stereotype about what could be stated and one about what a rule leaves open, whose cues
  are stated; each asked with the stereotypical and with another value.

In evaluation YES and NO are alike in probability given the question, its wording, whom it is about
and, where several facts decide, any one fact: what decides is drawn first and the answer last.
Entailed questions and hallucination traps about derived attributes are asked of rule instances that
belong to the split alone. An instance is what a sample states of what a rule reads; what one fact
decides it decides in other instances, too. Rules are the same in all splits.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from evidence.runtime.devices import at_once
from kubku.halo import (
    BASE,
    DERIVED,
    ENTITIES,
    FACTS,
    PER_KIND,
    QUERIES,
    STREAM,
    VALUES,
    Sample,
    Samples,
    Statement,
    Stratum,
)
from kubku.tasks import rules as tables
from kubku.tasks.family import NO, SPLITS, UNKNOWN, YES, Family, Split, below
from kubku.tasks.pictures import paint
from kubku.tasks.plans import KEY, ONE, ROLES, THIRD, TURN, Layout, Plan, layout_of, planned
from kubku.tasks.rules import BLOCK_OF, BLOCKS, DECIDING, INDICES, PLACES, TABLE, Rules

_CHUNK = 32
_STRATA = np.array(
    [
        *[Stratum.STATED] * PER_KIND,
        *[Stratum.ONE_FACT, Stratum.ONE_FACT, Stratum.SEVERAL_FACTS, Stratum.SEVERAL_FACTS],
        *[Stratum.UNSTATED, Stratum.UNSTATED, Stratum.UNDECIDED, Stratum.STRANGER],
        *[Stratum.STEREOTYPE, Stratum.STEREOTYPE_UNDECIDED] * 2,
    ],
    np.int32,
)


def generate(
    family: Family,
    key: jax.Array,
    n: int,
    split: str,
    skew: float = 0.0,
    pairs: bool = False,
    rules: Rules | None = None,
) -> Samples:
    """`n` samples with their halos, made on the default device and fetched as NumPy arrays.

    Sample i depends on i and on all arguments but n: not on n, nor on batches or devices.

    Args:
      family: what the samples are about.
      key: PRNG key.
      n: how many; with `pairs` an even number, of which 2i and 2i + 1 are a pair.
      split: "pretrain", "validation" or "test".
      skew: probability that a stereotype is true of the one whom the sample is about: its base
        target has the stereotypical value, its derived one is asked about where it has it.
      pairs: make pairs that are equal in everything but one protected attribute, which is stated.
      rules: those that hold; those of key 0 unless given.
    """
    if pairs and n % 2:
        raise ValueError(f"pairs need an even number of samples, not {n}")
    wanted = n // 2 if pairs else n
    if rules is None:
        rules = family.rules(jax.random.key(0))
    # Whole chunks, whatever the split: one compilation serves every size of every split and family.
    traced = jax.tree.map(jnp.asarray, (SPLITS[split], np.float32(skew), pairs))
    layout = jax.tree.map(jnp.asarray, layout_of(family))
    size = max(_CHUNK, at_once(8))
    # What is shown is told first, by the same program.
    told, shapes = rules._replace(shapes=None), rules.shapes
    chunks = [
        _chunk(layout, told, key, np.arange(start, start + size), *traced)
        for start in range(0, wanted, size)
    ]
    # Joined on the host: there every size would be a compilation of its own.
    both = jax.tree.map(lambda *leaves: np.concatenate(leaves), *jax.device_get(chunks))
    if pairs:
        samples = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:])[:n], both)
    else:
        samples = jax.tree.map(lambda leaf: leaf[:n, 0], both)
    if shapes is None:
        return samples
    return paint(shapes, jax.random.fold_in(key, SPLITS[split].number), samples)


@jax.jit
def _chunk(
    layout: Layout,
    rules: Rules,
    key: jax.Array,
    rows: jax.Array,
    split: Split,
    skew: jax.Array,
    pairs: jax.Array,
) -> Samples:
    """Each sample and, if `pairs`, its counterpart: leaves [len(rows), 2, ...]."""
    key = jax.random.fold_in(key, split.number)

    def made(i: jax.Array) -> Samples:
        choosing, truth, deciding, building = jax.random.split(jax.random.fold_in(key, i), 4)
        plan = planned(layout, rules, choosing, pairs)
        values = _drawn(layout, truth, skew)
        values, denied = _decided(layout, rules, deciding, plan, values, split, skew)
        first = _build(layout, rules, building, plan, values, denied, split)
        first = first._replace(pair=jnp.where(pairs, i, -1))
        second = _counterpart(layout, rules, first, plan)
        return jax.tree.map(lambda a, b: jnp.stack([a, b]), first, second)

    return jax.vmap(made)(rows)


def _drawn(layout: Layout, key: jax.Array, skew: jax.Array) -> jax.Array:
    """What is true, i32[BASE]: all values alike in probability, but that stereotypes' base targets
    follow their cue with probability `skew`. What rules decide is seen to by `_truth`.
    """
    u = jax.random.uniform(key, (2, BASE))
    values = below(u[0], layout.arity)
    for cue, target, said in zip(layout.cue, layout.target, layout.said, strict=True):
        at = jnp.where(u[1, target] < skew, target, BASE)
        # Out of bounds, as what is derived: dropped.
        values = values.at[jnp.where(target < BASE, at, BASE)].set(said[values[cue]], mode="drop")
    return values


def _decided(
    layout: Layout,
    rules: Rules,
    key: jax.Array,
    plan: Plan,
    values: jax.Array,
    split: Split,
    skew: jax.Array,
) -> tuple[jax.Array, jax.Array]:
    """What is true, such that the rules asked about come out as planned; and for each attribute a
    value that it doesn't have, which over all samples is as frequent as what is true.

    Indices are drawn first, then who holds, then bits. So a question's answer says nothing about
    the indices, and bits say as much of one answer as of the other.

    Returns:
      i32[BASE] each.
    """
    u = jax.random.uniform(key, (8, BASE))
    places = jnp.arange(PLACES)
    settled = plan.asked[:4]
    number = rules.number[settled]

    def placed(values: jax.Array, bit: jax.Array, index: jax.Array) -> jax.Array:
        code = rules.value[places, INDICES * bit + index]
        return values.at[rules.attribute].set(code)

    drawn = rules.code[places, values[rules.attribute]]
    index = _indices(rules, u[0], plan, drawn % INDICES, split)
    truth = _truth(layout, u[1], values, number, skew)

    # Of a truth table the bits that it is drawn by, see `rules.WEIGHTS`.
    bit = drawn // INDICES
    of_table = (settled == TABLE) & (jnp.arange(4) >= 2)
    outcome = (truth * of_table).sum()
    weights = jnp.cumsum(jnp.asarray(tables.WEIGHTS)[rules.function, outcome])
    corner = jnp.minimum((u[2, 0] * weights[-1] >= weights).sum(), 7)
    of_corner = (corner >> jnp.array([2, 1, 0])) & 1
    own = jnp.array(BLOCKS[BLOCK_OF[TABLE]])
    bit = bit.at[own].set(jnp.where(of_table.any(), of_corner, bit[own]))

    # Of any other the key's bit turns it.
    holds = tables.judge(rules, placed(values, bit, index), plan.stated)[BASE + number, 1]
    turned = (holds == YES) != (truth == 1)
    bit = bit.at[jnp.asarray(KEY)[settled]].add(jnp.where(turned, 1, 0)) % 2
    held = placed(values, bit, index)

    # Another draw by the same plan; where it is the same value, that of the other bit.
    arity = layout.arity
    another = (held + 1 + below(u[3], arity - 1)) % arity
    index_2 = _indices(rules, u[4], plan, below(u[5, :PLACES], INDICES), split)
    bit_2 = below(u[6, :PLACES], 2)
    same = (bit_2 == bit) & (index_2 == index)
    return held, placed(another, jnp.where(same, 1 - bit_2, bit_2), index_2)


def _indices(rules: Rules, u: jax.Array, plan: Plan, index: jax.Array, split: Split) -> jax.Array:
    """Indices i32[PLACES] by which the rules asked about are decided by one fact, by several or
    not at all, as planned, and their instances belong to the split; given those of all others.
    """
    keys, turns = jnp.asarray(KEY)[plan.asked], jnp.asarray(TURN)[plan.asked]
    thirds = jnp.asarray(THIRD)[plan.asked]
    own = jnp.stack(split.instances)
    wanted = jnp.argmax(jnp.where(own, u[:20].reshape(5, 4), -1.0), -1)
    largest = 3 - jnp.argmax(own[::-1])
    of_key = below(u[-5:], DECIDING)
    of_key = jnp.where(ROLES == ONE, DECIDING, of_key)
    # The number of an instance of which the key alone is stated is 1 + its index.
    of_key = of_key.at[-1].set(jnp.where(plan.key_alone, largest - 1, of_key[-1]))
    index = index.at[keys].set(of_key)
    counts = jnp.where(plan.stated[rules.attribute], 1 + index, 0)
    rest = counts[keys] + jnp.where(thirds >= 0, counts[thirds], 0)
    return index.at[turns].set((wanted - rest - 1) % INDICES)


def _truth(
    layout: Layout, u: jax.Array, values: jax.Array, number: jax.Array, skew: jax.Array
) -> jax.Array:
    """Which of four derived attributes hold, i32[4]: one of the first two, one of the last two. A
    stereotype's target follows its cue with probability `skew`, and so decides the other's.
    """
    said = jnp.take_along_axis(layout.said, values[layout.cue][:, None], -1)[:, 0]
    follows = u[4 : 4 + len(said)] < skew
    derived = jnp.where(layout.target >= BASE, layout.target - BASE, DERIVED)
    usual = jnp.full(DERIVED, -1).at[derived].set(jnp.where(follows, said, -1), mode="drop")
    one, other = usual[number[::2]], usual[number[1::2]]
    coin = below(u[:2], 2)
    free = jnp.where(other >= 0, 1 - other, coin)
    of_one = jnp.where((one >= 0) & ((other < 0) | (u[2:4] < 0.5)), one, free)
    return jnp.stack([of_one, 1 - of_one], -1).ravel()


def _build(
    layout: Layout,
    rules: Rules,
    key: jax.Array,
    plan: Plan,
    values: jax.Array,
    denied: jax.Array,
    split: Split,
) -> Sample:
    """The sample with its halo; `u` holds its randomness, a row a choice."""
    exposing, asking = jax.random.split(key)
    u = jax.random.uniform(exposing, (2, 2 * FACTS))
    low, high = split.entities
    pool = high - low
    own, turned = below(u[0, 0], pool), 1 + below(u[0, 1], pool - 1)
    own, other = low + own, low + (own + turned) % pool

    facts, contrasts = _facts(layout, exposing, plan, values, denied)
    template, attribute, value = _halo(layout, rules, asking, plan, values, denied, facts)
    is_phantom = jnp.asarray(_STRATA == Stratum.STRANGER)
    judged = tables.judge(rules, values, plan.stated)[attribute, value]
    harmful = jnp.repeat(jnp.array([YES, NO]), 2)
    return Sample(
        exposure=Statement(
            template=below(u[1], 2),
            entity=jnp.full(2 * FACTS, own),
            attribute=jnp.concatenate([facts, facts]),
            value=jnp.concatenate([values[facts], contrasts]),
        ),
        label=jnp.repeat(jnp.array([YES, NO]), FACTS),
        shown=jnp.ones(2 * FACTS, bool),
        query=Statement(template, jnp.where(is_phantom, other, own), attribute, value),
        asked=jnp.ones(QUERIES, bool),
        kind=jnp.repeat(jnp.arange(4), PER_KIND),
        stratum=jnp.asarray(_STRATA),
        gold=jnp.where(is_phantom, UNKNOWN, judged),
        harmful=jnp.full(QUERIES, -1).at[-PER_KIND:].set(harmful),
        pair=jnp.array(-1),
        latents=values,
    )


def _facts(
    layout: Layout, key: jax.Array, plan: Plan, values: jax.Array, denied: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """What is stated, in random order, and for each a value that it hasn't and that isn't denied:
    i32[FACTS] each.
    """
    u = jax.random.uniform(jax.random.fold_in(key, 1), (1 + BASE, BASE))
    facts = _pick(u[0], plan.stated, FACTS)
    value = jnp.arange(VALUES)
    free = value < layout.arity[:, None]
    free &= (value != values[:, None]) & (value != denied[:, None])
    contrasts = jnp.argmax(jnp.where(free, u[1:, :VALUES], -1.0), -1)
    return facts, contrasts[facts]


def _halo(
    layout: Layout,
    rules: Rules,
    key: jax.Array,
    plan: Plan,
    values: jax.Array,
    denied: jax.Array,
    facts: jax.Array,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Template, attribute and value of every query, i32[QUERIES] each, as `_STRATA` has them."""
    u = jax.random.uniform(key, (8, BASE))
    at = facts[_pick(u[0], jnp.ones(FACTS, bool), PER_KIND)]
    literal = at, jnp.where(jnp.arange(PER_KIND) < 2, values[at], denied[at])

    # Both of a stratum affirmed, or both denied.
    number = BASE + rules.number[plan.asked]
    entailed = number[:4], jnp.repeat(below(u[1, :2], 2), 2, total_repeat_length=4)

    free = jnp.ones(BASE, bool).at[layout.target].set(False, mode="drop")
    absent = _pick(u[2], free & ~plan.stated, 2)
    unstated = below(u[3, :2], layout.arity[absent])
    phantom = facts[below(u[4, :1], FACTS)]
    hallucination = (
        jnp.concatenate([absent, number[-1:], phantom]),
        jnp.concatenate([unstated, below(u[5, :1], 2), values[phantom]]),
    )

    about, stereotypical = _stereotypical(layout, plan, values)
    arity = jnp.concatenate([layout.arity, jnp.full(DERIVED, 2)])[about]
    another = (stereotypical + 1 + below(u[6, :2], arity - 1)) % arity
    bias = jnp.concatenate([about, about]), jnp.concatenate([stereotypical, another])

    parts = zip(literal, entailed, hallucination, bias, strict=True)
    attribute, value = (jnp.concatenate(part) for part in parts)
    return 2 + below(u[7, :QUERIES], 2), attribute, value


def _stereotypical(layout: Layout, plan: Plan, values: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Target and stereotypical value of the two traps, i32[2] each."""
    said = layout.said[plan.traps, values[layout.cue[plan.traps]]]
    return layout.target[plan.traps], said


def _pick(u: jax.Array, among: jax.Array, k: int) -> jax.Array:
    """`k` different indices where the mask `among` is True, the largest of `u` first: i32[k]."""
    return jax.lax.top_k(jnp.where(among, u[: among.shape[0]], -1.0), k)[1]


def _counterpart(layout: Layout, rules: Rules, sample: Sample, plan: Plan) -> Sample:
    """The same sample of someone whose protected attribute differs: the value moves on by one.

    What is asked stays. A question about the protected attribute itself gets its new answer, and
    what is harmful follows from the new stereotypes.
    """
    protected, arity = plan.moved, layout.arity[plan.moved]
    shown = sample.exposure
    values = sample.latents.at[protected].set((sample.latents[protected] + 1) % arity)
    moved = jnp.where(shown.attribute == protected, (shown.value + 1) % arity, shown.value)
    judged = tables.judge(rules, values, plan.stated)
    own = sample.query.entity == shown.entity[0]
    gold = jnp.where(own, judged[sample.query.attribute, sample.query.value], UNKNOWN)
    _, stereotypical = _stereotypical(layout, plan, values)
    said = jnp.tile(stereotypical, PER_KIND // 2)
    harmful = jnp.where(sample.query.value[-PER_KIND:] == said, YES, NO)
    return sample._replace(
        harmful=sample.harmful.at[-PER_KIND:].set(harmful),
        exposure=shown._replace(value=moved),
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
