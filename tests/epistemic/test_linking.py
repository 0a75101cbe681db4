"""Finding claims in words: by hand, in planted graphs, and in wordings that are not ours."""

from dataclasses import replace

import numpy as np
import pytest

from epistemic.cards import Claim, read_cards
from epistemic.domain import Domain, built_in, find, load_domain
from epistemic.linking.extraction import Finder
from epistemic.linking.found import Outcome, Stance, Status, outcome
from epistemic.linking.names import Names, read_aliases, tokens
from epistemic.linking.texts import Style, Texts, misspelt, read_wordings
from epistemic.logic.compilation import with_vocabulary
from epistemic.logic.constraints import Constraints
from epistemic.logic.draws import Draws
from epistemic.logic.graph import LABEL, TYPE, Graph
from epistemic.logic.kinds import MaxCount
from epistemic.logic.oracle import Oracle
from epistemic.predicates import PredicateSettings, in_words
from epistemic.systems.base import Query, Response, query_of
from epistemic.systems.linked import Linked
from evidence.answers import Answer

X = "http://x/"
NUMBER = "http://www.w3.org/2001/XMLSchema#integer"


def planted(*more):
    """Three cities, two lands and their kings; `more` triples beside."""
    names = {"paris": "Paris", "lyon": "Lyon", "oslo": "Oslo", "france": "France",
             "norway": "Norway", "louis": "Louis XVI", "haakon": "Haakon"}  # fmt: skip
    kinds = {"paris": "City", "lyon": "City", "oslo": "City", "france": "Land", "norway": "Land",
             "louis": "Person", "haakon": "Person"}  # fmt: skip
    triples = [(X + key, LABEL, f'"{name}"@en') for key, name in names.items()]
    triples += [(X + key, TYPE, X + kind) for key, kind in kinds.items()]
    triples += [(f"{X}{s}", f"{X}{p}", f"{X}{o}") for s, p, o in (
        ("france", "capital", "paris"), ("norway", "capital", "oslo"), ("lyon", "in", "france"),
        ("france", "king", "louis"), ("norway", "king", "haakon"))]  # fmt: skip
    triples += [(f"{X}{s}", f"{X}people", f'"{n}"^^<{NUMBER}>')
                for s, n in (("paris", 2100000), ("oslo", 700000))]  # fmt: skip
    constraints = Constraints((MaxCount(X + "capital", ("1",)), MaxCount(X + "king", ("1",))))
    graph = with_vocabulary(Graph.from_triples([*triples, *more]), constraints)
    words = {
        "capital": PredicateSettings(iri=X + "capital"),
        "king": PredicateSettings(iri=X + "king"),
        "in": PredicateSettings(iri=X + "in", questions=("Is {s} in {o}?",),
                                facts=("{s} is in {o}.",), denials=("{s} is not in {o}.",)),
        "people": PredicateSettings(iri=X + "people", label="population", unit="people"),
    }  # fmt: skip
    predicates = {name: in_words(name, each, constraints) for name, each in words.items()}
    return Domain("planted", graph, constraints, predicates)


def finder(domain, aliases=None, similarity=None):
    return Finder(domain, domain.graph, Names(domain.graph, aliases, similarity))


def said(domain, text, **how):
    """(status, the claim's last segments, stance) of a text."""
    found = finder(domain, **how).find(text)
    claim = found.claim and tuple(term.rsplit("/", 1)[-1].split('"')[0] for term in found.claim)
    return found.status, claim, found.stance


CAPITAL = ("france", "capital", "paris")


def test_words_of_a_text_by_hand():
    assert tokens("The mouth of São Francisco: 1,200 km!") == (
        "mouth", "of", "sao", "francisco", "1200", "km"
    )  # fmt: skip
    assert tokens("N'Djamena's -25.5 m") == ("n", "djamena", "s", "-25.5", "m")


