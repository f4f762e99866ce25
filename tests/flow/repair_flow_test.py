#!/usr/bin/env python3
"""After a repair the daemon runs again: no reading under another's name, and what was lost is said."""
import glob
import os
import unittest

from daemon_process import Daemon, Place

OLD = {"kitchen/temp": 21.5, "kitchen/hum": 41.0, "cellar/temp": 9.25}


class RepairFlow(unittest.TestCase):
    def setUp(self):
        self.place = Place()
        self.daemon = None

    def tearDown(self):
        if self.daemon:
            self.daemon.stop()
        self.place.remove()

    def encrypt(self):
        key = os.path.join(self.place.path, "key")
        with open(key, "wb") as file:
            file.write(os.urandom(32))
        os.chmod(key, 0o400)
        self.place.write_config(storage=f'encryption-key-file = "{key}"')

    def ok(self, *arguments):
        result = self.place.cli(*arguments)
        self.assertEqual(result.returncode, 0, (arguments, result.stdout, result.stderr))
        return result.stdout

    def readings(self, selector="*/*"):
        """Series to values, oldest first."""
        found = {}
        result = self.place.cli("query", selector, "--format", "csv")
        self.assertIn(result.returncode, (0, 3), result.stderr)
        for line in result.stdout.splitlines()[1:]:
            _, device, sensor, _, value, _ = line.split(",")
            found.setdefault(f"{device}/{sensor}", []).append(float(value))
        return found

    def fill(self):
        """Devices with readings in value tables, what is said of them, and one that is erased."""
        self.daemon = Daemon(self.place)
        for series, value in OLD.items():
            self.ok("write", series, str(value), "--time", "@1000")
        self.ok("device", "set", "kitchen", "--owner", "alice")
        self.ok("token", "create", "--write", "kitchen/*")
        self.ok("write", "gone/temp", "1", "--time", "@1000")
        self.ok("erase", "gone", "--yes")  # what was written before it is in tables now
        self.stop()

    def stop(self):
        self.assertEqual(self.daemon.stop(), 0)
        self.daemon = None

    def metadata(self, pattern):
        return glob.glob(os.path.join(self.place.path, "meta", pattern), recursive=True)

    def remove(self, paths):
        self.assertTrue(paths)
        for path in paths:
            os.unlink(path)

    def repair(self):
        """What it says was lost."""
        check = self.place.cli("check", "--config", self.place.config)
        self.assertEqual(check.returncode, 7, check.stdout + check.stderr)
        repair = self.place.cli("check", "--repair", "--config", self.place.config)
        self.assertEqual(repair.returncode, 6, repair.stdout + repair.stderr)
        self.assertNotIn("nothing was lost", repair.stderr)
        self.daemon = Daemon(self.place)
        return "\n".join(line for line in repair.stdout.splitlines() if line.startswith("loss: "))

    def expect_sound(self):
        self.stop()
        self.ok("check", "--config", self.place.config)
        self.daemon = Daemon(self.place)

    def expect_old_readings_apart(self):
        """Under names in their place; new devices, and old ones that come again, have their own alone."""
        self.assertIn("recovered-", self.daemon.log())
        before = self.readings()
        self.assertEqual(sorted(sum(before.values(), [])), sorted(OLD.values()))
        self.assertEqual({name.split("/")[0].rstrip("0123456789") for name in before}, {"recovered-"})
        for number, device in enumerate(("attic", "kitchen", "yard", "roof")):
            self.ok("write", f"{device}/temp", str(100 + number))
            self.assertEqual(self.readings(f"{device}/*"), {f"{device}/temp": [100 + number]})
        self.expect_sound()
        self.assertNotIn("recovered-", self.daemon.log())  # once
        after = self.readings()
        self.assertEqual({name: after[name] for name in before}, before)
        self.assertEqual(after["kitchen/temp"], [101])

    def test_the_manifest_is_lost(self):
        self.fill()
        self.remove(self.metadata("MANIFEST-*"))
        self.assertIn("may have come back", self.repair())
        self.assertEqual(self.readings(), {series: [value] for series, value in OLD.items()})
        self.assertIn("alice", self.ok("device", "show", "kitchen"))
        self.assertIn("kitchen", self.ok("token", "list"))
        self.ok("write", "attic/temp", "3")
        self.ok("write", "kitchen/temp", "22", "--time", "@1001")
        self.assertEqual(self.readings("kitchen/temp"), {"kitchen/temp": [21.5, 22]})
        self.assertEqual(self.readings("attic/*"), {"attic/temp": [3]})
        self.expect_sound()

    def lose_the_metadata_drive(self):
        self.fill()
        self.remove([path for path in self.metadata("**/*") if os.path.isfile(path)
                     and not os.path.basename(path).startswith("KEYS-")])
        losses = self.repair()
        for words in ("the names of devices and sensors", "tokens", "the audit log", "the log is lost",
                      "may have come back"):
            self.assertIn(words, losses)
        self.assertEqual(self.ok("token", "list", "--json").find("kitchen"), -1)
        self.expect_old_readings_apart()

    def test_the_metadata_drive_is_lost(self):
        self.lose_the_metadata_drive()
        # The way back to the old names.
        found = [name for name, values in self.readings().items() if values == [OLD["cellar/temp"]]]
        self.assertEqual(len(found), 1)
        device, sensor = found[0].split("/")
        out = os.path.join(self.place.path, "out.csv")
        self.ok("export", found[0], "-o", out)
        with open(out, encoding="utf-8") as file:
            text = file.read()
        with open(out, "w", encoding="utf-8") as file:
            file.write(text.replace(device, "cellar").replace(sensor, "temp"))
        self.ok("import", out)
        self.ok("erase", device, "--yes")
        after = self.readings()
        self.assertEqual(after["cellar/temp"], [OLD["cellar/temp"]])
        self.assertNotIn(found[0], after)

    def test_the_metadata_drive_of_an_encrypted_store_is_lost_but_for_its_keys(self):
        self.encrypt()
        self.lose_the_metadata_drive()

    def values_of_readings(self):
        return [path for path in glob.glob(os.path.join(self.place.path, "values", "*.val"))
                if "namespace name: default\n" in self.ok("inspect", path)]

    def test_lost_readings_are_told_by_device_and_time(self):
        self.fill()
        path, = self.values_of_readings()
        with open(path, "r+b") as file:  # in the first item
            file.seek(110)
            byte = file.read(1)[0]
            file.seek(110)
            file.write(bytes([byte ^ 1]))
        losses = self.repair()
        self.assertIn("namespace default, device kitchen, several sensors: 2 readings", losses)
        self.assertNotIn("device cellar", losses)
        self.assertEqual(self.readings(), {"cellar/temp": [OLD["cellar/temp"]]})
        self.ok("write", "kitchen/temp", "5")
        self.assertEqual(self.readings("kitchen/*"), {"kitchen/temp": [5]})
        self.expect_sound()
        self.stop()
        for path in self.values_of_readings():
            os.unlink(path)
        losses = self.repair()
        self.assertIn("namespace default, device cellar, sensor temp: 1 readings from "
                      "1970-01-01T00:16:40.000000000Z to 1970-01-01T00:16:40.000000000Z", losses)
        self.expect_sound()

    def test_the_tables_of_the_catalog_are_lost(self):
        self.fill()
        tables = [path for path in self.metadata("**/*.val")
                  if "_catalog" in self.ok("inspect", path)]
        self.remove(tables)
        self.assertIn("all of it is lost", self.repair())
        self.assertIn("kitchen", self.ok("token", "list"))
        self.expect_old_readings_apart()


if __name__ == "__main__":
    unittest.main()
