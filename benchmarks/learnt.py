"""The four studies of learnt proxies, one after another, as kept and as timed."""

from __future__ import annotations

from pathlib import Path

from benchmarks.studies import keep, scratch, studied
from benchmarks.timing import save

STUDIES = {
    "learnt_proxy": "study=learnt_proxy",
    "forecast": "study=forecast seed=1042",  # not those that its claim was chosen on
    "remedies": "study=remedies",
    "remedies_cells": "study=remedies_cells",
}
"""Kept result folder, and what is typed after `python -m experiments.goodhart`."""


def main(*settings: str) -> None:
    """All of them; results are kept when all have ended. Stopped, the same command goes on.

    Args:
      settings: given to each, such as `budget=smoke`; nothing is kept with any.
    """
    with scratch("_".join(["learnt", *settings]).replace("=", "-")) as folder:
        _all(folder, settings)


def _all(folder: Path, settings: tuple[str, ...]) -> None:
    rows = []
    for name, typed in STUDIES.items():
        given = [*typed.split(), *settings]
        seconds = studied("goodhart", [*given, "compilation_cache=compiled"], folder / name)
        rows.append({"study": name, "command": f"goodhart {' '.join(given)}", "seconds": seconds})
        print(f"  {name}: {seconds:,.0f} s", flush=True)
    total = sum(row["seconds"] for row in rows)
    print(f"  all: {total:,.0f} s")
    if settings:
        return
    save("learnt", {"studies": rows, "total_seconds": total}, "nothing compiled before the first")
    for name in STUDIES:
        keep(folder / name, name)
