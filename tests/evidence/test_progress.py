import io

import pytest
from rich.console import Console

from evidence.runtime.progress import bar


@pytest.mark.parametrize("compiles", [False, True])
def test_a_bar_speaks_of_compiling_only_where_something_is_compiled(compiles):
    said = io.StringIO()
    with bar("judging", 2, "claims", Console(file=said, force_terminal=True), compiles=compiles):
        pass
    assert "judging" in said.getvalue() and ("compiling" in said.getvalue()) is compiles
