#!/usr/bin/env python3
"""Everything of one moment out of one daemon, and into another."""
import fcntl
import json
import os
import unittest
import urllib.request

from daemon_process import Daemon, Place

KEYS = 40


class BackupFlow(unittest.TestCase):
    def setUp(self):
        self.place, self.other = Place(), Place()
        self.daemon, self.target = Daemon(self.place), Daemon(self.other)
        for device in range(KEYS):
            lines = "\n".join(f"temp,device=d{device} value={i} {10**18 + i}" for i in range(500))
            self.post("/write", lines)
        self.ok("write", "note/text", 'a "b",\nü', "--time", "2025-01-01")
        self.ok("write", "-n", "hall", "door/picture", "raw", "--type", "bytes", "--time", "2025-01-01")
        self.ok("write", "-n", "_views", "Rooms/charts", '{"version":1}', "--type", "text")
        self.ok("namespace", "create", "empty")
        self.ok("device", "set", "d1", "--owner", "alice", "--purpose", "care", "--label", "a=b")
        self.ok("retention", "set", "d1/*", "36500d", "--yes")
        self.directory = os.path.join(self.place.path, "saved")

    def tearDown(self):
        for each in (self.daemon, self.target):
            each.stop()
        for each in (self.place, self.other):
            each.remove()

    def post(self, path, text):
        url = f"http://localhost:{self.daemon.port()}{path}"
        with urllib.request.urlopen(urllib.request.Request(url, text.encode(), method="POST")) as answer:
            return answer.read()

    def ok(self, *arguments, place=None):
        result = (place or self.place).cli(*arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def fails(self, code, *arguments, place=None):
        result = (place or self.place).cli(*arguments)
        self.assertEqual(result.returncode, code, result.stderr)
        return result.stderr

    def everything(self, place):
        return self.ok("export", "*/*", "-A", "--purpose", "care", place=place)

    def test_another_daemon_has_the_same(self):
        before = self.everything(self.place)
        self.ok("backup", self.directory)
        self.fails(1, "backup", self.directory)
        self.ok("restore", self.directory, place=self.other)
        self.assertEqual(self.everything(self.other), before)
        self.assertIn("empty", self.ok("namespace", "list", place=self.other))
        self.assertEqual(self.ok("last", "-n", "_views", place=self.other), self.ok("last", "-n", "_views"))
        self.assertIn("Rooms", self.ok("last", "-n", "_views"))
        self.assertIn("36500d", self.ok("retention", "list", place=self.other))
        told = [json.loads(self.ok("device", "show", "d1", "--json", place=p))
                for p in (self.place, self.other)]
        self.assertEqual(told[0], told[1])
        # Once more changes nothing, and what was said since stays.
        self.ok("device", "set", "d1", "--owner", "bob", place=self.other)
        self.ok("restore", self.directory, place=self.other)
        self.assertEqual(self.everything(self.other), before)
        self.assertIn("bob", self.ok("device", "show", "d1", place=self.other))

    def test_one_that_was_broken_off_goes_on_at_its_moment(self):
        before = self.everything(self.place)
        moment = json.loads(self.post("/api/v1/backups", ""))
        os.makedirs(self.directory)
        note = os.path.join(self.directory, ".edgecase-backup")
        with open(note, "w", encoding="utf-8") as file:
            file.write(json.dumps(moment) + '\n{"file":"def')
        self.fails(2, "restore", self.directory)
        self.ok("write", "d1/temp", "-1", "--time", "2025-01-01")
        self.ok("write", "later/temp", "-1")
        self.ok("backup", self.directory)
        self.assertFalse(os.path.exists(note))
        self.ok("restore", self.directory, place=self.other)
        self.assertEqual(self.everything(self.other), before)

    def test_two_that_were_killed_do_not_block_a_third(self):
        for _ in range(2):  # their moments, which nobody reads any more
            self.post("/api/v1/backups", "")
        self.ok("backup", self.directory)
        other = os.path.join(self.place.path, "other")
        os.makedirs(other)
        with open(os.path.join(other, ".edgecase-backup"), "w", encoding="utf-8") as note:
            fcntl.flock(note, fcntl.LOCK_EX)
            self.assertIn("another edgecase backup", self.fails(1, "backup", other))
        self.ok("backup", other)

    def test_a_name_that_is_too_long_as_a_file_is_backed_up(self):
        for name in ("%" * 86, "\u00e4" * 64, "..", "CON", "a:b"):
            self.ok("write", name + "/x", "1")
        before = self.everything(self.place)
        self.ok("backup", self.directory)
        self.ok("restore", self.directory, place=self.other)
        self.assertEqual(self.everything(self.other), before)

    def test_a_moment_that_is_gone_is_told(self):
        os.makedirs(self.directory)
        with open(os.path.join(self.directory, ".edgecase-backup"), "w", encoding="utf-8") as file:
            file.write('{"moment":"1-1"}\n{"file":"default/d1/temp.ndjson.gz","readings":1,"bytes":1}\n')
        self.assertIn("beginning anew", self.place.cli("backup", self.directory).stderr)
        self.ok("restore", self.directory, place=self.other)
        self.assertEqual(self.everything(self.other), self.everything(self.place))

    def test_what_was_erased_does_not_come_back(self):
        self.ok("backup", self.directory)
        self.ok("erase", "d1", "--yes")
        self.ok("erase", "d2/temp", "--from", "@1000000000", "--to", "@1000000000.000000100", "--yes")
        before = self.everything(self.place)
        result = self.place.cli("restore", self.directory)
        self.assertEqual(result.returncode, 6, result.stderr)
        self.assertIn("600 not kept: their time was erased", result.stderr)
        self.assertEqual(self.everything(self.place), before)
        self.fails(3, "device", "show", "d1")
        self.assertNotIn("d1/", self.ok("retention", "list"))

    def test_a_damaged_file_of_a_backup_is_named_and_left_out(self):
        self.ok("backup", self.directory)
        path = os.path.join(self.directory, "default", "d7", "temp.ndjson.gz")
        with open(path, "r+b") as file:
            file.seek(60)
            byte = file.read(1)
            file.seek(60)
            file.write(bytes([byte[0] ^ 1]))
        self.assertIn(path, self.fails(7, "restore", self.directory, place=self.other))
        rest = [line for line in self.everything(self.place).splitlines() if ",d7,temp," not in line]
        self.assertEqual(self.everything(self.other).splitlines(), rest)
        os.unlink(path)
        self.assertIn(path, self.fails(6, "restore", self.directory, place=self.other))
        self.fails(3, "restore", os.path.join(self.place.path, "nothing"), place=self.other)


if __name__ == "__main__":
    unittest.main()
