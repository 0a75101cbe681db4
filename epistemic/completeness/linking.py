"""A licence that must find the claim in what a model says.

A model's YES is a sentence that affirms its claim, its NO one that denies it, in words of some
style. A linker finds a claim and a stance in the sentence, rightly or not, and the licence judges
what was found. The sentence leaves as it is, or not at all: what it truly says decides whether it
was right.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from epistemic.cards import Claim
from epistemic.completeness.claims import Sample
from epistemic.completeness.results import ANY_TEXT
from epistemic.domain import Domain, find
from epistemic.linking.extraction import Finder
from epistemic.linking.found import Outcome, Stance, outcome
from epistemic.linking.names import Names, read_aliases
from epistemic.linking.texts import Texts, read_wordings
from epistemic.logic.draws import Draws
from epistemic.logic.lookup import Verdict
from epistemic.logic.oracle import Oracle
from epistemic.settings import Linker, LinkingSettings
from evidence.answers import Answer

_TEXTS = 60
"""First stream of a draw's seed for wordings; claims and answers have those below."""
SAID = (Answer.YES, Answer.NO)
"""The answers that are sentences; rows of `Heard` stand in this order."""
OUTCOMES = tuple(Outcome)


class Heard(NamedTuple):
    """A draw's claims as a linker finds them in sentences of a style.

    Attributes:
      claims: i32[2, N, 3], found in the sentence that affirms and in the one that denies.
      linked: bool[2, N], whether one was found.
      stance: i8[2, N] of `Verdict`, what the sentence is taken to say of it: E or C.
      outcome: i8[2, N], place in `Outcome`.
    """

    claims: np.ndarray
    linked: np.ndarray
    stance: np.ndarray
    outcome: np.ndarray


Way = tuple[str, str]
"""(style, linker)."""


Ways = Mapping[Way, Sequence[Heard]]
"""What each way finds, one a draw; controls among them."""


def without_wordings(settings: LinkingSettings, domain: str) -> list[str]:
    """The styles of texts that a domain has no wordings for, which are left out."""
    there = _optional(settings.wordings, domain) is not None
    return [] if there else [name for name, t in settings.texts.items() if t.wording == "other"]


def hear(
    domain: Domain, settings: LinkingSettings, samples: Sequence[Sample], seeds: Sequence[int]
) -> Ways:
    """Word every claim in every style, and find it again by every linker.

    Args:
      domain: the world.
      settings: styles and linkers.
      samples: one a draw.
      seeds: of the draws.
    """
    aliases = _optional(settings.aliases, domain.name)
    known = {} if aliases is None else read_aliases(aliases)
    path = _optional(settings.wordings, domain.name)
    wordings = None if path is None else read_wordings(path)
    finders = {name: _finder(domain, each, known) for name, each in settings.linkers.items()}
    ways: dict[Way, list[Heard]] = {
        (ANY_TEXT, "given"): [_given(one) for one in samples],
        **{
            (ANY_TEXT, f"finds {share:.0%}"): [
                _sometimes(one, share, seed) for one, seed in zip(samples, seeds, strict=True)
            ]
            for share in settings.finds
        },
        (ANY_TEXT, "random"): [
            _at_random(domain, one, seed) for one, seed in zip(samples, seeds, strict=True)
        ],
        (ANY_TEXT, "none"): [_nothing(one) for one in samples],
    }
    left_out = without_wordings(settings, domain.name)
    for place, (style, words) in enumerate(settings.texts.items()):
        if style in left_out:
            continue
        texts = Texts(domain, words, wordings, known)
        for one, seed in zip(samples, seeds, strict=True):
            said = [
                texts.say(one.claims, answer == Answer.YES, Draws(seed, _TEXTS + 2 * place + row))
                for row, answer in enumerate(SAID)
            ]
            for name, finder in finders.items():
                ways.setdefault((style, name), []).append(_found(domain, finder, one, said))
    return ways


def _optional(name: str | None, domain: str) -> str | None:
    """The path of a domain's file, or None where it has none."""
    try:
        return None if name is None else str(find(name.format(domain=domain)))
    except ValueError:
        return None


