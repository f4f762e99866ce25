#!/usr/bin/env python3
"""`edgecase config storage`: what it says of a directory, and values that move and are all there."""
import glob
import json
import os
import random
import re
import secrets
import signal
import subprocess
import unittest

from daemon_process import PROGRAM, Daemon, Place, clean_environment, run, until

VALUES = 24
VALUE_DIGITS = 512 << 10


class StorageFlow(unittest.TestCase):
    def setUp(self):
        self.place = Place()
        self.place.write_config(storage='memory-limit = "32MiB"')
        self.old = os.path.join(self.place.path, "values")
        self.new = os.path.join(self.place.path, "ssd")
        self.daemon = None

    def tearDown(self):
        if self.daemon:
            self.daemon.stop(signal.SIGKILL)
        self.place.remove()

    def storage(self, *arguments, directory=None):
        return run(("config", "storage", "--config", self.place.config, "--values", directory or self.new, *arguments))

    def configuration(self):
        with open(self.place.config, encoding="utf-8") as file:
            return file.read()

    def start(self):
        self.daemon = Daemon(self.place)

    def fill(self):
        """Enough for several tables on the drive of the values."""
        self.start()
        texts = [secrets.token_hex(VALUE_DIGITS // 2) for _ in range(VALUES)]
        for second, text in enumerate(texts):
            path = os.path.join(self.place.path, "text")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            written = self.place.cli("write", "big/text", "--type", "text", "--file", path, "--time", f"@{second}")
            self.assertEqual(written.returncode, 0, written.stderr)
        until(lambda: glob.glob(self.old + "/*.val"), "values reached their drive")
        return texts

    def stored(self):
        answer = self.place.cli("query", "big/text", "--format", "ndjson")
        self.assertEqual(answer.returncode, 0, answer.stderr)
        return [json.loads(line)["value"] for line in answer.stdout.splitlines()]

    def test_says_what_a_directory_is_good_for(self):
        found = self.storage("--json")
        self.assertEqual(found.returncode, 0, found.stderr)
        told = json.loads(found.stdout)
        self.assertEqual(told["values"], os.path.realpath(self.new))
        self.assertGreater(told["write_mb_per_second"], 0)
        self.assertGreater(told["size_bytes"], told["free_bytes"])
        os.mkdir(os.path.join(self.place.path, "meta"))
        found = self.storage()
        self.assertIn("same drive as the metadata", found.stderr)
        self.assertIn(f"ReadWritePaths=-{os.path.realpath(self.new)}", found.stdout)
        self.assertIn(f'values = "{os.path.realpath(self.new)}"', found.stdout)

    def test_refuses_what_cannot_be_meant(self):
        for directory, word in ((os.path.join(self.place.path, "no", "where"), "mounted"),
                                (self.place.config, "directory"),
                                (os.path.join(self.place.path, "meta"), "metadata directory"),
                                (os.path.join(self.old, "inside"), "within each other")):
            os.makedirs(self.old, exist_ok=True)
            os.makedirs(os.path.join(self.place.path, "meta"), exist_ok=True)
            refused = self.storage(directory=directory)
            self.assertNotEqual(refused.returncode, 0, directory)
            self.assertIn(word, refused.stderr)
            self.assertEqual(refused.stderr.count("\n"), 1, refused.stderr)

    def test_a_running_daemon_keeps_its_values(self):
        self.fill()
        before = self.configuration()
        refused = self.storage("--move")
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("systemctl stop edgecased", refused.stderr)
        self.assertEqual(self.configuration(), before)
        self.assertFalse(glob.glob(self.new + "/*.val"))

    def test_killed_at_any_moment_it_goes_on_and_loses_nothing(self):
        texts = self.fill()
        self.assertEqual(self.daemon.stop(), 0)
        seed = random.randrange(1 << 32)
        print(f"seed {seed}")
        chance = random.Random(seed)
        kills = 0
        while True:
            move = subprocess.Popen([PROGRAM, "config", "storage", "--config", self.place.config, "--values", self.new,
                                     "--move"], env=clean_environment(), stdout=subprocess.DEVNULL,
                                    stderr=subprocess.PIPE, text=True)
            try:
                _, words = move.communicate(timeout=chance.uniform(0, 1) if kills < 12 else None)
                self.assertEqual(move.returncode, 0, words)
                break
            except subprocess.TimeoutExpired:
                move.kill()
                move.communicate()
                kills += 1
            if kills % 4 == 0:  # the store is whole at any moment, wherever it is
                self.start()
                self.assertEqual(self.stored(), texts)
                self.assertEqual(self.daemon.stop(), 0)
        values = re.search('^values = "(.*)"', self.configuration(), re.M).group(1)
        self.assertEqual(values, os.path.realpath(self.new))
        self.assertFalse(os.path.exists(self.old) and os.listdir(self.old))
        self.start()
        self.assertEqual(self.stored(), texts)
        self.assertEqual(self.daemon.stop(), 0)
        checked = run(("check", "--config", self.place.config))
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)


if __name__ == "__main__":
    unittest.main()
