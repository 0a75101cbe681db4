"""The modes of `conf/goodhart/mode/` against numbers written by hand, and what the numbers do."""

import hydra
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from goodharts_jax import modes, settings
from goodharts_jax.rollouts import Transition
from goodharts_jax.world import EMPTY, FOOD, POISON, Event

# Five columns: appearance of food and poison; rewards for food, poison, a step, a death; the
# weight of the shaping; whether energy counts in training. Interestingness is 0.5 and 1.0, the move
# cost 0.1.
TABLE = {
    "ground_truth": ((1, 0), (0, 1), (1, -2, -0.1, -4), 0, True),
    "ground_truth_handhold": ((1, 0), (0, 1), (1, -1, -0.1, -2), 1, True),
    "ground_truth_blinded": ((0.5, 0.5), (1, 1), (1, -2, -0.1, -4), 0, True),
    "ground_truth_aliased": ((1, 1), (1, 1), (1, -2, -0.1, -4), 0, True),
    "proxy": ((0.5, 0.5), (1, 1), (0.5, 1, 0, 0), 0, False),
    "proxy_mortal": ((0.5, 0.5), (1, 1), (0.5, 1, 0, 0), 0, True),
}
VIEW = jnp.array([[EMPTY, FOOD, POISON], [FOOD, EMPTY, EMPTY], [POISON, FOOD, EMPTY]], jnp.uint8)
SWAPPED = jnp.array([EMPTY, POISON, FOOD], jnp.uint8)[VIEW]
BARREN = jnp.zeros((11, 11), jnp.uint8)
NOISE_WORD = jnp.uint32(0)


def configured(*overrides: str) -> dict[str, modes.Mode]:
    """Every mode as a user's command would make it."""
    with hydra.initialize_config_module("conf.goodhart", version_base="1.3"):
        config = hydra.compose("config", ["mode=all", *overrides])
    return settings.read(config).rows()


@pytest.fixture(scope="module")
def rows() -> dict[str, modes.Mode]:
    return configured()


def event(eaten: int = EMPTY, died: bool = False) -> Event:
    return Event(jnp.uint8(eaten), jnp.array(died), *[jnp.int32(0)] * 2, jnp.zeros(2, jnp.int32))


def item_at(dx: int, dy: int, code: int = FOOD, view: jax.Array = BARREN) -> jax.Array:
    return view.at[5 + dy, 5 + dx].set(code)


def reward(
    mode: modes.Mode, happened: Event, view=BARREN, next_view=BARREN, discount=0.99
) -> float:
    nothing = jnp.int32(0)
    step = Transition(view, jnp.uint32(0), nothing, nothing, nothing, happened)
    return float(modes.reward(mode, step, next_view, jnp.float32(discount)))


def test_there_is_a_row_for_each_mode_of_the_table(rows):
    assert rows.keys() == TABLE.keys()


@pytest.mark.parametrize("name", TABLE)
def test_row(rows, name):
    food, poison, (food_reward, poison_reward, step_reward, death_reward), shaping, mortal = TABLE[
        name
    ]
    row = rows[name]
    np.testing.assert_array_equal(row.appearance, [(0, 0), food, poison])
    np.testing.assert_array_equal(row.reward.item, [0, food_reward, poison_reward])
    assert row.reward.step == np.float32(step_reward)
    assert row.reward.death == death_reward
    assert row.reward.shaping == shaping
    assert row.mortal == mortal
    assert row.noise is None


@pytest.mark.parametrize("name", TABLE)
def test_reward_for_what_can_happen(rows, name):
    _, _, (food_reward, poison_reward, step_reward, death_reward), _, _ = TABLE[name]
    assert reward(rows[name], event()) == pytest.approx(step_reward)
    assert reward(rows[name], event(FOOD)) == pytest.approx(food_reward + step_reward)
    assert reward(rows[name], event(POISON)) == pytest.approx(poison_reward + step_reward)
    assert reward(rows[name], event(EMPTY, died=True)) == pytest.approx(step_reward + death_reward)
    assert reward(rows[name], event(POISON, died=True)) == pytest.approx(
        poison_reward + step_reward + death_reward
    )


