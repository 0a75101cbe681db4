"""The figures that README and the result pages show, drawn from the kept results.

python -m docs.figures    writes docs/figures/*.png
"""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from matplotlib.figure import Figure

import evidence
import goodharts_jax.figures
import goodharts_jax.results
import kubku.figures
from docs.kept import RESULTS
from evidence import figures

FOLDER = Path(__file__).parent / "figures"
# By file: the wing that draws it, the kept results that it is drawn from, and its name there.
_DRAWN = {
    "goodhart_curves": (goodharts_jax.figures, "goodhart", "goodhart_curves"),
    "phase_diagram": (goodharts_jax.figures, "phase_diagram", "phase_diagram"),
    "learnt_proxies": (goodharts_jax.figures, "learnt_proxy", "proxies"),
    "best_of_n": (goodharts_jax.figures, "learnt_proxy", "best_of_n"),
    "forecast": (goodharts_jax.figures, "forecast", "forecast"),
    "remedies": (goodharts_jax.figures, "remedies", "remedies"),
    "ku_bku": (kubku.figures, "kubku", "ku_bku"),
}
# The modes that the README shows.
_SHOWN = ("ground_truth", "proxy")


def main() -> None:
    """Draw them all."""
    for file, (wing, folder, name) in _DRAWN.items():
        _keep(file, wing.draw(evidence.load(RESULTS / folder))[name])
    results = goodharts_jax.results.Results.load(RESULTS / "goodhart")
    shown = {name: results.goodhart_curves[name] for name in _SHOWN}
    drawn = goodharts_jax.figures.draw(results.model_copy(update={"goodhart_curves": shown}))
    _keep("goodhart_two_curves", drawn["goodhart_curves"])
    kept = RESULTS / "growth.json"
    grown = json.loads(kept.read_text("utf-8"))["results"] if kept.exists() else {"axes": []}
    for wing in sorted({axis["wing"] for axis in grown["axes"]}):
        axes = [axis for axis in grown["axes"] if axis["wing"] == wing]
        _keep(f"growth_{wing}", growth(axes, grown["memory_mb"]))


@figures.style()
def growth(axes: list[dict[str, Any]], memory_mb: float) -> Figure:
    """Seconds and memory by the size of the work, a line for each thing that grows; hollow is the
    largest size that was run, and the line above it the memory that there is.
    """
    figure, panels = figures.canvas(columns=2)
    for panel, measured, label in zip(
        panels, ("seconds", "peak_mb"), ("Seconds", "Memory, MB"), strict=True
    ):
        for index, axis in enumerate(axes):
            last = axis["carried"]
            sizes, values = zip(
                *[(row["size"], row[measured]) for row in (*axis["rows"], last)], strict=True
            )
            named = f"{axis['name']}, {axis['work']}"
            panel.plot(sizes, values, label=named, marker=".", **figures.line(index))
            most = figures.point(index, markerfacecolor="none")
            panel.plot(last["size"], last[measured], **most)
        panel.set(xscale="log", yscale="log", xlabel="Size", ylabel=label)
    panels[1].axhline(memory_mb, color=figures.INK, linewidth=0.8)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=2)
    return figure


def _keep(file: str, drawn: Figure) -> None:
    with TemporaryDirectory() as scratch:
        (*_, picture) = figures.save(drawn, scratch, file)
        (FOLDER / picture.name).write_bytes(picture.read_bytes())


if __name__ == "__main__":
    main()
