"""Commands run one after the other in one process, which imports and compiles once.

python tests/served.py MODULE: reads `[folder, arguments]` lines and answers each with
`[code, output, errors]`. What a call changes for the next is undone, but for compiled programs.
"""

import contextlib
import gc
import importlib
import io
import json
import linecache
import os
import sys


def call(main, folder, arguments):
    """What the command says when called in a folder."""
    said, complained = io.StringIO(), io.StringIO()
    path, modules, code = list(sys.path), set(sys.modules), 0
    os.chdir(folder)
    sys.argv[1:] = arguments
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(complained):
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
    sys.path[:] = path
    for name in set(sys.modules) - modules:  # a user's own, which may be another's next time
        if str(getattr(sys.modules[name], "__file__", "")).startswith(folder):
            del sys.modules[name]
    importlib.invalidate_caches()
    linecache.clearcache()
    return code, said.getvalue(), complained.getvalue()


if __name__ == "__main__":
    answers = sys.stdout
    command = importlib.import_module(sys.argv[1])
    gc.freeze()
    gc.set_threshold(100_000, 20, 100)  # as in conftest.py
    for line in sys.stdin:
        print(json.dumps(call(command.main, *json.loads(line))), file=answers, flush=True)