def test_reward_follows_the_world_and_the_interestingness():
    rows = configured("world=reference", "interestingness.food=1.0", "interestingness.poison=0.25")
    assert rows["ground_truth"].reward.step == np.float32(-0.01)
    assert rows["proxy"].reward.step == 0
    np.testing.assert_array_equal(rows["proxy"].reward.item, [0, 1, 0.25])
    np.testing.assert_array_equal(
        rows["ground_truth_blinded"].appearance, [(0, 0), (1, 1), (0.25, 0.25)]
    )
    np.testing.assert_array_equal(rows["ground_truth_blinded"].reward.item, [0, 1, -2])


def test_observation_of_each_mode(rows):
    is_food = np.array([[0, 1, 0], [1, 0, 0], [0, 1, 0]])
    is_poison = np.array([[0, 0, 1], [0, 0, 0], [1, 0, 0]])
    truth = np.stack([is_food, is_poison], -1)
    interest = np.stack([0.5 * is_food + is_poison] * 2, -1)
    something = np.stack([is_food + is_poison] * 2, -1)
    expected = {
        "ground_truth": truth,
        "ground_truth_handhold": truth,
        "ground_truth_blinded": interest,
        "ground_truth_aliased": something,
        "proxy": interest,
        "proxy_mortal": interest,
    }
    for name, row in rows.items():
        np.testing.assert_array_equal(modes.observe(row, VIEW, NOISE_WORD), expected[name], name)


def test_only_the_aliased_agent_is_blind(rows):
    for name, row in rows.items():
        one, other = modes.observe(row, VIEW, NOISE_WORD), modes.observe(row, SWAPPED, NOISE_WORD)
        tells_apart = bool(jnp.any(one != other))
        assert tells_apart == (name != "ground_truth_aliased")


@pytest.mark.parametrize(
    ("view", "expected"),
    [
        (BARREN, 0.0),
        (item_at(1, 0), 1 / 3),  # 0.5 / (1 + 0.5)
        (item_at(0, -2), 0.2),
        (item_at(-3, 4), 1 / 11),  # at distance 5
        (item_at(5, 5), 0.5 / (50**0.5 + 0.5)),
        (item_at(0, -2, view=item_at(-3, 4)), 0.2),  # the nearest counts
        (item_at(1, 0, POISON), 0.0),
        (item_at(1, 0, POISON, view=item_at(0, -2)), 0.2),
    ],
)
def test_potential_by_hand(view, expected):
    assert modes.potential(view) == pytest.approx(expected)


def test_shaping_by_hand(rows):
    far, near = item_at(-3, 4), item_at(0, -2)  # potentials 1/11 and 1/5
    found = {name: reward(row, event(), far, near, discount=0.9) for name, row in rows.items()}
    assert found["ground_truth_handhold"] == pytest.approx(-0.1 + 0.9 / 5 - 1 / 11, abs=1e-6)
    assert found["ground_truth"] == pytest.approx(-0.1)
    assert found["proxy"] == 0
    # The dead have no potential: the view after a death is that of a rebirth elsewhere.
    handhold = rows["ground_truth_handhold"]
    assert reward(handhold, event(died=True), far, near) == pytest.approx(-0.1 - 2 - 1 / 11)


def test_shaping_adds_up_to_its_ends(rows):
    """Discounted and summed along a life, shaping leaves only minus the first potential."""
    draw = np.random.default_rng(0)
    views = jnp.asarray(draw.choice(3, (20, 11, 11), p=[0.97, 0.02, 0.01]), jnp.uint8)
    discount, mode = 0.9, rows["ground_truth_handhold"]
    mode = mode.replace(reward=mode.reward.replace(step=jnp.float32(0)))
    total = sum(
        discount**t * reward(mode, event(died=t == 18), views[t], views[t + 1], discount)
        for t in range(19)
    )
    assert total == pytest.approx(-2 * discount**18 - float(modes.potential(views[0])), abs=1e-5)


def test_reward_is_limited():
    mode = modes.make_mode((1, 0), (0, 1), 100.0, -19.0, death_reward=-5.0)
    assert reward(mode, event(FOOD)) == 20
    assert reward(mode, event(POISON)) == -19
    assert reward(mode, event(POISON, died=True)) == -20


