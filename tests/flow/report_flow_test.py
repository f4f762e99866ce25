#!/usr/bin/env python3
"""The report of a real daemon: signed, verified without it, bound to the audit log; consents; where data may be."""
import base64
import json
import os
import shutil
import subprocess
import unittest

from daemon_process import Daemon, Place


class ReportFlow(unittest.TestCase):
    def setUp(self):
        self.place = Place()
        self.addCleanup(self.place.remove)
        self.daemon = None
        self.addCleanup(lambda: self.daemon and self.daemon.stop())

    def start(self, storage="", more='[audit]\nmode = "strict"\n'):
        self.place.write_config(storage=storage, more=more)
        self.daemon = Daemon(self.place)

    def cli(self, *arguments, code=0):
        result = self.place.cli(*arguments)
        self.assertEqual(result.returncode, code, (arguments, result.stdout, result.stderr))
        return result.stdout

    def keep(self, name, text):
        path = os.path.join(self.place.path, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def some_report(self, *arguments):
        self.cli("write", "meter/power", "1.5")
        self.cli("device", "set", "meter", "--owner", "alice ü", "--purpose", "billing")
        return self.cli("report", "--json", *arguments)

    def test_a_report_is_verified_without_the_daemon(self):
        self.start()
        whole = self.keep("whole.json", self.some_report())
        person = self.keep("person.json", self.cli("report", "--owner", "alice ü", "--json"))
        key = self.keep("key.pem", self.cli("report", "--public-key"))
        self.daemon.stop()
        for path in (whole, person):
            for more in ((), ("--key", key)):
                self.assertIn("intact", self.cli("report", "--verify", path, *more))
            with open(path, encoding="utf-8") as file:
                report = json.load(file)
            self.assertIn(report["signature"]["fingerprint"], self.cli("report", "--verify", path))
            laid_out = self.keep("laid-out.json", json.dumps(report, indent=3, sort_keys=True))
            self.cli("report", "--verify", laid_out, "--key", key)
            for name in ("made", "stored"):
                changed = {**report, name: "2020-01-01T00:00:00Z"}
                self.cli("report", "--verify", self.keep("changed.json", json.dumps(changed)), code=7)
            unsigned = {name: value for name, value in report.items() if name != "signature"}
            self.cli("report", "--verify", self.keep("unsigned.json", json.dumps(unsigned)), code=2)
        self.cli("report", "--verify", self.keep("none.json", "{"), code=2)
        self.cli("report", "--verify", os.path.join(self.place.path, "missing"), code=3)

    def test_who_has_another_key_is_found(self):
        self.start()
        path = self.keep("report.json", self.some_report())
        other = Place()
        self.addCleanup(other.remove)
        daemon = Daemon(other)
        self.addCleanup(daemon.stop)
        theirs = self.keep("theirs.pem", other.cli("report", "--public-key").stdout)
        self.cli("report", "--verify", path, "--key", theirs, code=7)
        # The key stays, over restarts.
        own = self.cli("report", "--public-key")
        self.daemon.stop()
        self.daemon = Daemon(self.place)
        self.assertEqual(self.cli("report", "--public-key"), own)

    @unittest.skipUnless(shutil.which("openssl") and shutil.which("jq"), "needs openssl and jq")
    def test_others_verify_it_with_their_own_tools(self):
        self.start()
        path = self.keep("report.json", self.some_report("--owner", "alice ü"))
        with open(path, encoding="utf-8") as file:
            signature = json.load(file)["signature"]
        key = self.keep("key.pem", signature["public_key"])
        value = os.path.join(self.place.path, "signature")
        with open(value, "wb") as file:
            file.write(base64.b64decode(signature["value"]))
        text = subprocess.run(["jq", "-cjS", "del(.signature)", path], capture_output=True, check=True)
        checked = subprocess.run(["openssl", "dgst", "-sha256", "-verify", key, "-signature", value],
                                 input=text.stdout, capture_output=True, check=False)
        self.assertEqual(checked.returncode, 0, checked.stderr)

    def test_the_log_still_holds_what_a_report_tells_of(self):
        self.start()
        path = self.keep("report.json", self.some_report())
        for _ in range(3):
            self.cli("query", "meter/power", "--purpose", "billing")
        self.assertIn("intact", self.cli("audit", "--verify", "--report", path))
        with open(path, encoding="utf-8") as file:
            report = json.load(file)
        report["audit"]["head"] = "0" * 64
        self.cli("audit", "--verify", "--report", self.keep("other.json", json.dumps(report)), code=7)
        self.cli("audit", "--verify", "--report", self.keep("none.json", "{}"), code=2)
        told = self.cli("audit", "--json")
        self.assertIn("report.key-made", told)

    def test_consents_are_told_with_who_gave_them(self):
        self.start()
        self.some_report()
        self.cli("device", "set", "meter", "--purpose", "billing,heating")
        self.cli("device", "set", "meter", "--object", "marketing")
        self.cli("device", "set", "meter", "--purpose", "")
        text = self.cli("report", "--owner", "alice ü")
        self.assertIn("Consent", text)
        device = json.loads(self.cli("report", "--owner", "alice ü", "--json"))["devices"][0]
        told = [(each["purposes"], each["objections"]) for each in device["consents"]]
        self.assertEqual(told, [(["billing"], []), (["billing", "heating"], []),
                                (["billing", "heating"], ["marketing"]), ([], ["marketing"])])
        self.assertTrue(all(each["by"].startswith("uid ") for each in device["consents"]))
        # They go with the device, and are exported with it.
        directory = os.path.join(self.place.path, "alice")
        self.cli("export", "--owner", "alice ü", "-o", directory + "/")
        with open(os.path.join(directory, "manifest.json"), encoding="utf-8") as file:
            self.assertEqual(json.load(file)["devices"][0]["consents"], device["consents"])
        self.cli("report", "--verify", os.path.join(directory, "report.signed"))
        self.cli("erase", "--owner", "alice ü", "--yes")
        self.cli("report", "--owner", "alice ü", code=3)

    def test_who_asked_for_an_erasure_has_it_signed(self):
        self.start()
        self.some_report()
        path = self.keep("certificate.json", self.cli("erase", "meter", "--yes", "--json"))
        self.assertIn("of an erasure, the bytes gone 2", self.cli("report", "--verify", path))
        with open(path, encoding="utf-8") as file:
            certificate = json.load(file)
        certificate["level"] = "cryptographic"
        self.cli("report", "--verify", self.keep("changed.json", json.dumps(certificate)), code=7)

    def test_a_person_takes_all_to_another_controller(self):
        places = 'locations = "de"\nmetadata-location = "de"\nvalues-location = "de"\n'
        self.start(storage=places)
        self.some_report()
        self.cli("write", "meter/power", "2.5")
        self.cli("write", "others/power", "3.5")
        self.cli("retention", "set", "meter/*", "99999d")
        other = Place()
        self.addCleanup(other.remove)
        daemon = Daemon(other)
        self.addCleanup(daemon.stop)
        push = ("export", "--owner", "alice ü", "--to-host", f"http://localhost:{daemon.port()}")
        self.cli(*push, code=4)
        self.cli(*push, "--location", "us", code=4)
        self.assertEqual(json.loads(other.cli("devices", "--json").stdout)["devices"], [])
        self.cli(*push, "--location", "de", "-o", "x", code=2)
        self.cli("export", "meter", *push[3:], code=2)
        self.cli(*push, "--location", "de")
        for place in (self.place, other):
            lines = place.cli("query", "meter/power", "--purpose", "billing", "--format", "ndjson").stdout
            self.assertEqual([json.loads(line)["value"] for line in lines.splitlines()], [1.5, 2.5])
        self.assertEqual(other.cli("query", "others/power").returncode, 3)
        there = json.loads(other.cli("report", "--owner", "alice ü", "--json").stdout)["devices"][0]
        self.assertEqual((there["purposes"], there["series"][0]["keep"]), (["billing"], "99999d"))
        self.assertIn("transfer de", self.cli("audit", "--json"))

    def test_a_backup_takes_consents_along(self):
        self.start()
        self.some_report()
        self.cli("device", "set", "meter", "--purpose", "")
        backup = os.path.join(self.place.path, "backup")
        self.cli("backup", backup)
        other = Place()
        self.addCleanup(other.remove)
        daemon = Daemon(other)
        self.addCleanup(daemon.stop)
        restored = other.cli("restore", backup)
        self.assertEqual(restored.returncode, 0, restored.stderr)
        told = [json.loads(place.cli("report", "--owner", "alice ü", "--json").stdout)["devices"][0]["consents"]
                for place in (self.place, other)]
        self.assertEqual(len(told[0]), 2)
        self.assertEqual(told[0], told[1])

    def test_data_stays_where_it_may_be(self):
        places = 'locations = "de,fr"\nmetadata-location = "de"\nvalues-location = "%s"\n'
        self.place.write_config(storage=places % "us")
        refused = self.place.cli("config", "check", self.place.config)
        self.assertEqual(refused.returncode, 2, refused.stderr)
        self.assertIn("storage.values-location: is none of storage.locations", refused.stderr)
        self.start(storage=places % "fr")
        self.cli("write", "meter/power", "1.5")
        where = json.loads(self.cli("where", "meter", "--json"))["files"]
        self.assertEqual({file["drive_location"] for file in where if file["drive"] == "metadata"}, {"de"})
        backup = os.path.join(self.place.path, "backup")
        self.cli("backup", backup, code=4)
        self.cli("backup", backup, "--location", "us", code=4)
        self.cli("backup", backup, "--location", "de")
        settings = json.loads(self.cli("report", "--json"))["settings"]
        self.assertEqual(settings["storage.locations"], "de,fr")


if __name__ == "__main__":
    unittest.main(verbosity=2)
