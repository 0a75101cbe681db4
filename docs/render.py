"""Pages whose numbers come from the kept result files.

python -m docs.render               write README.md, and the pages under docs/ that have a template
python -m docs.render FILE PLACE    what a page's source line names, such as
                                    benchmarks/results/goodhart/results.json modes.*.aggregates
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import jinja2

from docs.kept import RESULTS, ROOT, Node, Quoted, kept, look
from epistemic.scoring.thesis import standing
from evidence import Measurement, pages
from goodharts_jax import thesis
from goodharts_jax.results import Results

TEMPLATES = Path(__file__).parent / "templates"
_MADE = "<!-- Made by `python -m docs.render` from docs/templates/{name}: edit that. -->\n"


def rendered() -> Iterator[tuple[Path, str]]:
    """Every page that has a template: where it is kept, and its text."""
    for template in sorted(TEMPLATES.rglob("*.md.j2")):
        name = template.relative_to(TEMPLATES)
        if name.name.startswith("_"):
            continue
        page = name.with_suffix("")
        place = ROOT / page if page.name == "README.md" else ROOT / "docs" / page
        yield place, page_text(name.as_posix())


def page_text(name: str) -> str:
    """A template's text, filled.

    Raises:
      ValueError: the page quotes numbers and doesn't name their source.
    """
    quoted = Quoted()
    text = _environment(quoted).get_template(name).render()
    if quoted.places:
        raise ValueError(f"{name} quotes without naming the source: {quoted.places[:3]}")
    return _MADE.format(name=name) + text


def _environment(quoted: Quoted) -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        extensions=["jinja2.ext.do", "jinja2.ext.loopcontrols"],
    )
    environment.filters.update(
        {
            "number": number,
            "percent": percent,
            "plus_minus": plus_minus,
            "million": lambda node, digits=1: number(_scaled(node, 1e-6), digits),
            "rounded": rounded,
            "spelt": spelt,
            "setting": setting,
            "plain": _plain,
            "total": total,
            "clear_of_zero": clear_of_zero,
            "attributes": lambda node, name: [number(entry[name]) for entry in node],
            "signed": lambda value, digits: f"{value:+.{digits}f}".replace("-", "−"),
            "p": pages.p_value,
            "before": lambda text, mark: text.partition(mark)[0],
            "scientific": lambda value: f"{value:.0e}".replace("e-0", "e-"),
        }
    )
    environment.globals.update(
        kept=lambda name: kept(name, quoted),
        has=lambda name: any(
            (RESULTS / f"{name}{end}").exists() for end in ("/results.json", ".json")
        ),
        sources=quoted.sources,
        plain=_plain,
        share=share,
        wrong_of_settled=wrong_of_settled,
        sentence=sentence,
        minus=lambda one, other: _value(one) - _value(other),
        ratio=lambda one, other: _value(one) / _value(other),
        verdict_of_script=verdict_of_script,
        stands=stands,
        digits=lambda measured: 3 if abs(_value(measured)) < 10 else 1,
    )
    return environment


def _plain(node: Any) -> Any:
    """Plain data: a node's, noted as quoted, or what is plain already."""
    return node.raw if isinstance(node, Node) else node


def number(quantity: Any, digits: int | None = None, *, interval: bool = True) -> str:
    """A number with its interval where it has one: `1.44 [1.31, 1.58]`."""
    return pages.number(_quantity(quantity, interval), digits)


def percent(quantity: Any, digits: int = 1, *, interval: bool = True) -> str:
    """A share as a percentage, with its interval where it has one."""
    return pages.percent(_quantity(quantity, interval), digits)


def plus_minus(quantity: Any, digits: int = 2) -> str:
    """A value and half the width of its interval, if that has any: `1.80 ± 0.03`."""
    plain = _plain(quantity)
    value = pages.number(plain["value"], digits)
    if plain["low"] is None or plain["high"] is None:
        return value
    half = f"{(plain['high'] - plain['low']) / 2:.{digits}f}"
    return value if float(half) == 0 else f"{value} ± {half}"


