#!/usr/bin/env python3
"""What became windows before a target had it goes there as windows, is verified and erased there as readings are."""
import json
import signal
import time
import unittest

import forward_erase_flow_test
import forward_flow_test
import forward_rules_flow_test
from daemon_process import Daemon, until
from forward_flow_test import Board, all_readings, select, target
from influxd import INFLUXD, Influxd

SECOND = 1_000_000_000
MINUTE = 60 * SECOND
WINDOW = 10 * SECOND  # of a thinned target: it waits until one is over
HOUR = 60 * MINUTE
# Readings of 20 minutes, each 7 s, two hours ago.
BEGIN = (time.time_ns() - 2 * HOUR) // (20 * MINUTE) * 20 * MINUTE
TIMES = range(BEGIN, BEGIN + 20 * MINUTE, 7 * SECOND)
SENT = 60  # of these the target has as they came
COLUMNS = ["count", "first", "last", "max", "mean", "min", "sum"]


def window_of(time_ns):
    return time_ns // MINUTE * MINUTE


def windows_of(first, every=MINUTE):
    """By the time it begins, the values of each window that has a reading from that one on."""
    windows = {}
    for i, time_ns in enumerate(TIMES):
        windows.setdefault(time_ns // every * every, []).append(float(i))
    return {begin: values for begin, values in windows.items() if begin >= TIMES[first] // every * every}


def columns_of(values):
    return {"count": len(values), "first": values[0], "last": values[-1], "max": max(values),
            "mean": sum(values) / len(values), "min": min(values), "sum": sum(values)}


class ForwardThinnedFlow(unittest.TestCase):
    proxy = forward_flow_test.ForwardFlow.proxy
    hub = forward_flow_test.ForwardFlow.hub
    port_of = staticmethod(forward_flow_test.ForwardFlow.port_of)
    erased = forward_erase_flow_test.ForwardEraseFlow.erased
    states = staticmethod(forward_erase_flow_test.ForwardEraseFlow.states)
    kept = staticmethod(forward_rules_flow_test.ForwardRulesFlow.kept)

    @staticmethod
    def at(time_ns):
        return f"@{time_ns // SECOND}"

    def thin(self, board, *tiers):
        done = board.place.cli("retention", "set", "*/*", "1h", *(tiers or ("--then", "1m:forever")), "--yes")
        self.assertEqual(done.returncode, 0, done.stderr)

    def write(self, board, device, first, last):
        board.write([f"m,host={device} f={i} {TIMES[i]}" for i in range(first, last)])

    def leave(self, board, devices=("a", "b"), tiers=()):
        """The target is away; what it has not got becomes windows."""
        for device in devices:
            self.write(board, device, SENT, len(TIMES))
        self.thin(board, *tiers)
        lost = len(devices) * (len(TIMES) - SENT)
        until(lambda: board.status("hub")["unsent"]["thinned"] >= lost, "they have become windows, unsent")
        return board.status("hub")["unsent"]["thinned"]

    @staticmethod
    def there(hub):
        rows = map(json.loads, all_readings(hub[1]))
        return {(row["device"], row["sensor"], row["time"]): row["value"] for row in rows}

    @staticmethod
    def text(time_ns):
        return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(time_ns // SECOND)) + ".000000000Z"

    def wanted(self, devices=("a", "b")):
        """What is at the target once all has gone: the first as they came, windows of the rest."""
        rows = {}
        for device in devices:
            for i in range(SENT):
                rows[device, "m.f", self.text(TIMES[i])] = i
            for begin, values in windows_of(SENT).items():
                for name, value in columns_of(values).items():
                    rows[device, "m.f_" + name, self.text(begin)] = value
        return rows

    def verify(self, board):
        done = board.place.cli("forward", "verify", "hub", "--json")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        verified = json.loads(done.stdout)
        self.assertEqual(verified["missing"], 0)
        return verified["readings"]

    def metric(self, board):
        lines = [line for line in board.daemon.request("GET", "/metrics")[1].splitlines()
                 if line.startswith('edgecase_forward_thinned_sent_total{target="hub"}')]
        return int(lines[0].split()[-1])

    def test_windows_arrive_are_verified_and_erased(self):
        hub = self.hub()
        proxy = self.proxy(lambda: self.port_of(hub))
        board = Board(self, target("hub", "edgecase", proxy.port))
        self.write(board, "a", 0, SENT)
        self.write(board, "b", 0, SENT)
        until(lambda: board.is_current("hub"), "the first is there")
        hub[1].stop()
        lost = self.leave(board)
        self.assertEqual(lost, 2 * (len(TIMES) - SENT))
        board.restart()
        hub[1] = Daemon(hub[0])
        board.resume("hub")
        wanted = self.wanted()
        until(lambda: self.there(hub) == wanted, "the windows are there")
        until(lambda: board.status("hub")["thinned_sent"] == lost, "they are counted")
        self.assertEqual(self.metric(board), lost)
        self.assertEqual(board.status("hub")["unsent"]["thinned"], lost)
        self.assertIn("of these as windows", board.place.cli("forward", "status", "hub").stdout)
        self.assertNotIn("never got", board.place.cli("status").stdout)
        # What was sent as it came has become windows here, so these are what there is to compare.
        self.assertEqual(self.verify(board), 2 * 7 * len(windows_of(SENT)))
        board.restart()
        until(lambda: board.is_current("hub"), "the start is over")
        self.assertEqual(board.status("hub")["thinned_sent"], lost)

        # From within a window: it goes as a whole, as it does here, and no other one.
        cut = TIMES[SENT + 30]
        self.assertNotEqual(cut, window_of(cut))
        erased = self.erased(board, "a/m.f", "--from", self.at(cut), "--to", self.at(cut + 3 * MINUTE))
        until(lambda: self.states(board, erased["id"])["hub"] == "confirmed", "the range is erased there")
        gone = {self.text(window_of(cut) + i * MINUTE) for i in range(4)}
        left = {key: value for key, value in wanted.items()
                if key[0] != "a" or key[1] == "m.f" or key[2] not in gone}
        self.assertEqual(len(wanted) - len(left), 4 * 7)
        self.assertEqual(self.there(hub), left)
        self.verify(board)
        erased = self.erased(board, "a/m.f")
        until(lambda: self.states(board, erased["id"])["hub"] == "confirmed", "the series is erased there")
        left = {key: value for key, value in wanted.items() if key[0] != "a"}
        self.assertEqual(self.there(hub), left)
        board.restart()
        board.write([f"m,host=c f=1 {time.time_ns()}"])
        until(lambda: len(self.there(hub)) == len(left) + 1, "what is new goes on")
        until(lambda: board.is_current("hub"), "and nothing else")
        self.assertEqual(len(self.there(hub)), len(left) + 1)

        board.set_targets("")
        board.reload()
        self.assertEqual(board.status("hub")["thinned_sent"], lost)
        done = board.place.cli("forward", "forget", "hub")
        self.assertEqual(done.returncode, 0, done.stderr)
        board.set_targets(target("hub", "edgecase", proxy.port))
        board.reload()
        self.assertEqual(board.status("hub")["thinned_sent"], 0)

    def columns(self, devices, windows):
        return {(device, "m.f_" + name, self.text(begin)): value for device in devices
                for begin, values in windows.items() for name, value in columns_of(values).items()}

    def test_a_thinned_target_gets_its_windows_of_finer_and_of_coarser_tiers(self):
        for every in ("5s", "10s", "50s"):
            with self.subTest(tier=every):
                hub = self.hub()
                proxy = self.proxy(lambda hub=hub: self.port_of(hub))
                board = Board(self, target("hub", "edgecase", proxy.port, 'every = "10s"'))
                self.write(board, "a", 0, SENT)
                self.write(board, "b", 0, SENT)
                first = self.columns("ab", {begin: values for begin, values in windows_of(0, WINDOW).items()
                                            if begin < TIMES[SENT]})
                until(lambda: self.there(hub) == first, "the first is there")
                hub[1].stop()
                lost = self.leave(board, tiers=("--then", every + ":forever"))
                board.restart()
                hub[1] = Daemon(hub[0])
                board.resume("hub")
                coarse = windows_of(SENT, 5 * WINDOW) if every == "50s" else {}
                wanted = {**first, **self.columns("ab", coarse or windows_of(SENT, WINDOW))}
                until(lambda: self.there(hub) == wanted, "the windows are there")
                until(lambda: board.status("hub")["thinned_sent"] == lost, "they are counted")
                self.verify(board)
                self.assertEqual(self.there(hub), wanted)

                # A window that is longer than the target's goes whole, too.
                cut = TIMES[SENT + 40] // WINDOW * WINDOW + WINDOW
                erased = self.erased(board, "a/m.f", "--from", self.at(cut), "--to", self.at(cut + WINDOW))
                until(lambda: self.states(board, erased["id"])["hub"] == "confirmed", "the range is erased there")
                gone = self.text(cut // (5 * WINDOW) * 5 * WINDOW if coarse else cut)
                left = {key: value for key, value in wanted.items() if key[0] != "a" or key[2] != gone}
                self.assertEqual(len(wanted) - len(left), 7)
                self.assertEqual(self.there(hub), left)
                self.verify(board)
                self.erased(board, "a/m.f")
                left = {key: value for key, value in left.items() if key[0] != "a"}
                until(lambda: self.there(hub) == left, "the series is erased there")
                for daemon in (board.daemon, hub[1]):
                    daemon.stop()

    def test_rules_of_a_thinned_target_are_those_of_its_windows(self):
        hub = self.hub()
        proxy = self.proxy(lambda: self.port_of(hub))
        board = Board(self, target("hub", "edgecase", proxy.port, 'every = "10s"\nretention = true'))
        self.thin(board, "--then", "10s:90d", "--then", "1h:forever")
        self.write(board, "a", 0, SENT)
        wanted = {f"a/m.f_{name}": "90d then 1h:forever" for name in COLUMNS}
        until(lambda: self.kept(hub[0]) == wanted, "they are kept as their tier")

    def test_what_is_erased_while_the_target_is_away_never_goes(self):
        hub = self.hub()
        proxy = self.proxy(lambda: self.port_of(hub))
        board = Board(self, target("hub", "edgecase", proxy.port))
        self.write(board, "a", 0, SENT)
        self.write(board, "b", 0, SENT)
        until(lambda: board.is_current("hub"), "the first is there")
        hub[1].stop()
        self.leave(board)
        self.erased(board, "a/m.f")
        cut = window_of(TIMES[SENT + 30])
        self.erased(board, "b/m.f", "--from", self.at(cut))
        hub[1] = Daemon(hub[0])
        board.resume("hub")
        wanted = {key: value for key, value in self.wanted(["b"]).items() if key[2] < self.text(cut)}
        until(lambda: self.there(hub) == wanted, "what is left is there")
        until(lambda: board.is_current("hub"), "and that is all")
        self.assertEqual(self.there(hub), wanted)
        self.verify(board)

    def test_a_range_of_what_has_gone_here_takes_the_windows_that_it_holds_and_cuts(self):
        hub = self.hub()
        proxy = self.proxy(lambda: self.port_of(hub))
        board = Board(self, target("hub", "edgecase", proxy.port))
        self.write(board, "a", 0, SENT)
        self.write(board, "b", 0, SENT)
        until(lambda: board.is_current("hub"), "the first is there")
        hub[1].stop()
        self.leave(board)
        hub[1] = Daemon(hub[0])
        board.resume("hub")
        wanted = self.wanted()
        until(lambda: self.there(hub) == wanted, "the windows are there")
        # It may not erase there, so the series goes here alone, names and all.
        proxy.answer = (403, {}, b"")
        erased = self.erased(board, "a/m.f")
        until(lambda: self.states(board, erased["id"])["hub"] == "not possible", "it is told")
        proxy.answer = None
        board.restart()
        board.resume("hub")
        cut = TIMES[SENT + 30]
        erased = self.erased(board, "a/m.f", "--from", self.at(cut), "--to", self.at(cut + 3 * MINUTE))
        until(lambda: self.states(board, erased["id"])["hub"] == "confirmed", "the range is erased there")
        gone = {self.text(window_of(cut) + i * MINUTE) for i in range(4)}
        left = {key: value for key, value in wanted.items()
                if key[0] != "a" or key[1] == "m.f" or key[2] not in gone}
        self.assertEqual(len(wanted) - len(left), 4 * 7)
        self.assertEqual(self.there(hub), left)
        erased = self.erased(board, "a/m.f")
        until(lambda: self.states(board, erased["id"])["hub"] == "confirmed", "all of it is erased there")
        self.assertEqual(self.there(hub), {key: value for key, value in wanted.items() if key[0] != "a"})

    def test_a_target_that_rests_or_is_paused_gets_what_became_windows(self):
        for is_paused in (False, True):
            with self.subTest(is_paused=is_paused):
                hub = self.hub()
                proxy = self.proxy(lambda hub=hub: self.port_of(hub))
                hub_target = target("hub", "edgecase", proxy.port)
                board = Board(self, hub_target)
                self.write(board, "a", 0, SENT)
                self.write(board, "b", 0, SENT)
                until(lambda: board.is_current("hub"), "the first is there")
                if is_paused:
                    self.assertEqual(board.place.cli("forward", "pause", "hub").returncode, 0)
                else:
                    board.set_targets("")
                    board.reload()
                lost = self.leave(board)
                board.restart()
                self.assertEqual(board.status("hub")["state"], "paused" if is_paused else "not configured")
                board.set_targets(hub_target)
                board.reload()
                board.resume("hub")
                until(lambda: self.there(hub) == self.wanted(), "the windows are there")
                until(lambda: board.status("hub")["thinned_sent"] == lost, "they are counted")
                self.verify(board)
                for daemon in (board.daemon, hub[1]):
                    daemon.stop()

    def test_what_becomes_windows_late_goes_and_verify_mends_what_is_lost(self):
        hub = self.hub()
        proxy = self.proxy(lambda: self.port_of(hub))
        board = Board(self, target("hub", "edgecase", proxy.port))
        self.write(board, "a", 0, SENT)
        until(lambda: board.is_current("hub"), "the first is there")
        hub[1].stop()
        lost = self.leave(board, ["a"])
        hub[1] = Daemon(hub[0])
        board.resume("hub")
        wanted = self.wanted(["a"])
        until(lambda: self.there(hub) == wanted, "the windows are there")
        hub[1].stop()
        # Its tiers go, and with them the windows here; a reading comes late, and tiers again.
        done = board.place.cli("retention", "set", "*/*", "forever", "--yes")
        self.assertEqual(done.returncode, 0, done.stderr)
        late = window_of(TIMES[SENT]) - 30 * MINUTE

        def comes_late():
            board.daemon.request("POST", "/write?precision=ns&db=default", f"m,host=a f=7 {late + SECOND}")
            rows = board.daemon.request("GET", "/api/v1/query?select=a/*&format=ndjson&to=" + self.text(late + MINUTE))
            return rows[1].strip() != ""
        until(comes_late, "nothing refuses it any more")
        self.thin(board)
        until(lambda: board.status("hub")["unsent"]["thinned"] == lost + 1, "it has become a window")
        hub[1] = Daemon(hub[0])
        board.resume("hub")
        for name, value in columns_of([7.0]).items():
            wanted["a", "m.f_" + name, self.text(late)] = value
        until(lambda: self.there(hub) == wanted, "its window goes, too")
        until(lambda: board.status("hub")["thinned_sent"] == lost + 1, "it is counted")
        self.assertEqual(self.verify(board), 7)
        # As if it had been lost there.
        done = hub[0].cli("erase", "a/m.f_*", "--from", self.at(late), "--to", self.at(late + MINUTE),
                          "--yes", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        done = hub[0].cli("erase", "--lift", str(json.loads(done.stdout)["id"]), "--yes")
        self.assertEqual(done.returncode, 0, done.stderr)
        done = board.place.cli("forward", "verify", "hub", "--json")
        self.assertEqual(json.loads(done.stdout)["missing"], 7)
        until(lambda: self.there(hub) == wanted, "what is missing goes again")
        self.verify(board)

    def test_whoever_is_killed_nothing_is_missing_or_counted_twice(self):
        hub = self.hub()
        proxy = self.proxy(lambda: self.port_of(hub))
        board = Board(self, target("hub", "edgecase", proxy.port))
        devices = [f"d{i}" for i in range(40)]
        for device in devices:
            self.write(board, device, 0, SENT)
        until(lambda: board.is_current("hub"), "the first is there")
        hub[1].stop()
        lost = self.leave(board, devices)
        wanted = self.wanted(devices)
        hub[1] = Daemon(hub[0])
        for _ in range(4):
            board.restart(signal.SIGKILL)
            board.resume("hub")
            hub[1].stop(signal.SIGKILL)
            hub[1] = Daemon(hub[0])
        until(lambda: self.there(hub) == wanted, "all windows are there")
        until(lambda: board.status("hub")["thinned_sent"] == lost, "each is counted once")
        self.verify(board)

    def test_rules_go_along_with_the_columns(self):
        hub = self.hub()
        proxy = self.proxy(lambda: self.port_of(hub))
        board = Board(self, target("hub", "edgecase", proxy.port, "retention = true"))
        self.write(board, "a", 0, SENT)
        until(lambda: board.is_current("hub"), "the first is there")
        hub[1].stop()
        self.leave(board, ["a"])
        self.thin(board, "--then", "1m:90d", "--then", "1h:forever")
        hub[1] = Daemon(hub[0])
        board.resume("hub")
        wanted = {f"a/m.f_{name}": "90d then 1h:forever" for name in COLUMNS}
        wanted["a/m.f"] = "1h then 1m:90d then 1h:forever"
        until(lambda: self.kept(hub[0]) == wanted, "columns are kept as their tier")
        self.thin(board, "--then", "1m:30d", "--then", "1h:forever")
        until(lambda: self.kept(hub[0])["a/m.f_min"] == "30d then 1h:forever", "a change goes, too")

    def test_refused_windows_go_once_that_is_mended(self):
        hub = self.hub()
        proxy = self.proxy(lambda: self.port_of(hub))
        board = Board(self, target("hub", "edgecase", proxy.port))
        self.write(board, "a", 0, SENT)
        until(lambda: board.is_current("hub"), "the first is there")
        hub[1].stop()
        self.leave(board, ["a"])
        proxy.refused_word = b"m.f_min"
        hub[1] = Daemon(hub[0])
        board.resume("hub")
        count = len(windows_of(SENT))
        until(lambda: board.status("hub")["undelivered"] == count, "one column is refused")
        until(lambda: board.is_current("hub"), "the others are there")
        self.assertEqual(len(self.there(hub)), len(self.wanted(["a"])) - count)
        proxy.refused_word = None
        board.resume("hub", "--undelivered")
        until(lambda: self.there(hub) == self.wanted(["a"]), "it goes again")
        self.verify(board)

    @unittest.skipUnless(INFLUXD, "there is no influxd")
    def test_influxdb_gets_columns_and_loses_them(self):
        influxd = Influxd()
        self.addCleanup(influxd.stop)
        select(influxd.port, 'CREATE DATABASE "default"')
        board = Board(self, target("hub", "influx", influxd.port))
        for device in ("a", "b"):
            self.write(board, device, 0, SENT)
        until(lambda: len(select(influxd.port, "SELECT f FROM m")) == 2 * SENT, "the first is there")
        influxd.kill()
        # What was answered may be forgotten there still, so its windows go, too.
        lost = self.leave(board)
        influxd.start()
        board.resume("hub")
        names = ", ".join(f"f_{name}" for name in COLUMNS)

        def rows(device):
            return sorted(tuple(json.loads(row)) for row in
                          select(influxd.port, f"SELECT {names} FROM m WHERE host = '{device}' AND time >= "
                                 f"{window_of(TIMES[SENT])}"))
        wanted = sorted((begin, *(columns_of(values)[name] for name in COLUMNS))
                        for begin, values in windows_of(SENT).items())
        until(lambda: rows("a") == wanted and rows("b") == wanted, "the windows are there")
        until(lambda: board.status("hub")["thinned_sent"] == lost, "they have settled, and are counted")
        self.verify(board)
        cut = TIMES[SENT + 30]
        erased = self.erased(board, "a/m.f", "--from", self.at(cut), "--to", self.at(cut + 3 * MINUTE))
        until(lambda: self.states(board, erased["id"])["hub"] in ("requested", "confirmed"), "a range is asked for")
        left = [row for row in wanted if not window_of(cut) <= row[0] < cut + 3 * MINUTE]
        self.assertEqual(len(wanted) - len(left), 4)
        self.assertEqual((rows("a"), rows("b")), (left, wanted))
        erased = self.erased(board, "a/m.f")
        until(lambda: self.states(board, erased["id"])["hub"] in ("requested", "confirmed"), "the series is asked for")
        self.assertEqual(select(influxd.port, "SELECT * FROM m WHERE host = 'a'"), [])
        self.assertEqual(rows("b"), wanted)


if __name__ == "__main__":
    unittest.main()
