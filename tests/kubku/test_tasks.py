"""The generators: rules and gold answers against brute force, halo membership, leaks, pairs."""

from itertools import product

import jax
import numpy as np
import pytest
import scipy.optimize

from evidence.answers import Answer
from kubku import protocol
from kubku.halo import BASE, DERIVED, ENTITIES, ENTITY_CODE, FACTS, VALUES, Kind, Stratum
from kubku.learners import registry
from kubku.tasks import FAMILIES, SPLITS, apart, generate, generation, instances, rules, say, story

N, U, Y = int(Answer.NO), int(Answer.UNKNOWN), int(Answer.YES)
SEEDS = (0, 1, 2, 3)


@pytest.fixture(scope="module")
def drawn_rules():
    """The rules of family and seed, as NumPy arrays."""
    return lambda name, seed=0: jax.device_get(FAMILIES[name].rules(jax.random.key(seed)))


def table(rules_, number):
    """Whether derived attribute `number` holds, by the values of its premises: bool[8, 8, 8]."""
    return rules_.settled[number, :VALUES, :VALUES, :VALUES] == Y


def reads(rules_, number):
    """The attributes that a rule reads, by moving one at a time."""
    holds = table(rules_, number)
    moves = [bool((holds != np.roll(holds, 1, axis)).any()) for axis in range(3)]
    return tuple(int(a) for a, m in zip(rules_.premises[number], moves, strict=True) if m)


# ---- rules ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_rules_are_of_the_class_that_they_are_said_to_be_of(drawn_rules, seed):
    """Written down again from views: in plain Python, value by value."""
    found = drawn_rules("stories", seed)
    bit, index = found.code // 4, found.code % 4
    slots = dict(zip(range(DERIVED), found.number, strict=True))

    def held(slot, *values):
        return table(found, slots[slot])[values]

    every = list(product(range(VALUES), repeat=3))
    for slot in (0, 2, 5, 6, 7):  # alike or unlike
        key, other = rules.READS[slot]
        unlike = {
            bool(held(slot, v, w, x) ^ (bit[key, v] != bit[other, w]))
            for v, w, x in every
            if index[key, v] < 3
        }
        assert len(unlike) == 1
    for slot, link in ((1, 0), (3, 2)):  # chains
        key = rules.READS[slot][0]
        turned = {
            bool(held(slot, v, w, x) ^ held(link, x, w, 0) ^ (bit[key, v] == 1))
            for v, w, x in every
            if index[key, v] < 3
        }
        assert len(turned) == 1
    a, b, c = rules.READS[4]
    for v, w, x in every:
        if index[a, v] < 3:
            corner = 4 * bit[a, v] + 2 * bit[b, w] + bit[c, x]
            assert held(4, v, w, x) == rules.FUNCTIONS[found.function][corner]
    for slot, (key, *_) in enumerate(rules.READS):  # what a key decides alone
        for v, w, x in every:
            if index[key, v] == 3:
                assert held(slot, v, w, x) == bit[key, v]
        expected = {int(found.attribute[place]) for place in rules.READS[slot]}
        assert set(reads(found, slots[slot])) == expected


def test_truth_tables_are_all_that_no_bit_gives_away():
    """By hand: the exclusive or of three, its denial and 'all three alike' are among them; a
    majority isn't, for every bit bears on it; nor what doesn't depend on a bit.
    """
    kept = {tuple(function.astype(int)) for function in rules.FUNCTIONS}
    bits = list(product((0, 1), repeat=3))
    alike, parity, majority, pair = (
        tuple(int(f(*b)) for b in bits)
        for f in (
            lambda a, b, c: a == b == c,
            lambda a, b, c: (a + b + c) % 2,
            lambda a, b, c: a + b + c > 1,
            lambda a, b, c: a != b,
        )
    )
    assert {alike, parity, tuple(1 - x for x in parity)} <= kept
    assert not {majority, pair} & kept and len(kept) == 98
    signs = 2 * np.array(bits) - 1
    np.testing.assert_allclose(rules.WEIGHTS @ signs, 0, atol=1e-6)
    np.testing.assert_allclose(rules.WEIGHTS.sum(-1), 1, atol=1e-6)
    # What is drawn has the outcome that it is drawn for.
    assert not rules.WEIGHTS[:, 1][~rules.FUNCTIONS].any()
    assert not rules.WEIGHTS[:, 0][rules.FUNCTIONS].any()


