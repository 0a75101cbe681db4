"""A data set in a folder: Parquet files, a card and Croissant metadata, made without a network.

Dataset hubs take the folder as it is; `datasets.load_dataset(FOLDER)`, `polars.read_parquet` and
what reads Croissant (https://docs.mlcommons.org/croissant/docs/croissant-spec.html) read it.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from evidence.runtime.files import file_digest, write_by, write_json, write_text

Row = Mapping[str, Any]

_CONFORMS = "http://mlcommons.org/croissant/1.0"
_OWN_TERMS = (
    "citeAs",
    "column",
    "extract",
    "field",
    "fileObject",
    "fileProperty",
    "fileSet",
    "format",
    "includes",
    "isLiveDataset",
    "jsonPath",
    "key",
    "md5",
    "parentField",
    "path",
    "recordSet",
    "references",
    "regex",
    "repeated",
    "replace",
    "separator",
    "source",
    "subField",
    "transform",
)
_CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "dct": "http://purl.org/dc/terms/",
    "sc": "https://schema.org/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    **{term: f"cr:{term}" for term in _OWN_TERMS},
}


@dataclass(frozen=True)
class DataSet:
    """What is written.

    Attributes:
      title: of the card.
      about: a sentence or two.
      columns: what each column holds, by name.
      types: polars' data types by column.
      splits: rows by the name of their split.
      more: the rest of the card, in Markdown.
      head: further fields of the card's header, such as tags and license.
    """

    title: str
    about: str
    columns: Mapping[str, str]
    types: Mapping[str, Any]
    splits: Mapping[str, Sequence[Row]]
    more: str
    head: Mapping[str, Any]


def can_write() -> bool:
    """Whether polars is there, which Parquet takes (extra `frames`)."""
    return importlib.util.find_spec("polars") is not None


def write(found: DataSet, folder: Path) -> list[Path]:
    """Write `data/SPLIT.parquet` of each split, `croissant.json` and `README.md`.

    Returns:
      What was written, in this order.
    """
    import polars

    paths = {split: folder / "data" / f"{split}.parquet" for split in found.splits}
    for split, path in paths.items():
        frame = polars.DataFrame(list(found.splits[split]), schema=dict(found.types))
        write_by(path, frame.write_parquet)
    croissant = write_json(folder / "croissant.json", _croissant(found, paths))
    return [*paths.values(), croissant, write_text(folder / "README.md", _card(found))]


def _card(found: DataSet) -> str:
    files = [{"split": name, "path": f"data/{name}.parquet"} for name in found.splits]
    configs = [{"config_name": "default", "data_files": files}]
    head = {"pretty_name": found.title, **found.head, "configs": configs}
    columns = "".join(f"- `{name}`: {what}\n" for name, what in found.columns.items())
    return (
        f"---\n{yaml.safe_dump(head, sort_keys=False)}---\n\n# {found.title}\n\n{found.about}\n\n"
        f"{found.more.strip()}\n\n## Columns\n\n{columns}"
    )


def _croissant(found: DataSet, paths: Mapping[str, Path]) -> dict[str, Any]:
    """Croissant 1.0: a file a split, and its columns as fields."""
    license = {"license": found.head["license"]} if "license" in found.head else {}
    return {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": _CONFORMS,
        "name": found.title,
        "description": found.about,
        **license,
        "distribution": [
            {
                "@type": "cr:FileObject",
                "@id": f"{split}.parquet",
                "name": f"{split}.parquet",
                "contentUrl": f"data/{split}.parquet",
                "encodingFormat": "application/x-parquet",
                "sha256": file_digest(path),
            }
            for split, path in paths.items()
        ],
        "recordSet": [
            {
                "@type": "cr:RecordSet",
                "@id": split,
                "name": split,
                "field": [
                    _field(f"{split}/{name}", kind, f"{split}.parquet", name, [])
                    | {"description": found.columns[name]}
                    for name, kind in found.types.items()
                ],
            }
            for split in paths
        ],
    }


def _field(identifier: str, kind: Any, file: str, column: str, inside: list[str]) -> dict[str, Any]:
    """A column as a field, or what lies inside one under these names."""
    import polars

    field: dict[str, Any] = {"@type": "cr:Field", "@id": identifier, "name": identifier}
    if isinstance(kind, polars.List):
        field["repeated"] = True
        kind = kind.inner
    if isinstance(kind, polars.Struct):
        field["subField"] = [
            _field(f"{identifier}/{part.name}", part.dtype, file, column, [*inside, part.name])
            for part in kind.fields
        ]
        return field
    field["dataType"] = _data_type(kind)
    field["source"] = {"fileObject": {"@id": file}, "extract": {"column": column}}
    if inside:
        field["source"]["transform"] = {"jsonPath": ".".join(inside)}
    return field


def _data_type(kind: Any) -> str:
    import polars

    if kind == polars.Boolean:
        return "sc:Boolean"
    if kind.is_float():
        return "sc:Float"
    return "sc:Integer" if kind.is_integer() else "sc:Text"
