"""The dashboard in a headless Chromium: what it draws, its chat, its keys, light and dark, and that it loads nothing."""
import os
import re
import shutil
import threading
import time

import pytest

from served import Served, model_file

MODEL = model_file("smollm2-135m")
webdriver = pytest.importorskip("selenium.webdriver")
pytestmark = [
    pytest.mark.skipif(MODEL is None, reason="the model smollm2-135m is not there"),
    pytest.mark.skipif(not (shutil.which("chromium") and shutil.which("chromedriver")),
                       reason="Chromium and its driver (Debian: chromium-driver) are not there")]


@pytest.fixture(scope="module")
def server():
    with Served("-m", f"small={MODEL}", "--cache", "off") as running:
        yield running


@pytest.fixture(scope="module")
def browser():
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                     "--window-size=1400,1000"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    yield driver
    driver.quit()


def until(what, seconds=60):
    """What `what` gives as soon as it is true."""
    end = time.monotonic() + seconds
    while True:
        value = what()
        if value or time.monotonic() > end:
            return value
        time.sleep(0.1)


def text(browser, selector):
    return browser.execute_script("return document.querySelector(arguments[0]).textContent", selector)


@pytest.fixture()
def page(server, browser):
    browser.get_log("browser")
    browser.get(server.url + "/")
    assert until(lambda: text(browser, "#link") == "Connected")
    yield browser
    picture = os.environ.get("GANGLION_PICTURES")
    if picture:
        browser.save_screenshot(f"{picture}/{os.environ['PYTEST_CURRENT_TEST'].split('::')[1].split(' ')[0]}.png")
    errors = [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
    assert not errors, errors


def type_and_send(page, message, **fields):
    for name, value in fields.items():
        box = page.find_element("id", name)
        box.clear()
        box.send_keys(str(value))
    page.find_element("id", "prompt").send_keys(message + "\n")


def test_the_page_may_load_nothing_else(server):
    status, headers, body = server.ask("GET", "/")
    assert status == 200 and headers["content-type"].startswith("text/html")
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy and "connect-src 'self'" in policy and "unsafe" not in policy
    assert len(re.findall(r"'sha256-[A-Za-z0-9+/]{43}='", policy)) == 2
    page = body.decode()
    assert not re.search(r"https?://|\bsrc=|@import|url\(|\bstyle=|\bon[a-z]+=\"", page)


def test_models_and_numbers_are_shown(page):
    assert until(lambda: "small" in text(page, "#models"))
    assert "MiB" in text(page, "#models") and "of its own" in text(page, "#memory")
    assert "free:" in text(page, "#legend")
    assert page.find_element("id", "model").get_attribute("value") == "small"


def test_a_chat_with_token_probabilities(page):
    type_and_send(page, "Say hello.", temperature=0, max_tokens=12)
    assert until(lambda: "written" in text(page, "#chat-status")), text(page, "#chat-alert")
    tokens = page.find_elements("css selector", "#talk .tok")
    assert 2 < len(tokens) <= 12
    page.find_element("id", "talk").send_keys(webdriver.Keys.ARROW_RIGHT)
    page.find_element("id", "talk").send_keys(webdriver.Keys.ARROW_RIGHT)
    assert page.execute_script("return document.querySelector('#talk .tok.on') === arguments[0]", tokens[1])
    assert len(page.find_elements("css selector", "#token meter")) == 5
    said = text(page, "#talk .turn:last-child .said")
    page.find_element("id", "clear").click()
    type_and_send(page, "Say hello.")
    assert until(lambda: "written" in text(page, "#chat-status"))
    assert text(page, "#talk .turn:last-child .said") == said
    assert until(lambda: "p50" in text(page, "#x-inter_token_latency_seconds"))


def test_escape_stops_an_answer(page):
    page.execute_script("""
        const real = window.fetch; // an answer that does not end by itself
        window.fetch = (path, more) => real(path, more && more.body
            ? { ...more, body: JSON.stringify({ ...JSON.parse(more.body), ignore_eos: true }) } : more);""")
    type_and_send(page, "Count to a thousand.", max_tokens=6000)
    assert until(lambda: page.find_elements("css selector", "#talk .tok"))
    page.find_element("id", "prompt").send_keys(webdriver.Keys.ESCAPE)
    assert until(lambda: text(page, "#chat-status") == "Stopped")
    assert until(lambda: text(page, "#requests-caption") == "None waits or runs.")


def test_a_running_request_is_listed_and_cancelled(server, page):
    done = []

    def ask():
        done.append(server.ask("POST", "/v1/completions", {"prompt": "One, two,", "max_tokens": 8000,
                                                           "ignore_eos": True}))

    asking = threading.Thread(target=ask)
    asking.start()
    assert until(lambda: page.find_elements("css selector", "#requests button"))
    assert until(lambda: re.search(r"request \d+: [1-9]", text(page, "#legend")))
    page.execute_script("document.querySelector('#requests button').click()")
    asking.join(60)
    assert done and done[0][0] == 503, done
    assert until(lambda: text(page, "#requests-caption") == "None waits or runs.")


def test_light_and_dark(page):
    def ground():
        return page.execute_script("return getComputedStyle(document.body).backgroundColor")

    seen = {}
    for _ in range(3):
        page.find_element("id", "theme").click()
        seen[text(page, "#theme")] = ground()
    assert set(seen) == {"Theme: system", "Theme: light", "Theme: dark"}
    assert seen["Theme: light"] != seen["Theme: dark"]


def test_everything_is_reached_by_keyboard(page):
    page.execute_script("document.activeElement.blur()")
    reached = []
    for _ in range(40):
        page.switch_to.active_element.send_keys(webdriver.Keys.TAB)
        reached.append(page.execute_script("return document.activeElement.id"))
    assert {"theme", "window", "pool", "model", "temperature", "talk", "prompt", "send", "clear"} <= set(reached)


def test_a_narrow_window_has_no_sideways_scroll(page):
    page.set_window_size(500, 900)
    try:
        assert until(lambda: page.execute_script(
            "return document.documentElement.scrollWidth <= document.documentElement.clientWidth"), 5)
    finally:
        page.set_window_size(1400, 1000)


def test_a_key_is_asked_for(browser):
    with Served("-m", MODEL, "--cache", "off", env={"GANGLION_API_KEY": "secret"}) as closed:
        browser.get(closed.url + "/")
        assert until(lambda: browser.execute_script("return document.getElementById('key-dialog').open"))
        browser.find_element("id", "key").send_keys("secret\n")
        assert until(lambda: text(browser, "#link") == "Connected")
        assert closed.ask("GET", "/dashboard/state")[0] == 401
