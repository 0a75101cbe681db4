"""The experiment: every learner on every family from every base state, one resumable cell a piece.

Finished cells stand as files in the run's folder; a rerun in the same folder goes on with the
missing ones, and several processes in one folder share them. Base states stand in a cache of their
own.
"""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from evidence.pages import counted
from evidence.runtime import timings
from evidence.runtime.devices import place, side_by_side
from evidence.runtime.files import write_json
from evidence.runtime.language_models import open_model
from evidence.runtime.progress import spoken
from kubku import assessment, cells, evaluation, report, samples, thesis
from kubku.arms import Arm, Asked
from kubku.assessment import Collected
from kubku.base_cache import started
from kubku.base_states import keys
from kubku.cells import NO_BASE, Cell, Found
from kubku.evaluation import Amount
from kubku.export import write_dataset
from kubku.grownet.history import growth_history
from kubku.halo import veiled
from kubku.learners.registry import KNOWN
from kubku.parts import Growth
from kubku.plan import Plan, asking, keep_settings, prepared
from kubku.results import Exposure, Manifest, Results
from kubku.samples import Source
from kubku.settings import Experiment
from kubku.tasks import jsonl

_log = logging.getLogger(__name__)

HISTORY = 16
"""Parts of the pretraining split after which a growing base state is counted."""


def run(settings: Experiment, folder: Path, console: Console) -> Results:
    """Make every cell that is missing; write the results from all of them, and their page.

    Raises:
      ValueError: the folder's cells were made with other settings, or a learner can't be made;
        names them.
    """
    start = time.perf_counter()
    plan = share(settings, folder, console)
    with timings.part("asking"):
        _ask_model(plan)
    with timings.part("assessment"):
        collected = _collected(plan)
        found = list(collected.cells())
    manifest = Manifest.now(
        settings,
        [settings.seed],
        wall_seconds=time.perf_counter() - start,
        seconds_base=sum(cell.note.seconds_base for cell in found),
        # A run may be gone on with elsewhere.
        cells_made_on=sorted({cell.note.made_on for cell in found if cell.note.made_on}),
    )
    with timings.part("assessment"):
        results = assessment.assess(collected, thesis.declared(), manifest)
    with timings.part("writing"):
        results.save(folder)
    with timings.part("drawing"):
        report.write(folder)
    return results


def share(settings: Experiment, folder: Path, console: Console) -> Plan:
    """Make what cells are missing, this process' part of them first; what another has made by then
    is not made again.

    Returns:
      The plan, of which language models' cells alone are left to do.

    Raises:
      ValueError: as `run` does.
    """
    with timings.part("plan"):
        plan = prepared(settings, folder)
        keep_settings(plan)
    _tell_idle(plan, console)
    _tell_work(plan, console)
    jobs = _own_first([*_jobs(plan, partial(_evaluate, plan)), *_growth(plan)])
    with timings.part("cells"):
        _work([*_samples_jobs(plan), *jobs], console)
    return plan


def run_stage(settings: Experiment, folder: Path, console: Console) -> Sequence[Path]:
    """A stage that leaves no results.

    Returns:
      What it wrote: of `export` the test split and the pairs of each family as JSONL, in words and
      in tokens; of `base` the folder of base states.
    """
    if settings.stage == "export":
        return _export(Source(settings), folder)
    plan = prepared(settings, folder)
    keep_settings(plan)
    _tell_idle(plan, console)
    _work(_own_first([*_jobs(plan, plan.bases.get)]), console)
    return [Path(settings.cache)]


# --- doing it


def _tell_idle(plan: Plan, console: Console) -> None:
    able = {learner for learner, _ in plan.learners} | {*asking(plan.settings)}
    for idle in (name for name in plan.settings.learner.names if name not in able):
        families = ", ".join(plan.settings.task.families)
        console.print(f"{idle} is left out: it can handle none of {families}")


def _tell_work(plan: Plan, console: Console) -> None:
    kept = sum(cells.is_kept(plan.folder / cell.path) for cell in plan.cells)
    drawn = plan.settings.budget.test
    console.print(
        f"{counted(len(plan.cells), 'cell')} of up to {drawn:,} samples, {kept} of them kept; how "
        "long the others take is told at a tenth, a quarter, half and three quarters of them",
        style="dim",
        highlight=False,
    )


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


