#!/usr/bin/env python3
"""Erasure on a real daemon, by the command line, HTTP and a broker: nothing of it is left in any byte."""
import json
import os
import shutil
import signal
import socket
import subprocess
import time
import unittest
import urllib.error
import urllib.request

import mosquitto
from daemon_process import PROGRAM, Daemon, Place, clean_environment, until
from residue import Image, canary, search, seeded

_RULES = """
[[mqtt.rule]]
topic = "owned/{device}/{sensor}"

[[mqtt.rule]]
topic = "numbers/{device}/{sensor}"
payload = "number"
"""


class EraseFlow(unittest.TestCase):
    def setUp(self):
        self.source = seeded()
        self.place = Place()
        self.broker = None
        self.daemon = None

    def tearDown(self):
        if self.daemon:
            self.daemon.stop()
        if self.broker:
            self.broker.remove()
        self.place.remove()

    def start(self, **more):
        self.place.write_config(**more)
        self.daemon = Daemon(self.place)
        self.wait_for_broker()

    def wait_for_broker(self):
        if self.broker:
            until(lambda: json.loads(self.ok("status", "--json"))["mqtt"]["connected"], "connected")

    def restart(self, how=signal.SIGTERM):
        self.daemon.stop(how)
        self.daemon = Daemon(self.place)
        self.wait_for_broker()

    def directories(self):
        return [os.path.join(self.place.path, name) for name in ("meta", "values")]

    def cli(self, code, *arguments, **more):
        result = self.place.cli(*arguments, **more)
        self.assertEqual(result.returncode, code, (arguments, result.stdout, result.stderr))
        return result.stdout

    def ok(self, *arguments, **more):
        return self.cli(0, *arguments, **more)

    def post(self, lines):
        """The status; lines of line protocol."""
        request = urllib.request.Request(f"http://localhost:{self.daemon.port()}/write?db=default",
                                         "\n".join(lines).encode())
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            return error.code

    def devices(self):
        return {each["device"] for each in json.loads(self.ok("devices", "--json"))["devices"]}

    def fill(self, device, sensor, text, others=20_000):
        """A canary in each place where there may be one, among readings of others."""
        now_ns = time.time_ns() - 10**12
        lines = [f'm,device={device} {sensor}="{text}-{i}" {now_ns + i}' for i in range(2_000)]
        lines += [f"m,device=other{i % 50} value={i} {now_ns + i}" for i in range(others)]
        self.assertEqual(self.post(lines), 204)

    def all_done(self):
        erasures = json.loads(self.ok("erase", "--list", "--json"))["erasures"]
        return erasures and all(each["state"] == "done" for each in erasures)


