"""Every notebook runs: each asks or trains something small; most then draw kept results."""

import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

pytestmark = pytest.mark.processes  # a kernel each

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"


@pytest.mark.parametrize(("name", "figures"), [("goodhart", 7), ("epistemic", 2), ("kubku", 7)])
def test_a_notebook_draws_from_saved_results(name, figures):
    notebook = nbformat.read(NOTEBOOKS / f"{name}_figures.ipynb", as_version=4)
    NotebookClient(notebook, resources={"metadata": {"path": str(NOTEBOOKS)}}).execute()
    outputs = [o for c in notebook.cells if c.cell_type == "code" for o in c.outputs]
    assert not any(output.output_type == "stream" and output.name == "stderr" for output in outputs)
    drawn = [
        output
        for output in outputs
        if "<svg" in "".join(str(part) for part in output.get("data", {}).values())
    ]
    assert len(drawn) >= figures
    printed = {
        cell.id: "".join(output.get("text", "") for output in cell.outputs)
        for cell in notebook.cells
        if cell.cell_type == "code"
    }
    if name == "epistemic":  # a third of what the graph settles, and never a NO
        assert "contradicted  YES  10 NO   0 UNKNOWN  10" in printed["ask"]
    if name == "kubku":
        assert printed["sample"].count("literal") == 4


def test_a_notebook_trains_on_the_proxy_and_judges():
    notebook = nbformat.read(NOTEBOOKS / "goodhart_own_trainer.ipynb", as_version=4)
    NotebookClient(notebook, resources={"metadata": {"path": str(NOTEBOOKS)}}).execute()
    cells = {cell.id: cell for cell in notebook.cells if cell.cell_type == "code"}
    printed = {
        name: "".join(output.get("text", "") for output in cell.outputs)
        for name, cell in cells.items()
    }
    # The proxy's reward rises while the energy falls, and the agent lives no longer than by chance.
    told = re.findall(r"reward +(\S+) a step, energy +(\S+) a step", printed["train"])
    (first, energy), (last, energy_at_last) = ((float(a), float(b)) for a, b in (told[0], told[-1]))
    assert last > 2 * first and energy_at_last < energy - 0.1
    assert any("image/png" in output.get("data", {}) for output in cells["see"].outputs)
    lives = dict(re.findall(r"^(\w+) +lives +(\S+) steps", printed["judge"], re.M))
    assert float(lives["mine"]) < 1.2 * float(lives["random_walk"])