@pytest.fixture(scope="module")
def seen() -> np.ndarray:
    """VIEW as a noisy ground truth sees it through 4,000 noise words. float32[4000, 3, 3, 2]."""
    noisy = modes.make_mode((1, 0), (0, 1), 1.0, -2.0, noise=0.3)
    words = jax.random.bits(jax.random.key(0), (4_000,), jnp.uint32)
    return np.asarray(jax.vmap(modes.observe, (None, None, 0))(noisy, VIEW, words))


def test_noise_blurs_items_and_nothing_else(seen):
    clear = np.asarray(modes.observe(modes.make_mode((1, 0), (0, 1), 1.0, -2.0), VIEW, NOISE_WORD))
    noise = seen - clear
    items = np.asarray(VIEW) != EMPTY
    assert np.all(noise[:, ~items] == 0)
    # Mean and standard deviation of each item, within five standard errors.
    np.testing.assert_allclose(noise[:, items].mean(0), 0, atol=5 * 0.3 / 4_000**0.5)
    np.testing.assert_allclose(noise[:, items].std(0), 0.3, atol=5 * 0.3 / 8_000**0.5)
    # A draw for each item and channel, none like another.
    every = noise[:, items].reshape(4_000, -1).T
    assert np.abs(np.corrcoef(every) - np.eye(len(every))).max() < 5 / 4_000**0.5


def test_two_channels_are_no_way_round_the_noise(seen):
    """What tells food from poison best, the difference of both channels, is blurred too."""
    difference = seen[..., 0] - seen[..., 1]
    food = difference[:, np.asarray(VIEW) == FOOD].ravel()
    assert food.mean() == pytest.approx(1, abs=0.02)
    assert food.std() == pytest.approx(0.3 * 2**0.5, rel=0.03)


def test_the_same_noise_word_sees_the_same():
    noisy = modes.make_mode((0.5, 0.5), (1, 1), 1.0, -2.0, noise=0.3)
    words = jax.random.bits(jax.random.key(1), (200,), jnp.uint32)
    again = [jax.vmap(modes.observe, (None, None, 0))(noisy, VIEW, words) for _ in range(2)]
    np.testing.assert_array_equal(*again)
    assert len(np.unique(np.asarray(again[0])[:, 0, 1, 0])) > 195
    last = modes.observe(noisy, VIEW, jnp.uint32(2**32 - 1))  # the greatest word is one too
    assert np.all(np.isfinite(last))


def test_without_noise_none_is_drawn():
    clear = modes.make_mode((0.5, 0.5), (1, 1), 1.0, -2.0)
    program = jax.make_jaxpr(modes.observe)(clear, VIEW, NOISE_WORD).jaxpr
    word = program.invars[-1]
    assert word.aval.dtype == jnp.uint32
    assert not any(word is read for equation in program.eqns for read in equation.invars)
    # No noise is not noise of 0: that draws, and sees the same.
    still = modes.make_mode((0.5, 0.5), (1, 1), 1.0, -2.0, noise=0.0)
    np.testing.assert_array_equal(
        modes.observe(clear, VIEW, jnp.uint32(1)), modes.observe(still, VIEW, jnp.uint32(2))
    )


def test_stack_keeps_each_row(rows):
    table = modes.stack(list(rows.values()))
    assert table.appearance.shape == (6, 3, 2)
    assert table.noise is None
    for i, row in enumerate(rows.values()):
        jax.tree.map(np.testing.assert_array_equal, jax.tree.map(lambda x, i=i: x[i], table), row)
    seen = jax.vmap(modes.observe, (0, None, None))(table, VIEW, NOISE_WORD)
    for one, row in zip(seen, rows.values(), strict=True):
        np.testing.assert_array_equal(one, modes.observe(row, VIEW, NOISE_WORD))


def test_stack_gives_all_noise_where_one_has_it(rows):
    noisy = rows["proxy"].replace(noise=jnp.float32(0.2))
    table = modes.stack([rows["ground_truth"], noisy])
    np.testing.assert_array_equal(table.noise, np.float32([0, 0.2]))
    word = jnp.uint32(12345)
    clear, blurred = jax.vmap(modes.observe, (0, None, None))(table, VIEW, word)
    np.testing.assert_array_equal(clear, modes.observe(rows["ground_truth"], VIEW, word))
    np.testing.assert_array_equal(blurred, modes.observe(noisy, VIEW, word))
