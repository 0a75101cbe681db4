"""The audits catch learners that were planted to cheat, and clear honest ones."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from evidence.answers import Answer
from kubku import assessment, audits, evaluation
from kubku.evaluation import Amount
from kubku.halo import DRAWN, EXPOSURES, Learner, features
from kubku.learners import controls, tabular
from kubku.learners.gradient import MLP, gradient_learner
from kubku.samples import Splits
from kubku.tasks import FAMILIES, SPLITS


@pytest.fixture(scope="module")
def samples(drawn):
    return jax.tree.map(lambda leaf: leaf[:64], drawn("stories"))


def started(learner):
    return learner.init(jax.random.key(0))


def carrying():
    """A learner that keeps the last sample's first value on the host, and answers by that."""
    kept = {"value": 0}

    def swap(value):
        kept["value"], last = int(value), kept["value"]
        return np.int32(last)

    def learn(state, sample):
        shape = jax.ShapeDtypeStruct((), jnp.int32)
        value = sample.exposure.value[0]
        return jax.pure_callback(swap, shape, value, vmap_method="sequential")

    def answer(state, query):
        return jax.nn.one_hot(2 * (state % 2), 3)

    return Learner(lambda key: jnp.int32(0), learn, answer, {"none": None}, chunk=1)


def reading_splits():
    """A dictionary that asserts everything, but of entities that are scored, which it knows."""
    honest = tabular.dictionary()

    def answer(state, query):
        low, high = SPLITS["test"].entities
        is_test = (query.entity >= low) & (query.entity < high)
        return jnp.where(is_test, honest.answer(state, query), jax.nn.one_hot(int(Answer.YES), 3))

    return honest._replace(answer=answer)


def honest():
    return {
        "dictionary": tabular.dictionary(),
        "random_answers": controls.random_answers(),
        "nearest_neighbour": controls.nearest_neighbour(EXPOSURES),
        "mlp": gradient_learner(MLP(width=8), features, 16),
    }


def test_state_that_is_carried_is_caught(samples):
    """The one before a sample is another in 63 of 64 places, and odd where it was even in about
    half of them."""
    learner = carrying()
    assert 0.2 < audits.carried(learner, started(learner), samples) < 0.8


def test_reading_the_split_from_a_code_is_caught(samples):
    """Of 16 queries 2 to 4 are rightly YES: the others move, of every sample."""
    learner = reading_splits()
    assert audits.split_read(learner, started(learner), 0.0, samples) > 0.5
    # As much of one sample in ten is far beyond chance, too.
    state = started(learner)

    def seldom(state, query):
        told = state.known[query.entity].sum() % 10 == 0
        return jnp.where(told, learner.answer(state, query), tabular.literal(state, DRAWN, query))

    assert 0 < audits.split_read(learner._replace(answer=seldom), state, 0.0, samples) < 0.3


@pytest.mark.parametrize("name", ["dictionary", "random_answers", "nearest_neighbour", "mlp"])
def test_honest_learners_read_0(samples, name):
    learner = honest()[name]
    state = started(learner)
    assert audits.carried(learner, state, samples) == 0
    assert audits.split_read(learner, state, 0.3, samples) == 0


def test_an_answer_that_hangs_on_a_code_by_chance_is_none_of_it(samples):
    """Random answers are others for every code: two thirds of them move, near as far."""
    learner = controls.random_answers()
    moved = []
    for seed in range(5):
        part = jax.tree.map(lambda leaf, at=8 * seed: leaf[at : at + 24], samples)
        moved.append(audits.split_read(learner, started(learner), 0.0, part))
    assert moved == [0.0] * 5
    assert DRAWN.entities > SPLITS["test"].entities[1]


def test_both_stand_in_a_cell(samples):
    few = jax.tree.map(lambda leaf: leaf[:16], samples)
    streams = jax.tree.map(lambda leaf: leaf[None, :4], samples)
    nothing = jax.tree.map(lambda leaf: leaf[:0], samples)
    amount = Amount(test=16, validation=16, sweep=0, drift_alone=False)
    splits = Splits(few, few, nothing, streams)
    learner = reading_splits()
    found = evaluation.evaluate(learner, started(learner), 0.0, FAMILIES["stories"], splits, amount)
    assert float(found["split_read"]) > 0.5
    assert float(found["carried"]) == float(found["audit"]) == 0


def test_what_they_find_is_a_warning():
    clear = {"audit": 0.0, "carried": 0.0, "split_read": 0.0}
    for name, said in (
        ("audit", "a wrong halo"),
        ("carried", "in another order"),
        ("split_read", "codes of the pretraining split"),
    ):
        state = SimpleNamespace(**{**clear, name: 0.004})
        learner = SimpleNamespace(base_states={"own": state})
        families = {"stories": SimpleNamespace(learners={"custom": learner})}
        (warning,) = assessment._warnings(SimpleNamespace(chosen_bases=None), families)
        assert said in warning and "0.4% of queries" in warning
