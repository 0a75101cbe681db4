"""What keeps the house easy to live in: sizes, types and words that may not creep back.

`python tests/test_house.py [FOLDER]` prints the measures of a checkout.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from epistemic.logic.kinds import KINDS
from epistemic.systems import NAMES as SYSTEMS
from kubku.learners.registry import KNOWN

ROOT = Path(__file__).parents[1]
PACKAGES = ("evidence", "goodharts_jax", "epistemic", "kubku", "experiments")
MOST_LINES, MOST_STATEMENT_LINES, MOST_LOOSE = 400, 60, 10
README_WORDS, README_LINES = 1000, 130

# An exception needs its reason.
LONG_FILES: dict[str, str] = {}
LONG_FUNCTIONS: dict[str, str] = {}

# Asked for by name where they are defined, or where a user's word for one is checked.
HOME_OF_NAMES = ("epistemic/logic/kinds", "epistemic/logic/kind", "kubku/learners/registry.py")
# Families of cards, not kinds of constraint; a family's few peculiarities stand in its own module.
MOST_NAMES = 3
NAMES = {
    *KINDS,
    *KNOWN,
    *SYSTEMS,
    *("min_inclusive", "min_exclusive", "max_inclusive", "max_exclusive", "jsonl"),
}


def sources(root: Path, *folders: str) -> Iterator[tuple[str, str]]:
    """Path and text of every Python file, and of what pages are made from."""
    for folder in folders:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in (".py", ".js", ".html") and "__pycache__" not in path.parts:
                yield str(path.relative_to(root)), path.read_text("utf-8")


def long_files(root: Path) -> dict[str, int]:
    """Files over the limit, with their lines: what ships and what measures."""
    every = sources(root, *PACKAGES, "benchmarks", "docs")
    lines = {path: text.count("\n") for path, text in every if "_build" not in path}
    return {path: n for path, n in lines.items() if n > MOST_LINES}


def functions(root: Path, *folders: str) -> Iterator[tuple[str, ast.FunctionDef]]:
    """Every function, named by its file and its own name."""
    for path, text in sources(root, *folders):
        if path.endswith(".py"):
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.FunctionDef):
                    yield f"{path}:{node.name}", node


def long_functions(root: Path) -> dict[str, int]:
    """Functions over the limit, with their lines."""
    sizes = {
        name: (node.end_lineno or node.lineno) - node.lineno + 1
        for name, node in functions(root, *PACKAGES)
    }
    return {name: n for name, n in sizes.items() if n > MOST_STATEMENT_LINES}


def loose_signatures(root: Path) -> list[str]:
    """Functions that take or return a mapping from text to anything."""
    loose = re.compile(r"\b(dict|Dict|Mapping|MutableMapping)\[str, Any\]")

    def is_loose(node: ast.FunctionDef) -> bool:
        arguments = node.args
        given = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        given += [a for a in (arguments.vararg, arguments.kwarg) if a is not None]
        annotations = [a.annotation for a in given] + [node.returns]
        return any(loose.search(ast.unparse(a)) for a in annotations if a is not None)

    return [name for name, node in functions(root, *PACKAGES) if is_loose(node)]


def branches_on_names(root: Path) -> list[str]:
    """Comparisons with the name of a kind of constraint, a learner or a system: what differs
    between them belongs into the one place that defines them.
    """

    def is_name(node: ast.expr) -> bool:
        if isinstance(node, ast.Tuple | ast.List | ast.Set):
            return any(is_name(item) for item in node.elts)
        return isinstance(node, ast.Constant) and node.value in NAMES

    found = []
    for path, text in sources(root, "epistemic", "kubku"):
        if not path.endswith(".py") or path.startswith(HOME_OF_NAMES):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Compare) and (
                is_name(node.left) or is_name(node.comparators[0])
            ):
                found.append(f"{path}:{node.lineno}: {ast.unparse(node)}")
    return found


def readme(root: Path) -> tuple[int, int]:
    """Words and lines."""
    text = (root / "README.md").read_text("utf-8")
    return len(text.split()), text.count("\n")


def test_the_front_door_is_read_in_five_minutes():
    words, lines = readme(ROOT)
    assert words <= README_WORDS and lines <= README_LINES


def test_files_are_read_in_one_sitting():
    assert {p: n for p, n in long_files(ROOT).items() if p not in LONG_FILES} == {}


def test_functions_fit_on_a_screen():
    assert {p: n for p, n in long_functions(ROOT).items() if p not in LONG_FUNCTIONS} == {}


def test_signatures_say_what_they_hold():
    assert len(loose := loose_signatures(ROOT)) <= MOST_LOOSE, loose


def test_what_differs_is_data_not_a_branch_on_a_name():
    assert len(found := branches_on_names(ROOT)) <= MOST_NAMES, found


@pytest.mark.parametrize("exceptions", [LONG_FILES, LONG_FUNCTIONS])
def test_every_exception_is_needed_and_has_a_reason(exceptions):
    needed = {*long_files(ROOT), *long_functions(ROOT)}
    assert all(name in needed and len(why.split()) > 3 for name, why in exceptions.items())


def main(root: Path) -> None:
    """Print the measures."""
    words, lines = readme(root)
    print(f"README: {words} words, {lines} lines")
    for title, found in (
        (f"files over {MOST_LINES} lines", long_files(root)),
        (f"functions over {MOST_STATEMENT_LINES} lines", long_functions(root)),
        ("functions that take or return dict[str, Any]", loose_signatures(root)),
        ("branches on the name of a kind, a learner or a system", branches_on_names(root)),
    ):
        print(f"{title}: {len(found)}")
        for item in found:
            print(f"  {item}" + (f" {found[item]}" if isinstance(found, dict) else ""))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT)
