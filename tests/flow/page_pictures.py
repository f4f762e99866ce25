#!/usr/bin/env python3
"""Makes the pictures of the page in packaging/pictures/, of a house that is made up: needs Chromium and
EDGECASE_PROGRAM.

  tests/flow/page_pictures.py

Exit codes: 0 made, 1 a picture is larger than it may be
"""
import math
import pathlib
import random
import sys
import time

from browser import Browser
from daemon_process import Daemon, Place

TARGET = pathlib.Path(__file__).resolve().parents[2] / "packaging" / "pictures"
PICTURE_BYTES_MAX = 100_000
DAY_SECONDS, STEP_SECONDS = 86_400, 20
VIEW = ("#/look?s=default/kitchen/air.temp%257Bfloor%253D0%257D&s=default/bedroom/air.temp%257Bfloor%253D1%257D"
        "&s=default/hall/door.state&from=-1d")


def house(now):
    """A day of it, as line protocol."""
    chance = random.Random(1)
    for i in range(DAY_SECONDS // STEP_SECONDS):
        at = (now - DAY_SECONDS + i * STEP_SECONDS) * 10**9
        turn = 2 * math.pi * i * STEP_SECONDS / DAY_SECONDS
        cooking = 2.2 * math.exp(-((i - 3100) / 160)**2) + 1.4 * math.exp(-((i - 800) / 120)**2)
        kitchen = 20.5 + 1.1 * math.sin(turn) + cooking + chance.gauss(0, 0.08)
        bedroom = 18.2 + 0.9 * math.sin(turn - 0.8) + chance.gauss(0, 0.05)
        yield f"air,device=kitchen,floor=0 temp={kitchen:.2f},co2={620 + 180 * cooking + chance.gauss(0, 9):.0f} {at}"
        if not 1500 < i < 1710:  # a battery was changed
            yield f"air,device=bedroom,floor=1 temp={bedroom:.2f},humidity={48 - 3 * math.sin(turn):.1f} {at}"
        if i % 240 == 0:
            yield f'door,device=hall state="{("closed", "open", "closed", "ajar")[i // 240 % 4]}" {at}'


def main():
    TARGET.mkdir(exist_ok=True)
    place = Place()
    daemon = Daemon(place)
    browser = Browser()
    try:
        status, text = daemon.request("POST", "/write", "\n".join(house(int(time.time()))).encode())
        if status != 204:
            raise AssertionError(text)
        browser.size(1040, 590)
        browser.go(f"http://localhost:{daemon.port()}/{VIEW}")
        browser.until("!!document.querySelector('.extent') && document.body.innerText.includes('Thinned')")
        browser.picture(TARGET / "look.png")
        browser.press("/")
        browser.type("air")
        browser.until("document.querySelectorAll('#found li').length === 4")
        browser.picture(TARGET / "find.png")
        browser.press("Escape")
        browser.press("Escape")
        browser.size(390, 780, dark=True)
        browser.run("scrollTo(0, 0)")
        browser.until("document.querySelector('.chart').width <= 390")
        browser.picture(TARGET / "phone.png")
    finally:
        browser.close()
        daemon.stop()
        place.remove()
    large = [path.name for path in TARGET.glob("*.png") if path.stat().st_size > PICTURE_BYTES_MAX]
    if large:
        print(f"larger than {PICTURE_BYTES_MAX} bytes: {', '.join(large)}", file=sys.stderr)
    return 1 if large else 0


if __name__ == "__main__":
    sys.exit(main())
