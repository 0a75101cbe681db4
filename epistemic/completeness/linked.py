"""What a licence is worth that must find its claims, beside one that is given them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from epistemic.completeness import scoring
from epistemic.completeness.claims import Sample
from epistemic.completeness.linking import OUTCOMES, SAID, Heard, Ways, licensed, true_stances
from epistemic.completeness.results import Linked, LinkedBreakEven, Linking, Understood
from epistemic.logic.oracle import Oracle
from evidence.measurement import Measurement


class At(NamedTuple):
    """Where the licence is tried: at one price, with its place among the study's, and one share of
    wrong triples.
    """

    price: float
    place: int
    wrong: float


class Cell(NamedTuple):
    """One way of linking one model's answers at one share kept.

    Attributes:
      style, linker, model: names.
      keep: share of the graph.
      worth: with and without, and beside the licence that is given its claims.
    """

    style: str
    linker: str
    model: str
    keep: float
    worth: scoring.Paired


def cells(
    heard: Ways,
    models: Mapping[str, int],
    at: At,
    samples: Sequence[Sample],
    oracles: Sequence[Oracle],
    keep: float,
    seed: int,
) -> Iterator[Cell]:
    """Every way and model at one point of the sweep.

    Args:
      heard: what is found.
      models: name -> its place in the samples.
      at: the price.
      samples: one a draw.
      oracles: of the worse graphs, one a draw.
      keep: share of the graph.
      seed: of the resampling.
    """
    said = [one.said[list(models.values()), at.place] for one in samples]
    given = [
        scoring.licensed(answers, oracle.judge_ids(one.claims).verdict)
        for answers, one, oracle in zip(said, samples, oracles, strict=True)
    ]
    by_way = [
        [licensed(*each) for each in zip(said, way, oracles, strict=True)] for way in heard.values()
    ]
    every = [np.concatenate(parts) for parts in zip(said, given, *by_way, strict=True)]
    paired = scoring.paired(samples, every, len(models), at.price, seed)
    names = ((*way, model) for way in heard for model in models)
    return (Cell(*name, keep, worth) for name, worth in zip(names, paired, strict=True))


def part(
    domain: str, at: At, heard: Ways, samples: Sequence[Sample], cells: Sequence[Cell], seed: int
) -> Linking:
    """What linking costs on one domain.

    Args:
      domain: its name.
      at: price and share wrong.
      heard: what is found.
      samples: one a draw.
      cells: of every share kept.
      seed: of the resampling.
    """
    return Linking(
        understood=tuple(_understood(domain, heard, samples, seed)),
        points=tuple(_point(domain, at, cell) for cell in cells),
        break_even=tuple(_ends(domain, at, cells)),
    )


def joined(parts: Sequence[Linking]) -> Linking | None:
    """The domains' parts as one."""
    if not parts:
        return None
    return Linking(
        understood=tuple(row for part in parts for row in part.understood),
        points=tuple(row for part in parts for row in part.points),
        break_even=tuple(row for part in parts for row in part.break_even),
    )


def _point(domain: str, at: At, cell: Cell) -> Linked:
    """A cell as a row of the results."""
    worth = cell.worth
    return Linked(
        domain=domain,
        text=cell.style,
        linker=cell.linker,
        model=cell.model,
        keep=cell.keep,
        wrong=at.wrong,
        price=at.price,
        ruling=scoring.ruling(worth.gain),
        gain=worth.gain,
        lost=worth.lost,
        false=worth.false,
        LA=worth.LA,
        FAR_NE=worth.FAR_NE,
    )


def _ends(domain: str, at: At, cells: Sequence[Cell]) -> Iterator[LinkedBreakEven]:
    """The break-even of every way and model."""
    lines: dict[tuple[str, str, str], list[Cell]] = {}
    for cell in cells:
        lines.setdefault((cell.style, cell.linker, cell.model), []).append(cell)
    for (style, linker, model), line in lines.items():
        gains = [cell.worth.gain for cell in line]
        pays, keep = scoring.break_even([cell.keep for cell in line], gains)
        yield LinkedBreakEven(
            domain=domain,
            text=style,
            linker=linker,
            model=model,
            wrong=at.wrong,
            price=at.price,
            pays=pays,
            keep=keep,
        )


def _understood(
    domain: str, heard: Ways, samples: Sequence[Sample], seed: int
) -> Iterator[Understood]:
    """What became of the claims, a row a way."""
    for (style, linker), way in heard.items():
        shares = _shares(samples, way, seed)
        yield Understood(
            domain=domain,
            text=style,
            linker=linker,
            misread=shares.pop("misread"),
            **shares,
        )


def _shares(samples: Sequence[Sample], way: Sequence[Heard], seed: int) -> dict[str, Measurement]:
    """Of all sentences, those that came to each outcome, and those of the wrong stance."""
    columns = []
    for one, each in zip(samples, way, strict=True):
        seen = [each.outcome == place for place in range(len(OUTCOMES))]
        columns.append(np.stack([*seen, each.stance != true_stances(len(one.claims))]).sum(1))
    names = (*(each.value for each in OUTCOMES), "misread")
    measured = scoring.shares([one.subject for one in samples], columns, len(SAID), seed)
    return dict(zip(names, measured, strict=True))
