#!/usr/bin/env python3
"""Summaries of hours between two EdgeCases: signed by both, the same on both sides, and gone with what they sum up."""
import json
import os
import signal
import time
import unittest

import forward_flow_test
from daemon_process import Daemon, until
from forward_flow_test import HOUR, Board, target
from lying_proxy import LyingProxy

NAME = "pump-heidelberg"


class ForwardSummariesFlow(unittest.TestCase):
    def setUp(self):
        self.hub = forward_flow_test.ForwardFlow.hub(self)
        self.port = self.hub[1].port()
        # Two hours ago: that hour is over.
        self.hour_ns = (time.time_ns() // HOUR - 2) * HOUR

    def board(self, port, more='from = "beginning"'):
        return Board(self, target("hub", "edgecase", port, more))

    def send(self, board, lines):
        """Lines with %d for nanoseconds since the hour began."""
        board.write([line % (self.hour_ns + offset) for line, offset in lines])
        until(lambda: board.is_current("hub"), "all is at the hub")

    @staticmethod
    def listed(place, *command):
        done = place.cli("forward", *command, "--summaries", "--json")
        return done.returncode, json.loads(done.stdout)

    def summed(self, board, count):
        """What is kept of the board's readings, once there are so many hours."""
        return until(lambda: (found := self.listed(board.place, "status", "hub")) and len(found[1]) == count and found,
                     f"{count} hours are summed up")

    def report(self, document, *more):
        path = os.path.join(self.hub[0].path, "receipt.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(document, file)
        return self.hub[0].cli("report", "--verify", path, *more)

    def residue(self, place):
        """Files of the store that hold the name."""
        found = []
        for folder, _, names in os.walk(place.path):
            for name in names:
                path = os.path.join(folder, name)
                if name in ("log", "receipt.json", "s", "notify") or not os.path.isfile(path):
                    continue
                with open(path, "rb") as file:
                    if NAME.encode() in file.read():
                        found.append(path)
        return found

    def test_both_sign_and_keep_the_same_until_it_is_erased(self):
        board = self.board(self.port)
        self.send(board, [(f"m,host={NAME} f={i},n={i}i,s=\"t {i}\" %d", i) for i in range(100)] +
                  [(f"m,host={NAME} f=1 %d", HOUR + 5), ("m,host=tank f=1 %d", 7),
                   ("m,host=tank f=1 %d", -30 * 24 * HOUR)])
        board.restart()
        code, documents = self.summed(board, 3)
        self.assertEqual(code, 0, documents)
        self.assertEqual(sorted((each["device"], each["readings"]) for each in documents),
                         [(NAME, 1), (NAME, 300), ("tank", 1)])
        code, there = self.listed(self.hub[0], "origins")
        self.assertEqual((code, there), (0, documents))
        # Anybody can tell, with either key; and that something was changed.
        receipt = max(documents, key=lambda each: each["readings"])
        keys = []
        for place in (board.place, self.hub[0]):
            keys.append(os.path.join(place.path, "key.pem"))
            with open(keys[-1], "w", encoding="utf-8") as file:
                file.write(place.cli("report", "--public-key").stdout)
            done = self.report(receipt, "--key", keys[-1])
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertIn("300 readings sent, 300 there, the same", done.stdout)
        for change in (lambda each: each.update(readings=301), lambda each: each["summary"].update(readings=301),
                       lambda each: each["signature"].update(value=documents[0]["summary"]["signature"]["value"]),
                       lambda each: each["summary"]["signature"].update(value=receipt["signature"]["value"])):
            changed = json.loads(json.dumps(receipt))
            change(changed)
            done = self.report(changed)
            self.assertEqual(done.returncode, 7, done.stdout + done.stderr)
        # What comes late is summed up anew; both restart.
        self.send(board, [("m,host=tank f=2 %d", 8)])
        self.hub[1].stop()
        self.hub[0].write_config(listen=f"localhost:{self.port}")
        self.hub[1] = Daemon(self.hub[0])
        board.restart()
        until(lambda: [each["readings"] for each in self.listed(board.place, "status", "hub")[1]
                       if each["device"] == "tank"] == [2], "the hour has two")
        self.assertEqual(self.listed(self.hub[0], "origins"), self.listed(board.place, "status", "hub"))
        done = board.place.cli("erase", NAME, "--yes", "--wait-targets")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for place, command in ((board.place, ("status", "hub")), (self.hub[0], ("origins",))):
            self.assertEqual([each["device"] for each in self.listed(place, *command)[1]], ["tank"])
            self.assertEqual(self.residue(place), [])

    def test_what_is_not_the_same_there_shows(self):
        board = self.board(self.port)
        self.send(board, [("m,host=pump f=1 %d", i) for i in range(10)])
        status, text = self.hub[1].request(
            "POST", f"/api/v1/erase?ns=default&select=pump/*&from=@{self.hour_ns // 10**9}"
                    f"&to=@{self.hour_ns // 10**9 + 1}")
        self.assertIn(status, (200, 202), text)
        board.restart(signal.SIGTERM)
        code, documents = self.summed(board, 1)
        self.assertEqual(code, 6, documents)
        done = board.place.cli("forward", "status", "hub", "--summaries")
        self.assertIn("1 hour, 1 not confirmed", done.stdout)

    def test_a_device_of_too_many_sensors_is_told(self):
        board = self.board(self.port)
        for first in (0, 2000, 4000):
            self.send(board, [("m,host=wide " + ",".join(f"f{i}=1" for i in range(first, min(first + 2000, 4097)))
                               + " %d", 1)])
        self.send(board, [("m,host=pump f=1 %d", 1)])
        board.restart(signal.SIGTERM)
        code, documents = self.summed(board, 2)
        self.assertEqual(code, 6, documents)
        [wide] = [each for each in documents if "receipt" not in each]
        self.assertEqual((wide["summary"]["device"], wide["summary"]["readings"]), ("wide", 4097))
        self.assertIn("4097 sensors", wide["why"])

    def test_an_older_hub_gets_readings_all_the_same(self):
        proxy = LyingProxy(lambda: self.port)
        self.addCleanup(proxy.stop)
        proxy.refused_word = b'"sensors"'
        board = self.board(proxy.port)
        self.send(board, [("m,host=pump f=1 %d", 1)])
        proxy.seen = []
        board.restart()
        until(lambda: any(path == "/api/v1/forward" for path, _ in proxy.seen), "it was asked")
        self.send(board, [("m,host=pump f=1 %d", 2)])
        self.assertEqual(self.listed(board.place, "status", "hub"), (0, []))
        proxy.refused_word = None
        board.restart()
        self.assertEqual(self.summed(board, 1)[1][0]["readings"], 2)


if __name__ == "__main__":
    unittest.main()
