"""The page in a real browser: a form is filled, an answer is read, an error is shown.

Needs Playwright for Python and Chromium of the system. With SUBLEARN_SCREENSHOTS=FOLDER pictures of
the page of every kind are written there, as the documentation has them.
"""

import os
import re
import shutil
from pathlib import Path

import pytest
from sklearn.datasets import load_digits

pytest.importorskip("fastapi", reason="serve needs FastAPI")
pytest.importorskip("uvicorn", reason="serve needs uvicorn")
pytest.importorskip("pandas", reason="some of the models are fitted to frames")
playwright = pytest.importorskip(
    "playwright.sync_api", reason="a browser is driven by Playwright", exc_type=ImportError
)
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on this machine")

from page_models import MAKERS, URI, save_all  # noqa: E402
from running_server import running  # noqa: E402

TOKEN = "a-token-of-sixteen-or-more"
ASKED = {
    "texts": "Steam trains run along the Baltic coast,\nand a choir sings to the piano.",
    "digits": " ".join(f"{value:g}" for value in load_digits().data[12] / 16),
    "words": "the old cat sleeps in the park\nbirds sing on a mat",
}
SCREENSHOTS = os.environ.get("SUBLEARN_SCREENSHOTS")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return save_all(tmp_path_factory.mktemp("page"))


@pytest.fixture(scope="module")
def server(files):
    first, *others = (f"{name}={path}" for name, path in files.items())
    with running(first, *others) as found:
        yield found


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture
def page(browser):
    """A page whose console stays silent: a policy that blocks a script or a style would speak."""
    found, said = browser.new_page(), []
    found.set_default_timeout(30_000)
    found.on("console", lambda message: said.append(message.text))
    found.on("pageerror", lambda error: said.append(str(error)))
    yield found
    found.close()
    # A refusal is what some tests ask for; Chromium notes each of them.
    assert [text for text in said if not re.search(r"status of 4\d\d", text)] == []


def opened(page, server, kind):
    page.goto(f"{server.address}/#{kind}")
    page.wait_for_selector("#answer > *")
    return page


def ask(page):
    """Press the button and wait for the answer to come."""
    with page.expect_response("**/predict") as answered:
        page.click("#ask")
    answered.value.finished()
    page.wait_for_selector("#ask:enabled")


def test_a_text_is_typed_and_its_labels_are_read(page, server):
    opened(page, server, "texts")
    page.fill("#question", "Steam trains and railways of the coast")
    page.fill("#k", "3")
    ask(page)
    rows = page.locator("#answer tbody tr")
    assert rows.count() == 3
    assert rows.first.locator("a").inner_text() == "railways"
    assert rows.first.locator("a").get_attribute("href") == f"{URI}railways"
    assert page.locator("#answer th").all_inner_texts()[:2] == ["Label", "Probability"]


def test_bars_show_probabilities_as_they_are_and_not_beside_the_best(page, server):
    opened(page, server, "texts")
    page.fill("#question", "nothing of this is known")
    ask(page)
    bars, numbers = page.locator("td.bar"), page.locator("td.number")
    for i in range(bars.count()):
        shown, width = (
            float(numbers.nth(i).inner_text()),
            float(bars.nth(i).get_attribute("data-width")),
        )
        assert width == pytest.approx(100 * shown, abs=0.1)
    page.uncheck("#probabilities")
    ask(page)
    assert page.locator("#answer th").all_inner_texts()[1] == "Score"
    assert max(float(number) for number in numbers.all_inner_texts()) < 0  # hence no bar over half
    assert all(float(bar.get_attribute("data-width")) < 50 for bar in bars.all())


def test_a_threshold_leaves_labels_out(page, server):
    opened(page, server, "texts")
    page.fill("#question", "survey statistics")
    page.fill("#threshold", "0.5")
    ask(page)
    assert page.locator("#answer tbody tr").count() == 1
    page.fill("#threshold", "1.1")
    ask(page)
    assert "No label reaches the threshold" in page.inner_text("#answer")


def test_the_words_behind_a_label_are_marked_in_the_text(page, server):
    opened(page, server, "texts")
    page.fill("#question", "Steam trains, a piano and 🎹 Railways")
    ask(page)
    page.click("[aria-label='Why http://www.example.org/onto/railways']")
    page.wait_for_selector(".marked mark")
    strong = page.locator("mark.for").all_inner_texts()
    assert {"Steam", "trains", "Railways"} <= {word for text in strong for word in text.split()}
    assert page.inner_text(".marked") == "Steam trains, a piano and 🎹 Railways"
    assert "piano" in page.locator("mark.against").all_inner_texts()
    assert "bias" in page.inner_text(".parts")
    page.click("[aria-expanded=true]")
    assert page.locator(".marked").count() == 0


def test_the_page_can_be_used_with_the_keyboard_alone(page, server):
    opened(page, server, "texts")
    page.focus("#question")
    page.keyboard.press("Control+A")
    page.keyboard.type("songs for choir")
    with page.expect_response("**/predict"):
        page.keyboard.press("Control+Enter")
    page.wait_for_selector("#ask:enabled")
    assert page.locator("#answer a").first.inner_text() == "music"
    page.locator("#ask").focus()
    page.keyboard.press("Tab")  # to the link of the best label
    page.keyboard.press("Tab")  # to its button
    page.keyboard.press("Enter")
    page.wait_for_selector(".marked mark")


