#!/usr/bin/env python3
"""Measures what readers do to others: 64 slow readers, 16 listings in a loop and a writer, on one daemon.

  EDGECASE_PROGRAM=build/release/cli/edgecase tests/bench/readers_figures.py [--seconds N] [--series N]
      [--rate READINGS] [--slow N] [--listings N] [--check]

A daemon on a private directory gets --series series (60,000), and one series of a million readings for the slow
readers. Then a writer of --rate readings a second (100,000; line protocol, 10,000 a request) runs for --seconds (10)
alone, and as long beside the readers. Printed: how long one listing of all devices takes alone; of each phase how many
readings a second were stored, and how long GET /healthz took over a new connection each time; the most memory that the
daemon took, and storage.memory-limit; what became of the listings.

--check: exit code 3 where /healthz takes over 100 ms at the 99th percentile beside readers, writes fall below 0.8 of
their rate alone, or memory goes over the limit and 32 MiB.

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 misses an aim
"""
import argparse
import multiprocessing
import os
import pathlib
import selectors
import socket
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "flow"))
LINES = 10_000
MEMORY_LIMIT = 64 << 20
LONG_READINGS = 1_000_000


def pause(seconds):
    threading.Event().wait(seconds)


def post(connection, body):
    connection.sendall(b"POST /write?db=default HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    head = b""
    while b"\r\n\r\n" not in head:
        got = connection.recv(65536)
        if not got:
            raise AssertionError("the daemon ended a writer's connection")
        head += got
    return int(head[9:12])


def connect(port):
    connection = socket.create_connection(("127.0.0.1", port), timeout=60)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def fill(port, series):
    connection = connect(port)
    for begin in range(0, series, LINES):
        chosen = range(begin, min(begin + LINES, series))
        lines = "".join(f"s,device=d{i // 4} v{i % 4}={i}i {10**18}\n" for i in chosen)
        if post(connection, lines.encode()) != 204:
            raise AssertionError("a write was refused")
    for begin in range(0, LONG_READINGS, LINES):
        lines = "".join(f"m,device=long v={i % 97}.5 {10**18 + i * 10**9}\n" for i in range(begin, begin + LINES))
        if post(connection, lines.encode()) != 204:
            raise AssertionError("a write was refused")


def write(port, rate, seconds, answer):
    """Bodies of which the time alone changes, at the rate, for as long; tells how many were stored a second."""
    pattern = "".join(f"w,device=w{i % 500} v={i % 89}.25 TTTTTTTTTT{i:09d}\n" for i in range(LINES)).encode()
    connection = connect(port)
    begin = time.monotonic()
    stored = sent = 0
    base = int(time.time()) % 10**9 + 10**9
    while (now := time.monotonic() - begin) < seconds:
        if sent > now * rate:
            pause(0.001)
            continue
        body = pattern.replace(b"TTTTTTTTTT", b"%d" % (base + sent // LINES))
        stored += LINES if post(connection, body) == 204 else 0
        sent += LINES
    answer.put(stored / (time.monotonic() - begin))


def read(port, slow, listings, stop, answer):
    """Slow readers take 4 KiB every 0.2 s each; listings are asked for again once they are there."""
    chosen = selectors.DefaultSelector()
    slow_ones, counts, state = [], {}, {}

    def ask(path):
        connection = connect(port)
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        connection.setblocking(False)
        return connection

    for _ in range(slow):
        slow_ones.append(ask("/api/v1/query?select=long/m.v"))

    def list_again():
        connection = ask("/api/v1/devices")
        state[connection] = [b"", time.monotonic()]
        chosen.register(connection, selectors.EVENT_READ)

    for _ in range(listings):
        list_again()
    took, next_slow = [], time.monotonic()
    while not stop.is_set():
        for key, _ in chosen.select(timeout=0.05):
            connection = key.fileobj
            try:
                got = connection.recv(1 << 18)
            except OSError:
                got = b""
            kept = state[connection]
            kept[0] = (kept[0] + got)[:16] if len(kept[0]) < 16 else kept[0]
            ended = got.endswith(b"0\r\n\r\n") or not got or kept[0].startswith(b"HTTP/1.1 503")
            if not ended:
                continue
            status = kept[0][9:12].decode() or "cut"
            counts[status] = counts.get(status, 0) + 1
            if status == "200":
                took.append(time.monotonic() - kept[1])
            chosen.unregister(connection)
            connection.close()
            del state[connection]
            list_again()
        if time.monotonic() >= next_slow:
            next_slow += 0.2
            for connection in slow_ones:
                try:
                    connection.recv(4096)
                except OSError:
                    pass
    answer.put((counts, sorted(took)))


def probe(port, stop, times):
    while not stop.is_set():
        begin = time.monotonic()
        try:
            with connect(port) as connection:
                connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
                good = connection.recv(4096).startswith(b"HTTP/1.1 200")
        except OSError:
            good = False
        times.append(time.monotonic() - begin if good else 60.0)
        pause(0.01)


def percentile(times, share):
    ordered = sorted(times)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] * 1000 if ordered else 0.0


def phase(daemon, name, port, options, readers):
    stop, times, answer = threading.Event(), [], multiprocessing.Queue()
    prober = threading.Thread(target=probe, args=(port, stop, times))
    resident, reading = [], None
    reading_stop, read_answer = multiprocessing.Event(), multiprocessing.Queue()
    if readers:
        reading = multiprocessing.Process(target=read, args=(port, options.slow, options.listings, reading_stop,
                                                             read_answer))
        reading.start()
        pause(1)
    prober.start()
    writer = multiprocessing.Process(target=write, args=(port, options.rate, options.seconds, answer))
    writer.start()
    while writer.is_alive():
        resident.append(daemon.resident_bytes())
        writer.join(0.2)
    stop.set()
    prober.join()
    rate = answer.get(timeout=10)
    print(f"{name}: {rate:,.0f} readings/s stored; /healthz p50 {percentile(times, 0.5):.1f} ms, "
          f"p99 {percentile(times, 0.99):.1f} ms, max {percentile(times, 1):.1f} ms of {len(times)}; "
          f"memory {max(resident) / 2**20:.1f} MiB")
    if reading:
        reading_stop.set()
        counts, took = read_answer.get(timeout=30)
        reading.join()
        median = f"{took[len(took) // 2]:.2f} s" if took else "none"
        print(f"listings beside: {counts}, median {median}")
    return rate, percentile(times, 0.99), max(resident)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("seconds", 10), ("series", 60_000), ("rate", 100_000), ("slow", 64), ("listings", 16)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    if "EDGECASE_PROGRAM" not in os.environ:
        parser.error("EDGECASE_PROGRAM names no executable")
    from daemon_process import Daemon, Place  # noqa: PLC0415 (it wants the variable)
    place = Place()
    place.write_config(storage=f'memory-limit = "{MEMORY_LIMIT >> 20}MiB"', more="[limits]\nseries = 100000\n")
    daemon = Daemon(place)
    try:
        port = daemon.port()
        fill(port, options.series)
        alone = []
        for _ in range(3):
            begin = time.monotonic()
            status, _ = daemon.request("GET", "/api/v1/devices")
            alone.append(time.monotonic() - begin)
            if status != 200:
                raise AssertionError(f"a listing alone: {status}")
        print(f"devices of {options.series:,} series, alone: {min(alone):.3f} s (best of 3)")
        write_alone, _, _ = phase(daemon, "writer alone", port, options, False)
        beside, health, resident = phase(daemon, "beside readers", port, options, True)
        print(f"writes beside / alone: {beside / write_alone:.2f}; /healthz p99 {health:.1f} ms; "
              f"memory over the limit: {(resident - MEMORY_LIMIT) / 2**20:.1f} MiB")
        good = health <= 100 and beside >= 0.8 * write_alone and resident <= MEMORY_LIMIT + (32 << 20)
        return 0 if good or not options.check else 3
    finally:
        daemon.stop()
        place.remove()


if __name__ == "__main__":
    sys.exit(main())
