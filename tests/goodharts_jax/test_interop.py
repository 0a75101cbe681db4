"""Our world in gymnax's and Gymnasium's forms, and policies from outside in our judge."""

import warnings
from dataclasses import replace
from types import SimpleNamespace

import gymnasium
import jax
import jax.numpy as jnp
import matplotlib
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from rich.console import Console

import goodharts_jax as gj
from goodharts_jax import modes, named, study
from goodharts_jax.interop import as_policy, environment, frames
from goodharts_jax.interop import policies as outside
from goodharts_jax.interop.gym import GoodhartVectorEnv
from goodharts_jax.replay import Replay
from goodharts_jax.results import Results
from goodharts_jax.settings import read

ID = "goodharts_jax/Goodhart-v0"
# A view of 3 x 3 in a full world: what a linear policy learns in a second.
FULL = ("world.size=16", "world.view_radius=1", "world.food=[60,60]", "world.poison=[60,60]")
SMOKE = ("budget=smoke", "evaluation.survival_horizon=64")


@pytest.fixture(scope="module")
def full():
    return named.world("protocol", *FULL)


@pytest.fixture(scope="module")
def truth():
    return gj.mode("ground_truth")


@jax.jit
def walk(params, key):
    """A random walk, stepped in both forms: what each returned."""
    six, five = environment.Environment(), environment.FiveValues()
    reset_key, walk_key = jax.random.split(key)
    _, start = six.reset(reset_key, params)

    def step(state, i):
        key, action_key = jax.random.split(jax.random.fold_in(walk_key, i))
        action = jax.random.randint(action_key, (), 0, 8)
        seen, after, *rest = six.step(key, state, action, params)
        return after, (state, (seen, after, *rest), five.step(key, state, action, params))

    return jax.lax.scan(step, start, jnp.arange(400))[1]


# ---- gymnax's form ------------------------------------------------------------------------------


def test_names_are_those_of_the_command_line():
    settings = read(named.experiment("mode=proxy").model_dump())
    rows = {"proxy": gj.mode("proxy"), "slow": gj.mode("proxy", "interestingness.poison=0.25")}
    jax.tree.map(np.testing.assert_array_equal, rows["proxy"], settings.rows()["proxy"])
    assert rows["slow"].reward.item.tolist() == [0, 0.5, 0.25]
    # The truth pays what a step costs, which is the world's affair.
    charged = [gj.mode("ground_truth", f"world={w}").reward.step for w in ("protocol", "reference")]
    np.testing.assert_allclose(charged, [-0.1, -0.01], rtol=1e-6)
    elsewhere = gj.experiment("evaluation.world=reference")
    assert (elsewhere.world.size, elsewhere.evaluation_world.size) == (100, 128)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: gj.mode("prxy"), "mode=prxy: there are .*did you mean proxy"),
        (lambda: gj.mode("all"), "several modes"),
        (lambda: named.world("protocoll"), "did you mean protocol"),
        (lambda: gj.interop.make("proxy", values=7), "values=7"),
        (lambda: gj.interop.make("proxy", max_steps=0), "max_steps=0"),
        (lambda: gj.experiment("world.size=inf"), "world.size"),
    ],
)
def test_what_is_not_there_is_said_in_a_line(call, said):
    with pytest.raises(ValueError, match=said) as error:
        call()
    assert "\n" not in str(error.value)


