"""The experiment: every learner on every family from every base state, one resumable cell a piece.

Finished cells stand as files in the run's folder; a rerun in the same folder goes on with the
missing ones. Base states stand in a cache of their own.
"""

from __future__ import annotations

import json
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator
from functools import cache, lru_cache, partial
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from evidence.runtime.devices import side_by_side
from evidence.runtime.files import file_digest, target_digest, write_json
from evidence.runtime.language_models import open_model
from kubku import measures, protocol
from kubku.base_cache import BaseCache, code_digest, outer_of, started
from kubku.base_states import WORLDS, keys
from kubku.cells import Cell, save
from kubku.grownet.history import growth_history
from kubku.halo import Kind, Learner, Samples, decide
from kubku.learners import language_model, registry
from kubku.learners.custom import custom
from kubku.learners.registry import LEARNERS
from kubku.scoring import score_batch
from kubku.settings import LANGUAGE_MODEL, Experiment
from kubku.tasks import FAMILIES, Family, apart, generate, jsonl, say, story

EXAMPLES = 6
# A resumed run may add learners and families; its cells depend on neither.
_NOT_IN_CELLS = {"learner", "task", "llm", "stage", "cache", "compilation_cache", "resume"}
HISTORY = 16
"""Parts of the pretraining split after which a growing base state is counted."""


class Data(NamedTuple):
    """A family's samples for one generator seed, but those that base states are made from."""

    validation: Samples
    test: Samples
    pairs: Samples
    streams: Samples


class _Job(NamedTuple):
    """What a thread does at a time.

    Attributes:
      of: what it is about, for the progress bar.
      program: what its programs are known by, see `side_by_side`.
      do: takes nothing; what it returns is dropped.
    """

    of: tuple[str, ...]
    program: Hashable
    do: Callable[[], Any]


