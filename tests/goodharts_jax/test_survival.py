"""Continuous survival against a slow reference that lists every life, and by hand."""

from types import SimpleNamespace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import CensoredData, ecdf

from evidence import lifetimes
from goodharts_jax import evaluation, rollouts, seekers, survival, world
from goodharts_jax.modes import make_mode
from goodharts_jax.policies import Output
from goodharts_jax.survival import ALL, FIRST, LifeTable, Lives, Tally
from goodharts_jax.world import FOOD, POISON

WORLD = world.make_world(20, 2, food=(8, 16), poison=(6, 12))
NUM_WORLDS, CHUNK, CHUNKS = 6, 30, 2
STEPS = CHUNK * CHUNKS
HORIZON = 45
PROXY = {"food": 0.5, "poison": 1.0}
MODE = make_mode((1, 0), (0, 1), 1.0, -2.0, step_reward=-0.1, death_reward=-4.0)


def policy(view, noise_word):
    """Goes for both kinds, but takes a random step now and then."""
    logits, value = seekers.seeker(1.0, 0.6)(view, noise_word)
    return Output(jnp.maximum(logits, -2.5), value)


# ---- the reference ------------------------------------------------------------------------------


class Life(NamedTuple):
    world: int
    first: bool
    age: int
    food: int
    poison: int
    died: bool
    last_meal: int

    @property
    def efficiency(self):
        return self.food / (self.food + self.poison)

    @property
    def is_barren(self):
        return self.food + self.poison == 0


@jax.jit
def _one_step(states, key):
    """All worlds one step on, with the random numbers that `rollout` uses."""
    choice, noise_word, keys = rollouts.chances(key, NUM_WORLDS)
    views = jax.vmap(world.view, (None, 0))(WORLD, states)
    actions = jax.vmap(rollouts.sample)(jax.vmap(policy)(views, noise_word).logits, choice)
    return jax.vmap(world.step, (None, 0, 0, 0))(WORLD, states, actions, keys)


def list_lives(states, keys):
    """Every life, one by one, and the energy that each world's dead left behind."""
    lives, left_behind = [], np.zeros(NUM_WORLDS, int)
    newborn = {"age": 0, "food": 0, "poison": 0}
    now = [dict(newborn, first=True) for _ in range(NUM_WORLDS)]
    for key in keys:
        for step_key in jax.random.split(key, CHUNK):
            states, event = jax.device_get(_one_step(states, step_key))
            for place, life in enumerate(now):
                meal = int(event.eaten[place])
                life["age"] += 1
                life["food"] += meal == FOOD
                life["poison"] += meal == POISON
                if event.died[place]:
                    lives.append(Life(place, died=True, last_meal=meal, **life))
                    left_behind[place] += event.energy[place]
                    now[place] = dict(newborn, first=False)
    lives += [Life(place, died=False, last_meal=0, **life) for place, life in enumerate(now)]
    return lives, left_behind, states


@pytest.fixture(scope="module")
def followed():
    """Two groups of worlds, each followed by `rollout` and by the reference."""
    go_on = jax.jit(lambda lives, key: survival.rollout(WORLD, policy, lives, key, CHUNK, STEPS))
    groups = []
    for seed in range(2):
        reset_key, *keys = jax.random.split(jax.random.key(seed), CHUNKS + 1)
        first = lives = survival.reset(WORLD, NUM_WORLDS, reset_key)
        tally = None
        for key in keys:
            lives, counted = go_on(lives, key)
            tally = survival.add(tally, counted)
        listed, left_behind, states = list_lives(first.worlds, keys)
        groups.append(
            SimpleNamespace(
                life_table=survival.finish(tally, lives, STEPS),
                listed=listed,
                left_behind=left_behind,
                states=states,
                worlds=lives.worlds,
            )
        )
    return groups


@pytest.fixture(scope="module")
def group(followed):
    return followed[0]


