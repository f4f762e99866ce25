#!/usr/bin/env python3
"""on-full = "reject": full drives lose nothing, answer, erase, take writes once there is room."""
import json
import os
import re
import select
import shutil
import signal
import time
import unittest

from daemon_process import Daemon, Place, until
from full_drive import (FULL_SECONDS, IMAGE_MIB, KEPT_PART, RESERVE_MIB, ROOM_BYTES, STORAGE, Ballast,
                        Readings, fill, has_reserves, stay_full, time_to_take)
from mqtt_device import Device
from residue import Image, canary, search, seeded

BATCHES = 20  # before the ballast takes everything
# The promise is 2 s; this machine may be busy.
RESUMES_SECONDS = 20
MESSAGES = 96
MESSAGE_BYTES = 8 << 10
STRICT = '[audit]\nmode = "strict"\n'
MQTT = """
listen = "localhost:0"
[[mqtt.rule]]
topic = "sensors/{device}/{sensor}"
"""
LINE = re.compile(r'm,device=(\S+) text="(\w+)" (\d+)')


class FullFlow(unittest.TestCase):
    def setUp(self):
        self.source = seeded()
        self.place = Place()
        self.addCleanup(self.place.remove)
        self.images = {}
        for layer, name in (("metadata", "meta"), ("values", "values")):
            image = self.images[layer] = Image(IMAGE_MIB)
            self.addCleanup(image.remove)
            if image.reason:
                self.skipTest(image.reason)
            image.hold(self.place, name)
        self.place.write_config(storage=STORAGE, reserve=f"{RESERVE_MIB}MiB", more=MQTT)
        self.readings = Readings(self.source)
        self.daemon = Daemon(self.place)
        self.addCleanup(lambda: self.daemon.stop(signal.SIGKILL))
        self.refusals = set()
        until(lambda: has_reserves(self.place), "there is something kept for erasing")

    def cli(self, *arguments):
        result = self.place.cli(*arguments)
        self.assertEqual(result.returncode, 0, (arguments, result.stdout, result.stderr))
        return result.stdout

    def status(self):
        return json.loads(self.cli("status", "--json"))

    def degraded(self):
        """Why, of each drive that is."""
        drives = self.status()["drives"]
        return {name: drive["degraded"] for name, drive in drives.items() if drive["degraded"]}

    def write(self, body):
        """Whether it was acknowledged."""
        code, answer = self.daemon.request("POST", "/write?db=default", body)
        self.assertIn(code, (204, 503), answer)
        if code == 503:
            self.refusals.add(json.loads(answer)["error"])
        return code == 204

    def check_readings(self):
        """All that was acknowledged is answered, and nothing that was erased."""
        names = {each["device"] for each in json.loads(self.cli("devices", "--json"))["devices"]}
        for device in self.readings.erased:
            self.assertEqual(self.cli("query", self.readings.name(device), "--format", "line"), "")
            self.assertNotIn(self.readings.name(device), names)
        for device in self.readings.devices():
            name = self.readings.name(device)
            lines = self.cli("query", name, "--format", "line").splitlines()
            found = [LINE.fullmatch(line).groups() for line in lines]
            self.assertEqual({each[0] for each in found}, {name})
            stored = [(int(time_ns), text) for _, text, time_ns in found]
            self.assertEqual(self.readings.verdict(device, stored), (0, 0), "missing, wrong")

    def check_messages(self, acknowledged):
        """Each that was acknowledged is there."""
        if not acknowledged:
            return
        lines = self.cli("query", "mq/text", "--format", "ndjson").splitlines()
        stored = {json.loads(line)["value"].split(":")[0] for line in lines}
        self.assertLessEqual({str(number) for number in acknowledged}, stored)

    def check_what_is_told(self, layer):
        """Which drive, and why."""
        other = "values" if layer == "metadata" else "metadata"
        self.assertEqual(list(self.degraded()), [layer])
        self.assertIn("No space left", self.degraded()[layer])
        _, metrics = self.daemon.request("GET", "/metrics")
        self.assertIn(f'edgecase_engine_degraded{{layer="{layer}"}} 1\n', metrics)
        self.assertNotIn(f'edgecase_engine_degraded{{layer="{other}"}} 1\n', metrics)
        code, answer = self.daemon.request("GET", "/readyz")
        self.assertEqual(code, 503, answer)
        self.assertIn("No space left", answer)
        self.assertIn("No space left", " ".join(self.refusals))
        self.assertIn(f"the {layer} drive takes no writes", self.daemon.log())

    def publish_until_held(self):
        """A device with messages of which not all are acknowledged, and those that were."""
        device = Device("mq")
        self.addCleanup(device.close)
        device.connect(self.daemon.mqtt_port())
        for number in range(MESSAGES):
            device.publish("sensors/mq/text", f"{number}:{'x' * MESSAGE_BYTES}", number)
        taken = []

        def is_held():
            taken.extend(device.settle_what_came())
            self.assertTrue(device.waiting, "all are acknowledged, though no write is taken")
            return self.status()["mqtt"]["listener"].get("waiting_for")

        self.assertIn("No space left", until(is_held, "the daemon says why messages wait"))
        is_held()
        self.assertEqual(select.select([device.socket], [], [], 1)[0], [], "no acknowledgement")
        self.check_messages(taken)
        return device, taken

    def erase(self, device, ballast):
        name = self.readings.name(device)
        began = time.monotonic()
        done = json.loads(self.cli("erase", name, "--yes", "--json"))
        seconds = time.monotonic() - began
        print(f"erased {done['readings']} readings on a full drive in {seconds:.2f} s")
        self.assertEqual(done["state"], "done")
        self.readings.erased.add(device)
        ballast.take_all()
        for image in self.images.values():
            image.settle()
        places = [image.image for image in self.images.values()]
        self.assertEqual(search(places, [self.readings.canaries[device]]), set())

    def fill_and_check(self, layer, room_bytes=ROOM_BYTES, batches=BATCHES):
        ballast = Ballast(self.images[layer].mount)
        ballast.leave(room_bytes)
        fill(self.readings, ballast, self.write, batches)
        full_at = time.monotonic()
        print(f"{self.readings.acknowledged} batches acknowledged; refused: {self.refusals}")
        self.check_readings()
        self.check_what_is_told(layer)
        publisher, taken = self.publish_until_held()
        self.erase(3, ballast)
        self.check_readings()
        # What the erased device had is taken, too; and it stays full, whoever tries.
        fill(self.readings, ballast, self.write, 0)
        stay_full(self.readings, ballast, self.write, full_at + FULL_SECONDS)
        self.check_readings()
        self.check_what_is_told(layer)

        ballast.remove()
        seconds = time_to_take(self.readings, self.write, RESUMES_SECONDS)
        self.assertIsNotNone(seconds, f"no write within {RESUMES_SECONDS} s: {self.status()}")
        print(f"{layer} drive: writes were taken {seconds:.2f} s after there was space", flush=True)
        taken.extend(publisher.settle())
        self.assertEqual(sorted(taken), list(range(MESSAGES)))
        until(lambda: not self.degraded(), "both drives are well")
        self.assertIsNone(self.daemon.process.poll())
        for _ in range(BATCHES):
            self.assertTrue(self.readings.send(self.write))

        # What was acknowledged is on the drives, and not in memory alone.
        for how in (signal.SIGKILL, signal.SIGTERM):
            self.check_readings()
            self.check_messages(taken)
            self.daemon.stop(how)
            if how == signal.SIGKILL:
                self.daemon = Daemon(self.place)
        self.assertEqual(self.daemon.process.returncode, 0)
        checked = self.place.cli("check", "--config", self.place.config)
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)

    def test_a_full_values_drive(self):
        self.fill_and_check("values")

    def test_a_full_metadata_drive(self):
        # The log has all its files by then, and waits for flushes.
        self.fill_and_check("metadata", 4 * ROOM_BYTES, 4 * BATCHES)

    def test_a_metadata_drive_that_is_full_before_the_log_has_all_its_files(self):
        self.fill_and_check("metadata", 0, 0)

    def restart(self, more="", storage=STORAGE):
        """With another configuration, and what is kept for erasing."""
        self.daemon.stop()
        self.place.write_config(storage=storage, reserve=f"{RESERVE_MIB}MiB", more=more)
        self.daemon = Daemon(self.place)
        until(lambda: has_reserves(self.place), "there is something kept for erasing")

    def has_room_again(self, ballast):
        """What is recorded by then is in the log; how d0 was read, each with the record's detail."""
        ballast.remove()
        self.assertIsNotNone(time_to_take(self.readings, self.write, RESUMES_SECONDS))
        until(lambda: not self.degraded(), "both drives are well")
        self.check_readings()
        self.assertIn("intact", self.cli("audit", "--verify"))
        reads = json.loads(self.cli("audit", "--device", "d0", "--json"))["records"]
        return [(each["operation"], each["result"], each.get("detail")) for each in reads]

    def test_what_must_be_recorded_first_is_erased_too(self):
        """audit.mode = "strict": the record finds the room that the erasure does."""
        for layer in ("metadata", "values"):
            self.restart(STRICT)
            self.cli("write", "-n", "spare", "x/y", "1")
            ballast = Ballast(self.images[layer].mount)
            ballast.leave(ROOM_BYTES)
            fill(self.readings, ballast, self.write, BATCHES)
            # Reads have theirs beside the log, until that takes them.
            self.cli("query", "d0", "--limit", "1")
            self.check_readings()
            # What makes room finds some.
            self.cli("namespace", "drop", "spare", "--yes")
            self.assertNotIn("spare", self.cli("namespace", "list"))
            device = self.readings.devices()[-1]
            self.erase(device, ballast)
            self.assertIn(("query", "ok"), [each[:2] for each in self.has_room_again(ballast)])
            told = json.loads(self.cli("audit", "--device", self.readings.name(device), "--json"))
            results = [each["result"] for each in told["records"] if each["operation"] == "erase"]
            self.assertEqual(results, ["begun", "ok"])

    def test_reads_of_an_encrypted_store_are_recorded_on_a_full_drive_too(self):
        """audit.mode = "strict": nothing of the records can be read on the drive; a kill loses none."""
        self.daemon.stop()
        for name in ("meta", "values"):
            path = os.path.join(self.place.path, name)
            for each in os.listdir(path):
                path_of_it = os.path.join(path, each)
                (shutil.rmtree if os.path.isdir(path_of_it) else os.unlink)(path_of_it)
        key = os.path.join(self.place.path, "key")
        with open(key, "wb") as file:
            file.write(os.urandom(32))
        os.chmod(key, 0o400)
        self.restart(STRICT, f'{STORAGE}\nencryption-key-file = "{key}"')
        image = self.images["metadata"]
        ballast = Ballast(image.mount)
        ballast.leave(ROOM_BYTES)
        fill(self.readings, ballast, self.write, BATCHES)
        purposes = [canary(self.source) for _ in range(2)]
        for number, purpose in enumerate(purposes):
            self.cli("query", "d0", "--limit", "1", "--purpose", purpose)
            self.check_readings()
            image.settle()
            self.assertEqual(search([image.image], purposes), set())
            if number == 0:
                self.daemon.stop(signal.SIGKILL)
                self.daemon = Daemon(self.place)
        told = self.has_room_again(ballast)
        for purpose in purposes:
            self.assertIn(("query", "ok", f"purpose {purpose}"), told)

    def let_expire(self, device):
        """A rule that a full drive has to take: at once nothing of it can be read."""
        name = self.readings.name(device)
        self.cli("retention", "set", name, "30d", "--yes")
        self.readings.erased.add(device)
        self.assertIn(f"{name}/*", self.cli("retention", "list"))
        self.assertEqual(self.cli("query", name, "--format", "line"), "")

    def test_shorter_retention_makes_room(self):
        """On a full drive, however much has to be recorded; the reserve comes back."""
        for mode, layer in (("off", "values"), ("strict", "metadata"), ("strict", "values")):
            self.restart(f'[audit]\nmode = "{mode}"\n')
            device = self.readings.devices()[-1]
            ballast = Ballast(self.images[layer].mount)
            ballast.leave(ROOM_BYTES)
            fill(self.readings, ballast, self.write, BATCHES)
            # One that keeps more makes no room.
            longer = self.place.cli("retention", "set", "d0", "forever")
            self.assertNotEqual(longer.returncode, 0, longer.stdout)
            self.assertTrue(has_reserves(self.place))
            self.let_expire(device)
            self.assertFalse(has_reserves(self.place))
            self.assertIsNotNone(time_to_take(self.readings, self.write, RESUMES_SECONDS))
            ballast.remove()
            until(lambda: has_reserves(self.place), "it is made again", RESUMES_SECONDS)
            until(lambda: not self.degraded(), "both drives are well")
            if mode == "strict":
                told = json.loads(self.cli("audit", "--json"))["records"]
                results = [each["result"] for each in told if each["operation"] == "retention.set"]
                self.assertEqual(results[-2:], ["begun", "ok"])
                self.assertIn("intact", self.cli("audit", "--verify"))
        # What the rules say stays so.
        self.daemon.stop(signal.SIGKILL)
        self.daemon = Daemon(self.place)
        for device in self.readings.erased:
            self.assertEqual(self.cli("query", self.readings.name(device), "--format", "line"), "")

    def test_others_find_room_on_both_drives(self):
        self.restart(storage=STORAGE.replace('keep-free = "0MiB"\n', ""))
        for layer in ("values", "metadata"):
            mount = self.images[layer].mount
            space = os.statvfs(mount)
            kept_bytes = space.f_blocks * space.f_frsize // KEPT_PART
            ballast = Ballast(mount)
            # Too little for writes at once, beside what the file system keeps for root.
            ballast.leave((space.f_bfree - space.f_bavail) * space.f_frsize + kept_bytes * 3 // 4)
            until(lambda: not self.readings.send(self.write), "writes are refused")
            space = os.statvfs(mount)
            self.assertGreater(space.f_bavail * space.f_frsize, kept_bytes // 2)
            self.assertIn("writes leave", " ".join(self.refusals))
            self.assertIn("writes leave", self.degraded()[layer])
            self.check_readings()
            device = self.readings.devices()[-1]
            done = json.loads(self.cli("erase", self.readings.name(device), "--yes", "--json"))
            self.assertEqual(done["state"], "done")
            self.readings.erased.add(device)
            ballast.remove()
            self.assertIsNotNone(time_to_take(self.readings, self.write, RESUMES_SECONDS))
            until(lambda: not self.degraded(), "both drives are well")
        self.check_readings()


if __name__ == "__main__":
    unittest.main(verbosity=2)
