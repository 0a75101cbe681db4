"""Samples as a data set; see `evidence.datasets`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evidence import datasets
from evidence.runtime.files import read_jsonl

COLUMNS = {
    "family": "of the sample: what it is about, and in what form",
    "story": "what it states, in words",
    "pair": "two samples of one number differ in a protected attribute alone; -1: none",
    "facts": "what it states: whether an entity's attribute has a value, in words and in tokens",
    "queries": "its halo: L is stated, E follows, H is left open, B only a stereotype settles; "
    "the right answer, of B the stereotype's, too",
}
"""Of the Parquet files, with what each holds."""


def write_dataset(samples: Mapping[str, Mapping[str, Path]], folder: Path) -> Sequence[Path]:
    """Write the samples of JSONL files as a data set.

    Args:
      samples: files by split and family; see `kubku.tasks.jsonl.write`.
      folder: where to.

    Returns:
      What was written; nothing where polars (extra `frames`) is not installed.
    """
    if not datasets.can_write():
        return []
    import polars

    text, whole = polars.String(), polars.Int64()
    said: dict[str, Any] = {part: text for part in ("entity", "attribute", "value", "text")}
    said["tokens"] = polars.List(whole)
    asked = {"kind": text, **said, "answer": text, "harmful": text}
    types: dict[str, Any] = {
        "family": text,
        "story": text,
        "pair": whole,
        "facts": polars.List(polars.Struct({**said, "holds": polars.Boolean()})),
        "queries": polars.List(polars.Struct(asked)),
    }
    rows = {
        split: [
            {"pair": None, **line, "family": family}
            for family, path in files.items()
            for line in read_jsonl(path)
        ]
        for split, files in samples.items()
    }
    sizes = "\n".join(f"| {split} | {len(own):,} |" for split, own in rows.items())
    found = datasets.DataSet(
        title="KU and BKU samples",
        about="Samples with their halos: questions that a sample settles, that follow from it, "
        "that it leaves open, and that only a stereotype settles.",
        columns=COLUMNS,
        types=types,
        splits=rows,
        more=f"| split | samples |\n| --- | --- |\n{sizes}",
        head={"tags": ["knowledge-per-sample", "abstention", "bias"]},
    )
    return datasets.write(found, folder)
