"""A device that publishes straight to the daemon and knows what was acknowledged; MQTT 3.1.1 and 5, QoS 1 and 2."""
import socket
import struct

TIME_LIMIT_SECONDS = 60
PUBACK, PUBREC, PUBREL, PUBCOMP = 0x40, 0x50, 0x62, 0x70


def text(value):
    """A text as MQTT writes it."""
    encoded = value.encode()
    return struct.pack(">H", len(encoded)) + encoded


def packet(first_byte, body):
    """A packet of one type with its length."""
    length, rest = b"", len(body)
    while True:
        rest, seven = divmod(rest, 128)
        length += bytes([seven | (128 if rest else 0)])
        if not rest:
            return bytes([first_byte]) + length + body


class Device:
    """What it sends is kept until it is acknowledged, and sent again at the next connection."""

    def __init__(self, name, version=4, qos=1):
        self.name = name
        self.version = version
        self.qos = qos
        self.next_id = 1
        self.waiting = {}  # packet id to (tag, topic, payload)
        self.releasing = {}  # QoS 2: packet ids that PUBREL was sent for, in order
        self.session_present = False
        self.socket = None
        self.stream = None

    def connect(self, port):
        """In a session that is kept; what waits goes out again, with the DUP flag."""
        self.open(port)
        for packet_id in self.releasing:
            self.release(packet_id)
        for packet_id in list(self.waiting):
            self._send(packet_id, duplicate=True)

    def open(self, port, clean=False, expiry_seconds=3600):
        """Connects and nothing more."""
        self.close()
        self.socket = socket.create_connection(("localhost", port), TIME_LIMIT_SECONDS)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.stream = self.socket.makefile("rb")
        properties = b"\x05\x11" + struct.pack(">I", expiry_seconds) if self.version == 5 else b""
        self.socket.sendall(packet(0x10, text("MQTT") + bytes([self.version, 2 if clean else 0, 0, 0])
                                   + properties + text(self.name)))
        kind, body = self.receive()
        if kind != 0x20 or body[1] != 0:
            raise AssertionError(f"not accepted: {kind:#x} {body!r}")
        self.session_present = body[0] == 1

    def close(self):
        """Without a word."""
        if self.socket:
            self.stream.close()
            self.socket.close()
            self.socket = None

    def publish(self, topic, payload, tag):
        """Sends one message."""
        while self.next_id in self.waiting or self.next_id in self.releasing:
            self.next_id = self.next_id % 65_535 + 1
        self.waiting[self.next_id] = (tag, topic, payload)
        self._send(self.next_id, duplicate=False)
        self.next_id = self.next_id % 65_535 + 1

    def settle(self, left=0):
        """The tags of what was acknowledged, once no more than `left` messages wait."""
        taken = []
        while len(self.waiting) > left:
            kind, body = self.receive()
            if kind == PUBCOMP:
                self.releasing.pop(struct.unpack(">H", body[:2])[0], None)
                continue
            if kind not in (PUBACK, PUBREC) or (len(body) > 2 and body[2] >= 0x80):
                raise AssertionError(f"not acknowledged: {kind:#x} {body!r}")
            packet_id = struct.unpack(">H", body[:2])[0]
            if packet_id in self.waiting:
                taken.append(self.waiting.pop(packet_id)[0])
            if kind == PUBREC:
                self.releasing[packet_id] = True
                self.release(packet_id)
        return taken

    def settle_what_came(self):
        """The tags of what is acknowledged by now, waiting for nothing."""
        taken = []
        while self.waiting and self._has_bytes():
            taken += self.settle(left=len(self.waiting) - 1)
        return taken

    def _has_bytes(self):
        self.socket.setblocking(False)
        try:
            return bool(self.stream.peek(1))
        finally:
            self.socket.settimeout(TIME_LIMIT_SECONDS)

    def release(self, packet_id):
        """PUBREL."""
        self.socket.sendall(packet(PUBREL, struct.pack(">H", packet_id)))

    def _send(self, packet_id, duplicate):
        _, topic, payload = self.waiting[packet_id]
        self.send(packet_id, topic, payload, duplicate)

    def send(self, packet_id, topic, payload, duplicate=False):
        """PUBLISH, of which nothing is kept."""
        properties = b"\x00" if self.version == 5 else b""
        self.socket.sendall(packet(0x30 | self.qos << 1 | (8 if duplicate else 0),
                                   text(topic) + struct.pack(">H", packet_id) + properties
                                   + payload.encode()))

    def receive(self):
        """One packet: its first byte, and what follows its length."""
        first, length, shift = self._byte(), 0, 0
        while True:
            more = self._byte()
            length |= (more & 127) << shift
            shift += 7
            if more < 128:
                return first, self.stream.read(length)

    def _byte(self):
        read = self.stream.read(1)
        if not read:
            raise ConnectionResetError("the daemon closed the connection")
        return read[0]
