"""The thesis on completeness, as conditions stated before a run, and what a run says of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import yaml

from epistemic.completeness.models import role_of
from epistemic.completeness.results import BreakEven, Completeness, Point
from evidence import Condition, Ruling, rule
from evidence.ruling import State, enough_replicates, state_of
from evidence.runtime.config import Settings, build, settings_folder


class Thesis(Settings):
    """What `conf/thesis/epistemic_completeness.yaml` states.

    Attributes:
      statement: the thesis in a sentence.
      price: of a false answer.
      wrong: share of wrong triples.
      pays_at: the share of triples kept at which licensing must pay every model in every domain.
      loses_from: the share from which on it may not lose, for any.
    """

    statement: str
    price: float
    wrong: float
    pays_at: float
    loses_from: float


def load_thesis() -> Thesis:
    """The thesis as configured."""
    path = settings_folder() / "thesis" / "epistemic_completeness.yaml"
    return build(Thesis, yaml.safe_load(path.read_text("utf-8")), at="thesis")


def judge(thesis: Thesis, found: Completeness) -> Ruling:
    """The verdict on a sweep.

    There is none where the sweep lacks the thesis' price, share wrong or shares kept, or has fewer
    than three draws. Falsified: some model loses by a licence at every share kept from `loses_from`
    on, surely. Supported: every model gains at `pays_at`, surely.
    """
    points = [
        point
        for point in found.points
        if role_of(point.model) == "ranked"
        and (point.price, point.wrong) == (thesis.price, thesis.wrong)
    ]
    at = sorted((p for p in points if p.keep == thesis.pays_at), key=_gain)
    late = [point for point in points if point.keep >= thesis.loses_from]
    tried = Condition(
        name=f"price {thesis.price:g}, {thesis.wrong:.0%} of triples wrong",
        role="requires",
        wanted=f"tried, with {thesis.pays_at:.0%}, and with {thesis.loses_from:.0%} or more, kept",
        state="met" if at and late else "refuted",
    )
    if tried.state == "refuted":
        return rule(thesis.statement, [tried])
    enough = enough_replicates(min(size.draws for size in found.sizes), "draw")
    ends = {(end.domain, end.model): end for end in found.break_even if _is_meant(thesis, end)}
    return rule(
        thesis.statement,
        [
            tried,
            enough,
            *_losing(thesis, late),
            *(_paying(thesis, point, ends[point.domain, point.model]) for point in at),
        ],
    )


def _gain(point: Point) -> float:
    value = point.gain.value
    return float("-inf") if value is None else value


def _is_meant(thesis: Thesis, end: BreakEven) -> bool:
    return (end.price, end.wrong) == (thesis.price, thesis.wrong)


def _paying(thesis: Thesis, point: Point, end: BreakEven) -> Condition:
    """The break-even lies below `pays_at`: at that share the gain is above 0."""
    return Condition(
        name=f"gain of {point.model} on {point.domain} with {thesis.pays_at:.0%} kept",
        role="supports",
        wanted="above 0",
        state=state_of(point.gain, above=0),
        measured={"gain": point.gain, "break-even": end.keep},
    )


def _losing(thesis: Thesis, points: Sequence[Point]) -> Iterator[Condition]:
    """Each model's gains at `loses_from` and more, the worst model first."""
    groups: dict[tuple[str, str], list[Point]] = {}
    for point in points:
        groups.setdefault((point.domain, point.model), []).append(point)
    for (domain, model), group in sorted(groups.items(), key=lambda item: max(map(_gain, item[1]))):
        states = {state_of(point.gain, below=0) for point in group}
        state: State = states.pop() if len(states) == 1 else "undetermined"
        yield Condition(
            name=f"gain of {model} on {domain} with {thesis.loses_from:.0%} kept and more",
            role="falsifies",
            wanted="below 0",
            state="refuted" if "refuted" in states else state,
            measured={f"{point.keep:.0%} kept": point.gain for point in group},
        )
