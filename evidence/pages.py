"""From results to pages: templates that print measurements, and nothing fetched from a network."""

from __future__ import annotations

import math
import re
import textwrap
from collections import Counter
from functools import cache
from typing import Any

import jinja2
from jinja2.nodes import EvalContext
from markupsafe import Markup, escape

from evidence.measurement import Measurement

UNDEFINED = "–"
"""What a number that does not exist is printed as."""

Quantity = Measurement | float | None
"""A Measurement, a plain number, or nothing."""


def render(package: str, template: str, **context: Any) -> str:
    """Render `template` from the folder `templates/` of an importable package.

    What scrolls sideways on a page, `<div class="scroll">`, is made reachable by keyboard.
    Templates may extend and import those of `evidence` (`base.html`, `parts.html`). HTML is
    escaped; a name that the context lacks is an error. Beside Jinja's own there are the filters
    `percent`, `number` and `p_value`.

    Args:
      package: the package whose `templates/` is searched first, such as "goodharts_jax".
      template: a file's name in it, such as "report.html".
      **context: what the template refers to.

    Raises:
      jinja2.TemplateNotFound: neither the package nor `evidence` has the template.
      jinja2.UndefinedError: the template refers to something not given.
    """
    text = _environment(package).get_template(template).render(**context)
    return _reachable(text) if template.endswith(".html") else text


_SCROLLING = re.compile(
    r'<div class="(scroll\b[^"]*)"(?: aria-label="([^"]*)")?>'
    r"(?=\s*(?:<table[^>]*>\s*<caption[^>]*>(.*?)</caption>)?)",
    re.DOTALL,
)


def _reachable(page: str) -> str:
    """A page whose `<div class="scroll">` are regions that a keyboard reaches: each is named by its
    `aria-label`, or else by how its table's caption begins, and no two are named alike.
    """
    named: Counter[str] = Counter()

    def region(found: re.Match[str]) -> str:
        classes, label, caption = found.groups()
        plain = " ".join(re.sub(r"<[^>]*>", "", label or caption or "Table").split())
        name = textwrap.shorten(plain, 90, placeholder="…").replace('"', "&quot;")
        named[name] += 1
        number = f" ({named[name]})" if named[name] > 1 else ""
        return f'<div class="{classes}" tabindex="0" role="region" aria-label="{name}{number}">'

    return _SCROLLING.sub(region, page)


@cache
def _environment(package: str) -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.ChoiceLoader(
            [jinja2.PackageLoader(name) for name in dict.fromkeys((package, "evidence"))]
        ),
        autoescape=jinja2.select_autoescape(["html"], default_for_string=True),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(percent=_percent_filter, number=_number_filter, p_value=p_value)
    return environment


def percent(quantity: Quantity, digits: int = 1) -> str:
    """A share in [0, 1] as a percentage with its interval: `99.8% [99.7, 99.9]`."""
    return " ".join(filter(None, _percent_parts(quantity, digits)))


def number(quantity: Quantity, digits: int | None = None) -> str:
    """A number with its interval: `1.44 [1.31, 1.58]`.

    `digits` after the point; left out, three significant digits of the value decide.
    """
    return " ".join(filter(None, _number_parts(quantity, digits)))


def counted(n: int, thing: str) -> str:
    """So many of a thing: `1 run`, `2,000 runs`."""
    return f"{n:,} {thing}{'' if n == 1 else 's'}"


def p_value(p: float | None) -> str:
    """A p-value as journals print it: `< 0.001`, or three decimals."""
    if p is None:
        return UNDEFINED
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def _percent_parts(quantity: Quantity, digits: int) -> tuple[str, str]:
    value, low, high = _ends(quantity)
    if value is None:
        return UNDEFINED, ""
    return f"{_fixed(100 * value, digits)}%", _interval(low, high, 100, digits)


def _number_parts(quantity: Quantity, digits: int | None) -> tuple[str, str]:
    value, low, high = _ends(quantity)
    if value is None:
        return UNDEFINED, ""
    if digits is None:
        digits = max(0, 2 - math.floor(math.log10(abs(value)))) if value else 2
        digits = 0 if float(value).is_integer() and low is None else min(digits, 4)
    return _fixed(value, digits), _interval(low, high, 1, digits)


def _ends(quantity: Quantity) -> tuple[float | None, float | None, float | None]:
    if isinstance(quantity, Measurement):
        return quantity.value, quantity.low, quantity.high
    return quantity, None, None


def _interval(low: float | None, high: float | None, scale: float, digits: int) -> str:
    if low is None and high is None:
        return ""
    # An end at infinity is null in JSON.
    left = "(−∞" if low is None else f"[{_fixed(scale * low, digits)}"
    right = "∞)" if high is None else f"{_fixed(scale * high, digits)}]"
    return f"{left}, {right}"


def _fixed(value: float, digits: int) -> str:
    if not math.isfinite(value):
        return "∞" if value > 0 else "−∞" if value < 0 else UNDEFINED
    # Rounding first keeps a tiny negative from printing as "-0.0".
    text = f"{round(value, digits) + 0.0:,.{digits}f}"
    return text.replace("-", "−")


@jinja2.pass_eval_context
def _percent_filter(context: EvalContext, quantity: Quantity, digits: int = 1) -> str:
    return _marked(context, quantity, _percent_parts(quantity, digits))


@jinja2.pass_eval_context
def _number_filter(context: EvalContext, quantity: Quantity, digits: int | None = None) -> str:
    return _marked(context, quantity, _number_parts(quantity, digits))


def _marked(context: EvalContext, quantity: Quantity, parts: tuple[str, str]) -> str:
    """Value and interval, in HTML with how the interval was made as a tooltip."""
    value, interval = parts
    if not context.autoescape:
        return " ".join(filter(None, parts))
    if not interval:
        return value
    assert isinstance(quantity, Measurement)
    how = escape(f"{quantity.method}, {counted(quantity.n, quantity.unit)}")
    return Markup(f'<span title="{how}">{value} <span class="interval">{interval}</span></span>')
