"""Checkpoints of a training: the newest states on disk, from which a killed training goes on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp

from evidence.runtime.devices import is_key, same_in_all_processes
from evidence.runtime.files import is_first_process
from goodharts_jax.ppo import History, TrainState
from goodharts_jax.watch import Watch


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
    It is written while the training goes on: a kill loses at most what was on its way.

    Args:
      folder: where checkpoints go and are looked for; None keeps nothing.
    """

    def __init__(self, folder: Path | None):
        self._folder, self._manager = folder, None
        if folder is None:
            return
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
            self._manager.close()

    def save(
        self,
        updates: int,
        fetch_states: Callable[[], TrainState],
        history: History,
        watches: list[Watch],
    ) -> None:
        """Keep a `Checkpoint`; its states are fetched only if they are to be kept."""
        if self._folder is None:
            return
        states = fetch_states()  # in all processes, for each has some of them
        if self._manager is None or not is_first_process():
            return
        record = {"history": history._asdict(), "watches": [dict(vars(watch)) for watch in watches]}
        self._manager.save(
            updates,
            args=ocp.args.Composite(
                states=ocp.args.StandardSave(_without_types(states)),
                record=ocp.args.StandardSave(record),
            ),
        )

    def latest(self, fetch_states: Callable[[], TrainState]) -> Checkpoint | None:
        """The newest checkpoint, its states structured as those that `fetch_states` returns.

        Raises:
          ValueError: several processes don't find the same.
        """
        step = None if self._manager is None else self._manager.latest_step()
        if not same_in_all_processes(-1 if step is None else step):
            raise ValueError(
                f"the processes find different checkpoints in {self._folder}: give all of them "
                "one folder that all can read"
            )
        if self._manager is None or step is None:
            return None
        like = fetch_states()
        kept = self._manager.restore(
            step,
            args=ocp.args.Composite(
                states=ocp.args.StandardRestore(_without_types(like)),
                record=ocp.args.StandardRestore(),
            ),
        )
        return Checkpoint(
            updates=step,
            states=jax.tree.map(_typed, like, kept["states"]),
            history=History(**kept["record"]["history"]),
            watches=[Watch(**watch) for watch in kept["record"]["watches"]],
        )


def _without_types(states: Any) -> Any:
    """NumPy arrays only, for orbax keeps no key array that a process of several has to itself."""
    return jax.tree.map(lambda x: np.asarray(jax.random.key_data(x)) if is_key(x) else x, states)


def _typed(like: Any, found: np.ndarray) -> Any:
    return (
        jax.random.wrap_key_data(jnp.asarray(found), impl=jax.random.key_impl(like))
        if is_key(like)
        else found
    )