def test_an_error_is_shown_and_goes_away(page, server):
    opened(page, server, "digits")
    page.fill("#question", "1 2 3")
    ask(page)
    sentence = "rows[0] must have 64 values, as many as the model has features, got 3"
    assert page.inner_text("[role=alert]") == sentence
    assert page.inner_text("#answer") == ""
    page.fill("#question", "x y")
    page.click("#ask")
    assert page.inner_text("[role=alert]") == "a value must be a number, got x"
    page.fill("#question", "10:1 11:0.5")
    ask(page)
    assert page.inner_text("[role=alert]") == ""
    assert page.locator("#answer tbody tr").count() == 10


def test_a_row_of_a_square_number_of_values_is_an_image(page, server):
    opened(page, server, "digits")
    page.fill("#question", " ".join(str(i % 8 / 8) for i in range(64)))
    ask(page)
    assert page.locator("canvas").count() == 1
    page.click(".why >> nth=0")
    page.wait_for_selector(".reasons canvas")
    brightest = "c => Array.from(c.getContext('2d').getImageData(7, 0, 1, 1).data)"
    assert page.locator("canvas").first.evaluate(brightest) == [255, 255, 255, 255]


def test_labels_of_a_taxonomy_have_their_path(page, server):
    opened(page, server, "taxonomy")
    page.wait_for_selector(".path")
    lines = [text.split("\n") for text in page.locator("td.bar").all_inner_texts()]
    paths = {line[-1]: line[0] for line in lines}
    assert paths["bird"].strip() == "life › animal ›"
    assert paths["tree"].strip() == "life › plant ›"


def test_sets_of_labels_are_chips_with_score_and_bound(page, server):
    opened(page, server, "sets")
    page.locator(".values input").first.fill("2")
    ask(page)
    assert page.locator(".chips span").all_inner_texts() == ["dry", "warm"]
    assert page.locator("th").all_inner_texts()[1:] == ["Score", "No set exceeds"]


def test_features_have_fields_by_their_names(page, server):
    opened(page, server, "numbers")
    assert page.locator(".values label").all_inner_texts() == ["rooms", "area", "age", "distance"]
    page.get_by_label("area").fill("1")
    ask(page)
    first = float(page.inner_text(".large"))
    page.get_by_label("area").fill("2")
    ask(page)
    assert float(page.inner_text(".large")) - first == pytest.approx(3, abs=0.2)


def test_sentences_are_shown_with_their_tags(page, server):
    opened(page, server, "words")
    page.fill("#question", "the dog sleeps\n\na cat runs")
    ask(page)
    assert page.locator(".sentence").count() == 2
    shown = page.locator(".sentence").first.locator("span").all_inner_texts()
    assert [one.split() for one in shown] == [["the", "DET"], ["dog", "NOUN"], ["sleeps", "VERB"]]


def test_a_forecast_is_a_chart_with_its_band_and_a_table(page, server):
    opened(page, server, "loads")
    assert page.locator("svg path.line").count() == page.locator("svg path.band").count() == 1
    page.fill("#horizon", "6")
    ask(page)
    assert page.locator("svg circle").count() == 6
    page.click("#answer summary")
    rows = page.locator("#answer tbody tr")
    assert rows.count() == 6
    _, forecast, low, high = rows.first.locator("td").all_inner_texts()
    assert float(low) <= float(forecast) <= float(high)
    page.fill("#coverage", "")
    ask(page)
    assert page.locator("svg path.band").count() == 0


def test_models_are_chosen_from_a_list(page, server):
    opened(page, server, "")
    names = page.locator("#models option").all_inner_texts()
    assert names == list(MAKERS)
    page.select_option("#models", "words")
    page.wait_for_selector(".sentence")
    assert page.url.endswith("#words")
    assert "/models/words/predict" in page.text_content("#curl")


def test_a_token_is_asked_for(page, files, tmp_path):
    (tmp_path / "token").write_text(TOKEN)
    with running(files["texts"], "--token-file", str(tmp_path / "token")) as guarded:
        page.goto(guarded.address)
        page.wait_for_selector("#token", state="visible")
        page.fill("#token", "wrong")
        page.keyboard.press("Enter")
        page.wait_for_function("document.getElementById('facts').textContent.includes('token')")
        page.fill("#token", TOKEN)
        page.keyboard.press("Enter")
        page.wait_for_selector("#answer tbody tr")
        assert TOKEN not in page.text_content("#curl")


@pytest.mark.parametrize("kind", list(MAKERS))
@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_sticks_out_of_a_window(page, server, kind, width):
    page.set_viewport_size({"width": width, "height": 800})
    opened(page, server, kind)
    if kind in ASKED:
        page.fill("#question", ASKED[kind])
        ask(page)
    if page.locator(".why").count():
        page.click(".why >> nth=0")
        page.wait_for_selector(".parts")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for scheme in ("light", "dark") if SCREENSHOTS else ():
        page.emulate_media(color_scheme=scheme)
        target = Path(SCREENSHOTS) / f"{kind}-{width}-{scheme}.png"
        page.screenshot(path=target, full_page=True)


def test_the_page_needs_no_network_but_the_server(page, server):
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    opened(page, server, "texts")
    assert asked
    assert all(url.startswith((server.address, "data:")) for url in asked)
