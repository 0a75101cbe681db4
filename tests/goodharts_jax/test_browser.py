"""The page in a real browser."""

import time

import pytest

from evidence.runtime import files
from goodharts_jax import figures, report

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def page_path(results, replay, tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    drawn = {"survival": figures.survival(results)}
    text = report.to_html(results, drawn, replay)
    return files.write_text(folder / "report.html", text)


@pytest.fixture
def page(browser, page_path):
    """The page, opened; whatever it complains about or asks of a network fails the test."""
    page = browser.new_page(viewport={"width": 1280, "height": 1000})
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on(
        "request",
        lambda request: (
            request.url.startswith(("file:", "data:", "blob:")) or complaints.append(request.url)
        ),
    )
    page.goto(page_path.as_uri())
    yield page
    page.close()
    assert complaints == []


def step(page) -> int:
    return int(page.locator("#replay [name=scrub]").input_value())


def seek(page, to: int) -> None:
    page.locator("#replay [name=scrub]").fill(str(to))


def pixels(page, canvas: str, panel: int = 0) -> str:
    """A canvas's content, as the text of its PNG."""
    locator = page.locator(f"#replay .panel >> nth={panel} >> canvas.{canvas}")
    return locator.evaluate("canvas => canvas.toDataURL()")


def count(page, name: str, panel: int) -> float:
    panel = page.locator(f"#replay .panel >> nth={panel}")
    return float(panel.locator(f"[data-count={name}]").inner_text())


def test_the_replay_plays_pauses_and_scrubs(page, page_path):
    play = page.get_by_role("button", name="Play")
    assert step(page) == 0
    before = {canvas: pixels(page, canvas) for canvas in ("world", "view", "actions", "energy")}
    page.locator("#replay [name=speed]").select_option("60")
    play.click()
    page.wait_for_function("document.querySelector('#replay [name=scrub]').value > 20")
    page.get_by_role("button", name="Pause").click()
    reached = step(page)
    assert all(pixels(page, canvas) != image for canvas, image in before.items())
    page.screenshot(path=page_path.with_name("replay.png"), full_page=True)

    still = pixels(page, "world")
    time.sleep(0.3)
    assert step(page) == reached and pixels(page, "world") == still
    page.get_by_role("button", name="One step forward").click()
    assert step(page) == reached + 1
    seek(page, 0)
    assert {canvas: pixels(page, canvas) for canvas in before} == before


def test_the_replay_stops_at_its_end_and_starts_anew(page, replay):
    seek(page, replay["steps"] - 5)
    page.get_by_role("button", name="Play").click()
    page.wait_for_function(
        "document.querySelector('#replay [name=play]').textContent === 'Play'", timeout=5000
    )
    assert step(page) == replay["steps"] - 1
    page.get_by_role("button", name="Play").click()
    page.wait_for_function("document.querySelector('#replay [name=scrub]').value < 100")


def test_counts_are_those_of_the_recording(page, replay):
    for to in (7, 250, 90):  # forwards and back
        seek(page, to)
        for panel, name in enumerate(("ground_truth", "proxy")):
            mode = replay["modes"][name]
            assert count(page, "food", panel) == mode["eaten"][:to].count(1)
            assert count(page, "poison", panel) == mode["eaten"][:to].count(2)
            assert count(page, "deaths", panel) == sum(mode["died"][:to])
            lived = next((t for t in range(to) if mode["died"][to - 1 - t]), to)
            assert count(page, "age", panel) == lived
            energy = mode["energy"][to - 1] if lived else replay["start_energy"]
            assert count(page, "now", panel) == pytest.approx(energy, abs=0.006)


def test_a_panel_shows_the_mode_that_is_chosen(page):
    seek(page, 50)
    left, right = pixels(page, "world", 0), pixels(page, "world", 1)
    assert left != right
    panel = page.locator("#replay .panel >> nth=0")
    assert "as what they are" in panel.locator(".percept").inner_text()
    panel.get_by_label("Mode in the first world").select_option("proxy")
    assert panel.locator(".percept").inner_text() == "perceives one number: food 0.5, poison 1"
    assert pixels(page, "world", 0) == right


def test_the_keyboard_and_the_energy_strip_move_through_time(page, replay):
    page.locator("#replay [name=scrub]").press("ArrowRight")
    assert step(page) == 1
    page.get_by_role("button", name="One step forward").press("Space")
    assert step(page) == 2
    strip = page.locator("#replay .panel >> nth=0 >> canvas.energy")
    strip.click(position={"x": 200, "y": 20})
    width = strip.bounding_box()["width"]
    assert step(page) == pytest.approx(200 / width * (replay["steps"] - 1), abs=2)


def test_a_still_is_saved_for_a_paper(page, tmp_path):
    seek(page, 120)
    with page.expect_download() as download:
        page.get_by_role("button", name="Save still").click()
    assert download.value.suggested_filename == "replay-ground_truth-proxy-120.png"
    path = tmp_path / "still.png"
    download.value.save_as(path)
    image = path.read_bytes()
    assert image.startswith(b"\x89PNG")
    width = int.from_bytes(image[16:20], "big")
    assert width == 3 * (2 * 504 + 24)


def test_the_page_with_its_replay_is_accessible(page, accessible):
    accessible(page)
    names = page.locator("#replay .panel select").evaluate_all("all => all.map(s => s.ariaLabel)")
    assert names == ["Mode in the first world", "Mode in the second world"]


@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (820, "dark")])
def test_the_page_fits_small_screens_in_light_and_dark(browser, page_path, width, scheme):
    page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
    page.goto(page_path.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    brightness = sum(int(part) for part in paper[4:-1].split(","))
    assert brightness > 700 if scheme == "light" else brightness < 100
    page.screenshot(path=page_path.with_name(f"{scheme}-{width}.png"), full_page=True)
    page.close()
