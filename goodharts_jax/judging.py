"""A policy from outside in our judge: continuous survival, in a table with scripts or with ours."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax

from goodharts_jax import named
from goodharts_jax.interop.policies import Outside, as_policy
from goodharts_jax.modes import Mode
from goodharts_jax.policies import Policy
from goodharts_jax.seekers import SHOWN, scripted_policies

if TYPE_CHECKING:
    from goodharts_jax.results import ModeResults, Results
    from goodharts_jax.settings import Experiment


def judge(
    policy: Any,
    *overrides: str,
    mode: str | Mode | None = None,
    name: str = "policy",
    beside: str | Path | None = None,
    folder: str | Path | None = None,
) -> Results:
    """Follow a policy as the experiment follows its own, and put it as a row beside others.

    Without `beside` these are the scripts that every table has.

    Args:
      policy: whatever `interop.as_policy` takes; or a list of such, as of several seeds of a
        training, and each is one run: intervals are then over trainings, and else over the worlds
        of several seeds.
      *overrides: settings as on the command line, such as "budget=smoke" or "world=reference".
      mode: through which the policy perceives; see `interop.as_policy`.
      name: of the row.
      beside: output folder of an experiment. The policy lives in the same worlds, for as long, from
        the same seeds, and the experiment's rows stand beside it.
      folder: where results, replay and page go; None writes nothing.

    Raises:
      ValueError: it is no policy, a setting is wrong, or the name is taken.
    """
    from goodharts_jax import assessment
    from goodharts_jax import results as kept
    from goodharts_jax.settings import read

    started = time.perf_counter()
    theirs = kept.Results.load(beside) if beside is not None else None
    if theirs is not None and overrides:
        raise ValueError(f"{overrides[0]}: beside={beside} goes with its own settings")
    settings = read(theirs.manifest.configuration) if theirs else named.experiment(*overrides)
    if not (given := policy if isinstance(policy, list) else [policy]):
        raise ValueError("policy=[]: at least one policy is needed")
    policies = [as_policy(one, mode) for one in given]
    interest = settings.interestingness
    scripts = scripted_policies(interest.food, interest.poison) if theirs is None else {}
    rows = dict(theirs.modes) if theirs else {}
    if name in {*rows, *scripts}:
        raise ValueError(f"name={name}: another row is called so; give yours its own")
    # One policy lives in the worlds of all seeds, several in those of one each.
    alone = len(policies) == 1
    seeds = settings.seeds_of(name) if alone else [settings.seed + i for i in range(len(policies))]
    found = _tabulated(settings, name, policies, scripts, seeds)
    manifest = kept.Manifest.now(
        settings,
        seeds,
        survival_horizon=settings.horizon,
        wall_seconds={"total": round(time.perf_counter() - started, 2)},
        joined=() if beside is None else (str(beside), name),
    )
    results = assessment.of_modes(manifest, rows | found)
    if folder is not None:
        replay = None if beside is None else Path(beside) / "replay.json"
        shown = {name: policies[0]} | {other: scripts[other] for other in SHOWN if other in scripts}
        _write(results, settings, shown, Path(folder), replay)
    return results


def _tabulated(
    settings: Experiment,
    name: str,
    policies: list[Outside],
    scripts: dict[str, Policy],
    seeds: list[int],
) -> dict[str, ModeResults]:
    """Rows of the table: the policies' runs as one, and each script."""
    from goodharts_jax import assessment, evaluation
    from goodharts_jax.evaluation import Candidate

    world = settings.evaluation_world.build()
    own = [seeds] if len(policies) == 1 else [[seed] for seed in seeds]
    candidates = {
        f"{name} {i}": Candidate(one, None, None, theirs, whole=True)
        for i, (one, theirs) in enumerate(zip(policies, own, strict=True))
    }
    candidates |= {other: Candidate(script, None, None, seeds) for other, script in scripts.items()}
    evaluator = evaluation.make_evaluator(
        settings.plan.network,
        world,
        candidates,
        num_worlds=settings.budget.evaluation_worlds,
        steps_per_world=settings.budget.steps_per_world,
    )
    counted = evaluation.evaluate(evaluator, candidates)
    mine = [table for i in range(len(policies)) for table in counted.pop(f"{name} {i}")]
    counted = {name: mine, **counted}
    return assessment.tabulate(
        counted,
        {},
        {row: seeds for row in counted},
        world,
        horizon=settings.horizon,
        interestingness=settings.interestingness.model_dump(),
    )


def _write(
    results: Results,
    settings: Experiment,
    shown: dict[str, Policy],
    folder: Path,
    replay: Path | None,
) -> None:
    """Results, replay and page."""
    from evidence.runtime import files
    from goodharts_jax import assessment, report
    from goodharts_jax.replay import Replay, record_scripts

    key, world = jax.random.key(settings.seed), settings.evaluation_world.build()
    if replay is None:
        recorded = record_scripts(shown, world, key)
    elif replay.exists():
        others = Replay.model_validate_json(replay.read_text("utf-8"))
        mine = record_scripts(shown, world, key, steps=others.steps)
        recorded = others.model_copy(update={"modes": others.modes | mine.modes})
    else:
        recorded = None
    results.save(folder)
    if recorded is not None:
        plain = files.plain(recorded)
        files.write_text(folder / "replay.json", json.dumps(plain, allow_nan=False))
    report.write(folder, full=len(assessment.own(results.modes)) > 2)