def expected_metrics(lives, items):
    """The metrics as their definitions say, from a list of lives."""
    dead = [life for life in lives if life.died]
    eaters = [life for life in dead if not life.is_barren]
    first = [life for life in lives if life.first]
    survives = ecdf(
        CensoredData([x.age for x in first if x.died], right=[x.age for x in first if not x.died])
    ).sf.evaluate
    steps = sum(life.age for life in lives)
    food, poison = sum(x.food for x in lives), sum(x.poison for x in lives)
    by_poison = sum(x.last_meal == POISON for x in dead)
    rates = [food / (items[:, FOOD].sum() * STEPS), poison / (items[:, POISON].sum() * STEPS)]
    efficiencies = [life.efficiency for life in eaters]
    total = {
        "deaths": len(dead),
        "food": food,
        "poison": poison,
        "energy": food - 2 * poison - 0.1 * steps,
        "proxy_return": 0.5 * food + poison,
        "own_return": food - 2 * poison - 0.1 * steps - 4 * len(dead),
    }
    return {f"{name}_per_1k_steps": 1000 * value / steps for name, value in total.items()} | {
        "survival_mean": np.mean([life.age for life in dead]),
        "survival_median": next((t for t in range(STEPS + 1) if survives(t) <= 0.5), None),
        "survival_restricted_mean": sum(survives(t) for t in range(HORIZON)),
        "deaths_by_poison_share": by_poison / len(dead),
        "overall_efficiency": food / (food + poison),
        "efficiency_mean": np.mean(efficiencies + [0.5] * (len(dead) - len(eaters))),
        "efficiency_mean_eaters": np.mean(efficiencies),
        "selectivity": rates[0] / sum(rates),
        "total_deaths": len(dead),
        "total_steps": steps,
    }


def test_the_reference_sees_all_there_is_to_see(followed):
    """Nothing below would be tested by lives that all end alike."""
    for group in followed:
        dead = [life for life in group.listed if life.died]
        assert any(life.last_meal == POISON for life in dead)
        assert any(life.is_barren for life in dead)
        assert any(life.age > 12 and life.first for life in dead)
        assert any(life.died and not life.first for life in group.listed)
        assert len({life.age for life in group.listed if not life.died}) > 2


def test_the_worlds_are_the_same(group):
    jax.tree.map(np.testing.assert_array_equal, group.states, jax.device_get(group.worlds))


def test_every_metric(group):
    found = survival.metrics(group.life_table, WORLD, HORIZON, PROXY, MODE)
    assert dict(found) == pytest.approx(
        expected_metrics(group.listed, group.life_table.items), rel=1e-6
    )


def test_pooled_metrics_are_those_of_all_lives(followed):
    pooled = survival.pool([group.life_table for group in followed])
    listed = [life for group in followed for life in group.listed]
    found = survival.metrics(pooled, WORLD, HORIZON, PROXY, MODE)
    assert dict(found) == pytest.approx(expected_metrics(listed, pooled.items), rel=1e-6)


def test_every_table(group):
    tally, lives = group.life_table.tally, group.listed
    dead = [life for life in lives if life.died]
    for table, chosen in ((FIRST, [x for x in lives if x.first]), (ALL, lives)):
        for counts, died in ((tally.deaths_by_age, True), (group.life_table.alive_by_age, False)):
            ages = [life.age for life in chosen if life.died == died]
            np.testing.assert_array_equal(counts[table], np.bincount(ages, minlength=STEPS + 1))
    for place in range(NUM_WORLDS):
        own = [life for life in dead if life.world == place]
        assert tally.deaths[place] == len(own)
        assert tally.barren[place] == sum(life.is_barren for life in own)
        assert tally.efficiency[place] == pytest.approx(
            sum(life.efficiency for life in own if not life.is_barren)
        )
    percents = [round(100 * life.efficiency) for life in dead if not life.is_barren]
    np.testing.assert_array_equal(tally.lives_by_efficiency, np.bincount(percents, minlength=101))
    shown = survival.details(group.life_table)
    assert shown.deaths_by_poison == sum(life.last_meal == POISON for life in dead)
    assert shown.deaths_by_poison + shown.deaths_by_hunger == len(dead)
    assert shown.efficiency_histogram == tally.lives_by_efficiency.tolist()


