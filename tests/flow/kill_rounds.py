"""A daemon that is killed again and again while it is written to, and the verdict on what came back.

EDGECASE_FLOW_KILLS  how often, 5 unless set
EDGECASE_TEST_SEED   replays the moments of the kills; printed at each run
EDGECASE_FLOW_LOSE   1: readings are lost on purpose, and the tests must fail. Over HTTP a batch counts
                     as acknowledged before its answer, over MQTT the daemon subscribes with QoS 0
"""
import collections
import os
import random
import threading
import time

from daemon_process import TIME_LIMIT_SECONDS, Daemon

KILLS = int(os.environ.get("EDGECASE_FLOW_KILLS", "5"))
LOSES_ON_PURPOSE = os.environ.get("EDGECASE_FLOW_LOSE") == "1"
KILLED_WHILE_OPENING = 0.1  # of all kills
OPENING_SECONDS = 0.05
RUNNING_SECONDS = (0.02, 0.8)


class KillRounds:
    """Starts, kills and starts again. Writers ask it which daemon there is."""

    def __init__(self, place):
        seed = int(os.environ.get("EDGECASE_TEST_SEED") or random.SystemRandom().getrandbits(32))
        print(f"seed {seed}, {KILLS} kills", flush=True)
        self.random = random.Random(seed)
        self.place = place
        self.daemon = None
        self.recovery_seconds = []
        self.killed_while_opening = 0
        self.turn = threading.Condition()
        self.generation = 0
        self.ended = False

    def start(self):
        """Opens the store; a daemon that refuses fails the test."""
        began = time.monotonic()
        self.daemon = Daemon(self.place)
        self.recovery_seconds.append(time.monotonic() - began)
        with self.turn:
            self.generation += 1
            self.turn.notify_all()

    def run(self, at_each=lambda: None):
        """All the kills; at the end a daemon runs. `at_each` is called when none runs, and when one does."""
        for _ in range(KILLS):
            at_each()
            if self.random.random() < KILLED_WHILE_OPENING:
                Daemon(self.place, until=None).kill_after(self._span(0, OPENING_SECONDS))
                self.killed_while_opening += 1
                continue
            self.start()
            at_each()
            self.daemon.kill_after(self._span(*RUNNING_SECONDS))
        self.start()

    def _span(self, least, most):
        return self.random.uniform(least, most)

    def end(self):
        """Writers stop."""
        with self.turn:
            self.ended = True
            self.turn.notify_all()

    def wait_for_another(self, known):
        """The generation of a daemon other than `known`; None when there will be no other."""
        with self.turn:
            self.turn.wait_for(lambda: self.ended or self.generation > known, TIME_LIMIT_SECONDS)
            return None if self.ended else self.generation

    def report(self, verdict):
        """What happened, for people."""
        times = sorted(self.recovery_seconds)
        print(f"{KILLS} kills, {self.killed_while_opening} of them while opening; "
              f"refused to open: 0; ready after {times[len(times) // 2] * 1000:.0f} ms (median), "
              f"{times[-1] * 1000:.0f} ms (longest)\n{verdict}", flush=True)


class Verdict:
    """Compares what one writer knows to be acknowledged with what is stored.

    A batch is a number, and so is each of its `size` parts. `stored` holds a pair (batch, part) for each
    reading that came back as it was sent, and None for any other.
    """

    def __init__(self):
        self.acknowledged = 0  # readings
        self.missing = 0       # of those
        self.torn = 0          # batches of which only a part is there
        self.wrong = 0         # readings nobody sent
        self.repeated = 0      # stored once more than sent
        self.unasked = 0       # stored, though no acknowledgement came: allowed

    def add(self, acknowledged, size, stored):
        seen = collections.Counter(stored)
        self.wrong += seen.pop(None, 0)
        parts = collections.Counter(batch for batch, _ in seen)
        self.repeated += sum(seen.values()) - len(seen)
        self.torn += sum(1 for count in parts.values() if count < size)
        self.acknowledged += len(acknowledged) * size
        self.missing += sum(size - parts.get(batch, 0) for batch in acknowledged)
        self.unasked += sum(count for batch, count in parts.items() if batch not in acknowledged)
        return self

    def is_clean(self):
        return self.missing == self.torn == self.wrong == 0

    def __str__(self):
        return (f"{self.acknowledged} readings acknowledged: {self.missing} missing, {self.wrong} wrong, "
                f"{self.torn} batches torn; {self.unasked} stored without an acknowledgement, "
                f"{self.repeated} stored again")


def check_that_loss_is_noticed(test, acknowledged, size, stored):
    """The same comparison on the same readings after something was taken away."""
    test.assertTrue(Verdict().add(acknowledged, size, stored).is_clean())
    one = next(i for i, pair in enumerate(stored) if pair and pair[0] in acknowledged)
    batch = stored[one][0]
    lost_part = [pair for pair in stored if pair != stored[one]]
    test.assertEqual(Verdict().add(acknowledged, size, lost_part).missing, 1)
    test.assertEqual(Verdict().add(acknowledged, size, lost_part).torn, 1 if size > 1 else 0)
    lost_batch = [pair for pair in stored if not pair or pair[0] != batch]
    test.assertEqual(Verdict().add(acknowledged, size, lost_batch).missing, size)
    never_sent = {max(acknowledged) + 1_000_000}
    test.assertEqual(Verdict().add(acknowledged | never_sent, size, stored).missing, size)
    test.assertEqual(Verdict().add(acknowledged, size, stored + [None]).wrong, 1)
