"""From cells to results: every number with its interval, the verdict, the examples."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import resources
from itertools import product
from operator import itemgetter
from typing import Any, NamedTuple

import jax
import numpy as np
import yaml

from evidence import stats
from evidence.answers import Answer
from evidence.measurement import Measurement
from evidence.runtime.config import build
from evidence.runtime.devices import side_by_side
from kubku import measures, protocol, thesis
from kubku.base_states import withheld
from kubku.cells import Cell, load
from kubku.halo import BASE, Kind, Samples
from kubku.measures import STEPS
from kubku.results import Manifest
from kubku.scoring import EPSILON
from kubku.settings import LANGUAGE_MODEL
from kubku.study import Study

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
    return [
        _of_generator(study, family, study.settings.seeds(number)[1])
        for number in range(replicates)
    ]


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
        found = load(study.folder / cell.path)
        cells[cell.family, cell.learner, cell.base, cell.world].append(found)
    for family in study.settings.task.families:
        path = study.folder / Cell(family, LANGUAGE_MODEL, "none", "none", 0).path
        if path.exists():
            cells[family, LANGUAGE_MODEL, "none", first] = [load(path)]

    asked = {
        (family, study.settings.seeds(replicate)[1])
        for (family, *_), replicates in cells.items()
        for replicate in range(len(replicates))
    }
    side_by_side(lambda of: _of_generator(study, *of), sorted(asked), lambda of: of[0])

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
        for learner, of_learner in entry["learners"].items():
            of_learner["best"] = _best(of_learner["base_states"])
            model = learner == LANGUAGE_MODEL
            of_learner["exposure"] = "context" if model else study.learner(learner, name).exposure
        grown = study.folder / "growth" / f"{name}.json"
        if grown.exists():
            entry["growth"] = json.loads(grown.read_text())

    results = {
        "manifest": Manifest.now(
            configuration,
            [study.settings.seed],
            wall_seconds=wall_seconds,
            seconds_base=sum(r["note"]["seconds_base"] for rs in cells.values() for r in rs),
            # A run may be gone on with elsewhere.
            cells_made_on=sorted({r["note"]["made_on"] for rs in cells.values() for r in rs}),
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
        if of_base["audit"]
    ]
    warnings = leaking
    if (chosen := study.settings.learner.bases) is not None:
        named = f"learner.bases=[{','.join(chosen)}]"
        warnings = [f"{named}: every learner's best is the best of these alone", *leaking]
    return {**results, "warnings": warnings}


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
    if crossed(tests):
        return groups
    of_seed: dict[int, list[np.ndarray]] = defaultdict(list)
    for group, test in zip(groups, tests, strict=False):
        of_seed[test.generator].append(group)
    return [np.mean(shared, axis=0) for shared in of_seed.values()]


def crossed(tests: Sequence[Asked]) -> bool:
    """Whether all cells were asked the same samples."""
    return len({test.generator for test in tests}) == 1


def _mean(groups: list[np.ndarray], tests: Sequence[Asked], unit: str = "sample") -> Measurement:
    """The mean over units, then over what may count as replicates; with one, units are all."""
    return _statistic(groups, tests, lambda table: table, unit)


def _statistic(
    groups: list[np.ndarray],
    tests: Sequence[Asked],
    statistic: Callable[[np.ndarray], np.ndarray],
    unit: str = "sample",
) -> Measurement:
    groups = independent(groups, tests)
    if len(groups) == 1:
        return stats.cluster_bootstrap(groups[0], statistic, unit, resamples=RESAMPLES)
    return stats.hierarchical_bootstrap(
        groups, statistic, "replicate", crossed=crossed(tests), resamples=RESAMPLES
    )


def _purity(table: np.ndarray) -> np.ndarray:
    """KU_avg / (KU_avg + BKU_avg + epsilon) of f64[resamples, 2]."""
    return table[:, 0] / (table.sum(-1) + EPSILON)


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
        return [cell[f"{when}.{name}"] for cell in replicates]

    def mean(groups: list[np.ndarray]) -> Measurement:
        return _mean(groups, tests)

    def histogram(name: str) -> np.ndarray:
        return np.histogram(np.concatenate(of(name)), HISTOGRAM)[0]

    def induced(name: str) -> list[np.ndarray]:
        return [a - b for a, b in zip(of(name), of(name, "before"), strict=True)]

    both = [np.stack(pair, -1) for pair in zip(of("ku"), of("bku"), strict=True)]
    halos = {
        kind: {
            **{name: mean(of(name)) for name in names},
            "before": mean(of(names[0], "before")),
        }
        for kind, names in HALOS.items()
    }
    for kind, counted, parts in _PARTS:
        halos[kind] |= _apart(replicates, tests, kind, counted, parts)
    return {
        "KU_avg": mean(of("ku")),
        "BKU_avg": mean(of("bku")),
        "BKU_yes": mean(of("bku_yes")),
        "knowledge_purity": _statistic(both, tests, _purity),
        "induced_KU": mean(induced("ku")),
        "induced_BKU": mean(induced("bku")),
        "by_replicate": {
            "KU": [float(x.mean()) for x in of("ku")],
            "BKU": [float(x.mean()) for x in of("bku")],
        },
        "before": {"KU_avg": mean(of("ku", "before")), "BKU_avg": mean(of("bku", "before"))},
        "net_KU": mean([pair[:, 0] - pair[:, 1] for pair in both]),
        "balanced_accuracy": mean(of("balanced")),
        "abstained": mean(of("abstained")),
        # Always YES, and always NO, get half of L and of E right.
        "corrected_L": mean([2 * x - 1 for x in of("literal")]),
        "corrected_E": mean([2 * x - 1 for x in of("entailed")]),
        "halos": halos,
        "histogram": {
            "edges": HISTOGRAM,
            "KU": histogram("ku"),
            "BKU": histogram("bku"),
        },
        "by_k": _by_k(replicates, tests),
        "bias_drift": _drift(replicates, others, tests),
        "audit": _audited(replicates),
        "tuned": [cell["note"] for cell in replicates],
        "samples": len(both[0]),
        "samples_per_second": float(
            np.median([len(cell["answers"]) / cell["seconds_exposed"] for cell in replicates])
        ),
    }


def _audited(replicates: Replicates) -> float | None:
    """The worst audit; None where there was none (a language model is never shown an answer)."""
    worst = max(cell["audit"] for cell in replicates)
    return None if np.isnan(worst) else float(worst)


def _stranger(test: Asked) -> np.ndarray:
    """About somebody whom the sample isn't about, bool[N, Q]."""
    return np.asarray(test.samples.query.entity != test.samples.exposure.entity[:, :1])