class Residue(EraseFlow):
    def test_nothing_of_a_device_is_left_in_any_file(self):
        self.broker = mosquitto.Broker()
        self.start(broker=self.broker.url(), more=_RULES)
        device, sensor, text, owner, label, rejected, former = (canary(self.source) for _ in range(7))
        self.fill(device, f"m.{sensor}", text)
        # Taken back long before.
        self.ok("device", "set", device, "--owner", former)
        self.ok("device", "set", device, "--owner", owner, "--label", f"floor={label}")
        self.ok("retention", "set", device, "900d")
        publisher = mosquitto.Publisher(self.broker, "test")
        publisher.publish(f"owned/{device}/{sensor}", text)
        publisher.publish(f"numbers/{device}/x", rejected)
        publisher.settle()
        canaries = [device, sensor, text, owner, label, rejected, former]
        until(lambda: {each for _, each in search(self.directories(), canaries)} == set(canaries),
              "every canary is somewhere")

        where = json.loads(self.ok("where", device, "--json"))
        self.assertGreater(where["bytes"], 0)
        self.assertTrue(all(os.path.exists(os.path.join(file["directory"], file["file"]))
                            for file in where["files"]), where)
        before = self.ok("query", "*/*", "--agg", "count", "--format", "ndjson")
        preview = json.loads(self.ok("erase", device, "--dry-run", "--json"))
        self.assertEqual(preview["readings"], 2_001)
        self.assertEqual(before, self.ok("query", "*/*", "--agg", "count", "--format", "ndjson"))

        started = time.monotonic()
        done = json.loads(self.ok("erase", device, "--yes", "--json"))
        print(f"erased 2,001 of 22,001 readings in {time.monotonic() - started:.3f} s")
        self.assertEqual(search(self.directories(), canaries), set())
        self.assertEqual((done["state"], done["readings"], done["retention_rules"],
                          done["rejected_messages"]), ("done", 2_001, 1, 1))
        self.assertNotIn(device, json.dumps(done))
        self.assertEqual(len(self.devices()), 50)
        self.restart()
        self.assertEqual(search(self.directories(), canaries), set())
        self.assertEqual(len(self.devices()), 50)
        publisher.close()

    def test_the_freed_blocks_of_a_drive_hold_nothing_either(self):
        image = Image()
        try:
            if image.reason:
                self.skipTest(image.reason)
            image.hold(self.place)
            self.start()
            device, sensor, text, owner = (canary(self.source) for _ in range(4))
            canaries = [device, sensor, text, owner]
            # Restarts write tables, so that later ones replace them, and their blocks are freed.
            for _ in range(4):
                self.fill(device, sensor, text)
                self.ok("device", "set", device, "--owner", owner)
                self.restart()
            image.settle()
            self.assertEqual({each for _, each in search([image.image], canaries)}, set(canaries))
            self.ok("erase", "--owner", owner, "--yes")
            self.assertEqual(search(self.directories(), canaries), set())
            image.settle()
            self.assertEqual({each for _, each in search([image.image], canaries)}, set())
        finally:
            if self.daemon:
                self.daemon.stop()
            image.remove()

    def test_blocks_that_merges_freed_long_before_hold_nothing(self):
        image = Image(megabytes=256)
        try:
            if image.reason:
                self.skipTest(image.reason)
            image.hold(self.place)
            self.start(storage='memory-limit = "32MiB"')
            device, sensor = canary(self.source), canary(self.source)
            now_ns = time.time_ns() - 10**12
            texts = []
            merges = 0
            while merges < 2:
                self.assertLess(len(texts), 60, "merges free files")
                # The same readings again: what they replace goes with the files of a merge.
                texts.append(canary(self.source))
                self.assertEqual(self.post([f'm,device={device} {sensor}="{texts[-1] * 4}-{i}" {now_ns + i}'
                                            for i in range(15_000)]), 204)
                image.settle()
                done = json.loads(self.ok("status", "--json"))["compaction"]
                merges = done["merges"] + done["relocations"]
            print(f"{len(texts)} rounds, {merges} merges")
            self.ok("erase", device, "--yes")
            image.settle()
            self.assertEqual({each for _, each in search([image.image], texts + [device])}, set())
        finally:
            if self.daemon:
                self.daemon.stop()
            image.remove()


class Crash(EraseFlow):
    def test_an_erasure_that_is_killed_goes_on_by_itself(self):
        self.start()
        cut_short = 0
        for round_number in range(8):
            device, text = canary(self.source), canary(self.source)
            self.fill(device, "s", text, others=5_000)
            with subprocess.Popen([PROGRAM, "erase", device, "--yes"], stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL,
                                  env=clean_environment(
                                      {"EDGECASE_HTTP_SOCKET": self.place.socket})) as erasing:
                self.daemon.kill_after(self.source.uniform(0.005, 0.25))
                cut_short += erasing.wait(60) != 0
            self.daemon = Daemon(self.place)
            if device in self.devices():
                # It was killed before anything was promised: all of it is there.
                count = self.ok("query", device, "--agg", "count", "--format", "ndjson")
                self.assertEqual(json.loads(count)["value"], 2_000)
                self.ok("erase", device, "--yes")
            until(self.all_done, "every erasure is done")
            self.assertEqual(search(self.directories(), [device, text]), set(), round_number)
            self.assertEqual(len(self.devices()), 50)
        print(f"{cut_short} of 8 erasures were cut short")