@pytest.mark.parametrize("table", [FIRST, ALL])
def test_kaplan_meier_against_scipy(group, table):
    lives = [life for life in group.listed if life.first or table == ALL]
    censored = CensoredData(
        [life.age for life in lives if life.died], right=[x.age for x in lives if not x.died]
    )
    curve = lifetimes.kaplan_meier(
        group.life_table.tally.deaths_by_age[table], group.life_table.alive_by_age[table]
    )
    known = curve.age <= max(life.age for life in lives)
    np.testing.assert_allclose(
        curve.survival[known], ecdf(censored).sf.evaluate(curve.age[known]), rtol=1e-12
    )


def test_the_drawn_curve_is_the_whole_curve(group):
    deaths, alive = (
        group.life_table.tally.deaths_by_age[FIRST],
        group.life_table.alive_by_age[FIRST],
    )
    curve = lifetimes.kaplan_meier(deaths, alive)
    drawn = survival.details(group.life_table).survival
    latest = np.searchsorted(drawn.ages, curve.age, side="right") - 1
    np.testing.assert_allclose(np.array(drawn.survival)[latest], curve.survival, atol=1e-6)


# ---- ledgers ------------------------------------------------------------------------------------


def test_every_step_belongs_to_one_life(group):
    tally, ages = group.life_table.tally, np.arange(STEPS + 1)
    lived = (tally.deaths_by_age[ALL] + group.life_table.alive_by_age[ALL]) @ ages
    assert lived == NUM_WORLDS * STEPS == tally.eaten.sum()
    assert group.life_table.alive_by_age[ALL].sum() == NUM_WORLDS
    first = tally.deaths_by_age[FIRST].sum() + group.life_table.alive_by_age[FIRST].sum()
    assert first == NUM_WORLDS


def test_energy_is_accounted_for_to_the_unit(group):
    """Births and meals less moves is what the dead left behind and the living have."""
    tally = group.life_table.tally
    births = 1 + tally.deaths
    put_in = births * int(WORLD.start_energy) + tally.eaten @ np.asarray(WORLD.energy, int)
    spent = STEPS * int(WORLD.move_cost)
    np.testing.assert_array_equal(
        put_in - spent, group.left_behind + np.asarray(group.worlds.energy)
    )


# ---- by hand ------------------------------------------------------------------------------------


def test_three_deaths_of_the_protocol():
    """100 food, 1 food with 1 poison, nothing: 67% a life, 75% a life that ate, 99% overall."""
    bare = world.make_world(5, 1, food=(0, 0), poison=(0, 0))
    lives = survival.reset(bare, 3, jax.random.key(0))
    meals = jnp.array([[0, 100, 0], [0, 1, 1], [0, 0, 0]], jnp.int32)
    dying = lives.worlds.replace(energy=jnp.full((3,), 1, jnp.int32))
    lives, tally = survival.rollout(
        bare,
        seekers.random_walk,
        Lives(dying, meals, lives.is_first),
        jax.random.key(1),
        num_steps=1,
        oldest=1,
    )
    assert not lives.eaten.any() and not lives.is_first.any()
    # Those meals were eaten before this tally began.
    tally = survival.add(None, tally.replace(eaten=tally.eaten + meals))
    found = survival.metrics(survival.finish(tally, lives, 1), bare, 1, PROXY, None)
    assert found.total_deaths == 3
    assert found.efficiency_mean == pytest.approx((1 + 0.5 + 0.5) / 3)
    assert found.efficiency_mean_eaters == pytest.approx((1 + 0.5) / 2)
    assert found.overall_efficiency == pytest.approx(101 / 102)
    percents = {percent: int(n) for percent, n in enumerate(tally.lives_by_efficiency) if n}
    assert percents == {50: 1, 100: 1}


def counted(eaten, items, steps, deaths_by_age=(0, 0), deaths=0):
    """A life table of worlds of which little is known."""
    num_worlds = len(items)
    blank = survival.add(None, survival.empty_tally(num_worlds, len(deaths_by_age) - 1))
    table = np.array([deaths_by_age] * 2)
    tally = blank.replace(
        eaten=np.array(eaten), deaths_by_age=table, deaths=np.full(num_worlds, deaths)
    )
    return LifeTable(tally, np.zeros_like(table), np.array(items), steps)


