"""The page and the terminal's table of the study of completeness, from its results file."""

from __future__ import annotations

from pathlib import Path

from rich import box
from rich.table import Table

from epistemic.completeness import figures
from epistemic.completeness.models import role_of
from epistemic.completeness.results import BreakEven, Completeness, Results
from epistemic.completeness.thesis import load_thesis
from evidence import figures as drawing
from evidence.pages import render
from evidence.runtime.files import write_text


def write(folder: str | Path) -> Path:
    """Draw the map into `folder/figures` and write `folder/report.html`.

    Args:
      folder: holds results.json.

    Returns:
      Path of the page.

    Raises:
      FileNotFoundError: the folder holds no results.json.
      ValueError: the file is not what the study writes; names it.
    """
    folder = Path(folder)
    results = Results.load(folder)
    found = results.completeness
    shares = sorted({point.wrong for point in found.points})
    maps = {wrong: figures.pays(found, wrong) for wrong in shares}
    for wrong, figure in maps.items():
        drawing.save(figure, folder / "figures", f"pays_{wrong:g}")
    linking = None
    if found.linking is not None:
        linking = figures.linking(found.linking)
        drawing.save(linking, folder / "figures", "linking")
    text = render(
        "epistemic",
        "completeness.html",
        results=results,
        found=found,
        maps={wrong: drawing.svg(figure) for wrong, figure in maps.items()},
        linking=None if linking is None else drawing.svg(linking),
        at=nearest_kept(found),
        where=where,
        thesis=load_thesis(),
        role_of=role_of,
    )
    return write_text(folder / "report.html", text)


def nearest_kept(found: Completeness) -> float:
    """The share kept that was tried and lies nearest to the one that the thesis speaks of."""
    wanted = load_thesis().pays_at
    return min((point.keep for point in found.points), key=lambda keep: abs(keep - wanted))


def where(end: BreakEven, found: Completeness) -> str:
    """A break-even in words: the share kept with its interval, or that there is none, and from
    where on that is sure.
    """
    if end.keep.value is None:
        sure = end.keep.high if end.pays == "always" else end.keep.low
        side = "from" if end.pays == "always" else "below"
        return f"{end.pays}" + (f", surely {side} {sure:.2f}" if sure is not None else "")
    shares = [point.keep for point in found.points]
    low = f"<{min(shares):.2f}" if end.keep.low is None else f"{end.keep.low:.2f}"
    high = f">{max(shares):.2f}" if end.keep.high is None else f"{end.keep.high:.2f}"
    said = f"{end.keep.value:.2f} [{low}, {high}]"
    return f"{said} and less" if end.pays == "below" else said


def summary(results: Results) -> Table:
    """Each model's break-even for a terminal, at the thesis' price and share wrong where they were
    tried, else at the first.
    """
    found, thesis = results.completeness, load_thesis()
    tried = [(end.price, end.wrong) for end in found.break_even]
    meant = (thesis.price, thesis.wrong)
    price, wrong = meant if meant in tried else tried[0]
    ends = {
        (end.domain, end.model): end
        for end in found.break_even
        if (end.price, end.wrong) == (price, wrong)
    }
    domains = [size.domain for size in found.sizes]
    table = Table(
        title="Share of triples kept from which a licence pays",
        caption=f"a false answer costs {price:g}; {wrong:.0%} of triples wrong; 95% intervals over "
        "worse graphs and subjects; dim: controls",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    table.add_column("model")
    for domain in domains:
        table.add_column(domain, justify="right")
    for model in dict.fromkeys(model for _, model in ends):
        cells = [where(ends[domain, model], found) for domain in domains if (domain, model) in ends]
        table.add_row(model, *cells, style=None if role_of(model) == "ranked" else "dim")
    return table
