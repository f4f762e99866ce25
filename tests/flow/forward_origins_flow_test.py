#!/usr/bin/env python3
"""Boards that have devices of the same names forward to one hub: each has its own there, whatever the others do."""
import json
import os
import shutil
import unittest

import forward_flow_test
from daemon_process import Daemon, until
from forward_flow_test import Board, target

FROM_THE_BEGINNING = 'from = "beginning"\nretention = true'


class ForwardOriginsFlow(unittest.TestCase):
    def setUp(self):
        self.place, self.daemon = self.hub = forward_flow_test.ForwardFlow.hub(self)
        self.port = self.daemon.port()
        self.token = None

    def restart_hub(self):
        self.hub[1].stop()
        self.place.write_config(listen=f"localhost:{self.port}")
        self.daemon = self.hub[1] = Daemon(self.place)

    def board(self):
        return Board(self, target("hub", "edgecase", self.port, FROM_THE_BEGINNING))

    def devices(self):
        """Readings by device."""
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        status, _, text = self.daemon.exchange("GET", "/api/v1/query?select=*/*&format=ndjson", headers=headers)
        self.assertEqual(status, 200, text)
        found = {}
        for line in text.splitlines():
            reading = json.loads(line)
            found.setdefault(reading["device"], []).append((reading["sensor"], reading["time"], reading["value"]))
        return found

    def send(self, board, lines):
        board.write(lines)
        until(lambda: board.is_current("hub"), "all is at the hub")

    def verify(self, board):
        done = board.place.cli("forward", "verify", "hub")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def origins(self):
        done = self.place.cli("forward", "origins", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return sorted(json.loads(done.stdout)["origins"], key=lambda each: each["since"])

    def hand_over(self):
        """What the first brought is the second's."""
        first, second = [str(each["origin"]) for each in self.origins()]
        return self.place.cli("forward", "hand-over", first, second)

    def test_boards_with_the_same_names_have_each_their_own(self):
        first, second = self.board(), self.board()
        lines = ["m,host=pump f={0},s=\"text {0}\" {1}", "cpu load={0} {1}", "m,domain=sensor,entity_id=door f={0} {1}"]
        for i, board in enumerate((first, second)):
            self.send(board, [line.format(i + 1, time) for line in lines for time in (1, 2)])
        names = self.devices()
        self.assertEqual(len(names), 6, names)
        for name in ("pump", "cpu", "sensor.door"):
            self.assertEqual({value for _, _, value in names[name]} - {"text 1"}, {1}, name)
        others = [name for name in names if "~" in name]
        self.assertEqual({value for name in others for _, _, value in names[name]} - {"text 2"}, {2})
        # Neither InfluxQL takes two boards' lines for one series.
        status, text = self.daemon.request("GET", "/query?db=default&q=SELECT+load+FROM+cpu+GROUP+BY+*")
        self.assertEqual(status, 200, text)
        self.assertEqual(len(json.loads(text)["results"][0]["series"]), 2, text)
        for board in (first, second):
            self.verify(board)
        self.restart_hub()
        for i, board in enumerate((first, second)):
            self.send(board, [line.format(i + 1, 3) for line in lines])
            self.verify(board)
        self.assertEqual(set(self.devices()), set(names))
        # What is written at the hub is the hub's.
        status, text = self.daemon.request("POST", "/write?precision=ns", "m,host=pump f=3 1")
        self.assertEqual(status, 204, text)
        own = set(self.devices()) - set(names)
        self.assertEqual(len(own), 1, own)
        self.assertTrue(own.pop().startswith("pump~"))
        self.verify(first)
        self.assertEqual([each["second"] for each in self.origins()], [False, False])
        self.assertEqual([each["renamed"] for each in self.origins()], [0, 3])

    def test_erasures_and_rules_are_of_their_own_devices(self):
        first, second = self.board(), self.board()
        for board in (first, second):
            self.send(board, ["m,host=pump f=1 1", "m,host=tank f=1 1"])
        status, text = self.daemon.request("POST", "/write?precision=ns", "m,host=pump f=3 1")
        self.assertEqual(status, 204, text)
        before = set(self.devices())
        done = second.place.cli("retention", "set", "tank/*", "40000d")
        self.assertEqual(done.returncode, 0, done.stderr)

        def kept():
            shown = self.place.cli("retention", "preview", "*/*", "100000d", "--json")
            self.assertEqual(shown.returncode, 0, shown.stderr)
            return {row["device"]: row["keep_now"] for row in json.loads(shown.stdout)["affected"]}

        until(lambda: "40000d" in kept().values(), "the rule is there")
        self.assertEqual([name for name, keep in kept().items() if keep != "forever"],
                         [name for name in before if name.startswith("tank~")])
        done = second.place.cli("erase", "pump", "--yes", "--wait-targets")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        gone = before - set(self.devices())
        self.assertEqual(len(gone), 1, gone)
        self.assertTrue(gone.pop().startswith("pump~"))
        self.assertIn("pump", self.devices())
        self.verify(first)
        # Neither what another erased, nor its name, is of concern to one that comes later.
        done = first.place.cli("erase", "tank", "--yes", "--wait-targets")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        third = self.board()
        self.send(third, ["m,host=tank f=9 1"])
        self.verify(third)
        self.assertIn([("m.f", "1970-01-01T00:00:00.000000001Z", 9)], self.devices().values())
        self.send(first, ["m,host=tank f=8 4102444800000000000"])
        self.assertEqual(len(self.devices()["tank"]), 1)
        done = first.place.cli("erase", "pump", "--yes", "--wait-targets")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertNotIn("pump", self.devices())
        # The hub's own stays.
        self.assertEqual(len([name for name in self.devices() if name.startswith("pump~")]), 1)
        self.verify(first)
        self.verify(second)

    def test_a_token_for_one_device_means_the_senders_own(self):
        boards, tokens = [], []
        for scope in ("pump/*", "*/*"):
            made = self.place.cli("token", "create", "--write", scope, "--read", scope, "--erase", scope)
            self.assertEqual(made.returncode, 0, made.stderr)
            self.token = made.stdout.split()[-1]
            tokens.append(self.token)
            token_file = os.path.join(self.place.path, f"token{len(boards)}")
            with open(token_file, "w", encoding="utf-8") as file:
                file.write(self.token)
            boards.append(Board(self, target("hub", "edgecase", self.port,
                                             FROM_THE_BEGINNING + f'\ntoken-file = "{token_file}"')))
        second, first = boards
        for board in (first, second):
            self.send(board, ["m,host=pump f=1 1"])
            self.verify(board)
        before = self.devices()
        self.assertEqual(len(before), 2, before)
        done = second.place.cli("erase", "pump", "--yes", "--wait-targets", "--json")
        self.assertEqual([each["state"] for each in json.loads(done.stdout)["targets"]], ["confirmed"], done.stdout)
        self.assertEqual(set(self.devices()), {"pump"})
        self.send(first, ["m,host=tank f=1 1"])
        status, _, text = self.daemon.exchange("POST", "/api/v1/erase?ns=default&select=tank/*",
                                               headers={"Authorization": f"Bearer {tokens[0]}"})
        self.assertEqual(status, 403, text)
        self.assertEqual(set(self.devices()), {"pump", "tank"})
        self.verify(first)

    def test_the_second_copy_of_a_store_is_kept_apart_until_it_is_handed_over(self):
        board = self.board()
        self.send(board, ["m,host=pump f=1 1"])
        board.daemon.stop()
        copy = self.board()
        copy.daemon.stop()
        for name in ("meta", "values"):
            shutil.rmtree(os.path.join(copy.place.path, name))
            shutil.copytree(os.path.join(board.place.path, name), os.path.join(copy.place.path, name))
        for each in (board, copy):
            each.daemon = Daemon(each.place)
        self.send(board, ["m,host=pump f=2 2"])
        self.send(copy, ["m,host=pump f=3 2"])
        self.assertFalse(board.status("hub")["apart"])
        until(lambda: copy.status("hub")["apart"], "the copy is told")
        for command in (("forward", "status", "hub"), ("status",)):
            self.assertIn("kept apart", copy.place.cli(*command).stdout)
        self.assertIn("second copy", self.daemon.log())
        names = self.devices()
        self.assertEqual([value for _, _, value in names.pop("pump")], [1, 2])
        [(apart, readings)] = names.items()
        self.assertEqual([value for _, _, value in readings], [3])
        self.restart_hub()
        for each in (board, copy):
            each.restart()
        self.send(board, ["m,host=pump f=4 3"])
        self.send(copy, ["m,host=pump f=5 3"])
        self.verify(board)
        self.assertEqual([value for _, _, value in self.devices()[apart]], [3, 5])
        # The first one is lost: an admin's word.
        board.daemon.stop()
        self.assertEqual([each["second"] for each in self.origins()], [False, True])
        done = self.hand_over()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotEqual(self.hand_over().returncode, 0)
        self.send(copy, ["m,host=pump f=6 4"])
        self.assertEqual([value for _, _, value in self.devices()["pump"]], [1, 2, 4, 6])
        until(lambda: not copy.status("hub")["apart"], "it is apart no more")
        # Whoever comes as the lost one is another.
        board.daemon = Daemon(board.place)
        self.send(board, ["m,host=pump f=7 5"])
        until(lambda: board.status("hub")["apart"], "the lost one is told")
        self.assertEqual(len(self.devices()), 3)
        self.assertEqual([value for _, _, value in self.devices()["pump"]], [1, 2, 4, 6])

    def test_a_store_that_was_restored_goes_on_with_what_was_sent(self):
        board = self.board()
        self.send(board, ["m,host=pump f=1 1", "m,host=tank f=1 1"])
        backup = os.path.join(board.place.path, "backup")
        done = board.place.cli("backup", backup)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        board.daemon.stop()
        other = Board(self, "")
        done = other.place.cli("restore", backup)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        other.set_targets(target("hub", "edgecase", self.port))
        other.reload()
        self.send(other, ["m,host=new f=1 1"])
        done = self.hand_over()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.send(other, ["m,host=pump f=2 2", "m,host=new f=2 2"])
        self.assertEqual({name: len(readings) for name, readings in self.devices().items()},
                         {"pump": 2, "tank": 1, "new": 2})
        done = other.place.cli("erase", "tank", "--yes", "--wait-targets")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(set(self.devices()), {"pump", "new"})
        self.verify(other)

    def test_a_hub_that_was_restored_knows_whose_each_name_is(self):
        first, second, stranger = [self.board() for _ in range(3)]
        self.send(first, ["m,host=pump f=1 1", "m,host=tank f=1 1"])
        self.send(second, ["m,host=pump f=2 1"])
        status, text = self.daemon.request("POST", "/write?precision=ns", "m,host=mine f=3 1")
        self.assertEqual(status, 204, text)
        before = self.devices()
        self.assertEqual(len(before), 4, before)
        backup = os.path.join(self.place.path, "backup")
        done = self.place.cli("backup", backup)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        with open(os.path.join(backup, "backup.json"), encoding="utf-8") as file:
            self.assertEqual(json.load(file)["format"], 2)
        self.daemon.stop()
        self.restore(backup)
        self.assertEqual(self.devices(), before)
        # The owners began runs of which the backup knows nothing, and come last.
        for board in (first, second):
            board.restart()
        self.send(second, ["m,host=tank f=20 2", "m,host=mine f=20 2"])
        self.send(stranger, [f"m,host={name} f=30 2" for name in ("pump", "tank", "mine")])
        self.send(first, ["m,host=pump f=10 2", "m,host=tank f=10 2"])
        self.send(second, ["m,host=pump f=20 2"])
        devices = {name: [value for _, _, value in readings] for name, readings in self.devices().items()}
        [pump_of_second] = before.keys() - {"pump", "tank", "mine"}
        self.assertEqual({name: devices.pop(name) for name in before},
                         {"pump": [1, 10], "tank": [1, 10], "mine": [3], pump_of_second: [2, 20]})
        self.assertEqual(sorted(devices.values()), [[20], [20], [30], [30], [30]])
        self.assertEqual([each["second"] for each in self.origins()], [False] * 3)
        for board in (first, second, stranger):
            self.verify(board)
        for board, gone in ((second, pump_of_second), (first, "pump")):
            left = set(self.devices())
            done = board.place.cli("erase", "pump", "--yes", "--wait-targets")
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertEqual(left - set(self.devices()), {gone})
        for board in (first, second, stranger):
            self.verify(board)
        # Said once, it stands; a second time changes nothing.
        names = set(self.devices())
        self.restart_hub()
        done = self.place.cli("restore", backup)
        self.assertIn(done.returncode, (0, 6), done.stderr)
        self.send(stranger, ["m,host=tank f=31 3"])
        self.assertLessEqual(set(self.devices()) - names, {"pump", pump_of_second})

    def restore(self, backup):
        """A new hub at the old one's port, where nobody finds it before all of it is there."""
        self.place, self.daemon = self.hub = forward_flow_test.ForwardFlow.hub(self)
        done = self.place.cli("restore", backup)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.restart_hub()


if __name__ == "__main__":
    unittest.main()
