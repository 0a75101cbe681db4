import re
from dataclasses import replace

import jinja2
import pytest

from evidence import Condition, pages, rule
from evidence.measurement import Measurement
from evidence.results import Device, Manifest
from evidence.ruling import enough_replicates

EFFICIENCY = Measurement(0.99784, 0.99662, 0.99906, 5, "run", "t 95%")


def rendered(source: str, file: str = "page.html", **context) -> str:
    """Render a template given as text, with the filters and rules of `pages.render`."""
    environment = pages._environment("evidence").overlay(
        loader=jinja2.ChoiceLoader(
            [jinja2.DictLoader({file: source}), jinja2.PackageLoader("evidence")]
        )
    )
    return environment.get_template(file).render(**context)


@pytest.mark.parametrize(
    ("quantity", "printed"),
    [
        (EFFICIENCY, "99.8% [99.7, 99.9]"),
        (Measurement(0.5, None, None, 1, "run", "no interval"), "50.0%"),
        (Measurement(None, None, None, 3, "run", "undefined"), "–"),
        (0.439, "43.9%"),
        (-0.0004, "0.0%"),
        (-0.011, "−1.1%"),
        (None, "–"),
    ],
)
def test_percent(quantity, printed):
    assert pages.percent(quantity) == printed


@pytest.mark.parametrize(
    ("quantity", "digits", "printed"),
    [
        (Measurement(1.4431, 1.308, 1.5779, 5, "run", "t 95%"), None, "1.44 [1.31, 1.58]"),
        (Measurement(99.6, 95.04, 104.2, 5, "run", "t 95%"), None, "99.6 [95.0, 104.2]"),
        (Measurement(1234.4, 1100.0, 1400.0, 5, "run", "t 95%"), None, "1,234 [1,100, 1,400]"),
        (Measurement(0.0, 0.0, 0.0, 5, "run", "constant data"), None, "0.00 [0.00, 0.00]"),
        # Infinite ends are null in JSON: a ratio whose denominator may be 0.
        (Measurement(69.0, 12.5, None, 3, "run", "Fieller 95%"), None, "69.0 [12.5, ∞)"),
        (Measurement(69.0, 12.5, float("inf"), 3, "run", "Fieller 95%"), 0, "69 [12, ∞]"),
        (5_734_400, None, "5,734,400"),
        (0.01234, None, "0.0123"),
        (-2.0, 1, "−2.0"),
        (float("nan"), 1, "–"),
        (None, None, "–"),
    ],
)
def test_number(quantity, digits, printed):
    assert pages.number(quantity, digits) == printed


def test_p_values_are_printed_as_journals_do():
    assert [pages.p_value(p) for p in (0.04951, 0.001, 0.00099, 0.0, None)] == [
        "0.050",
        "0.001",
        "< 0.001",
        "< 0.001",
        "–",
    ]


def test_html_tells_how_an_interval_was_made_and_escapes_everything():
    hostile = replace(EFFICIENCY, method='"><script>alert(1)</script>')
    page = rendered("{{ m | percent }} {{ name }}", m=hostile, name="<b>proxy</b>")
    assert 'class="interval">[99.7, 99.9]</span>' in page
    assert ", 5 runs" in page
    assert "<script>" not in page and "<b>" not in page
    assert "&lt;b&gt;proxy&lt;/b&gt;" in page


def test_markdown_is_plain_text():
    assert rendered("{{ m | percent }}", "page.md", m=EFFICIENCY) == "99.8% [99.7, 99.9]"


def test_a_name_that_is_not_given_is_an_error():
    with pytest.raises(jinja2.UndefinedError, match="verdict"):
        rendered("{{ verdict }}")


def test_a_missing_template_is_named():
    with pytest.raises(jinja2.TemplateNotFound, match=r"nothing\.html"):
        pages.render("evidence", "nothing.html")


def test_the_base_page_fetches_nothing():
    page = pages.render("evidence", "base.html")
    assert not re.search(r"(src|href)=\"(?!#|data:)|@import|url\((?!#|data:)", page)


def test_parts_show_a_verdict_and_where_results_come_from():
    device = Device(platform="cpu", kind="cpu", count=2, cores=2, machine="x86_64", cpu="EPYC")
    manifest = Manifest(
        configuration={"seed": 7},
        seeds=(7, 8),
        versions={"jax": "0.10"},
        device=device,
        commit=None,
        finished="2026-01-01T00:00:00Z",
        command="python -m experiments.small seed=7",
    )
    told = Condition(
        name="gap <it>",
        role="supports",
        wanted="above 0.99",
        state="refuted",
        measured={"gap": replace(EFFICIENCY, value=0.5, low=0.4, high=0.6)},
    )
    page = rendered(
        '{% import "parts.html" as parts %}{{ parts.verdict(ruling) }}'
        '{{ parts.provenance(manifest) }}{% call parts.figure("<svg/>", "a curve") %}'
        "What {{ name }} shows.{% endcall %}",
        ruling=rule("Proxies hurt.", [told]),
        manifest=manifest,
        name="<it>",
    )
    assert 'class="verdict not-as-stated"' in page and ">Not as stated<" in page
    assert "gap &lt;it&gt; above 0.99" in page and "refuted" in page and "0.500" in page
    assert "<code>python -m experiments.small seed=7</code>" in page
    assert "installed from a package" in page and "7, 8" in page
    assert '<div class="scroll drawn" aria-label="a curve"><svg/></div>' in page
    assert "What &lt;it&gt; shows." in page


def test_what_scrolls_is_named_by_its_caption_and_no_two_alike():
    table = (
        '<div class="scroll wide"><table>\n<caption>Of <b>all</b> modes.</caption></table></div>'
    )
    page = pages._reachable(f'{table}{table}<div class="scroll" aria-label="Own"></div>')
    labels = re.findall(r'tabindex="0" role="region" aria-label="([^"]*)"', page)
    assert labels == ["Of all modes.", "Of all modes. (2)", "Own"]


@pytest.mark.parametrize("ground", ["paper", "raised"])
@pytest.mark.parametrize("theme", [0, 1])
def test_every_colour_of_text_has_a_contrast_of_four_and_a_half(ground, theme):
    found = re.findall(
        r"--(\w+): light-dark\((#\w+), (#\w+)\)", pages.render("evidence", "base.html")
    )
    colours = {name: luminance(both[theme]) for name, *both in found}
    assert {"ink", "faint", "blue", "vermillion", "green", "orange", "purple"} <= set(colours)
    under = colours[ground]
    for name in set(colours) - {"paper", "raised", "rule"}:
        low, high = sorted((under, colours[name]))
        assert (high + 0.05) / (low + 0.05) >= 4.5, name


def luminance(colour):
    """Relative, of WCAG 2.2."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return sum(w * part for w, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_no_verdict_is_a_word_of_its_own():
    ruling = rule("Proxies hurt.", [enough_replicates(1, "run")])
    page = rendered('{% import "parts.html" as parts %}{{ parts.verdict(ruling) }}', ruling=ruling)
    assert "No verdict" in page and "at least 3" in page