def test_a_walk_in_both_forms(full, truth):
    params = gj.interop.EnvParams(full, truth, 7)
    before, (seen, after, reward, terminated, truncated, info), five = walk(
        params, jax.random.key(0)
    )
    space = environment.Environment(params).observation_space()
    assert seen.shape[1:] == space.shape == (3, 3, 2) and bool(space.contains(seen))
    # Five values say the same, but not which end it was.
    np.testing.assert_array_equal(five[0], seen)
    np.testing.assert_array_equal(five[2], reward)
    np.testing.assert_array_equal(five[3], terminated | truncated)
    assert "final_observation" not in five[4]
    # The truth in numbers of the protocol, and the mode's reward: -4 for dying, limited to 20.
    food, poison = np.asarray(info["food"]), np.asarray(info["poison"])
    assert food.sum() > 20 and poison.sum() > 20 and terminated.any() and truncated.any()
    np.testing.assert_allclose(info["energy"], food - 2 * poison - 0.1, atol=1e-6)
    np.testing.assert_allclose(reward, food - 2 * poison - 0.1 - 4 * terminated, atol=1e-5)
    # Who dies or is out of time is reborn in the same world: all items stay, one is moved if eaten.
    ended = np.asarray(terminated | truncated)
    cells = [
        np.asarray(jax.vmap(gj.world.cells, (None, 0))(full, s.world)) for s in (before, after)
    ]
    assert all((c == kind).sum((1, 2)).tolist() == [60] * 400 for c in cells for kind in (1, 2))
    moved = (cells[0] != cells[1]).sum((1, 2))
    assert moved[(food + poison) == 0].max() == 0 and moved.max() <= 2
    np.testing.assert_array_equal(after.time[ended], 0)
    np.testing.assert_array_equal(after.world.age[ended], 0)
    np.testing.assert_array_equal(after.world.energy[ended], full.start_energy)
    np.testing.assert_array_equal(after.time[~ended], before.time[~ended] + 1)
    assert not np.any(terminated & truncated) and after.time.max() == 6
    # The last observation is that of the dead, where it stood, not of the newborn.
    final = np.asarray(info["final_observation"])
    np.testing.assert_array_equal(final[~ended], seen[~ended])
    assert np.any(final[ended] != np.asarray(seen)[ended], axis=(1, 2, 3)).mean() > 0.9
    standing = jax.vmap(lambda s: gj.world.view(full, s))(before.world)
    assert not np.any(np.asarray(standing)[:, 1, 1])


def test_parameters_sweep_under_vmap(full, truth):
    rows = [truth, gj.mode("proxy")]
    swept = gj.interop.EnvParams(full, modes.stack(rows), jnp.array([7, 1]), 0.97)
    axes = gj.interop.EnvParams(None, 0, 0, None)
    env, _ = gj.interop.make(truth, full)
    _, state = env.reset(jax.random.key(0), gj.interop.EnvParams(full, truth))
    eastwards = jnp.int32(6)
    both = jax.vmap(env.step, (None, None, None, axes))(jax.random.key(1), state, eastwards, swept)
    _, _, reward, terminated, truncated, info = both
    food, poison = info["food"], info["poison"]
    assert food[0] == food[1] and poison[0] == poison[1]
    np.testing.assert_allclose(reward[0], (food - 2 * poison - 0.1 - 4 * terminated)[0], rtol=1e-5)
    np.testing.assert_allclose(reward[1], (0.5 * food + poison)[1], rtol=1e-6)
    assert truncated.tolist() == [False, True]


def test_bounds_hold_with_noise():
    noisy = replace(gj.mode("ground_truth"), noise=jnp.float32(0.5))
    low, high = modes.bounds(noisy)
    view = jnp.full((11, 11), gj.FOOD, jnp.uint8)
    words = jax.random.bits(jax.random.key(0), (500,))
    seen = jax.vmap(modes.observe, (None, None, 0))(noisy, view, words)
    assert low <= seen.min() < -1 and 2 < seen.max() <= high < 4


# ---- Gymnasium's form ---------------------------------------------------------------------------


@pytest.fixture
def strict(monkeypatch):
    matplotlib.use("Agg")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def test_gymnasium_has_nothing_to_complain_of(full, strict):
    env = gymnasium.make(ID, mode="proxy", world=full, render_mode="rgb_array")
    check_env(env.unwrapped)


def test_an_episode_in_gymnasium(full, strict):
    env = gymnasium.make(ID, mode="proxy", world=full, render_mode="rgb_array", max_episode_steps=9)
    first, _ = env.reset(seed=3)
    grid = env.render()
    assert grid.shape == (80, 80, 3) and grid.dtype == np.uint8
    told, ends = [], []
    for action in [6] * 9:
        _, reward, terminated, truncated, info = env.step(action)
        assert reward == 0.5 * info["food"] + info["poison"]
        assert info["energy"] == pytest.approx(info["food"] - 2 * info["poison"] - 0.1, abs=1e-9)
        told.append(info)
        ends.append((terminated, truncated))
    assert ends == [(False, False)] * 8 + [(False, True)]
    assert set(map(tuple, map(dict.keys, told))) == {("energy", "food", "poison")}
    # A new life in the same world, until another is asked for.
    world = env.unwrapped._state.world
    env.reset()
    np.testing.assert_array_equal(env.unwrapped._state.world.grid, world.grid)
    env.reset(options={"new_world": True})
    assert np.any(np.asarray(env.unwrapped._state.world.grid) != world.grid)
    again, _ = env.reset(seed=3)
    np.testing.assert_array_equal(first, again)
    np.testing.assert_array_equal(grid, env.render())


