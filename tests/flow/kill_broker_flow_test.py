#!/usr/bin/env python3
"""kill -9 of the broker while messages go through it: whatever it had saved ends in the store, without a restart.

EDGECASE_FLOW_KILLS  how often, 5 unless set
EDGECASE_TEST_SEED   replays when it is killed
EDGECASE_FLOW_LOSE   1: what the broker did not save is expected, too, so that the test must fail
"""
import json
import os
import random
import signal
import statistics
import time
import unittest

import mosquitto
from daemon_process import TIME_LIMIT_SECONDS, Daemon, Place, until
from kill_rounds import KILLS, LOSES_ON_PURPOSE

MESSAGES = 300  # saved in each round, and as many that are not
RUNNING_SECONDS = (0.0, 0.05)
RECONNECT_SECONDS = 2  # by median, of a machine that runs tests at its usual speed


def status_of(place):
    return json.loads(place.cli("status", "--json").stdout)["mqtt"]


@unittest.skipUnless(mosquitto.PROGRAM, "mosquitto is not installed")
class KillBrokerFlow(unittest.TestCase):
    def setUp(self):
        self.broker = mosquitto.Broker()
        self.addCleanup(self.broker.remove)
        self.place = Place()
        self.addCleanup(self.place.remove)
        self.place.write_config(broker=self.broker.url(), more='client-id = "edgecase-kill"\n')
        self.daemon = Daemon(self.place)
        self.addCleanup(self.daemon.stop)
        until(lambda: status_of(self.place)["connected"], "connected")
        self.sent = 0
        self.wanted = set()

    def publish(self, count):
        """Numbered messages that the broker has taken on return."""
        publisher = mosquitto.Publisher(self.broker, f"sender-{self.sent}")
        numbers = range(self.sent, self.sent + count)
        for number in numbers:
            publisher.publish("sensors/k/n", str(number))
        publisher.settle()
        publisher.close()
        self.sent += count
        return numbers

    def kill_broker(self, chance, daemon_sleeps):
        """With messages that it has saved, and messages that it has not, on their way."""
        if daemon_sleeps:  # so that none of them has left the broker
            self.daemon.process.send_signal(signal.SIGSTOP)
        try:
            self.wanted.update(self.publish(MESSAGES))
            self.broker.save()
            unsaved = self.publish(MESSAGES)
            if LOSES_ON_PURPOSE:
                self.wanted.update(unsaved)
            time_to_live = time.monotonic() + chance.uniform(*RUNNING_SECONDS)
            until(lambda: time.monotonic() >= time_to_live, "the moment of the kill")
            self.broker.kill()
        finally:
            self.daemon.process.send_signal(signal.SIGCONT)

    def test_what_the_broker_kept_is_stored(self):
        seed = int(os.environ.get("EDGECASE_TEST_SEED") or random.SystemRandom().getrandbits(32))
        print(f"seed {seed}, {KILLS} kills", flush=True)
        chance = random.Random(seed)
        pauses = []
        for _ in range(KILLS):
            connects = status_of(self.place)["connects"]
            self.kill_broker(chance, daemon_sleeps=chance.random() < 0.5)
            self.broker.start()
            began = time.monotonic()
            until(lambda: status_of(self.place)["connects"] > connects, "connected again")
            pauses.append(time.monotonic() - began)
        last = self.publish(1)
        # The broker sends in order: once this one is there, so is everything it still had.
        self.wanted.update(last)
        until(lambda: str(last[0]) in self.stored(), "the last message")
        stored = self.stored()
        missing = [number for number in sorted(self.wanted) if str(number) not in stored]
        status = status_of(self.place)
        print(f"{KILLS} kills of the broker, {len(self.wanted)} messages it had saved: {len(missing)} missing; "
              f"connected again after {statistics.median(pauses) * 1000:.0f} ms (median), "
              f"{max(pauses) * 1000:.0f} ms (longest); {status['redelivered']} sent again", flush=True)
        self.assertEqual(missing, [])
        self.assertEqual(status["sessions_lost"], 0)
        self.assertLessEqual(statistics.median(pauses), RECONNECT_SECONDS * TIME_LIMIT_SECONDS / 60)
        self.assertFalse(stored - {str(number) for number in range(self.sent)}, "nobody sent these")

    def stored(self):
        result = self.place.cli("query", "k/n", "--format", "csv")
        self.assertIn(result.returncode, (0, 3), result.stderr)
        return {line.split(",")[4] for line in result.stdout.splitlines()[1:]}


if __name__ == "__main__":
    unittest.main(verbosity=2)