def _samples_jobs(plan: Plan) -> Iterator[_Job]:
    # First, or all threads would wait for the one that draws what each of them needs.
    draw = timings.part("samples")(plan.source.splits)
    for family in plan.source.families:
        yield _Job((family, "samples"), "samples", partial(draw, family, 0))


def _jobs(plan: Plan, do: Callable[[Cell], Any]) -> Iterator[_Job]:
    for cell in plan.cells:
        program = plan.learners[cell.learner, cell.family].learn
        yield _Job(cell[:3], program, partial(do, cell))


def _growth(plan: Plan) -> Iterator[_Job]:
    """How base states grew, of those whose growth is counted: one job a family."""
    for cell in plan.cells:
        grown = KNOWN[cell.learner].grows and cell.base == "grown"
        if grown and cell.replicate == 0 and cell.world == plan.settings.worlds[0]:
            of = cell.family, cell.learner, "growth"
            program = plan.learners[cell.learner, cell.family].learn
            yield _Job(of, program, partial(_grow, plan, cell))


def _own_first(jobs: Sequence[_Job]) -> list[_Job]:
    """All jobs, this process' part of them first, the others' last ones last: whoever is early
    helps, and nobody waits for one that has died.
    """
    number, of = place()
    others = [job for i, job in enumerate(jobs) if i % of != number]
    return [*jobs[number::of], *reversed(others)]