def test_selectivity_by_hand():
    """30 of 20 x 100 food and 30 of 10 x 100 poison: 0.015 / (0.015 + 0.030)."""
    life_table = counted([[40, 30, 30]], [[0, 20, 10]], 100)
    assert survival.metrics(life_table, WORLD, 1, PROXY, None).selectivity == pytest.approx(1 / 3)
    # Two worlds: 40 of (20 + 60) x 100 and 10 of (10 + 10) x 100; half and half.
    life_table = counted([[70, 10, 10], [70, 30, 0]], [[0, 20, 10], [0, 60, 10]], 100)
    assert survival.metrics(life_table, WORLD, 1, PROXY, None).selectivity == pytest.approx(0.5)


def test_a_ratio_with_total_0_is_none():
    """Agents that neither ate nor died, in worlds without poison."""
    life_table = counted([[100, 0, 0]], [[0, 5, 0]], 100)
    found = survival.metrics(life_table, WORLD, 1, PROXY, None)
    undefined = {name for name, value in found if value is None}
    ratios = {"deaths_by_poison_share", "selectivity", "overall_efficiency", "efficiency_mean"}
    assert undefined == ratios | {
        "efficiency_mean_eaters",
        "survival_mean",
        "survival_median",
        "survival_restricted_mean",
        "own_return_per_1k_steps",
    }
    assert found.deaths_per_1k_steps == 0
    assert found.energy_per_1k_steps == pytest.approx(-100)


def test_tallies_add_up_beyond_32_bits():
    many = np.full((1, 3), 2**31 - 1, np.int32)
    once = survival.empty_tally(1, 1).replace(
        eaten=jnp.asarray(many), efficiency=jnp.float32([2**24])
    )
    total = None
    for _ in range(3):
        total = survival.add(total, once)
    assert total.eaten.dtype == np.int64
    assert total.eaten.tolist() == [[3 * (2**31 - 1)] * 3]
    one_more = survival.add(total, once.replace(efficiency=jnp.float32([1])))
    assert one_more.efficiency.tolist() == [3 * 2**24 + 1]  # which no float32 can hold


def test_pool_keeps_worlds_apart_and_adds_the_rest():
    a = counted([[1, 2, 3]], [[0, 4, 5]], 10, deaths_by_age=(0, 2), deaths=2)
    b = counted([[6, 7, 8]], [[0, 9, 1]], 10, deaths_by_age=(0, 3), deaths=3)
    pooled = survival.pool([a, b])
    assert pooled.tally.eaten.tolist() == [[1, 2, 3], [6, 7, 8]]
    assert pooled.tally.deaths.tolist() == [2, 3]
    assert pooled.tally.deaths_by_age.tolist() == [[0, 5], [0, 5]]
    assert pooled.items.tolist() == [[0, 4, 5], [0, 9, 1]]
    assert pooled.steps == 10
    assert set(Tally.__dataclass_fields__) == set(vars(pooled.tally))


def test_an_evaluation_s_blocks_are_dealt_out_to_the_devices():
    """Seven to two of them: the first works on every other one, the second on the rest."""
    assert evaluation._dealt(7, 2).tolist() == [0, 2, 4, 6, 1, 3, 5]
    assert evaluation._dealt(3, 1).tolist() == [0, 1, 2]


def test_what_was_dealt_out_is_put_together_again(monkeypatch):
    """Blocks of two scripts, three and two seeds, dealt to two devices: taken by their places, they
    stand as with one device, the same keys with the same scripts.
    """
    scripts = [seekers.random_walk, seekers.omniscient_seeker]
    candidates = {
        f"script {i}": evaluation.Candidate(script, None, None, range(9, 9 + runs), whole=True)
        for i, (script, runs) in enumerate(zip(scripts, (3, 2), strict=True))
    }

    def told(devices):
        monkeypatch.setattr(jax, "device_count", lambda: devices)
        blocks, _, places = evaluation._blocks(candidates, scripts, 3)
        return blocks.policy, np.asarray(jax.random.key_data(blocks.key)), places

    policy, key, places = told(2)
    alone, its_key, in_order = told(1)
    assert in_order.tolist() == list(range(15)) and alone.tolist() == [0] * 9 + [1] * 6
    assert policy.tolist() == [0] * 5 + [1] * 3 + [0] * 4 + [1] * 3
    np.testing.assert_array_equal(policy[places], alone)
    np.testing.assert_array_equal(key[places], its_key)
