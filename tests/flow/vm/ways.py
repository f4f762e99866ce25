"""What arrives at a board while its power fails, and what it acknowledged: over HTTP, from a broker, from devices."""
import http.client
import re
import threading
import urllib.request

import kill_http_flow_test as over_http
import kill_listener_flow_test as from_devices
import kill_mqtt_flow_test as from_broker
import mosquitto
from board import HOST_IN_GUEST
from kill_rounds import Verdict
from machine import until

MESSAGES_AT_ONCE = 1_500  # that the broker gets of each sender between two cuts
END_SECONDS = 600
SAMPLE_SECONDS = 0.1
COUNTERS = re.compile(r"^edgecase_mqtt_(acknowledged_total|unacknowledged) (\d+)", re.MULTILINE)


class Feeder(threading.Thread):
    """Gives the broker a message for each that the board has taken, so that no cut finds the gate idle."""

    def __init__(self, board, rounds, publishers):
        super().__init__(daemon=True)
        self.board = board
        self.rounds = rounds
        self.publishers = publishers
        self.busy = []  # messages that were acknowledged or held back in the last moment before each power cut

    def run(self):
        taken = busy = 0
        is_on = False
        while not self.rounds.ended:
            found = self._counters()
            if not found:
                if is_on:
                    self.busy.append(busy)
                taken = 0
            else:
                busy = found["unacknowledged"] + found["acknowledged_total"] - taken
                for each in self.publishers:
                    each.allow((found["acknowledged_total"] - taken) // len(self.publishers))
                taken = found["acknowledged_total"]
            is_on = bool(found)
            threading.Event().wait(SAMPLE_SECONDS)

    def _counters(self):
        """The daemon's own, all from 0 at each start; none while it is not there."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.board.port()}/metrics", timeout=20) as answer:
                return {name: int(value) for name, value in COUNTERS.findall(answer.read().decode())}
        except (OSError, http.client.HTTPException):
            return {}

    def is_content(self):
        """Whether most cuts came while messages passed the gate."""
        busy = sum(1 for each in self.busy if each)
        print(f"messages passed the gate at {busy} of {len(self.busy)} cuts; "
              f"median {sorted(self.busy)[len(self.busy) // 2] if self.busy else 0}", flush=True)
        return 2 * busy > len(self.busy)


class Traffic:
    """Writers of the chosen ways. The broker runs here, beside the board: what it has kept no cut can take."""

    def __init__(self, chosen, rounds):
        self.rounds = rounds
        self.board = rounds.place
        self.broker = mosquitto.Broker() if "gate" in chosen else None
        self.publishers = []
        self.writers = []
        self.feeder = None
        if self.broker:
            self.publishers = [from_broker.PlainSender(self.broker), from_broker.TimedSender(self.broker)]
            self.feeder = Feeder(self.board, rounds, self.publishers)
        if "http" in chosen:
            # The first two of that test write over TCP: line protocol and JSON.
            self.writers += [over_http.Writer(rounds, number) for number in range(2)]
        if "listener" in chosen:
            self.writers += [from_devices.PlainSender(rounds, "plain1", 4, 1),
                             from_devices.TimedSender(rounds, "timed1", 5, 1),
                             from_devices.TimedSender(rounds, "timed2", 4, 2)]

    def broker_in_guest(self):
        """Its address as the board sees it; none without a broker."""
        return f"mqtt://{HOST_IN_GUEST}:{self.broker.port}" if self.broker else ""

    def begin(self):
        for each in [*self.writers, *self.publishers, *([self.feeder] if self.feeder else [])]:
            each.start()

    def allow_more(self):
        """What publishers are ahead; without a limit they would fill the broker faster than a board empties it."""
        for each in self.publishers:
            each.allow(MESSAGES_AT_ONCE)

    def acknowledged(self):
        """Of what the board itself answers for: messages and batches."""
        return sum(len(each.acknowledged) for each in self.writers)

    def _end(self):
        """Returns when all that the broker has taken is with the board."""
        self.rounds.end()
        for each in [*self.writers, *([self.feeder] if self.feeder else [])]:
            each.join(END_SECONDS)
        for each in self.publishers:
            each.end()
            if len(each.acknowledged) != each.sent:
                raise AssertionError("the broker has not taken everything")
        if self.broker:
            # It sends in order: once this one is there, so is everything before it.
            until(self.board.is_connected, "connected")
            last = mosquitto.Publisher(self.broker, "last")
            last.publish("plain/end/n", "1")
            last.settle()
            last.close()
            until(lambda: self.board.cli("query", "end/n", "--format", "line").stdout, "the last message", END_SECONDS)

    def verdict(self):
        """Everything acknowledged against everything stored."""
        self._end()
        verdict = Verdict()
        for each in self.writers:
            size = over_http.BATCH if isinstance(each, over_http.Writer) else each.size
            verdict.add(each.acknowledged, size, each.stored())
        for each in self.publishers:
            verdict.add(each.acknowledged, each.size, from_broker.stored_by(each, self.board))
        return verdict

    def is_content(self):
        """Whether every writer got on, and none was refused anything."""
        for each in self.writers:
            refused = getattr(each, "refused", None) or getattr(each, "failure", None)
            if refused or not each.acknowledged:
                print(f"{each}: {len(each.acknowledged)} acknowledged, refused: {refused}", flush=True)
                return False
        return not self.feeder or self.feeder.is_content()

    def remove(self):
        self.rounds.end()
        if self.broker:
            self.broker.remove()
