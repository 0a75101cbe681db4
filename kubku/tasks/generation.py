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

from functools import cache, partial
from itertools import combinations, product
from typing import Any, NamedTuple

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
from kubku.tasks.rules import BLOCK_OF, BLOCKS, DECIDING, INDICES, PLACES, READS, TABLE, Rules

_CHUNK = 32
_TRIES = 128
_KEY = np.array([reads[0] for reads in READS])
_TURN = np.array([reads[1] for reads in READS])
_THIRD = np.array([reads[2] if len(reads) > 2 else -1 for reads in READS])
_IN_BLOCK = np.array(
    [
        ([rule for rule, own in enumerate(BLOCK_OF) if own == block] * 2)[:2]
        for block in range(len(BLOCKS))
    ]
)
_SHARE = FACTS / BASE

# What is asked of a rule.
_ONE, _SEVERAL, _UNDECIDED, _TRAP = range(4)
_ROLES = np.array([_ONE, _ONE, _SEVERAL, _SEVERAL, _UNDECIDED])
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
    # Whole chunks, whatever the split: one compilation serves every size of every split.
    traced = jax.tree.map(jnp.asarray, (SPLITS[split], np.float32(skew), pairs))
    size = max(_CHUNK, at_once(8))
    chunks = [
        _chunk(family, rules, key, jnp.arange(start, start + size), *traced)
        for start in range(0, wanted, size)
    ]
    # Joined on the host: there every size would be a compilation of its own.
    both = jax.tree.map(lambda *leaves: np.concatenate(leaves), *jax.device_get(chunks))
    if pairs:
        return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:])[:n], both)
    return jax.tree.map(lambda leaf: leaf[:n, 0], both)


