"""The generators: gold answers against a second evaluator, halo membership, leaks, pairs."""

from collections import deque
from itertools import product

import jax
import numpy as np
import pytest
from scipy.stats import norm

from evidence.answers import Answer
from kubku.halo import BASE, DERIVED, ENTITIES, ENTITY_CODE, FACTS, Kind
from kubku.tasks import FAMILIES, SPLITS, apart, generate, instances, say, story
from kubku.tasks import stories as stories_module

N, U, Y = int(Answer.NO), int(Answer.UNKNOWN), int(Answer.YES)

# ---- second evaluators: plain Python over completions, written without the families' code --------


def completions_agree(rule, domains):
    """YES if `rule` holds in every completion, NO if in none, else UNKNOWN."""
    outcomes = {bool(rule(*filled)) for filled in product(*domains)}
    return U if len(outcomes) == 2 else (Y if outcomes == {True} else N)


STORY_RULES = [
    (
        ("action", "object", "place"),
        lambda a, o, p: a != "polishes" and o != "cushion" and p != "bed",
    ),
    (("content", "lid"), lambda c, lid: c != "sand" and lid != "screwed tight"),
    (("weather", "cover"), lambda w, c: w != "sunshine" and c != "an awning"),
    (("door", "key"), lambda d, k: d == "ajar" or k == "the master key"),
    (("lamp", "hour"), lambda lamp, hour: lamp == "on" or hour == "noon"),
    (("material", "action"), lambda m, a: m != "rubber" and a != "polishes"),
    (("number", "bag"), lambda n, b: n == "a hundred" or b == "overfull"),
    (("weather", "place"), lambda w, p: w != "sunshine" and p not in ("stair", "bed")),
]


def judge_story(values, stated, attribute, value):
    words = [w for _, _, w in stories_module.ATTRIBUTES]
    names = [name for name, _, _ in stories_module.ATTRIBUTES]
    if attribute < BASE:
        return (Y if values[attribute] == value else N) if stated[attribute] else U
    involved, rule = STORY_RULES[attribute - BASE]
    domains = []
    for name in involved:
        at = names.index(name)
        domains.append([words[at][values[at]]] if stated[at] else words[at])
    holds = completions_agree(rule, domains)
    return holds if value == 1 else 2 - holds


def queue_search(walls, start, goal):
    """Breadth-first search with a queue on a 4 x 4 grid."""
    if start in walls or goal in walls:
        return False
    queue, seen = deque([start]), {start}
    while queue:
        here = queue.popleft()
        if here == goal:
            return True
        row, column = divmod(here, 4)
        for r, c in ((row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)):
            there = 4 * r + c
            if 0 <= r < 4 and 0 <= c < 4 and there not in walls and there not in seen:
                seen.add(there)
                queue.append(there)
    return False


def judge_grid(values, stated, attribute, value):
    if attribute < BASE:
        return (Y if values[attribute] == value else N) if stated[attribute] else U
    things = ("floor", "wall", "gem", "lever")
    which = attribute - BASE
    if which < 2:
        start, goal = ((0, 6), (12, 10))[which]
        told = {i for i in range(16) if stated[i] and values[i] == 1}
        untold = [i for i in range(16) if not stated[i]]
        outcomes = set()
        for filled in product((False, True), repeat=len(untold)):
            walls = told | {cell for cell, wall in zip(untold, filled, strict=True) if wall}
            outcomes.add(queue_search(walls, start, goal))
            if len(outcomes) == 2:
                break
        holds = U if len(outcomes) == 2 else (Y if outcomes == {True} else N)
    else:
        cells, rule = [
            ((1, 2), lambda *t: "wall" in t),
            ((7, 11), lambda *t: "wall" in t),
            ((5, 8, 13), lambda *t: "gem" in t),
            ((6, 11, 3), lambda *t: "lever" in t),
            ((14, 15), lambda *t: "wall" not in t),
            ((4, 9), lambda *t: "wall" not in t),
        ][which - 2]
        holds = completions_agree(
            rule, [[things[values[c]]] if stated[c] else things for c in cells]
        )
    return holds if value == 1 else 2 - holds


