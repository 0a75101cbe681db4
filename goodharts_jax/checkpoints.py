"""Checkpoints of a training: the newest states on disk, from which a killed training goes on."""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
from rich.console import Console

from evidence.runtime.devices import is_key, same_in_all_processes
from evidence.runtime.files import is_first_process
from goodharts_jax.ppo import History, TrainState
from goodharts_jax.watch import Watch

SECONDS_APART = 5.0
"""Between two checkpoints: what a kill may cost. One takes a tenth of a second of both cores."""


class Checkpoint(NamedTuple):
    """What is known of a training at one moment, on the host.

    Attributes:
      updates: how many have been made.
      states: TrainState with a leading axis [runs].
      history: float32[runs, updates] each.
      watches: after each chunk. Watch with a leading axis [runs] each.
    """

    updates: int
    states: TrainState
    history: History
    watches: list[Watch]


class Checkpoints:
    """The newest checkpoints of a training, on disk; does nothing without a folder.

    What is kept are the runs, without what fills them up to the number of devices, so that a
    training can go on with fewer devices or more. Of several processes all read, the first writes.
    It is written while the training goes on: a kill loses at most what was on its way, and the
    seconds before it.

    Args:
      folder: where checkpoints go and are looked for; None keeps nothing.
    """

    def __init__(self, folder: Path | None):
        self._folder, self._manager, self._due = folder, None, 0.0
        if folder is None:
            return
        # What orbax logs with a trace, from its threads, it also raises.
        logging.getLogger("absl").setLevel(logging.CRITICAL)
        if is_first_process():
            folder.mkdir(parents=True, exist_ok=True)
        if folder.exists():
            me = jax.process_index()
            alone = ocp.options.MultiprocessingOptions(
                primary_host=me, active_processes={me}, barrier_sync_key_prefix=f"process{me}"
            )
            options = ocp.CheckpointManagerOptions(
                max_to_keep=2,
                enable_async_checkpointing=True,
                create=False,
                multiprocessing_options=alone,
            )
            self._manager = ocp.CheckpointManager(folder.absolute(), options=options)

    def __enter__(self) -> Checkpoints:
        return self

    def __exit__(self, *_: Any) -> None:
        if self._manager is not None:
            with _system_errors(self._folder):
                self._manager.close()

    def save(
        self,
        updates: int,
        fetch_states: Callable[[], TrainState],
        history: History,
        watches: list[Watch],
        ends: bool,
    ) -> None:
        """Keep a `Checkpoint`, unless the last one is hardly older and the training doesn't end
        with it; its states are fetched only if they are to be kept.
        """
        now = time.monotonic()
        # Several processes would not all be of one mind.
        early = now < self._due and jax.process_count() == 1 and not ends
        if self._folder is None or early:
            return
        self._due = now + SECONDS_APART
        states = fetch_states()  # in all processes, for each has some of them
        if self._manager is None or not is_first_process():
            return
        record = {"history": history._asdict(), "watches": [dict(vars(watch)) for watch in watches]}
        with _system_errors(self._folder):
            self._manager.save(
                updates,
                args=ocp.args.Composite(
                    states=ocp.args.StandardSave(_without_types(states)),
                    record=ocp.args.StandardSave(record),
                ),
            )

    def latest(self, fetch_states: Callable[[], TrainState]) -> Checkpoint | None:
        """The newest checkpoint that can be read, its states structured as those that
        `fetch_states` returns. One that can't is dropped, and told of, for one before it.

        Raises:
          ValueError: there are checkpoints and none can be read, several processes don't find the
            same, or what is found is of another network.
        """
        like = fetch_states()
        found, unread = self._newest_readable()
        if not same_in_all_processes(-1 if found is None else found.updates):
            raise ValueError(
                f"the processes find different checkpoints in {self._folder}: give all of them "
                "one folder that all can read"
            )
        if unread and found is None:
            why = next(iter(unread.values()))
            raise ValueError(f"no checkpoint in {self._folder} can be read: {why}")
        for step in unread:
            if self._manager is not None and is_first_process():
                Console(stderr=True).print(
                    f"{self._folder}: the checkpoint after {step} updates can't be read; going on "
                    f"from the one before it: {unread[step]}",
                    style="yellow",
                    markup=False,
                    soft_wrap=True,
                )
                self._manager.delete(step)
        if found is None:
            return None
        return found._replace(states=_structured(like, found.states, self._folder))

    def _newest_readable(self) -> tuple[Checkpoint | None, dict[int, str]]:
        """What is found, states as the file has them, and the newer ones that can't be read, with
        the reason.
        """
        unread: dict[int, str] = {}
        steps = () if self._manager is None else self._manager.all_steps()
        for step in sorted(steps, reverse=True):
            try:
                return self._read(step), unread
            # Whatever a damaged file makes of it, in all the layers that read it.
            except Exception as error:
                unread[step] = (str(error).splitlines() or [type(error).__name__])[0]
        return None, unread

    def _read(self, step: int) -> Checkpoint:
        assert self._manager is not None
        whole = ocp.args.StandardRestore()
        kept = self._manager.restore(step, args=ocp.args.Composite(states=whole, record=whole))
        return Checkpoint(
            updates=step,
            states=kept["states"],
            history=History(**kept["record"]["history"]),
            watches=[Watch(**watch) for watch in kept["record"]["watches"]],
        )


@contextmanager
def _system_errors(folder: Path | None) -> Iterator[None]:
    """An error of the system, such as a full disk, as that and not as pages of its surroundings."""
    try:
        yield
    except OSError as error:
        # A write that fails, unlike an opening, names no file.
        if error.errno is not None and error.filename is None:
            raise OSError(error.errno, error.strerror, str(folder)) from None
        raise
    except ValueError as error:
        if found := re.search(r"os_error_code='(\d+)'", str(error)):
            raise OSError(int(found[1]), os.strerror(int(found[1])), str(folder)) from None
        raise


def _without_types(states: Any) -> Any:
    """NumPy arrays only, for orbax keeps no key array that a process of several has to itself."""
    return jax.tree.map(lambda x: np.asarray(jax.random.key_data(x)) if is_key(x) else x, states)


def _structured(like: TrainState, found: Any, folder: Path | None) -> TrainState:
    """What was found as `like` has it; in a file all that has fields is a dictionary."""
    name = partial(jax.tree_util.keystr, simple=True, separator=".")
    leaves = {name(path): leaf for path, leaf in jax.tree_util.tree_leaves_with_path(found)}
    kept = {(path, leaf.shape) for path, leaf in leaves.items()}
    wanted = jax.tree_util.tree_leaves_with_path(_without_types(like))
    if others := kept ^ {(name(path), leaf.shape) for path, leaf in wanted}:
        path, shape = min(others)
        where = "there alone" if (path, shape) in kept else "asked for"
        raise ValueError(
            f"the policies in {folder} are not of this network ({path} of shape {shape} is "
            f"{where}): train anew, or judge them with the version that trained them"
        )
    return jax.tree_util.tree_map_with_path(
        lambda path, leaf: _typed(leaf, leaves[name(path)]), like
    )


def _typed(like: Any, found: np.ndarray) -> Any:
    return (
        jax.random.wrap_key_data(jnp.asarray(found), impl=jax.random.key_impl(like))
        if is_key(like)
        else found
    )