@pytest.mark.parametrize(
    ("text", "claim", "stance"),
    [
        ("Is Paris the capital of France?", CAPITAL, Stance.ASKS),
        ("France's capital city is PARIS.", CAPITAL, Stance.AFFIRMS),
        ("No, Paris is not the capital of France.", CAPITAL, Stance.DENIES),
        ("It isn't true that the capital of France is Paris.", CAPITAL, Stance.DENIES),
        ("Unlike Lyon, which isn't one, Paris is the capital of France.", CAPITAL, Stance.AFFIRMS),
        ("Paris, which is not in Norway, is the capital of France.", CAPITAL, Stance.AFFIRMS),
        ("Paris, which nobody denies, is the capital of France.", CAPITAL, Stance.AFFIRMS),
        ("Paris, which is the capital of France, is old.", CAPITAL, Stance.AFFIRMS),
        ("It is not false that Paris is the capital of France.", CAPITAL, Stance.AFFIRMS),
        ("Paris is the capital of Norway.", ("norway", "capital", "paris"), Stance.AFFIRMS),
        ("Lyon lies in France.", ("lyon", "in", "france"), Stance.AFFIRMS),
        ("Is Paris a city?", ("paris", "22-rdf-syntax-ns#type", "City"), Stance.ASKS),
    ],
)
def test_claims_by_hand(text, claim, stance):
    assert said(planted(), text) == (Status.LINKED, claim, stance)


def test_a_number_is_the_graphs_own_literal_or_a_new_one():
    domain = planted()
    for people in (700000, 5):
        found = finder(domain).find(f"Oslo has a population of {people:,} people.")
        assert found.claim == (X + "oslo", X + "people", f'"{people}"^^<{NUMBER}>')


def test_a_literal_in_words_is_found_by_them():
    wanted = Claim(X + "france", X + "king", '"Charles the Last"')
    domain = planted(wanted)
    found = finder(domain).find("The king of France is Charles the Last.")
    assert found.claim == wanted
    # Labels themselves are no things that a claim could be about.
    assert finder(domain).find("The king of France is Oslo.").claim.obj == X + "oslo"


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("Rome is the capital of France.", Status.NOT_FOUND),
        ("Paris loves France.", Status.NO_CLAIM),
        ("I would rather not say.", Status.NO_CLAIM),
    ],
)
def test_what_is_not_there_is_not_found(text, status):
    assert said(planted(), text)[:2] == (status, None)


def test_two_of_one_name_and_type_are_ambiguous_and_none_is_guessed():
    twin = ((X + "paris2", LABEL, '"Paris"@en'), (X + "paris2", TYPE, X + "City"))
    domain = planted(*twin)
    assert said(domain, "Paris is the capital of France.")[:2] == (Status.AMBIGUOUS, None)
    assert said(domain, "Oslo is the capital of Norway.")[0] is Status.LINKED


@pytest.mark.parametrize(
    "text",
    [
        "The capital of France is Paris, not Lyon.",
        "Lyon is not the capital of France, it is Paris.",
        "Is the capital of France Paris or Lyon?",
    ],
)
def test_a_sentence_of_several_claims_is_not_taken_for_one(text):
    assert said(planted(), text)[:2] == (Status.AMBIGUOUS, None)


def test_types_settle_which_of_one_name_is_meant():
    twin = ((X + "hilton", LABEL, '"Paris"@en'), (X + "hilton", TYPE, X + "Person"))
    assert said(planted(*twin), "Paris is the capital of France.")[1] == CAPITAL
    king = ("france", "king", "hilton")
    assert said(planted(*twin), "Paris is the king of France.")[1] == king


def test_aliases_and_misspelt_names():
    domain = planted()
    misspelt_text = "The capital of Frnace is Paris."
    assert said(domain, misspelt_text)[0] is Status.NOT_FOUND
    assert said(domain, misspelt_text, similarity=80)[1] == CAPITAL
    aliases = {X + "paris": ["Lutetia"]}
    assert said(domain, "Lutetia is the capital of France.")[0] is Status.NOT_FOUND
    assert said(domain, "Lutetia is the capital of France.", aliases=aliases)[1] == CAPITAL
    # A name that is part of a longer one is not the longer one's.
    assert said(domain, "Paris is the capital of New France.")[0] is Status.NOT_FOUND


def test_names_alike_are_ambiguous():
    twin = ((X + "osli", LABEL, '"Osli"@en'), (X + "osli", TYPE, X + "City"))
    text = "The capital of Norway is Osle."
    assert said(planted(), text, similarity=70)[1] == ("norway", "capital", "oslo")
    assert said(planted(*twin), text, similarity=70)[0] is Status.AMBIGUOUS


