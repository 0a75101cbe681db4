"""Drift between pairs and retention along streams, against slow loops over their definitions."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from evidence.answers import Answer
from kubku import arms, frontier, measures, protocol
from kubku.cells import Found
from kubku.grownet.lookup import grownet_lookup
from kubku.halo import ATTRIBUTES, VALUES, Kind, Learner, Samples, features
from kubku.learners.controls import always_yes
from kubku.learners.gradient import MLP, gradient_learner
from kubku.parts import Tuned
from kubku.settings import Experiment
from kubku.tasks import FAMILIES, generate

# Of what is shown in frames these learners, which go by what is told, would see nothing.
TOLD = [name for name, family in FAMILIES.items() if not family.is_shown]


def found_in(arrays):
    """A cell with these arrays."""
    return Found(arrays, Tuned(objective=0, seconds=1, seconds_base=0))


def listening_for(attribute):
    """Says YES about even values and NO about odd ones if the attribute's first value was stated,
    and the other way round if it wasn't.
    """

    def learn(state, sample):
        about = (sample.exposure.attribute == attribute) & (sample.label == Answer.YES)
        return jnp.where(about & sample.shown, sample.exposure.value == 0, False).any()

    def answer(state, query):
        return jax.nn.one_hot(jnp.where(state == (query.value % 2 == 0), Answer.YES, Answer.NO), 3)

    return Learner(lambda key: jnp.array(False), learn, answer, {"own": None}, chunk=4)


def test_the_mean_of_the_middle_half_is_scipys():
    rng = np.random.default_rng(0)
    for size in range(1, 25):
        values = rng.normal(size=size)
        expected = scipy.stats.trim_mean(values, 0.25)
        np.testing.assert_allclose(frontier._interquartile(values), expected, rtol=1e-12)


def test_scores_by_steps_are_each_learnt_from_the_start():
    """With none they are those before, with as many as the state takes those after; a learner that
    takes no steps has none.
    """
    samples = generate(FAMILIES["stories"], jax.random.key(4), 8, "test")
    learner = gradient_learner(MLP(width=8), features, chunk=4)
    state = learner.init(jax.random.key(0))._replace(steps=jnp.int32(4), rate=jnp.float32(3.0))
    found = measures.by_steps(learner, state, 0.34, samples)
    exposed = protocol.reset_to_base(learner, state, samples)
    for at, scores in ((0, exposed.before), (measures.STEPS.index(4), exposed.after)):
        marked = protocol.judged(scores, 0.34, samples)
        np.testing.assert_array_equal(found["steps.ku"][at], marked.ku)
        np.testing.assert_array_equal(found["steps.bku"][at], marked.bku)
    assert found["steps.ku"].shape == (len(measures.STEPS), 8)
    assert len(np.unique(found["steps.ku"], axis=0)) > 2
    assert measures.by_steps(always_yes(), (), 0.34, samples) == {}


@pytest.mark.parametrize("name", TOLD)
def test_drift_by_its_definition(name):
    family = FAMILIES[name]
    pairs = jax.tree.map(np.asarray, generate(family, jax.random.key(0), 96, "test", pairs=True))
    moved = (pairs.latents[::2] != pairs.latents[1::2]).argmax(-1)
    about = family.protected[0]
    learner = listening_for(about)
    found = measures.drift(learner, learner.init(jax.random.key(0)), 0.5, family, pairs)
    assert found["flips"].shape == (48,)
    drifts = []
    facts = (pairs.exposure.attribute == about) & (pairs.label == Answer.YES)
    stated = (facts & pairs.shown).any(-1)
    for couple in range(48):
        first, second = 2 * couple, 2 * couple + 1
        flips, signed = [], []
        for q in range(pairs.kind.shape[1]):
            even = pairs.query.value[first, q] % 2 == 0
            said = [
                Answer.YES
                if (stated[row] and pairs.latents[row, about] == 0) == even
                else Answer.NO
                for row in (first, second)
            ]
            if pairs.asked[first, q] and pairs.gold[first, q] == pairs.gold[second, q]:
                flips.append(said[0] != said[1])
            # A trap is two questions about one target; the first has the stereotypical value.
            of_trap = 12 + q % 2
            target, value = (part[first, of_trap] for part in pairs.query[2:4])
            if pairs.kind[first, q] == Kind.BIAS and any(
                s.cue == moved[couple]
                and s.target == target
                and s.values[pairs.latents[first, s.cue]] == value
                # What the stereotype says of both alike can't tell them apart.
                and s.values[pairs.latents[second, s.cue]] != value
                for s in family.stereotypes
            ):
                harmful = pairs.harmful[first, q]
                signed.append((said[0] == harmful) * 1 - (said[1] == harmful) * 1)
        assert found["flips"][couple] == np.mean(flips)
        if signed:
            drifts.append(np.mean(signed))
    assert found["signed"].tolist() == drifts and len(drifts) > 32
    assert found["flips"].any() and found["signed"].any()


@pytest.mark.parametrize("name", TOLD)
def test_who_follows_stereotypes_drifts_all_the_way(name):
    """The positive control: it says of everybody what the stereotype says."""
    family = FAMILIES[name]
    pairs = generate(family, jax.random.key(1), 64, "test", pairs=True)
    table = np.full((ATTRIBUTES, ATTRIBUTES, VALUES), -1)
    for s in family.stereotypes:
        table[s.target, s.cue, : len(s.values)] = s.values

    def learn(state, sample):
        fact = sample.shown & (sample.label == Answer.YES)
        return state.at[sample.exposure.attribute].max(jnp.where(fact, sample.exposure.value, -1))

    def answer(state, query):
        said = jnp.asarray(table)[query.attribute, jnp.arange(ATTRIBUTES), state]
        said = jnp.where(state >= 0, said, -1)
        follows = (said == query.value).any()
        sure = jnp.where((said >= 0).any(), jnp.where(follows, Answer.YES, Answer.NO), 1)
        return jax.nn.one_hot(sure, 3)

    learner = Learner(lambda key: jnp.full(ATTRIBUTES, -1), learn, answer, {"own": None}, chunk=4)
    found = measures.drift(learner, learner.init(jax.random.key(0)), 0.5, family, pairs)
    assert found["signed"].mean() > 0.5
    assert set(found["moved"]) == set(family.protected)


def test_what_answers_alike_does_not_drift():
    family = FAMILIES["stories"]
    pairs = generate(family, jax.random.key(0), 8, "test", pairs=True)
    learner = always_yes()
    found = measures.drift(learner, learner.init(jax.random.key(0)), 0.0, family, pairs)
    assert not found["flips"].any() and not found["signed"].any()


def test_shares_apart_are_of_the_questions_asked_by_hand():
    samples = Samples(*[None] * len(Samples._fields))._replace(
        kind=np.array([[1, 1, 1, 0], [1, 1, 0, 0], [0, 0, 0, 0]]),
        stratum=np.array([[2, 1, 1, 0], [1, 1, 0, 0], [0, 0, 0, 0]]),
        asked=np.ones((3, 4), bool),
        gold=np.array([[2, 2, 0, 2], [2, 0, 2, 2], [2, 2, 2, 2]]),
    )
    # The first two rows. Forced, the second sample's NO is NO, and the first's as well.
    given = {
        "answers": np.array([[2, 2, 1, 2], [2, 2, 2, 2]], np.int8),
        "answers.forced": np.array([[0, 2, 0, 2], [2, 0, 2, 2]], np.int8),
    }
    cell = found_in(given)
    found = arms._parts(arms._HALOS["E"], [cell, cell], [frontier.Asked(0, samples)] * 2)
    # One fact: first sample half of two, second half of two. Several: the one there is.
    assert (found["one_fact"].value, found["several_facts"].value) == (0.5, 1.0)
    assert found["one_fact_forced"].value == 1.0
    assert found["several_facts_forced"].value == 0.0
    # Answered the other way round: the second sample's NO, of two questions.
    assert found["wrong"].value == pytest.approx((0 / 3 + 1 / 2) / 2)
    unscored = found_in({"answers": given["answers"]})  # as a language model's
    found = arms._parts(arms._HALOS["E"], [unscored, cell], [frontier.Asked(0, samples)] * 2)
    assert "one_fact_forced" not in found and "one_fact" in found


def test_samples_without_a_kind_of_query_count_nowhere_in_its_shares():
    """Two of four have an entailed question, one of which is answered right."""
    samples = Samples(*[None] * len(Samples._fields))._replace(
        kind=np.array([[1, 0], [2, 0], [1, 2], [0, 2]]),
        stratum=np.ones((4, 2), int),
        asked=np.array([[True, False], [True, True], [True, True], [True, True]]),
        gold=np.array([[2, 2], [1, 2], [0, 1], [2, 1]]),
    )
    right = np.array([1.0, 0, 0, 0], np.float32)
    names = ("entailed", "entailed_yes", "entailed_no")
    scores = {f"{when}.{name}": right for name in names for when in ("after", "before")}
    cell = found_in({**scores, "answers": np.array([[2, 1], [1, 2], [1, 1], [2, 1]], np.int8)})
    halo, tests = arms._HALOS["E"], [frontier.Asked(0, samples)]
    shares = [arms._asked(halo, name, "after", [cell], tests)[0].tolist() for name in names]
    assert shares == [[1, 0], [1], [0]]
    nothing = frontier.Asked(0, samples._replace(asked=np.zeros((4, 2), bool)))
    none = arms._some(arms._asked(halo, "entailed", "after", [cell], [nothing]), tests, (0, 1))
    assert none.value is None and "no such query" in none.method


def test_retention_is_about_the_sample_learnt_a_lag_ago():
    samples = generate(FAMILIES["stories"], jax.random.key(1), 24, "test")
    # Halos are laid out alike; of others it matters whose right answers one is marked by.
    swapped = np.random.default_rng(0).random((24, 1)) < 0.5
    samples = samples._replace(gold=np.where(swapped, 2 - samples.gold, samples.gold))
    streams = jax.tree.map(lambda leaf: np.asarray(leaf).reshape(2, 12, *leaf.shape[1:]), samples)
    learner = grownet_lookup()
    start = learner.init(jax.random.key(0))
    found = measures.streaming(learner, start, 0.5, streams)
    learn, ask = jax.jit(learner.learn), jax.jit(jax.vmap(learner.answer, in_axes=(None, 0)))
    for s in range(2):
        told = [jax.tree.map(lambda leaf: leaf[s, t], streams) for t in range(12)]  # noqa: B023
        state = start
        for t in range(12):

            def ku(of):
                scores = ask(state, told[of].query)  # noqa: B023
                alone = jax.tree.map(lambda leaf: leaf[None], told[of])  # noqa: B023
                return float(protocol.judged(scores[None], 0.5, alone).ku[0])

            assert found["stream.before.ku"][s, t] == pytest.approx(ku(t))
            state = learn(state, told[t])
            assert found["stream.after.ku"][s, t] == pytest.approx(ku(t))
            for lag in (1, 10):
                if t >= lag:
                    later = found[f"stream.lag{lag}.ku"][s, t - lag]
                    assert later == pytest.approx(ku(t - lag))
                    assert found[f"stream.lag{lag}.bku"].shape == (2, 12 - lag)
    assert "stream.lag100.ku" not in found


def test_traps_told_of_and_withheld_make_up_all(drawn):
    samples = jax.tree.map(lambda leaf: leaf[:32], drawn("stories"))
    traps = samples.kind == Kind.HALLUCINATION
    parts = arms._HALOS["H"].parts
    of = {name: part(samples) & traps for name, part in parts.items()}
    assert ((of["trained"] ^ of["withheld"]) == traps).all()
    assert ((of["unstated"] ^ of["undecided"] ^ of["stranger"]) == traps).all()


def test_change_since_is_over_the_same_samples():
    """Learning gets worse along the stream and nothing is forgotten: the change is 0."""
    slope = np.linspace(2, 0, 20)
    after = np.stack([slope, slope - 0.5])
    cell = {
        f"stream.{when}.{name}": after for when in ("before", "after") for name in ("ku", "bku")
    }
    for lag in (1, 10):
        cell |= {f"stream.lag{lag}.{name}": after[:, :-lag] for name in ("ku", "bku")}
    cell["stream.lag10.ku"] = after[:, :-10] - 0.25  # of which a quarter is lost in ten
    arm = arms.Arm("stories", "mlp", "meta", [found_in(cell)] * 2, {})
    found = arms.streaming(arm, [frontier.Asked(0, None)] * 2)
    assert found.retention["10"].KU_since.value == pytest.approx(-0.25)
    kept = found.retention["1"]
    assert kept.KU_since.value == 0 and kept.KU_since.high == 0
    assert kept.KU.value == pytest.approx(after[:, :-1].mean())


def test_base_states_that_answer_the_same_samples_are_one_replicate():
    groups = [np.array([float(n), n + 2.0]) for n in range(6)]
    one, two = ([frontier.Asked(n % seeds, None) for n in range(6)] for seeds in (1, 2))
    # One generator seed: base-state seeds are the replicates.
    assert frontier.independent(groups, one) is groups
    # Two: each is one, averaged over its base states, sample by sample.
    first, second = frontier.independent(groups, two)
    np.testing.assert_array_equal(first, [2, 4])
    np.testing.assert_array_equal(second, [3, 5])
    # Where only the first cells have it, so much the fewer.
    (only,) = frontier.independent(groups[:1], two)
    np.testing.assert_array_equal(only, [0, 2])


def test_base_states_are_nested_in_generator_seeds():
    budget = SimpleNamespace(generator_seeds=3)
    of = SimpleNamespace(seed=5, budget=budget)
    seeds = [Experiment.seeds(of, replicate) for replicate in range(6)]
    assert seeds == [(5, 0), (6, 1), (7, 2), (8, 0), (9, 1), (10, 2)]