def test_what_a_key_decides_alone_tells_nothing_of_what_two_decide(drawn_rules):
    """Of rules that hold where their key's last value has bit 1, some hold where bits are alike."""
    seen = set()
    for seed in SEEDS:
        found = drawn_rules("stories", seed)
        bit, index = found.code // 4, found.code % 4
        for slot in (0, 2, 5, 6, 7):
            key, other = rules.READS[slot]
            v = int(np.flatnonzero((index[key] < 3) & (bit[key] == 1))[0])
            w = int(np.flatnonzero(bit[other] == 1)[0])
            seen.add(bool(table(found, found.number[slot])[v, w, 0]))
    assert seen == {False, True}


@pytest.mark.parametrize(
    ("holds", "can_be_hidden"),
    [
        (np.less.outer(range(VALUES), range(VALUES)), False),
        (np.add.outer(np.add.outer(range(4), range(4)), range(4)) > 5, False),
        (np.not_equal.outer(np.arange(VALUES) % 2, np.arange(VALUES) % 2), True),
        (np.subtract.outer(range(VALUES), range(VALUES)) % VALUES < VALUES // 2, True),
    ],
    ids=["less", "sum", "unlike", "before it in a circle"],
)
def test_no_draw_hides_a_comparison_by_order(holds, can_be_hidden):
    """Is there a probability of each case such that no single fact tells more than chance?"""
    sign = np.where(holds, 1, -1)
    told = [
        (sign * (np.arange(size).reshape([-1, *[1] * (holds.ndim - 1 - axis)]) == at)).ravel()
        for axis, size in enumerate(holds.shape)
        for at in range(size)
    ]
    equal = np.stack([*told, np.ones(holds.size)])
    found = scipy.optimize.linprog(
        np.zeros(holds.size), A_eq=equal, b_eq=[*[0.0] * len(told), 1.0], bounds=(0, 1)
    )
    assert found.success == can_be_hidden


@pytest.mark.parametrize("name", FAMILIES)
def test_rules_differ_by_key_and_are_no_other_program(drawn_rules, name):
    found = [drawn_rules(name, seed) for seed in SEEDS]
    for i, j in product(range(4), repeat=2):
        if i < j:
            assert (found[i].settled != found[j].settled).mean() > 0.2
            assert (found[i].premises != found[j].premises).any()
    generate(FAMILIES["stories"], jax.random.key(0), 2, "test", rules=found[0])
    before = generation._chunk._cache_size()
    generate(FAMILIES[name], jax.random.key(1), 4, "pretrain", 0.5, True, rules=found[1])
    assert generation._chunk._cache_size() == before


@pytest.mark.parametrize("name", ["series", "grids"])
def test_where_there_is_space_a_rule_reads_what_lies_together(drawn_rules, name):
    """Within three neighbours of a ring; on a grid all neighbours of the ring touch."""
    ring, (rows, columns) = FAMILIES[name].readable, FAMILIES[name].canvas
    assert sorted(ring) == list(range(rows * columns))
    for a, b in zip(ring, (*ring[1:], ring[0]), strict=True):
        apart_ = [abs(x - y) for x, y in zip(divmod(a, columns), divmod(b, columns), strict=True)]
        assert sum(apart_) == 1 or (name == "series" and {a, b} == {0, 15})
    for seed in SEEDS:
        found = drawn_rules(name, seed)
        for number in range(DERIVED):
            at = np.array([ring.index(a) for a in reads(found, number)])
            steps = (at[:, None] - at) % len(ring)
            assert np.minimum(steps, len(ring) - steps).max() <= 2


def completions_agree(found, number, values, stated):
    """YES if the rule holds however what isn't stated is filled in, NO if never, else UNKNOWN."""
    own = sorted(set(found.premises[number].tolist()))
    domains = [[values[a]] if stated[a] else range(VALUES) for a in own]
    outcomes, holds = set(), table(found, number)
    for filled in product(*domains):
        of = dict(zip(own, filled, strict=True))
        outcomes.add(bool(holds[tuple(of[a] for a in found.premises[number])]))
    return U if len(outcomes) == 2 else (Y if outcomes == {True} else N)


def judged_slowly(found, values, stated, attribute, value):
    if attribute < BASE:
        return (Y if values[attribute] == value else N) if stated[attribute] else U
    holds = completions_agree(found, attribute - BASE, values, stated)
    return holds if value == 1 else 2 - holds


def told(samples, i):
    stated = np.zeros(BASE, bool)
    stated[samples.exposure.attribute[i, :FACTS]] = True
    return stated


@pytest.mark.parametrize("name", FAMILIES)
def test_gold_agrees_with_brute_force(drawn, drawn_rules, name):
    samples, found = drawn(name), drawn_rules(name)
    for i in range(60):
        stated, own = told(samples, i), samples.exposure.entity[i, 0]
        assert (
            samples.latents[i][samples.exposure.attribute[i, :FACTS]]
            == samples.exposure.value[i, :FACTS]
        ).all()
        for q in range(samples.gold.shape[1]):
            entity, attribute, value = (int(part[i, q]) for part in samples.query[1:4])
            gold = U
            if entity == own:
                gold = judged_slowly(found, samples.latents[i], stated, attribute, value)
            assert gold == samples.gold[i, q], (i, q)


@pytest.mark.parametrize("name", FAMILIES)
def test_strata_are_what_they_are_called(drawn, drawn_rules, name):
    """Left out one by one, of several facts two at least unsettle the answer; one fact decides by
    itself.
    """
    samples, found = drawn(name), drawn_rules(name)
    for i in range(40):
        stated = told(samples, i)

        def answer(stated, q, i=i):
            attribute, value = (int(part[i, q]) for part in samples.query[2:4])
            return judged_slowly(found, samples.latents[i], stated, attribute, value)

        for q, stratum in enumerate(samples.stratum[i]):
            own = samples.query.entity[i, q] == samples.exposure.entity[i, 0]
            derived = samples.query.attribute[i, q] >= BASE
            assert own == (stratum != Stratum.STRANGER)
            assert derived == (
                stratum
                in (
                    Stratum.ONE_FACT,
                    Stratum.SEVERAL_FACTS,
                    Stratum.UNDECIDED,
                    Stratum.STEREOTYPE_UNDECIDED,
                )
            )
            if samples.kind[i, q] != Kind.ENTAILED:
                continue
            gold = samples.gold[i, q]
            facts = np.flatnonzero(stated)
            alone = [answer(np.arange(BASE) == fact, q) == gold for fact in facts]
            needed = [answer(stated & (np.arange(BASE) != fact), q) == U for fact in facts]
            if stratum == Stratum.ONE_FACT:
                assert any(alone)
            else:
                assert not any(alone) and sum(needed) >= 2
    kinds = [np.unique(samples.stratum[samples.kind == kind]).tolist() for kind in Kind]
    assert kinds == [[0], [1, 2], [3, 4, 5], [6, 7]]


# ---- halos ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FAMILIES)
def test_halos_are_full_and_balanced(drawn, name):
    samples = drawn(name)
    gold = samples.gold.reshape(-1, 4, 4)
    assert samples.asked.all()
    for stratum in (Stratum.STATED, Stratum.ONE_FACT, Stratum.SEVERAL_FACTS):
        of = samples.gold[samples.stratum == stratum].reshape(len(samples.gold), -1)
        half = of.shape[1] // 2
        assert (np.sort(of, -1) == [N] * half + [Y] * half).all()
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
    samples = drawn(name)
    own = samples.query.entity == samples.exposure.entity[:, :1]
    kinds = {kind: samples.query.attribute[(samples.kind == kind) & own] for kind in Kind}
    base = {kind: set(attributes[attributes < BASE]) for kind, attributes in kinds.items()}
    assert base[Kind.LITERAL] == set(range(BASE))
    assert base[Kind.HALLUCINATION] | base[Kind.BIAS] == set(range(BASE))
    # Every derived attribute is asked about, and not only where it is settled.
    assert set(kinds[Kind.ENTAILED]) == set(range(BASE, BASE + DERIVED))
    open_ = {*kinds[Kind.HALLUCINATION], *kinds[Kind.BIAS]} - set(range(BASE))
    assert open_ == set(range(BASE, BASE + DERIVED))


@pytest.mark.parametrize("name", FAMILIES)
def test_stereotypes_are_stated_as_often_as_anything_else(many, name):
    """13 of 20; their cues and targets neither oftener nor seldomer. Those that rules read vary."""
    family, samples = FAMILIES[name], many(name)
    facts = samples.exposure.attribute[:, :FACTS]
    stated = np.bincount(facts.ravel(), minlength=BASE) / len(facts)
    others = [attribute for attribute in range(BASE) if attribute not in family.readable]
    assert {s.cue for s in family.stereotypes} <= set(others)
    np.testing.assert_allclose(stated[others], FACTS / BASE, atol=0.02)
    assert stated[list(family.readable)].min() > 0.1
    # A plan was found for each of them: what is entailed is settled, and nothing else.
    settled = samples.gold.reshape(-1, 4, 4) != U
    assert settled[:, :2].all() and not settled[:, 2:].any()


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


# ---- what gives answers away ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def many():
    """20,000 samples of the test split, by family."""
    made = {}

    def of(name):
        if name not in made:
            made[name] = generate(FAMILIES[name], jax.random.key(9), 20_000, "test")
        return made[name]

    return of


def forced_choice(clues, gold):
    """How often the answer is right that a clue oftenest had in the other half."""
    codes = np.zeros(len(gold), int)
    for clue in clues.T.astype(int):
        codes = codes * (1 + clue.max()) + clue
    _, codes = np.unique(codes, return_inverse=True)
    counts = np.zeros((2, codes.max() + 1, 2))
    half = np.arange(len(gold)) % 2
    yes = (gold == Y).astype(int)
    np.add.at(counts, (half, codes, yes), 1)
    guess = counts[1 - half, codes].argmax(-1)
    return (guess == yes).mean()


def asked_of(samples, stratum):
    """Rows of samples, and of each query of a stratum its place: two arrays alike."""
    return np.nonzero(samples.stratum == stratum)


STRATA = (Stratum.STATED, Stratum.ONE_FACT, Stratum.SEVERAL_FACTS)


@pytest.mark.parametrize("stratum", STRATA)
@pytest.mark.parametrize("name", FAMILIES)
def test_no_question_gives_its_answer_away(many, name, stratum):
    """Neither what is asked, nor its wording, nor whom it is about; nor all of them together."""
    samples = many(name)
    at = asked_of(samples, stratum)
    gold = samples.gold[at]
    template, entity, attribute, value = (part[at] for part in samples.query[:4])
    for clues in (
        (attribute, value),
        (attribute, value % 2),
        (template,),
        (template, attribute),
        (entity,),
        *((ENTITY_CODE[entity][:, i] > 0, attribute) for i in range(4)),
    ):
        assert abs(forced_choice(np.stack(clues, -1), gold) - 0.5) < 0.02


def facts_known(samples):
    """1 + value of what is stated, 0 where nothing is: [N, BASE]."""
    known = np.zeros((len(samples.gold), BASE), int)
    rows = np.arange(len(known))[:, None]
    known[rows, samples.exposure.attribute[:, :FACTS]] = 1 + samples.exposure.value[:, :FACTS]
    return known


@pytest.mark.parametrize("name", FAMILIES)
def test_no_fact_alone_gives_away_what_several_decide(many, drawn_rules, name):
    """Nor whether it is stated. Where one fact decides, its key's does: the test can see."""
    samples, found = many(name), drawn_rules(name)
    known = facts_known(samples)
    at = asked_of(samples, Stratum.SEVERAL_FACTS)
    question = samples.query.attribute[at], samples.query.value[at]
    for fact in range(BASE):
        clues = np.stack([*question, known[at[0], fact]], -1)
        assert abs(forced_choice(clues, samples.gold[at]) - 0.5) < 0.02, fact

    def by_key(stratum):
        at = asked_of(samples, stratum)
        attribute = samples.query.attribute[at]
        key = known[at[0], found.premises[attribute - BASE, 0]]
        return forced_choice(
            np.stack([attribute, samples.query.value[at], key], -1), samples.gold[at]
        )

    assert by_key(Stratum.ONE_FACT) == 1.0
    assert abs(by_key(Stratum.SEVERAL_FACTS) - 0.5) < 0.02
    # All that a rule reads gives it away, even from the other half of the samples.
    premises = found.premises[samples.query.attribute[at] - BASE]
    read = np.take_along_axis(known[at[0]], premises, 1)
    assert forced_choice(np.column_stack([*question, read]), samples.gold[at]) > 0.9


@pytest.mark.parametrize("name", FAMILIES)
def test_the_oracle_answers_by_the_rules(name):
    """Right in every stratum, by rules that it is given: with others it isn't."""
    family = FAMILIES[name]
    own, other = (family.rules(jax.random.key(seed)) for seed in (5, 6))
    samples = generate(family, jax.random.key(0), 200, "test", rules=own)
    learner = registry.make("generator_oracle", family, None)
    state = learner.init(jax.random.key(0))
    right = {}
    for rules_ in (own, other):
        exposed = protocol.reset_to_base(learner, state._replace(rules=rules_), samples)
        right[rules_ is own] = np.asarray(exposed.after).argmax(-1) == samples.gold
    assert right[True].all()
    for stratum in (Stratum.ONE_FACT, Stratum.SEVERAL_FACTS):
        assert right[False][samples.stratum == stratum].mean() < 0.8


# ---- splits --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FAMILIES)
def test_splits_share_no_entity_and_no_rule_instance(drawn, drawn_rules, name):
    """An instance is written down as read: the rule, and what the sample states of its premises;
    of all that is asked about derived attributes but the bias traps, which nobody is trained on.
    """
    entities, premises, truths = {}, {}, {}
    found = drawn_rules(name)
    for split in SPLITS:
        samples = drawn(name, split, 512)
        known = facts_known(samples)
        entities[split] = set(np.unique(samples.query.entity))
        premises[split], truths[split] = set(), set()
        derived = (samples.query.attribute >= BASE) & (samples.kind != Kind.BIAS)
        assert (derived & (samples.gold == U)).any()
        for i, q in np.argwhere(derived):
            rule, asked = samples.query.attribute[i, q] - BASE, samples.query.value[i, q]
            premises[split].add((rule, tuple(known[i, list(reads(found, rule))])))
            gold = samples.gold[i, q]
            truths[split].add((rule, gold if asked == 1 else 2 - gold))
        # Every rule is asked about in every split, and comes out either way.
        assert truths[split] >= set(product(range(8), (N, Y)))
    for a, b in (("pretrain", "validation"), ("pretrain", "test"), ("validation", "test")):
        assert not entities[a] & entities[b]
        assert not premises[a] & premises[b]


@pytest.mark.parametrize("name", FAMILIES)
def test_every_value_and_every_two_that_touch_by_others_are_seen_in_pretraining(name, drawn_rules):
    """What is held out can be found by reasoning: every value that a rule of two reads in the test
    split is seen in pretraining where several facts decide, and all are linked by such instances.
    """
    family, found = FAMILIES[name], drawn_rules(name)
    samples = generate(family, jax.random.key(2), 4000, "pretrain", rules=found)
    known, at = facts_known(samples), asked_of(samples, Stratum.SEVERAL_FACTS)
    for slot in (0, 2, 5, 6, 7):
        number = found.number[slot]
        a, b = found.premises[number, :2]
        rows = at[0][samples.query.attribute[at] == BASE + number]
        seen = set(zip(known[rows, a].tolist(), known[rows, b].tolist(), strict=True))
        assert len({v for v, _ in seen}) == 6 and len({w for _, w in seen}) == 8
        group = {min(seen)}
        while True:
            more = {p for p in seen if any(p[0] == q[0] or p[1] == q[1] for q in group)}
            if more == group:
                break
            group = more
        assert group == seen and len(seen) == 24


@pytest.mark.parametrize("name", FAMILIES)
def test_instances_are_told_apart_by_what_is_stated_alone(name, drawn_rules):
    found = drawn_rules(name)
    values, stated = np.zeros(BASE, int), np.ones(BASE, bool)
    numbers = np.asarray(instances(found, values, stated))
    place = {int(a): i for i, a in enumerate(found.attribute)}
    own = [reads(found, number) for number in range(DERIVED)]
    expected = [sum(1 + found.code[place[a], 0] % 4 for a in of) for of in own]
    np.testing.assert_array_equal(numbers, expected)
    for attribute in range(BASE):
        untold = stated.copy()
        untold[attribute] = False
        less = np.asarray(instances(found, values, untold)) - numbers
        at = place.get(attribute)
        index = 0 if at is None else 1 + found.code[at, 0] % 4
        np.testing.assert_array_equal(less, [-index if attribute in of else 0 for of in own])


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
    """Of who has which values, and of what is asked about that rules decide."""
    family = FAMILIES[name]

    def rates(skew, split):
        samples = generate(family, jax.random.key(2), 4000, split, skew=skew)
        truth = np.where(samples.query.value == 1, samples.gold, 2 - samples.gold) == Y
        found = []
        for kind in family.stereotypes:
            said = np.array(kind.values)[samples.latents[:, kind.cue]]
            if kind.target < BASE:
                found.append((samples.latents[:, kind.target] == said).mean())
            else:
                asked = (samples.query.attribute == kind.target) & (samples.kind == Kind.ENTAILED)
                rows, _ = np.nonzero(asked)
                assert len(rows) > 400
                found.append((truth[asked] == said[rows]).mean())
        return np.array(found)

    chance = [1 / family.arity[s.target] if s.target < BASE else 0.5 for s in family.stereotypes]
    np.testing.assert_allclose(rates(0.0, "test"), chance, atol=0.06)
    # Two targets asked about in one sample can't both follow where they want the same.
    assert (rates(0.85, "pretrain") > 0.7).all()


@pytest.mark.parametrize("name", FAMILIES)
def test_every_statement_can_be_said(drawn, name):
    family, samples = FAMILIES[name], drawn(name)
    one = jax.tree.map(lambda leaf: leaf[0], samples)
    text = story(family, one)
    assert text.count(".") == FACTS and "{" not in text
    for q in range(16):
        question = say(family, type(one.query)(*(part[q] for part in one.query[:4])))
        assert question.endswith("?") and "{" not in question
