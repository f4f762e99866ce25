"""A real mosquitto, and a publisher that knows which of its messages the broker has taken."""
import os
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time

from loopback import LOOPBACK, LOOPBACK_FAMILY, LOOPBACK_IN_URL

TIME_LIMIT_SECONDS = 60
_PATH = os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin"
PROGRAM = shutil.which("mosquitto", path=_PATH)
_PORTS_TRIED = 5


def _takes_connections(port):
    with socket.socket(LOOPBACK_FAMILY) as client:
        return client.connect_ex((LOOPBACK, port)) == 0


class Broker:
    """On a port of its own and in a private directory, with persistence and queues without limit."""

    def __init__(self, more=""):
        self.more = more  # lines of its configuration
        self.path = tempfile.mkdtemp(prefix="ec-broker-")
        for _ in range(_PORTS_TRIED):
            with socket.socket(LOOPBACK_FAMILY) as free:  # mosquitto cannot be asked to choose one itself
                free.bind((LOOPBACK, 0))
                self.port = free.getsockname()[1]
            if self._start():
                return
        raise AssertionError(f"mosquitto does not start, see {self.path}/log")

    def _start(self):
        config = os.path.join(self.path, "mosquitto.conf")
        with open(config, "w", encoding="utf-8") as file:
            file.write(f"listener {self.port} {LOOPBACK}\nallow_anonymous true\npersistence true\n"
                       f"persistence_location {self.path}/\nmax_queued_messages 0\n{self.more}")
            if os.geteuid() == 0:
                file.write("user root\n")
        with open(os.path.join(self.path, "log"), "ab") as log:
            self.process = subprocess.Popen([PROGRAM, "-c", config], stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=log)
        deadline = time.monotonic() + TIME_LIMIT_SECONDS
        while self.process.poll() is None and time.monotonic() < deadline:
            if _takes_connections(self.port):
                return True
            threading.Event().wait(0.005)
        self.stop()
        return False

    def url(self):
        return f"mqtt://{LOOPBACK_IN_URL}:{self.port}"

    def tell(self):
        """What its $SYS topics say of clients and messages, and the end of its log: for people."""
        reader = shutil.which("mosquitto_sub", path=_PATH)
        said = ["no mosquitto_sub to ask the broker with"]
        if reader:
            asked = subprocess.run([reader, "-p", str(self.port), "-t", "$SYS/broker/clients/#",
                                    "-t", "$SYS/broker/messages/#", "-t", "$SYS/broker/store/#", "-v",
                                    "-W", "2"], capture_output=True, text=True, check=False)
            said = asked.stdout.splitlines()
        with open(os.path.join(self.path, "log"), encoding="utf-8", errors="replace") as log:
            return "\n".join([*said, *log.read().splitlines()[-20:]])

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait(TIME_LIMIT_SECONDS)

    def save(self):
        """Returns when what the broker has taken by now is on its drive."""
        path = os.path.join(self.path, "mosquitto.db")

        def version():
            return os.stat(path).st_ino if os.path.exists(path) else None
        before = version()
        self.process.send_signal(signal.SIGUSR1)
        deadline = time.monotonic() + TIME_LIMIT_SECONDS
        while version() in (before, None):  # written beside it, then renamed
            if time.monotonic() > deadline:
                raise AssertionError("mosquitto does not save")
            threading.Event().wait(0.002)

    def kill(self):
        """SIGKILL: it comes back with what it saved last."""
        self.process.kill()
        self.process.wait(TIME_LIMIT_SECONDS)

    def start(self):
        """Again, on the same port."""
        if not self._start():
            raise AssertionError(f"mosquitto does not start again, see {self.path}/log")

    def remove(self):
        self.stop()
        shutil.rmtree(self.path, ignore_errors=True)


def _text(value):
    encoded = value.encode()
    return struct.pack(">H", len(encoded)) + encoded


def _packet(first_byte, body):
    length, rest = b"", len(body)
    while True:
        rest, seven = divmod(rest, 128)
        length += bytes([seven | (128 if rest else 0)])
        if not rest:
            return bytes([first_byte]) + length + body


class Publisher:
    """One connection, MQTT 3.1.1, QoS 1. At most kept_open messages wait for their PUBACK."""

    def __init__(self, broker, name, kept_open=20):
        self.socket = socket.create_connection((LOOPBACK, broker.port), TIME_LIMIT_SECONDS)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.stream = self.socket.makefile("rb")
        self.socket.sendall(_packet(0x10, _text("MQTT") + b"\x04\x02\x00\x00" + _text(name)))
        self._receive(0x20)
        self.kept_open = kept_open
        self.next_id = 1
        self.waiting = {}  # packet id to what publish() was told

    def _receive(self, wanted):
        kind, length = self.stream.read(1), self.stream.read(1)
        if not length:
            raise AssertionError("the broker closed the connection")
        if kind[0] != wanted:
            raise AssertionError(f"packet {kind[0]:#x} instead of {wanted:#x}")
        return self.stream.read(length[0])

    def publish(self, topic, payload, tag=None):
        """Sends one message. Returns the tags of those that the broker has taken meanwhile."""
        body = _text(topic) + struct.pack(">H", self.next_id) + payload.encode()
        self.waiting[self.next_id] = tag
        self.next_id = self.next_id % 65_535 + 1
        self.socket.sendall(_packet(0x32, body))
        return self.settle(self.kept_open)

    def settle(self, left=0):
        """The tags of those taken, once no more than `left` messages wait."""
        taken = []
        while len(self.waiting) > left:
            taken.append(self.waiting.pop(struct.unpack(">H", self._receive(0x40))[0]))
        return taken

    def close(self):
        self.socket.sendall(b"\xe0\x00")
        self.stream.close()
        self.socket.close()
