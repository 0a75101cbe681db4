"""The thesis, as conditions stated before a run, and what a run says of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

import yaml

from epistemic.results import Four, Ratio, SystemResults
from evidence import Condition, Measurement
from evidence.ruling import State, enough_replicates, state_of
from evidence.runtime.config import Settings, build, settings_folder

Range = tuple[float, float]


class Thesis(Settings):
    """What `conf/thesis/epistemic.yaml` states.

    Attributes:
      statement: the thesis in a sentence.
      convention: whose FAR-NE and LA are compared.
      licensed, unlicensed: the systems compared: one model, with the licence and without.
      linked: that with a licence that must find its claims.
      largest_loss: of LA, that the licence may cost.
      largest_error_rate: share of failed calls up to which a system is judged.
      ideal: the range of each metric that an ideal system stays in, ends excluded inside [0, 1].
      expected: by system, ranges that were expected in advance.
    """

    statement: str
    convention: Literal["seed", "strict", "published"]
    licensed: str
    unlicensed: str
    linked: str
    largest_loss: float
    largest_error_rate: float
    ideal: dict[str, Range]
    expected: dict[str, dict[str, Range]]


def load_thesis() -> Thesis:
    """The thesis as configured."""
    text = (settings_folder() / "thesis" / "epistemic.yaml").read_text("utf-8")
    return build(Thesis, yaml.safe_load(text), at="thesis")


def is_ideal(thesis: Thesis, four: Four[Ratio], error_rate: float | None) -> bool:
    """Whether a system's values lie inside every ideal range, with few enough failed calls.

    Args:
      four: the metrics; one that is undefined is not ideal.
      error_rate: share of failed calls, or None where none was made.
    """
    if error_rate is None or error_rate > thesis.largest_error_rate:
        return False
    return all(meets(thesis, name, four[name].value) for name in thesis.ideal)


def meets(thesis: Thesis, metric: str, value: float | None) -> bool:
    """Whether a value lies inside its ideal range.

    '> 0.90' and '< 0.10': an end counts only where it is the end of the scale.
    """
    low, high = thesis.ideal[metric]
    return value is not None and (value > low or low == 0) and (value < high or high == 1)


class Expectation(NamedTuple):
    """What was expected of a system in advance, beside what was measured.

    Attributes:
      system, metric: names.
      low, high: the range expected.
      measured: under the seed convention.
      standing: "inside", "below" or "above" where the whole interval is; else "undetermined".
    """

    system: str
    metric: str
    low: float
    high: float
    measured: Ratio
    standing: Literal["inside", "below", "above", "undetermined"]


def expectations(thesis: Thesis, systems: Mapping[str, SystemResults]) -> list[Expectation]:
    """Every range that the experiment's description states in advance, of the systems that ran:
    RAG's, the raw model's, and of licensed systems the ideal one's.
    """
    stated = {**thesis.expected, **dict.fromkeys((thesis.licensed, thesis.linked), thesis.ideal)}
    return [
        Expectation(system, metric, low, high, found, standing(found, low, high))
        for system, ranges in stated.items()
        if system in systems
        for metric, (low, high) in ranges.items()
        for found in [systems[system].conventions.seed[metric]]
    ]


def standing(
    found: Measurement, low: float, high: float
) -> Literal["inside", "below", "above", "undetermined"]:
    """Where an interval lies beside a range."""
    if found.low is None or found.high is None:
        return "undetermined"
    if found.high < low:
        return "below"
    if found.low > high:
        return "above"
    return "inside" if low <= found.low and found.high <= high else "undetermined"


def conditions(
    thesis: Thesis, gaps: Four[Measurement] | None, error_rates: Mapping[str, Ratio]
) -> tuple[Condition, ...]:
    """The conditions of the thesis, for `evidence.rule`.

    There is no verdict where a model was not asked, too many calls failed, or fewer than three
    subjects tell. Supported: FAR-NE falls, and LA falls by at most `largest_loss`, both by the
    nearer end of the paired interval. Falsified: the interval of FAR-NE lies at or above 0, or that
    of LA below -`largest_loss`.

    Args:
      gaps: licensed minus unlicensed; None where a model was not asked.
      error_rates: share of failed calls of both systems, by name.
    """
    pair = f"{thesis.licensed} and {thesis.unlicensed}"
    asked = Condition(
        name="a language model",
        role="requires",
        wanted=f"asked by {pair}" + (" (no language model was asked)" if gaps is None else ""),
        state="refuted" if gaps is None else "met",
    )
    if gaps is None:
        return (asked,)
    far, la, least = gaps.FAR_NE, gaps.LA, -thesis.largest_loss
    falls, lost = state_of(far, below=0), state_of(la, below=least)
    metric = f"{{}} of {thesis.licensed} minus {thesis.unlicensed}"
    return (
        asked,
        _calls(thesis, pair, error_rates),
        enough_replicates(min(far.n, la.n), "subject"),
        _gap(metric.format("FAR-NE"), "falsifies", "at or above 0", _OPPOSITE[falls], far),
        _gap(metric.format("LA"), "falsifies", f"below {least:g}", lost, la),
        _gap(metric.format("FAR-NE"), "supports", "below 0", falls, far),
        _gap(metric.format("LA"), "supports", f"at or above {least:g}", _OPPOSITE[lost], la),
    )


_OPPOSITE: dict[State, State] = {
    "met": "refuted",
    "refuted": "met",
    "undetermined": "undetermined",
}


def _calls(thesis: Thesis, pair: str, error_rates: Mapping[str, Ratio]) -> Condition:
    failed = any(
        rate.value is not None and rate.value > thesis.largest_error_rate
        for rate in error_rates.values()
    )
    return Condition(
        name=f"share of failed calls of {pair}",
        role="requires",
        wanted=f"at most {thesis.largest_error_rate:.0%}",
        state="refuted" if failed else "met",
        measured={name: rate.measurement for name, rate in error_rates.items()},
    )


def _gap(
    name: str,
    role: Literal["supports", "falsifies"],
    wanted: str,
    state: State,
    measured: Measurement,
) -> Condition:
    return Condition(
        name=name, role=role, wanted=wanted, state=state, measured={"difference": measured}
    )
