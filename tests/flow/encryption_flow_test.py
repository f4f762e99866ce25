#!/usr/bin/env python3
"""Encryption at rest on a real daemon: nothing readable on the drives, at no time, and clear words about keys."""
import json
import os
import shutil
import signal
import tempfile
import unittest

from daemon_process import Daemon, Place, clean_environment, run
from residue import Image, canary, search, seeded


class EncryptionFlow(unittest.TestCase):
    def setUp(self):
        self.source = seeded()
        self.place = Place()
        self.daemon = None

    def tearDown(self):
        if self.daemon:
            self.daemon.stop()
        self.place.remove()

    def key(self, name, content=None, mode=0o400):
        path = os.path.join(self.place.path, name)
        with open(path, "wb") as file:
            file.write(os.urandom(32) if content is None else content)
        os.chmod(path, mode)
        return path

    def configure(self, key="", previous=""):
        lines = [f'encryption-key-file = "{key}"'] if key else []
        lines += [f'encryption-previous-key-file = "{previous}"'] if previous else []
        self.place.write_config(storage="\n".join(lines), listen="")

    def start(self, key="", previous=""):
        self.configure(key, previous)
        self.daemon = Daemon(self.place)

    def refused(self, wanted, key="", previous=""):
        """The daemon does not start and says why in a line."""
        self.configure(key, previous)
        result = run(["serve", "--config", self.place.config])
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn(wanted, result.stderr)

    def ok(self, *arguments):
        result = self.place.cli(*arguments)
        self.assertEqual(result.returncode, 0, (arguments, result.stdout, result.stderr))
        return result.stdout

    def directories(self):
        return [os.path.join(self.place.path, name) for name in ("meta", "values")]

    def test_no_byte_of_the_drives_can_be_read_at_any_time(self):
        image = Image()
        try:
            if image.reason:
                self.skipTest(image.reason)
            image.hold(self.place)
            key = self.key("key")
            self.start(key)
            device, sensor, text, owner, label = (canary(self.source) for _ in range(5))
            canaries = [device, sensor, text, owner, label]
            for round_number in range(3):
                lines = os.path.join(self.place.path, "in.ndjson")
                with open(lines, "w", encoding="utf-8") as file:
                    for i in range(3_000):
                        file.write(json.dumps({"device": device, "sensor": sensor,
                                               "value": f"{text}-{round_number}-{i}",
                                               "time": 1_763_600_000_000_000_000 + i}) + "\n")
                self.ok("import", lines)
                os.unlink(lines)
                self.ok("device", "set", device, "--owner", owner, "--label", f"floor={label}")
                image.settle()
                self.assertEqual(search([image.image, *self.directories()], canaries), set())
                self.daemon.stop(signal.SIGKILL if round_number == 1 else signal.SIGTERM)
                image.settle()
                self.assertEqual(search([image.image], canaries), set())
                self.daemon = Daemon(self.place)
                count = self.ok("query", device, "--agg", "count", "--format", "ndjson")
                self.assertEqual(json.loads(count)["value"], 3_000)
            encryption = json.loads(self.ok("status", "--json"))["encryption"]
            self.assertTrue(encryption["at_rest"])
            self.assertIn(encryption["aes_instructions"], (False, True))
            self.assertIn("AES-256-GCM", self.ok("report"))
            self.assertEqual(self.daemon.stop(), 0)
            directories = ["--metadata", self.directories()[0], "--values", self.directories()[1]]
            self.assertEqual(run(["check", *directories]).returncode, 4)
            self.assertEqual(run(["check", *directories, "--key-file", key]).returncode, 0)
            manifest = next(os.path.join(self.directories()[0], name)
                            for name in os.listdir(self.directories()[0]) if name.startswith("MANIFEST"))
            self.assertEqual(run(["inspect", manifest, *directories]).returncode, 4)
            self.assertEqual(run(["inspect", manifest, *directories, "--key-file", key]).returncode, 0)
        finally:
            if self.daemon:
                self.daemon.stop()
            image.remove()

    def test_keys_are_changed_and_wrong_ones_are_told(self):
        first, second = self.key("first"), self.key("second")
        self.refused("holds 31 bytes, a key has exactly 32", self.key("short", os.urandom(31)))
        self.refused("holds more than 32 bytes", self.key("long", os.urandom(33)))
        self.refused("No such file", os.path.join(self.place.path, "none"))
        self.refused("all zeros", self.key("zeros", bytes(32)))
        self.refused("everybody can read it", self.key("open", mode=0o444))
        self.refused("encryption-key-file is not", "", first)
        self.start(first)
        self.ok("write", "kitchen/temp", "21.5")
        self.daemon.stop()
        self.refused("the store is encrypted, and no key was given")
        self.refused("another key than the one given", second)
        self.start(second, first)
        self.assertIn("21.5", self.ok("query", "kitchen"))
        self.daemon.stop()
        self.refused("another key than the one given", first)
        self.start(second)
        self.assertIn("21.5", self.ok("query", "kitchen"))
        self.daemon.stop()

    def test_a_key_on_the_drive_that_it_protects_is_warned_of(self):
        key = self.key("key")
        self.start(key)
        warning = f"{key} lies on the drive that it protects"
        self.assertIn(warning, self.daemon.log())
        self.ok("write", "kitchen/temp", "21.5")
        self.daemon.stop()
        elsewhere = "/dev/shm"
        if not os.path.isdir(elsewhere) or os.stat(elsewhere).st_dev == os.stat(self.place.path).st_dev:
            self.skipTest("there is no other file system")
        moved = tempfile.mkdtemp(dir=elsewhere)
        try:
            other = shutil.move(key, os.path.join(moved, "key"))
            self.start(other)
            self.assertIn("encrypted at rest", self.daemon.log())
            self.assertNotIn("lies on the drive", self.daemon.log())
            self.assertIn("21.5", self.ok("query", "kitchen"))
        finally:
            shutil.rmtree(moved)

    def test_the_key_may_be_a_credential(self):
        handed = os.path.join(self.place.path, "handed")
        os.mkdir(handed)
        with_it = {"CREDENTIALS_DIRECTORY": handed}
        self.configure("credential:key")
        start = ["serve", "--config", self.place.config]
        refused = run(start)
        self.assertEqual((refused.returncode, refused.stderr.count("\n")), (2, 1), refused.stderr)
        self.assertIn(":5:1: storage.encryption-key-file: credential:key: systemd has handed no", refused.stderr)
        refused = run(start, env=clean_environment(with_it))
        self.assertEqual((refused.returncode, refused.stderr.count("\n")), (2, 1), refused.stderr)
        self.assertIn("add LoadCredential=key:FILE", refused.stderr)
        key = self.key("handed/key")
        self.daemon = Daemon(self.place, environment=with_it)
        self.ok("write", "kitchen/temp", "21.5")
        self.assertTrue(json.loads(self.ok("status", "--json"))["encryption"]["at_rest"])
        self.daemon.stop()
        judged = run(["config", "check", self.place.config])
        self.assertEqual(judged.returncode, 0, judged.stderr)
        self.assertIn("storage.encryption-key-file: a credential, which the service alone has", judged.stderr)
        check = ["check", "--config", self.place.config]
        self.assertEqual(run(check).returncode, 2)
        self.assertEqual(run(check, env=clean_environment(with_it)).returncode, 0)
        self.assertEqual(run([*check, "--key-file", key]).returncode, 0)

    def test_a_store_in_clear_takes_no_key(self):
        self.start()
        self.ok("write", "kitchen/temp", "21.5")
        self.daemon.stop()
        self.refused("was made without encryption", self.key("key"))
        self.start()
        self.assertIn("21.5", self.ok("query", "kitchen"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