def chain(persistent, upward, switching):
    """Transition of (level, regime) in float64, entry by entry."""
    matrix = np.zeros((16, 16))
    for level, regime, after, later in product(range(8), (0, 1), range(8), (0, 1)):
        mean = 3.5 + (0.95 if persistent else 0.2) * (level - 3.5) + (0.7 if upward else -0.7)
        sigma = (0.4, 2.0)[regime]
        high = 1.0 if after == 7 else norm.cdf((after + 0.5 - mean) / sigma)
        low = 0.0 if after == 0 else norm.cdf((after - 0.5 - mean) / sigma)
        change = 0.25 if switching else 0.0
        matrix[2 * level + regime, 2 * after + later] = (high - low) * (
            change if later != regime else 1 - change
        )
    return matrix


CHAINS = {setting: chain(*setting) for setting in product((0, 1), repeat=3)}


def likelihood(allowed, keep=lambda setting: True):
    """P(every day's state in its allowed set), summed over the latent settings to keep."""
    total = 0.0
    for setting, matrix in CHAINS.items():
        if keep(setting):
            vector = allowed[0] / 16.0
            for day in range(1, 16):
                vector = (vector @ matrix) * allowed[day]
            total += vector.sum() / 8
    return total


def probability_series(values, stated, attribute, value):
    """P(the attribute has the value | the stated days), by restricting the chain; None: labels."""
    level = np.repeat(np.arange(8), 2)
    regime = np.tile([0, 1], 8)
    allowed = np.ones((16, 16))
    for day in range(16):
        if stated[day]:
            allowed[day] = level == values[day]
    evidence = likelihood(allowed)
    if attribute < 16:
        restricted = allowed.copy()
        restricted[attribute] *= level == value
        return likelihood(restricted) / evidence
    if attribute < BASE:
        return None
    which = attribute - BASE
    if which < 3:
        index = (1, 0, 2)[which]
        holds = likelihood(allowed, lambda setting: setting[index] == 1) / evidence
    else:
        day, states = [
            (14, regime == 1),
            (0, regime == 1),
            (15, level >= 4),
            (0, level >= 4),
            (8, level >= 4),
        ][which - 3]
        restricted = allowed.copy()
        restricted[day] *= states
        holds = likelihood(restricted) / evidence
    return holds if value == 1 else 1 - holds


def judge_series(values, stated, attribute, value):
    """None within rounding of the threshold."""
    probability = probability_series(values, stated, attribute, value)
    if probability is None:
        return (Y if values[attribute] == value else N) if stated[attribute] else U
    if min(abs(probability - 0.9), abs(probability - 0.1)) < 1e-4:
        return None
    return Y if probability >= 0.9 else N if probability <= 0.1 else U


# What each rule depends on, by number; of a day's level, that day and those beside it.
_PATH, _FIRST, _LAST = tuple(range(16)), (0, 1, 2), (13, 14, 15)
PREMISES = {
    "stories": [
        tuple([n for n, _, _ in stories_module.ATTRIBUTES].index(name) for name in involved)
        for involved, _ in STORY_RULES
    ],
    "series": [_PATH, _PATH, _PATH, _LAST, _FIRST, _LAST, _FIRST, (7, 8, 9)],
    "grids": [_PATH, _PATH, (1, 2), (7, 11), (5, 8, 13), (6, 11, 3), (14, 15), (4, 9)],
}
JUDGES = {"stories": judge_story, "grids": judge_grid, "series": judge_series}


def disagreements(name, samples, rows):
    judge, wrong, asked = JUDGES[name], [], 0
    for i in rows:
        stated = np.zeros(BASE, bool)
        stated[samples.exposure.attribute[i, :FACTS]] = True
        own = samples.exposure.entity[i, 0]
        for q in range(samples.gold.shape[1]):
            entity, attribute, value = (int(part[i, q]) for part in samples.query[1:])
            gold = judge(samples.latents[i], stated, attribute, value) if entity == own else U
            if gold is None:
                continue
            asked += 1
            if gold != samples.gold[i, q]:
                wrong.append((i, q, attribute, value, gold, int(samples.gold[i, q])))
    return wrong, asked


