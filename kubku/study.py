"""The experiment: every learner on every family from every base state, one resumable cell a piece.

A cell is (family, learner, base state, world, replicate). A replicate has its own base-state seed,
and shares its generator seed with others. Finished cells stand as files in the run's
folder; a rerun in the same folder goes on with the missing ones. Base states stand in a cache of
their own, named by a digest of what made them.
"""

from __future__ import annotations

import ast
import hashlib
import json
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import cache, lru_cache
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

import kubku
from evidence.devices import at_once, side_by_side
from evidence.models import open_model
from evidence.runs import file_digest, target_digest, write_json
from kubku import learners, measures, protocol
from kubku.base_states import Outer
from kubku.grownet.learners import growth_history
from kubku.halo import Kind, Learner, Samples, State, decide
from kubku.learners import language_model
from kubku.outer import OUTER
from kubku.scoring import score_batch
from kubku.settings import LANGUAGE_MODEL, Experiment
from kubku.tasks import FAMILIES, Family, apart, generate, jsonl, say, story

WORLDS = {"skewed": 0.85, "balanced": 0.0}
"""Probability that a stereotype is true in the world that base states are trained in."""
EXAMPLES = 6
# A resumed run may add learners and families; its cells depend on neither.
_NOT_IN_CELLS = {"learner", "task", "llm", "stage", "cache", "compilation_cache", "resume"}
HISTORY = 16
"""Parts of the pretraining split after which a growing base state is counted."""


class Cell(NamedTuple):
    """What one file holds the results of."""

    family: str
    learner: str
    base: str
    world: str
    replicate: int

    @property
    def path(self) -> str:
        """Where, below the run's folder."""
        name = f"{self.learner}.{self.base}.{self.world}.{self.replicate}.npz"
        return f"cells/{self.family}/{name}"


class Data(NamedTuple):
    """A family's samples for one generator seed, but those that base states are made from."""

    validation: Samples
    test: Samples
    pairs: Samples
    streams: Samples


