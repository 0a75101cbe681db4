"""How Sphinx builds the documentation: `make docs`. Nothing is fetched from a network."""

from __future__ import annotations

import importlib.metadata
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from docs import reference

project = "goodharts-jax"
author = "The goodharts-jax authors"
copyright = f"2026, {author}"
release = importlib.metadata.version("goodharts-jax")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
]
exclude_patterns = ["_build", "templates"]
html_theme = "furo"
html_title = "goodharts-jax"
html_show_sourcelink = False
html_static_path = ["_static"]
html_css_files = ["tables.css"]

myst_enable_extensions = ["attrs_block", "colon_fence"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True
nitpicky = True
nitpick_ignore_regex = [
    # Types of other libraries, and aliases of types: without a network no inventory says where they
    # are documented, so they are printed and not linked.
    (r"py:.*", r"(?!(evidence|goodharts_jax|kubku|epistemic)\.).*"),
    # Private helpers that stand in a signature have no page.
    (r"py:.*", r".*\._\w+"),
]
nitpick_ignore = reference.without_a_page()
# Two wings may have a class of one name; a short name in a signature then links to one of them.
suppress_warnings = ["ref.python"]


def setup(app):
    """Write the reference pages, which are made from the code, before Sphinx looks for pages."""
    app.connect("config-inited", lambda app, config: reference.write(Path(app.srcdir)))
    # Before napoleon, whose priority is 500.
    app.connect("autodoc-process-docstring", reference.readable, priority=400)
    app.connect("autodoc-skip-member", reference.says_nothing)
