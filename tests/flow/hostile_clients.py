"""Clients that mean harm: slow and idle ones in crowds, and any bytes in the place of a request."""
import contextlib
import itertools
import select
import selectors
import socket
import threading

TIME_LIMIT_SECONDS = 60
BEGINNINGS = {"head": b"GET /healthz HTTP/1.1\r\nX-Slow: ",
              "body": b"POST /write HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n",
              "idle": b""}
TURN_SECONDS = 0.01
TURNS_BETWEEN_BYTES = 100


def exchange(port, pieces):
    """Sends the pieces until the daemon answers; status (None: ended without one) and body."""
    with socket.create_connection(("localhost", port), TIME_LIMIT_SECONDS) as connection:
        with contextlib.suppress(ConnectionError):
            for piece in pieces:
                if not _send_unless_answered(connection, piece):
                    break
        answer = bytearray()
        with contextlib.suppress(ConnectionError):
            while received := connection.recv(1 << 20):
                answer += received
    head, _, body = bytes(answer).partition(b"\r\n\r\n")
    return (int(head.split()[1]) if head else None), body.decode()


def request(method, path, body=b"", headers=b""):
    """A whole one, whose answer ends with its connection."""
    return (f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
            f"Content-Length: {len(body)}\r\n".encode() + headers + b"\r\n" + body)


def _send_unless_answered(connection, piece):
    rest = memoryview(piece)
    while rest:
        answered, _, _ = select.select([connection], [connection], [], TIME_LIMIT_SECONDS)
        if answered:
            return False
        rest = rest[connection.send(rest[:1 << 16]):]
    return True


class Slow:
    """One of a crowd, and what it was told."""

    def __init__(self, kind, connection):
        self.kind = kind
        self.connection = connection
        self.answer = b""
        self.has_ended = False


class Crowd:
    """`count` connections, as many of each kind, from `addresses` addresses of 127.0.0.0/8."""

    def __init__(self, port, count, addresses, kinds=tuple(BEGINNINGS), at_once=False):
        self._port = port
        self._addresses = itertools.cycle(f"127.0.{n // 250 + 1}.{n % 250 + 1}"
                                          for n in range(addresses))
        self._members = []
        self._refills = False
        self._ready = selectors.DefaultSelector()
        self._lock = threading.Lock()  # of the members and the selector
        self._end = threading.Event()
        self._turn = 0
        self._thread = threading.Thread(target=self._live)
        for number in range(count):
            member = self._open(kinds[number % len(kinds)])
            if at_once:
                self._send(member, BEGINNINGS[member.kind])
        if at_once:
            self._thread.start()

    def begin(self, refills=False):
        """Byte by byte from now on; `refills`: whoever is shown out comes again."""
        self._refills = refills
        for member in self._members:
            self._send(member, BEGINNINGS[member.kind])
        self._thread.start()

    def end_refills(self):
        """Whoever is shown out stays away."""
        with self._lock:
            self._refills = False

    def held(self, *kinds):
        """How many are connected and were told nothing."""
        with self._lock:
            return sum(not m.has_ended and not m.answer and (not kinds or m.kind in kinds)
                       for m in self._members)

    def told(self, *kinds):
        """Status and body of each answer; (None, "") of those that ended without one."""
        with self._lock:
            return [_words(m.answer) for m in self._members
                    if (m.answer or m.has_ended) and (not kinds or m.kind in kinds)]

    def leave(self, *kinds):
        """Closes those; all, and the crowd itself."""
        if not kinds:
            self._end.set()
            if self._thread.is_alive():
                self._thread.join()
        with self._lock:
            for member in self._members:
                if not kinds or member.kind in kinds:
                    self._close(member)

    def _open(self, kind):
        connection = socket.socket()
        connection.bind((next(self._addresses), 0))
        connection.settimeout(TIME_LIMIT_SECONDS)
        connection.connect(("127.0.0.1", self._port))
        connection.setblocking(False)
        member = Slow(kind, connection)
        self._members.append(member)
        self._ready.register(connection, selectors.EVENT_READ, member)
        return member

    def _live(self):
        while not self._end.wait(TURN_SECONDS):
            with self._lock:
                for key, _ in self._ready.select(0):
                    self._listen(key.data)
                # A part of them; each has its turn about once a second.
                slow = [m for m in self._members if m.kind != "idle" and not m.has_ended]
                self._turn = (self._turn + 1) % TURNS_BETWEEN_BYTES
                for member in slow[self._turn::TURNS_BETWEEN_BYTES]:
                    self._send(member, b"x")

    def _listen(self, member):
        received = b""
        with contextlib.suppress(ConnectionError):
            received = member.connection.recv(1 << 16)
        member.answer += received
        if received:
            return
        self._close(member)
        if self._refills:
            self._members.remove(member)
            self._send(self._open(member.kind), BEGINNINGS[member.kind])

    def _send(self, member, data):
        with contextlib.suppress(OSError):  # shown out already
            member.connection.send(data)

    def _close(self, member):
        if member.has_ended:
            return
        member.has_ended = True
        self._ready.unregister(member.connection)
        member.connection.close()


def _words(answer):
    head, _, body = answer.decode().partition("\r\n\r\n")
    return (int(head.split()[1]), body) if head else (None, "")
