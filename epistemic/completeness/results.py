"""What the study of completeness finds, as typed objects: the `results.json` it writes."""

from __future__ import annotations

from typing import Literal

import evidence
from epistemic.results import Count, Role, Share
from evidence.measurement import Measurement
from evidence.record import Record

Price = float
"""What a false answer costs, where a right one is worth 1 and an abstention nothing."""
Ruling = Literal["pays", "loses", "undetermined"]
Pays = Literal["above", "below", "always", "never"]
ANY_TEXT = "any"
"""The style of sentences for linkers that read none."""


class Point(Record):
    """A model licensed by a worse graph, beside the same model without a licence."""

    domain: str
    """Name of the domain."""
    model: str
    """What answers; "graph" is the worse graph itself, asked alone."""
    keep: Share
    """Share of the triples of the claims' predicates that the graph kept."""
    wrong: Share
    """Share of those whose object is another's."""
    price: Price
    """Of a false answer."""
    ruling: Ruling
    """Whether the gain's interval lies above 0, below 0, or neither."""
    gain: Measurement
    """Score a claim with the licence minus that without it."""
    over_graph: Measurement
    """Score a claim with the licence minus that of the graph asked alone: what the model adds."""
    LA: Measurement
    """With the licence: share of the entailed claims that are answered YES."""
    FAR_NE: Measurement
    """With the licence: false-answer rate on what is not entailed."""


class BreakEven(Record):
    """Where licensing begins to pay, for one model at one price."""

    domain: str
    """Name of the domain."""
    model: str
    """What answers."""
    wrong: Share
    """Share of wrong triples."""
    price: Price
    """Of a false answer."""
    pays: Pays
    """above: from the break-even on; below: up to it; always, never: at every share tried, at none,
    so that there is no break-even among them."""
    keep: Measurement
    """The share of triples kept at which the gain is 0. An end of the interval that is None lies
    beyond the shares tried."""


class Alone(Record):
    """A model without a licence, by what the world says."""

    domain: str
    """Name of the domain."""
    model: str
    """What answers."""
    role: Role
    """control: must not look good; reference: the graph."""
    wrong: Share
    """Share of wrong triples: some claims are read off the graph, errors included."""
    price: Price
    """Of a false answer; a calibrated model says less where it is high."""
    score: Measurement
    """Right answers less `price` for each false one, a claim. Below 0 silence is better."""
    LA: Measurement
    """Share of the entailed claims that are answered YES."""
    FAR_NE: Measurement
    """False-answer rate on what is not entailed."""


class Understood(Record):
    """What became of claims that were found in sentences, by how they were worded and found."""

    domain: str
    """Name of the domain."""
    text: str
    """How the sentences were worded; "any" for linkers that read none."""
    linker: str
    """What found the claims; "given" was told them, "finds 90%" was told so many and never erred,
    "random" took any two things of the right types, "none" found nothing."""
    right: Measurement
    """Share of the sentences whose claim was found."""
    wrong: Measurement
    """Share in which another claim was."""
    ambiguous: Measurement
    """Share in which several claims might be meant, so that none was taken."""
    not_found: Measurement
    """Share with a relation and a name that nothing bears."""
    no_claim: Measurement
    """Share in which no relation was seen."""
    misread: Measurement
    """Share that affirm and were taken to deny, or the other way round."""


class Linked(Record):
    """A model licensed by a worse graph that must find the claim in what the model says."""

    domain: str
    """Name of the domain."""
    text: str
    """See `Understood`."""
    linker: str
    """See `Understood`."""
    model: str
    """What answers."""
    keep: Share
    """Share of the triples of the claims' predicates that the graph kept."""
    wrong: Share
    """Share of those whose object is another's."""
    price: Price
    """Of a false answer."""
    ruling: Ruling
    """Whether the gain's interval lies above 0, below 0, or neither."""
    gain: Measurement
    """Score a claim with the licence minus that without it."""
    lost: Measurement
    """Score a claim minus that of the licence that is given its claims: what linking costs."""
    false: Measurement
    """With the licence: share of the claims that are answered falsely, NO to a true one included,
    which a denial that is misread lets out and FAR-NE doesn't count."""
    LA: Measurement
    """With the licence: share of the entailed claims that are answered YES."""
    FAR_NE: Measurement
    """With the licence: false-answer rate on what is not entailed."""


class LinkedBreakEven(BreakEven):
    """Where licensing begins to pay when the claim must be found."""

    text: str
    """See `Understood`."""
    linker: str
    """See `Understood`."""


class Linking(Record):
    """How much of what a licence wins is lost where it must find the claim itself."""

    understood: tuple[Understood, ...]
    """Every domain, text and linker."""
    points: tuple[Linked, ...]
    """Every domain, text, linker, model and share kept, at one price and share wrong."""
    break_even: tuple[LinkedBreakEven, ...]
    """Every domain, text, linker and model."""


class Size(Record):
    """What a domain's numbers rest on."""

    domain: str
    """Name of the domain."""
    triples: Count
    """In the whole graph."""
    losable: Count
    """Of these, triples of the claims' predicates, which may be lost or wrong."""
    claims: Count
    """In each draw."""
    cards: Count
    """That a language model was asked; 0 without one."""
    draws: Count
    """Worse graphs at each point."""


class Completeness(Record):
    """The sweep over how complete and how right the graph is."""

    sizes: tuple[Size, ...]
    """One a domain."""
    alone: tuple[Alone, ...]
    """Models without a licence."""
    points: tuple[Point, ...]
    """Every domain, model, share kept, share wrong and price."""
    break_even: tuple[BreakEven, ...]
    """Every domain, model, share wrong and price; the graph itself left out."""
    linking: Linking | None = None
    """The licence that must find its claims; None: the study has none."""


class Results(evidence.Results):
    """The results of the study of completeness."""

    completeness: Completeness
    """What was found."""