def rounded(quantity: Any, to: int) -> str:
    """A number rounded to a multiple of `to`, with separators: 16,500."""
    return f"{round(_value(quantity) / to) * to:,}"


def setting(quantity: Any) -> str:
    """A number as it was set, without zeros at its end: 0.25."""
    return f"{_value(quantity):,g}".replace("-", "−")


_WORDS = (
    "no",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
)


def spelt(quantity: Any) -> str:
    """A small count in words."""
    plain = _plain(quantity)
    count = len(plain) if isinstance(plain, list | tuple) else int(_value(plain))
    return _WORDS[count] if count < len(_WORDS) else f"{count:,}"


def stands(measured: Any, expected: Any) -> str:
    """Where an interval lies beside a range that was expected, in words."""
    low, high = expected.peek
    return standing(
        Measurement(**{f.name: _plain(measured)[f.name] for f in fields(Measurement)}), low, high
    )


def total(counts: Any) -> int:
    """The sum of counts by name."""
    return sum(_plain(counts).values())


def share(part: Any, counts: Any) -> float:
    """One count as a share of the sum of counts by name."""
    return _value(part) / total(counts)


def wrong_of_settled(base: Any) -> float:
    """Of the eight questions that a sample of a drawn family settles, how many a learner of kubku's
    answers the other way round: of sixteen, four of each kind, what is answered and is neither a
    trap nor right.
    """
    silent = sum(_value(part) for part in (base.abstained, base.invalid, base.errors))
    halos = base.halos
    traps = _value(halos.H.hallucination) + _value(halos.B.bias)
    right = _value(halos.L.literal) + _value(halos.E.entailed)
    return 16 * (1 - silent) - 4 * (traps + right)


def clear_of_zero(node: Any) -> dict[str, int]:
    """How many measurements there are below a node, and how many intervals leave out zero."""
    found = [m for m in measurements(_plain(node)) if m["low"] is not None]
    return {"all": len(found), "apart": sum(m["low"] > 0 or m["high"] < 0 for m in found)}


def measurements(data: Any) -> list[dict[str, Any]]:
    """All measurements in plain data."""
    if isinstance(data, dict):
        if {"value", "low", "high"} <= data.keys():
            return [data]
        return [found for entry in data.values() for found in measurements(entry)]
    return (
        [found for entry in data for found in measurements(entry)] if isinstance(data, list) else []
    )


def sentence(text: Any) -> str:
    """Text as a sentence: a capital first, a full stop last."""
    told = str(text).strip()
    return told[:1].upper() + told[1:] + ("" if told.endswith(".") else ".")


def verdict_of_script(name: str) -> str:
    """What a kept Goodhart study would be ruled with a script, never trained, as its proxy."""
    ruling = thesis.judge_script(Results.load(RESULTS / name).modes, thesis.load_thesis())
    if ruling is None or ruling.verdict is None:
        raise ValueError(f"{name} has no script in the proxy's place that could be ruled")
    return ruling.verdict


def _value(quantity: Any) -> float:
    plain = _plain(quantity)
    return plain["value"] if isinstance(plain, dict) else plain


def _scaled(quantity: Any, factor: float) -> float:
    return _value(quantity) * factor


def _quantity(quantity: Any, interval: bool) -> Any:
    plain = _plain(quantity)
    if not isinstance(plain, dict):
        return plain
    measured = Measurement(*(plain[field.name] for field in fields(Measurement)))
    return measured if interval else measured.value


def main(arguments: list[str]) -> None:
    """The command."""
    if len(arguments) == 2:
        for place, data in look(*arguments):
            print(f"{place}: {json.dumps(data, ensure_ascii=False)[:2000]}")
        return
    if arguments:
        raise SystemExit(__doc__)
    for path, text in rendered():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        print(path.relative_to(ROOT))


if __name__ == "__main__":
    main(sys.argv[1:])