class Interrupted(EraseFlow):
    def test_ctrl_c_leaves_the_erasure_to_the_daemon(self):
        self.start()
        device, text = canary(self.source), canary(self.source)
        self.fill(device, "s", text, others=60_000)
        self.restart()
        # Who reads slowly holds a snapshot, and with it the bytes.
        with socket.create_connection(("localhost", self.daemon.port()), timeout=60) as reader:
            reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            reader.sendall(b"GET /api/v1/query?select=*/* HTTP/1.1\r\nHost: localhost\r\n\r\n")
            self.assertTrue(reader.recv(1))
            with subprocess.Popen([PROGRAM, "erase", device, "--yes"], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True,
                                  env=clean_environment(
                                      {"EDGECASE_HTTP_SOCKET": self.place.socket})) as erasing:
                until(lambda: json.loads(self.ok("erase", "--list", "--json"))["erasures"], "it has begun")
                erasing.send_signal(signal.SIGINT)
                out, err = erasing.communicate(timeout=60)
            self.assertEqual((erasing.returncode, out), (6, ""), err)
            self.assertIn("the erasure goes on in the daemon", err)
            self.assertNotIn(device, self.devices())
        until(self.all_done, "the erasure is done")
        self.assertEqual(search(self.directories(), [device, text]), set())


class Away(EraseFlow):
    def test_a_values_drive_that_is_away_is_finished_when_it_is_back(self):
        self.erase_while_away("", "logical")

    def test_the_key_of_what_lies_on_a_drive_that_is_away_is_destroyed_at_once(self):
        key = os.path.join(self.place.path, "key")
        with open(key, "wb") as file:
            file.write(os.urandom(32))
        os.chmod(key, 0o400)
        self.erase_while_away(f'encryption-key-file = "{key}"', "cryptographic")

    def erase_while_away(self, storage, level):
        image = Image()
        try:
            if image.reason:
                self.skipTest(image.reason)
            image.hold(self.place, "values")
            self.start(storage=storage)
            device, text = canary(self.source), canary(self.source)
            self.fill(device, "s", text)
            self.ok("erase", "other49", "--yes")  # brings what was in memory to the drive
            if storage:
                self.assertEqual(search([*self.directories(), image.image], [device, text]), set())
            else:
                self.assertTrue(any("/values/" in path for path, _ in
                                    search(self.directories(), [text])))
            subprocess.run(["umount", "-l", image.mount], check=True)
            # No key is destroyed with a range of time, whatever else is pending beside it.
            ranged = json.loads(self.cli(6, "erase", "other48", "--to", "now", "--json", "--yes"))
            pending = json.loads(self.cli(6, "erase", device, "--json", "--yes"))
            self.assertEqual((pending["state"], pending["level"], pending["drive_away"]),
                             ("pending", level, True), pending)
            levels = {each["id"]: each["level"]
                      for each in json.loads(self.ok("erase", "--list", "--json"))["erasures"]}
            self.assertEqual((levels[pending["id"]], levels[ranged["id"]]), (level, "logical"))
            self.cli(3, "device", "show", device)
            self.assertEqual(self.ok("query", device, "--format", "ndjson"), "")
            subprocess.run(["mount", "-o", "loop", image.image, image.mount], check=True)
            until(self.all_done, "the erasure is done")
            self.assertEqual(search(self.directories(), [device, text]), set())
        finally:
            if self.daemon:
                self.daemon.stop()
            image.remove()


