"""The thesis, as conditions stated before a run, and its verdict from intervals."""

from __future__ import annotations

import importlib.resources
from collections.abc import Mapping
from typing import Any, Literal

import yaml

from evidence.measurement import Measurement
from evidence.runtime.config import Settings, build

Range = tuple[float, float]


class Thesis(Settings):
    """What `conf/thesis/epistemic.yaml` states.

    Attributes:
      statement: the thesis in a sentence.
      convention: whose FAR-NE and LA are compared.
      licensed, unlicensed: the systems compared: one model, with the licence and without.
      largest_loss: of LA, that the licence may cost.
      largest_error_rate: share of failed calls up to which a system is judged.
      ideal: the range of each metric that an ideal system stays in, ends excluded inside [0, 1].
      expected: by system, ranges that were expected in advance.
    """

    statement: str
    convention: Literal["seed", "strict", "published"]
    licensed: str
    unlicensed: str
    largest_loss: float
    largest_error_rate: float
    ideal: dict[str, Range]
    expected: dict[str, dict[str, Range]]


def load_thesis() -> Thesis:
    """The thesis as configured."""
    text = importlib.resources.files("conf").joinpath("thesis/epistemic.yaml").read_text("utf-8")
    return build(Thesis, yaml.safe_load(text), at="thesis")


def is_ideal(thesis: Thesis, metrics: Mapping[str, Any], error_rate: float | None) -> bool:
    """Whether a system's values lie inside every ideal range, with few enough failed calls.

    Args:
      metrics: metric name to a Measurement's fields; one that is undefined is not ideal.
      error_rate: share of failed calls.
    """
    if error_rate is None or error_rate > thesis.largest_error_rate:
        return False
    return all(meets(thesis, name, metrics[name]["value"]) for name in thesis.ideal)


def meets(thesis: Thesis, metric: str, value: float | None) -> bool:
    """Whether a value lies inside its ideal range.

    '> 0.90' and '< 0.10': an end counts only where it is the end of the scale.
    """
    low, high = thesis.ideal[metric]
    return value is not None and (value > low or low == 0) and (value < high or high == 1)


def judge(
    thesis: Thesis,
    differences: Mapping[str, Measurement] | None,
    error_rates: Mapping[str, float | None],
) -> dict[str, Any]:
    """Supported, falsified or inconclusive, with the condition that decided.

    Supported: FAR-NE falls, and LA falls by at most `largest_loss`, both by the nearer end of the
    paired interval. Falsified: the interval of FAR-NE lies at or above 0, or that of LA below
    -`largest_loss`. Anything else is inconclusive.

    Args:
      differences: licensed minus unlicensed, of FAR_NE and LA; None where a model was not asked.
      error_rates: share of failed calls by system.
    """
    if differences is None:
        reason = (
            f"no language model was asked: {thesis.licensed} and {thesis.unlicensed} are absent"
        )
        return {"verdict": "inconclusive", "deciding_condition": reason, "conditions": []}
    far, la = differences["FAR_NE"], differences["LA"]
    loss = thesis.largest_loss
    failed = {
        name: rate
        for name in (thesis.licensed, thesis.unlicensed)
        if (rate := error_rates[name]) is not None and rate > thesis.largest_error_rate
    }
    conditions = [
        _condition(
            "calls succeed",
            not failed,
            f"at most {thesis.largest_error_rate:.0%} of the calls of {thesis.licensed} and "
            f"{thesis.unlicensed} fail",
            None,
        ),
        _condition(
            "FAR-NE falls",
            None if far.high is None else far.high < 0,
            f"FAR-NE of {thesis.licensed} minus {thesis.unlicensed}: {_ends(far)}, wanted below 0",
            far,
        ),
        _condition(
            "LA is kept",
            None if la.low is None else la.low >= -loss,
            f"LA of {thesis.licensed} minus {thesis.unlicensed}: {_ends(la)}, "
            f"wanted at or above {-loss:g}",
            la,
        ),
    ]
    calls, falls, kept = conditions
    if failed:
        verdict, deciding = "inconclusive", calls
    elif far.low is not None and far.low >= 0:
        verdict, deciding = "falsified", falls
    elif la.high is not None and la.high < -loss:
        verdict, deciding = "falsified", kept
    elif falls["holds"] and kept["holds"]:
        verdict, deciding = "supported", kept
    else:
        verdict, deciding = "inconclusive", (kept if falls["holds"] else falls)
    return {
        "verdict": verdict,
        "deciding_condition": deciding["condition"],
        "conditions": conditions,
    }


def _condition(
    name: str, holds: bool | None, condition: str, measurement: Measurement | None
) -> dict[str, Any]:
    return {"name": name, "holds": holds, "condition": condition, "measurement": measurement}


def _ends(difference: Measurement) -> str:
    if difference.value is None or difference.low is None or difference.high is None:
        return "undefined"
    return f"{difference.value:+.3f} [{difference.low:+.3f}, {difference.high:+.3f}]"
