"""From what a study collected to its results: every arm's numbers, the verdict, the examples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from evidence.ruling import Ruling
from kubku import arms, thesis
from kubku.arms import Arm
from kubku.cells import Found
from kubku.frontier import Asked, outcomes
from kubku.learners.registry import KNOWN
from kubku.parts import Growth, Streaming
from kubku.protocol import LIMITS
from kubku.results import (
    BaseStateResults,
    Comparison,
    Example,
    Exposure,
    FamilyResults,
    LearnerResults,
    Manifest,
    Results,
)
from kubku.tasks import FAMILIES
from kubku.thesis import Standing, Thesis


@dataclass(frozen=True)
class Collected:
    """All that a study hands over to be assessed.

    Attributes:
      arms: every learner on every base state of every family.
      asked: by family, what each replicate was asked.
      exposures: by (family, learner), how it takes a sample in.
      growth: by family, of those in which it was counted.
      examples: samples in words, nobody's answers with them yet.
      chosen_bases: the base states that the study was confined to; None: all.
    """

    arms: Sequence[Arm]
    asked: Mapping[str, Sequence[Asked]]
    exposures: Mapping[tuple[str, str], Exposure]
    growth: Mapping[str, Growth]
    examples: Sequence[Example]
    chosen_bases: Sequence[str] | None

    def tests(self, arm: Arm) -> Sequence[Asked]:
        """What each of an arm's replicates was asked."""
        return self.asked[arm.family][: len(arm.replicates)]

    def cells(self) -> Iterator[Found]:
        """Every cell."""
        for arm in self.arms:
            yield from arm.replicates
            for elsewhere in arm.others.values():
                yield from elsewhere


def assess(collected: Collected, declared: Thesis, manifest: Manifest) -> Results:
    """The results.

    Args:
      collected: what the study found.
      declared: the thesis that is judged.
      manifest: what made them.
    """
    families = _families(collected)
    if not set(families) & set(declared.families):  # nothing that the thesis is about
        return Results(
            manifest=manifest,
            families=families,
            examples=tuple(_answered(collected, families)),
            warnings=tuple(_warnings(collected, families)),
        )
    comparisons = thesis.compare(declared, _standings(collected, declared, families))
    return Results(
        manifest=manifest,
        thesis=ruling(declared, comparisons, families),
        answer=thesis.answer(declared, comparisons),
        comparisons=tuple(comparisons),
        families=families,
        examples=tuple(_answered(collected, families)),
        warnings=tuple(_warnings(collected, families)),
    )


def _families(collected: Collected) -> dict[str, FamilyResults]:
    base_states: dict[str, dict[str, dict[str, BaseStateResults]]] = {}
    streaming: dict[str, dict[str, dict[str, Streaming]]] = {}
    for arm in collected.arms:
        tests = collected.tests(arm)
        of_family = base_states.setdefault(arm.family, {})
        of_family.setdefault(arm.learner, {})[arm.base] = arms.summary(arm, tests)
        if (streamed := arms.streaming(arm, tests)) is not None:
            streams = streaming.setdefault(arm.family, {})
            streams.setdefault(arm.learner, {})[arm.base] = streamed
    return {
        family: FamilyResults(
            learners={
                learner: LearnerResults(
                    base_states=of_learner,
                    best=_best(of_learner),
                    exposure=collected.exposures[family, learner],
                )
                for learner, of_learner in of_family.items()
            },
            streaming=streaming.get(family, {}),
            growth=collected.growth.get(family),
        )
        for family, of_family in base_states.items()
    }


def _best(base_states: Mapping[str, BaseStateResults]) -> str:
    """The base state with the highest mean KU at matched BKU on the validation split."""

    def on_validation(base: str) -> float:
        return float(np.mean([tuned.objective for tuned in base_states[base].tuned]))

    return max(base_states, key=on_validation)


def _compared(
    declared: Thesis, families: Mapping[str, FamilyResults]
) -> dict[tuple[str, str], str]:
    """By (family, learner), on which base state each learner of the thesis stands."""
    standing = {}
    for family in (name for name in families if name in declared.families):
        for learner, found in families[family].learners.items():
            base = declared.base if learner == declared.learner else found.best
            if learner in (declared.learner, *declared.against) and base in found.base_states:
                standing[family, learner] = base
    return standing


def _standings(
    collected: Collected, declared: Thesis, families: Mapping[str, FamilyResults]
) -> dict[str, dict[str, Standing]]:
    compared = _compared(declared, families)
    found: dict[str, dict[str, Standing]] = {}
    for arm in collected.arms:
        if compared.get((arm.family, arm.learner)) != arm.base:
            continue
        tests = collected.tests(arm)
        of_limits = {most: outcomes(arm.replicates, tests, most) for most in LIMITS}
        if all(of_limits.values()):
            induced = families[arm.family].learners[arm.learner].base_states[arm.base].induced_KU
            found.setdefault(arm.family, {})[arm.learner] = Standing(of_limits, induced)
    return found


def ruling(
    declared: Thesis, comparisons: Sequence[Comparison], families: Mapping[str, FamilyResults]
) -> Ruling:
    """The verdict from what results hold."""
    learnt = {
        (family, learner): families[family].learners[learner].base_states[base].induced_KU
        for (family, learner), base in _compared(declared, families).items()
    }
    wanted = [
        (family, learner)
        for family in declared.families
        for learner in (declared.learner, *declared.against)
        if KNOWN[learner].can_handle(FAMILIES[family])
    ]
    return thesis.judge(declared, comparisons, learnt, wanted)


def _answered(collected: Collected, families: Mapping[str, FamilyResults]) -> Iterator[Example]:
    """The examples with what each learner answered, from its best base state."""
    first = {(arm.family, arm.learner, arm.base): arm.replicates[0] for arm in collected.arms}
    for example in collected.examples:
        asked = len(example.queries)
        answers = {
            learner: first[example.family, learner, found.best]["answers"][example.row][:asked]
            for learner, found in families[example.family].learners.items()
        }
        yield Example(**dict(example) | {"answers": answers})


def _warnings(collected: Collected, families: Mapping[str, FamilyResults]) -> Iterator[str]:
    if collected.chosen_bases is not None:
        named = f"learner.bases=[{','.join(collected.chosen_bases)}]"
        yield f"{named}: every learner's best is the best of these alone"
    for family, found in families.items():
        for learner, of_learner in found.learners.items():
            for base, of_base in of_learner.base_states.items():
                for share, when in (
                    (of_base.audit, "when shown a wrong halo"),
                    (of_base.carried, "when samples come in another order"),
                    (of_base.split_read, "about entities with codes of the pretraining split"),
                ):
                    if share:
                        yield (
                            f"{learner} ({family}, {base}) answers otherwise {when}: "
                            f"{100 * share:.3g}% of queries"
                        )