def _work(jobs: Iterable[_Job], console: Console) -> None:
    """Do all jobs, side by side."""
    waiting = list(jobs)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    silent = not console.is_terminal
    with warnings.catch_warnings(), Progress(*columns, console=console, disable=silent) as bar:
        task = bar.add_task("kubku", total=len(waiting))

        start, done = time.perf_counter(), count(1)
        told = {-(-len(waiting) * percent // 100) for percent in (10, 25, 50, 75)}

        def work(job: _Job) -> None:
            bar.update(task, description=" ".join(job.of))
            job.do()
            bar.advance(task)
            if (number := next(done)) in told:
                more = (time.perf_counter() - start) * (len(waiting) / number - 1)
                console.print(f"about {spoken(more)} more", style="dim", highlight=False)

        # orbax warns about layouts that don't matter on one host.
        warnings.simplefilter("ignore")
        side_by_side(work, waiting, lambda job: job.program)


def _evaluate(plan: Plan, cell: Cell) -> None:
    """Write a cell's file, unless it is there."""
    path = plan.folder / cell.path
    if cells.is_kept(path):
        return
    with timings.part("base states"):
        base, seconds = plan.bases.get(cell)
    budget, slow = plan.settings.budget, KNOWN[cell.learner].slow
    found = evaluation.evaluate(
        plan.learners[cell.learner, cell.family],
        base,
        seconds,
        plan.source.families[cell.family],
        plan.source.splits(cell.family, cell.replicate),
        Amount(
            test=budget.slow if slow else budget.test,
            validation=budget.slow if slow else None,
            sweep=budget.sweep if cell.replicate == 0 else 0,
            drift_alone=cell.world != plan.settings.worlds[0],
        ),
    )
    with timings.part("keeping"):
        cells.save(path, found)


def _ask_model(plan: Plan) -> None:
    """The language model's cells, one a family: it has neither base states nor replicates. One in
    which a call failed is asked again.
    """
    names = asking(plan.settings)
    if not names:
        return
    # What a file of replies lacks, it will lack again.
    may_reply = plan.settings.llm.source != "recorded"
    with open_model(plan.settings.llm) as model:
        assert model is not None, "settings without a model are refused"
        for name in names:
            for family in filter(KNOWN[name].can_handle, plan.source.families.values()):
                path = plan.folder / _model_cell(family.name, name).path
                lacking = cells.failures(cells.load(path)) if cells.is_kept(path) else None
                if lacking is None or (lacking and may_reply):
                    test = plan.source.splits(family.name, 0).test
                    few = samples.rows(test, slice(0, plan.settings.budget.slow))
                    found = evaluation.ask(model, family, few)
                    if lacking is None or cells.failures(found) < lacking:
                        cells.save(path, found)


def _model_cell(family: str, learner: str) -> Cell:
    return Cell(family, learner, NO_BASE, NO_BASE, 0)


def _growth_path(plan: Plan, family: str) -> Path:
    return plan.folder / "growth" / f"{family}.json"


@timings.part("growth")
def _grow(plan: Plan, cell: Cell) -> None:
    """Write how a cell's base state grew, unless the file is there."""
    path = _growth_path(plan, cell.family)
    if _grown(path) is not None:
        return
    learner = plan.learners[cell.learner, cell.family]
    initial, training, _ = keys(plan.settings.seeds(cell.replicate)[0])
    heard = plan.source.pretrain(cell.family, cell.world, cell.replicate)
    whole = heard.label.shape[0] // HISTORY * HISTORY
    if not whole:
        return
    first = veiled(samples.rows(heard, slice(0, whole)))
    history, _ = growth_history(learner, started(learner, initial), first, training, HISTORY)
    points = len(history.samples)
    samples_heard, neurons, slots = (
        tuple(np.asarray(counts).reshape(points, -1).sum(-1).tolist()) for counts in history
    )
    write_json(path, Growth(samples=samples_heard, neurons=neurons, slots=slots))


def _grown(path: Path) -> Growth | None:
    """What `_grow` wrote; None where nothing is there, or what is can't be read."""
    try:
        return Growth.model_validate_json(path.read_bytes()) if path.exists() else None
    except ValueError as error:
        _log.warning("%s can't be read (%s) and is made again", path, str(error).splitlines()[0])
        return None


def _export(source: Source, folder: Path) -> list[Path]:
    written: dict[str, dict[str, Path]] = {"test": {}, "pairs": {}}
    for name, family in source.families.items():
        if family.is_shown:
            continue  # in words its samples are those of another family
        splits = source.splits(name, 0)
        for split, of_split in (("test", splits.test), ("pairs", splits.pairs)):
            path = folder / "samples" / f"{name}.{split}.jsonl"
            written[split][name] = jsonl.write(path, family, of_split)
    files = [path for of_split in written.values() for path in of_split.values()]
    return [*files, *write_dataset(written, folder / "dataset")]


# --- handing it over


def _collected(plan: Plan) -> Collected:
    """All that was found, read back from the cells' files."""
    settings, source = plan.settings, plan.source
    arms = _arms(plan)
    replicates = range(max((len(arm.replicates) for arm in arms), default=0))
    generators = {settings.seeds(number)[1]: number for number in reversed(replicates)}
    drawn: dict[tuple[str, int], Asked] = {}

    def draw(of: tuple[str, int]) -> None:
        family, generator = of
        drawn[of] = Asked(generator, source.splits(family, generators[generator]).test)

    wanted = sorted((family, generator) for family in source.families for generator in generators)
    side_by_side(draw, wanted, lambda of: of[0])
    exposures: dict[tuple[str, str], Exposure] = {}
    for arm in arms:
        model = KNOWN[arm.learner].asks_model
        learner = None if model else plan.learners[arm.learner, arm.family]
        exposures[arm.family, arm.learner] = "context" if learner is None else learner.exposure
    paths = {family: _growth_path(plan, family) for family in source.families}
    return Collected(
        arms=arms,
        asked={
            family: [drawn[family, settings.seeds(number)[1]] for number in replicates]
            for family in source.families
        },
        exposures=exposures,
        growth={
            family: grown for family, path in paths.items() if (grown := _grown(path)) is not None
        },
        examples=[
            example
            for name, family in source.families.items()
            # Slow learners were asked the first few samples alone.
            for example in samples.examples(
                family, source.splits(name, 0).test, settings.budget.slow
            )
        ],
        chosen_bases=settings.learner.bases,
    )


def _arms(plan: Plan) -> list[Arm]:
    found: dict[tuple[str, str, str], dict[str, list[Found]]] = {}
    first, *others = plan.settings.worlds
    for cell in plan.cells:
        of_world = found.setdefault(cell[:3], {world: [] for world in plan.settings.worlds})
        of_world[cell.world].append(cells.load(plan.folder / cell.path))
    for name in asking(plan.settings):
        for family in filter(KNOWN[name].can_handle, plan.source.families.values()):
            cell = _model_cell(family.name, name)
            found[cell[:3]] = {first: [cells.load(plan.folder / cell.path)]}
    return [
        Arm(*of, worlds[first], {world: worlds.get(world, []) for world in others})
        for of, worlds in found.items()
    ]