def test_a_frame_shows_who_stands_where():
    cells = np.zeros((8, 8), np.uint8)
    cells[0, 1], cells[5, 5] = gj.FOOD, gj.POISON
    image = frames.frame(cells, np.array([0, 0]), radius=1)[:: frames.PIXELS, :: frames.PIXELS]
    assert image.shape == (8, 8, 3)
    colours = {tuple(image[at]) for at in [(0, 0), (0, 1), (5, 5), (7, 7), (4, 4)]}
    assert len(colours) == 5
    # The view goes round the edge.
    light = np.argwhere((image == image[7, 7]).all(-1))
    assert {tuple(at) for at in light.tolist()} == {
        (y, x) for y in (7, 0, 1) for x in (7, 0, 1)
    } - {(0, 0), (0, 1)}


def test_a_window_shows_the_frame(full, strict):
    env = gymnasium.make(ID, mode="proxy", world=full, render_mode="human").unwrapped
    env.reset(seed=0)
    for action in (0, 3):
        env.step(action)
        np.testing.assert_array_equal(env._window.picture.get_array(), env._frame())
    assert env.render() is None
    env.close()
    env.close()


def test_many_worlds_are_one_jitted_step(full, strict):
    envs = gymnasium.make_vec(
        ID, num_envs=32, mode="ground_truth", world=full, max_episode_steps=15
    )
    assert isinstance(envs, GoodhartVectorEnv)
    seen, _ = envs.reset(seed=0)
    assert seen.shape == (32, 3, 3, 2) and seen in envs.observation_space
    draw = np.random.default_rng(0)
    ends = np.zeros(2, int)
    for _ in range(40):
        seen, reward, terminated, truncated, info = envs.step(draw.integers(8, size=32))
        ended = terminated | truncated
        ends += terminated.sum(), truncated.sum()
        true = info["food"] - 2 * info["poison"] - 0.1
        np.testing.assert_allclose(info["energy"], true, atol=1e-9)
        np.testing.assert_allclose(reward, true - 4 * terminated, atol=1e-5)
        if ended.any():
            np.testing.assert_array_equal(info["_final_obs"], ended)
            np.testing.assert_array_equal([x is not None for x in info["final_obs"]], ended)
            np.testing.assert_array_equal(info["final_info"]["_food"], ended)
    assert ends.min() > 0
    again = envs.reset(seed=0)[0], envs.reset(seed=0)[0]
    np.testing.assert_array_equal(*again)


# ---- policies from outside ----------------------------------------------------------------------


def learn(params, key, num_worlds=64, length=32, updates=60):
    """REINFORCE with a linear policy for the reward at hand, in gymnax's form: one jitted loop."""
    env = environment.FiveValues(params)
    keys = jax.random.split(key, num_worlds)
    seen, states = jax.vmap(env.reset, (0, None))(keys, params)
    weights = jnp.zeros((8, seen[0].size))

    def update(carry, key):
        def act(carry, key):
            seen, states = carry
            keys = jax.random.split(key, num_worlds)
            x = seen.reshape(num_worlds, -1)
            action = jax.random.categorical(key, x @ weights.T)
            seen, states, reward, _, _ = jax.vmap(env.step, (0, 0, 0, None))(
                keys, states, action, params
            )
            return (seen, states), (x, action, reward)

        weights, *worlds = carry
        worlds, (x, action, reward) = jax.lax.scan(
            act, tuple(worlds), jax.random.split(key, length)
        )

        def loss(weights):
            log_probs = jax.nn.log_softmax(x @ weights.T)
            chosen = jnp.take_along_axis(log_probs, action[..., None], -1)[..., 0]
            return -jnp.mean(chosen * (reward - reward.mean()))

        return (weights - 3.0 * jax.grad(loss)(weights), *worlds), reward.mean()

    carry = (weights, seen, states)
    (weights, *_), rewards = jax.lax.scan(update, carry, jax.random.split(key, updates))
    return weights, rewards


def policy_of(weights):
    return lambda seen, key: jax.random.categorical(key, weights @ seen.reshape(-1))


@pytest.fixture(scope="module")
def learnt(full, truth):
    """Weights, and the mean reward of each update."""
    return jax.jit(learn)(gj.interop.EnvParams(full, truth), jax.random.key(0))