@partial(jax.jit, static_argnums=0)
def _chunk(
    family: Family,
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
        plan = _plan(family, rules, choosing, pairs)
        values = family.draw(rules, truth, skew)
        values, denied = _decided(family, rules, deciding, plan, values, split, skew)
        first = _build(family, rules, building, plan, values, denied, split)
        first = first._replace(pair=jnp.where(pairs, i, -1))
        second = _counterpart(family, rules, first, plan)
        return jax.tree.map(lambda a, b: jnp.stack([a, b]), first, second)

    return jax.vmap(made)(rows)


class _Plan(NamedTuple):
    """What a sample is to be made of, before anything in it has a value.

    Attributes:
      traps: i32[2], which stereotypes the bias traps ask about: a base target's, a derived one's.
      moved: i32[], the protected attribute in which the other one of a pair differs.
      asked: i32[5], rows of `READS` by `_ROLES`: what one fact decides, twice, what several decide,
        twice, and what stays open. No two in one block.
      key_alone: bool[], whether all that is stated of the last is its key.
      stated: bool[BASE].
    """

    traps: jax.Array
    moved: jax.Array
    asked: jax.Array
    key_alone: jax.Array
    stated: jax.Array


class _Scenes(NamedTuple):
    """Which stereotypes to ask about, and what to state of attributes that no rule reads.

    Attributes:
      traps: i32[S, 2], see `_Plan`.
      moved: i32[S], a protected attribute; of samples that are no pairs, any.
      stated: bool[S, BASE], of attributes that no rule reads.
      share: f32[2, S], probability, of samples that are no pairs and of those that are.
    """

    traps: np.ndarray
    moved: np.ndarray
    stated: np.ndarray
    share: np.ndarray


@cache
def _scenes(family: Family) -> _Scenes:
    """All scenes. Their shares are such that each attribute is stated as often as the others, and
    each stereotype asked about as often as others of its sort; of pairs, that each protected
    attribute is moved as often.

    Raises:
      ValueError: the family's stereotypes don't allow for that.
    """
    own = [attribute for attribute in range(BASE) if attribute not in family.readable]
    kinds = list(enumerate(family.stereotypes))
    found: list[tuple[int, int, int, set[int], bool]] = []
    for (i, one), (j, other) in product(kinds, kinds):
        if one.target >= BASE or other.target < BASE or other.cue == one.target:
            continue
        free = set(own) - {one.target, one.cue, other.cue}
        for count in range(len(free) + 1):
            for more in combinations(sorted(free), count):
                stated = {one.cue, other.cue, *more}
                found.append((i, j, family.protected[0], stated, False))
                moving = {one.cue, other.cue} & set(family.protected)
                found += [(i, j, moved, stated, True) for moved in sorted(moving)]
    if not found:
        raise ValueError(f"{family.name}: no two stereotypes can be asked about in one sample")
    traps = np.array([scene[:2] for scene in found])
    moved, paired = np.array([scene[2] for scene in found]), np.array([s[4] for s in found])
    stated = np.array([[attribute in scene[3] for attribute in range(BASE)] for scene in found])
    even = [(stated[:, attribute], _SHARE) for attribute in own]
    for column in traps.T:
        sorts = np.unique(column)
        even += [(column == sort, 1 / len(sorts)) for sort in sorts]
    apart = [(moved == attribute, 1 / len(family.protected)) for attribute in family.protected]
    share = np.stack([_shares(~paired, even), _shares(paired, apart)])
    if max(abs(share[0] @ group - wanted) for group, wanted in even) > 0.02:
        raise ValueError(
            f"{family.name}: its stereotypes can't be stated as often as anything else"
        )
    return _Scenes(traps, moved, stated, share.astype(np.float32))


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
        needs[_ONE, :, rule, [key, turn]] = 1
        needs[_SEVERAL, :, rule, [key, turn, *third]] = 1
        needs[_TRAP, :, rule, key] = -1
        # Without its key, with that alone, and a chain without what decides its link.
        needs[_UNDECIDED, 0, rule, key], needs[_UNDECIDED, 0, rule, turn] = -1, 1
        needs[_UNDECIDED, 1:, rule, key] = 1
        needs[_UNDECIDED, 1:, rule, [turn, *third]] = -1
        if third and rule != TABLE:
            needs[_UNDECIDED, 2, rule, turn] = 1
    return needs


_NEEDS = _needs()


def _plan(family: Family, rules: Rules, key: jax.Array, pairs: jax.Array) -> _Plan:
    u = jax.random.uniform(key, (_TRIES + 2, 2 * len(BLOCKS) + 8 + BASE))
    scenes = _scenes(family)
    share = jnp.where(pairs, scenes.share[1], scenes.share[0])
    scene = (u[-1, 0] * share.sum() > jnp.cumsum(share)).sum()
    traps, moved = jnp.asarray(scenes.traps)[scene], jnp.asarray(scenes.moved)[scene]
    shown = jnp.asarray(scenes.stated)[scene]

    # Which rules are asked about: the first of many tries by which what must be stated finds room.
    targets = jnp.array([max(s.target - BASE, 0) for s in family.stereotypes])
    is_derived = jnp.array([s.target >= BASE for s in family.stereotypes])
    rule_of = jnp.argsort(rules.number)
    trap = rule_of[targets[traps[1]]]
    is_target = jnp.zeros(DERIVED, bool).at[rule_of[targets]].max(is_derived)
    spread = u[:_TRIES, : len(BLOCKS)].at[:, jnp.array(BLOCK_OF)[trap]].set(2)
    block = jnp.argsort(spread, axis=-1)[:, : len(_ROLES)]
    which = below(u[:_TRIES, len(BLOCKS) : len(BLOCKS) + len(_ROLES)], 2)
    asked = jnp.asarray(_IN_BLOCK)[block, which]
    way = below(u[:_TRIES, 2 * len(BLOCKS)], 3)[:, None]
    needs = jnp.asarray(_NEEDS)[_ROLES, way, asked].sum(1) + jnp.asarray(_NEEDS)[_TRAP, 0, trap]
    others = [attribute for attribute in range(BASE) if attribute not in family.readable]
    told = shown.sum()
    fits = (needs > 0).sum(-1) <= FACTS - told
    fits &= (needs < 0).sum(-1) <= BASE - FACTS - (len(others) - told)
    fits &= ~is_target[asked[:, -1]]
    first = jnp.argmax(fits)
    asked, need = asked[first], needs[first]

    rank = u[-2, :BASE].at[rules.attribute].add(2 * need)
    rank = rank.at[jnp.array(others)].add(jnp.where(shown[jnp.array(others)], 2, -2))
    stated = jnp.zeros(BASE, bool).at[jax.lax.top_k(rank, FACTS)[1]].set(True)
    open_ = asked[-1]
    key_alone = (need[jnp.asarray(_KEY)[open_]] > 0) & (need[jnp.asarray(_TURN)[open_]] < 0)
    return _Plan(traps, moved, asked, key_alone, stated)


def _decided(
    family: Family,
    rules: Rules,
    key: jax.Array,
    plan: _Plan,
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
    truth = _truth(family, u[1], values, number, skew)

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
    holds = family.judge(rules, placed(values, bit, index), plan.stated)[BASE + number, 1]
    turned = (holds == YES) != (truth == 1)
    bit = bit.at[jnp.asarray(_KEY)[settled]].add(jnp.where(turned, 1, 0)) % 2
    held = placed(values, bit, index)

    # Another draw by the same plan; where it is the same value, that of the other bit.
    arity = jnp.array(family.arity)
    another = (held + 1 + below(u[3], arity - 1)) % arity
    index_2 = _indices(rules, u[4], plan, below(u[5, :PLACES], INDICES), split)
    bit_2 = below(u[6, :PLACES], 2)
    same = (bit_2 == bit) & (index_2 == index)
    return held, placed(another, jnp.where(same, 1 - bit_2, bit_2), index_2)


def _indices(rules: Rules, u: jax.Array, plan: _Plan, index: jax.Array, split: Split) -> jax.Array:
    """Indices i32[PLACES] by which the rules asked about are decided by one fact, by several or
    not at all, as planned, and their instances belong to the split; given those of all others.
    """
    keys, turns = jnp.asarray(_KEY)[plan.asked], jnp.asarray(_TURN)[plan.asked]
    thirds = jnp.asarray(_THIRD)[plan.asked]
    own = jnp.stack(split.instances)
    wanted = jnp.argmax(jnp.where(own, u[:20].reshape(5, 4), -1.0), -1)
    largest = 3 - jnp.argmax(own[::-1])
    of_key = below(u[-5:], DECIDING)
    of_key = jnp.where(_ROLES == _ONE, DECIDING, of_key)
    # The number of an instance of which the key alone is stated is 1 + its index.
    of_key = of_key.at[-1].set(jnp.where(plan.key_alone, largest - 1, of_key[-1]))
    index = index.at[keys].set(of_key)
    counts = jnp.where(plan.stated[rules.attribute], 1 + index, 0)
    rest = counts[keys] + jnp.where(thirds >= 0, counts[thirds], 0)
    return index.at[turns].set((wanted - rest - 1) % INDICES)


def _truth(
    family: Family, u: jax.Array, values: jax.Array, number: jax.Array, skew: jax.Array
) -> jax.Array:
    """Which of four derived attributes hold, i32[4]: one of the first two, one of the last two. A
    stereotype's target follows its cue with probability `skew`, and so decides the other's.
    """
    usual = jnp.full(DERIVED, -1)
    for at, stereotype in enumerate(s for s in family.stereotypes if s.target >= BASE):
        said = jnp.array(stereotype.values)[values[stereotype.cue]]
        follows = u[4 + at] < skew
        usual = usual.at[stereotype.target - BASE].set(jnp.where(follows, said, -1))
    one, other = usual[number[::2]], usual[number[1::2]]
    coin = below(u[:2], 2)
    free = jnp.where(other >= 0, 1 - other, coin)
    of_one = jnp.where((one >= 0) & ((other < 0) | (u[2:4] < 0.5)), one, free)
    return jnp.stack([of_one, 1 - of_one], -1).ravel()


def _build(
    family: Family,
    rules: Rules,
    key: jax.Array,
    plan: _Plan,
    values: jax.Array,
    denied: jax.Array,
    split: Split,
) -> Sample:
    """The sample with its halo; `u` holds its randomness, a row a choice."""
    u = jax.random.uniform(key, (12, 2 * FACTS + VALUES))
    judged = family.judge(rules, values, plan.stated)
    low, high = split.entities
    pool = high - low
    own, turned = below(u[0, 0], pool), 1 + below(u[0, 1], pool - 1)
    own, other = low + own, low + (own + turned) % pool

    # The facts in random order, then for each a value that it has not, nor is denied.
    facts = _pick(u[1], plan.stated, FACTS)
    possible = jnp.arange(VALUES) < jnp.array(family.arity)[:, None]
    free = possible & (jnp.arange(VALUES) != values[:, None])
    free &= jnp.arange(VALUES) != denied[:, None]
    more = jax.random.uniform(jax.random.fold_in(key, 1), (2 * FACTS, VALUES))
    contrast = jnp.argmax(jnp.where(free[facts], more[:FACTS], -1.0), -1)
    exposure = Statement(
        template=below(u[2, : 2 * FACTS], 2),
        entity=jnp.full(2 * FACTS, own),
        attribute=jnp.concatenate([facts, facts]),
        value=jnp.concatenate([values[facts], contrast]),
    )

    at = facts[_pick(u[3], jnp.ones(FACTS, bool), PER_KIND)]
    literal = at, jnp.where(jnp.arange(PER_KIND) < 2, values[at], denied[at])
    # Both of a stratum affirmed, or both denied.
    number = BASE + rules.number[plan.asked]
    entailed = number[:4], jnp.repeat(below(u[4, :2], 2), 2, total_repeat_length=4)

    targets, stereotypical = _stereotypical(family, plan, values)
    free = jnp.ones(BASE, bool)
    free = free.at[jnp.array([s.target for s in family.stereotypes if s.target < BASE])].set(False)
    absent = _pick(u[5], free & ~plan.stated, 2)
    unstated = below(u[6, :2], jnp.array(family.arity)[absent])
    phantom = facts[below(u[7, :1], FACTS)]
    hallucination = (
        jnp.concatenate([absent, number[-1:], phantom]),
        jnp.concatenate([unstated, below(u[8, :1], 2), values[phantom]]),
    )

    arity = jnp.array([*family.arity, *[2] * DERIVED])[targets]
    another = (stereotypical + 1 + below(u[9, :2], arity - 1)) % arity
    bias = jnp.concatenate([targets] * 2), jnp.concatenate([stereotypical, another])

    parts = zip(literal, entailed, hallucination, bias, strict=True)
    attribute, value = (jnp.concatenate(part) for part in parts)
    kind = jnp.repeat(jnp.arange(4), PER_KIND)
    is_phantom = jnp.asarray(_STRATA == Stratum.STRANGER)
    harmful = jnp.repeat(jnp.array([YES, NO]), 2)
    return Sample(
        exposure=exposure,
        label=jnp.repeat(jnp.array([YES, NO]), FACTS),
        shown=jnp.ones(2 * FACTS, bool),
        query=Statement(
            template=2 + below(u[10, :QUERIES], 2),
            entity=jnp.where(is_phantom, other, own),
            attribute=attribute,
            value=value,
        ),
        asked=jnp.ones(QUERIES, bool),
        kind=kind,
        stratum=jnp.asarray(_STRATA),
        gold=jnp.where(is_phantom, UNKNOWN, judged[attribute, value]),
        harmful=jnp.full(QUERIES, -1).at[-PER_KIND:].set(harmful),
        pair=jnp.array(-1),
        latents=values,
    )


def _stereotypical(family: Family, plan: _Plan, values: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Target and stereotypical value of the two traps, i32[2] each."""
    kinds = family.stereotypes
    table = np.zeros((len(kinds), VALUES), np.int32)
    for row, stereotype in zip(table, kinds, strict=True):
        row[: len(stereotype.values)] = stereotype.values
    cues = jnp.array([stereotype.cue for stereotype in kinds])[plan.traps]
    targets = jnp.array([stereotype.target for stereotype in kinds])[plan.traps]
    return targets, jnp.asarray(table)[plan.traps, values[cues]]


def _pick(u: jax.Array, among: jax.Array, k: int) -> jax.Array:
    """`k` different indices where the mask `among` is True, the largest of `u` first: i32[k]."""
    return jax.lax.top_k(jnp.where(among, u[: among.shape[0]], -1.0), k)[1]


def _counterpart(family: Family, rules: Rules, sample: Sample, plan: _Plan) -> Sample:
    """The same sample of someone whose protected attribute differs: the value moves on by one.

    What is asked stays. A question about the protected attribute itself gets its new answer, and
    what is harmful follows from the new stereotypes.
    """
    protected, arity = plan.moved, jnp.array(family.arity)[plan.moved]
    shown = sample.exposure
    values = sample.latents.at[protected].set((sample.latents[protected] + 1) % arity)
    moved = jnp.where(shown.attribute == protected, (shown.value + 1) % arity, shown.value)
    judged = family.judge(rules, values, plan.stated)
    own = sample.query.entity == shown.entity[0]
    gold = jnp.where(own, judged[sample.query.attribute, sample.query.value], UNKNOWN)
    _, stereotypical = _stereotypical(family, plan, values)
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