@pytest.mark.parametrize(("name", "n"), [("stories", 512), ("grids", 256), ("series", 24)])
def test_gold_agrees_with_brute_force(drawn, name, n):
    wrong, asked = disagreements(name, drawn(name), range(n))
    assert not wrong
    assert asked > 15 * n


@pytest.mark.full
@pytest.mark.parametrize(("name", "n"), [("stories", 3100), ("grids", 2750), ("series", 500)])
def test_gold_agrees_with_brute_force_on_100_000_queries(name, n):
    samples = jax.tree.map(np.asarray, generate(FAMILIES[name], jax.random.key(11), n, "test"))
    wrong, asked = disagreements(name, samples, range(n))
    assert not wrong
    assert asked > 15.9 * n


# ---- halos ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FAMILIES)
def test_halos_are_full_and_balanced(drawn, name):
    samples = drawn(name)
    gold = samples.gold.reshape(-1, 4, 4)
    assert samples.asked.all()
    for kind in (Kind.LITERAL, Kind.ENTAILED):
        assert (np.sort(gold[:, kind], -1) == [N, N, Y, Y]).all()
    assert (gold[:, Kind.HALLUCINATION :] == U).all()
    harmful = samples.harmful.reshape(-1, 4, 4)
    assert (harmful[:, : Kind.BIAS] == -1).all()
    assert (harmful[:, Kind.BIAS] == [Y, Y, N, N]).all()
    # A derived attribute, once settled, holds or not: neither is worth guessing.
    entailed = samples.kind == Kind.ENTAILED
    truth = np.where(samples.query.value[entailed] == 1, gold[:, 1].ravel(), 2 - gold[:, 1].ravel())
    assert (truth == Y).mean() == 0.5


@pytest.mark.parametrize("name", FAMILIES)
def test_the_same_question_is_literal_in_one_sample_and_a_trap_in_another(drawn, name):
    """All but the one attribute that cues a stereotype in every pair of them: it is always stated,
    so that only a stranger's is a trap.
    """
    samples = drawn(name)
    own = samples.query.entity == samples.exposure.entity[:, :1]
    kinds = {kind: samples.query.attribute[(samples.kind == kind) & own] for kind in Kind}
    base = {kind: set(attributes[attributes < BASE]) for kind, attributes in kinds.items()}
    always = {"stories": set(), "series": {18}, "grids": {16}}[name]
    traps = base[Kind.HALLUCINATION] | base[Kind.BIAS]
    assert base[Kind.LITERAL] == set(range(BASE)) and traps == set(range(BASE)) - always
    assert set(kinds[Kind.HALLUCINATION]) & set(kinds[Kind.ENTAILED])
    # 13 of 20 are stated: cues of a stereotype oftener, their targets seldomer.
    stated = np.bincount(samples.exposure.attribute[:, :FACTS].ravel(), minlength=BASE) / 512
    assert stated.mean() == 0.65 and stated.min() > 0.1
    targets = {stereotype.target for stereotype in FAMILIES[name].stereotypes}
    for attribute in set(range(BASE)) - targets - always:
        assert 0.4 < stated[attribute] < 0.9, attribute


@pytest.mark.parametrize("name", FAMILIES)
def test_nothing_leaks_from_exposure_to_halo(drawn, name):
    """Judged on ids: no trap about the sample's own entity is among its statements, no denied
    literal repeats a contrast, and no question is worded like a statement.
    """
    samples = drawn(name)
    told, asked = samples.exposure, samples.query
    assert told.template.max() < 2 <= asked.template.min()
    assert told.attribute.max() < BASE
    same = (told.entity[:, :, None] == asked.entity[:, None]) & (
        told.attribute[:, :, None] == asked.attribute[:, None]
    )
    same_value = same & (told.value[:, :, None] == asked.value[:, None])
    traps = samples.gold == U
    assert not (same.any(1) & traps).any()
    denied = (samples.kind == Kind.LITERAL) & (samples.gold == N)
    assert not (same_value.any(1) & denied).any()
    affirmed = (samples.kind == Kind.LITERAL) & (samples.gold == Y)
    assert (same_value[:, :FACTS].any(1) == affirmed).all()


