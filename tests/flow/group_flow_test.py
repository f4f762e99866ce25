#!/usr/bin/env python3
"""Devices by what is said of them, on a real daemon: found, exported, kept, described, erased; and moved elsewhere."""
import json
import os
import unittest

from daemon_process import Daemon, Place
from residue import canary, search, seeded


class House:
    """A store with its daemon."""

    def __init__(self, test, more="", storage=""):
        self.test = test
        self.place = Place()
        test.addCleanup(self.place.remove)
        self.place.write_config(more=more, storage=storage)
        self.daemon = Daemon(self.place)
        test.addCleanup(lambda: self.daemon.stop())

    def cli(self, *arguments, code=0):
        result = self.place.cli(*arguments)
        self.test.assertEqual(result.returncode, code, (arguments, result.stdout, result.stderr))
        return result.stdout if code == 0 else result.stderr

    def json(self, *arguments):
        return json.loads(self.cli(*arguments, "--json"))

    def write(self, *devices, namespace="default", age=10):
        for device in devices:
            for i in range(3):
                self.cli("write", f"{device}/temp", str(i), "-n", namespace, "--time", f"-{age + i}h")

    def devices(self, *arguments):
        return [each["device"] for each in self.json("devices", *arguments)["devices"]]


def devices_in(lines):
    return sorted({json.loads(line)["device"] for line in lines.splitlines()})


class GroupFlow(unittest.TestCase):
    def test_groups_are_acted_on(self):
        source = seeded()
        house = House(self, more='[audit]\nmode = "strict"\n')
        meter, watch, label = (canary(source) for _ in range(3))
        house.write(meter, watch, "lamp", "tv")
        house.write("gate", namespace="yard")
        house.cli("device", "set", meter, "--owner", "alice", "--purpose", "billing", "--label", f"floor={label}")
        house.cli("device", "set", watch, "--owner", "bob", "--purpose", "care,billing")
        house.cli("device", "set", "gate", "-n", "yard", "--owner", "alice", "--label", "floor=2")
        house.cli("device", "set", "tv", "--label", "floor=2")

        # Describing: an objection holds at once, and is taken back.
        self.assertEqual(house.cli("device", "set", "--of-purpose", "billing", "--object", "ads"), "2 devices\n")
        self.assertEqual(house.devices("--object", "ads"), sorted([meter, watch]))
        house.cli("query", f"{meter}/temp", "--purpose", "ads", code=4)
        house.cli("device", "set", "-A", "--of-owner", "alice", "--object", "")
        self.assertEqual(house.devices("--object", "ads"), [watch])
        house.cli("device", "set", "lamp", "--of-owner", "alice", "--object", "x", code=2)
        house.cli("device", "set", "--of-owner", "nobody", "--object", "x", code=3)
        house.cli("device", "set", "--of-owner", "alice", code=2)

        # Exporting: purposes hold, but for an owner.
        export = ("export", "--format", "ndjson")
        self.assertEqual(devices_in(house.cli(*export, "-A", "--label", "floor=2")), ["gate", "tv"])
        self.assertEqual(devices_in(house.cli(*export, "--of-purpose", "billing", "--purpose", "billing")),
                         sorted([meter, watch]))
        self.assertEqual(house.cli(*export, "--object", "ads", "--purpose", "ads"), "")
        self.assertEqual(devices_in(house.cli(*export, "--owner", "alice", "--label", "floor=2")), ["gate"])
        house.cli("export", "--object", "nothing", code=3)
        house.cli("export", "tv", "--label", "floor=2", code=2)
        house.cli("export", "--label", "floor=2", "-o", os.path.join(house.place.path, "out/"), code=2)

        # Keeping: a rule a device.
        preview = house.json("retention", "preview", "-A", "--label", "floor=2", "10h30m")
        self.assertEqual((preview["series"], preview["readings"], preview["erased_readings"]), (2, 6, 4))
        house.cli("retention", "set", "-A", "--label", "floor=2", "1h", code=2)
        house.cli("retention", "set", "-A", "--label", "floor=2", "10d")
        rules = house.json("retention", "list", "-A")["rules"]
        self.assertEqual([(r["namespace"], r["select"], r["keep"]) for r in rules],
                         [("default", "tv/*", "10d"), ("yard", "gate/*", "10d")])
        house.cli("retention", "clear", "--label", "floor=2")
        self.assertEqual([r["select"] for r in house.json("retention", "list", "-A")["rules"]], ["gate/*"])
        house.cli("retention", "set", "10d", code=2)
        house.cli("retention", "set", "tv", "--label", "floor=2", "10d", code=2)

        # Erasing: what the dry run says, certified, fenced, without a byte left.
        told = house.json("erase", "--purpose", "billing", "--label", f"floor={label}", "--dry-run")
        self.assertEqual([each["device"] for each in told["matched"]], [meter])
        told = house.json("erase", "--purpose", "billing", "--dry-run")
        self.assertEqual((told["devices"], told["readings"]), (2, 6))
        done = house.json("erase", "--purpose", "billing", "--yes")
        self.assertEqual((done["state"], done["devices"], done["readings"], len(done["device_pseudonyms"])),
                         ("done", 2, 6, 2))
        directories = [os.path.join(house.place.path, name) for name in ("meta", "values")]
        self.assertEqual(search(directories, [meter, watch, label]), set())
        house.cli("write", f"{meter}/temp", "1", "--time", "-10h", code=6)
        house.cli("erase", "--purpose", "billing", "--yes", code=3)
        house.cli("erase", "tv", "--label", "floor=2", "--yes", code=2)
        self.assertEqual(house.devices("-A"), ["lamp", "tv", "gate"])
        self.assertIn("intact", house.cli("audit", "--verify"))
        for operation in ("export", "device.set", "retention.set", "erase.preview", "erase"):
            self.assertIn(operation, [r["operation"] for r in house.json("audit")["records"]])

    def test_where_and_report(self):
        house = House(self, more='[audit]\nmode = "strict"\n')
        house.write("meter", "tv")
        house.cli("device", "set", "meter", "--owner", "alice", "--location", "Bremen")
        self.assertEqual({place for file in house.json("where", "meter")["files"] for place in file["locations"]},
                         {"Bremen"})
        self.assertEqual([file["locations"] for file in house.json("where", "tv")["files"] if file["locations"]], [])
        for owner in ((), ("--owner", "alice")):
            head = house.json("report", *owner)["audit"]
            records = {r["sequence"]: r["hash"] for r in house.json("audit")["records"]}
            self.assertEqual(records[head["sequence"]], head["head"])
            self.assertIn("Audit log: ends with record", house.cli("report", *owner))


