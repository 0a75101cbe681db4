"""The language model's row: prompts hold the story only when shown, and failures are no answers."""

import jax
import numpy as np
import pytest

from evidence.answers import Answer
from evidence.runtime.language_models import Reply
from kubku.learners import language_model
from kubku.scoring import score_batch
from kubku.tasks import FAMILIES, generate, story


class Scripted:
    """Knows the right answer to what it was told, and answers UNKNOWN to the rest."""

    name = "scripted"

    def __init__(self, known, replies):
        self.known, self.replies, self.seen = known, replies, []

    def ask(self, prompts):
        for prompt in prompts:
            self.seen.append(prompt)
            yield self.replies.get(self.known.get(prompt), Reply("UNKNOWN"))


@pytest.fixture(scope="module")
def samples():
    return generate(FAMILIES["stories"], jax.random.key(5), 3, "test")


def test_halos_are_asked_before_and_after(samples):
    family = FAMILIES["stories"]
    asked = language_model.prompts(family, samples, shown=True)
    known = {
        prompt: Answer(int(gold))
        for of_sample, golds in zip(asked, np.asarray(samples.gold), strict=True)
        for prompt, gold in zip(of_sample, golds, strict=True)
    }
    model = Scripted(known, {Answer.YES: Reply("YES"), Answer.NO: Reply("No.")})
    after = language_model.ask(model, family, samples, shown=True)
    before = language_model.ask(model, family, samples, shown=False)
    found = score_batch(after, samples)
    assert found.ku.tolist() == [2.0] * 3 and found.bku.tolist() == [0.0] * 3
    assert (before == Answer.UNKNOWN).all()
    told = story(family, jax.tree.map(lambda leaf: np.asarray(leaf)[0], samples))
    assert told in model.seen[0] and told not in model.seen[-48]


def test_a_failure_is_neither_an_abstention_nor_bad_knowledge(samples):
    replies = {Answer.YES: Reply(None, "timed out"), Answer.NO: Reply("perhaps")}
    family = FAMILIES["stories"]
    asked = language_model.prompts(family, samples, shown=True)
    known = {p: Answer.YES if i % 2 else Answer.NO for x in asked for i, p in enumerate(x)}
    said = language_model.ask(Scripted(known, replies), family, samples, shown=True)
    assert (said[:, 1::2] == Answer.ERROR).all() and (said[:, ::2] == Answer.INVALID).all()
    found = score_batch(said, samples)
    assert found.bku.tolist() == found.bku_yes.tolist() == found.abstained.tolist() == [0.0] * 3
    assert found.invalid.tolist() == found.errors.tolist() == [0.5] * 3
