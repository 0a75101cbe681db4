"""Reset to base against a slow loop, streams, tuning, the audit, base states, controls."""

import ast
import dataclasses
from pathlib import Path
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from benchmarks import kubku as benchmark
from evidence.answers import Answer
from kubku import base_states, protocol
from kubku.base_states import Outer, Training
from kubku.grownet.learner import grownet
from kubku.grownet.lookup import grownet_lookup
from kubku.halo import EXPOSURES, Kind, Learner, Statement, features, token_features, veiled
from kubku.learners import controls, registry, tabular
from kubku.learners.context import GRUReader, TransformerReader, context_learner
from kubku.learners.gradient import (
    CNN,
    GRU,
    MLP,
    Transformer,
    adam,
    gradient_learner,
    one_step,
    one_step_of_mlp,
)
from kubku.tasks import FAMILIES, generate

TRAINING, OUTER = Training(updates=3, batch=4), Outer(rate=1e-2)
N = 6
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def samples():
    return generate(FAMILIES["stories"], jax.random.key(5), 64, "test")


def few(samples, n=N):
    return jax.tree.map(lambda leaf: leaf[:n], samples)


@pytest.fixture(scope="module")
def mlp():
    return gradient_learner(MLP(width=8), features, chunk=4)


def by_loop(learner, state, samples):
    """The protocol as one reads it: sample after sample, query after query, nothing compiled."""
    with jax.disable_jit():
        after = []
        for i in range(samples.label.shape[0]):
            sample = jax.tree.map(lambda leaf: leaf[i], samples)  # noqa: B023
            learnt = learner.learn(state, sample)
            queries = [type(sample.query)(*(p[q] for p in sample.query[:4])) for q in range(16)]
            after.append([learner.answer(learnt, query) for query in queries])
    return np.array(after)


def test_reset_to_base_equals_a_slow_loop(mlp, samples):
    """Six samples in chunks of four: one full chunk and one padded."""
    state = mlp.init(jax.random.key(0))._replace(steps=jnp.int32(2))
    exposed = protocol.reset_to_base(mlp, state, few(samples))
    np.testing.assert_allclose(exposed.after, by_loop(mlp, state, few(samples)), atol=1e-5)
    assert not np.allclose(exposed.after, exposed.before, atol=1e-3)


def test_gradient_steps_by_hand(mlp, samples):
    """Two steps of gradient descent written out, against `learn`."""
    sample = jax.tree.map(lambda leaf: leaf[0], samples)
    state = mlp.init(jax.random.key(1))._replace(steps=jnp.int32(2), rate=jnp.float32(0.3))
    inputs = features(sample.exposure)

    def loss(params):
        logits = MLP(width=8).apply(params, inputs)
        return -jnp.mean(jax.nn.log_softmax(logits)[jnp.arange(EXPOSURES), sample.label])

    params = state.params
    for _ in range(2):
        params = jax.tree.map(lambda p, g: p - 0.3 * g, params, jax.grad(loss)(params))
    learnt = mlp.learn(state, sample).params
    for a, b in zip(jax.tree.leaves(learnt), jax.tree.leaves(params), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)


def test_no_steps_change_nothing(mlp, samples):
    state = mlp.init(jax.random.key(0))._replace(steps=jnp.int32(0))
    exposed = protocol.reset_to_base(mlp, state, few(samples))
    np.testing.assert_array_equal(exposed.before, exposed.after)


def test_padding_teaches_nothing(mlp, samples):
    """What isn't shown may hold anything."""
    shown = jnp.asarray(samples.shown).at[:, 20:].set(False)
    state = mlp.init(jax.random.key(0))
    original = few(samples._replace(shown=shown))
    garbled = original._replace(
        exposure=jax.tree.map(lambda ids: jnp.asarray(ids).at[:, 20:].set(0), original.exposure)
    )
    a, b = (protocol.reset_to_base(mlp, state, s).after for s in (original, garbled))
    np.testing.assert_allclose(a, b, atol=1e-6)


def test_the_step_that_meta_is_trained_through_is_a_step_of_learn(mlp, samples):
    """One step at rate 1, each weight at a pace of its own; and its derivative to both orders."""
    state = mlp.init(jax.random.key(0))
    pace = jax.tree.map(lambda w: jax.random.uniform(jax.random.key(1), w.shape), state.pace)
    state = state._replace(pace=pace, rate=jnp.float32(1), steps=jnp.int32(1))
    sample = jax.tree.map(lambda leaf: leaf[0], samples)
    query = jax.tree.map(lambda leaf: leaf[0], sample.query)
    through = one_step(MLP(width=8), features).learn
    for a, b in zip(
        jax.tree.leaves(through(state, sample).params),
        jax.tree.leaves(mlp.learn(state, sample).params),
        strict=True,
    ):
        np.testing.assert_allclose(a, b, atol=1e-6)

    def of(size, through):
        moved = jax.tree.map(lambda w: w * (1 + size), state.params)
        return mlp.answer(through(state._replace(params=moved), sample), query)[2]

    slope = jax.grad(of)(0.0, through)
    by_difference = (of(1e-2, mlp.learn) - of(-1e-2, mlp.learn)) / 2e-2
    np.testing.assert_allclose(slope, by_difference, rtol=0.02)