class ManifestFlow(unittest.TestCase):
    def setUp(self):
        self.house = House(self)
        self.house.write("meter", "watch")
        self.house.cli("write", "meter/power", "5", "--time", "-20m")
        self.house.write("gate", namespace="yard")
        self.house.write("tv")
        self.house.cli("device", "set", "meter", "--owner", "alice", "--purpose", "billing,care", "--object", "ads",
                       "--location", "cellar", "--label", "floor=-1", "--label", "kind=a,b")
        self.house.cli("device", "set", "watch", "--owner", "alice")
        self.house.cli("device", "set", "gate", "-n", "yard", "--owner", "alice", "--location", "street")
        self.house.cli("retention", "set", "meter/power", "90d")
        self.house.cli("retention", "set", "gate", "-n", "yard", "30d")
        self.exported = os.path.join(self.house.place.path, "alice")
        self.house.cli("export", "--owner", "alice", "-o", self.exported + "/")

    def said(self, house):
        """What a report says, without what is not hers."""
        report = house.json("report", "--owner", "alice")
        for device in report["devices"]:
            del device["consents"]  # where she comes to, they begin
            for series in device["series"]:
                del series["bytes"]
        return report["devices"]

    def readings(self, house):
        return house.cli("export", "--owner", "alice", "--format", "ndjson")

    def test_everything_of_a_person_moves(self):
        other = House(self)
        found = other.place.cli("import", self.exported, "--dry-run")
        self.assertIn("3 devices of alice found", found.stderr)
        other.cli("report", "--owner", "alice", code=3)
        other.cli("import", self.exported)
        self.assertEqual(self.said(other), self.said(self.house))
        self.assertEqual(self.readings(other), self.readings(self.house))
        self.assertEqual(other.devices("-A"), ["meter", "watch", "gate"])
        other.cli("query", "meter/temp", "--purpose", "ads", code=4)
        rules = other.json("retention", "list", "-A")["rules"]
        self.assertEqual({(r["namespace"], r["select"], r["keep"]) for r in rules},
                         {("default", "meter/power", "90d"), ("yard", "gate/*", "30d")})
        # The same again changes nothing.
        other.cli("import", self.exported)
        self.assertEqual(self.said(other), self.said(self.house))

    def test_it_can_be_left(self):
        other = House(self)
        other.cli("import", self.exported, "--no-manifest")
        other.cli("report", "--owner", "alice", code=3)
        self.assertEqual(len(other.cli("export", "*/*", "-A", "--format", "ndjson").splitlines()), 10)
        other.cli("import", os.path.join(self.exported, "readings.csv"))
        other.cli("report", "--owner", "alice", code=3)

    def test_conflicts_are_told_and_what_is_said_stays(self):
        other = House(self)
        other.write("meter", "gate", age=90)
        other.cli("device", "set", "meter", "--owner", "bob", "--purpose", "heating", "--label", "floor=7")
        other.cli("device", "set", "watch", "--object", "sale")
        told = other.cli("import", self.exported, code=6)
        for words in ('owner "bob" already, not "alice"', "purposes", "label floor", "3 conflicts"):
            self.assertIn(words, told)
        meter = other.json("device", "show", "meter")
        self.assertEqual((meter["owner"], meter["purposes"], meter["objections"], meter["location"], meter["labels"]),
                         ("bob", ["heating"], ["ads"], "cellar", {"floor": "7", "kind": "a,b"}))
        watch = other.json("device", "show", "watch")
        self.assertEqual((watch["owner"], watch["objections"]), ("alice", ["sale"]))
        # How long somebody else's device is kept is theirs.
        self.assertEqual([r["select"] for r in other.json("retention", "list", "-A")["rules"]], ["gate/*"])
        self.assertEqual(sum(each["count"] for each in other.json("series", "-A")["series"]), 16)

    def test_a_rule_that_is_there_stays_and_what_was_erased_is_not_described(self):
        other = House(self)
        other.write("meter")
        other.cli("write", "meter/power", "1")
        other.cli("retention", "set", "meter/power", "7d")
        other.write("watch")
        other.cli("erase", "watch", "--yes")
        told = other.cli("import", self.exported, code=6)
        self.assertIn("meter/power is kept for 7d already, not for 90d", told)
        self.assertIn("erased since", told)
        self.assertEqual(other.devices("-A", "--owner", "alice"), ["meter", "gate"])
        self.assertNotIn("watch", other.devices("-A"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