@pytest.fixture(scope="module")
def judged(learnt, truth, tmp_path_factory):
    """A folder with two runs of what was learnt, beside scripts."""
    folder = tmp_path_factory.mktemp("judged")
    both = [policy_of(learnt[0]), policy_of(learnt[0])]
    gj.judge(both, *SMOKE, *FULL, mode=truth, name="mine", folder=folder)
    return folder


def test_a_loop_of_ones_own_learns_and_comes_back_to_be_judged(learnt, judged):
    _, rewards = learnt
    assert rewards[-5:].mean() > rewards[:5].mean() + 0.5
    # The judge says so, too, beside what hasn't learnt.
    rows = Results.load(judged).modes
    mine, chance = rows["mine"].intervals, rows["random_walk"].intervals
    assert mine.energy_per_1k_steps.value > chance.energy_per_1k_steps.value + 300
    assert mine.overall_efficiency.value > 0.9
    assert mine.survival_restricted_mean.low > chance.survival_restricted_mean.high
    # A policy a run; as many worlds as a trained policy gets.
    assert [run.seed for run in rows["mine"].runs] == [42, 43]
    assert {run.total_steps for run in rows["mine"].runs} == {4096}
    assert "mine" in (judged / "report.html").read_text("utf-8")
    replay = Replay.model_validate_json((judged / "replay.json").read_text("utf-8"))
    assert set(replay.modes) == {"mine", "random_walk", "omniscient_seeker"}


def test_what_cannot_be_judged_is_refused_at_once(judged, truth):
    act = policy_of(jnp.zeros((8, 18)))
    for call, said in (
        (lambda: gj.judge(act, mode=truth, name="mine", beside=judged), "name=mine"),
        (lambda: gj.judge(act, *SMOKE, mode=truth, name="avoider"), "name=avoider"),
        (lambda: gj.judge(act, *SMOKE, mode=truth, beside=judged), "budget=smoke: beside="),
        (lambda: gj.judge([], *SMOKE), "at least one"),
        (lambda: gj.judge(act, "budget=smok"), "did you mean smoke"),
    ):
        with pytest.raises(ValueError, match=said):
            call()


@pytest.mark.full
def test_a_policy_stands_beside_an_experiments_own(judged, truth, tmp_path):
    """Given nothing learnt, the judge finds a random walk, and it keeps the rows that it found."""
    untrained = policy_of(jnp.zeros((8, 18)))
    folder = tmp_path / "second"
    gj.judge(untrained, mode=truth, name="untrained", beside=judged, folder=folder)
    first, second = Results.load(judged), Results.load(folder)
    assert second.modes["mine"] == first.modes["mine"]
    assert second.manifest.joined == (str(judged), "untrained")
    control, chance = (second.modes[name].intervals for name in ("untrained", "random_walk"))
    assert abs(control.overall_efficiency.value - 0.5) < 0.05
    assert abs(control.deaths_per_1k_steps.value / chance.deaths_per_1k_steps.value - 1) < 0.2
    assert [run.seed for run in second.modes["untrained"].runs] == [42, 43, 44]
    replay = Replay.model_validate_json((folder / "replay.json").read_text("utf-8"))
    assert set(replay.modes) == {"mine", "untrained", "random_walk", "omniscient_seeker"}


VIEW = jnp.zeros((3, 3), jnp.uint8).at[0, 1].set(gj.FOOD)
WORD = jnp.uint32(7)


def test_an_action_becomes_a_certainty_and_logits_stay():
    sure = as_policy(lambda view, key: jnp.argmax(view))(VIEW, WORD)
    np.testing.assert_array_equal(np.argsort(-sure.logits)[0], 1)
    np.testing.assert_allclose(jax.nn.softmax(sure.logits), np.eye(8)[1])
    assert np.isnan(sure.value)
    logits = jnp.arange(8.0)
    np.testing.assert_array_equal(as_policy(lambda v, k: logits)(VIEW, WORD).logits, logits)
    # Keys differ with the word, and are whole keys.
    drawn = [as_policy(lambda v, k: jax.random.normal(k, (8,)))(VIEW, w) for w in (WORD, WORD + 1)]
    assert np.all(drawn[0].logits != drawn[1].logits)


@pytest.mark.parametrize(
    ("given", "mode", "said"),
    [
        (lambda v, k: jnp.zeros(3), None, r"not with float32\[3\]"),
        (lambda v, k: jnp.zeros(()), None, r"not with float32\[\]"),
    ],
)
def test_an_answer_of_another_shape_is_refused(given, mode, said):
    with pytest.raises(ValueError, match=said):
        as_policy(given, mode)(VIEW, WORD)