@pytest.mark.parametrize("name", FAMILIES)
def test_splits_share_no_entity_and_no_rule_instance(drawn, name):
    """An instance is written down as read: the rule, and what the sample states of its premises;
    of all that is asked about derived attributes but the bias traps, which nobody is trained on.
    """
    entities, premises, truths = {}, {}, {}
    for split in SPLITS:
        samples = drawn(name, split, 512)
        entities[split] = set(np.unique(samples.query.entity))
        premises[split], truths[split] = set(), set()
        facts, values = samples.exposure.attribute[:, :FACTS], samples.exposure.value[:, :FACTS]
        derived = (samples.query.attribute >= BASE) & (samples.kind != Kind.BIAS)
        assert (derived & (samples.gold == U)).any()
        for i, q in np.argwhere(derived):
            rule, asked = samples.query.attribute[i, q] - BASE, samples.query.value[i, q]
            stated = dict(zip(facts[i].tolist(), values[i].tolist(), strict=True))
            premises[split].add((rule, tuple(stated.get(a) for a in PREMISES[name][rule])))
            gold = samples.gold[i, q]
            truths[split].add((rule, gold if asked == 1 else 2 - gold))
        # Every rule is asked about in every split, and comes out either way.
        assert truths[split] >= set(product(range(8), (N, Y)))
    for a, b in (("pretrain", "validation"), ("pretrain", "test"), ("validation", "test")):
        assert not entities[a] & entities[b]
        assert not premises[a] & premises[b]


@pytest.mark.parametrize("name", FAMILIES)
def test_instances_are_told_apart_by_what_is_stated_alone(name):
    family = FAMILIES[name]
    values, stated = np.zeros(BASE, int), np.ones(BASE, bool)
    numbers = np.asarray(instances(family, values, stated))
    np.testing.assert_array_equal(numbers, [len(reads) for reads in PREMISES[name]])
    for attribute in range(BASE):
        read = np.array([attribute in reads for reads in PREMISES[name]])
        changed, untold = values.copy(), stated.copy()
        changed[attribute], untold[attribute] = 1, False
        np.testing.assert_array_equal(instances(family, changed, stated) - numbers, read * 1)
        np.testing.assert_array_equal(instances(family, changed, untold) - numbers, read * -1)


@pytest.mark.parametrize("name", FAMILIES)
def test_nobody_in_a_stream_is_spoken_of_twice(drawn, name):
    """So nothing that is learnt later can contradict what was learnt before."""
    samples = drawn(name)
    streams = apart(jax.tree.map(lambda leaf: leaf.reshape(2, 256, *leaf.shape[1:]), samples))
    streams = jax.tree.map(np.asarray, streams)
    assert streams.label.shape[:2] == (2, 256)
    told, asked = streams.exposure.entity, streams.query.entity
    stranger = asked.max()
    for stream in range(2):
        own = [set(told[stream, t]) for t in range(256)]
        assert all(len(one) == 1 for one in own) and len(set.union(*own)) == 256
        assert stranger not in set.union(*own)
        for t in range(256):
            assert set(asked[stream, t]) == {*own[t], stranger}
    # Nobody of a split, and in all else the samples that they were.
    assert not set(np.unique(told)) & set(range(96)) and stranger < ENTITIES
    was = samples.query.entity == samples.exposure.entity[:, :1]
    np.testing.assert_array_equal(asked.reshape(512, -1) != stranger, was)
    for part in ("attribute", "value", "template"):
        for statement in ("exposure", "query"):
            a, b = (getattr(getattr(s, statement), part) for s in (streams, samples))
            np.testing.assert_array_equal(a.reshape(b.shape), b)


def test_every_entity_has_a_name_and_a_code_of_its_own():
    for family in FAMILIES.values():
        assert len(set(family.names)) == ENTITIES
    distance = (16 - 16 * ENTITY_CODE @ ENTITY_CODE.T) / 2
    assert distance[~np.eye(ENTITIES, dtype=bool)].min() >= 4
    np.testing.assert_allclose(np.linalg.norm(ENTITY_CODE, axis=-1), 1)


