"""The graphs that ship: what is read out of the World Factbook's text, and how it is written."""

from __future__ import annotations

import pytest
import rdflib

from epistemic.data.factbook import Entry, Heights, elevations, read_rivers, settled
from epistemic.data.make import rivers_turtle

NAMES = {"FR": "France", "DE": "Germany", "CH": "Switzerland"}
COUNTRIES = {code: {"name": name, "population": 1} for code, name in NAMES.items()}
RHINE = "Rhine river source (shared with Germany, France, and Netherlands [m]) - 1,233 km"
ENTRIES = {
    "Switzerland": Entry("Lake Maggiore 195 m", "Dufourspitze 4,634 m", f"<p>{RHINE}</p>"),
    "France": Entry("Rhone delta -2 m", "Mont Blanc 4,810 m", "Loire - 1,012 km; Rhine - 1,230 km"),
    "Flatland": Entry("all over 5 m", "all over 5 m", ""),
    "Nowhere": Entry("", "Top 10 m", ""),
}


def test_heights_are_read_where_both_are_given_and_differ():
    assert elevations(ENTRIES) == {"Switzerland": Heights(195, 4634), "France": Heights(-2, 4810)}


def test_a_river_is_merged_over_the_countries_that_list_it():
    rivers = read_rivers(ENTRIES)
    assert list(rivers) == ["Loire", "Rhine"]
    rhine = rivers["Rhine"]
    assert rhine.lengths == {1233: 1, 1230: 1}
    assert rhine.countries == {"Switzerland", "France", "Germany", "The Netherlands"}
    assert rhine.sources["Switzerland"] == 1
    assert rhine.mouths["The Netherlands"] == 1
    assert rhine.sources["Germany"] == 0


def test_what_entries_disagree_on_is_left_open_and_said():
    assert settled(read_rivers(ENTRIES)["Rhine"].lengths) == (None, [1230, 1233])
    countries = COUNTRIES | {"NL": {"name": "The Netherlands", "population": 1}}
    graph = rdflib.Graph().parse(data=rivers_turtle(countries, ENTRIES), format="turtle")
    base = rdflib.Namespace("https://example.org/geo#")
    assert graph.value(base["river-Rhine"], base.length) is None
    assert "length given as 1230, 1233" in [
        str(c) for c in graph.objects(base["river-Rhine"], rdflib.RDFS.comment)
    ]
    assert int(graph.value(base["river-Loire"], base.length)) == 1012
    assert graph.value(base["river-Loire"], base.mouth) == base["water-Atlantic-Ocean"]


def test_a_country_of_another_name_is_refused():
    with pytest.raises(ValueError, match=r"Rhine: no country is called \['The Netherlands'\]"):
        rivers_turtle(COUNTRIES, ENTRIES)
