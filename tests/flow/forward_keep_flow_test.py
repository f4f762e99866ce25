#!/usr/bin/env python3
"""keep-until-sent: what waits for a target is spared by rules, tiers and a start; what goes unsent is counted."""
import json
import signal
import time
import unittest

import forward_flow_test
from daemon_process import Daemon, until
from forward_flow_test import Board, all_readings, target


class ForwardKeepFlow(unittest.TestCase):
    proxy = forward_flow_test.ForwardFlow.proxy
    hub = forward_flow_test.ForwardFlow.hub
    port_of = staticmethod(forward_flow_test.ForwardFlow.port_of)

    def rule(self, board, *arguments):
        done = board.place.cli("retention", "set", *arguments, "--yes")
        self.assertEqual(done.returncode, 0, done.stderr)

    @staticmethod
    def count(board, namespace="default"):
        status, text = board.daemon.request("GET", f"/api/v1/query?ns={namespace}&select=*/*&format=ndjson")
        assert status == 200, text
        return len(text.splitlines())

    def write(self, board, namespace, device, count):
        now = time.time_ns()
        status, text = board.daemon.request("POST", f"/write?precision=ns&db={namespace}", "\n".join(
            f"m,host={device} f={i} {now + i}" for i in range(count)))
        self.assertEqual(status, 204, text)

    def board(self, more, proxy):
        """A board whose readings live for 4 s, and whose target is not there; lab goes nowhere."""
        board = Board(self, target("hub", "edgecase", proxy.port, more).replace("*:*/*", "default:*/*"))
        self.write(board, "lab", "x", 1)
        for namespace in ("default", "lab"):
            self.rule(board, "*/*", "4s", "-n", namespace)
        return board

    def let_expire(self, board):
        self.write(board, "lab", "x", 1)
        until(lambda: self.count(board, "lab") == 0, "what goes nowhere has expired")

    def test_what_waits_is_spared_until_it_is_sent(self):
        hub = self.hub()
        proxy = self.proxy(lambda: self.port_of(hub))
        board = self.board('keep-until-sent = "1h"\n', proxy)
        self.write(board, "default", "a", 5)
        until(lambda: len(all_readings(hub[1])) == 5, "it is there")
        until(lambda: board.is_current("hub"), "that is known here")
        hub[1].stop()
        self.write(board, "default", "a", 7)
        waits = until(lambda: board.status("hub")["oldest_waiting"], "something waits")
        self.let_expire(board)
        until(lambda: self.count(board) == 7, "what was sent goes by its rule, what waits stays")
        board.restart()
        self.let_expire(board)
        self.assertEqual(self.count(board), 7)
        self.assertEqual(board.status("hub")["oldest_waiting"], waits)
        hub[1] = Daemon(hub[0])
        board.resume("hub")
        until(lambda: len(all_readings(hub[1])) == 12, "what waited is there")
        until(lambda: self.count(board) == 0, "and goes by its rule then")
        self.assertEqual({k: v for k, v in board.status("hub")["unsent"].items() if v}, {})

    def test_where_nothing_waits_what_goes_is_counted_for_good(self):
        hub = self.hub()
        proxy = self.proxy(lambda: self.port_of(hub))
        board = self.board("", proxy)
        hub[1].stop()
        self.write(board, "default", "a", 7)
        self.let_expire(board)
        self.assertEqual(self.count(board), 0)
        until(lambda: board.status("hub")["unsent"]["expired"] == 7, "the expired are counted")
        self.rule(board, "*/*", "forever")
        self.write(board, "default", "b", 5)
        done = board.place.cli("erase", "b", "--yes")
        self.assertEqual(done.returncode, 0, done.stderr)
        until(lambda: board.status("hub")["unsent"]["erased"] == 5, "the erased are counted")
        self.write(board, "default", "c", 6)
        self.rule(board, "*/*", "1s", "--then", "1s:forever")
        until(lambda: board.status("hub")["unsent"]["thinned"] == 6, "what became windows is counted")
        board.restart()
        wanted = {"expired": 7, "erased": 5, "thinned": 6, "evicted": 0, "unfit": 0}
        self.assertEqual(board.status("hub")["unsent"], wanted)
        status, text = board.daemon.request("GET", "/metrics")
        self.assertEqual(status, 200)
        self.assertIn('edgecase_forward_unsent_total{target="hub",reason="thinned"} 6', text)
        told = board.place.cli("forward", "status", "hub").stdout
        self.assertRegex(told, "went unsent +7 readings: expired")
        report = json.loads(board.place.cli("report", "--json").stdout)
        self.assertEqual(report["forward"][0]["unsent"], wanted)

    def test_what_expires_while_the_board_is_off_is_counted(self):
        hub = self.hub()
        proxy = self.proxy(lambda: self.port_of(hub))
        board = self.board("", proxy)
        hub[1].stop()
        self.rule(board, "*/*", "6s")
        self.write(board, "default", "a", 7)
        written = time.time()
        board.daemon.stop(signal.SIGKILL)
        until(lambda: time.time() > written + 6, "they have expired")
        board.daemon = Daemon(board.place)
        self.assertEqual(self.count(board), 0)
        until(lambda: board.status("hub")["unsent"]["expired"] == 7, "they are counted")
        board.restart()
        self.assertEqual(board.status("hub")["unsent"]["expired"], 7)

    def test_tiers_wait_and_what_is_not_configured_pins_nothing(self):
        hub = self.hub()
        proxy = self.proxy(lambda: self.port_of(hub))
        keep = 'keep-until-sent = "1h"\n'
        board = self.board(keep, proxy)
        hub[1].stop()
        self.rule(board, "*/*", "1s", "--then", "1s:forever")
        self.rule(board, "*/*", "1s", "--then", "1s:forever", "-n", "lab")
        self.write(board, "default", "a", 7)
        self.write(board, "lab", "y", 1)
        until(lambda: "s" in board.daemon.exchange("GET", "/api/v1/query?ns=lab&select=*/*&every=1s&agg=count")[1].get(
            "X-EdgeCase-Tiers", ""), "what goes nowhere became windows")
        self.assertEqual(self.count(board), 7)
        board.set_targets("")
        board.reload()
        until(lambda: self.count(board) == 0, "without a target it becomes windows, too")
        until(lambda: board.status("hub")["unsent"]["thinned"] >= 7, "and is counted")


if __name__ == "__main__":
    unittest.main()
