#!/usr/bin/env python3
"""A value is damaged on its drive: whoever reads past it is told, gets all the rest, and nothing looks whole that is
not; and where nobody reads it, scrubbing finds it."""
import glob
import http.client
import json
import os
import secrets
import unittest
import urllib.error
import urllib.request

from daemon_process import TIME_LIMIT_SECONDS, Daemon, Place, until

VALUES = 24
VALUE_DIGITS = 512 << 10
MARK_BYTES = 64


class DamageFlow(unittest.TestCase):
    def setUp(self):
        self.place = Place()
        self.place.write_config(storage='memory-limit = "32MiB"\nscrub = "5s"')
        self.daemon = Daemon(self.place)

    def tearDown(self):
        self.daemon.stop()
        self.place.remove()

    def place_of(self, mark):
        """File and offset of these bytes on the drive of the values, once they are there."""
        for path in glob.glob(os.path.join(self.place.path, "values", "*.val")):
            try:
                with open(path, "rb") as file:
                    at = file.read().find(mark)
            except FileNotFoundError:  # the store needs it no longer
                continue
            if at >= 0:
                return path, at
        return None

    def write_and_damage(self):
        """The one in the middle of VALUES texts, with one bit changed."""
        marks = []
        for second in range(VALUES):
            text = secrets.token_hex(VALUE_DIGITS // 2)
            marks.append(text[VALUE_DIGITS // 2:][:MARK_BYTES].encode())
            request = urllib.request.Request(
                f"http://localhost:{self.daemon.port()}/write?precision=s",
                data=f'big,device=d text="{text}" {second}\n'.encode())
            with urllib.request.urlopen(request, timeout=TIME_LIMIT_SECONDS) as answer:
                self.assertEqual(answer.status, 204)
        until(lambda: self.place_of(marks[VALUES // 2]), "the value reached its drive")
        self.assertEqual(self.daemon.stop(), 0)
        path, at = self.place_of(marks[VALUES // 2])
        with open(path, "r+b") as file:
            file.seek(at)
            byte = file.read(1)[0]
            file.seek(at)
            file.write(bytes([byte ^ 1]))
        self.daemon = Daemon(self.place)

    def test_what_is_damaged_is_named_and_left_out_and_nothing_else(self):
        self.write_and_damage()
        moment = f"1970-01-01T00:00:{VALUES // 2:02}.000000000Z"
        good = self.place.cli("query", "d/*", "--to", f"@{VALUES // 2}")
        self.assertEqual((good.returncode, len(good.stdout.splitlines())), (0, VALUES // 2 + 1), good.stderr)

        def check(lines, heads):
            self.assertEqual(len(lines), VALUES - 1 + heads)
            self.assertFalse(any(moment in line[:200] for line in lines))

        for arguments, heads in ((("query", "d/*", "--format", "ndjson"), 0), (("query", "d/*", "--format", "csv"), 1),
                                 (("query", "d/*", "--desc", "--format", "csv"), 1), (("export", "d/*"), 1)):
            done = self.place.cli(*arguments)
            self.assertEqual(done.returncode, 7, (arguments, done.stderr))
            self.assertIn("left out", done.stderr)
            self.assertIn(moment, done.stderr)
            check(done.stdout.splitlines(), heads)
        # A window that holds it says so, the others are answered; what needs no value is.
        done = self.place.cli("query", "d/*", "--every", "5s", "--agg", "last", "--format", "csv")
        self.assertEqual(done.returncode, 7, done.stderr)
        self.assertIn(moment, done.stderr)
        rows = [line.rsplit(",", 2) for line in done.stdout.splitlines()[1:]]
        self.assertEqual([(len(row[1].strip('"')), row[2]) for row in rows],
                         [(VALUE_DIGITS, "text")] * 2 + [(0, "damaged")] + [(VALUE_DIGITS, "text")] * 2)
        done = self.place.cli("query", "d/*", "--every", "5s", "--agg", "count", "--format", "csv")
        self.assertEqual((done.returncode, len(done.stdout.splitlines())), (0, 6), done.stderr)
        folder = os.path.join(self.place.path, "out")
        os.mkdir(folder)
        for target, written in (("x.csv", "x.csv"), ("tree/", "tree/default/d/big.text.csv")):
            done = self.place.cli("export", "d/*", "-o", os.path.join(folder, target))
            self.assertEqual(done.returncode, 7, done.stderr)
            with open(os.path.join(folder, written), encoding="utf-8") as file:
                check(file.read().splitlines(), 1)
        # What is there, and how much, is known without the values.
        self.assertIn(str(VALUES), self.place.cli("series").stdout)
        self.assertIn("corruption", self.daemon.log())

        # Who does not ask to be told gets no proper end.
        url = f"http://localhost:{self.daemon.port()}/api/v1/query?select=d/*&format=csv"
        with self.assertRaises((http.client.IncompleteRead, ConnectionError)), \
                urllib.request.urlopen(url, timeout=TIME_LIMIT_SECONDS) as answer:
            answer.read()

    def scrub(self):
        return json.loads(self.place.cli("status", "--json").stdout)["scrub"]

    def test_scrubbing_names_what_is_lost_before_anybody_asks_for_it(self):
        self.write_and_damage()
        until(lambda: self.scrub()["damaged_files"] == 1, "the damage was found")
        seen = self.scrub()
        found = seen["damaged"][0]
        self.assertEqual((seen["every"], seen["damaged_files"]), ("5s", 1))
        self.assertGreater(seen["read_bytes"], VALUE_DIGITS)
        self.assertIn("checksum", found["problem"])
        self.assertTrue(found["path"].startswith(os.path.join(self.place.path, "values")))
        moment = f"1970-01-01T00:00:{VALUES // 2:02}.000000000Z"
        self.assertEqual(found["lost"], [{"namespace": "default", "device": "d", "sensor": "big.text",
                                          "from": moment, "to": moment}])
        self.assertEqual((found["unreadable_entries"], found["lost_more"]), (1, False))
        self.assertIn(found["path"] + ": " + found["problem"] + "; 1 entries cannot be read", self.daemon.log())
        for arguments in ((), ("-v",)):  # the page names it first; all of it holds it
            shown = self.place.cli("status", *arguments).stdout
            for words in (found["path"], "big.text", moment):
                self.assertIn(words, shown)
        with urllib.request.urlopen(f"http://localhost:{self.daemon.port()}/metrics",
                                    timeout=TIME_LIMIT_SECONDS) as answer:
            self.assertIn("edgecase_scrub_damaged_files 1\n", answer.read().decode())
        self.assertEqual(self.place.cli("erase", "d/*", "--yes").returncode, 0)
        until(lambda: self.scrub()["damaged_files"] == 0, "the file went with what it held")


if __name__ == "__main__":
    unittest.main()
