"""English words that properties are called by: enough to tell how a label is meant, or that it
can't be told.

A label is taken for a noun or a verb on evidence alone: a word that may be either, such as
"influences", is in none of these lists.
"""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


PREPOSITIONS = _words(
    """
    about above across after against along among around as at before behind below beneath
    beside between beyond by during for from in inside into near of off on onto outside over
    since than through to toward towards under until upon via with within without
    """
)

AUXILIARIES = _words(
    """
    are can could did does had has have may might must should was were will would
    """
)

NOUNS = _words(
    """
    abbreviation abstract acronym address administrator age alias ally altitude ambassador
    ancestor antonym apex area artist aunt author award badge basin birthdate birthday
    birthplace bishop boss brother capital captain category cell ceo chairman chairperson
    chapter child city class code colleague college color colour company component constituency
    contents continent copyright corpus country county cousin creator crew currency customer
    date daughter day deadline deathplace decade degree density departure depth descendant
    description diameter director disease district doctor duration dynasty editor elevation
    email employee employer epoch era ethnicity faculty family father founder frequency friend
    gender gene genre genus group headquarters height holonym homepage hometown husband
    hypernym hyponym id identifier industry ingredient inventor isbn island issn job king
    kingdom label lake language latitude leader league length letter licence license location
    longitude maker mass material mayor member meronym method midwife minister monarch month
    mother motto mountain mouth movement museum name nation nationality neighbor neighbour
    nephew nickname niece novel number occupation ocean office officer operator organ organism
    origin outcome owner parent parish part partner party percentage person phase phone phylum
    place planet player poet politician population port position postcode precipitation
    predecessor president price prize producer product profession province publisher pupil
    quantity queen region relative religion republic river role salary school sea season sector
    sequence serial sex sibling singer sister size skill son song source species speed spouse
    state status street student subclass subject subtype successor summit superclass supervisor
    surname symptom synonym taxon teacher team telephone temperature tenant territory theme
    time timezone title topic town tributary type uncle unit university url user username value
    variety vendor version village volume website weight wheelbase width wife winner word
    writer year zone
    """
)
"""Nouns for what somebody or something has: as a property's label, hardly ever a verb."""

NOUN_ENDINGS = (
    "tion", "sion", "ment", "ness", "ity", "hood", "ship", "ism", "ance", "ence", "logy", "graphy",
)  # fmt: skip
NOT_NOUNS = _words(
    """
    advance balance commission complement condition document evidence experience
    experiment finance function harness implement influence mention petition position question
    reference sentence ship silence supplement witness worship
    """
)
"""Words with such endings that are verbs as often."""

VERBS = _words(
    """
    accompany admire advise affect appear appoint attend become begin belong bind border bring
    build buy carry come compete compose conquer consist contain create criticise criticize
    cross define denote depend depict derive describe develop die differ discover drain eat
    emerge employ enclose encode entail enter exist explain express extend flow follow govern
    grow happen hold imply include inhabit inhibit inspire interact invent invite involve join
    keep know lie live lose make marry meet obtain occupy occur oppose originate own
    participate pay perform precede prevent produce prove provide publish receive regulate
    represent require reside rise sell send serve sing sit speak spend succeed surround
    symbolise symbolize take teach tell think translate treat understand worship write
    """
)
"""Verbs whose form in -s is no plural that a property is called by."""

PASTS = _words(
    """
    ate became began bought brought built came fed fought found gave got grew held hid kept
    knew led left lost made met outlived paid ran rose said sang sat saw sent sold spent spoke
    stood taught thought told took went won wore wrote
    """
)
"""Irregular past tenses."""

INTRANSITIVE_PASTS = _words(
    """
    appeared arrived belonged competed debuted died emerged escaped existed fled flowed fought
    graduated happened lectured lived migrated moved occurred originated participated played
    resided resigned retired sailed served settled starred stayed studied taught traveled
    travelled voted went worked
    """
)