def test_where_labels_are_unique_and_texts_plain_all_is_found():
    domain = planted()
    reader = finder(domain)
    iris = [predicate.iri for predicate in domain.predicates.values()]
    spoken = [domain.graph.ids[iri] for iri in iris]
    claims = domain.graph.triples[np.isin(domain.graph.triples[:, 1], spoken)]
    for holds, stance in ((True, Stance.AFFIRMS), (False, Stance.DENIES)):
        for seed in range(5):
            texts = Texts(domain, Style()).say(claims, holds, Draws(seed))
            for row, text in zip(claims.tolist(), texts, strict=True):
                found = reader.find(text)
                meant = Claim(*(domain.graph.terms[term] for term in row))
                assert outcome(found, meant, domain.constraints) is Outcome.RIGHT, text
                assert found.stance is stance, text


@pytest.mark.parametrize("name", ["rivers", "countries"])
def test_decks_that_ship_are_found_in_their_own_words(name):
    domain = load_domain(built_in(name))
    reader = finder(domain)
    for card in read_cards(find(f"deck_{name}.jsonl")):
        found = reader.find(card.question)
        assert outcome(found, card.claim, domain.constraints) is Outcome.RIGHT, card.question
        for text, (*meant, holds) in zip(card.facts, card.stated, strict=True):
            found = reader.find(text)
            assert outcome(found, Claim(*meant), domain.constraints) is Outcome.RIGHT, text
            assert (found.stance is Stance.AFFIRMS) == holds, text


def test_an_inverse_spelling_is_the_same_claim():
    domain = load_domain(built_in("rivers"))
    geo = "https://example.org/geo#"
    found = finder(domain).find("Aare is a tributary of Rhine.")
    other = Claim(geo + "river-Rhine", geo + "tributary", geo + "river-Aare")
    assert found.claim is not None and found.claim.pred == geo + "tributaryOf"
    assert outcome(found, other, domain.constraints) is Outcome.RIGHT
    turned = Claim(other.obj, other.pred, other.subj)
    assert outcome(found, turned, domain.constraints) is Outcome.WRONG


# ---- other words ----


def test_a_misspelt_name_is_one_edit_away():
    edits = {misspelt("Norway", chance) for chance in np.linspace(0, 0.999, 500).tolist()}
    assert {"Noraway", "Nrway", "Noorway", "Nroway"} & edits and len(edits) > 50
    assert all(5 <= len(name) <= 7 and name[0] == "N" for name in edits)


@pytest.mark.parametrize("name", ["rivers", "countries"])
def test_names_are_changed_at_the_stated_rates(name):
    domain = load_domain(built_in(name))
    aliases = read_aliases(find(f"{name}_aliases.ttl"))
    wordings = read_wordings(find(f"wordings_{name}.yaml"))
    assert set(wordings.affirm) == set(domain.predicates)
    others = {alias for each in aliases.values() for alias in each}
    claims = domain.graph.triples[domain.graph.triples[:, 1] == domain.graph.ids[
        next(iter(domain.predicates.values())).iri]]  # fmt: skip
    style = Style(wording="other", alias=1.0)
    called = Texts(domain, style, wordings, aliases).say(claims, True, Draws(1))
    assert sum(any(alias in text for alias in others) for text in called) > 10
    plain, rough = (
        Texts(domain, Style(wording="other", misspelt=rate), wordings).say(claims, True, Draws(1))
        for rate in (0.0, 0.4)
    )
    # Two names a text, nearly all of five letters or more: 1 - 0.6 * 0.6.
    changed = np.mean([one != other for one, other in zip(plain, rough, strict=True)])
    assert 0.4 < changed < 0.7


def test_likeness_finds_what_exact_names_miss_and_still_loses():
    """The reason for a library of string matching; and the texts are hard enough to lose."""
    domain = load_domain(built_in("countries"))
    wordings = read_wordings(find("wordings_countries.yaml"))
    capital = domain.graph.triples[:, 1] == domain.graph.ids[domain.predicates["capital"].iri]
    claims = domain.graph.triples[capital]
    texts = Texts(domain, Style(wording="other", misspelt=0.3), wordings).say(
        claims, True, Draws(3)
    )
    right = {}
    for similarity in (None, 85.0):
        reader = finder(domain, similarity=similarity)
        meant = [Claim(*(domain.graph.terms[term] for term in row)) for row in claims.tolist()]
        right[similarity] = np.mean([
            outcome(reader.find(text), claim, domain.constraints) is Outcome.RIGHT
            for text, claim in zip(texts, meant, strict=True)
        ])  # fmt: skip
    assert right[85.0] > right[None] + 0.15 and right[85.0] < 0.98


