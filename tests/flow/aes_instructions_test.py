#!/usr/bin/env python3
"""A store that is encrypted at rest, on 64-bit ARM with and without instructions for AES: it
is found out, said, the instructions are executed or not, and what the other way wrote is read.

Runs under qemu's user mode, which lists what is executed (`-d in_asm`). No processor it knows lacks
the instructions, so where there shall be none the kernel's list of what there is (AT_HWCAP) is
changed before the first instruction."""
import contextlib
import http.client
import json
import os
import re
import shutil
import socket
import struct
import unittest

from daemon_process import PROGRAM, TIME_LIMIT_SECONDS, Daemon, Place, until

EMULATOR = os.environ.get("EDGECASE_EMULATOR", "").split() or ["qemu-aarch64-static"]
ELF_MACHINE_AARCH64 = 183
AT_HWCAP = 16
HWCAP_AES, HWCAP_PMULL = 1 << 3, 1 << 4
SP = 31  # of the registers as the debugger gets them
# AESE Vd.16B, Vn.16B: what encrypting with the instructions cannot do without.
AESE = re.compile(rb"\b4e284[89ab][0-9a-f]{2}\b")


def is_for_arm(path):
    with open(path, "rb") as file:
        head = file.read(20)
    return head[:4] == b"\x7fELF" and struct.unpack_from("<H", head, 18)[0] == ELF_MACHINE_AARCH64


class Debugger:
    """What GDB would say to the emulator, which waits for it before the first instruction."""

    def __init__(self, path):
        self.peer = socket.socket(socket.AF_UNIX)
        self.peer.settimeout(TIME_LIMIT_SECONDS)
        until(self._connects_to(path), "the emulator waits for a debugger")

    def _connects_to(self, path):
        def attempt():
            with contextlib.suppress(FileNotFoundError, ConnectionRefusedError):
                self.peer.connect(path)
                return True
            return False
        return attempt

    def ask(self, text):
        data = text.encode()
        self.peer.sendall(b"$%s#%02x" % (data, sum(data) % 256))
        answer = b""
        while not (match := re.search(rb"\$([^#]*)#..", answer)):
            got = self.peer.recv(8192)
            if not got:
                raise AssertionError(f"the emulator hung up at {text}")
            answer += got
        self.peer.sendall(b"+")
        return match.group(1).decode()

    def word(self, address):
        return struct.unpack("<Q", bytes.fromhex(self.ask(f"m{address:x},8")))[0]

    def take_away(self, bits):
        """From AT_HWCAP, which lies behind arguments and environment."""
        address = struct.unpack_from("<Q", bytes.fromhex(self.ask("g")), 8 * SP)[0]
        address += 8 * (self.word(address) + 2)
        while self.word(address):
            address += 8
        address += 8
        while (kind := self.word(address)) != AT_HWCAP:
            if kind == 0:
                raise AssertionError("no AT_HWCAP")
            address += 16
        there = self.word(address + 8)
        if there & bits != bits:
            raise AssertionError(f"the emulated processor has not all of {bits:#x}: {there:#x}")
        changed = struct.pack("<Q", there & ~bits).hex()
        if self.ask(f"M{address + 8:x},8:{changed}") != "OK":
            raise AssertionError("AT_HWCAP was not changed")

    def leave(self):
        self.ask("D")
        self.peer.close()


class LocalHttp(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=TIME_LIMIT_SECONDS)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(TIME_LIMIT_SECONDS)
        self.sock.connect(self.path)


class AesInstructions(unittest.TestCase):
    def setUp(self):
        if not is_for_arm(PROGRAM):
            self.skipTest("EDGECASE_PROGRAM is not a program for 64-bit ARM")
        if not shutil.which(EMULATOR[0]):
            self.skipTest(f"needs {EMULATOR[0]}")
        self.place = Place()
        self.addCleanup(self.place.remove)
        key = self.place.path + "/key"
        with open(key, "wb") as file:
            file.write(os.urandom(32))
        os.chmod(key, 0o400)
        self.place.write_config(storage=f'encryption-key-file = "{key}"', listen="")
        self.written = []

    def ask(self, method, path, body=None):
        connection = LocalHttp(self.place.socket)
        connection.request(method, path, body)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        self.assertIn(answer.status, (200, 204), text)
        return text

    def life(self, instructions):
        """Starts, reads what was written before, writes more. What the log said; did AESE run?"""
        trace, gate = self.place.path + "/trace", self.place.path + "/g"
        waits = [] if instructions else ["-g", gate]
        daemon = Daemon(self.place, program=EMULATOR[0], until=None,
                        verb=(*EMULATOR[1:], "-cpu", "max", *waits, "-d", "in_asm", "-D", trace,
                              PROGRAM, "serve"))
        try:
            if not instructions:
                debugger = Debugger(gate)
                debugger.take_away(HWCAP_AES | HWCAP_PMULL)
                debugger.leave()
            daemon.wait_for("READY=1")
            self.compare()
            how = "with" if instructions else "without"
            more = [f"{how} {len(self.written) + i}" for i in range(300)]
            self.ask("POST", "/api/v1/readings", json.dumps(
                [{"device": "d", "sensor": "s", "value": value, "time": len(self.written) + i}
                 for i, value in enumerate(more)]))
            self.written += more
            self.compare()
            status = json.loads(self.ask("GET", "/api/v1/status"))
            self.assertEqual(status["encryption"]["aes_instructions"], instructions)
            self.assertEqual(daemon.stop(), 0, daemon.log())
        finally:
            daemon.stop()
        with open(trace, "rb") as file:
            text = file.read()
        self.assertGreater(len(text), 1_000_000, "the emulator lists nothing")
        return daemon.log(), bool(AESE.search(text))

    def compare(self):
        if not self.written:
            return
        text = self.ask("GET", "/api/v1/query?select=d/s&format=ndjson")
        self.assertEqual([json.loads(line)["value"] for line in text.splitlines()], self.written)

    def test_found_said_used_and_of_one_result(self):
        for instructions in (True, False, True):
            with self.subTest(instructions=instructions):
                log, executed = self.life(instructions)
                self.assertIn("by the processor's instructions" if instructions
                              else "AES-256-GCM in software", log)
                self.assertEqual(executed, instructions)


if __name__ == "__main__":
    unittest.main()
