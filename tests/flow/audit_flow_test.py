#!/usr/bin/env python3
"""The audit log of a real daemon: records of what came over HTTP and MQTT, tampering found, kill -9 in strict mode."""
import http.client
import json
import os
import shutil
import signal
import subprocess
import threading
import unittest

from daemon_process import TIME_LIMIT_SECONDS, Daemon, Place, until
from residue import canary, search, seeded

HAS_CLIENTS = shutil.which("mosquitto_pub") is not None
RULES = """
listen = "localhost:0"
[[mqtt.rule]]
topic = "sensors/{device}/{sensor}"
[audit]
"""
KILLS = 5
WRITERS = 3
BATCHES_BEFORE_A_KILL = 40


class AuditFlow(unittest.TestCase):
    def setUp(self):
        self.place = Place()
        self.addCleanup(self.place.remove)
        self.daemon = None
        self.addCleanup(lambda: self.daemon and self.daemon.stop())

    def start(self, mode, more=""):
        self.place.write_config(more=f'{RULES}mode = "{mode}"\n{more}')
        self.daemon = Daemon(self.place)

    def cli(self, *arguments, code=0):
        result = self.place.cli(*arguments)
        if code is not None:
            self.assertEqual(result.returncode, code, result.stderr)
        return result.stdout

    def records(self, *arguments):
        return json.loads(self.cli("audit", "--json", *arguments))["records"]

    def test_what_is_done_is_told(self):
        self.start("strict")
        self.cli("write", "kitchen/temp", "21.5", "--time", "@1")
        self.cli("query", "kitchen/temp")
        self.cli("export", "kitchen/*")
        self.cli("get", "kitchen/temp")
        self.cli("retention", "set", "kitchen/*", "99999d", "--yes")
        token = self.cli("token", "create", "--read", "kitchen/*").strip()
        self.cli("last", "shed/*", "--token", token, code=4)
        self.cli("audit", "--verify", "--token", token, code=4)
        told = [(r["operation"], r["result"]) for r in self.records()]
        for wanted in (("daemon.start", "ok"), ("ingest", "ok"), ("query", "ok"), ("export", "ok"), ("get", "ok"),
                       ("retention.set", "begun"), ("retention.set", "ok"), ("token.create", "ok"),
                       ("last", "denied"), ("audit.verify", "denied")):
            self.assertIn(wanted, told)
        denied = [r for r in self.records() if r["result"] == "denied"]
        self.assertEqual({r["token"] for r in denied}, {token[4:14]})
        self.assertIn("kitchen", self.cli("audit", "--device", "kitchen"))
        self.assertNotIn("ingest", [r["operation"] for r in self.records("--device", "nobody")])
        self.assertEqual(len(self.records("--limit", "3", "--desc")), 3)
        self.assertEqual(self.records("--from", "-1h", "--to", "-30m"), [])
        self.assertIn("intact", self.cli("audit", "--verify"))
        self.cli("audit", "--from", "nonsense", code=2)
        audit = json.loads(self.cli("status", "--json"))["audit"]
        self.assertEqual(audit["mode"], "strict")
        self.assertEqual(self.daemon.stop(), 0)
        with open(os.path.join(self.place.path, "values", "AUDIT-HEAD"), encoding="utf-8") as file:
            self.assertGreater(int(file.read().split()[4]), audit["sequence"])
        self.daemon = Daemon(self.place)
        self.assertIn(("daemon.stop", "ok"), [(r["operation"], r["result"]) for r in self.records()])
        self.assertIn("intact", self.cli("audit", "--verify"))

    def test_whose_data_was_touched(self):
        self.start("batched")
        for device in ("kitchen", "shed", "tv"):
            self.cli("write", f"{device}/temp", "21.5", "--time", "@1")
        self.cli("device", "set", "kitchen", "--owner", "alice")
        self.cli("device", "set", "shed", "--owner", "bob")
        since = self.records("--desc", "--limit", "1")[0]["time"]
        self.cli("query", "kitchen/temp")
        self.cli("last", "*/*")
        self.cli("query", "nothing/temp", code=3)
        found = json.loads(self.cli("audit", "--from", since, "--subjects", "--json"))["subjects"]
        told = {each["owner"]: (each["devices"], each["records"]) for each in found}
        self.assertEqual(told["alice"], (1, 2))
        self.assertEqual(told[""], (1, 1))
        text = self.cli("audit", "--from", since, "--subjects")
        self.assertRegex(text, r"alice +1 +2 ")
        self.assertRegex(text, r"bob +1 +")

    def test_a_head_that_was_changed_is_found(self):
        self.start("batched")
        self.cli("write", "kitchen/temp", "21.5")
        self.daemon.stop()
        head = os.path.join(self.place.path, "values", "AUDIT-HEAD")
        os.remove(head)
        self.daemon = Daemon(self.place)
        self.assertIn("AUDIT-HEAD is missing", self.daemon.log())
        self.assertIn("AUDIT-HEAD is missing", self.cli("audit", "--verify", code=7))
        found = json.loads(self.cli("audit", "--verify", "--json", code=7))
        self.assertFalse(found["intact"])
        self.assertGreater(found["faults"][0]["sequence"], 1)

    def test_a_values_drive_that_is_away_is_no_tampering(self):
        self.start("batched")
        self.cli("write", "kitchen/temp", "21.5")
        self.daemon.stop()
        values = os.path.join(self.place.path, "values")
        os.rename(values, values + ".away")
        os.mkdir(values)
        self.daemon = Daemon(self.place)
        told = self.cli("audit", "--verify", code=6)
        self.assertIn("AUDIT-HEAD could not be compared, the values drive is away", told)
        self.assertNotIn("AUDIT-HEAD is missing", told)
        self.assertNotIn("intact:", told)
        found = json.loads(self.cli("audit", "--verify", "--json", code=6))
        self.assertTrue(found["intact"])
        self.assertIn("the values drive is away", found["unchecked"])
        self.assertGreater(found["records"], 0)
        os.rmdir(values)
        os.rename(values + ".away", values)
        until(lambda: "unchecked" not in json.loads(self.cli("audit", "--verify", "--json", code=None)),
              "the drive is back")
        self.assertIn("intact:", self.cli("audit", "--verify"))

    def test_batched_records_are_durable_within_a_second(self):
        self.start("batched")
        self.cli("write", "kitchen/temp", "21.5")
        until(lambda: json.loads(self.cli("status", "--json"))["audit"]["queued"] == 0, "the queue is written")
        self.daemon.stop(signal.SIGKILL)
        self.daemon = Daemon(self.place)
        self.assertIn("ingest", [r["operation"] for r in self.records()])
        self.assertIn("intact", self.cli("audit", "--verify"))

    def test_the_log_survives_erasures_and_names_nobody(self):
        source = seeded()
        device, other, owner, label = (canary(source) for _ in range(4))
        self.start("strict")
        for name in (device, other):
            self.cli("write", f"{name}/temp", "21.5")
            self.cli("device", "set", name, "--owner", owner, "--label", f"room={label}")
        self.cli("query", f"{device}/temp")
        self.cli("where", device)
        of_both = self.records("--owner", owner)
        self.assertEqual({each["owner"] for r in of_both for each in r["devices"]}, {owner})
        self.assertIn(owner, self.cli("audit", "--owner", owner))
        before = [r for r in self.records("--device", device) if r["operation"] != "audit.read"]
        self.assertEqual([r["operation"] for r in before],
                         ["ingest", "device.set", "device.set", "query", "where"])
        of_other = {r["sequence"] for r in self.records("--device", other)}
        self.cli("erase", device, "--yes")
        self.cli("erase", "--owner", owner, "--yes")
        for restarts in range(2):
            self.assertIn("intact", self.cli("audit", "--verify"))
            # By the pseudonym that is made of the name again; what is there itself is as it was.
            after = {r["sequence"]: r for r in self.records("--device", device)}
            for record in before:
                for each in record["devices"]:
                    del each["device"], each["owner"]
                self.assertEqual(after[record["sequence"]], record)
                for each in record["devices"]:
                    each.update(device="", owner="")
            self.assertIn(("erase", "ok"), [(r["operation"], r["result"]) for r in after.values()])
            told = {r["sequence"] for r in self.records("--owner", owner)}
            # Whose the one was that was not erased by owner, nobody knows any more.
            self.assertGreaterEqual(told, of_other)
            self.assertNotIn("erase", [r["operation"] for r in self.records("--owner", "nobody")])
            directories = [os.path.join(self.place.path, name) for name in ("meta", "values")]
            self.assertEqual(search(directories, [device, other, owner, label]), set())
            if restarts == 0:
                self.daemon.stop(signal.SIGKILL)
                self.daemon = Daemon(self.place)

    def test_off_means_off(self):
        self.start("off")
        self.cli("write", "kitchen/temp", "21.5")
        self.assertEqual(self.records(), [])
        self.assertFalse(os.path.exists(os.path.join(self.place.path, "values", "AUDIT-HEAD")))

    @unittest.skipUnless(HAS_CLIENTS, "mosquitto-clients is not installed")
    def test_mqtt(self):
        self.start("strict")

        def publish(topic, *credentials):
            return subprocess.run(["mosquitto_pub", "-p", str(self.daemon.mqtt_port()), "-V", "mqttv5", "-q", "1",
                                   "-t", topic, "-m", "1", *credentials], capture_output=True,
                                  timeout=TIME_LIMIT_SECONDS, check=False).returncode
        token = self.cli("token", "create", "--write", "kitchen/*").strip()
        self.assertEqual(publish("sensors/kitchen/temp", "-u", token[4:14], "-P", token), 0)
        publish("sensors/shed/temp", "-u", token[4:14], "-P", token)
        self.assertNotEqual(publish("sensors/kitchen/temp"), 0)
        self.assertNotEqual(publish("sensors/kitchen/temp", "-u", "x", "-P", token), 0)
        told = [(r["operation"], r["result"], r["token"]) for r in self.records()]
        self.assertIn(("mqtt.publish", "denied", token[4:14]), told)
        self.assertEqual(told.count(("mqtt.connect", "denied", "")), 2)
        stored = [r for r in self.records("--device", "kitchen") if r["operation"] == "ingest"]
        self.assertEqual(len(stored), 1)
        self.assertEqual(stored[0]["devices"][0]["device"], "kitchen")
        self.assertEqual(stored[0]["token"], token[4:14])
        self.assertIn("denied", [r["result"] for r in self.records("--device", "shed")])
        self.assertNotIn(token, json.dumps(self.records()))

    def test_kill_in_strict_mode_every_acknowledged_batch_has_its_record(self):
        self.start("strict")
        acknowledged = set()
        lock = threading.Lock()

        def write(port, begin, enough):
            connection = http.client.HTTPConnection("localhost", port, timeout=TIME_LIMIT_SECONDS)
            number = begin
            try:
                while True:
                    number += WRITERS
                    connection.request("POST", "/write", f"m,device=d{number} value={number} {number}")
                    answer = connection.getresponse()
                    answer.read()
                    if answer.status == 204:
                        with lock:
                            acknowledged.add(f"d{number}")
                        enough.release()
            except (OSError, http.client.HTTPException):
                pass  # killed: no answer to this batch
            finally:
                connection.close()

        for kill in range(KILLS):
            enough = threading.Semaphore(0)
            threads = [threading.Thread(target=write, daemon=True,
                                        args=(self.daemon.port(), kill * 1_000_000 + i, enough))
                       for i in range(WRITERS)]
            for thread in threads:
                thread.start()
            for _ in range(BATCHES_BEFORE_A_KILL):
                self.assertTrue(enough.acquire(timeout=TIME_LIMIT_SECONDS))
            self.daemon.stop(signal.SIGKILL)
            for thread in threads:
                thread.join(TIME_LIMIT_SECONDS)
            self.daemon = Daemon(self.place)
            self.assertIn("intact", self.cli("audit", "--verify"))
        recorded = {d.get("device") for r in self.records() if r["operation"] == "ingest" for d in r["devices"]}
        self.assertGreaterEqual(len(acknowledged), KILLS * BATCHES_BEFORE_A_KILL)
        self.assertEqual(acknowledged - recorded, set())


if __name__ == "__main__":
    unittest.main(verbosity=2)