def _derived(test: Asked) -> np.ndarray:
    """About what only a rule could settle, bool[N, Q]."""
    return np.asarray(test.samples.query.attribute >= BASE)


def _joint(test: Asked) -> np.ndarray:
    """Settled by several facts together, which no base state has met: what one fact settles it has
    met among other facts.
    """
    assert test.joint is not None
    return test.joint


def _right(test: Asked, answers: np.ndarray) -> np.ndarray:
    return answers == np.asarray(test.samples.gold)


def _answered_at_all(test: Asked, answers: np.ndarray) -> np.ndarray:
    return answers != Answer.UNKNOWN


Part = Callable[[Asked], np.ndarray]
_PARTS: tuple[tuple[str, Callable[[Asked, np.ndarray], np.ndarray], dict[str, Part]], ...] = (
    ("E", _right, {"one_fact": lambda t: ~_joint(t), "several_facts": _joint}),
    (
        "H",
        _answered_at_all,
        {
            "trained": lambda t: ~np.asarray(withheld(t.samples)),
            "withheld": lambda t: np.asarray(withheld(t.samples)),
            "unstated": lambda t: ~_derived(t) & ~_stranger(t),
            "undecided": lambda t: _derived(t) & ~_stranger(t),
            "stranger": _stranger,
        },
    ),
    ("B", _answered_at_all, {"unstated": lambda t: ~_derived(t), "undecided": _derived}),
)
"""Parts of halos: the share of answers that count, among queries of a kind for which it holds."""
_NUMBER = {"E": Kind.ENTAILED, "H": Kind.HALLUCINATION, "B": Kind.BIAS}