KINDS = {
    "mlp": lambda: gradient_learner(MLP(8), features, 4),
    "cnn": lambda: gradient_learner(CNN((4, 4), 4, 8), features, 4),
    "gru": lambda: gradient_learner(GRU(8), token_features, 4),
    "transformer": lambda: gradient_learner(Transformer(1, 16, 1), token_features, 4),
    "gru_context": lambda: context_learner(GRUReader(8), 4),
    "transformer_context": lambda: context_learner(TransformerReader(1, 16, 1), 4),
    "grownet_lookup": grownet_lookup,
    "grownet": lambda: grownet(False),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_learner_is_exposed_as_by_a_loop(kind, samples):
    """One sample, one query at a time, in no chunk; and so are streams of length one."""
    learner, six = KINDS[kind](), few(samples)
    state = learner.init(jax.random.key(0))
    learn, answer = jax.jit(learner.learn), jax.jit(learner.answer)
    exposed = protocol.reset_to_base(learner, state, six)
    streamed = protocol.stream(learner, state, jax.tree.map(lambda leaf: leaf[:, None], six))
    streamed = jax.tree.map(lambda leaf: leaf[:, 0], jax.device_get(streamed))
    for i in range(N):
        sample = jax.tree.map(lambda leaf: leaf[i], six)  # noqa: B023
        learnt = learn(state, sample)
        for q in range(16):
            query = jax.tree.map(lambda leaf: leaf[q], sample.query)  # noqa: B023
            before, after = answer(state, query), answer(learnt, query)
            for found in (exposed, streamed):
                np.testing.assert_allclose(found.before[i, q], before, atol=1e-5)
                np.testing.assert_allclose(found.after[i, q], after, atol=1e-5)


def test_all_that_are_tuned_have_as_many_trials():
    trials = {
        name: len(registry.make(name, FAMILIES["grids"], TRAINING).trials)
        for name, entry in registry.LEARNERS.items()
        if entry.can_handle(FAMILIES["grids"])
    }
    tuned = {*registry.in_group("gradient", "replaying", "memory", "ablation"), "grownet"}
    tuned |= {"pair_counts"}  # as the learner that it stands beside
    assert trials == {name: 8 if name in tuned else 1 for name in trials}


def test_arithmetic_is_counted_as_by_hand():
    """What the benchmarks divide by: an MLP 64-128-128-3 on 16 statements, 8 steps, 16 queries
    before and after. The first layer's inputs need no gradient.
    """
    first, others = 64 * 128, 128 * 128 + 128 * 3
    step = 16 * 2 * (2 * (first + others) + others)
    asked = 2 * 16 * 2 * (first + others)
    learner = gradient_learner(MLP(), benchmark.wide, 2)
    state = learner.init(jax.random.key(0))
    counted = benchmark.per_sample(learner, state, benchmark.samples(2, 16), steps=8)
    assert counted == 8 * step + asked

    def looped(x):
        x, _ = jax.lax.scan(lambda x, _: (2 * x + 1, None), x, None, length=3)
        return jax.lax.fori_loop(0, x[0].astype(int), lambda _, x: x * x, x).sum()

    # Of four numbers: two operations each in a turn of the scan; in a turn of the loop one each and
    # one that counts it. No product anywhere.
    traced = jax.make_jaxpr(looped)(jnp.ones(4)).jaxpr
    none, one, five = (benchmark.operations(traced, turns) for turns in (0, 1, 5))
    assert (one - none, five - none) == (4 + 1, 5 * (4 + 1)) and none >= 3 * 2 * 4
    assert benchmark.operations(traced, turns=5, all_kinds=False) == 0


def test_streams_learn_on_and_ask_again(mlp, samples):
    """Sample t - 1, asked after sample t, by a loop that keeps its state."""
    state = mlp.init(jax.random.key(0))
    streamed = protocol.stream(mlp, state, jax.tree.map(lambda leaf: leaf[None, :3], samples))
    asked = jax.vmap(mlp.answer, in_axes=(None, 0))
    for t in range(3):
        sample = jax.tree.map(lambda leaf: leaf[t], samples)  # noqa: B023
        np.testing.assert_allclose(streamed.before[0, t], asked(state, sample.query), atol=1e-5)
        state = mlp.learn(state, sample)
        np.testing.assert_allclose(streamed.after[0, t], asked(state, sample.query), atol=1e-5)
        if t:
            earlier = jax.tree.map(lambda leaf: leaf[t - 1], samples)  # noqa: B023
            np.testing.assert_allclose(
                streamed.later[0, t, 0], asked(state, earlier.query), atol=1e-5
            )


CONTROLS = {
    # KU, BKU, BKU_yes
    "always_yes": (1.0, 2.0, 1.5),
    "always_no": (1.0, 2.0, 0.5),
    "always_unknown": (0.0, 0.0, 0.0),
    "dictionary": (1.0, 0.0, 0.0),
    "generator_oracle": (2.0, 0.0, 0.0),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_controls_score_what_theory_says(drawn, family):
    samples = jax.tree.map(jnp.asarray, drawn(family))
    for name, expected in CONTROLS.items():
        learner = registry.make(name, FAMILIES[family], TRAINING)
        state = learner.init(jax.random.key(0))
        if (fitted := learner.bases.get("fitted")) is not None:  # patterns are found first
            state = fitted(state, veiled(samples), jax.random.key(1))
        exposed = protocol.reset_to_base(learner, state, samples)
        # Tuned as every learner is, which must not silence those that lose by answering.
        found = protocol.judged(
            exposed.after,
            protocol.tune(learner, state, samples).points[protocol.MATCHED].threshold,
            samples,
        )
        for scores, value in zip((found.ku, found.bku, found.bku_yes), expected, strict=True):
            if fitted is None:
                np.testing.assert_allclose(scores, value, err_msg=f"{name} on {family}")
            else:  # a pattern in noise is misread now and then
                assert float(scores.mean()) == pytest.approx(value, abs=0.15), name


@pytest.mark.parametrize("family", FAMILIES)
def test_random_answers_score_a_third(drawn, family):
    samples = jax.tree.map(jnp.asarray, drawn(family))
    learner = controls.random_answers()
    state = learner.init(jax.random.key(0))
    exposed = protocol.reset_to_base(learner, state, samples)
    tuned = protocol.tune(learner, state, samples)
    threshold = tuned.points[protocol.MATCHED].threshold
    found = protocol.judged(exposed.after, threshold, samples)
    # 512 x 8 queries, standard error of each sum of two shares 2 sqrt(2/9 / 4096) = 0.015.
    assert float(found.ku.mean()) == pytest.approx(2 / 3, abs=0.06)
    assert float(found.bku.mean()) == pytest.approx(4 / 3, abs=0.06)


def test_nearest_neighbours_by_hand(samples):
    """Two items about an attribute of an entity, 'is 3' and 'is not 4', and one that is hidden."""
    learner = controls.nearest_neighbour(3)
    items = Statement(*(jnp.array(ids) for ids in ([0, 0, 0], [1, 1, 8], [2, 2, 9], [3, 4, 6])))
    sample = jax.tree.map(lambda leaf: leaf[0], samples)._replace(
        exposure=items, label=jnp.array([2, 0, 2]), shown=jnp.array([True, True, False])
    )
    state = learner.learn(learner.init(jax.random.key(0)), sample)
    for query, expected in {
        (0, 1, 2, 3): (0, 0, 1),
        (0, 1, 2, 4): (1, 0, 0),
        (0, 1, 2, 5): (1 / 3, 1 / 3, 1 / 3),  # two of three agree, with one item of each label
        (0, 7, 7, 3): (0, 2 / 3, 1 / 3),
        (0, 8, 9, 6): (0, 1, 0),
    }.items():
        scores = learner.answer(state, Statement(*map(jnp.array, query)))
        np.testing.assert_allclose(scores, expected, atol=1e-6, err_msg=str(query))


def test_what_questions_give_away_by_hand(samples):
    """Counted over all that is asked, withheld or not; nothing that was never asked is known."""
    learner = controls.question_only()
    blank = learner.init(jax.random.key(0))
    fitted = learner.bases["fitted"](blank, samples, jax.random.key(0))
    query, gold = samples.query, np.asarray(samples.gold)
    for i, q in ((0, 0), (3, 9), (5, 13), (7, 15)):
        attribute, value = query.attribute[i, q], query.value[i, q]
        alike = (query.attribute == attribute) & (query.value == value)
        shares = [(gold[alike] == answer).mean() for answer in range(3)]
        asked = jax.tree.map(lambda leaf: leaf[i, q], query)  # noqa: B023
        np.testing.assert_allclose(learner.answer(fitted, asked), shares, atol=1e-6)
        np.testing.assert_allclose(learner.answer(blank, asked), 1 / 3, atol=1e-6)
    half = samples._replace(asked=samples.asked & (samples.kind == Kind.LITERAL))
    assert learner.bases["fitted"](blank, half, jax.random.key(0)).sum() == 64 * 4


def test_a_forced_choice_never_abstains(samples):
    learner = controls.forced_choice()
    counts = learner.init(jax.random.key(0)).at[3, 1].set(jnp.array([2.0, 9.0, 4.0]))
    asked = Statement(*map(jnp.array, (2, 0, 3, 1)))
    assert learner.answer(counts, asked).tolist() == [0, 0, 1]
    assert learner.answer(counts.at[3, 1, 0].set(5), asked).tolist() == [1, 0, 0]


def test_a_network_reads_a_dictionary(samples):
    """What is stated is answered before any training, and training teaches it the rest."""
    learner = registry.make("dictionary_mlp", FAMILIES["stories"], TRAINING)
    start = learner.init(jax.random.key(0))
    trained = learner.bases["meta"](start, samples, jax.random.key(1))
    for state in (start, trained):
        exposed = protocol.reset_to_base(learner, state, samples)
        scores = protocol.judged(exposed.after, 0.4, samples)
        np.testing.assert_allclose(scores.literal, 1)
    assert not np.allclose(jax.tree.leaves(start.params)[1], jax.tree.leaves(trained.params)[1])


class Biddable(NamedTuple):
    """A state whose setting `trust` is tuned: the share of belief in what it was told."""

    told: jax.Array
    trust: jax.Array


def test_tuning_finds_the_best_trial_and_threshold(samples):
    """`trust` 0.9 makes the dictionary's answers 0.9 sure; traps get 0.5 for YES. Only a
    threshold of 0.5 or more with trust 0.9 tells them apart: KU 1, BKU 0.
    """
    inner = tabular.dictionary()

    def answer(state, query):
        sure = inner.answer(state.told, query)
        trusting = state.trust * sure + (1 - state.trust) * jnp.array([0.0, 1.0, 0.0])
        return jnp.where(sure[1] == 1, jnp.array([0.0, 0.5, 0.5]), trusting)

    learner = Learner(
        lambda key: Biddable(inner.init(key), jnp.float32(0.1)),
        lambda state, sample: state._replace(told=inner.learn(state.told, sample)),
        answer,
        {"empty": None},
        ({"trust": 0.1}, {"trust": 0.9}, {"trust": 0.3}),
    )
    tuned = protocol.tune(learner, learner.init(jax.random.key(0)), samples)
    assert tuned.trial == {"trust": 0.9}
    for point in tuned.points.values():
        # The middle of those that do as well, 0.50 to 0.88.
        assert point.threshold == pytest.approx(0.69, abs=0.011)
        assert point.reached and point.objective == pytest.approx(1.0)


def graded(trials):
    """Literals by dictionary; traps and entailed questions, which it can't tell apart, get YES with
    a belief that is `trust` of a number of their own.
    """
    inner = tabular.dictionary()

    def answer(state, query):
        sure = inner.answer(state.told, query)
        own = (query.attribute * 37 + query.value * 11 + query.entity * 5) % 97 / 97
        guess = jnp.array([0.0, 1.0, 0.0]) + state.trust * own * jnp.array([0.0, -1.0, 1.0])
        return jnp.where(sure[1] == 1, guess, state.trust * sure.at[1].set(1 / state.trust - 1))

    return Learner(
        lambda key: Biddable(inner.init(key), jnp.float32(0.1)),
        lambda state, sample: state._replace(told=inner.learn(state.told, sample)),
        answer,
        {"empty": None},
        tuple({"trust": trust} for trust in trials),
    )


def test_a_threshold_keeps_its_limit_and_none_that_does_knows_more(samples):
    """Against a loop over every threshold, sample and stratum."""
    learner = graded([0.9])
    state = learner.init(jax.random.key(0))._replace(trust=jnp.float32(0.9))
    few_ = few(samples, 24)
    scores = protocol.reset_to_base(learner, state, few_).after
    by_hand = []
    for threshold in protocol.THRESHOLDS:
        answers = np.asarray(protocol.decide(scores, threshold))
        told = answers != int(Answer.UNKNOWN)
        strata, asked = np.asarray(few_.stratum), np.asarray(few_.asked)
        share = [told[asked & (strata == stratum)].mean() for stratum in range(3, 8)]
        ku = float(protocol.judged(scores, threshold, few_).ku.mean())
        by_hand.append((ku, np.mean(share[:3]) + np.mean(share[3:])))
    frontier = protocol.told(scores, few_).frontier
    np.testing.assert_allclose(np.stack(frontier, -1), by_hand, atol=1e-6)
    tuned = protocol.tune(learner, state, few_)
    chosen = []
    for most, point in tuned.points.items():
        ku, bku = by_hand[list(protocol.THRESHOLDS).index(np.float32(point.threshold))]
        best = max(ku for ku, bku in by_hand if bku <= most)
        assert point.reached and bku <= most
        assert ku == pytest.approx(best, abs=1e-6) == point.objective
        chosen.append(point.threshold)
    assert chosen == sorted(chosen, reverse=True) and len(set(chosen)) == 3


def test_who_always_answers_reaches_no_limit(samples):
    learner = controls.always_yes()
    points = protocol.tune(learner, learner.init(jax.random.key(0)), samples).points
    assert not any(point.reached for point in points.values())
    assert {point.objective for point in points.values()} == {-2.0}


def test_halving_finds_what_trying_all_finds(samples, monkeypatch):
    """`trust` is the share of literals that are dared: what one trial gets right, every larger one
    does, so that the largest is the best on every part. Half as many samples are asked about.
    """
    inner = tabular.dictionary()

    def answer(state, query):
        dared = (query.attribute * 37 + query.value * 11 + query.entity * 5) % 97 / 97
        return jnp.where(dared < state.trust, inner.answer(state.told, query), jnp.eye(3)[1])

    trusts = (0.25, 0.5, 0.125, 0.75, 0.375, 1.0, 0.625, 0.875)
    learner = graded(trusts)._replace(answer=answer)
    state, asked = learner.init(jax.random.key(0)), []
    expose = protocol.reset_to_base

    def counted(learner, state, part, *more):
        asked.append((round(float(state.trust), 3), part.label.shape[0]))
        return expose(learner, state, part, *more)

    monkeypatch.setattr(protocol, "reset_to_base", counted)
    halved = protocol.tune(learner, state, samples)
    best = [(trust, 16) for trust in (0.625, 0.75, 0.875, 1.0)]
    assert sorted(asked[:8]) == sorted((trust, 16) for trust in trusts)
    assert sorted(asked[8:12]) == best and sorted(asked[12:14]) == best[2:]
    assert asked[14:] == [(1.0, 16)]
    monkeypatch.setattr(protocol, "LEAST_RUNG", 65)
    asked.clear()
    exhaustive = protocol.tune(learner, state, samples)
    assert asked == [(trust, 64) for trust in trusts]
    assert halved == exhaustive and halved.trial == {"trust": 1.0}


def test_pieces_are_the_whole(samples, monkeypatch, mlp):
    """64 samples at once, or by 24: the last piece is filled up."""
    state = mlp.init(jax.random.key(0))
    whole = protocol.reset_to_base(mlp, state, samples).after
    monkeypatch.setattr(protocol, "PIECE", 24)
    np.testing.assert_allclose(protocol.reset_to_base(mlp, state, samples).after, whole, atol=1e-6)


def cheat(what):
    """A learner that looks up in the sample what it must not see."""

    def learn(state, sample):
        return sample.query, {"gold": sample.gold, "latents": sample.latents}[what]

    def by_gold(state, query):
        if not isinstance(state, tuple):
            return jnp.array([0, 1.0, 0])  # nothing learnt yet
        queries, gold = state
        same = jnp.stack([a == b for a, b in zip(queries[:4], query[:4], strict=True)]).all(0)
        return jnp.where(same.any(), jax.nn.one_hot(gold[same.argmax()], 3), jnp.array([0, 1.0, 0]))

    def by_latents(state, query):
        if not isinstance(state, tuple):
            return jnp.array([0, 1.0, 0])
        true = state[1][jnp.minimum(query.attribute, len(state[1]) - 1)] == query.value
        return jax.nn.one_hot(jnp.where(true, int(Answer.YES), int(Answer.NO)), 3)

    answer = by_gold if what == "gold" else by_latents
    return Learner(lambda key: jnp.zeros(()), learn, answer, {"none": None})


@pytest.mark.parametrize("what", ["gold", "latents"])
def test_the_audit_catches_a_planted_cheat(samples, what):
    learner = cheat(what)
    assert protocol.audit(learner, learner.init(jax.random.key(0)), samples) > 0.3


def test_the_audit_clears_honest_learners(samples, mlp):
    known = tabular.dictionary(), controls.random_answers(), controls.nearest_neighbour(EXPOSURES)
    for learner in (mlp, *known):
        assert protocol.audit(learner, learner.init(jax.random.key(0)), few(samples, 16)) == 0


def test_withheld_queries_do_not_reach_a_base_state(samples, mlp):
    """Changing every answer that is withheld changes no weight; changing one that isn't does."""
    make = base_states.of(mlp, TRAINING, OUTER, one_step(MLP(width=8), features))["meta"]
    hidden = np.asarray(base_states.withheld(samples))
    traps = np.asarray(samples.kind) == Kind.HALLUCINATION
    assert hidden[np.asarray(samples.kind) == Kind.BIAS].all()
    assert 0.3 < hidden[traps].mean() < 0.7
    assert not hidden[np.asarray(samples.kind) < Kind.HALLUCINATION].any()

    base = mlp.init(jax.random.key(0))
    made = make(base, samples, jax.random.key(1))
    wrong = samples._replace(gold=jnp.where(hidden, int(Answer.YES), samples.gold))
    same = make(base, wrong, jax.random.key(1))
    other = make(base, samples._replace(gold=2 - samples.gold), jax.random.key(1))
    for name in ("params", "pace"):
        a, b, c = (jax.tree.leaves(getattr(state, name)) for state in (made, same, other))
        assert all((x == y).all() for x, y in zip(a, b, strict=True))
        assert not all((x == y).all() for x, y in zip(a, c, strict=True))


def test_base_states_do_not_depend_on_how_many_samples_are_worked_on_at_a_time(samples):
    training, learner = Training(updates=2, batch=16), gradient_learner(MLP(8), features, 4)
    start = learner.init(jax.random.key(0))
    pretrain = jax.tree.map(jnp.asarray, samples)
    many, few = (
        base_states.of(learner, training, OUTER, one_step(MLP(8), features, chunk))["meta"](
            start, pretrain, jax.random.key(1)
        )
        for chunk in (16, 4)
    )
    # Adam hardly minds the size of a slope, so what is found over parts is looked at by itself.
    mean = base_states._mean(4, lambda part: jnp.float32(part.label).mean(), pretrain)
    assert float(mean) == pytest.approx(float(jnp.float32(pretrain.label).mean()), rel=1e-5)
    chex.assert_trees_all_close(many.params, few.params, rtol=1e-3, atol=1e-5)
    assert not np.allclose(jax.tree.leaves(many.params)[1], jax.tree.leaves(start.params)[1])


def test_rates_rise_stay_and_fall_by_hand():
    """Of 40 updates at most the rate rises over four; it falls over three after the ninth."""
    training = Training(updates=40, batch=1)
    at = {0: 0.25, 1: 0.5, 3: 1.0, 8: 1.0, 9: 1.0, 10: 2 / 3, 11: 1 / 3, 12: 0.0}
    for update, expected in at.items():
        fall = -1 if update < 9 else 9
        rate = base_states.rate_at(training, jnp.int32(update), jnp.int32(fall))
        assert float(rate) == pytest.approx(expected, abs=1e-6), update
    only = base_states.rate_at(Training(updates=1, batch=1), *jnp.array([0, -1]))
    assert float(only) == pytest.approx(1.0)


class _Point(NamedTuple):
    params: jax.Array
    trained: base_states.Trained = base_states.UNTRAINED


def _learner_with_loss(loss):
    """One number, trained by a loss of its own: its answer's logarithm is minus that."""

    def answer(state, query):
        right = jnp.exp(-loss(state.params))
        return jnp.array([right, right, right])

    return Learner(lambda key: _Point(jnp.float32(4.0)), lambda s, _: s, answer, {})


@pytest.mark.parametrize(
    ("loss", "updates", "level"),
    [
        # Nothing to learn: the first window sets the least loss, eight more don't better it, and a
        # third of 90 updates as the rate falls.
        (lambda w: 1.0 + 0.0 * w, 120, True),
        # Too little: less than 1% in eight windows together.
        (lambda w: 5.0 + 0.01 * jnp.abs(w), 120, True),
        # It falls by more than 1% a window to the end: 200 updates less a quarter, and a third
        # again.
        (lambda w: jnp.abs(w), 200, False),
    ],
)
def test_training_ends_when_the_loss_levels(samples, loss, updates, level):
    training = Training(updates=200, batch=4, window=10)
    learner = _learner_with_loss(loss)
    make = base_states.of(learner, training, Outer(0.02))["meta"]
    state = learner.init(jax.random.key(0))
    assert base_states.how_trained(state) == (None, None)
    made = make(state, jax.tree.map(jnp.asarray, samples), jax.random.key(1))
    assert base_states.how_trained(made) == (updates, level)
    # side by side as alone
    keys = jax.random.split(jax.random.key(1), 2)
    both = jax.vmap(make, in_axes=(None, None, 0))(state, jax.tree.map(jnp.asarray, samples), keys)
    assert both.trained.updates.tolist() == [updates] * 2


def test_training_stops_for_each_replicate_by_itself(samples):
    """One whose loss levels at once and one whose loss falls, trained by one program."""
    learner = _learner_with_loss(lambda w: jnp.where(w > 10, 5.0, 1.0 + jnp.abs(w)))
    make = base_states.of(learner, Training(updates=200, batch=4, window=10), Outer(0.02))["meta"]
    states = _Point(
        jnp.array([20.0, 4.0]), jax.tree.map(lambda x: jnp.stack([x] * 2), _Point(0)[1])
    )
    told = jax.tree.map(jnp.asarray, samples)
    made = jax.vmap(make, in_axes=(0, None, None))(states, told, jax.random.key(1))
    assert made.trained.updates.tolist() == [120, 200]
    assert made.trained.level.tolist() == [True, False]


def test_held_out_samples_are_watched_and_never_learnt_from(samples):
    """Other answers to the first eighth change no weight but when training ends; to the rest they
    do.
    """
    learner, training = (
        gradient_learner(MLP(8), features, 4),
        Training(updates=4, batch=16, window=4),
    )
    make = base_states.of(learner, training, OUTER)["marginal"]
    start, key, held = learner.init(jax.random.key(0)), jax.random.key(1), len(samples.gold) // 8
    told = jax.tree.map(jnp.asarray, samples)
    as_is, watched, seen = (
        make(start, told._replace(gold=gold), key).params
        for gold in (
            told.gold,
            told.gold.at[:held].set(2 - told.gold[:held]),
            told.gold.at[held:].set(2 - told.gold[held:]),
        )
    )
    chex.assert_trees_all_equal(as_is, watched)
    assert not np.allclose(jax.tree.leaves(as_is)[-1], jax.tree.leaves(seen)[-1], atol=1e-6)


def test_other_rates_need_no_other_program(samples):
    """One program of a learner is trained by any outer setting; each is another base state."""
    learner = gradient_learner(MLP(8), features, 4)
    bases = base_states.of(learner, TRAINING, OUTER)
    other = {"marginal": dataclasses.replace(bases["marginal"], outer=Outer(0.5))}
    told = jax.tree.map(jnp.asarray, samples)
    start, key = learner.init(jax.random.key(0)), jax.random.key(1)
    a, b = (of["marginal"](start, told, key).params for of in (bases, other))
    assert not np.allclose(jax.tree.leaves(a)[1], jax.tree.leaves(b)[1], atol=1e-3)


def test_paces_start_where_they_are_told_to(samples):
    learner = gradient_learner(MLP(8), features, 4)
    for through in (one_step(MLP(8), features), one_step_of_mlp()):
        training = Training(updates=1, batch=4)
        make = base_states.of(learner, training, Outer(1e-9, pace=0.25), through)
        made = make["meta"](learner.init(jax.random.key(0)), samples, jax.random.key(1))
        chex.assert_trees_all_close(
            made.pace, jax.tree.map(lambda w: 0 * w + 0.25, made.pace), rtol=1e-4
        )


@pytest.mark.parametrize("replayed", [0, 3])
def test_a_step_of_an_mlp_in_dual_form_is_a_step(samples, replayed):
    """The quick way against `one_step`: answers, and the derivative of the outer loss through both,
    by weights and by what paces are made of.
    """
    network = MLP(8)
    learner = gradient_learner(network, features, 4, replayed=replayed)
    state = learner.init(jax.random.key(0))
    if replayed:
        state = base_states.replay(state, samples, jax.random.key(3))
    told = jax.tree.map(jnp.asarray, few(samples))
    told = told._replace(shown=told.shown.at[0, 20:].set(False))
    haste = jax.tree.map(
        lambda z: 0.1 * jax.random.normal(jax.random.key(z.size), z.shape),
        base_states._hastes(state.params, jnp.float32(1), factored=True),
    )
    slow, quick = one_step(network, features), one_step_of_mlp()

    def loss(through):
        def of(params, haste):
            pace = base_states._paces(haste, whole=not through.factored)
            moved = state._replace(params=params, pace=pace)
            return base_states.outer_loss(through, moved, told)

        return jax.jit(jax.value_and_grad(of, argnums=(0, 1)))(state.params, haste)

    (a, of_a), (b, of_b) = loss(slow), loss(quick)
    assert float(a) == pytest.approx(float(b), rel=1e-5)
    chex.assert_trees_all_close(of_a, of_b, rtol=1e-3, atol=1e-6)
    assert float(jnp.abs(jax.tree.leaves(of_a)[0]).max()) > 1e-4


def test_a_replaying_learner_learns_unknown_items_of_the_pretraining_split(samples):
    """By hand: one step on the sample's items and the replayed ones, the latter as UNKNOWN."""
    learner = gradient_learner(MLP(width=8), features, chunk=4, replayed=3)
    bases = base_states.prepared({"random": None}, base_states.replay)
    pretrain = generate(FAMILIES["stories"], jax.random.key(5), 64, "pretrain")
    state = bases["random"](learner.init(jax.random.key(0)), pretrain, jax.random.key(1))
    state = state._replace(steps=jnp.int32(1), rate=jnp.float32(0.3))
    traps = (pretrain.kind == Kind.HALLUCINATION) & ~base_states.withheld(pretrain)
    known = {
        tuple(int(part[i, q]) for part in pretrain.query[:4])
        for i, q in zip(*np.nonzero(np.asarray(traps)), strict=True)
    }
    replayed = [tuple(int(part[i]) for part in state.replay[:4]) for i in range(3)]
    assert set(replayed) <= known and len(set(replayed)) == 3

    sample = jax.tree.map(lambda leaf: leaf[0], samples)
    inputs = jnp.concatenate([features(sample.exposure), features(state.replay)])
    label = jnp.concatenate([sample.label, jnp.full(3, int(Answer.UNKNOWN))])

    def loss(params):
        logits = MLP(width=8).apply(params, inputs)
        return -jax.nn.log_softmax(logits)[jnp.arange(len(label)), label].mean()

    moved = jax.tree.map(lambda w, g: w - 0.3 * g, state.params, jax.grad(loss)(state.params))
    learnt = learner.learn(state, sample).params
    for a, b in zip(jax.tree.leaves(learnt), jax.tree.leaves(moved), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)


@pytest.mark.parametrize(
    "kind", ["cnn", "gru", "transformer", "gru_context", "transformer_context"]
)
def test_networks_learn_a_sample(samples, kind):
    """Scores are a distribution, and exposure raises the belief in what was stated."""
    if kind.endswith("context"):
        network = {"gru": GRUReader(16), "transformer": TransformerReader(1, 16, 1)}
        learner = context_learner(network[kind.split("_")[0]], chunk=4)
        made = base_states.of(learner, Training(updates=2, batch=4), OUTER)["meta"]
        state = made(learner.init(jax.random.key(0)), few(samples), jax.random.key(1))
    else:
        network, encode = {
            "cnn": (CNN((4, 4), 4, 8), features),
            "gru": (GRU(16), token_features),
            "transformer": (Transformer(1, 16, 1), token_features),
        }[kind]
        learner = gradient_learner(network, encode, chunk=4, optimiser=optax.adam)
        state = learner.init(jax.random.key(0))._replace(
            rate=jnp.float32(0.01), steps=jnp.int32(30)
        )
    exposed = protocol.reset_to_base(learner, state, few(samples))
    np.testing.assert_allclose(exposed.after.sum(-1), 1, atol=1e-5)
    assert (exposed.after >= 0).all()
    assert not np.allclose(exposed.after, exposed.before, atol=1e-4)
    if not kind.endswith("context"):
        stated = few(samples).gold[:, :2] == int(Answer.YES)
        assert stated.all()
        assert (exposed.after - exposed.before)[:, :2, 2].mean() > 0.05


def test_adam_is_optax_adam():
    """Over gradients of very different sizes, one of them 0 for ever."""
    params = {"w": jnp.ones((3, 4)), "b": jnp.zeros(4)}
    ours, theirs = adam(0.03), optax.adam(0.03)
    states = [(params, ours.init(params)), (params, theirs.init(params))]
    for number in range(20):
        key = jax.random.fold_in(jax.random.key(0), number)
        slopes = {
            "w": jax.random.normal(key, (3, 4)) * jnp.array([1e-6, 1.0, 1e3, 0.0]),
            "b": jax.random.normal(key, (4,)),
        }
        for i, optimiser in enumerate((ours, theirs)):
            change, memory = optimiser.update(slopes, states[i][1], states[i][0])
            states[i] = optax.apply_updates(states[i][0], change), memory
    chex.assert_trees_all_close(states[0][0], states[1][0], rtol=1e-5, atol=1e-6)
    assert np.ptp(states[0][0]["w"]) > 0.1


@pytest.mark.processes
def test_two_devices_give_the_same_scores(on_devices):
    """Chunks spread over devices: the same answers but for rounding. Drawn on the second device:
    the same samples.
    """
    code = (
        "import jax, numpy as np\n"
        "from kubku import protocol\n"
        "from kubku.halo import features\n"
        "from kubku.learners.gradient import MLP, gradient_learner\n"
        "from kubku.tasks import FAMILIES, generate, generation\n"
        "made, chunk = [], generation._chunk\n"
        "generation._chunk = lambda *told: made.append(chunk(*told)) or made[-1]\n"
        "with jax.default_device(jax.devices()[-1]):\n"
        "    s = generate(FAMILIES['stories'], jax.random.key(5), 6, 'test')\n"
        "assert made[0].gold.devices() == {jax.devices()[-1]}\n"
        "print([np.asarray(leaf).tolist() for leaf in jax.tree.leaves(s)])\n"
        "l = gradient_learner(MLP(width=8), features, chunk=2)\n"
        "e = protocol.reset_to_base(l, l.init(jax.random.key(0)), s)\n"
        "print(np.asarray(e.after).ravel().tolist())\n"
    )
    assert jax.device_count() == 1
    drawn = generate(FAMILIES["stories"], jax.random.key(5), 6, "test")
    learner = gradient_learner(MLP(width=8), features, chunk=2)
    one = protocol.reset_to_base(learner, learner.init(jax.random.key(0)), drawn)
    drawn_by_two, two = map(ast.literal_eval, on_devices(code, 2))
    np.testing.assert_allclose(np.asarray(one.after).ravel(), two, atol=1e-6)
    assert drawn_by_two == [np.asarray(leaf).tolist() for leaf in jax.tree.leaves(drawn)]
