"""Every notebook runs, and draws its figures from the results that ship with the repository."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

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
