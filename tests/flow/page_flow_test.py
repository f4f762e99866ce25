#!/usr/bin/env python3
"""The page that people use, in Chromium: what a user does, on a screen and on a phone, with a console free of errors.
Pictures of its views go into build/page/. Skipped where there is no Chromium (install-dependencies.sh browser)."""
import json
import math
import os
import pathlib
import time
import unittest
import urllib.parse

import browser
from daemon_process import Daemon, Place

TOP = pathlib.Path(__file__).resolve().parents[2]
PICTURES = TOP / "build" / "page"
AXE = pathlib.Path(os.environ.get("EDGECASE_AXE", TOP / "build" / "axe" / "axe.min.js"))
SCREEN, PHONE, SMALL, WIDE = (1280, 900), (390, 844), (320, 640), (3840, 2160)
VIEWS = ["#/", "#/health", "#/mqtt", "#/forward", "#/retention", "#/erase", "#/audit", "#/report", "#/tokens",
         "#/dashboards", "#/dashboard?name=Rooms"]
HOSTILE = ['<img src=x onerror="window.hacked=1">', '"><script>window.hacked=1</script>', "{{7*7}}${window.hacked=1}"]


shared = None  # the browser; each daemon is a site of its own to it


def setUpModule():
    if browser.program() is None:
        raise unittest.SkipTest("there is no Chromium: packaging/install-dependencies.sh browser")
    global shared
    PICTURES.mkdir(parents=True, exist_ok=True)
    shared = browser.Browser()


def tearDownModule():
    shared.close()


def look(*series, **more):
    """The address of the view of series, each [namespace, device, sensor]."""
    names = ["/".join(urllib.parse.quote(part, safe="") for part in each) for each in series]
    return "#/look?" + urllib.parse.urlencode([("s", name) for name in names] + list(more.items()))


TEMP = ("default", "kitchen", "air.temp{room=hall}")
CELLAR = ("default", "cellar", "air.temp")
DOOR = ("default", "hall", "door.state")
PHOTO = ("default", "hall", "photo")
# One pixel.
PNG = bytes.fromhex("89504e470d0a1a0a0000000d4948445200000001000000010806000000"
                    "1f15c4890000000d49444154789c6360606060000000050001a5f64540"
                    "0000000049454e44ae426082")