def _apart(
    replicates: Replicates,
    tests: Sequence[Asked],
    kind: str,
    counted: Callable[[Asked, np.ndarray], np.ndarray],
    parts: Mapping[str, Part],
) -> dict[str, Measurement]:
    found = {}
    for name, part in parts.items():
        if tests[0].joint is None and name not in ("trained", "withheld"):
            continue  # samples without rules: nothing is known of what settles them
        shares = []
        for cell, test in zip(replicates, tests, strict=True):
            answers = cell["answers"]
            asked = jax.tree.map(lambda leaf: leaf[: len(answers)], test[1:])  # noqa: B023
            first = Asked(test.generator, *asked)
            these = np.asarray((first.samples.kind == _NUMBER[kind]) & first.samples.asked)
            these = these & part(first)
            some = these.any(-1)
            shares.append((counted(first, answers) & these)[some].sum(-1) / these[some].sum(-1))
        if all(len(share) for share in shares):
            found[name] = _mean(shares, tests)
    return found


def _by_k(replicates: Replicates, tests: Sequence[Asked]) -> list[dict[str, Any]]:
    if "steps.ku" not in replicates[0]:
        return []

    def mean(name: str, at: int) -> Measurement:
        return _mean([cell[name][at] for cell in replicates if name in cell], tests)

    return [
        {"K": steps, "KU_avg": mean("steps.ku", at), "BKU_avg": mean("steps.bku", at)}
        for at, steps in enumerate(STEPS)
    ]


def _drift(
    replicates: Replicates, others: Mapping[str, Replicates], tests: Sequence[Asked]
) -> dict[str, Any]:
    """Flip rate and signed drift; for another world the differences, of one base state each."""
    if "flips" not in replicates[0]:
        return {}
    found: dict[str, Any] = {
        name: _mean([cell[name] for cell in replicates], tests, "pair")
        for name in ("flips", "signed")
    }
    for world, elsewhere in others.items():
        # The first replicates alone: pairs are all that is resampled, and the interval says
        # nothing about other base states of these worlds.
        for name, there in product(("flips", "signed"), elsewhere[:1]):
            found[f"{name}_less_{world}"] = stats.cluster_bootstrap(
                replicates[0][name] - there[name],
                lambda table: table,
                "pair, of one base state a world",
                resamples=RESAMPLES,
            )
    return found


def streaming(replicates: Replicates, tests: Sequence[Asked]) -> dict[str, Any]:
    """Gains along streams and what is left of them later; streams are the unit.

    `retention`: for each lag KU and BKU about a sample so much later, and by how much KU has
    changed since it was learnt (`KU_since`), over the same samples.
    """
    if "stream.after.ku" not in replicates[0]:
        return {}

    def mean(of: Callable[[Mapping[str, Any]], np.ndarray]) -> Measurement:
        return _mean([of(cell).mean(1) for cell in replicates], tests, "stream")

    def gain(name: str) -> Measurement:
        return mean(lambda cell: cell[f"stream.after.{name}"] - cell[f"stream.before.{name}"])

    def by_time(name: str) -> np.ndarray:
        return np.mean([cell[f"stream.after.{name}"].mean(0) for cell in replicates], 0)

    def since(lag: int) -> Measurement:
        return mean(lambda cell: cell[f"stream.lag{lag}.ku"] - cell["stream.after.ku"][:, :-lag])

    kept = [lag for lag in protocol.LAGS if f"stream.lag{lag}.ku" in replicates[0]]
    return {
        "delta_KU": gain("ku"),
        "delta_BKU": gain("bku"),
        "KU_by_time": by_time("ku"),
        "BKU_by_time": by_time("bku"),
        "retention": {
            str(lag): {
                "KU": mean(itemgetter(f"stream.lag{lag}.ku")),
                "BKU": mean(itemgetter(f"stream.lag{lag}.bku")),
                "KU_since": since(lag),
            }
            for lag in kept
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
    return thesis.judge(declared, outcomes, crossed=study.settings.budget.generator_seeds == 1)


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
