"""The `--help` of a command, read from its settings' files: the comments there are the manual."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import yaml

_WIDTH, _COMMENTS_AT = 79, 34
_OWN = {"defaults", "hydra"}
# A mapping to more groups than this is data, of which the keys are shown.
_GROUPS = 3
_FLAGS = """\
  --multirun, -m   run every combination of the values given as a,b,c
  --cfg job        show the settings as they would be, and run nothing
  --config-dir DIR look for groups of settings in DIR, too
  --hydra-help     launchers, completion of the shell and more"""


class Entry(NamedTuple):
    """A setting of a file.

    Attributes:
      name: in full, such as `ppo.clip`.
      value: as it stands in the file; None for a group of settings that only has a comment.
      comment: beside or above it, or nothing.
    """

    name: str
    value: str | None
    comment: str


def manual(
    name: str, purpose: str, folder: Path, program: str, arguments: Sequence[str] = ()
) -> str:
    """The page that `--help` shows.

    Args:
      name: of the command, as `python -m experiments.NAME` has it.
      purpose: what it is for.
      folder: of its settings' files.
      program: how it was called.
      arguments: with what; `group=option` among them shows that option's settings.
    """
    main = folder / "config.yaml"
    head = _header(main.read_text("utf-8")).replace(f"python -m experiments.{name}", program)
    head = re.sub(r"(?m)^\s+$", "", head)
    chosen = dict(_choices(main))
    for group, _, option in (argument.partition("=") for argument in arguments):
        options = [one for one in option.strip("[]").split(",") if one]
        if group in chosen and all((folder / group / f"{one}.yaml").exists() for one in options):
            chosen[group] = options
    parts = [
        purpose.strip().splitlines()[0],
        f"Usage: {program} [group=option] [setting=value] ...",
    ]
    for paragraph in head.split("\n\n"):
        parts.append(paragraph if paragraph.startswith("  ") else _folded(paragraph, ""))
    parts += ["Groups, their options, and what is chosen:\n" + _groups(folder, chosen)]
    files = [(main, "")]
    for group, options in chosen.items():
        if not options:
            continue
        # Of several, such as modes, the first stands for all.
        file = folder / group / f"{options[0]}.yaml"
        files.append((file, _package(file.read_text("utf-8"), group)))
    shown = [_section(file, package) for file, package in files]
    parts += [
        "Settings, as they are without any others given:\n" + "\n\n".join(filter(None, shown))
    ]
    parts += ["Options:\n" + _FLAGS]
    return "\n\n".join(parts)


def entries(text: str, package: str) -> Iterator[Entry]:
    """The settings of a YAML file, with their comments.

    Args:
      text: of the file.
      package: what their names begin with, or nothing.
    """
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    if isinstance(node, yaml.MappingNode):
        yield from _entries(node, text.splitlines(), package)


def _entries(node: yaml.MappingNode, lines: list[str], place: str) -> Iterator[Entry]:
    for key, value in node.value:
        if not place and key.value in _OWN:
            continue
        name = f"{place}.{key.value}" if place else key.value
        comment = _comment(lines, key, value)
        if isinstance(value, yaml.MappingNode) and value.value and not _is_table(value):
            if comment:
                yield Entry(name, None, comment)
            yield from _entries(value, lines, name)
        else:
            yield Entry(name, _source(lines, value), comment)


def _is_table(node: yaml.MappingNode) -> bool:
    return sum(isinstance(value, yaml.MappingNode) for _, value in node.value) > _GROUPS


def _source(lines: list[str], value: yaml.Node) -> str:
    """A value as it stands in the file, on one line."""
    start, end = value.start_mark, value.end_mark
    if start.line == end.line:
        return lines[start.line][start.column : end.column]
    if isinstance(value, yaml.SequenceNode):
        return f"[{','.join(_source(lines, entry) for entry in value.value)}]"
    if isinstance(value, yaml.MappingNode):
        return f"{{{', '.join(key.value for key, _ in value.value)}}}"
    return str(value.value)


def _comment(lines: list[str], key: yaml.Node, value: yaml.Node) -> str:
    """What is said beside a setting, or in the lines above that are indented alike."""
    row, column = key.start_mark.line, key.start_mark.column
    same_line = value.end_mark.line == row and not isinstance(value, yaml.MappingNode)
    rest = lines[row][value.end_mark.column if same_line else key.end_mark.column :]
    said = [found[1]] if (found := re.search(r"(?:^|\s)#\s?(.*)$", rest)) else []
    above: list[str] = []
    while row > 0 and re.match(rf" {{{column}}}#", lines[row - 1]):
        row -= 1
        above.insert(0, lines[row].strip().lstrip("# "))
    if row == 0:  # the head of the file, which speaks of all of it
        above = []
    return " ".join([*above, *said])


def _header(text: str) -> str:
    """The comment that a file begins with."""
    lines = []
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        if not line.startswith("# @package"):
            lines.append(line[1:].removeprefix(" "))
    return "\n".join(lines)


def _package(text: str, group: str) -> str:
    found = re.match(r"# @package (\S+)", text)
    package = found[1] if found else group
    return "" if package == "_global_" else package


def _choices(file: Path) -> Iterator[tuple[str, list[str]]]:
    """The groups in a file's defaults, with the options chosen there."""
    for entry in yaml.safe_load(file.read_text("utf-8")).get("defaults", []):
        if isinstance(entry, dict):
            ((group, options),) = entry.items()
            yield group, options if isinstance(options, list) else [options]


def _groups(folder: Path, chosen: dict[str, list[str]]) -> str:
    rows = []
    for group, options in chosen.items():
        known = ", ".join(sorted(file.stem for file in (folder / group).glob("*.yaml")))
        rows.append(_row(f"  {group}={','.join(options)}", known))
    return "\n".join(rows)


def _section(file: Path, package: str) -> str:
    rows = []
    for name, value, comment in entries(file.read_text("utf-8"), package):
        if value is None:
            rows.append(_folded(comment, "  # "))
        else:
            rows.append(_row(f"  {name}={value}", comment))
    head = _header(file.read_text("utf-8"))
    if package and head:
        rows.insert(0, _folded(f"{package}: {head.split(chr(10) * 2)[0]}", "", "  "))
    return "\n".join(rows)


def _folded(text: str, margin: str, further: str | None = None) -> str:
    return textwrap.fill(
        text,
        _WIDTH,
        initial_indent=margin,
        subsequent_indent=margin if further is None else further,
    )


def _row(left: str, right: str) -> str:
    """Two columns, the right one folded; a left one that is too long has a line to itself."""
    folded = textwrap.wrap(right, _WIDTH - _COMMENTS_AT) or [""]
    margin = " " * _COMMENTS_AT
    if len(left) > _WIDTH:
        left = f"{left[: _WIDTH - 4]} ..."
    if len(left) >= _COMMENTS_AT:
        return "\n".join([left, *(margin + line for line in folded if line)])
    rows = [left.ljust(_COMMENTS_AT) + folded[0], *(margin + line for line in folded[1:])]
    return "\n".join(rows).rstrip()