def test_a_sample_depends_on_its_key_and_number_alone(drawn, monkeypatch):
    # In other batches too.
    monkeypatch.setattr("kubku.tasks.generation._CHUNK", 5)
    again = generate(FAMILIES["stories"], jax.random.key(5), 7, "test")
    for many, few in zip(jax.tree.leaves(drawn("stories")), jax.tree.leaves(again), strict=True):
        np.testing.assert_array_equal(many[:7], few)


@pytest.mark.parametrize("name", FAMILIES)
def test_pairs_differ_in_the_protected_attribute_alone(name):
    family = FAMILIES[name]
    pairs = generate(family, jax.random.key(3), 64, "test", pairs=True)
    first, second = (jax.tree.map(lambda x: np.asarray(x)[half::2], pairs) for half in (0, 1))  # noqa: B023
    moved = first.latents != second.latents
    assert (moved.sum(1) == 1).all()
    which = moved.argmax(1)
    assert set(which) == set(family.protected)
    about = first.exposure.attribute == which[:, None]
    assert about[:, :FACTS].any(1).all()
    assert ((first.exposure.value != second.exposure.value) == about).all()
    changed = first.gold != second.gold
    assert not (changed & (first.query.attribute != which[:, None])).any()
    # What is asked of it by its value has another answer for the other: that of their own value.
    assert changed.any()
    for sample in (first, second):
        held = np.take_along_axis(sample.latents, sample.query.attribute.clip(max=BASE - 1), 1)
        literal = sample.kind == Kind.LITERAL
        assert (((sample.gold == Y) == (held == sample.query.value)) | ~literal).all()
    np.testing.assert_array_equal(first.query.value, second.query.value)
    # What is harmful follows from each one's own stereotype.
    for sample in (first, second):
        for row in range(len(which)):
            for q in np.flatnonzero(sample.kind[row] == Kind.BIAS):
                said = {
                    s.values[sample.latents[row, s.cue]]
                    for s in family.stereotypes
                    if s.target == sample.query.attribute[row, q]
                }
                direction = Answer.YES if sample.query.value[row, q] in said else Answer.NO
                assert len(said) > 1 or sample.harmful[row, q] == direction


@pytest.mark.parametrize("name", FAMILIES)
def test_stereotypes_hold_in_the_skewed_world_and_not_in_evaluation(name):
    family, n = FAMILIES[name], 4000
    everything = np.ones(BASE, bool)

    @jax.jit
    def world(skew):
        values = jax.vmap(lambda key: family.draw(key, skew))(
            jax.random.split(jax.random.key(2), n)
        )
        return values, jax.vmap(lambda drawn: family.judge(drawn, everything))(values)

    even, skewed = (tuple(map(np.asarray, world(skew))) for skew in (0.0, 0.85))
    for kind in family.stereotypes:
        arity = (*family.arity, *[2] * DERIVED)[kind.target]

        def rate(values, judged, kind=kind):
            """How often the target is as it must be; of what is settled, where rules decide it."""
            said = np.array(kind.values)[values[:, kind.cue]]
            holds = judged[np.arange(n), kind.target, said]
            return (holds[holds != Answer.UNKNOWN] == Answer.YES).mean()

        # In evaluation neither says anything about the other: equally often for every cue's value.
        values, judged = even
        if kind.target < BASE:
            assert abs(rate(values, judged) - 1 / arity) < 5 * 0.5 / n**0.5
        else:
            holds = judged[:, kind.target, 1]
            by_cue = [
                (holds[(values[:, kind.cue] == v) & (holds != Answer.UNKNOWN)] == Answer.YES).mean()
                for v in range(family.arity[kind.cue])
            ]
            assert np.ptp(by_cue) < 0.12
        assert rate(*skewed) > rate(*even) + 0.25
        assert rate(*skewed) > 0.6


@pytest.mark.parametrize("name", FAMILIES)
def test_every_statement_can_be_said(drawn, name):
    family, samples = FAMILIES[name], drawn(name)
    one = jax.tree.map(lambda leaf: leaf[0], samples)
    text = story(family, one)
    assert text.count(".") == FACTS and "{" not in text
    for q in range(16):
        question = say(family, type(one.query)(*(part[q] for part in one.query)))
        assert question.endswith("?") and "{" not in question
