#!/usr/bin/env python3
"""kill -9 while devices publish straight to the daemon: what it acknowledged is in the store."""
import json
import re
import threading
import unittest

from daemon_process import TIME_LIMIT_SECONDS, Place
from kill_rounds import LOSES_ON_PURPOSE, KillRounds, Verdict, check_that_loss_is_noticed
from mqtt_device import Device

KEPT_OPEN = 20
BEGIN_S = 1_763_647_200
RULES = """
listen = "localhost:0"
[[mqtt.rule]]
topic = "plain/{device}/{sensor}"
[[mqtt.rule]]
topic = "timed/{device}"
time = "/ts"
time-format = "unix"
"""
# A float in its shortest form: 100000 is 1e+05.
LINE = re.compile(r"([ab]|n),device=[a-z0-9]+ value=(-?[\d.e+]+) (\d+)")


class Sender(threading.Thread):
    """Numbered messages, as fast as they are acknowledged; after a kill the open ones come again."""

    def __init__(self, rounds, name, version, qos):
        super().__init__(daemon=True)
        self.rounds = rounds
        self.device = Device(name, version, qos)
        self.name = name
        self.sent = 0
        self.acknowledged = set()
        self.failure = None

    def run(self):
        generation = 0
        while generation := self.rounds.wait_for_another(generation):
            try:
                self.device.connect(self.rounds.daemon.mqtt_port())
                while not self.rounds.ended:
                    self.send()
                self.acknowledged.update(self.device.settle())
            except OSError:
                pass  # killed
            except AssertionError as error:
                self.failure = error
                return

    def send(self):
        number = self.sent
        self.sent += 1
        if LOSES_ON_PURPOSE:
            self.acknowledged.add(number)
        self.device.publish(*self.message(number), number)
        self.acknowledged.update(self.device.settle(KEPT_OPEN))

    def stored(self):
        """(message, part) of each reading that came back as it was sent, None of any other."""
        result = self.rounds.place.cli("query", f"{self.name}/*", "--format", "line")
        if result.returncode != 0:
            raise AssertionError(result.stderr)
        found = [LINE.fullmatch(line) for line in result.stdout.splitlines()]
        return [each and self.part_of(each[1], float(each[2]), int(each[3])) for each in found]


class PlainSender(Sender):
    """A number a message, without a time: at QoS 1 one that comes again after a kill may be stored again."""

    size = 1

    def message(self, number):
        return f"plain/{self.name}/n", str(number)

    def part_of(self, sensor, value, _):
        right = sensor == "n" and value.is_integer() and 0 <= value < self.sent
        return (int(value), 0) if right else None


class TimedSender(Sender):
    """Two values and their time a message: stored together, and once."""

    size = 2

    def message(self, number):
        return f"timed/{self.name}", json.dumps({"ts": BEGIN_S + number, "a": number, "b": -number})

    def part_of(self, sensor, value, time_ns):
        number = value if sensor == "a" else -value
        right = (sensor in "ab" and number.is_integer() and 0 <= number < self.sent
                 and time_ns == (BEGIN_S + int(number)) * 1_000_000_000)
        return (int(number), "ab".index(sensor)) if right else None


class KillListenerFlow(unittest.TestCase):
    def test_nothing_acknowledged_is_lost(self):
        place = Place()
        self.addCleanup(place.remove)
        place.write_config(more=RULES)
        rounds = KillRounds(place)
        self.addCleanup(lambda: rounds.daemon and rounds.daemon.stop())
        senders = [PlainSender(rounds, "plain1", 4, 1), PlainSender(rounds, "plain2", 5, 2),
                   TimedSender(rounds, "timed1", 5, 1), TimedSender(rounds, "timed2", 4, 2)]
        for sender in senders:
            sender.start()
        try:
            rounds.run()
        finally:
            rounds.end()
            for sender in senders:
                sender.join(TIME_LIMIT_SECONDS)
        verdict = Verdict()
        everything = [sender.stored() for sender in senders]
        for sender, stored in zip(senders, everything):
            verdict.add(sender.acknowledged, sender.size, stored)
        rounds.report(verdict)
        for sender, stored in zip(senders, everything):
            self.assertIsNone(sender.failure)
            self.assertGreater(len(sender.acknowledged), 0)
            if sender.size == 2 or sender.device.qos == 2:
                self.assertEqual(len(stored), len(set(stored)), sender.name)
        self.assertTrue(verdict.is_clean(), str(verdict))
        for sender, stored in zip(senders, everything):
            check_that_loss_is_noticed(self, sender.acknowledged, sender.size,
                                       sorted(set(stored)))
        self.assertEqual(rounds.daemon.stop(), 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
