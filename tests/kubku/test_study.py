"""What a study does differently on an accelerator, played through on a CPU: the same results."""

import contextlib
import json
from types import SimpleNamespace

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hydra import compose, initialize_config_module
from omegaconf import OmegaConf

from evidence.answers import Answer
from evidence.runtime import devices
from kubku import cells, protocol, settings, study
from kubku.base_cache import BaseCache
from kubku.cells import Cell, Found
from kubku.grownet.learner import grownet
from kubku.grownet.lookup import grownet_lookup
from kubku.outer import outer
from kubku.parts import Tuned
from kubku.plan import prepared
from kubku.tasks import FAMILIES, generate


@pytest.fixture
def as_accelerator(monkeypatch):
    """Calls a function as it would be compiled for an accelerator that is 40 times as wide."""

    def forget():
        jax.clear_caches()
        protocol._exposing.cache_clear()

    def call(function):
        with monkeypatch.context() as patch:
            patch.setattr(devices, "_is_accelerator", lambda: True)
            patch.setattr(devices, "_WIDER", 40)
            forget()
            found = jax.device_get(function())
        forget()
        return found

    return call


def test_samples_and_growth_are_the_same_side_by_side(as_accelerator):
    def drawn():
        # Chunks of 32, and two of 320 on the accelerator.
        return generate(FAMILIES["grids"], jax.random.key(3), 400, "pretrain", skew=0.8)

    def grown():
        learner = grownet(False)
        return learner.bases["grown"](learner.init(jax.random.key(0)), few, jax.random.key(1))

    samples = drawn()
    few = jax.tree.map(lambda leaf: leaf[:40], samples)
    one_by_one = jax.device_get(grown())
    assert one_by_one.readers.told.sum() > 40
    drawn_at_once, grown_at_once = as_accelerator(lambda: (drawn(), grown()))
    chex.assert_trees_all_equal(drawn_at_once, jax.device_get(samples))
    chex.assert_trees_all_close(grown_at_once, one_by_one)


def bases(folder, **changed):
    with initialize_config_module("conf.kubku", version_base=None):
        config = compose(
            "config",
            ["budget=smoke", "task=stories", "budget.generator_seeds=3", "worlds=[skewed]"],
        )
    plain = OmegaConf.to_container(config, resolve=True)
    told = settings.read({**plain, "cache": str(folder), **changed})
    return prepared(told, folder).bases


def test_base_states_of_all_replicates_are_made_at_once(as_accelerator, tmp_path):
    """And each is the one that is made alone, kept under the same name, with how it was trained."""
    cells = [Cell("stories", "mlp", "meta", "skewed", replicate) for replicate in range(3)]
    alone = [bases(tmp_path / "alone").get(cell)[0] for cell in cells]
    at_once = bases(tmp_path / "at_once")
    made = as_accelerator(lambda: at_once.get(cells[1]))
    names = [
        {path.name for path in (tmp_path / folder).iterdir()} for folder in ("alone", "at_once")
    ]
    assert names[0] == names[1] and len(names[0]) == 3
    kept = bases(tmp_path / "at_once", stage="evaluate")
    chex.assert_trees_all_equal(kept.get(cells[1]), made)
    for cell, expected in zip(cells, alone, strict=True):
        chex.assert_trees_all_close(kept.get(cell)[0], expected, rtol=1e-4, atol=1e-5)
    first, second = (jax.tree.leaves(state.params) for state in alone[:2])
    assert not np.allclose(first[1], second[1])
    starts = [kept.get(cell._replace(base="random"))[0].params for cell in cells[:2]]
    assert not np.allclose(*(jax.tree.leaves(start)[1] for start in starts))
    note = json.loads(next((tmp_path / "alone").glob("*/note.json")).read_text())
    assert list(outer("mlp", "stories")) in note["made_of"]


def test_a_damaged_base_state_is_made_again(tmp_path, caplog):
    """Its bytes are counted in its note: what changed by itself is not taken for what was kept."""
    cell = Cell("stories", "mlp", "marginal", "skewed", 0)
    ours = bases(tmp_path)
    made, _ = ours.get(cell)
    (place,) = tmp_path.iterdir()

    def flip(path):
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)

    def largest():
        return max(place.rglob("*"), key=lambda path: path.stat().st_size * path.is_file())

    damages = (
        lambda: flip(largest()),
        lambda: largest().write_bytes(largest().read_bytes()[:99]),
        (place / "note.json").unlink,
        lambda: (place / "note.json").write_text('{"seconds": 1, "digest": "another"}'),
    )
    for damage in damages:
        caplog.clear()
        damage()
        again, _ = ours.get(cell)
        assert "is made again" in caplog.text
        chex.assert_trees_all_equal(again, made)
    largest().unlink()
    with pytest.raises(ValueError, match="makes none, 'base' does"):
        bases(tmp_path, stage="evaluate").get(cell)


def test_calls_that_failed_are_counted_in_a_cell():
    note = Tuned(objective=0, seconds=0, seconds_base=0)
    answers = np.full((2, 3), int(Answer.YES), np.int8)
    assert cells.failures(Found({"answers": answers, "before_answers": answers}, note)) == 0
    answers[1, 2] = int(Answer.ERROR)
    assert cells.failures(Found({"answers": answers}, note)) == 1