def _finder(domain: Domain, linker: Linker, aliases: Mapping[str, Sequence[str]]) -> Finder:
    """A linker that knows a share of the aliases."""
    named = [(iri, name) for iri, names in sorted(aliases.items()) for name in names]
    heard: dict[str, list[str]] = {}
    for place in np.flatnonzero(Draws(0, _TEXTS).uniform(len(named)) < linker.aliases).tolist():
        heard.setdefault(named[place][0], []).append(named[place][1])
    return Finder(domain, domain.graph, Names(domain.graph, heard, linker.similarity))


def _found(domain: Domain, finder: Finder, one: Sample, said: Sequence[list[str]]) -> Heard:
    """What a linker finds in the sentences about a draw's claims."""
    terms = domain.graph.terms
    meant = [Claim(*(terms[term] for term in row)) for row in one.claims.tolist()]
    found = [[finder.find(text) for text in texts] for texts in said]
    claims = np.stack([domain.oracle.encode([f.claim or ("",) * 3 for f in row]) for row in found])
    names = [[outcome(f, m, domain.constraints) for f, m in zip(row, meant, strict=True)]
             for row in found]  # fmt: skip
    denied = np.array([[f.stance is Stance.DENIES for f in row] for row in found])
    return Heard(
        claims,
        np.all(claims >= 0, axis=-1),
        np.where(denied, Verdict.CONTRADICTORY, Verdict.ENTAILED).astype(np.int8),
        np.array([[OUTCOMES.index(name) for name in row] for row in names], np.int8),
    )


# ---- controls ----


def true_stances(number: int) -> np.ndarray:
    """i8[2, N]: what the sentences truly say."""
    return np.repeat(np.array([[Verdict.ENTAILED], [Verdict.CONTRADICTORY]], np.int8), number, 1)


def _given(one: Sample) -> Heard:
    """The claims themselves: the upper bound."""
    shape = (2, len(one.claims))
    return Heard(
        np.stack([one.claims, one.claims]),
        np.ones(shape, bool),
        true_stances(shape[1]),
        np.full(shape, OUTCOMES.index(Outcome.RIGHT), np.int8),
    )


def _sometimes(one: Sample, share: float, seed: int) -> Heard:
    """A share of the claims is found, and never a wrong one."""
    heard = _given(one)
    found = Draws(seed, _TEXTS - 2).uniform(heard.linked.size).reshape(heard.linked.shape) < share
    missed = OUTCOMES.index(Outcome.NO_CLAIM)
    return heard._replace(linked=found, outcome=np.where(found, heard.outcome, np.int8(missed)))


def _nothing(one: Sample) -> Heard:
    """No claim is ever found, so that nothing leaves."""
    heard = _given(one)
    missed = np.full_like(heard.outcome, OUTCOMES.index(Outcome.NO_CLAIM))
    return heard._replace(linked=np.zeros_like(heard.linked), outcome=missed)


def _at_random(domain: Domain, one: Sample, seed: int) -> Heard:
    """The right relation between any two things that it relates somewhere in the world."""
    draws = Draws(seed, _TEXTS - 1)
    claims = np.stack([one.claims, one.claims])
    for predicate in np.unique(one.claims[:, 1]).tolist():
        rows = domain.oracle.compiled.by_predicate[predicate]
        here = np.flatnonzero(one.claims[:, 1] == predicate)
        for column in (0, 2):
            pool = np.unique(rows[:, column])
            drawn = pool[draws.below(len(pool), 2 * len(here))]
            claims[:, here, column] = drawn.reshape(2, -1)
    wrong = (claims != one.claims).any(-1)
    places = [OUTCOMES.index(each) for each in (Outcome.RIGHT, Outcome.WRONG)]
    return _given(one)._replace(
        claims=claims, outcome=np.where(wrong, *places[::-1]).astype(np.int8)
    )


# ---- the licence ----


def licensed(said: np.ndarray, heard: Heard, oracle: Oracle) -> np.ndarray:
    """i8[..., N]: answers whose sentences the licence lets through; the others become UNKNOWN.

    Args:
      said: i8[..., N] of `Answer`.
      heard: what is found in the sentences.
      oracle: of the worse graph.
    """
    left = said
    # A claim that wasn't found is judged as its neighbour in the table, and counts for nothing.
    verdicts = oracle.judge_ids(np.maximum(heard.claims, 0).reshape(-1, 3)).verdict
    proven = (verdicts.reshape(heard.stance.shape) == heard.stance) & heard.linked
    for answer, through in zip(SAID, proven, strict=True):
        left = np.where((said == answer) & ~through, np.int8(Answer.UNKNOWN), left)
    return left
