from pathlib import Path

import nbformat
from nbclient import NotebookClient

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"


def test_the_notebook_draws_every_figure_from_the_results_that_ship_with_it():
    notebook = nbformat.read(NOTEBOOKS / "goodhart_figures.ipynb", as_version=4)
    NotebookClient(notebook, resources={"metadata": {"path": str(NOTEBOOKS)}}).execute()
    outputs = {cell.id: cell.outputs for cell in notebook.cells if cell.cell_type == "code"}
    (table,) = outputs["table"]
    assert {"ground_truth", "proxy", "random_walk"} <= set(table.text.split())
    shown = [output.data["text/html"] for output in outputs["figures"]]
    assert len(shown) >= 7 and all("<svg" in figure for figure in shown)
