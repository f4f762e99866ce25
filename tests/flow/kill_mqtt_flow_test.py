#!/usr/bin/env python3
"""kill -9 while messages arrive over MQTT: what the broker took from the publisher ends in the store."""
import http.client
import json
import re
import threading
import time
import unittest

import mosquitto
from daemon_process import TIME_LIMIT_SECONDS, Place, until
from kill_rounds import LOSES_ON_PURPOSE, KillRounds, Verdict, check_that_loss_is_noticed

MESSAGES_AT_ONCE = 1_000  # of each sender, when no daemon runs and again when one does
BEGIN_S = 1_763_647_200
QOS = 0 if LOSES_ON_PURPOSE else 1
RULES = f"""
client-id = "edgecase-kill"
[[mqtt.rule]]
topic = "plain/{{device}}/{{sensor}}"
qos = {QOS}
[[mqtt.rule]]
topic = "timed/{{device}}"
qos = {QOS}
time = "/ts"
time-format = "unix"
"""
LINE = re.compile(r"([ab]|n),device=(?:plain|timed) value=(-?\d+|-?\de\+\d+) (\d+)")  # 100000 prints as 1e+05


class Sender(threading.Thread):
    """Numbered messages, as many as are allowed for."""

    size = 1

    def __init__(self, broker):
        super().__init__(daemon=True)
        self.publisher = mosquitto.Publisher(broker, f"sender-{self.kind}")
        self.turn = threading.Condition()
        self.allowed = 0
        self.ended = False
        self.sent = 0
        self.acknowledged = set()

    def allow(self, more):
        with self.turn:
            self.allowed += more
            self.turn.notify_all()

    def end(self):
        """Returns when the broker has taken everything that was allowed for, or takes nothing any more."""
        with self.turn:
            self.ended = True
            self.turn.notify_all()
        known, since = self.sent, time.monotonic()
        while self.is_alive() and time.monotonic() - since < TIME_LIMIT_SECONDS:
            self.join(0.1)
            if self.sent != known:
                known, since = self.sent, time.monotonic()

    def run(self):
        while True:
            with self.turn:
                self.turn.wait_for(lambda: self.ended or self.allowed > self.sent)
                if self.allowed == self.sent:
                    break
            topic, payload = self.message(self.sent)
            self.acknowledged.update(self.publisher.publish(topic, payload, self.sent))
            self.sent += 1
        self.acknowledged.update(self.publisher.settle())
        self.publisher.close()


class PlainSender(Sender):
    """A number a message, without a time: a message that comes again may be stored again."""

    kind = "plain"

    def message(self, number):
        return "plain/plain/n", str(number)

    def part_of(self, sensor, value, _):
        return (value, 0) if sensor == "n" and 0 <= value < self.sent else None


class TimedSender(Sender):
    """Two values and their time a message: stored together, and once."""

    kind = "timed"
    size = 2

    def message(self, number):
        return "timed/timed", json.dumps({"ts": BEGIN_S + number, "a": number, "b": -number})

    def part_of(self, sensor, value, time_ns):
        number = value if sensor == "a" else -value
        right = (sensor in "ab" and 0 <= number < self.sent
                 and time_ns == (BEGIN_S + number) * 1_000_000_000)
        return (number, "ab".index(sensor)) if right else None


def stored_by(sender, place):
    """What came back of its messages."""
    result = place.cli("query", f"{sender.kind}/*", "--format", "line")
    if result.returncode != 0:
        raise AssertionError(result.stderr)
    found = [LINE.fullmatch(line) for line in result.stdout.splitlines()]
    return [each and sender.part_of(each[1], int(float(each[2])), int(each[3])) for each in found]


def is_connected(place):
    result = place.cli("status", "--json")
    if result.returncode != 0:
        raise AssertionError(result.stderr)
    return json.loads(result.stdout)["mqtt"]["connected"]


def where_it_stands(rounds, broker):
    """For people, when nothing goes on: what daemon, gate and broker say."""
    said = [rounds.place.cli("status", "--json").stdout]
    connection = http.client.HTTPConnection("localhost", rounds.daemon.port(), timeout=10)
    try:
        connection.request("GET", "/metrics")
        said += [line for line in connection.getresponse().read().decode().splitlines()
                 if line.startswith(("edgecase_mqtt", "edgecase_engine_degraded"))]
    except OSError as error:
        said.append(f"no /metrics: {error}")
    finally:
        connection.close()
    return "\n".join([*said, rounds.daemon.log(), broker.tell()])


def until_told(condition, what, rounds, broker):
    """until(), and where everything stands if that never comes."""
    try:
        until(condition, what)
    except AssertionError:
        print(where_it_stands(rounds, broker), flush=True)
        raise


@unittest.skipUnless(mosquitto.PROGRAM, "mosquitto is not installed")
class KillMqttFlow(unittest.TestCase):
    def test_nothing_the_broker_took_is_lost(self):
        broker = mosquitto.Broker()
        self.addCleanup(broker.remove)
        place = Place()
        self.addCleanup(place.remove)
        place.write_config(broker=broker.url(), more=RULES)
        rounds = KillRounds(place)
        self.addCleanup(lambda: rounds.daemon and rounds.daemon.stop())
        rounds.start()
        # The subscription makes the session, and only a session has a queue.
        until(lambda: is_connected(place), "connected")
        rounds.daemon.stop()
        senders = [PlainSender(broker), TimedSender(broker)]
        for sender in senders:
            sender.start()
        rounds.run(at_each=lambda: [sender.allow(MESSAGES_AT_ONCE) for sender in senders])
        for sender in senders:
            sender.end()
            self.assertEqual(len(sender.acknowledged), sender.sent)
        until_told(lambda: is_connected(place), "connected", rounds, broker)
        # The broker sends in order: once this one is there, so is everything before it.
        last = mosquitto.Publisher(broker, "last")
        last.publish("plain/end/n", "1")
        last.settle()
        last.close()
        until_told(lambda: place.cli("query", "end/n").returncode == 0, "the last message", rounds,
                   broker)
        verdict = Verdict()
        everything = [stored_by(sender, place) for sender in senders]
        for sender, stored in zip(senders, everything):
            verdict.add(sender.acknowledged, sender.size, stored)
        rounds.report(verdict)
        self.assertTrue(verdict.is_clean(), str(verdict))
        for sender, stored in zip(senders, everything):
            check_that_loss_is_noticed(self, sender.acknowledged, sender.size,
                                       sorted(set(stored)))
        rejected = place.cli("query", "mqtt/message", "-n", "_rejected", "--format", "csv")
        self.assertEqual(rejected.returncode, 3, rejected.stdout)
        self.assertEqual(rounds.daemon.stop(), 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