class PageFlow(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place = Place()
        cls.place.write_config(more='[[mqtt.rule]]\ntopic = "sensors/{device}/{sensor}"\n')
        cls.daemon = Daemon(cls.place)
        cls.browser = shared
        cls.site = f"http://localhost:{cls.daemon.port()}/"
        now = int(time.time())
        lines = []
        for i in range(8640):  # a day, with an hour that is missing
            at = (now - 86400 + i * 10) * 10**9
            if not 3000 < i < 3360:
                lines.append(f"air,device=kitchen,room=hall temp={21 + 3 * math.sin(i / 1400) + i % 7 / 20:.2f} {at}")
            if i % 6 == 0:
                lines.append(f"air,device=cellar temp={14 + math.sin(i / 2100):.2f} {at}")
            if i % 300 == 0:
                lines.append(f'door,device=hall state="{["open", "closed", "ajar"][i // 300 % 3]}" {at}')
        for name in HOSTILE:
            device = name.replace("=", r"\=").replace(" ", r"\ ").replace(",", r"\,")
            text = name.replace('"', r'\"')
            lines.append(f'm,device={device} v="{text}" {now * 10**9}')
        lines += [f"plant,device=plant-{i // 10:03d} s{i % 10}={i}" for i in range(2000)]
        cls.post("/write", "\n".join(lines))
        for i in range(3):
            cls.put_picture(now - i * 60)

    @classmethod
    def tearDownClass(cls):
        cls.daemon.stop()
        cls.place.remove()

    @classmethod
    def post(cls, path, body):
        status, text = cls.daemon.request("POST", path, body.encode())
        if status // 100 != 2:
            raise AssertionError(text)

    @classmethod
    def put_picture(cls, at):
        status, _, text = cls.daemon.exchange("PUT", f"/api/v1/blob/default/hall/photo?time=@{at}", PNG,
                                              {"Content-Type": "image/png"})
        if status != 201:
            raise AssertionError(text)

    def setUp(self):
        self.browser.errors.clear()
        self.browser.requests.clear()
        self.browser.size(*SCREEN)

    def tearDown(self):
        self.assertEqual(self.browser.errors, [])
        ours = (self.site, "blob:", "about:", "data:")
        elsewhere = [url for url in self.browser.requests if not url.startswith(ours)]
        self.assertEqual(elsewhere, [])

    def show(self, view="#/"):
        self.browser.go("about:blank")
        self.browser.go(self.site + view)

    def settled(self):
        self.browser.until("document.querySelector('#content h1') && !document.querySelector('#content').innerText"
                           ".includes('…\\n')")

    def find(self, words):
        self.browser.press("/")
        self.browser.until("document.activeElement.id === 'words'")
        self.browser.type(words)

    def test_find_by_keyboard_alone(self):
        self.show()
        self.settled()
        self.find("cellar")
        self.browser.until("document.querySelector('#found li .device')?.textContent === 'cellar'")
        self.browser.press("Enter")
        self.browser.until("location.hash.includes('default/cellar/air.temp')")
        self.find("kitchen temp")
        self.browser.until("document.querySelector('#found li .device')?.textContent === 'kitchen'")
        self.browser.press("Enter", modifiers=2)
        self.browser.until("document.querySelectorAll('.head').length === 2")
        # What was looked at comes first.
        self.show()
        self.settled()
        self.browser.press("/")
        self.browser.until("document.querySelector('#found li .device')?.textContent === 'kitchen'")
        self.browser.press("Escape")
        self.browser.until("document.querySelector('#found').hidden")
        self.browser.press("Escape")
        self.browser.until("document.activeElement.id !== 'words'")
        self.find("no such thing")
        self.browser.until_shows("No series has all of")

    def test_find_in_pages(self):
        self.show()
        self.settled()
        self.find("plant")
        self.browser.until("document.querySelectorAll('#found li').length === 50")
        for _ in range(7):
            self.browser.press("PageDown")
        self.browser.until("document.querySelectorAll('#found li').length >= 100")

    def test_look_at_series(self):
        for size, name in ((SCREEN, "look"), (PHONE, "look-phone")):
            self.browser.size(*size)
            self.show(look(TEMP, CELLAR, **{"from": "-1d"}))
            self.browser.until_shows("Thinned: means of")
            self.browser.picture(PICTURES / f"{name}.png")
            self.assertLess(len([url for url in self.browser.requests if "/api/v1/query" in url]), 20)
        # Its ink: a line in the accent's colour, and nothing in the hour that is missing.
        self.browser.size(*SCREEN)
        ink = """(() => {
          const canvas = document.querySelector(".chart"), pen = canvas.getContext("2d");
          const seen = (x) => {
            const {data} = pen.getImageData(Math.round(52 + x * (canvas.width - 62)), 12, 1, canvas.height - 40);
            let count = 0;
            for (let i = 0; i < data.length; i += 4) count += data[i + 3] > 200 && data[i] < 40 && data[i + 1] > 90;
            return count;
          };
          return [seen(0.2), seen(3180 / 8640)];
        })()"""
        self.show(look(TEMP, **{"from": "-1d"}))
        self.browser.until_shows("Thinned: means of")
        line, gap = self.browser.run(ink)
        self.assertGreater(line, 0)
        self.assertEqual(gap, 0)

    def test_zoom_by_dragging_and_keys(self):
        self.show(look(TEMP, **{"from": "-1d"}))
        self.browser.until_shows("Thinned: means of")
        box = self.browser.run("(() => { const b = document.querySelector('.chart').getBoundingClientRect();"
                               "return [b.x, b.y, b.width, b.height]; })()")
        y = box[1] + box[3] / 2
        self.browser.drag([(box[0] + box[2] * 0.70, y), (box[0] + box[2] * 0.72, y), (box[0] + box[2] * 0.74, y)])
        self.browser.until("location.hash.includes('to=')")
        self.browser.until("!document.body.innerText.includes('Thinned')")  # few enough to be shown as they are
        before = self.browser.run("location.hash")
        self.browser.run("document.querySelector('.chart-frame').focus()")
        self.browser.press("ArrowLeft")
        self.browser.until(f"location.hash !== {json.dumps(before)}")
        # The same address shows the same again.
        there = self.browser.run("location.hash")
        self.show(there)
        self.browser.until("document.querySelector('.when').textContent.includes('–')")
        self.assertEqual(self.browser.run("location.hash"), there)
        self.browser.until("!!document.querySelector('.extent')")
        self.browser.run("document.querySelector('.chart-frame').focus()")
        self.browser.press("0")
        self.browser.until_shows("Thinned: means of")

    def keep(self, name):
        self.browser.run("document.querySelector('#keep-name').focus()")
        self.browser.type(name)
        self.browser.press("Enter")
        self.browser.until_shows(f"Kept in {name}")

    def test_dashboards_are_kept_in_the_store_and_hang_on_walls(self):
        self.show(look(TEMP, CELLAR, **{"from": "-6h"}))
        self.browser.until("!!document.querySelector('.extent')")
        self.keep("Rooms")
        self.show(look(DOOR, **{"from": "-1d"}))
        self.browser.until("!!document.querySelector('.band')")
        self.keep("Rooms")
        self.show("#/dashboards")
        self.browser.until_shows("Rooms")
        self.show("#/dashboard?name=Rooms")
        self.browser.until("document.querySelectorAll('.panel').length === 2")
        self.browser.until("document.querySelector('.panel .band')?.clientWidth > 100")
        self.browser.until("document.querySelectorAll('.panel .key strong').length === 3")
        self.browser.until("document.querySelector('[data-span=\"-6h\"]').getAttribute('aria-pressed') === 'true'")
        self.browser.picture(PICTURES / "dashboard.png")
        self.show("#/dashboard?name=Rooms&from=-1d&wall=1")
        self.browser.until("document.querySelectorAll('.panel .key strong').length === 3")
        self.assertFalse(self.browser.run("document.querySelector('header').checkVisibility()"))
        self.browser.picture(PICTURES / "dashboard-wall.png")
        self.browser.click(".leave")
        self.browser.until("document.querySelector('header').checkVisibility()")
        # Backups have it: it is a reading, of a name that nothing else is called by.
        kept = self.place.cli("last", "-n", "_views", "--format", "ndjson").stdout
        self.assertIn('"device":"Rooms"', kept)
        charts = json.loads(json.loads(kept)["value"])["charts"]
        self.assertEqual([len(each) for each in charts], [2, 1])
        self.browser.run("document.querySelectorAll('.panel .icon')[1].click()")
        self.browser.until("document.querySelectorAll('.panel').length === 1")
        self.show("#/dashboard?name=none")
        self.browser.until_shows("No dashboard is called “none”")
        # One that somebody else has written badly is passed over.
        self.post("/api/v1/readings", '{"namespace":"_views","device":"bad","sensor":"charts","value":"{"}')
        self.show("#/dashboards")
        self.browser.until_shows("Rooms")
        self.assertNotIn("bad", self.browser.run("document.querySelector('#content').innerText"))

    def test_what_comes_is_seen(self):
        self.show(look(("default", "live", "x"), **{"from": "-15m"}))
        self.browser.until_shows("There is no such thing")
        self.post("/api/v1/readings", '{"device":"live","sensor":"x","value":41}')
        self.show(look(("default", "live", "x"), **{"from": "-15m"}))
        self.browser.until_shows("41")
        self.post("/api/v1/readings", '{"device":"live","sensor":"x","value":42.5}')
        self.browser.until("document.querySelector('.value').textContent === '42.5'")

    def test_states_pictures_and_files(self):
        self.show(look(DOOR, PHOTO, **{"from": "-1d"}))
        self.browser.until("document.querySelectorAll('.pictures img').length === 3")
        self.browser.until("document.querySelector('.band')?.getAttribute('aria-label').includes('hall · door.state')")
        self.browser.until("document.querySelector('.pictures img').complete")
        self.assertEqual(self.browser.run("document.querySelector('.pictures img').naturalWidth"), 1)
        self.browser.click(".picture")
        self.browser.until("!!document.querySelector('dialog[open] img')")
        self.browser.picture(PICTURES / "picture.png")
        self.browser.press("Escape")
        self.browser.until("!document.querySelector('dialog')")

    def answer_instead(self, path, script):
        """The page is answered by `script` of the real answer where it asks for `path`."""
        script = self.browser.call("Page.addScriptToEvaluateOnNewDocument", source="""{
            const asked = window.fetch;
            window.fetch = async (url, given) => {
              const answer = await asked(url, given);
              return String(url).startsWith(%s) ? (%s)(answer) : answer;
            };
          }""" % (json.dumps(path), script))["identifier"]
        self.addCleanup(self.browser.call, "Page.removeScriptToEvaluateOnNewDocument", identifier=script)

    def test_what_cannot_be_read_is_hatched_and_said(self):
        begin, end = (time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - hours * 3600)) for hours in (4, 2))
        hole = [{"namespace": "default", "device": "cellar", "sensor": "air.temp", "from": begin, "to": end,
                 "reason": "a bad block"}]
        self.answer_instead("/api/v1/query", """async (answer) => {
            const text = (await answer.text()).replace("[]00000002", "");
            return new Response(text, {headers: {"X-EdgeCase-Left-Out": JSON.stringify(%s)}});
        }""" % json.dumps(hole))
        self.show(look(CELLAR, **{"from": "-6h"}))
        self.browser.until_shows("some readings cannot be read (a bad block)")
        self.browser.picture(PICTURES / "hatched.png")

    def test_an_untrusted_clock_and_a_bad_drive_are_said_in_words(self):
        self.answer_instead("/api/v1/status", """async (answer) => {
            const status = await answer.json();
            status.clock.trusted = false;
            status.drives.values.degraded = "no answer for 30 s";
            return new Response(JSON.stringify(status));
        }""")
        self.show("#/health")
        self.browser.until_shows("The clock is not trusted")
        self.browser.until_shows("The values drive is degraded: no answer for 30 s")

    def test_targets_of_forwarding_tell_how_they_are(self):
        self.answer_instead("/api/v1/forward", """async () => new Response(JSON.stringify({targets: [
            {name: "cloud", to: "https://cloud.example", state: "failing", why: "no route", behind_seconds: 4000,
             readings: 12345, bytes: 99999, undelivered: 2, apart: true,
             unsent: {unfit: 0, expired: 7, evicted: 2}}]}))""")
        self.show("#/forward")
        self.browser.until_shows("fails; it is tried again: no route")
        self.browser.until_shows("1 h 6 min")
        self.browser.until_shows("9: 7 expired, 2 evicted")
        self.browser.click("td button")
        self.browser.until_shows("gets nothing from then on")

    def test_a_report_is_made(self):
        self.show("#/report")
        self.browser.until("!!document.querySelector('#report-owner')")
        self.browser.click("button.main")
        self.browser.until_shows("Signed: ")

    def test_take_along(self):
        self.show(look(TEMP, **{"from": "-1d"}))
        self.browser.until_shows("Thinned: means of")
        texts = {}
        for way in ("curl", "Python", "InfluxQL"):
            self.browser.run("[...document.querySelectorAll('.take button')]"
                             f".find((each) => each.textContent === 'Copy as {way}').click()")
            texts[way] = self.browser.until("document.querySelector('.take code')?.textContent")
        self.assertIn("Authorization: Bearer", texts["curl"])
        compile(texts["Python"], "copied", "exec")
        statement = urllib.parse.quote(texts["InfluxQL"])
        status, answer = self.daemon.request("GET", f"/query?db=default&q={statement}")
        self.assertEqual(status, 200, answer)
        self.assertGreater(len(json.loads(answer)["results"][0]["series"][0]["values"]), 100, answer[:300])

    def test_hostile_names_stay_text(self):
        for view in (*VIEWS, look(*[("default", name.replace("/", ":"), "m.v") for name in HOSTILE])):
            self.show(view)
            self.settled()
        self.find("hacked")
        self.browser.until("document.querySelectorAll('#found li').length === 3")
        self.assertIsNone(self.browser.run("window.hacked ?? null"))
        made = "document.querySelectorAll('#content script, #content img, #found img').length"
        self.assertEqual(self.browser.run(made), 0)

    def test_views_fit_every_screen(self):
        for view in VIEWS + [look(TEMP, CELLAR, DOOR, PHOTO, **{"from": "-1d"})]:
            self.show(view)
            self.settled()
            for size in (WIDE, SCREEN, PHONE, SMALL):
                self.browser.size(*size, dark=size == PHONE)
                with self.subTest(view=view, size=size):
                    self.assertLessEqual(self.browser.run("document.documentElement.scrollWidth - innerWidth"), 0)
                    if size in (SCREEN, PHONE):
                        name = view[2:].split("?")[0] or "start"
                        self.browser.picture(PICTURES / f"{name}-{size[0]}.png")

    def test_everyone_can_use_it(self):
        # No skip: ctest would take the whole for one.
        if not AXE.exists():
            print("not judged, axe-core is not here: tests/flow/axe.sh fetches it")
            return
        for view in VIEWS + [look(TEMP, CELLAR, DOOR, PHOTO, **{"from": "-1d"})]:
            self.show(view)
            self.settled()
            self.browser.run(AXE.read_text(encoding="utf-8") + ";0")
            for dark in (False, True):
                self.browser.size(*SCREEN, dark=dark)
                found = self.browser.run("""axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa",
                    "wcag22aa"]}).then(({violations}) => violations.map((each) => each.id + ": " + each.help + " " +
                    each.nodes.map((node) => node.html).join(" ")))""")
                with self.subTest(view=view, dark=dark):
                    self.assertEqual(found, [])

    def test_first_paint_is_quick(self):
        # Told, not judged: it hangs on what else the machine does. The aim on a board is 100 ms.
        for is_cold in (True, False):
            self.browser.call("Network.setCacheDisabled", cacheDisabled=is_cold)
            self.addCleanup(self.browser.call, "Network.setCacheDisabled", cacheDisabled=False)
            paints = []
            for _ in range(7):
                self.show()
                self.settled()
                paints.append(self.browser.until(
                    "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"))
            answer = self.browser.run("performance.getEntriesByType('navigation')[0].responseEnd")
            print(f"first paint, {'nothing cached' if is_cold else 'again'}: median {sorted(paints)[3]:.0f} ms, "
                  f"least {min(paints):.0f}, most {max(paints):.0f}; index.html was there after {answer:.0f} ms")
        bytes_sent = self.browser.run("""performance.getEntriesByType('resource')
            .filter((each) => each.name.includes('/page/')).concat(performance.getEntriesByType('navigation'))
            .reduce((sum, each) => sum + each.encodedBodySize, 0)""")
        print(f"the page's files: {bytes_sent / 1024:.0f} KiB")
        self.assertLessEqual(bytes_sent, 150 * 1024)

    def test_a_link_of_3g_is_enough(self):
        # 400 ms there and back, 50 KiB/s: Chromium's own "3G".
        slow = {"offline": False, "latency": 400, "downloadThroughput": 51200, "uploadThroughput": 51200}
        self.browser.call("Network.setCacheDisabled", cacheDisabled=True)
        self.browser.call("Network.emulateNetworkConditions", **slow)
        self.addCleanup(self.browser.call, "Network.setCacheDisabled", cacheDisabled=False)
        self.addCleanup(self.browser.call, "Network.emulateNetworkConditions",
                        **{**slow, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1})
        begun = time.monotonic()
        self.show(look(TEMP, **{"from": "-1d"}))
        self.browser.until_shows("Thinned: means of")
        print(f"a day's chart over 3G: {time.monotonic() - begun:.1f} s")
        self.assertTrue(self.browser.run("document.querySelector('#trouble').hidden"))

    def test_one_record_of_the_audit_log_for_a_view(self):
        def records():
            # Over the socket, which is no page.
            text = self.place.cli("audit", "--json", "--limit", "1000").stdout
            return text.count('"page"')
        self.show(look(TEMP, CELLAR, **{"from": "-1d"}))
        self.browser.until_shows("Thinned: means of")
        before = records()
        for _ in range(3):
            self.browser.run("document.querySelector('[data-span=\"-6h\"]').click()")
            self.browser.until("!document.body.innerText.includes('Thinned')")
            self.browser.run("document.querySelector('[data-span=\"-1d\"]').click()")
            self.browser.until_shows("Thinned: means of")
        self.assertLessEqual(records() - before, 3)  # a minute may turn in between


if __name__ == "__main__":
    unittest.main(verbosity=2)
