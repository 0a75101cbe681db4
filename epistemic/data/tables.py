"""Tables of our own for the graphs that ship: shapes, languages, names, mouths and tributaries."""

from __future__ import annotations

import re

BASE = "https://example.org/geo#"
PREFIXES = f"""@prefix : <{BASE}> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix sh: <http://www.w3.org/ns/shacl#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
"""

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
