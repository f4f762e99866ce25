"""What arrives at a board while its power fails, and what it acknowledged: over HTTP, from a broker, from devices."""
import kill_http_flow_test as over_http
import kill_listener_flow_test as from_devices
import kill_mqtt_flow_test as from_broker
import mosquitto
from board import HOST_IN_GUEST
from kill_rounds import Verdict
from machine import until

MESSAGES_AT_ONCE = 1_500  # that the broker gets of each sender between two cuts
END_SECONDS = 600


class Traffic:
    """Writers of the chosen ways. The broker runs here, beside the board: what it has kept no cut can take."""

    def __init__(self, chosen, rounds):
        self.rounds = rounds
        self.board = rounds.place
        self.broker = mosquitto.Broker() if "gate" in chosen else None
        self.publishers = []
        self.writers = []
        if self.broker:
            self.publishers = [from_broker.PlainSender(self.broker), from_broker.TimedSender(self.broker)]
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
        for each in [*self.writers, *self.publishers]:
            each.start()

    def allow_more(self):
        """Publishers would fill the broker faster than an emulated board empties it."""
        for each in self.publishers:
            each.allow(MESSAGES_AT_ONCE)

    def acknowledged(self):
        """Of what the board itself answers for: messages and batches."""
        return sum(len(each.acknowledged) for each in self.writers)

    def _end(self):
        """Returns when all that the broker has taken is with the board."""
        self.rounds.end()
        for each in self.writers:
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
        return True

    def remove(self):
        self.rounds.end()
        if self.broker:
            self.broker.remove()
