"""Where a study's samples come from: drawn by their families, or read from the user's file."""

from __future__ import annotations

from collections import defaultdict
from functools import lru_cache, partial
from threading import Lock
from typing import Any, NamedTuple, TypeVar, cast

import jax
import numpy as np

from evidence.runtime.devices import job_devices
from kubku.base_states import WORLDS, keys
from kubku.halo import Kind, Sample, Samples
from kubku.results import Example, KindName, Query
from kubku.settings import Budget, Experiment
from kubku.tasks import (
    FAMILIES,
    Family,
    Rules,
    apart,
    generate,
    jsonl,
    public,
    question,
    seats,
    story,
)
from kubku.tasks.jsonl import FROM_FILE
from kubku.tasks.lines import Read
from kubku.tasks.public import Wanted

EXAMPLES = 6
"""Samples of a family that are shown in words."""


class Splits(NamedTuple):
    """What learners of a family are tuned and asked on for one generator seed, as NumPy arrays,
    which are cut without compiling anything.

    Attributes:
      validation: Samples that settings are tuned on.
      test: Samples that scores are about.
      pairs: Samples, two and two, that differ in a protected attribute alone.
      streams: Samples with leading axes [streams, length].
    """

    validation: Samples
    test: Samples
    pairs: Samples
    streams: Samples


class Source:
    """Every split of a study, drawn when it is first wanted and then kept.

    It may be asked by several threads: a family's samples are drawn by one at a time.

    Args:
      settings: of the study; seeds and sizes are taken from them.

    Attributes:
      families: those that were chosen, by name.

    Raises:
      ValueError: samples that aren't drawn can't be read; names the place.
    """

    def __init__(self, settings: Experiment) -> None:
        self._settings = settings
        self._read = {
            name: _read(name, settings) for name in settings.task.families if name not in FAMILIES
        }
        own = {name: read.family for name, read in self._read.items()}
        known = FAMILIES | own
        self.families: dict[str, Family] = {name: known[name] for name in settings.task.families}
        self._drawing = defaultdict[str, Lock](Lock)
        self._splits = lru_cache(maxsize=None)(self._draw_splits)
        # A full study's would not all fit the memory.
        self._pretrain = lru_cache(maxsize=32)(self._draw_pretrain)

    def splits(self, family: str, replicate: int) -> Splits:
        """What the learners of a replicate are tuned and asked on."""
        with self._drawing[family], jax.default_device(self._place(family)):
            return self._splits(family, self._settings.seeds(replicate)[1])

    def pretrain(self, family: str, world: str, replicate: int) -> Samples:
        """What the base states of a replicate are made from, as NumPy arrays."""
        with self._drawing[family], jax.default_device(self._place(family)):
            return self._pretrain(family, world, *self._settings.seeds(replicate))

    def rules(self, family: str, replicate: int) -> Rules:
        """What follows from what in all samples of a replicate.

        Raises:
          ValueError: the family has no rules.
        """
        return self._rules(family, self._settings.seeds(replicate)[1])

    def _rules(self, family: str, generator_seed: int) -> Rules:
        _, of_rules = self._keys(generator_seed)
        return self.families[family].rules(of_rules)

    def _keys(self, generator_seed: int) -> tuple[jax.Array, jax.Array]:
        """Keys of a generator seed: of the samples that are asked about, of the rules."""
        key = jax.random.key(seed_of_draws(self._settings.seed, generator_seed))
        return key, jax.random.fold_in(key, 8)  # no split's number, see `generate`

    def digest(self, family: str) -> str | None:
        """Of what was read; None where samples are drawn from the settings alone."""
        return self._read[family].digest if family in self._read else None

    def _place(self, family: str) -> jax.Device:
        """Where a family's samples are drawn, whoever wants them: each device would compile it."""
        devices = job_devices()
        return devices[self._settings.task.families.index(family) % len(devices)]

    def _draw_splits(self, family: str, generator_seed: int) -> Splits:
        budget, seed = self._settings.budget, self._settings.seed
        if family in self._read:
            return _of_read(self._read[family].samples, budget, seed)
        key, _ = self._keys(generator_seed)
        rules = self._rules(family, generator_seed)
        return _drawn(self.families[family], rules, budget, key)

    def _draw_pretrain(
        self, family: str, world: str, base_seed: int, generator_seed: int
    ) -> Samples:
        size = self._settings.budget.pretrain
        if family in self._read:
            heard = self._read[family].pretrain
            assert heard is not None, "no base state is made of nothing"
            return seats.seated(rows(heard, slice(0, size)), "pretrain")
        *_, key = keys(base_seed)
        rules, skew = self._rules(family, generator_seed), WORLDS[world]
        return generate(self.families[family], key, size, "pretrain", skew=skew, rules=rules)


def seed_of_draws(seed: int, generator_seed: int) -> int:
    """The seed of a replicate's rules and samples, from the study's. Studies share some where
    theirs differ by a small multiple of 1,000.
    """
    return seed + 1000 * generator_seed


def _drawn(family: Family, rules: Rules, budget: Budget, key: jax.Array) -> Splits:
    draw = partial(generate, family, rules=rules)
    of_pairs, of_streams = jax.random.split(key, 2)
    flowing = draw(of_streams, budget.streams * budget.length, "test")
    shape = budget.streams, budget.length
    streams = jax.tree.map(lambda leaf: leaf.reshape(*shape, *leaf.shape[1:]), flowing)
    return Splits(
        draw(key, budget.validation, "validation"),
        draw(key, budget.test, "test"),
        draw(of_pairs, budget.pairs, "test", pairs=True),
        apart(streams),
    )


def _read(name: str, settings: Experiment) -> Read:
    task, budget = settings.task, settings.budget
    if name == FROM_FILE:
        assert task.path is not None, "settings without the file are refused"
        return jsonl.read(task.path, task.pretrain)
    # Every second one is for tuning.
    scored = 2 * max(budget.test, budget.validation)
    return public.read(name, task.package, Wanted(scored, budget.pretrain, settings.seed))


def _of_read(samples: Samples, budget: Budget, seed: int) -> Splits:
    tuned, scored, paired = seats.split(samples)
    # No sample twice in a stream, or it would be known already.
    shuffled = np.random.default_rng(seed)
    flowing = [shuffled.permutation(scored)[: budget.length] for _ in range(budget.streams)]
    return Splits(
        seats.seated(rows(samples, tuned), "validation"),
        seats.seated(rows(samples, scored), "test"),
        seats.seated(rows(samples, paired), "test"),
        seats.streamed(rows(samples, np.stack(flowing))),
    )


Rows = TypeVar("Rows")


def rows(leaves: Rows, chosen: Any) -> Rows:
    """One or some of the samples (or statements), by number, slice or array of numbers."""
    return jax.tree.map(lambda leaf: leaf[chosen], leaves)


def examples(family: Family, samples: Samples, most: int) -> list[Example]:
    """The first samples in words, with the right answers; at most `most`, nor more than
    `EXAMPLES`.
    """
    plain = jax.tree.map(np.asarray, samples)
    several = range(min(EXAMPLES, most, len(plain.label)))
    return [_example(family, rows(plain, row), row) for row in several]


def _example(family: Family, sample: Sample, row: int) -> Example:
    queries = tuple(
        Query(
            text=question(family, sample, int(q)),
            kind=cast(KindName, Kind(int(sample.kind[q])).name.lower()),
            gold=int(sample.gold[q]),
        )
        for q in np.flatnonzero(sample.asked)
    )
    return Example(family=family.name, row=row, story=story(family, sample), queries=queries)
