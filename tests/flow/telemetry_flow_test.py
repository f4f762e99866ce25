#!/usr/bin/env python3
"""Real telemetry through a real broker into the daemon, read back value by value.

3,000 messages; all of them with EDGECASE_TEST_LONG=1.
"""
import decimal
import gzip
import json
import os
import pathlib
import re
import time
import unittest

import mosquitto
from daemon_process import Daemon, Place, until

SHORT_FORM = 3_000
DATA = pathlib.Path(os.environ.get("EDGECASE_TEST_DATA")
                    or pathlib.Path(__file__).resolve().parents[3] / "shared" / "data")
FILE = DATA / "mqtt_env_telemetry_h00-12.jsonl.gz"
TOPIC = "env/telemetry"
RULES = f"""
[[mqtt.rule]]
topic = "{TOPIC}"
device = "/device"
time = "/ts"
time-format = "unix"
"""
TIME = re.compile(r'"ts":([\d.]+)')


def messages():
    with gzip.open(FILE, "rt", encoding="utf-8") as file:
        lines = [line.strip() for line in file]
    return lines if os.environ.get("EDGECASE_TEST_LONG") == "1" else lines[:SHORT_FORM]


def time_text(seconds):
    """As the daemon writes times; the digits are exact, a float would not hold them."""
    whole, nanoseconds = divmod(int(decimal.Decimal(seconds) * 1_000_000_000), 1_000_000_000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(whole)) + f".{nanoseconds:09}Z"


def expected_of(lines):
    """(device, sensor, time) to the value."""
    table = {}
    for line in lines:
        message = json.loads(line)
        at = time_text(TIME.search(line)[1])
        for name, value in message["data"].items():
            table[message["device"], f"data.{name}", at] = value
        table[message["device"], "device_id", at] = message["device_id"]
    return table


@unittest.skipUnless(mosquitto.PROGRAM, "mosquitto is not installed")
@unittest.skipUnless(FILE.exists(), f"no test data {FILE.name}")
class TelemetryFlow(unittest.TestCase):
    def test_every_value_comes_back(self):
        broker = mosquitto.Broker()
        self.addCleanup(broker.remove)
        place = Place()
        self.addCleanup(place.remove)
        place.write_config(broker=broker.url(), more=RULES)
        daemon = Daemon(place)
        self.addCleanup(lambda: daemon.stop())
        self.wait_for(place, lambda mqtt: mqtt["connected"])
        lines = messages()
        began = time.monotonic()
        publisher = mosquitto.Publisher(broker, "telemetry")
        for line in lines:
            publisher.publish(TOPIC, line)
        publisher.settle()
        publisher.close()
        counters = self.wait_for(place, lambda mqtt: mqtt["messages"] >= len(lines))
        taken = time.monotonic() - began
        self.assertEqual(counters["rejected"], 0)
        expected = expected_of(lines)
        print(f"{len(lines)} messages, {len(expected)} values, {len(lines) / taken:.0f} messages/s")
        self.assertEqual(daemon.stop(), 0)

        # Opened again: from the drives, not from memory.
        daemon = Daemon(place)
        text = self.ok(place, "query", "*/*", "--format", "ndjson")
        self.compare(text, expected)
        target = os.path.join(place.path, "all.ndjson")
        self.ok(place, "export", "*/*", "--format", "ndjson", "-o", target)
        with open(target, encoding="utf-8") as file:
            self.compare(file.read(), expected)

    def ok(self, place, *arguments):
        result = place.cli(*arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def wait_for(self, place, condition):
        """The status' MQTT part, once it is as asked for."""
        def part():
            mqtt = json.loads(self.ok(place, "status", "--json"))["mqtt"]
            return mqtt if condition(mqtt) else None
        return until(part, "that status")

    def compare(self, text, expected):
        stored = {}
        for line in text.splitlines():
            row = json.loads(line)
            stored[row["device"], row["sensor"], row["time"]] = row["value"]
        self.assertEqual(len(stored), len(text.splitlines()))
        self.assertEqual(stored.keys(), expected.keys())
        wrong = [key for key, value in expected.items()
                 if stored[key] != value or isinstance(stored[key], bool) != isinstance(value, bool)]
        self.assertEqual(wrong, [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
