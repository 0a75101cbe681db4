"""Proxies that are learnt, drawn and planted: what must collapse does, what can't doesn't, and what
is told of it is right by hand."""

import json
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import hydra
import jax
import numpy as np
import pytest
from omegaconf import OmegaConf
from rich.console import Console

import evidence
from goodharts_jax import (
    foretold,
    learnt,
    learnt_study,
    phase,
    ppo,
    preferences,
    proxies,
    relabelling,
    remedies,
    report,
    settings,
)
from goodharts_jax import world as physics
from goodharts_jax.learnt_results import LearntStudy, PressureCurve, StudyRun
from goodharts_jax.preferences import SCALE
from goodharts_jax.results import Manifest, Results
from goodharts_jax.study_settings import LearntSettings, Remedy, RemedySettings
from goodharts_jax.world import make_world

RULES = make_world(16, 2, food=(20, 20), poison=(20, 20))
STAGES = {"random": 0, "half": 12, "expert": 24}
PROXIES = {
    "gold": {"item": [1, -2]},
    "opposite": {"item": [-2, 1]},
    "drawn": {"correlation": 0.7, "draws": 2},
    "learnt": {"pairs": 2000, "watched": "mixed"},
    "noise": {"pairs": 2000, "watched": "mixed", "label_noise": 0.5},
    "few": {"pairs": 10, "watched": "mixed"},
    "narrow": {"pairs": 2000, "watched": "mixed", "width": 2},
}


@pytest.fixture(scope="module")
def ground(tmp_path_factory):
    """A small world in which a policy learns within a second what food is worth."""
    with hydra.initialize_config_module("conf.goodhart", version_base="1.3"):
        usual = OmegaConf.to_container(hydra.compose("config"), resolve=True)
    plain = usual | {
        "world": usual["world"]
        | {"size": 24, "view_radius": 2, "food": [40, 40], "poison": [40, 40]},
        "network": {"features": [], "hidden": [16]},
        "ppo": usual["ppo"] | {"num_worlds": 32, "rollout_length": 32, "episode_length": 64},
        "budget": usual["budget"]
        | {
            "train_steps": 32 * 32 * 24,
            "evaluation_worlds": 128,
            "steps_per_world": 64,
            "reward_model_steps": 150,
        },
        "study": {
            "kind": "learnt_proxy",
            "proxies": PROXIES,
            "food": [1, 0],
            "poison": [0, 1],
            "stages": STAGES,
        },
    }
    experiment = settings.read(plain)
    folder = tmp_path_factory.mktemp("learnt")
    return proxies.Ground(experiment, experiment.world.build(), [7, 8], folder, Console(quiet=True))


def test_segments_held_out_are_of_other_worlds_at_all_times():
    """By hand: each step of a pool of 4 segments a world is told by its world and its time."""
    worlds, slots, steps = preferences.WORLDS, 4, preferences.SEGMENT
    world, time = np.divmod(np.arange(worlds * slots * steps), slots * steps)
    told = (np.stack([world, time], -1)).reshape(1, worlds * slots, steps, 2)
    pool = preferences.Pool(told, told[..., 0], told[..., 0], told[..., 0])
    measured = np.asarray(proxies._measured(pool).view)
    assert measured.shape == (1, preferences.HELD_OUT * slots, steps, 2)
    assert len(np.unique(measured[0, :, 0], axis=0)) == measured.shape[1]
    assert measured[..., 0].max() < preferences.HELD_OUT
    # A test that compares neighbours compares worlds, as labels do.
    assert (measured[0, :-1, 0, 0] != measured[0, 1:, 0, 0]).all()
    assert {*measured[0, :, 0, 1]} == {0, steps, 2 * steps, 3 * steps}
    # Steps of all worlds, no older than is asked, and at other times from world to world.
    reference = np.asarray(proxies._reference(pool, oldest=48).view)[0]
    assert {*reference[:, 0]} == {*range(worlds)} and reference[:, 1].max() < 48
    assert [len({*reference[reference[:, 0] == w, 1]}) for w in (0, 7)] == [16, 16]
    assert {*reference[:, 1]} == {*range(48)}