class Study:
    """One run in one folder."""

    def __init__(self, settings: Experiment, folder: Path, console: Console) -> None:
        self.settings, self.folder, self.console = settings, folder, console
        self._bases = BaseCache(settings, self.learner, self.pretrain)
        self._own: tuple[Family, Samples] | None = None
        # Cells are made side by side; a family's samples may not be.
        self._drawing = defaultdict[str, Lock](Lock)
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
        own["code"] = code_digest("protocol.py", "measures.py", "scoring.py", "study.py")
        # More or fewer replicates, or worlds to compare with, leave the other cells as they are.
        own["budget"].pop("base_seeds")
        own["worlds"] = own["worlds"][:1]
        # Learners and families may be added, but not another of one name.
        target, samples = self.settings.learner.target, self.settings.task.path
        for name in self.settings.learner.names:
            if outer := outer_of(name):
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
        possible = list(self._possible_cells())
        there_are = sorted({cell.base for cell in possible})
        for base in self.settings.learner.bases or ():
            if base not in there_are:
                raise ValueError(
                    f"learner.bases: none is called {base!r}; there are {', '.join(there_are)}"
                )
        self._same_settings()
        for idle in {*self.settings.learner.names} - {cell.learner for cell in possible}:
            if idle != LANGUAGE_MODEL:
                families = ", ".join(self.settings.task.families)
                self.console.print(f"{idle} is left out: it can handle none of {families}")
        jobs = list(self._jobs())
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
            task = bar.add_task("kubku", total=len(jobs))

            def work(job: _Job) -> None:
                bar.update(task, description=" ".join(job.of))
                job.do()
                bar.advance(task)

            # orbax warns about layouts that don't matter on one host.
            warnings.simplefilter("ignore")
            side_by_side(work, jobs, lambda job: job.program)
        if self.settings.stage != "base":
            self._ask_model()

    def _jobs(self) -> Iterator[_Job]:
        base_alone = self.settings.stage == "base"
        if not base_alone:
            # First, or all threads would wait for the one that draws what each of them needs.
            for family in self.settings.task.families:
                yield _Job((family, "samples"), family, partial(self.data, family, 0))
        make = self._bases.get if base_alone else self._evaluate
        for cell in self.cells():
            learner = self.learner(cell.learner, cell.family)
            yield _Job(cell[:3], id(learner), partial(make, cell))
        if base_alone:
            return
        for family, name in self._growing():
            job = partial(self._grow, family, name)
            yield _Job((family, name, "growth"), "growth", job)

    def _growing(self) -> list[tuple[str, str]]:
        """Families and learners whose growth is counted."""
        grown = {
            cell.learner
            for cell in self.cells()
            if cell.base == "grown" and cell.learner in LEARNERS and LEARNERS[cell.learner].grows
        }
        made = [family for family in self.settings.task.families if self.family(family).reads]
        return [(family, name) for name in sorted(grown) for family in made]

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
                save(path, note, found)

    def _grow(self, family: str, name: str) -> None:
        """How a learner grew in the first replicate: a file."""
        path = self.folder / "growth" / f"{family}.json"
        if path.exists():
            return
        learner = self.learner(name, family)
        initial, training, _ = keys(self.settings.seeds(0)[0])
        samples = self.pretrain(family, self.settings.worlds[0], 0)
        whole = samples.label.shape[0] // HISTORY * HISTORY
        first = _rows(samples, slice(0, whole))
        history, _ = growth_history(learner, started(learner, initial), first, training, HISTORY)
        total = {
            name: np.asarray(counts).reshape(len(history.samples), -1).sum(-1)
            for name, counts in zip(("neurons", "slots"), history[1:], strict=True)
        }
        write_json(path, {"samples": history.samples, **total})

    def cells(self) -> Iterator[Cell]:
        """All cells, one replicate after the other, of the base states that were chosen."""
        wanted = self.settings.learner.bases
        return (cell for cell in self._possible_cells() if wanted is None or cell.base in wanted)

    def _possible_cells(self) -> Iterator[Cell]:
        first, *others = self.settings.worlds
        for replicate in range(self.settings.budget.replicates):
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
        return learner in LEARNERS and not LEARNERS[learner].can_handle(family)

    def family(self, name: str) -> Family:
        """The family of that name."""
        return self._own[0] if name == "jsonl" and self._own else FAMILIES[name]

    def learner(self, name: str, family: str) -> Learner:
        """The learner of that name; the same object each time, so that compilations are shared."""
        return self._learner(
            name, family if name in LEARNERS and LEARNERS[name].of_family else "stories"
        )

    @cache  # noqa: B019 - one study lives as long as the program
    def _learner(self, name: str, family: str) -> Learner:
        if name == "custom":
            return custom(self.settings.learner.target or "")
        return registry.make(name, self.family(family), self.settings.budget.training)

    def data(self, name: str, generator_seed: int) -> Data:
        """Every split of a family that learners are tuned and asked on, as NumPy arrays, which are
        cut without compiling anything.
        """
        with self._drawing[name], jax.default_device(self._place(name)):
            return self._data(name, generator_seed)

    def pretrain(self, name: str, world: str, replicate: int) -> Samples:
        """What the base states of a replicate are made from, as NumPy arrays."""
        with self._drawing[name], jax.default_device(self._place(name)):
            return self._pretrain(name, world, replicate)

    def _place(self, name: str) -> jax.Device:
        """Where a family's samples are drawn, whoever wants them: each device would compile it."""
        devices = jax.local_devices()
        return devices[self.settings.task.families.index(name) % len(devices)]

    # A full study's would not all fit the memory.
    @lru_cache(maxsize=32)  # noqa: B019
    def _pretrain(self, name: str, world: str, replicate: int) -> Samples:
        n, (*_, key) = self.settings.budget.pretrain, keys(self.settings.seeds(replicate)[0])
        return generate(FAMILIES[name], key, n, "pretrain", skew=WORLDS[world])

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
        shape = budget.streams, budget.length
        streams = jax.tree.map(lambda leaf: leaf.reshape(*shape, *leaf.shape[1:]), flowing)
        return Data(
            generate(family, key, budget.validation, "validation"),
            generate(family, key, budget.test, "test"),
            generate(family, of_pairs, budget.pairs, "test", pairs=True),
            apart(streams),
        )

    def _evaluate(self, cell: Cell) -> None:
        """Tune, expose and ask; write the cell's file, unless it is there."""
        if (self.folder / cell.path).exists():
            return
        learner = self.learner(cell.learner, cell.family)
        base, made_in = self._bases.get(cell)
        data = self.data(cell.family, self.settings.seeds(cell.replicate)[1])
        budget, clock = self.settings.budget, time.perf_counter()
        slow = cell.learner in LEARNERS and LEARNERS[cell.learner].slow
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
        save(self.folder / cell.path, note, found)

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


def _rows(samples: Samples, rows: Any) -> Samples:
    return jax.tree.map(lambda leaf: leaf[rows], samples)
