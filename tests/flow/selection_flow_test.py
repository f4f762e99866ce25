#!/usr/bin/env python3
"""Several selectors, and series by what they were called where they came from, for every command that takes them."""
import json
import os
import subprocess
import unittest

from daemon_process import PROGRAM, TIME_LIMIT_SECONDS, Daemon, Place, clean_environment

LINES = """cpu,host=pi,cpu=0 idle=1,user=2 {0}
cpu,host=pi,cpu=1 idle=3 {0}
cpu,host=nas,cpu=0 idle=4 {0}
mem,host=pi used=5 {0}
"""
PI_CPU0_IDLE = ("--measurement", "cpu", "--tag", "host=pi", "--tag", "cpu=0", "--field", "idle")


class SelectionFlow(unittest.TestCase):
    def setUp(self):
        self.place = Place()
        self.addCleanup(self.place.remove)
        self.daemon = Daemon(self.place)
        self.addCleanup(lambda: self.daemon.stop())

    def cli(self, *arguments, code=0):
        result = self.place.cli(*arguments)
        self.assertEqual(result.returncode, code, (arguments, result.stdout, result.stderr))
        return result.stdout if code == 0 else result.stderr

    def json(self, *arguments):
        return json.loads(self.cli(*arguments, "--json"))

    def values(self, *arguments, code=0):
        """Of readings as NDJSON, in their order."""
        result = self.place.cli(*arguments, "--format", "ndjson")
        self.assertEqual(result.returncode, code, (arguments, result.stdout, result.stderr))
        return [json.loads(line)["value"] for line in result.stdout.splitlines()]

    def test_every_command(self):
        lines = os.path.join(self.place.path, "lines")
        with open(lines, "w", encoding="utf-8") as file:
            file.write(LINES.format(1_700_000_000_000_000_000))
        self.cli("import", lines, "--format", "line")
        for device in ("attic", "kitchen", "[x]"):
            self.cli("write", f"{device}/temp", "7", "--time", "@1700000000")
        self.cli("write", "kitchen/hum", "8", "--time", "@1700000000")

        # Reading. What two selectors match comes once, and in the order of names.
        for command in (("query",), ("last",), ("export",)):
            self.assertEqual(self.values(*command, "kitchen", "attic/temp", "*/hum"), [7, 8, 7])
            self.assertEqual(self.values(*command, "[x]", "[x]/temp"), [7])
            self.assertEqual(self.values(*command, *PI_CPU0_IDLE), [1])
            self.assertEqual(self.values(*command, "--measurement", "cpu", "--measurement", "m?m"), [4, 1, 3, 2, 5])
            self.assertEqual(self.values(*command, "pi", "--measurement", "c*", "--field", "idle"), [1, 3])
            # What came by names has the identity that they give.
            self.assertEqual(self.values(*command, "--measurement", "hum", "--tag", "device=kitchen"), [8])
            self.assertEqual(self.values(*command, "attic/temp", "--measurement", "cpu"), [])
            # One that is not there is named, and the rest is done.
            self.assertEqual(self.values(*command, "attic/temp", "nowhere/temp", code=6), [7])
            self.assertIn("nowhere/temp", self.place.cli(*command, "attic/temp", "nowhere/temp").stderr)
            self.cli(*command, "nowhere/temp", "nowhere/hum", code=3)
            # The same of a device, and of a pattern; alone, or among others like it, that is an empty answer.
            for nothing in ("nowhere", "nowhere/*", "no*/temp", "attic/x*"):
                self.assertEqual(self.values(*command, "attic/temp", nothing, code=6), [7])
                self.assertIn(f"default {nothing.split('/')[0]}/",
                              self.place.cli(*command, nothing, "attic/temp").stderr)
                self.cli(*command, nothing)
                self.cli(*command, nothing, "none*")
        self.assertEqual(self.values("query", "pi", "--agg", "count", "--measurement", "cpu"), [1, 1, 1])
        self.assertEqual(len(self.json("series", "kitchen", "attic")["series"]), 3)
        self.assertEqual(len(self.json("series", *PI_CPU0_IDLE)["series"]), 1)
        names = [each["device"] for each in self.json("devices", "--measurement", "cpu", "kitchen", "pi")["devices"]]
        self.assertEqual(names, ["pi"])
        self.assertEqual(self.json("where", "kitchen", "attic/temp")["series"], 3)
        self.assertEqual(self.json("where", "--tag", "host=pi")["series"], 4)
        self.cli("plot", "kitchen/temp", "attic/temp", "--from", "@1699990000", "--to", "@1700010000")
        picture = os.path.join(self.place.path, "p.png")
        said = self.cli("plot", "kitchen/temp", "nowhere", "--from", "@1699990000", "--png", picture, code=6)
        self.assertIn("default nowhere/*", said)
        self.assertTrue(os.path.exists(picture))
        self.cli("plot", *PI_CPU0_IDLE, "--from", "@1699990000", "--to", "@1700010000")

        directory = os.path.join(self.place.path, "out")
        both = ("export", "kitchen", "attic", "-o", directory + "/")
        self.cli(*both)
        self.cli(*both, "--resume")
        self.cli("export", "kitchen", "-o", directory + "/", "--resume", code=2)
        self.assertEqual(sorted(os.listdir(os.path.join(directory, "default"))), ["attic", "kitchen"])

        # Keeping: rules are by names.
        self.cli("retention", "set", "kitchen", "attic/*", "10000d")
        self.assertEqual(len(self.json("retention", "list")["rules"]), 2)
        preview = self.json("retention", "preview", "kitchen", "*/temp", "9000d")
        self.assertEqual((preview["series"], preview["readings"]), (4, 4))
        self.cli("retention", "set", "kitchen", code=2)
        self.assertIn("by names", self.cli("retention", "set", "kitchen", "9d", "--measurement", "cpu", code=2))
        self.assertIn("none/*", self.cli("retention", "clear", "kitchen/*", "none/*", code=6))
        self.assertEqual(len(self.json("retention", "list")["rules"]), 1)

        # Erasing: exactly these series, which stay away; one that was not there then is another.
        preview = json.loads(self.cli("erase", *PI_CPU0_IDLE, "--dry-run", "--json"))
        self.assertEqual((preview["series"], preview["devices"], preview["readings"]), (1, 0, 1))
        certificate = json.loads(self.cli("erase", "--measurement", "cpu", "--tag", "host=pi", "--yes", "--json"))
        self.assertEqual((certificate["series"], certificate["devices"]), (3, 0))
        self.assertEqual(len(certificate["series_pseudonyms"]), 3)
        self.place.cli("import", lines, "--format", "line")
        self.assertEqual(self.values("query", "pi"), [5])
        self.assertEqual(self.values("query", "nas"), [4])
        self.assertIn("none/x", self.cli("erase", "kitchen/hum", "none/x", "--yes", code=6))
        self.assertEqual(self.values("query", "kitchen"), [7])
        self.cli("erase", "kitchen", "[x]", "--yes")
        self.assertEqual([each["device"] for each in self.json("devices", "*/temp")["devices"]], ["attic"])
        self.cli("erase", "none/x", "none/y", "--yes", code=3)

        # What cannot be meant.
        for wrong in (("--tag", "host"), ("--tag", ""), ("--tag", "host="), ("--tag", "=pi"), ("--measurement", ""),
                      ("a/b/c", "a"), ("a", ""), ("--tags", "host=pi"), ()):
            for command in ("query", "where", "plot", "tail", "export", "erase"):
                self.cli(command, *wrong, code=2)
        self.assertIn("10000 selectors; at most 100", self.cli("last", *("a",) * 10_000, code=2))

        # Following.
        tail = ("tail", "attic", "hall", "--tag", "device=*ll", "--limit", "1", "--format", "csv")
        with subprocess.Popen([PROGRAM, *tail], stdout=subprocess.PIPE, text=True,
                              env=clean_environment({"EDGECASE_HTTP_SOCKET": self.place.socket})) as follower:
            self.assertTrue(follower.stdout.readline().startswith("namespace,"))
            self.cli("write", "attic/temp", "1")
            self.cli("write", "hall/temp", "2")
            self.assertTrue(follower.stdout.readline().startswith("default,hall,temp,"))
            self.assertEqual(follower.wait(TIME_LIMIT_SECONDS), 0)
        # What is not there yet is named, and waited for.
        with subprocess.Popen([PROGRAM, "tail", "attic", "porch", "--limit", "1"], text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE,
                              env=clean_environment({"EDGECASE_HTTP_SOCKET": self.place.socket})) as follower:
            self.assertIn("default porch/*", follower.stderr.readline())
            self.cli("write", "porch/temp", "3")
            self.assertIn("default,porch,temp,", follower.communicate(timeout=TIME_LIMIT_SECONDS)[0])
            self.assertEqual(follower.returncode, 0)


if __name__ == "__main__":
    unittest.main()
