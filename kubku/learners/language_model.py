"""A language model asked the same halos, before and after it is shown the sample in context."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from evidence import answers
from evidence.answers import Answer
from evidence.runtime.language_models import Model
from kubku.halo import Samples
from kubku.tasks import Family, question, story

_ASK = (
    "Answer with one word: YES, NO or UNKNOWN. Say UNKNOWN unless what you were told settles it.\n"
    "{told}Question: {question}\nAnswer:"
)


def prompts(family: Family, samples: Samples, shown: bool) -> list[list[str]]:
    """One prompt a query, by sample; with the sample's facts in front where they are shown."""
    found = []
    for i in range(samples.label.shape[0]):
        sample = _row(samples, i)
        told = f"You were told: {story(family, sample)}\n" if shown else ""
        asked = [question(family, sample, q) for q in _asked(sample).tolist()]
        found.append([_ASK.format(told=told, question=query) for query in asked])
    return found


def ask(model: Model, family: Family, samples: Samples, shown: bool) -> np.ndarray:
    """The model's answers, i32[N, Q]: unreadable replies INVALID, failed calls ERROR; queries of
    the padding are UNKNOWN and count nowhere.
    """
    asked = prompts(family, samples, shown)
    replies = model.ask([prompt for of_sample in asked for prompt in of_sample])
    said = np.full(np.asarray(samples.kind).shape, int(Answer.UNKNOWN), np.int32)
    for i in range(len(asked)):
        for q in _asked(_row(samples, i)):
            reply = next(replies)
            unheard = reply.text is None or reply.error is not None
            said[i, q] = Answer.ERROR if unheard else answers.read(reply.text or "").answer
    return said


def _row(samples: Samples, i: int) -> Any:
    return jax.tree.map(lambda leaf: np.asarray(leaf)[i], samples)


def _asked(sample: Any) -> np.ndarray:
    return np.flatnonzero(sample.asked)
