"""The figures that README and the result pages show, drawn from the kept results.

python -m docs.figures    writes docs/figures/*.png
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from matplotlib.figure import Figure

import evidence
import goodharts_jax.figures
import goodharts_jax.results
import kubku.figures
from docs.kept import RESULTS
from evidence import figures

FOLDER = Path(__file__).parent / "figures"
# By figure: the wing that draws it, and the kept results that it is drawn from.
_DRAWN = {
    "goodhart_curves": (goodharts_jax.figures, "goodhart"),
    "phase_diagram": (goodharts_jax.figures, "phase_diagram"),
    "ku_bku": (kubku.figures, "kubku"),
}
# The modes that the README shows.
_SHOWN = ("ground_truth", "proxy")


def main() -> None:
    """Draw them all."""
    for name, (wing, folder) in _DRAWN.items():
        _keep(name, wing.draw(evidence.load(RESULTS / folder))[name])
    results = goodharts_jax.results.Results.load(RESULTS / "goodhart")
    shown = {name: results.goodhart_curves[name] for name in _SHOWN}
    drawn = goodharts_jax.figures.draw(results.model_copy(update={"goodhart_curves": shown}))
    _keep("goodhart_two_curves", drawn["goodhart_curves"])


def _keep(name: str, drawn: Figure) -> None:
    with TemporaryDirectory() as scratch:
        (*_, picture) = figures.save(drawn, scratch, name)
        (FOLDER / picture.name).write_bytes(picture.read_bytes())


if __name__ == "__main__":
    main()