@pytest.mark.parametrize(
    ("source", "failed", "asked"),
    [("endpoint", [2, 3, 1, 0], [2, 2, 1, 0, 0]), ("recorded", [2, 0], [2, 2, 2])],
)
def test_a_language_model_is_asked_again_until_no_call_failed(
    tmp_path, monkeypatch, source, failed, asked
):
    """Never for worse, and not where replies are on file. `asked`: failures kept after each run."""
    note, to_come = Tuned(objective=0, seconds=0, seconds_base=0), iter(failed)

    def ask(*_):
        answers = np.full(4, int(Answer.YES), np.int8)
        answers[: next(to_come)] = int(Answer.ERROR)
        return Found({"answers": answers}, note)

    monkeypatch.setattr(study.evaluation, "ask", ask)
    monkeypatch.setattr(study, "open_model", lambda _: contextlib.nullcontext(object()))
    family = FAMILIES["stories"]
    plan = SimpleNamespace(
        settings=SimpleNamespace(
            llm=SimpleNamespace(source=source),
            learner=SimpleNamespace(names=["language_model"]),
            budget=SimpleNamespace(slow=1),
        ),
        folder=tmp_path,
        source=SimpleNamespace(
            families={"stories": family},
            splits=lambda *_: SimpleNamespace(test=generate(family, jax.random.key(0), 2, "test")),
        ),
    )
    for kept in asked:
        study._ask_model(plan)
        (path,) = (tmp_path / "cells" / "stories").iterdir()
        assert cells.failures(cells.load(path)) == kept


def test_a_damaged_cell_is_made_again(tmp_path, caplog):
    path = tmp_path / "cell.npz"
    note = Tuned(objective=0, seconds=0, seconds_base=0)
    cells.save(path, Found({"answers": np.arange(2000)}, note))
    whole = path.read_bytes()
    assert cells.is_kept(path) and not cells.is_kept(tmp_path / "none.npz") and not caplog.text
    for content in (whole[:-40], whole[:200] + bytes([whole[200] ^ 1]) + whole[201:], b"", b"PK"):
        path.write_bytes(content)
        assert not cells.is_kept(path) and "is made again" in caplog.text
        caplog.clear()


def test_base_states_made_otherwise_are_kept_apart(tmp_path, monkeypatch):
    cell = Cell("stories", "mlp", "meta", "skewed", 0)
    other = ("grids", "gru", "marginal", "balanced", 1)
    cells = [cell, *(cell._replace(**{f: v}) for f, v in zip(cell._fields, other, strict=True))]
    ours = bases(tmp_path)
    places = {ours._place(cell) for cell in cells}
    places |= {bases(tmp_path, seed=seed)._place(cell) for seed in (5, 6)}
    for library in (jax, optax):
        with monkeypatch.context() as patch:
            patch.setattr(library, "__version__", "another")
            places.add(bases(tmp_path)._place(cell))
    assert len(places) == 10


def test_scores_are_the_same_whatever_fits(as_accelerator):
    learner = grownet_lookup()
    samples = generate(FAMILIES["stories"], jax.random.key(3), 20, "test")

    def scores():
        return protocol.reset_to_base(learner, learner.init(jax.random.key(0)), samples).after

    expected = np.asarray(scores())
    assert jnp.ptp(expected) > 0
    np.testing.assert_allclose(as_accelerator(scores), expected, atol=1e-6)


def test_threads_that_want_one_base_state_make_it_once(as_accelerator, tmp_path, monkeypatch):
    made, ours, lone = [], bases(tmp_path), BaseCache._make
    cells = [Cell("stories", "mlp", "meta", "skewed", replicate) for replicate in range(3)]

    def counted(self, cells):
        made.append(len(cells))
        lone(self, cells)

    def all_at_a_time():
        monkeypatch.setattr(BaseCache, "_make", counted)
        devices.side_by_side(ours.get, cells, lambda cell: cell)

    as_accelerator(all_at_a_time)
    assert made == [3]


def test_all_samples_of_a_replicate_go_by_its_rules_and_the_oracle_knows_them(tmp_path):
    """Pretraining split, test split and pairs; another replicate's are others."""
    with initialize_config_module("conf.kubku", version_base=None):
        config = compose(
            "config",
            [
                *("budget=smoke", "task=series", "learner.names=[generator_oracle,pair_counts]"),
                *("budget.generator_seeds=2", "budget.base_seeds=2"),
            ],
        )
    plain = OmegaConf.to_container(config, resolve=True)
    plan = prepared(settings.read({**plain, "cache": str(tmp_path)}), tmp_path)
    right = {}
    for replicate in range(4):
        cell = Cell("series", "generator_oracle", "none", "skewed", replicate)
        state, _ = plan.bases.get(cell)
        learner = plan.learners["generator_oracle", "series"]
        for other in range(4):
            splits = plan.source.splits("series", other)
            heard = plan.source.pretrain("series", "skewed", other)
            for samples in (splits.test, splits.pairs, heard):
                said = protocol.reset_to_base(learner, state, samples).after.argmax(-1)
                right.setdefault((replicate, other), []).append((said == samples.gold).mean())
    for (one, other), shares in right.items():
        # Replicates 0 and 2 have the first generator seed, 1 and 3 the second.
        assert (min(shares) == 1) == (one % 2 == other % 2)
    kept = {
        plan.bases._place(Cell("series", "pair_counts", "counted", "skewed", replicate))
        for replicate in range(4)
    }
    assert len(kept) == 4
