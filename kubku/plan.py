"""What a study is to do: its samples, learners, cells, base states, and kept settings."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import flax
import jax
import optax

from evidence.runtime.devices import at_once
from evidence.runtime.files import read_plain, target_digest, write_json
from evidence.runtime.language_models import decisive
from kubku import cells
from kubku.base_cache import BaseCache, code_digest
from kubku.base_states import trained_by
from kubku.cells import Cell
from kubku.halo import Learner, Sizes
from kubku.learners.registry import BATCH, KNOWN, make
from kubku.outer import outer
from kubku.samples import Source
from kubku.settings import Experiment
from kubku.tasks import FAMILIES, Family
from kubku.tasks.jsonl import FROM_FILE

# A resumed run may add learners and families; its cells depend on neither.
_NOT_IN_CELLS = {
    "learner",
    "task",
    "llm",
    "stage",
    "cache",
    "compilation_cache",
    "resume",
    "tracker",
    "timings",
}
_CELL_CODE = (
    "protocol.py",
    "audits.py",
    "measures.py",
    "scoring.py",
    "evaluation.py",
)
"""What cells are made by, beside what base states are."""


class Plan(NamedTuple):
    """What a study is to do.

    Attributes:
      settings: of the study.
      folder: where its cells are kept.
      source: of its samples.
      learners: by name and family; those that can't handle a family are missing there.
      cells: in the order in which they are wanted, language models' aside.
      bases: their base states.
    """

    settings: Experiment
    folder: Path
    source: Source
    learners: Mapping[tuple[str, str], Learner]
    cells: Sequence[Cell]
    bases: BaseCache


def prepared(settings: Experiment, folder: Path) -> Plan:
    """What a study in a folder is to do; nothing is drawn or made yet.

    Raises:
      ValueError: the user's samples can't be read, a learner can't be made, or none has a base
        state that was chosen; names them.
    """
    source = Source(settings)
    learners = _learners(settings, source.families)
    possible = list(cells.planned(settings, source.families, learners))
    wanted, there_are = settings.learner.bases, sorted({cell.base for cell in possible})
    for base in wanted or ():
        if base not in there_are:
            raise ValueError(
                f"learner.bases: none is called {base!r}; there are {', '.join(there_are)}"
            )
    chosen = [cell for cell in possible if wanted is None or cell.base in wanted]
    bases = BaseCache(settings, learners, source)
    return Plan(settings, folder, source, learners, chosen, bases)


def _learners(
    settings: Experiment, families: Mapping[str, Family]
) -> dict[tuple[str, str], Learner]:
    """Every learner for every family that it handles; of the same functions wherever it is the same
    program, so that compilations are shared.
    """
    made: dict[tuple[str, str], Learner] = {}
    training, target = settings.budget.training, settings.learner.target
    for name in settings.learner.names:
        entry = KNOWN[name]
        shared: dict[tuple[Sizes, bool], Learner] = {}
        for family in families.values() if not entry.asks_model else ():
            if entry.can_handle(family):
                of = family.sizes, family.is_shown
                if of not in shared or entry.of_family:
                    shared[of] = make(name, family, training, target=target)
                bases = trained_by(shared[of].bases, outer(name, family.name))
                made[name, family.name] = shared[of]._replace(bases=bases)
    return made


def wanting_gpu(settings: Experiment) -> dict[str, float]:
    """The chosen learners that want a GPU where there is none, and about how many minutes of a CPU
    core the longest of their base states take together: one of each replicate in each family.
    """
    if at_once(1) > 1:
        return {}
    training, found = settings.budget.training, {}
    families = [FAMILIES[name] for name in settings.task.families if name in FAMILIES]
    for name in settings.learner.names:
        entry = KNOWN[name]
        if entry.wants_gpu:
            base_states = settings.budget.replicates * sum(map(entry.can_handle, families))
            updates = training.updates * training.batch / BATCH
            found[name] = base_states * updates * entry.milliseconds / 60_000
    return found


def keep_settings(plan: Plan) -> None:
    """Keep the settings beside the cells; cells of other settings don't belong to these.

    Raises:
      ValueError: the folder's cells were made with other settings; names them.
    """
    settings, path = plan.settings, plan.folder / "settings.json"
    own = json.loads(settings.model_dump_json(exclude=_NOT_IN_CELLS))
    own["code"] = code_digest(*_CELL_CODE)
    own["versions"] = {one.__name__: one.__version__ for one in (jax, flax, optax)}
    # More or fewer replicates, or worlds to compare with, leave the other cells as they are.
    own["budget"].pop("base_seeds")
    own["worlds"] = own["worlds"][:1]
    # Learners and families may be added, but not another of one name.
    target = settings.learner.target
    for name in settings.learner.names:
        for family in plan.source.families:
            if how := outer(name, family):
                own[f"outer.{name}.{family}"] = list(how)
    if target is not None:
        own["learner.target"] = [target, target_digest(target)]
    for family in plan.source.families:
        if (digest := plan.source.digest(family)) is not None:
            own["task.path" if family == FROM_FILE else f"task.{family}"] = digest
    if asking(settings):
        own["llm"] = decisive(settings.llm)
    try:
        kept = read_plain(path) if path.exists() else {}
    except ValueError as error:
        raise ValueError(f"{error}; begin anew in another folder") from None
    other = [name for name in own if name in kept and kept[name] != own[name]]
    if other:
        raise ValueError(
            f"{plan.folder}: made with other settings of {', '.join(other)}; "
            f"give the same ones (code: that of kubku), or another folder"
        )
    write_json(path, {**kept, **own})


def asking(settings: Experiment) -> list[str]:
    """The learners that a language model answers for."""
    return [name for name in settings.learner.names if KNOWN[name].asks_model]
