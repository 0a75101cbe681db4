"""Reference pages made from the code: a page a package, and a page a wing's results file."""

from __future__ import annotations

import importlib
import json
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

PACKAGES = ("evidence", "goodharts_jax", "kubku", "epistemic")
WINGS = ("goodharts_jax", "kubku", "epistemic", "epistemic.completeness")
# Programs, not interfaces: importing or documenting them serves no reader.
_SECTIONS = ("Args:", "Attributes:", "Raises:", "Returns:", "Yields:")
_PROGRAMS = ("epistemic.data.make", "epistemic.data.places")


def write(source: Path) -> None:
    """Write docs/reference/api and docs/reference/results-files, neither of which is committed.

    Args:
      source: the folder of the documentation's sources.
    """
    pages = {f"api/{name}.md": _package(name) for name in PACKAGES}
    pages |= {f"results-files/{wing}.md": _results_file(wing) for wing in WINGS}
    for name, text in pages.items():
        path = source / "reference" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def modules(package: str) -> Iterator[str]:
    """The public modules of a package, itself first."""
    found = importlib.import_module(package)
    yield package
    for module in sorted(pkgutil.walk_packages(found.__path__, f"{package}."), key=_order):
        private = any(part.startswith("_") for part in module.name.split("."))
        if not private and module.name not in _PROGRAMS:
            yield module.name


def readable(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Docstrings of the house as reStructuredText, in place: a handler of autodoc's event.

    They are plain text with `code` in backticks, indented examples and Google's sections. What
    reStructuredText would take for markup is escaped, an indented block becomes an example, and
    the named parts of what a function returns become a list.
    """
    lines[:] = [line for block in _blocks(lines) for line in _readable(block)]


def says_nothing(
    app: Any, what: str, name: str, thing: Any, skipped: bool, options: Any
) -> bool | None:
    """Leave out the fields of a named tuple, which its own docstring lists, and a generic type once
    its parameters are chosen; a handler of autodoc's event.
    """
    told = getattr(thing, "__doc__", None) or ""
    chosen = getattr(thing, "__pydantic_generic_metadata__", {}).get("origin") is not None
    return True if chosen or told.startswith("Alias for field number") else None


def without_a_page() -> list[tuple[str, str]]:
    """What may stand in a signature and has no page of its own: type variables, and the names that
    a package offers beside the module that defines them.
    """
    found = []
    for package in PACKAGES:
        for name in modules(package):
            module = importlib.import_module(name)
            variables = [key for key, thing in vars(module).items() if isinstance(thing, TypeVar)]
            offered = getattr(module, "__all__", ())
            found += [("py:class", f"{name}.{key}") for key in (*variables, *offered)]
    return found


def _blocks(lines: list[str]) -> list[list[str]]:
    """Lines parted at blank ones; an indented block keeps what is indented after it."""
    blocks: list[list[str]] = [[]]
    for line in lines:
        if not line.strip():
            blocks.append([])
        else:
            blocks[-1].append(line)
    joined: list[list[str]] = []
    for block in filter(None, blocks):
        if joined and block[0].startswith(" ") and joined[-1][0].startswith(" "):
            joined[-1] += ["", *block]
        else:
            joined.append(block)
    return joined


def _readable(block: list[str]) -> list[str]:
    if block[0].startswith(" "):
        return ["::", "", *block, ""]
    entries = sum(map(_starts_entry, block[1:]))
    # Napoleon knows sections of its own, of which two can't hold several entries.
    several = block[0] in ("Returns:", "Yields:") and entries > 1
    if several or (_is_heading(block[0]) and entries and block[0] not in _SECTIONS):
        return [f"**{block[0]}**", "", *_bullets(_escaped(block[1:])), ""]
    return [*_escaped(block), ""]


def _is_heading(line: str) -> bool:
    return re.fullmatch(r"[A-Z][\w ]+:", line) is not None


def _starts_entry(line: str) -> bool:
    return re.match(r"  [\w, `\\]+: ", line) is not None


def _bullets(lines: list[str]) -> Iterator[str]:
    for line in lines:
        yield ("- " if _starts_entry(line) else "  ") + line.strip()


def _escaped(lines: list[str]) -> list[str]:
    parts = re.split(r"(`[^`]+`)", "\n".join(lines))
    for position, part in enumerate(parts):
        if position % 2:
            code = re.sub(r"\s*\n\s*", " ", part.strip("`")).strip()
            parts[position] = f"``{code}``"
        else:
            parts[position] = re.sub(r"(?<=\w)_(?=\W|$)|[*|]", r"\\\g<0>", part)
    return "".join(parts).split("\n")


def _order(module: pkgutil.ModuleInfo) -> tuple[str, ...]:
    return tuple(module.name.split("."))


def _package(package: str) -> str:
    lines = [f"# {package}", ""]
    for module in modules(package):
        if module != package:
            lines += [f"## {module}", ""]
        # What a package offers under its own name is documented where it is defined.
        options = [":members:", ":ignore-module-all:", ":exclude-members: model_config"]
        lines += ["```{eval-rst}", f".. automodule:: {module}", *(f"   {o}" for o in options)]
        lines += ["```", ""]
    return "\n".join(lines)


def _results_file(wing: str) -> str:
    """A page that lists every field of a wing's results file, from its JSON Schema."""
    results = importlib.import_module(f"{wing}.results").Results
    schema = results.model_json_schema()
    lines = [
        f"# The results file of {wing}",
        "",
        f"`evidence.load(folder)` reads `results.json` as a `{wing}.results.Results`. "
        "Every field of it, from the types themselves:",
        "",
    ]
    types = {"Results": schema, **schema.get("$defs", {})}
    for name, described in types.items():
        lines += [f"## {name}", "", *_described(described)]
    text = json.dumps(schema, indent=1)
    return "\n".join([*lines, "## As JSON Schema", "", "```json", text, "```", ""])


def _described(described: dict[str, Any]) -> list[str]:
    lines = [" ".join(described.get("description", "").split()), ""]
    fields = described.get("properties", {})
    if fields:
        lines += ["| field | type | what it holds |", "| --- | --- | --- |"]
    for name, field in fields.items():
        told = " ".join(field.get("description", "").split()).replace("|", "\\|")
        lines.append(f"| `{name}` | {_kind(field)} | {told} |")
    return [*lines, ""]


def _kind(field: dict[str, Any]) -> str:
    """A field's type in words."""
    if "$ref" in field:
        return f"`{field['$ref'].rpartition('/')[2]}`"
    for several in ("anyOf", "oneOf", "allOf"):
        if several in field:
            return " or ".join(dict.fromkeys(_kind(one) for one in field[several]))
    if "enum" in field or "const" in field:
        return ", ".join(f"`{value}`" for value in field.get("enum", [field.get("const")]))
    if field.get("type") == "array":
        inside = field.get("items") or {}
        return f"list of {_kind(inside)}" if isinstance(inside, dict) and inside else "list"
    if field.get("type") == "object" and isinstance(field.get("additionalProperties"), dict):
        return f"by name: {_kind(field['additionalProperties'])}"
    return str(field.get("type", "any"))