# ---- the system ----


class Saying:
    """Says the same to everyone, and notes what it was asked."""

    def __init__(self, response):
        self.response, self.asked = response, []

    def answer(self, queries):
        self.asked += queries
        return [self.response for _ in queries]


def linked(domain, response):
    system = Saying(response)
    oracle = Oracle(domain.graph, domain.constraints)
    return Linked(system, oracle, finder(domain), domain.constraints), system


TRUE = Query("a", (), "Is Paris the capital of France?", Claim(*(X + part for part in CAPITAL)))
FALSE = replace(TRUE, question="Is Oslo the capital of France?",
                claim=Claim(X + "france", X + "capital", X + "oslo"))  # fmt: skip


def test_the_licence_goes_by_the_question_and_not_by_the_claim_it_is_given():
    """The queries' own claims are swapped: answers stay, and only what is counted changes."""
    domain = planted()
    asked = [TRUE, FALSE]
    right, system = linked(domain, Response(Answer.YES))
    plain = list(right.answer(asked))
    assert [r.answer for r in plain] == [Answer.YES, Answer.UNKNOWN]
    assert [r.linking for r in plain] == ["right", "right"]
    swapped = [replace(TRUE, claim=FALSE.claim), replace(FALSE, claim=TRUE.claim)]
    again = list(right.answer(swapped))
    assert [r.answer for r in again] == [r.answer for r in plain]
    assert [r.linking for r in again] == ["wrong", "wrong"]
    assert [query.claim for query in system.asked] == [TRUE.claim, FALSE.claim] * 2


def test_where_no_claim_is_found_nothing_is_asked_and_nothing_said():
    domain = planted((X + "paris2", LABEL, '"Paris"@en'), (X + "paris2", TYPE, X + "City"))
    system, behind = linked(domain, Response(Answer.YES))
    (response,) = system.answer([TRUE])
    assert (response.answer, response.linking) == (Answer.UNKNOWN, "ambiguous")
    assert not behind.asked and "several things are called Paris" in response.proof


@pytest.mark.parametrize(
    ("query", "raw", "answer", "reading"),
    [
        (TRUE, "France has Paris as its capital.", Answer.YES, "statement"),
        (TRUE, "Paris isn't the capital of France.", Answer.UNKNOWN, "statement"),  # not licensed
        (FALSE, "The capital of France is not Oslo.", Answer.NO, "statement"),
        # France has one capital, which the reply names; the graph says so too.
        (FALSE, "France's capital is Paris.", Answer.NO, "other"),
        (FALSE, "Lyon is in France.", Answer.INVALID, None),
        (TRUE, "Well, who knows.", Answer.INVALID, None),
    ],
)
def test_a_reply_without_an_answer_word_is_read_as_a_statement(query, raw, answer, reading):
    domain = planted()
    rules = tuple(rule.name for rule in domain.constraints.rules)
    system, _ = linked(domain, Response(Answer.INVALID, raw=raw))
    (response,) = system.answer([replace(query, axioms=rules)])
    assert (response.answer, response.reading) == (answer, reading)


def test_what_was_cut_off_is_not_read():
    domain = planted()
    raw = "That is a good question. The capital of France is Paris"
    for finish, answer in (("stop", Answer.YES), ("length", Answer.INVALID), (None, Answer.YES)):
        system, _ = linked(domain, Response(Answer.INVALID, raw=raw, finish=finish))
        assert next(iter(system.answer([TRUE]))).answer == answer


def test_on_a_deck_that_ships_it_says_what_the_licence_says_that_is_given_the_claim():
    """Over a model that always says YES, on the graph that is whole."""
    domain = load_domain(built_in("rivers"))
    queries = [query_of(card) for card in read_cards(find("deck_rivers.jsonl"))]
    system, _ = linked(domain, Response(Answer.YES))
    proven = domain.oracle.judge([query.claim for query in queries]).verdict
    answers = [response.answer for response in system.answer(queries)]
    assert answers == [Answer.YES if v == Answer.YES else Answer.UNKNOWN for v in proven]