class Study:
    """One run in one folder."""

    def __init__(self, settings: Experiment, folder: Path, console: Console) -> None:
        self.settings, self.folder, self.console = settings, folder, console
        self._own: tuple[Family, Samples] | None = None
        # Here, for CPython 3.11 can't parse in two threads at a time (SystemError).
        self._code = _digest()
        # Cells are made side by side; none of these may be.
        self._drawing, self._keeping = defaultdict[str, Lock](Lock), Lock()
        self._making = defaultdict[Cell, Lock](Lock)
        if settings.task.path is not None:
            own, samples = jsonl.read(settings.task.path)
            self._own = own, jax.tree.map(np.asarray, samples)

    def _same_settings(self) -> None:
        """Keep the settings beside the cells; cells of other settings don't belong to these.

        Raises:
          ValueError: the folder's cells were made with other settings; names them.
        """
        path = self.folder / "settings.json"
        own = json.loads(self.settings.model_dump_json(exclude=_NOT_IN_CELLS))
        own["code"] = _digest("protocol.py", "measures.py", "scoring.py")
        # More or fewer replicates, or worlds to compare with, leave the other cells as they are.
        own["budget"].pop("base_seeds")
        own["worlds"] = own["worlds"][:1]
        # Learners and families may be added, but not another of one name.
        target, samples = self.settings.learner.target, self.settings.task.path
        for name in self.settings.learner.names:
            if outer := _outer(name):
                own[f"outer.{name}"] = list(outer)
        if target is not None:
            own["learner.target"] = [target, target_digest(target)]
        if samples is not None:
            own["task.path"] = file_digest(samples)
        if LANGUAGE_MODEL in self.settings.learner.names:
            own["llm"] = self.settings.llm.model_dump(include={"source", "model", "replies"})
        kept = json.loads(path.read_text()) if path.exists() else {}
        other = [name for name in own if name in kept and kept[name] != own[name]]
        if other:
            raise ValueError(
                f"resume={self.folder}: made with other settings of {', '.join(other)}; "
                f"give the same ones (code: that of kubku), or leave resume out"
            )
        write_json(path, {**kept, **own})

    def run(self) -> None:
        """Make every base state and every cell that is missing."""
        self._same_settings()
        cells = list(self.cells())
        for idle in {*self.settings.learner.names} - {cell.learner for cell in cells}:
            if idle != LANGUAGE_MODEL:
                families = ", ".join(self.settings.task.families)
                self.console.print(f"{idle} is left out: it can handle none of {families}")
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
        )
        silent = not self.console.is_terminal
        with (
            warnings.catch_warnings(),
            Progress(*columns, console=self.console, disable=silent) as bar,
        ):
            task = bar.add_task("kubku", total=len(cells))

            def make(cell: Cell) -> None:
                bar.update(task, description=" ".join(str(part) for part in cell[:3]))
                if self.settings.stage == "base":
                    self.base_state(cell)
                elif not (self.folder / cell.path).exists():
                    self.evaluate(cell)
                bar.advance(task)

            # orbax warns about layouts that don't matter on one host.
            warnings.simplefilter("ignore")
            side_by_side(make, cells, lambda cell: id(self.learner(cell.learner, cell.family)))
        if self.settings.stage != "base":
            self._ask_model()
            self._grow()

    def _ask_model(self) -> None:
        """The language model's cells, one a family: it has neither base states nor replicates."""
        if LANGUAGE_MODEL not in self.settings.learner.names:
            return
        with open_model(self.settings.llm) as model:
            assert model is not None, "settings without a model are refused"
            for name in self.settings.task.families:
                path = self.folder / Cell(name, LANGUAGE_MODEL, "none", "none", 0).path
                if path.exists():
                    continue
                clock = time.perf_counter()
                samples = _rows(self.data(name, 0).test, slice(0, self.settings.budget.slow))
                family = self.family(name)
                before, after = (
                    language_model.ask(model, family, samples, shown) for shown in (False, True)
                )
                seconds = time.perf_counter() - clock
                found: dict[str, Any] = {
                    "answers": after.astype(np.int8),
                    "before_answers": before.astype(np.int8),
                    "audit": float("nan"),  # it is shown no halo that could be a wrong one
                    "seconds_exposed": seconds,
                }
                for when, answers in (("before", before), ("after", after)):
                    marked = score_batch(jnp.asarray(answers), samples)
                    found |= {f"{when}.{n}": np.asarray(x) for n, x in marked._asdict().items()}
                note = {
                    "model": model.name,
                    "objective": 0.0,
                    "seconds": seconds,
                    "seconds_base": 0.0,
                    "made_on": jax.devices()[0].device_kind,
                }
                _save(path, note, found)

    def _grow(self) -> None:
        """How `grownet_two_layer` grew in the first replicate, one file a family."""
        name = "grownet_two_layer"
        if name not in self.settings.learner.names:
            return
        for family in self.settings.task.families:
            path = self.folder / "growth" / f"{family}.json"
            if family == "jsonl" or path.exists():
                continue
            learner = self.learner(name, family)
            initial, training, _ = self._keys(0)
            samples = self.pretrain(family, self.settings.worlds[0], 0)
            whole = samples.label.shape[0] // HISTORY * HISTORY
            history, _ = growth_history(
                learner,
                _started(learner, initial),
                _rows(samples, slice(0, whole)),
                training,
                HISTORY,
            )
            total = {
                name: np.asarray(counts).reshape(len(history.samples), -1).sum(-1)
                for name, counts in zip(("neurons", "slots"), history[1:], strict=True)
            }
            write_json(path, {"samples": history.samples, **total})

    def cells(self) -> Iterator[Cell]:
        """All cells, one replicate after the other."""
        budget = self.settings.budget
        first, *others = self.settings.worlds
        for replicate in range(budget.base_seeds * budget.generator_seeds):
            for name in self.settings.task.families:
                family = self.family(name)
                for learner in self.settings.learner.names:
                    if learner == LANGUAGE_MODEL or self._cannot(learner, family):
                        continue
                    for base, make in self.learner(learner, name).bases.items():
                        if name == "jsonl" and make is not None:
                            continue
                        yield Cell(name, learner, base, first, replicate)
                        # A base state that nothing was learnt for is the same in every world.
                        for world in others if make is not None and replicate == 0 else ():
                            yield Cell(name, learner, base, world, replicate)

    def _cannot(self, learner: str, family: Family) -> bool:
        return (learner == "cnn" and not learners.spatial(family)) or (
            learner == "generator_oracle" and family.name == "jsonl"
        )

    def family(self, name: str) -> Family:
        """The family of that name."""
        return self._own[0] if name == "jsonl" and self._own else FAMILIES[name]

    def learner(self, name: str, family: str) -> Learner:
        """The learner of that name; the same object each time, so that compilations are shared."""
        return self._learner(name, family if name in learners.OF_FAMILY else "stories")

    @cache  # noqa: B019 - one study lives as long as the program
    def _learner(self, name: str, family: str) -> Learner:
        if name == "custom":
            return learners.custom(self.settings.learner.target or "")
        return learners.make(name, self.family(family), self.settings.budget.training)

    def data(self, name: str, generator_seed: int) -> Data:
        """Every split of a family that learners are tuned and asked on, as NumPy arrays, which are
        cut without compiling anything.
        """
        with self._drawing[name]:
            return self._data(name, generator_seed)

    def pretrain(self, name: str, world: str, replicate: int) -> Samples:
        """What the base states of a replicate are made from, as NumPy arrays."""
        with self._drawing[name]:
            return self._pretrain(name, world, replicate)

    # A full study's would not all fit the memory.
    @lru_cache(maxsize=32)  # noqa: B019
    def _pretrain(self, name: str, world: str, replicate: int) -> Samples:
        n, (*_, key) = self.settings.budget.pretrain, self._keys(replicate)
        samples = generate(FAMILIES[name], key, n, "pretrain", skew=WORLDS[world])
        return jax.tree.map(np.asarray, samples)

    @cache  # noqa: B019
    def _data(self, name: str, generator_seed: int) -> Data:
        budget = self.settings.budget
        if name == "jsonl":
            assert self._own is not None
            own = self._own[1]
            tuning, scored, paired = jsonl.split(own)
            # No sample twice in a stream, or it would be known already.
            shuffled = np.random.default_rng(self.settings.seed)
            streams = [shuffled.permutation(scored)[: budget.length] for _ in range(budget.streams)]
            parts = tuning, scored, paired, np.stack(streams)
            return Data(*[_rows(own, part) for part in parts])
        key = jax.random.key(self.settings.seed + 1000 * generator_seed)
        family, (of_pairs, of_streams) = FAMILIES[name], jax.random.split(key, 2)
        flowing = generate(family, of_streams, budget.streams * budget.length, "test")
        drawn = Data(
            generate(family, key, budget.validation, "validation"),
            generate(family, key, budget.test, "test"),
            generate(family, of_pairs, budget.pairs, "test", pairs=True),
            apart(self._streams(flowing)),
        )
        return jax.tree.map(np.asarray, drawn)

    def _streams(self, samples: Samples) -> Samples:
        shape = self.settings.budget.streams, self.settings.budget.length
        return jax.tree.map(lambda leaf: leaf.reshape(*shape, *leaf.shape[1:]), samples)

    def seeds(self, replicate: int) -> tuple[int, int]:
        """Base-state seed and generator seed of a replicate."""
        return self.settings.seed + replicate, replicate % self.settings.budget.generator_seeds

    def _keys(self, replicate: int) -> jax.Array:
        """Keys of a base state, key[3]: where it starts, how it is trained, on which samples."""
        own = jax.random.key(self.seeds(replicate)[0])
        return jax.random.split(jax.random.fold_in(own, 7), 3)  # no split's number, see `generate`

    def base_state(self, cell: Cell) -> tuple[State, float]:
        """The base state, from the cache or made, and the seconds that making it took."""
        learner = self.learner(cell.learner, cell.family)
        if learner.bases[cell.base] is None:
            return _started(learner, self._keys(cell.replicate)[0]), 0.0
        place, together = self._place(cell), self._made_with(cell)
        with self._making[together[0]]:
            if not place.exists():
                self._make_bases([c for c in together if not self._place(c).exists()])
        seconds = json.loads(place.with_suffix(".json").read_text())["seconds"]
        # To the host: what orbax restores is bound to one device.
        with self._keeping, ocp.StandardCheckpointer() as keeper:
            state = _started(learner, self._keys(cell.replicate)[0])
            return jax.device_get(keeper.restore(place, {"state": state})["state"]), seconds

    def _made_with(self, cell: Cell) -> list[Cell]:
        """Whose base states are made at one go: an accelerator makes those of all replicates in
        little more than the time of one.
        """
        several = at_once(1) > 1 and cell.world == self.settings.worlds[0]
        several &= cell.learner != "custom"  # which may not be written for `vmap`
        budget = self.settings.budget
        replicates = range(budget.base_seeds * budget.generator_seeds)
        return [cell._replace(replicate=r) for r in replicates] if several else [cell]

    def _make_bases(self, cells: list[Cell]) -> None:
        """Make base states that differ by replicate alone, and keep them."""
        one = cells[0]
        if self.settings.stage == "evaluate":
            raise ValueError(
                f"stage=evaluate: {self.settings.cache} has no base state {one.base} of "
                f"{one.learner} for {one.family}; make it with stage=base"
            )
        learner = self.learner(one.learner, one.family)
        make = learner.bases[one.base]
        assert make is not None
        made_from = [
            (
                _started(learner, self._keys(cell.replicate)[0]),
                self.pretrain(cell.family, cell.world, cell.replicate),
                self._keys(cell.replicate)[1],
            )
            for cell in cells
        ]
        start = time.perf_counter()
        if len(cells) == 1:
            states = [jax.device_get(make(*made_from[0]))]
        else:
            together = jax.tree.map(lambda *leaves: jnp.stack(leaves), *made_from)  # keys, too
            made = jax.device_get(_for_all(make)(*together))
            states = [jax.tree.map(lambda leaf: leaf[i], made) for i in range(len(cells))]  # noqa: B023
        seconds = (time.perf_counter() - start) / len(cells)
        for cell, state in zip(cells, states, strict=True):
            place = self._place(cell)
            if place.exists():  # another process was quicker
                continue
            place.parent.mkdir(parents=True, exist_ok=True)
            note = {"seconds": seconds, "made_of": self._made_of(cell)}
            place.with_suffix(".json").write_text(json.dumps(note) + "\n")
            with self._keeping, ocp.StandardCheckpointer() as keeper:
                keeper.save(place, {"state": state})  # orbax takes no array by itself

    def _made_of(self, cell: Cell) -> list[Any]:
        """All that a base state depends on."""
        budget, target = self.settings.budget, self.settings.learner.target
        return [
            *(cell.family, cell.learner, cell.base, cell.world, WORLDS[cell.world]),
            self.seeds(cell.replicate)[0],
            *(budget.pretrain, budget.training.model_dump(), self._code),
            _outer(cell.learner),
            target_digest(target) if target is not None and cell.learner == "custom" else None,
        ]

    def _place(self, cell: Cell) -> Path:
        digest = hashlib.sha256(json.dumps(self._made_of(cell)).encode()).hexdigest()[:16]
        return Path(self.settings.cache).absolute() / digest

    def evaluate(self, cell: Cell) -> None:
        """Tune, expose and ask; write the cell's file."""
        learner = self.learner(cell.learner, cell.family)
        base, made_in = self.base_state(cell)
        data = self.data(cell.family, self.seeds(cell.replicate)[1])
        budget, clock = self.settings.budget, time.perf_counter()
        slow = cell.learner == "transformer"
        few = slice(0, budget.slow if slow else budget.test)
        couples = slice(0, few.stop // 2 * 2)
        validation = _rows(data.validation, slice(0, budget.slow)) if slow else data.validation

        tuned = protocol.tune(learner, base, validation)
        state = protocol.with_trial(base, tuned.trial)
        found: dict[str, Any] = {}
        pairs = _rows(data.pairs, couples)
        if pairs.label.shape[0]:
            found |= measures.drift(
                learner, state, tuned.threshold, self.family(cell.family), pairs
            )
        if cell.world == self.settings.worlds[0]:
            test = _rows(data.test, few)
            exposing = time.perf_counter()
            exposed = jax.block_until_ready(protocol.reset_to_base(learner, state, test))
            found["seconds_exposed"] = time.perf_counter() - exposing
            found["answers"] = np.asarray(decide(exposed.after, tuned.threshold), np.int8)
            found["before_answers"] = np.asarray(decide(exposed.before, tuned.threshold), np.int8)
            for when, scores in zip(("before", "after"), exposed, strict=True):
                marked = protocol.judged(scores, tuned.threshold, test)
                found |= {f"{when}.{name}": np.asarray(x) for name, x in marked._asdict().items()}
            # On as many samples as were tuned on: the program for them is compiled.
            found["audit"] = protocol.audit(
                learner, state, _rows(test, slice(0, validation.label.shape[0]))
            )
            if cell.replicate == 0:
                found |= measures.by_steps(
                    learner, state, tuned.threshold, _rows(test, slice(0, budget.sweep))
                )
            found |= measures.streaming(learner, state, tuned.threshold, data.streams)
        note = {
            **tuned.trial,
            "threshold": tuned.threshold,
            "objective": tuned.objective,
            "seconds": time.perf_counter() - clock,
            "seconds_base": made_in,
            "made_on": jax.devices()[0].device_kind,
        }
        _save(self.folder / cell.path, note, found)

    def export(self) -> list[Path]:
        """The test split and the pairs of each family as JSONL, in words and in tokens."""
        written = []
        for name in self.settings.task.families:
            data = self.data(name, 0)
            for split, samples in (("test", data.test), ("pairs", data.pairs)):
                path = self.folder / "samples" / f"{name}.{split}.jsonl"
                written.append(jsonl.write(path, self.family(name), samples))
        return written

    def examples(self) -> list[dict[str, Any]]:
        """Some samples of each family in words, with the right answers, for the browser."""
        shown = []
        for name in self.settings.task.families:
            family = self.family(name)
            samples = jax.tree.map(np.asarray, self.data(name, 0).test)
            # Slow learners were asked the first few samples alone.
            for i in range(min(EXAMPLES, self.settings.budget.slow, len(samples.label))):
                sample = jax.tree.map(lambda leaf: leaf[i], samples)  # noqa: B023
                shown.append(
                    {
                        "family": name,
                        "row": i,
                        "story": story(family, sample),
                        "queries": [
                            {
                                "text": say(
                                    family, type(sample.query)(*(p[q] for p in sample.query))
                                ),
                                "kind": Kind(int(sample.kind[q])).name.lower(),
                                "gold": int(sample.gold[q]),
                            }
                            for q in np.flatnonzero(sample.asked)
                        ],
                    }
                )
        return shown


@cache
def _for_all(make: Callable[..., State]) -> Callable[..., State]:
    return jax.jit(jax.vmap(make))


@cache
def _init(init: Callable[[jax.Array], State]) -> Callable[[jax.Array], State]:
    return jax.jit(init)


def _started(learner: Learner, key: jax.Array) -> State:
    """`learner.init`, compiled as one program rather than operation by operation."""
    return _init(learner.init)(key)


def _rows(samples: Samples, rows: Any) -> Samples:
    return jax.tree.map(lambda leaf: leaf[rows], samples)


def _outer(learner: str) -> Outer | None:
    """How its base states are trained, if it is a network."""
    return OUTER.get(learner.removesuffix("_replay"))


def _digest(*more: str) -> str:
    """Of the source that base states come from, comments and layout apart: made by other code, it
    is another base state; and of `more` files, by which cells are made of them.
    """
    here, found = Path(kubku.__file__).parent, hashlib.sha256()
    for part in ("halo.py", "base_states.py", "tasks", "learners", "grownet", *more):
        path = here / part
        for file in [path] if path.is_file() else sorted(path.rglob("*.py")):
            found.update(ast.dump(ast.parse(file.read_bytes())).encode())
    return found.hexdigest()


def _save(path: Path, note: Mapping[str, Any], found: Mapping[str, Any]) -> None:
    """Write a cell whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".part")
    with open(temporary, "wb") as file:
        np.savez_compressed(file, allow_pickle=False, note=json.dumps(note), **found)
    temporary.replace(path)


def load_cell(path: Path) -> dict[str, Any]:
    """A cell's arrays, and its `note` as plain data."""
    with np.load(path) as file:
        found = {name: file[name] for name in file.files if name != "note"}
        return {**found, "note": json.loads(str(file["note"]))}