def test_segments_of_a_world_lie_beside_each_other(ground):
    """Each world's first segment begins as that world is made."""
    network, key, steps = ground.settings.plan.network, jax.random.key(3), 32
    params = ppo.start(ground.settings.plan, ground.world, key).params
    alone = jax.tree.map(lambda x: x[None], params)
    pool = preferences.watch_policies(network, ground.world, ground.senses, alone, key, steps)
    reset_key, _ = jax.random.split(jax.random.split(key, 1)[0])
    keys = jax.random.split(reset_key, preferences.WORLDS)
    made = jax.vmap(lambda key: physics.view(ground.world, physics.reset(ground.world, key)))(keys)
    np.testing.assert_array_equal(pool.view[0, :: steps // preferences.SEGMENT, 0], made)


def test_a_placebo_is_watched_in_the_worlds_of_the_run_it_stands_beside(ground):
    policies = {"half": {"w": np.zeros((2, 1))}}
    ready = SimpleNamespace(reward={"item": np.zeros((1, 3))})
    jobs = [learnt.Job("gold", 7), learnt.Job("gold", 7, reseed=1), learnt.Job("gold", 8)]
    *_, keys, watch_keys = learnt._begun(ground, policies, {7: ready, 8: ready}, jobs)
    data, watched = jax.random.key_data(keys), jax.random.key_data(watch_keys)
    assert len(np.unique(data, axis=0)) == 3
    assert (watched[0] == watched[1]).all() and (watched[0] != watched[2]).any()


def test_another_world_is_judged_in_where_the_budget_has_one(ground):
    assert ground.elsewhere is None
    kept = ground.settings.model_dump()
    away = kept | {"evaluation_world": kept["world"] | {"size": 32}}
    there = replace(ground, settings=settings.read(away)).elsewhere
    assert (there.world.size, there.seeds, there.folder.name) == (32, [7], "elsewhere")
    away["budget"] |= {"other_world": False}
    assert replace(ground, settings=settings.read(away)).elsewhere is None


@pytest.fixture(scope="module")
def trained(ground):
    return learnt_study.train_all(ground)


def of(runs, proxy):
    return [run for run in runs if run.proxy == proxy]


def test_what_must_collapse_does_and_what_cannot_does_not(trained):
    """Paid for poison a policy ends below its start, paid the truth above it."""
    runs, _ = trained
    assert all(run.collapsed for run in of(runs, "opposite"))
    assert not any(run.collapsed for run in of(runs, "gold"))
    for run in of(runs, "gold"):
        assert run.correlation == pytest.approx(1)
        assert run.curve.gold[-1] > run.curve.gold[0] + 20
        assert run.curve.proxy[-1] - run.curve.gold[-1] == pytest.approx(
            100, abs=1
        )  # a step's cost


def test_curves_begin_with_the_policy_that_training_begins_with(trained):
    runs, _ = trained
    for run in runs:
        assert run.curve.step[0] == 0 and run.curve.kl[0] == pytest.approx(0, abs=1e-6)
        assert run.curve.gold[0] == of(runs, "gold")[run.seed - 7].curve.gold[0]
        assert len(run.curve.gold) == len(run.curve.step) == len(run.curve.proxy)


def test_a_drawn_proxy_has_its_correlation_exactly(trained, ground):
    runs, prepared = trained
    start = list(STAGES).index("half")
    for name in ("drawn_1", "drawn_2"):
        for run in of(runs, name):
            assert run.correlation == pytest.approx(0.7, abs=1e-4)
            ready = prepared[run.seed]
            said = ready.said[list(ground.study.drawn).index(name), start]
            assert said.std() == pytest.approx(SCALE, rel=1e-3)
    one, two = (prepared[7].said[list(ground.study.drawn).index(f"drawn_{i}")] for i in (1, 2))
    assert np.corrcoef(one.ravel(), two.ravel())[0, 1] < 0.95


def test_labels_teach_and_coin_flips_do_not(trained):
    runs, _ = trained
    accuracy = {
        name: np.mean([run.accuracy for run in of(runs, name)])
        for name in ("learnt", "narrow", "few", "noise")
    }
    assert accuracy["learnt"] > accuracy["narrow"] > accuracy["noise"]
    assert accuracy["learnt"] > accuracy["few"] + 0.05
    assert accuracy["noise"] == pytest.approx(0.5, abs=0.15)
    assert all(run.accuracy is None for run in of(runs, "gold"))


def test_masked_units_count_for_nothing(trained, ground):
    names = list(ground.study.drawn)
    model = trained[1][7].reward.model
    assert np.all(model.out[names.index("narrow"), 0, 2:] == 0)
    assert np.all(model.out[names.index("learnt"), 0] != 0)


def test_the_best_of_n_by_hand():
    draw = np.random.default_rng(0)
    said, gold = draw.normal(size=(2, 500))
    found = learnt_study.best_of(said, gold)
    assert found.gold[0] == pytest.approx(1000 / 16 * gold.mean())
    drawn = draw.integers(0, 500, (40_000, 4))
    best = drawn[np.arange(40_000), said[drawn].argmax(1)]
    assert found.gold[2] == pytest.approx(1000 / 16 * gold[best].mean(), abs=1.5)
    assert found.kl[0] == 0 and found.kl[2] == pytest.approx(np.log(4) - 0.75)


def test_an_interrupted_study_ends_as_if_it_had_not_been(trained, ground, tmp_path):
    """Checkpoints hold the runs; the proxies are made again, alike."""
    again, _ = learnt_study.train_all(replace(ground, console=Console(quiet=True)))
    assert again == trained[0]


def test_labels_given_anew_mend_what_the_first_ones_ruined(ground, tmp_path):
    """Rewarded for poison a policy unlearns to eat; asked again, people say what food is worth."""
    fresh = replace(ground, seeds=[7], folder=tmp_path)
    bare = remedies.jobs(fresh, {"again": Remedy(strengths=[RemedySettings(relabel=2000)])})
    jobs = [job for job in bare if job.proxy == "opposite"]
    runs, prepared = learnt_study.train_all(fresh, jobs)
    ruined, mended = runs
    assert ruined.remedy is None and mended.remedy == "again"
    quarter = ruined.curve.step.index(ruined.curve.step[-1] // 4)
    assert mended.curve.gold[: quarter + 1] == ruined.curve.gold[: quarter + 1]
    # Of twelve seeds, tried with two streams of chance, all rise again and end 29 to 61 above.
    assert ruined.collapsed and mended.curve.gold[-1] > mended.curve.gold[quarter]
    assert mended.curve.gold[-1] > ruined.curve.gold[-1] + 20
    # Killed after a checkpoint it ends the same, for the models are kept; without them it does not.
    policies = learnt.stages(fresh)
    again = partial(learnt.train, fresh, policies, prepared, jobs, tmp_path)
    trained = again()
    assert [
        learnt_study.told(fresh, job, prepared[7], trained, i) for i, job in enumerate(jobs)
    ] == [*runs]
    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert len({(line["mode"], line["steps"]) for line in lines}) == len(lines) > 0
    (tmp_path / "relabelled_2.npz").write_bytes(b"PK")
    with pytest.raises(ValueError, match=r"relabelled_2.npz: .*start afresh"):
        again()
    (tmp_path / "relabelled_2.npz").unlink()
    with pytest.raises(ValueError, match=r"relabelled_2.npz is missing"):
        again()


def test_labels_given_anew_are_of_both_policies(ground):
    watched = [relabelling._labels(ground, list(STAGES), name, 100) for name in ("few", "opposite")]
    assert int(watched[0].pairs) == 110 and int(watched[1].pairs) == 100
    mixed = 10 / 110 / len(STAGES)
    assert np.allclose(watched[0].watched, [mixed] * len(STAGES) + [100 / 110])
    assert np.allclose(watched[1].watched, [0] * len(STAGES) + [1])


# ---- what is told of runs -----------------------------------------------------------------------


def run(proxy, seed, gold, remedy=None, strength=0, held_out=(0, 0, 0), senses=None, **scores):
    steps = tuple(range(len(gold)))
    curve = PressureCurve(
        step=steps, gold=gold, proxy=steps, held_out=held_out[: len(gold)], kl=steps
    )
    return StudyRun(
        proxy=proxy,
        seed=seed,
        remedy=remedy,
        strength=strength,
        settings={} if senses is None else {"senses": senses},
        accuracy=None,
        correlation=None,
        curve=curve,
        best_of=None,
        collapsed=gold[-1] < gold[0],
        scores=scores,
    )


@pytest.fixture
def compared():
    """Two proxies that fall from a start of 0 to -100 where the truth ends at 100, and a third
    without a gap."""
    runs = []
    for seed in (1, 2, 3):
        runs += [run("gold", seed, (0, 50, 100 + seed)), run("fine", seed, (0, 50, 99 + seed))]
        for proxy, peak in (("a", (0, 20, -100)), ("b", (0, 60, -100))):
            runs.append(run(proxy, seed, peak, held_out=(0, 1, 0)))
            for strength, end in ((0, -100 if proxy == "a" else 100), (1, 0)):
                runs.append(run(proxy, seed, (0, 0, end), "mine", strength))
            runs.append(run(proxy, seed, (0, 0, -100 + (-1) ** seed * seed), "placebo"))
    return remedies.table(runs)


def test_what_a_remedy_restores_by_hand(compared):
    rows = {row.name: row for row in compared.rows}
    assert compared.proxies == ("a", "b") and compared.left_out == ("fine",)
    # The gap is from -100 to 102.
    assert rows["not_training"].chosen.value == pytest.approx(100 / 202)
    # a: strength 0 restores nothing, 1 100 of 202; b: 200 or 100 of 202.
    assert rows["mine"].best.value == pytest.approx((100 + 200) / 2 / 202)
    assert rows["mine"].strengths == {"a": 0, "b": 1}
    assert rows["mine"].chosen.value == pytest.approx((0 + 100) / 2 / 202)
    assert rows["early_stopping"].best.value == pytest.approx((120 + 160) / 2 / 202)
    assert rows["early_stopping_by_held_out"].chosen.value == pytest.approx((120 + 160) / 2 / 202)
    assert rows["early_stopping_by_other_runs"].chosen.value == rows["early_stopping"].best.value


def test_a_run_stops_where_the_others_peak_and_not_where_it_does_itself():
    runs = []
    for seed, fallen in ((1, (0, 50, 10, -100)), (2, (0, 10, 50, -100))):
        runs += [run("gold", seed, (0, 100, 100, 100)), run("a", seed, fallen, held_out=(0,) * 4)]
    rows = {row.name: row for row in remedies.table(runs).rows}
    # The gap is from -100 to 100; at the other's peak each stands at 10.
    assert rows["early_stopping_by_other_runs"].best.value == pytest.approx(110 / 200)


def test_a_gap_is_to_the_truth_as_perceived_by_the_same_senses():
    """The same fall from 0 to -100: half of it is restored where the truth ends at 100, and the
    whole where who sees as badly ends at 0 on the truth."""
    runs = []
    for seed in (1, 2, 3):
        runs += [run("gold", seed, (0, 100)), run("clear", seed, (0, -100))]
        runs += [run("gold_near", seed, (0, 0), senses="near")]
        runs += [run("far", seed, (0, -100), senses="near")]
        runs += [run("clear", seed, (0, 0), "mine")]
        runs += [run("far", seed, (0, 0), "mine", senses="near")]
    found = remedies.table(runs)
    assert found.proxies == ("clear", "far")
    mine = next(row for row in found.rows if row.name == "mine")
    assert {name: row.value for name, row in mine.by_proxy.items()} == {"clear": 0.5, "far": 1}


def test_each_of_the_senses_has_proxies_policies_and_a_folder_of_its_own(ground):
    drawn = {"gold": {"item": [1, -2]}, "gold_near": {"item": [1, -2], "senses": "near"}}
    near = {"near": {"distance": 0.5, "noise": 0.25}}
    study = ground.study.model_dump() | {"proxies": drawn, "senses": near, "kind": "remedies"}
    own = ground.settings.model_copy(update={"study": LearntSettings(**study)})
    clear, like = replace(ground, settings=own).parts
    assert list(clear.drawn) == ["gold"] and list(like.drawn) == ["gold_near"]
    assert clear.folder == ground.folder and like.folder.parent == ground.folder
    assert clear.senses.noise is None and clear.senses.appearance[1:].tolist() == [[1, 0], [0, 1]]
    cell = phase.cell_mode(1, 0.5, 0.25)
    np.testing.assert_array_equal(like.senses.appearance, cell.appearance)
    assert like.senses.noise == cell.noise and like.senses.reward.item.tolist() == [0, 1, -2]
    with pytest.raises(ValueError, match="gold_near is needed, of the senses of a"):
        LearntSettings(**study | {"proxies": {"a": {"senses": "near"}}})
    with pytest.raises(ValueError, match="none of this name in senses; did you mean near"):
        LearntSettings(**study | {"proxies": {"a": {"senses": "neer"}}})


def test_a_remedy_that_does_nothing_restores_nothing(compared):
    placebo = next(row for row in compared.rows if row.name == "placebo").chosen
    assert placebo.low < 0 < placebo.high


def test_what_is_chosen_here_is_judged_elsewhere(compared):
    """There the gap is from 0 to 100, and what was chosen here, not what is best there, counts."""
    there = []
    for seed in (1, 2):
        there += [run("gold", seed, (0, 50, 100)), run("a", seed, (50, 0, 0), held_out=(0, 1, 0))]
        there += [run("a", seed, (50, 0, 30), "mine", 0), run("a", seed, (50, 0, 0), "placebo")]
        there.append(run("fine", seed, (50, 0, 0)))  # a gap there alone: nothing was chosen for it
    found = remedies.judged_elsewhere(compared, there)
    rows = {row.name: row.elsewhere.value for row in found.rows}
    assert rows["mine"] == pytest.approx(0.3) and rows["placebo"] == 0
    assert rows["not_training"] == pytest.approx(0.5)
    # The look that was best on b was the second.
    assert rows["early_stopping"] == 0
    assert found.elsewhere == tuple(there) and found.elsewhere_on == ("a",)
    wanted = remedies.jobs(
        SimpleNamespace(
            drawn=["gold", "a", "b"],
            perceived=None,
            study=SimpleNamespace(members=1),
            seeds=[1],
            world=RULES,
        ),
        {"mine": Remedy(strengths=[RemedySettings(), RemedySettings(kl=1)])},
        compared,
    )
    chosen = [(job.proxy, job.strength) for job in wanted if job.remedy]
    assert chosen == [("a", 0), ("b", 1)]


def told_of(draw, informed):
    """40 proxies with two runs each, of which a half collapse, and tests of them."""
    runs = []
    for place in range(40):
        fell = place % 4 < 2
        for seed in (1, 2):
            loss = 50 + 10 * draw.random() if fell else -50 + 10 * draw.random()
            scores = {
                "temptation": loss if informed else draw.random(),
                "inaccuracy": draw.random(),
            }
            runs.append(run(f"p{place}", seed, (0, -loss), **scores))
    return runs


@pytest.mark.parametrize(("informed", "verdict"), [(True, "supported"), (False, "falsified")])
def test_the_claim_holds_in_a_world_where_it_must_and_falls_where_it_must(informed, verdict):
    draw = np.random.default_rng(0)
    found = foretold.tell(told_of(draw, informed), told_of(draw, informed))
    assert not set(found.fixed_on) & set(found.judged_on)
    assert len(found.fixed_on) == len(found.judged_on) == 20
    ruling = foretold.judge(found, foretold.load_thesis())
    assert ruling.verdict == verdict, str(ruling)
    if informed:
        assert found.auc["temptation"] == 1 and found.scores["temptation"].right.value == 1
        assert found.scores["temptation"].auc_elsewhere.value == 1


def test_a_forecast_without_collapse_is_no_forecast():
    runs = [run(f"p{i}", 1, (0, 1), temptation=i, inaccuracy=i) for i in range(8)]
    ruling = foretold.judge(foretold.tell(runs, ()), foretold.load_thesis())
    assert ruling.verdict == "inconclusive"


def test_runs_stop_where_the_others_peak():
    """Not where they peak themselves, which one who can't see the truth does not know."""
    curves = np.array([[[0.0, 10, 0], [0, 1, 5]]])
    assert remedies._where_others_peak(curves).tolist() == [[0, 1]]


def test_thresholds_and_fits_are_of_the_proxies_that_are_not_judged():
    """On those that fix them what is said above 0 falls, as far as it says; on the others, above
    20, and the other way round."""
    runs = []
    for place in range(40):
        said, judged = place - 20, place % 2
        fell, lost = said > (20 if judged else 0), -said if judged else said
        end = -abs(lost) - 1 if fell else abs(lost) + 1
        runs.append(run(f"p{place}", 1, (0, end), temptation=said, inaccuracy=0))
    runs[39] = run("p39", 1, (0, -1), temptation=21, inaccuracy=0)
    score = foretold.tell(runs, ()).scores["temptation"]
    assert score.threshold == 1
    # Of twenty judged, the nine above 1 are told to fall, and one does.
    assert score.right.value == pytest.approx(12 / 20)
    assert score.r_squared.value < 0


def test_whole_proxies_are_resampled():
    runs = [run(f"p{i // 3}", i % 3, (0, 1), inaccuracy=i // 3) for i in range(12)]

    def mean(on, at):
        assert np.all(np.bincount(on.proxy[at], minlength=4) % 3 == 0)
        return float(on.said["inaccuracy"][at].mean())

    found = foretold.over_proxies(mean, foretold._ended(runs))
    assert found.value == 1.5 and found.n == 4 and found.high - found.low > 1.5


# ---- from settings to a page --------------------------------------------------------------------


@pytest.fixture(scope="module")
def page(ground, trained, tmp_path_factory):
    """A forecast's folder, of runs that are trained already."""
    folder = tmp_path_factory.mktemp("page")
    scores = foretold.score_all(ground, trained[1])
    runs = tuple(
        run.model_copy(update={"scores": scores[run.proxy, run.seed]}) for run in trained[0]
    )
    found = foretold.tell(runs, runs[:4])
    Results(
        manifest=Manifest.now(ground.settings, [7, 8], survival_horizon=1, wall_seconds={}),
        modes={},
        study=LearntStudy(runs=runs, rows=learnt_study.rows(runs)),
        forecast=found,
        thesis=foretold.judge(found, foretold.load_thesis()),
    ).save(folder)
    report.write(folder)
    return folder


def test_every_test_scores_every_run(page):
    results = evidence.load(page)
    tests = set(results.forecast.scores)
    assert {"hover", "temptation", "inaccuracy", "projected_angle", "occupancy_distance"} < tests
    assert all(set(run.scores) == tests for run in results.study.runs)
    gold, opposite = (of(results.study.runs, name)[0].scores for name in ("gold", "opposite"))
    assert all(gold[test] <= opposite[test] for test in tests - {"hover", "hover_from_start"})
    assert gold["inaccuracy"] == 0 and gold["projected_angle"] == pytest.approx(0, abs=1e-6)


def test_a_page_has_every_table_and_figure(page):
    shown, twin = ((page / f"report.{kind}").read_text("utf-8") for kind in ("html", "md"))
    for text in (shown, twin):
        assert "told before training" in text and "What proxies come to" in text
        assert "drawn_1" not in text and "drawn 1" in text
    for name in ("proxies", "best_of_n", "forecast"):
        assert f"figures/{name}.png" in twin and (page / "figures" / f"{name}.png").exists()


TINY = """# @package _global_
study:
  kind: remedies
  food: [1, 0]
  poison: [0, 1]
  stages: {random: 0, half: 2}
  members: 2
  proxies:
    gold: {item: [1, -2]}
    poisonous: {item: [-2, 1]}
    learnt: {pairs: 50}
"""
MINE = """# @package remedies.mine
function: remedy_of_mine:halved
strengths:
  - {own: 0.5, kl: 0.1, occupancy_chi: 0.1, mean_of: 2}
"""


SMALL = (
    *("budget=smoke", "ppo.num_worlds=16", "ppo.episode_length=32", "network.hidden=[8]"),
    *("budget.train_steps=2048", "world.size=24", "world.view_radius=2", "runs=1"),
    *("world.food=[40,40]", "world.poison=[40,40]", "budget.reward_model_steps=5"),
)


@pytest.mark.full
def test_remedies_are_compared_in_cells_of_the_diagram(tmp_path, served):
    command = served("experiments.goodhart")
    small = ("study=remedies_cells", "remedy=[kl,placebo]", "evaluation=default", *SMALL)
    command(*small, f"hydra.run.dir={tmp_path / 'out'}", folder=tmp_path)
    results = evidence.load(tmp_path / "out")
    assert {run.settings["senses"] for run in results.study.runs} == {"near"}
    assert {run.proxy for run in results.study.runs} == {"gold_near", "half_near", "two_near"}
    assert (tmp_path / "out" / "senses_near" / "checkpoints").exists()


def test_a_remedy_of_ones_own_stands_beside_the_others(tmp_path, served):
    (tmp_path / "study").mkdir()
    (tmp_path / "remedy").mkdir()
    (tmp_path / "study" / "tiny.yaml").write_text(TINY)
    (tmp_path / "remedy" / "mine.yaml").write_text(MINE)
    (tmp_path / "remedy_of_mine.py").write_text(
        "def halved(proxy, members, strength):\n    return strength * proxy\n"
    )
    command = served("experiments.goodhart", tmp_path)
    where = ["--config-dir", str(tmp_path), f"hydra.run.dir={tmp_path / 'out'}"]
    done = command(*where, "study=tiny", "remedy=[mine,placebo]", *SMALL, folder=tmp_path)
    results = evidence.load(tmp_path / "out")
    assert {run.remedy for run in results.study.runs} == {None, "mine", "placebo"}
    assert len(results.study.runs) == 3 + 2 * (1 + 3)
    assert "Page:" in done.stdout
    nowhere = ["remedy=[mine]", "remedies.mine.function=nowhere:at_all"]
    where[-1] = f"hydra.run.dir={tmp_path / 'nowhere'}"
    done = command(*where, "study=tiny", *nowhere, *SMALL, folder=tmp_path, check=False)
    assert done.returncode == 2 and "remedies.mine.function=nowhere:at_all" in done.stderr
