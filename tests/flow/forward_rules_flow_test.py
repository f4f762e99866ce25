#!/usr/bin/env python3
"""retention = true: the rules of what is forwarded hold at the target, as far as its token may erase."""
import json
import os
import re
import unittest

import forward_flow_test
from daemon_process import Daemon, Place, until
from forward_flow_test import Board, target


class ForwardRulesFlow(unittest.TestCase):
    hub = forward_flow_test.ForwardFlow.hub

    @staticmethod
    def rule(board, *arguments):
        done = board.place.cli("retention", *arguments)
        assert done.returncode == 0, done.stderr

    @staticmethod
    def kept(place):
        """What the hub keeps of each series, by a preview that changes nothing."""
        done = place.cli("retention", "preview", "*/*", "1ns", "--json")
        assert done.returncode == 0, done.stderr
        return {f'{row["device"]}/{row["sensor"]}': " then ".join([row["keep_now"], *row.get("tiers_now", [])])
                for row in json.loads(done.stdout)["affected"]}

    def test_rules_go_along_and_change_without_a_reading(self):
        hub = self.hub()
        board = Board(self, target("hub", "edgecase", hub[1].port(), "retention = true"))
        self.rule(board, "set", "a/*", "7d")
        self.rule(board, "set", "b/*", "7d", "--then", "1m:90d")
        board.write(["m,host=a f=1", "m,host=b f=1", "m,host=c f=1"])
        wanted = {"a/m.f": "7d", "b/m.f": "7d then 1m:90d", "c/m.f": "forever"}
        until(lambda: self.kept(hub[0]) == wanted, f"rules are there: {wanted}")
        self.rule(board, "set", "a/*", "30d")
        self.rule(board, "clear", "b/*", "--yes")
        wanted = {"a/m.f": "30d", "b/m.f": "forever", "c/m.f": "forever"}
        until(lambda: self.kept(hub[0]) == wanted, f"changed rules are there: {wanted}")
        hub[1].stop()
        self.rule(board, "set", "c/*", "5d")
        board.restart()
        hub[1] = Daemon(hub[0], environment=None)
        board.set_targets(target("hub", "edgecase", hub[1].port(), "retention = true"))
        board.reload()
        wanted["c/m.f"] = "5d"
        until(lambda: self.kept(hub[0]) == wanted, f"what changed meanwhile is there: {wanted}")
        # What is there of others stays as it is.
        status, text = hub[1].request("POST", "/write", "m,host=d f=1")
        self.assertEqual(status, 204, text)
        self.rule(board, "set", "*/*", "3d")
        until(lambda: self.kept(hub[0])["b/m.f"] == "3d", "the rule of all is told of each")
        self.assertEqual(self.kept(hub[0])["d/m.f"], "forever")

    def test_scopes_at_the_target_hold(self):
        place = Place()
        self.addCleanup(place.remove)
        place.write_config(listen="localhost:0", more="")
        hub = Daemon(place)
        self.addCleanup(hub.stop)
        made = place.cli("token", "create", "--write", "*/*", "--erase", "a/*")
        self.assertEqual(made.returncode, 0, made.stderr)
        token_file = os.path.join(place.path, "token")
        with open(token_file, "w", encoding="utf-8") as file:
            file.write(re.search(r"ec1_\S+", made.stdout).group(0) + "\n")
        board = Board(self, target("hub", "edgecase", hub.port(), f'retention = true\ntoken-file = "{token_file}"'))
        self.rule(board, "set", "*/*", "7d")
        board.write(["m,host=a f=1", "m,host=b f=1"])
        until(lambda: self.kept(place).get("a/m.f") == "7d", "what the token may erase has the rule")
        until(lambda: board.is_current("hub"), "all is there")
        self.assertEqual(self.kept(place)["b/m.f"], "forever")
        self.assertIn("some rules of retention", board.daemon.log())


if __name__ == "__main__":
    unittest.main()
