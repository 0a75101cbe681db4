"""From cells to results: every number with its interval, the verdict, the examples."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import resources
from operator import itemgetter
from typing import Any, NamedTuple

import jax
import numpy as np
import yaml

from evidence import stats
from evidence.answers import Answer
from evidence.config import build
from evidence.runs import manifest
from evidence.stats import Measurement
from kubku import measures, protocol, thesis
from kubku.base_states import withheld
from kubku.halo import Kind, Samples
from kubku.measures import STEPS
from kubku.scoring import EPSILON
from kubku.settings import LANGUAGE_MODEL
from kubku.study import Cell, Study, load_cell

RESAMPLES = 1000
HISTOGRAM = np.linspace(0, 2, 17)
HALOS = {
    "L": ("literal", "literal_yes", "literal_no"),
    "E": ("entailed", "entailed_yes", "entailed_no"),
    "H": ("hallucination", "hallucination_yes"),
    "B": ("bias", "bias_harmful"),
}

Replicates = list[dict[str, Any]]
"""The cells of one learner on one base state, one a replicate."""


class Asked(NamedTuple):
    """What the cell of a replicate was asked, of which it may have been asked the first rows.

    Attributes:
      generator: the generator seed.
      samples: the test split.
      joint: bool[N, Q], `measures.joint`; None for samples without rules.
    """

    generator: int
    samples: Samples
    joint: np.ndarray | None


def _asked(study: Study, family: str, replicates: int) -> list[Asked]:
    return [_of_generator(study, family, study.seeds(number)[1]) for number in range(replicates)]


@cache
def _of_generator(study: Study, family: str, generator: int) -> Asked:
    samples = study.data(family, generator).test
    rules = study.family(family)
    joint = np.asarray(measures.joint(rules, samples)) if rules.reads else None
    return Asked(generator, samples, joint)


def collect(study: Study, configuration: Mapping[str, Any], wall_seconds: float) -> dict[str, Any]:
    """The results of a study whose cells are all there."""
    first = study.settings.worlds[0]
    cells: dict[tuple[str, str, str, str], Replicates] = defaultdict(list)
    for cell in study.cells():
        found = load_cell(study.folder / cell.path)
        cells[cell.family, cell.learner, cell.base, cell.world].append(found)
    for family in study.settings.task.families:
        path = study.folder / Cell(family, LANGUAGE_MODEL, "none", "none", 0).path
        if path.exists():
            cells[family, LANGUAGE_MODEL, "none", first] = [load_cell(path)]

    families: dict[str, Any] = {}
    for (family, learner, base, world), replicates in cells.items():
        if world != first:
            continue
        others: dict[str, Replicates] = {
            w: cells.get((family, learner, base, w), []) for w in study.settings.worlds[1:]
        }
        entry = families.setdefault(family, {"learners": {}, "streaming": {}})
        of_learner = entry["learners"].setdefault(learner, {"base_states": {}})
        tests = _asked(study, family, len(replicates))
        of_learner["base_states"][base] = summary(replicates, others, tests)
        streamed = streaming(replicates, tests)
        if streamed:
            entry["streaming"].setdefault(learner, {})[base] = streamed
    for name, entry in families.items():
        for learner in entry["learners"].values():
            learner["best"] = _best(learner["base_states"])
        grown = study.folder / "growth" / f"{name}.json"
        if grown.exists():
            entry["growth"] = json.loads(grown.read_text())

    results = {
        "manifest": manifest(
            configuration,
            [study.settings.seed],
            wall_seconds=wall_seconds,
            seconds_base=sum(r["note"]["seconds_base"] for rs in cells.values() for r in rs),
        ),
        "thesis": verdict(study, families, cells, first),
        "families": families,
        "examples": _answered(study, cells, families, first),
    }
    leaking = [
        f"{learner} ({family}, {base}) answers otherwise when shown a wrong halo: "
        f"{of_base['audit']:.0%} of queries"
        for family, found in families.items()
        for learner, of_learner in found["learners"].items()
        for base, of_base in of_learner["base_states"].items()
        if of_base["audit"] > 0
    ]
    return {**results, "warnings": leaking}


def schema() -> dict[str, Any]:
    """The JSON Schema of results.json."""
    return json.loads(resources.files("kubku").joinpath("results.schema.json").read_text())


def independent(groups: list[np.ndarray], tests: Sequence[Asked]) -> list[np.ndarray]:
    """What may count as replicates: base-state seeds, where all answer one generator seed's
    samples; else generator seeds, each averaged over the base states that share its samples.

    Args:
      groups: one [N, ...] a cell, or of the first cells alone.
      tests: what each cell was asked.
    """
    if len({test.generator for test in tests}) == 1:
        return groups
    of_seed: dict[int, list[np.ndarray]] = defaultdict(list)
    for group, test in zip(groups, tests, strict=False):
        of_seed[test.generator].append(group)
    return [np.mean(shared, axis=0) for shared in of_seed.values()]


def _mean(groups: list[np.ndarray], unit: str = "sample") -> Measurement:
    """The mean over units, then replicates; with one replicate, units are all there is."""
    if len(groups) == 1:
        return stats.cluster_bootstrap(groups[0], lambda t: t, unit, resamples=RESAMPLES)
    return stats.hierarchical_bootstrap(groups, lambda t: t, "replicate", resamples=RESAMPLES)


def _purity(groups: list[np.ndarray]) -> Measurement:
    """KU_avg / (KU_avg + BKU_avg + epsilon); groups are f64[N, 2]."""

    def statistic(table: np.ndarray) -> np.ndarray:
        return table[:, 0] / (table.sum(-1) + EPSILON)

    if len(groups) == 1:
        return stats.cluster_bootstrap(groups[0], statistic, "sample", resamples=RESAMPLES)
    return stats.hierarchical_bootstrap(groups, statistic, "replicate", resamples=RESAMPLES)


def summary(
    replicates: Replicates,
    others: Mapping[str, Replicates],
    tests: Sequence[Asked],
) -> dict[str, Any]:
    """All measurements of one learner on one base state of one family.

    Args:
      replicates: its cells.
      others: its cells in other worlds, by world.
      tests: what each cell was asked.
    """

    def of(name: str, when: str = "after") -> list[np.ndarray]:
        return independent([cell[f"{when}.{name}"] for cell in replicates], tests)

    def histogram(name: str) -> np.ndarray:
        scores = np.concatenate([cell[f"after.{name}"] for cell in replicates])
        return np.histogram(scores, HISTOGRAM)[0]

    def induced(name: str) -> list[np.ndarray]:
        return [a - b for a, b in zip(of(name), of(name, "before"), strict=True)]

    both = [np.stack(pair, -1) for pair in zip(of("ku"), of("bku"), strict=True)]
    halos = {
        kind: {
            **{name: _mean(of(name)) for name in names},
            "before": _mean(of(names[0], "before")),
        }
        for kind, names in HALOS.items()
    }
    if tests[0].joint is not None:
        halos["E"] |= _apart(replicates, tests, ("one_fact", "several_facts"), _entailed)
    halos["H"] |= _apart(replicates, tests, ("trained", "withheld"), _traps)
    found = {
        "KU_avg": _mean(of("ku")),
        "BKU_avg": _mean(of("bku")),
        "BKU_yes": _mean(of("bku_yes")),
        "knowledge_purity": _purity(both),
        "induced_KU": _mean(induced("ku")),
        "induced_BKU": _mean(induced("bku")),
        "before": {"KU_avg": _mean(of("ku", "before")), "BKU_avg": _mean(of("bku", "before"))},
        "net_KU": _mean([pair[:, 0] - pair[:, 1] for pair in both]),
        "balanced_accuracy": _mean(of("balanced")),
        "abstained": _mean(of("abstained")),
        # Always YES, and always NO, get half of L and of E right.
        "corrected_L": _mean([2 * x - 1 for x in of("literal")]),
        "corrected_E": _mean([2 * x - 1 for x in of("entailed")]),
        "halos": halos,
        "histogram": {
            "edges": HISTOGRAM,
            "KU": histogram("ku"),
            "BKU": histogram("bku"),
        },
        "by_k": _by_k(replicates, tests),
        "bias_drift": _drift(replicates, others, tests),
        "audit": float(max(cell["audit"] for cell in replicates)),
        "tuned": [cell["note"] for cell in replicates],
        "samples": len(both[0]),
        "samples_per_second": float(
            np.median([len(cell["answers"]) / cell["seconds_exposed"] for cell in replicates])
        ),
    }
    return found


def _entailed(test: Asked, answers: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Right answers to what is entailed; apart what takes several facts together, which no base
    state has met: what one settles it has met among other facts.
    """
    asked = np.asarray((test.samples.kind == Kind.ENTAILED) & test.samples.asked)
    assert test.joint is not None
    return asked, test.joint, answers == np.asarray(test.samples.gold)


