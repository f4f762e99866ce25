#!/usr/bin/env python3
"""Tiers on the page, in Chromium: charts of times that are windows, and rules with tiers, set after a preview.
Skipped where there is no Chromium (packaging/install-dependencies.sh browser)."""
import json
import time
import unittest

import browser
from daemon_process import until
from page_flow_test import AXE, PHONE, PICTURES, SCREEN, look
from tier_faces_flow_test import HOUR_NS, SECOND_NS, Store

shared = None


def setUpModule():
    if browser.program() is None:
        raise unittest.SkipTest("there is no Chromium: packaging/install-dependencies.sh browser")
    global shared
    PICTURES.mkdir(parents=True, exist_ok=True)
    shared = browser.Browser()


def tearDownModule():
    shared.close()


class PageTiers(unittest.TestCase):
    def setUp(self):
        self.begin_ns = time.time_ns() // HOUR_NS * HOUR_NS - 6 * HOUR_NS
        self.store = Store(self)
        self.store.fill(self.begin_ns)
        self.browser = shared
        self.site = f"http://localhost:{self.store.daemon.port()}/"
        shared.errors.clear()
        shared.size(*SCREEN)

    def tearDown(self):
        self.assertEqual(shared.errors, [])

    def show(self, view):
        self.browser.go("about:blank")
        self.browser.go(self.site + view)

    def fill_in(self, values):
        for name, value in values.items():
            self.browser.run(f"document.getElementById({json.dumps(name)}).focus()")
            self.browser.type(value)

    def seen(self, name):
        """Fits the screen and the phone, and everyone can use it; a picture of each."""
        for size in (SCREEN, PHONE):
            self.browser.size(*size, dark=size == PHONE)
            self.assertLessEqual(self.browser.run("document.documentElement.scrollWidth - innerWidth"), 0)
            self.browser.picture(PICTURES / f"{name}-{size[0]}.png")
            if not AXE.exists():
                print("not judged, axe-core is not here: tests/flow/axe.sh fetches it")
                continue
            self.browser.run(AXE.read_text(encoding="utf-8") + ";0")
            found = self.browser.run("""axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa",
                "wcag22aa"]}).then(({violations}) => violations.map((each) => each.id + ": " + each.help))""")
            self.assertEqual(found, [])
        self.browser.size(*SCREEN)

    def test_a_chart_draws_windows_where_readings_have_gone(self):
        self.store.set_rule()
        until(lambda: self.store.raw() == 5, "readings to become windows")

        def at(hours):
            return time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(self.begin_ns // SECOND_NS + hours * 3600))

        temp, usage = ("default", "kitchen", "temp"), ("default", "pi", "cpu.usage{core=c 0}")
        self.show(look(temp, usage, **{"from": at(0), "to": at(2)}))
        self.browser.until_shows("readings are kept as windows of 1m: these are drawn there.")
        self.browser.until_shows("0 to 49")
        self.browser.until_shows("Kept as windows")
        ink = """(() => {
          const canvas = document.querySelector(".chart");
          const {data} = canvas.getContext("2d").getImageData(52, 12, canvas.width - 62, canvas.height - 40);
          let count = 0;
          for (let i = 3; i < data.length; i += 4) count += data[i] > 200;
          return count;
        })()"""
        self.assertGreater(self.browser.run(ink), 1000)
        self.seen("tiers-look")
        # A second would be too fine for any tier: its minutes are drawn.
        self.show(look(temp, **{"from": at(0), "to": at(0.2)}))
        self.browser.until_shows("windows of 1m: these are drawn there.")
        self.browser.until_shows("0 to 49")
        # All of it: what is a window and what is not.
        self.show(look(temp, **{"from": "-1d"}))
        self.browser.until_shows("these are drawn there.")
        self.browser.run("[...document.querySelectorAll('.tools button')].find((b) => b.textContent === 'All').click()")
        self.browser.until("location.hash.includes('to=')")
        self.browser.until_shows("these are drawn there.")

    def test_a_rule_with_tiers_is_set_after_a_preview(self):
        self.show("#/retention")
        self.browser.until_shows("There are no rules.")
        self.fill_in({"retention-device": "kitchen", "retention-keep": "1h", "retention-then": "1m:90d, 1h:forever"})
        self.browser.press("Enter")
        self.browser.until_shows(" readings become windows at once")
        self.browser.until_shows("1h, then 1m:90d, then 1h:forever")
        self.seen("tiers-retention")
        self.fill_in({"sure-name": "kitchen"})
        self.browser.press("Enter")
        self.browser.until_shows("Set: kitchen keeps 1h, then 1m:90d, then 1h:forever. 0 readings removed, 72")
        self.show("#/retention")
        self.browser.until_shows("kitchen/*")
        self.browser.until_shows("1h, then 1m:90d, then 1h:forever")
        until(lambda: self.store.raw("kitchen/*") == 5, "readings to become windows")

    def test_devices_are_listed_with_their_tiers_and_what_these_hold(self):
        self.store.set_rule("kitchen/*")
        self.store.set_rule("p*/*", ("2h", "--then", "1h:30d"))
        until(lambda: self.store.raw() == 5, "readings to become windows")
        self.show("#/retention")
        self.browser.until_shows("Tiers by device")
        rows = self.browser.until("""[...document.querySelectorAll("[aria-label^='Devices whose'] tbody tr")]
            .map((row) => [...row.cells].slice(0, 4).map((cell) => cell.innerText.replace(/, [0-9.]+ K?i?B/g, "")))""")
        self.assertEqual(rows, [["kitchen (default)", "1h", "1m:90d: 121 windows\n1h:forever: 3 windows", "1"],
                                ["pi (default)", "2h", "1h:30d: 4 windows", "2"],
                                ["porch (default)", "2h", "1h:30d: 2 windows", "1"]])
        self.seen("tiers-devices")
        self.browser.run("document.querySelector('[aria-label=\"Change kitchen\"]').click()")
        self.browser.run("document.getElementById('retention-keep').select()")
        self.browser.type("30m")
        self.browser.press("Enter")
        self.browser.until_shows("kitchen: keep 30m, then 1m:90d, then 1h:forever")


if __name__ == "__main__":
    unittest.main()
