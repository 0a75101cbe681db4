"""Numbers that are typed into a page by hand, and the few that may be.

A measured number comes from a result file, through a template. What remains in the prose must
stand below, with the reason why no file holds it.
"""

from __future__ import annotations

import re

from docs.kept import ROOT
from docs.render import TEMPLATES

# Whole pages that are exempt.
EXEMPT = {
    "docs/changes.md": "history: every number stands beside the commit that holds it",
}
# Phrases by page; "" for all pages.
ALLOWED: dict[str, dict[str, str]] = {
    "": {
        "95%": "the level of every interval and condition",
        "Python 3.11": "the oldest Python that is supported",
        "SmolLM2-135M": "a model's name",
        "/1k": "a column's unit: in a thousand steps",
    },
    "results/kubku.md.j2": {
        "between 0 and 2": "the range of the scores, by definition",
    },
    "docs/tutorials/kubku.md": {"from 0 to 2": "the range of the scores, by definition"},
    "performance.md.j2": {"until 150 food": "the threshold that is timed, by its name"},
    "statistics.md.j2": {
        "fewer than 10 ": "the rule in evidence.stats",
        "under 10 ": "the rule in evidence.stats",
        "Under 10 ": "the rule in evidence.stats",
        "from 10 on": "the rule in evidence.stats",
        "of 10 or more": "the rule in evidence.stats",
        "10,000 resamples": "the setting in evidence.stats",
        "Efron 1987": "a year",
        "Hesterberg 2015": "a year",
        "(1954)": "a year",
        "Owen 2007": "a year",
        "(1927)": "a year",
        "et al. 2023": "a year",
        "differ by 20%, a log-rank test over 200 lives": "a setting of benchmarks/calibration.py",
        "nominally 5%": "the level of the tests simulated",
        "(0.05 / 6 = 0.0083)": "arithmetic",
        "(50 and 10 points)": "bounds in conf/thesis/goodhart.yaml",
        "two-sided 5%, power 0.8: 394 runs a mode for d = 0.2, 64 for 0.5, 26 for 0.8, 6 for 2 and "
        "4 for 3.": "the formula of stats.runs_needed, tested in tests/evidence",
        "40 for d = 0.8, 8 for 2 and 5 for 3.": "the formula of stats.runs_needed",
        "a torus of 25 cells": "the setting of tests/goodharts_jax/test_reward_angle.py",
        "puts 200 proxies": "a setting of that test",
        "the order of the angle (Spearman 0.99)": "asserted by that test",
        "clear of 90° (|cos| > 0.15)": "asserted by that test",
        "leaves the angle at 0": "asserted by that test",
        "a cosine of -0.57": "asserted by that test",
        "chance is an efficiency of 50%": "the protocol's definition",
        "density cancels) is 0.5": "chance, by definition",
        "fewer than 3 runs or 500 deaths": "the rule in goodharts_jax",
        "2,000 studies a cell": "a setting of benchmarks/calibration.py",
        "1,000 for the hierarchical": "a setting of benchmarks/calibration.py",
        "shows as 94.0% to 96.0%": "arithmetic: two standard errors of 2,000 studies",
        "from 3 replicates on": "the least number simulated",
        "at 3 to 10 runs, where most runs reach 99%": "the population simulated",
        "instead of 2.5%": "half of what 95% leaves out",
        "A near end at 99.1% from 3 runs": "an example",
        "20 noisy checkpoints": "the population simulated",
    },
}


def pages() -> list[tuple[str, str]]:
    """Every page that is written by hand, and every template, by name: its text."""
    found = [
        (path.relative_to(TEMPLATES).as_posix(), path)
        for path in sorted(TEMPLATES.rglob("*.md.j2"))
    ]
    filled = {name.removesuffix(".j2") for name, _ in found}
    for path in sorted((ROOT / "docs").rglob("*.md")):
        name = path.relative_to(ROOT / "docs").as_posix()
        if name not in filled and not name.startswith(("_build", "reference/")):
            found.append((f"docs/{name}", path))
    return [(name, path.read_text(encoding="utf-8")) for name, path in found]


def typed(name: str, text: str) -> list[str]:
    """The numbers in a page's prose that no reason stands for, each with what is around it."""
    if name in EXEMPT:
        return []
    prose = " ".join(_prose(text).split())
    for phrase in [*ALLOWED[""], *ALLOWED.get(name, {})]:
        prose = prose.replace(phrase, " ")
    return [
        " ".join(prose[max(0, m.start() - 40) : m.end() + 25].split())
        for m in re.finditer(r"(?<![\w.])\d[\d.,]*", prose)
    ]


def unused(texts: dict[str, str]) -> list[str]:
    """Reasons that no page needs any longer."""
    return [
        f"{page}: {phrase}"
        for page, phrases in ALLOWED.items()
        if page
        for phrase in phrases
        if phrase not in " ".join(texts.get(page, "").split())
    ]


def _prose(text: str) -> str:
    """Text without what is filled in, code, links' targets, comments and small print."""
    for pattern in (
        r"\{#.*?#\}",
        r"\{%.*?%\}",
        r"\{\{.*?\}\}",
        r"<!--.*?-->",
        r"```.*?```",
        r"``.*?``",
        r"`[^`]*`",
        r"\]\([^)]*\)",
        r"https?://\S+",
    ):
        text = re.sub(pattern, " ", text, flags=re.DOTALL)
    text = re.sub(r"^\d+\. ", "", text, flags=re.MULTILINE)
    # Indented code.
    return "\n".join(line for line in text.splitlines() if not line.startswith("    "))


def main() -> None:
    """List what is typed by hand and not allowed."""
    for name, text in pages():
        for found in typed(name, text):
            print(f"{name}: ... {found} ...")


if __name__ == "__main__":
    main()