class Return(EraseFlow):
    def test_what_was_erased_is_refused_when_it_comes_again(self):
        self.broker = mosquitto.Broker()
        self.start(broker=self.broker.url(), more="""
[[mqtt.rule]]
topic = "timed/{device}/{sensor}"
payload = "json"
time = "/at"
""")
        old_ns = time.time_ns() - 3600 * 10**9
        publisher = mosquitto.Publisher(self.broker, "test")
        message = json.dumps({"at": "2025-11-20T14:00:00Z", "value": 3})
        self.assertEqual(self.post([f"m,device=kitchen value=1 {old_ns}", "m,device=cellar value=1"]), 204)
        publisher.publish("timed/kitchen/t", message)
        publisher.settle()
        until(lambda: json.loads(self.ok("devices", "kitchen", "--json"))["devices"][0]["count"] == 2, "stored")
        exported = os.path.join(self.place.path, "kitchen.ndjson")
        self.ok("export", "kitchen", "--format", "ndjson", "-o", exported)
        self.ok("erase", "kitchen", "--yes")
        for _ in range(2):
            self.assertEqual(self.post([f"m,device=kitchen value=1 {old_ns}"]), 204)
            publisher.publish("timed/kitchen/t", message)
            publisher.settle()
            self.assertNotEqual(self.place.cli("import", exported).returncode, 0)
            until(lambda: json.loads(self.ok("erase", "--list", "--json"))["refused_readings"] >= 4, "refused")
            self.assertEqual(self.devices(), {"cellar"})
            self.assertEqual(search(self.directories(), ["kitchen"]), set())
            self.restart()
            self.assertEqual(self.post([f"m,device=kitchen value=1 {old_ns}"]), 204)
            self.post([f"m,device=kitchen value=1 {old_ns + i}" for i in range(4)])
        self.assertEqual(self.post(["m,device=kitchen value=2"]), 204)
        self.assertEqual(self.devices(), {"cellar", "kitchen"})
        publisher.close()


class Words(EraseFlow):
    def test_exit_codes_say_what_happened(self):
        self.start()
        self.assertEqual(self.post(["m,device=a value=1 1000", "m,device=b value=1 1000"]), 204)
        self.cli(3, "erase", "nothing")
        self.cli(3, "erase", "--owner", "nobody")
        self.cli(2, "erase")
        self.cli(2, "erase", "a", "--owner", "x")
        self.cli(2, "erase", "a/b/c")
        self.cli(2, "erase", "a")
        self.cli(2, "erase", "a", "--from", "@10", "--to", "@5")
        self.cli(3, "where", "nothing")
        self.cli(2, "erase", "*/*")
        self.assertEqual(self.devices(), {"a", "b"})
        self.assertIn("would be erased", self.ok("erase", "*/*", "--dry-run"))
        self.ok("erase", "a", "--from", "1970-01-01", "--to", "1970-01-02", "--yes")
        self.assertEqual(self.devices(), {"a", "b"})
        self.assertIn("the bytes are gone", self.ok("erase", "*/*", "--yes"))
        self.assertEqual(self.devices(), set())
        self.assertEqual(self.ok("erase", "--list").count("done"), 2)

    def test_a_token_erases_what_it_may_alone(self):
        self.start()
        self.assertEqual(self.post(["m,device=a value=1 1000", "m,device=b value=1 1000"]), 204)
        secrets = [json.loads(self.ok("token", "create", flag, scope, "--json"))["token"]
                   for flag, scope in (("--read", "*/*"), ("--erase", "a/*"))]
        reads, erases = ({"EDGECASE_HOST": f"http://localhost:{self.daemon.port()}",
                          "EDGECASE_TOKEN": each} for each in secrets)
        self.cli(4, "erase", "a", extra=reads)
        self.cli(4, "erase", "b", extra=erases)
        self.cli(4, "erase", "--list", extra=erases)
        self.ok("erase", "a", "--yes", extra=erases)
        self.assertEqual(self.devices(), {"b"})


if __name__ == "__main__":
    if not shutil.which("mosquitto", path=os.environ.get("PATH", "") + ":/usr/sbin"):
        print("skipped 'there is no mosquitto'")
    else:
        unittest.main()
