#!/usr/bin/env python3
"""The page where a token is needed, and where it changes something, in Chromium: sign in, dashboards, retention,
tokens, erasing. Skipped where there is no Chromium (install-dependencies.sh browser)."""
import json
import unittest

import browser
from daemon_process import Daemon, Place
from page_flow_test import PICTURES, SCREEN, look

shared = None  # the browser; each daemon is a site of its own to it


def setUpModule():
    if browser.program() is None:
        raise unittest.SkipTest("there is no Chromium: packaging/install-dependencies.sh browser")
    global shared
    PICTURES.mkdir(parents=True, exist_ok=True)
    shared = browser.Browser()


def tearDownModule():
    shared.close()


class SignedInFlow(unittest.TestCase):
    """Where a token is needed; and what changes something."""

    def setUp(self):
        self.place = Place()
        self.addCleanup(self.place.remove)
        self.daemon = Daemon(self.place)
        self.addCleanup(lambda: self.daemon.stop())
        self.browser = shared
        self.browser.errors.clear()
        self.browser.requests.clear()
        self.browser.size(*SCREEN)
        self.site = f"http://localhost:{self.daemon.port()}/"

    def tearDown(self):
        self.assertEqual(self.browser.errors, [])
        self.browser.go("about:blank")

    def cli(self, *arguments):
        result = self.place.cli(*arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def token(self, *scopes):
        return json.loads(self.cli("token", "create", *scopes, "--json"))["token"]

    def sign_in(self, token):
        self.browser.until("document.activeElement?.id === 'token'")
        self.browser.run("document.activeElement.value = ''")
        self.browser.type(token)
        self.browser.press("Enter")

    def fill_in(self, values):
        for name, value in values.items():
            self.browser.until(f"!!document.querySelector('#{name}')")
            self.browser.run(f"(document.querySelector('#{name}').focus(),"
                             f" document.querySelector('#{name}').value = '')")
            self.browser.type(value)

    def test_a_token_opens_it_and_is_kept_nowhere_else(self):
        self.cli("write", "kitchen/temp", "21.5")
        token = self.token("--read", "*")
        self.browser.go(self.site)
        self.browser.until_shows("A token is needed here")
        self.browser.until_shows("edgecase token create")
        self.assertEqual(self.browser.run("document.querySelectorAll('input[type=password]').length"), 1)
        self.sign_in("ec1_0123456789_wrong")
        self.browser.until_shows("This token is not good")
        self.browser.picture(PICTURES / "sign-in.png")
        self.sign_in(token)
        self.browser.until_shows("kitchen")
        self.browser.until("!document.querySelector('#sign-out').hidden")
        kept = self.browser.run("document.cookie + location.href + JSON.stringify(localStorage) + history.state")
        self.assertNotIn(token, kept)
        self.assertFalse([url for url in self.browser.requests if token in url])
        self.assertNotIn(token, self.daemon.log())
        # What it may not do is said, and it stays signed in.
        self.browser.go(self.site + "#/tokens")
        self.browser.until_shows("This token may not do that")
        self.browser.click("#sign-out")
        self.browser.until_shows("A token is needed here")
        self.assertEqual(self.browser.run("sessionStorage.length"), 0)
        # One that was ended meanwhile.
        self.sign_in(token)
        self.browser.until("!document.querySelector('#sign-out').hidden")
        self.cli("token", "revoke", token.split("_")[1])
        self.token("--read", "*")
        self.browser.go(self.site + "#/health")
        self.browser.until_shows("it expired or was revoked")

    def test_an_empty_store_says_how_to_begin(self):
        self.browser.go(self.site)
        self.browser.until_shows("Nothing is stored yet")
        self.assertEqual(self.browser.run("document.querySelectorAll('input[type=password]').length"), 0)

    def test_a_daemon_that_is_away_is_said_and_found_again(self):
        port = self.daemon.port()
        self.cli("write", "kitchen/temp", "21.5")
        self.browser.go(self.site + "#/health")
        self.browser.until_shows("All is well")
        self.daemon.stop()
        self.browser.until_shows("The daemon cannot be reached")
        self.place.write_config(listen=f"localhost:{port}")
        self.daemon = Daemon(self.place)
        self.browser.until("document.querySelector('#trouble').hidden")

    def test_a_page_that_is_older_than_the_daemon_says_so(self):
        self.cli("write", "kitchen/temp", "21.5")
        self.browser.go(self.site)
        self.browser.until("document.querySelector('#foot').textContent !== ''")
        self.assertTrue(self.browser.run("document.querySelector('#outdated').hidden"))
        # A daemon that answers otherwise than this page knows.
        self.browser.run("""(() => { const before = fetch; window.fetch = async (...all) => {
            const answer = await before(...all);
            return String(all[0]).startsWith("/api/v1/status")
              ? new Response(JSON.stringify({version: "99.0.0"})) : answer; }; })()""")
        self.browser.run("location.hash = '#/health'")
        self.browser.until_shows("This page does not understand what the daemon answered")
        self.browser.until_shows("EdgeCase was updated while this page was open")
        self.assertEqual(len(self.browser.errors), 1)  # for who writes the page
        self.browser.errors.clear()
        self.browser.click("#reload")
        self.browser.until("document.body?.innerText.includes('All is well')")  # no body: it is loading
        self.assertTrue(self.browser.run("document.querySelector('#outdated').hidden"))

    def keep_rooms(self):
        """A dashboard of one series, called Rooms."""
        self.cli("write", "kitchen/temp", "21.5")
        self.browser.go(self.site + look(("default", "kitchen", "temp"), **{"from": "-1h"}))
        self.browser.until("!!document.querySelector('#keep-name')")
        self.fill_in({"keep-name": "Rooms"})
        self.browser.press("Enter")
        self.browser.until_shows("Kept in Rooms")

    def test_a_wall_that_is_older_than_the_daemon_reloads_itself(self):
        self.keep_rooms()
        self.browser.go(self.site + "#/dashboard?name=Rooms&wall=1")
        self.browser.until("document.querySelectorAll('.panel .key strong').length === 1")
        # The daemon goes away once, and comes back as another.
        self.browser.run("""(() => { const before = fetch; let isAway = true; window.isOld = true;
            window.fetch = async (...all) => {
              if (String(all[0]).startsWith("/api/v1/status"))
                return new Response(JSON.stringify({version: "99.0.0"}));
              if (isAway) { isAway = false; throw new TypeError("away"); }
              return before(...all); }; })()""")
        self.browser.run("location.hash = '#/dashboard?name=Rooms&from=-1d&wall=1'")
        self.browser.until("!window.isOld && document.querySelectorAll('.panel .key strong').length === 1")
        self.assertIn("wall=1", self.browser.run("location.hash"))
        self.assertFalse(self.browser.run("document.querySelector('header').checkVisibility()"))
        self.assertTrue(self.browser.run("document.querySelector('#outdated').hidden"))

    def test_erasing_shows_what_goes_and_wants_the_name(self):
        self.cli("write", "kitchen/temp", "21.5")
        self.cli("write", "hall/temp", "19")
        self.browser.go(self.site)
        self.browser.until_shows("kitchen")
        self.browser.go(self.site + "#/erase")
        self.fill_in({"erase-device": "kitchen"})
        self.browser.press("Enter")
        self.browser.until_shows("1 reading")
        self.assertTrue(self.browser.run("document.querySelector('.danger').disabled"))
        self.fill_in({"sure-name": "kitche"})
        self.assertTrue(self.browser.run("document.querySelector('.danger').disabled"))
        self.browser.type("n")
        self.browser.until("!document.querySelector('.danger').disabled")
        self.browser.picture(PICTURES / "erase-sure.png")
        self.browser.click(".danger")
        self.browser.until_shows("Certificate")
        self.assertNotIn("kitchen", self.cli("devices"))
        self.assertIn("hall", self.cli("devices"))

    def test_a_purpose_is_stated_once_and_forgotten_with_the_tab(self):
        self.cli("write", "meter/power", "230.5")
        self.cli("device", "set", "meter", "--purpose", "billing")
        self.browser.go(self.site + look(("default", "meter", "power"), **{"from": "-1h"}))
        self.browser.until("document.querySelector('#purpose')?.checkVisibility()")
        self.fill_in({"purpose": "billing"})
        self.browser.press("Enter")
        self.browser.until_shows("230.5")
        self.assertNotIn("billing", self.browser.run("location.href + JSON.stringify(localStorage)"))
        self.fill_in({"purpose": "marketing"})
        self.browser.press("Enter")
        self.browser.until("!document.querySelector('.value')?.textContent.includes('230.5')")

    def test_a_dashboard_is_erased_by_its_name(self):
        self.keep_rooms()
        self.browser.go(self.site + "#/dashboard?name=Rooms")
        self.browser.until("!!document.querySelector('.panel')")
        self.browser.click(".tools .danger")
        self.fill_in({"sure-name": "Rooms"})
        self.browser.press("Enter")
        self.browser.until_shows("There is none yet")
        self.assertIn("kitchen", self.cli("devices"))
        self.assertNotIn("Rooms", self.cli("last", "-n", "_views", "--format", "ndjson"))

    def test_retention_is_set_after_a_preview(self):
        self.cli("write", "kitchen/temp", "21.5")
        self.browser.go(self.site + "#/retention")
        self.fill_in({"retention-device": "kitchen", "retention-keep": "30d"})
        self.browser.press("Enter")
        self.browser.until_shows("Nothing is removed now")
        self.fill_in({"sure-name": "kitchen"})
        self.browser.press("Enter")
        self.browser.until_shows("Set: kitchen keeps 30d")
        self.assertIn("30d", self.cli("retention", "list"))

    def test_tokens_are_made_and_ended(self):
        self.token("--admin")
        admin = self.token("--admin")
        self.browser.go(self.site + "#/tokens")
        self.sign_in(admin)
        self.browser.until_shows("A new one")
        self.fill_in({"token-read": "kitchen/*"})
        self.browser.press("Enter")
        self.browser.until_shows("Made. Copy it now")
        made = self.browser.run("document.querySelector('.copyable code').textContent")
        status, _, _ = self.daemon.exchange("GET", "/api/v1/status", None, {"Authorization": "Bearer " + made})
        self.assertEqual(status, 200)


if __name__ == "__main__":
    unittest.main(verbosity=2)
