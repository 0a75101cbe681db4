"""Base states as they are kept: made once, named by a digest of all that made them.

How a base state is trained is in `base_states.py`; here is where it lies, and who makes it when
several threads, processes or replicates want it.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import json
import logging
import shutil
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

import flax
import jax
import jax.numpy as jnp
import numpy as np
import optax
import orbax.checkpoint as ocp

import kubku
from evidence.runtime.devices import at_once, is_key
from evidence.runtime.files import target_digest
from kubku.base_states import WORLDS, keys
from kubku.cells import Cell
from kubku.halo import Learner, State, veiled
from kubku.learners.registry import KNOWN
from kubku.outer import outer
from kubku.samples import Source
from kubku.settings import Experiment

_log = logging.getLogger(__name__)


class BaseCache:
    """The base states of a study, in the folder `cache` of its settings.

    Args:
      settings: of the study.
      learners: by name and family.
      source: of the samples that base states are made from, and of the rules that they go by.
    """

    def __init__(
        self,
        settings: Experiment,
        learners: Mapping[tuple[str, str], Learner],
        source: Source,
    ) -> None:
        self._settings, self._learners, self._source = settings, learners, source
        # Here, for CPython 3.11 can't parse in two threads at a time (SystemError).
        self._code = code_digest()
        # Cells are made side by side; neither of these may be.
        self._keeping, self._making = Lock(), defaultdict[Cell, Lock](Lock)

    def get(self, cell: Cell) -> tuple[State, float]:
        """The base state, from the cache or made, and the seconds that making it took.

        Raises:
          ValueError: it isn't there, and the study is at `stage=evaluate`.
        """
        learner = self._learners[cell.learner, cell.family]
        if learner.bases[cell.base] is None:
            # On the host, as those that are read: what lies elsewhere is traced once more.
            return jax.device_get(self._started(cell)), 0.0
        together = self._made_with(cell)
        with self._making[together[0]]:
            kept = self._kept(cell)
            if kept is None:
                missing = [c for c in together if c != cell and self._kept(c) is None]
                kept = self._make([cell, *missing]) or self._kept(cell)
        if kept is None:
            raise ValueError(f"{self._place(cell)} can't be read though it was just written")
        return kept

    def _kept(self, cell: Cell) -> tuple[State, float] | None:
        """What is kept of a base state, if it is there and as it was written."""
        place, learner = self._place(cell), self._learners[cell.learner, cell.family]
        if not place.exists():
            return None
        try:
            note = json.loads((place / "note.json").read_text())
            # To the host: what orbax restores is bound to one device.
            with self._keeping, ocp.StandardCheckpointer() as keeper:
                like = started(learner, self._keys(cell)[0])
                state = jax.device_get(keeper.restore(place / "state", {"state": like})["state"])
            if note["digest"] != _digest(state):
                raise ValueError("its digest is another")
            return state, note["seconds"]
        except Exception as error:  # orbax and what it reads with have dozens of their own
            _log.warning("%s can't be read (%s) and is made again", place, str(error)[:200])
            if self._settings.stage != "evaluate":
                shutil.rmtree(place, ignore_errors=True)
            return None

    def _made_with(self, cell: Cell) -> list[Cell]:
        """Whose base states are made at one go: an accelerator makes those of all replicates in
        little more than the time of one.
        """
        several = at_once(1) > 1 and cell.world == self._settings.worlds[0]
        several &= KNOWN[cell.learner].pure
        replicates = range(self._settings.budget.replicates)
        return [cell._replace(replicate=r) for r in replicates] if several else [cell]

    def _make(self, cells: list[Cell]) -> tuple[State, float] | None:
        """Make base states that differ by replicate alone, and keep them.

        Returns:
          The first one, as `get` does, or None where another process was quicker to keep its own.
        """
        one = cells[0]
        if self._settings.stage == "evaluate":
            raise ValueError(
                f"{self._settings.cache} has no base state {one.base} of {one.learner} for "
                f"{one.family}; the stage {self._settings.stage!r} makes none, 'base' does"
            )
        learner = self._learners[one.learner, one.family]
        make = learner.bases[one.base]
        assert make is not None
        made_from = []
        for cell in cells:
            _, training, _ = self._keys(cell)
            samples = self._source.pretrain(cell.family, cell.world, cell.replicate)
            samples = samples if learner.unveiled else veiled(samples)
            made_from.append((self._started(cell), samples, training))
        start = time.perf_counter()
        if len(cells) == 1:
            states = [jax.device_get(make(*made_from[0]))]
        else:
            together = jax.tree.map(lambda *leaves: jnp.stack(leaves), *made_from)  # keys, too
            made = jax.device_get(_for_all(make)(*together))
            states = [jax.tree.map(lambda leaf: leaf[i], made) for i in range(len(cells))]  # noqa: B023
        seconds = (time.perf_counter() - start) / len(cells)
        first = None
        for cell, state in zip(cells, states, strict=True):
            place = self._place(cell)
            note = {"seconds": seconds, "digest": _digest(state), "made_of": self._made_of(cell)}
            place.parent.mkdir(parents=True, exist_ok=True)
            # Whole or not at all, whatever other processes do or a kill leaves.
            with tempfile.TemporaryDirectory(dir=place.parent) as folder:
                whole = Path(folder) / place.name
                with self._keeping, ocp.StandardCheckpointer() as keeper:
                    keeper.save(whole / "state", {"state": state})  # it takes no array by itself
                (whole / "note.json").write_text(json.dumps(note) + "\n")
                with contextlib.suppress(OSError):  # another was quicker
                    whole.rename(place)
                    first = (state, seconds) if cell == one else first
        return first

    def _started(self, cell: Cell) -> State:
        """What the learner begins with; the rules are told to whoever needs them."""
        learner, key = self._learners[cell.learner, cell.family], self._keys(cell)[0]
        if not KNOWN[cell.learner].needs_rules:
            return started(learner, key)
        rules = self._source.rules(cell.family, cell.replicate)
        return _init(learner.init, without_rules=True)(key)._replace(rules=rules)

    def _keys(self, cell: Cell) -> jax.Array:
        return keys(self._settings.seeds(cell.replicate)[0])

    def _made_of(self, cell: Cell) -> list[Any]:
        """All that a base state depends on."""
        budget, entry = self._settings.budget, KNOWN[cell.learner]
        target = self._settings.learner.target if entry.needs_target else None
        return [
            *(cell.family, cell.learner, cell.base, cell.world, WORLDS[cell.world]),
            *(self._settings.seed, *self._settings.seeds(cell.replicate)),
            *(budget.pretrain, budget.training.model_dump(), self._code),
            *(jax.__version__, flax.__version__, optax.__version__),
            outer(cell.learner, cell.family),
            self._source.digest(cell.family),
            target_digest(target) if target is not None else None,
        ]

    def _place(self, cell: Cell) -> Path:
        digest = hashlib.sha256(json.dumps(self._made_of(cell)).encode()).hexdigest()[:16]
        return Path(self._settings.cache).absolute() / digest


def _digest(state: State) -> str:
    """Of all its leaves, to tell a file that changed by itself."""
    found = hashlib.sha256()
    for leaf in jax.tree.leaves(state):
        array = np.asarray(jax.random.key_data(leaf) if is_key(leaf) else leaf)
        found.update(f"{array.dtype}{array.shape}".encode() + array.tobytes())
    return found.hexdigest()


def started(learner: Learner, key: jax.Array) -> State:
    """`learner.init`, compiled as one program rather than operation by operation."""
    return _init(learner.init)(key)


@cache
def _init(
    init: Callable[[jax.Array], State], without_rules: bool = False
) -> Callable[[jax.Array], State]:
    # Rules that are replaced need no program that draws them.
    return jax.jit(lambda key: init(key)._replace(rules=None)) if without_rules else jax.jit(init)


@cache
def _for_all(make: Callable[..., State]) -> Callable[..., State]:
    return jax.jit(jax.vmap(make))


def code_digest(*more: str) -> str:
    """Of the source that base states come from, comments and layout apart: made by other code, it
    is another base state; and of `more` files, by which cells are made of them.
    """
    here, found = Path(kubku.__file__).parent, hashlib.sha256()
    parts = ("halo.py", "samples.py", "base_states.py", "base_cache.py", "tasks", "learners")
    for part in (*parts, "grownet", *more):
        path = here / part
        if not path.exists():
            raise FileNotFoundError(f"{path}: a digest of the code was to count it")
        for file in [path] if path.is_file() else sorted(path.rglob("*.py")):
            found.update(ast.dump(ast.parse(file.read_bytes())).encode())
    return found.hexdigest()