def _traps(test: Asked, answers: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Wrong answers to hallucination traps; apart those about attributes withheld from training."""
    asked = np.asarray((test.samples.kind == Kind.HALLUCINATION) & test.samples.asked)
    return asked, np.asarray(withheld(test.samples)), answers != Answer.UNKNOWN


def _apart(
    replicates: Replicates,
    tests: Sequence[Asked],
    names: tuple[str, str],
    of: Callable[[Asked, np.ndarray], tuple[np.ndarray, np.ndarray, np.ndarray]],
) -> dict[str, Measurement]:
    """Two shares of answers, over the queries asked: where not `apart`, and where `apart`."""
    found = {}
    for name, wanted in zip(names, (False, True), strict=True):
        shares = []
        for cell, test in zip(replicates, tests, strict=True):
            answers = cell["answers"]
            first = jax.tree.map(lambda leaf: leaf[: len(answers)], test[1:])  # noqa: B023
            asked, apart, counted = of(Asked(test.generator, *first), answers)
            these = asked & (apart == wanted)
            some = these.any(-1)
            shares.append((counted & these)[some].sum(-1) / these[some].sum(-1))
        if all(len(share) for share in shares):
            found[name] = _mean(independent(shares, tests))
    return found


def _by_k(replicates: Replicates, tests: Sequence[Asked]) -> list[dict[str, Any]]:
    if "steps.ku" not in replicates[0]:
        return []

    def mean(name: str, at: int) -> Measurement:
        swept = [cell[name][at] for cell in replicates if name in cell]
        return _mean(independent(swept, tests))

    return [
        {"K": steps, "KU_avg": mean("steps.ku", at), "BKU_avg": mean("steps.bku", at)}
        for at, steps in enumerate(STEPS)
    ]


def _drift(
    replicates: Replicates, others: Mapping[str, Replicates], tests: Sequence[Asked]
) -> dict[str, Any]:
    """Flip rate and signed drift; for another world the difference of the signed drifts."""
    if "flips" not in replicates[0]:
        return {}

    def mean(drifts: list[np.ndarray]) -> Measurement:
        return _mean(independent(drifts, tests))

    found: dict[str, Any] = {
        name: mean([cell[name] for cell in replicates]) for name in ("flips", "signed")
    }
    for world, elsewhere in others.items():
        if elsewhere:
            paired = zip(replicates, elsewhere, strict=False)  # the first replicates alone
            found[f"signed_less_{world}"] = mean([a["signed"] - b["signed"] for a, b in paired])
    return found


def streaming(replicates: Replicates, tests: Sequence[Asked]) -> dict[str, Any]:
    """Gains along streams and what is left of them later; streams are the unit."""
    if "stream.after.ku" not in replicates[0]:
        return {}

    def mean(of: Callable[[Mapping[str, Any]], np.ndarray]) -> Measurement:
        return _mean(independent([of(cell).mean(1) for cell in replicates], tests), "stream")

    def gain(name: str) -> Measurement:
        return mean(lambda cell: cell[f"stream.after.{name}"] - cell[f"stream.before.{name}"])

    def by_time(name: str) -> np.ndarray:
        return np.mean([cell[f"stream.after.{name}"].mean(0) for cell in replicates], 0)

    kept = [lag for lag in protocol.LAGS if f"stream.lag{lag}.ku" in replicates[0]]
    return {
        "delta_KU": gain("ku"),
        "delta_BKU": gain("bku"),
        "KU_by_time": by_time("ku"),
        "BKU_by_time": by_time("bku"),
        "retention": {
            "0": mean(itemgetter("stream.after.ku")),
            **{str(lag): mean(itemgetter(f"stream.lag{lag}.ku")) for lag in kept},
        },
    }


def _best(base_states: Mapping[str, Any]) -> str:
    """The base state with the highest mean KU - BKU on the validation split."""

    def on_validation(base: str) -> float:
        return float(np.mean([note["objective"] for note in base_states[base]["tuned"]]))

    return max(base_states, key=on_validation)


def verdict(
    study: Study,
    families: Mapping[str, Any],
    cells: Mapping[tuple[str, str, str, str], Replicates],
    world: str,
) -> dict[str, Any]:
    """The thesis judged."""
    text = resources.files("conf").joinpath("thesis/kubku.yaml").read_text()
    declared = build(thesis.Thesis, yaml.safe_load(text), "thesis")
    outcomes: dict[str, dict[str, list[np.ndarray]]] = {}
    for family, found in families.items():
        if family not in declared.families:
            continue
        outcomes[family] = {}
        for learner, of_learner in found["learners"].items():
            base = declared.base if learner == declared.learner else of_learner["best"]
            if (
                learner in (declared.learner, *declared.against)
                and base in of_learner["base_states"]
            ):
                scored = [
                    np.stack([cell["after.ku"], cell["after.bku"]], -1).astype(np.float64)
                    for cell in cells[family, learner, base, world]
                ]
                tests = _asked(study, family, len(scored))
                outcomes[family][learner] = independent(scored, tests)
    return thesis.judge(declared, outcomes)


def _answered(
    study: Study,
    cells: Mapping[tuple[str, str, str, str], Replicates],
    families: Mapping[str, Any],
    world: str,
) -> list[dict[str, Any]]:
    """The examples with what each learner answered, from its best base state."""
    examples = study.examples()
    for example in examples:
        found = families[example["family"]]["learners"]
        example["answers"] = {
            learner: cells[example["family"], learner, of_learner["best"], world][0]["answers"][
                example["row"]
            ][: len(example["queries"])]
            for learner, of_learner in found.items()
        }
    return examples