def test_what_is_no_policy_is_refused(truth):
    with pytest.raises(ValueError, match="is no policy"):
        as_policy("mine:policy")
    network = gj.ActorCritic(hidden=(4,))
    with pytest.raises(ValueError, match="needs the mode"):
        as_policy((network, {}))
    for place in ("nowhere:act", "math:nothing", "jax:devices", "math:pi"):
        with pytest.raises(ValueError, match=f"policy={place}: ") as error:
            outside.load(place, 3)
        assert "\n" not in str(error.value)


def test_a_list_of_policies_is_a_run_each(tmp_path, monkeypatch):
    """Each in the worlds of its own seed; one alone is in those of all."""
    (tmp_path / "three.py").write_text(
        "still = lambda view, key: view[0, 0] * 0\nseveral = [still] * 3\nnone = []\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ValueError, match=r"policy=three:none: .*at least one policy is needed"):
        outside.load("three:none", 3)
    monkeypatch.setattr(
        study.evaluation,
        "evaluate",
        lambda _, rows, **more: {name: [f"{name} {s}" for s in rows[name].seeds] for name in rows},
    )
    aside = SimpleNamespace(
        evaluator=SimpleNamespace(result=lambda: SimpleNamespace(total_steps=1))
    )
    monkeypatch.setattr(study, "_own_params", lambda *_: None)
    for name, runs in (("several", 3), ("still", 2)):
        settings = named.experiment("seed=7", "runs=2", f"policy=three:{name}")
        world = settings.evaluation_world.build()
        own = study.Study(settings, tmp_path, world, Console(quiet=True))
        found = study._evaluate(own, None, aside)
        assert found["random_walk"] == ["random_walk 7", "random_walk 8"]
        assert [table.split()[-1] for table in found[name]] == [str(7 + run) for run in range(runs)]
        assert own.seeds(name) == [7 + run for run in range(runs)]
        assert found.keys() == {*own.rows, *own.scripts}


def test_a_flax_module_acts_as_it_does_here(truth):
    network = gj.ActorCritic(hidden=(4,))
    params = network.init(jax.random.key(0), jnp.zeros((3, 3, 2)))
    ours = gj.policy(network, params, truth)(VIEW, WORD)
    theirs = as_policy((network, params), truth)(VIEW, WORD)
    np.testing.assert_array_equal(ours.logits, theirs.logits)


class Linear(SimpleNamespace):
    """Two layers as torch has them, by the names that are read."""

    def __init__(self, weight, bias):
        def tensor(values):
            cpu = SimpleNamespace(numpy=lambda: np.array(values, np.float32))
            return SimpleNamespace(detach=lambda: SimpleNamespace(cpu=lambda: cpu))

        super().__init__(weight=tensor(weight), bias=tensor(bias))


class Sequential(list):
    """Of layers."""


class ReLU:
    """A layer without numbers."""


class Softplus:
    """One that isn't known."""


class FlattenExtractor:
    """What an MlpPolicy extracts its features with."""


def model(kind, *layers):
    """A model as Stable-Baselines3 has it, on-policy or value-based."""
    last = Linear(np.eye(8), np.arange(8.0))
    if kind == "q_net":
        net = Sequential([*layers, last])
        policy = SimpleNamespace(
            q_net=SimpleNamespace(q_net=net, features_extractor=FlattenExtractor())
        )
    else:
        policy = SimpleNamespace(
            mlp_extractor=SimpleNamespace(policy_net=Sequential(layers)),
            action_net=last,
            features_extractor=FlattenExtractor(),
        )
    return SimpleNamespace(policy=policy, predict=None)


def test_the_weights_of_another_library_are_read(truth):
    # Food in the cell above shows in the third number of 18: its channel 0. One unit negates it.
    first = np.zeros((8, 18))
    first[0, 2], first[1, 2] = 5.0, -5.0
    logits = as_policy(model("actor", Linear(first, np.ones(8)), ReLU()), truth)(VIEW, WORD).logits
    np.testing.assert_allclose(logits, [6, 1, 3, 4, 5, 6, 7, 8])
    greedy = as_policy(model("q_net", Linear(first, np.ones(8)), ReLU()), truth)(VIEW, WORD).logits
    np.testing.assert_allclose(jax.nn.softmax(greedy), np.eye(8)[7])
    with pytest.raises(ValueError, match="a layer of type Softplus"):
        as_policy(model("actor", Softplus()), truth)
