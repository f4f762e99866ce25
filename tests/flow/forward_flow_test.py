#!/usr/bin/env python3
"""[[forward]]: whatever happens to the board, the targets and the link, all readings are at the targets in the end.

EDGECASE_TEST_SEED replays what the proxy does and who is killed; printed at each run. EDGECASE_FLOW_ROUNDS gives more
rounds of writing and killing than 8.
"""
import http.client
import json
import os
import random
import re
import shutil
import signal
import subprocess
import time
import unittest
import urllib.parse

from daemon_process import Daemon, Place, until
from influxd import INFLUXD, Influxd
from lying_proxy import LyingProxy
from victoria import VICTORIA, Victoria

HOUR = 3600 * 1_000_000_000
ROUNDS = int(os.environ.get("EDGECASE_FLOW_ROUNDS", "8"))
SEED = int(os.environ.get("EDGECASE_TEST_SEED") or random.SystemRandom().getrandbits(32))


def target(name, scheme, port, more=""):
    return f'[[forward]]\nname = "{name}"\nto = "{scheme}+http://127.0.0.1:{port}"\nselect = ["*:*/*"]\n{more}\n'


def all_readings(daemon):
    """Every reading with all that is said of it, in order."""
    status, text = daemon.request("GET", "/api/v1/query?ns=*&select=*/*&format=ndjson")
    assert status == 200, text
    return sorted(text.splitlines())


def select(port, statement):
    """Rows by series of an InfluxQL statement."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        query = urllib.parse.urlencode({"db": "default", "epoch": "ns", "q": statement})
        connection.request("POST", "/query?" + query)
        results = json.loads(connection.getresponse().read())["results"]
        return sorted(json.dumps(row) for series in results[0].get("series", []) for row in series["values"])
    finally:
        connection.close()


class Board:
    """A daemon with targets, which may be killed and started again."""

    def __init__(self, case, targets):
        self.place = Place()
        case.addCleanup(self.place.remove)
        self.set_targets(targets)
        self.daemon = Daemon(self.place)
        case.addCleanup(lambda: self.daemon.stop())
        self.written = 0

    def set_targets(self, targets):
        self.place.write_config(more=targets)

    def restart(self, how=signal.SIGKILL):
        self.daemon.stop(how)
        self.daemon = Daemon(self.place)

    def reload(self):
        count = self.daemon.log().count("configuration read again")
        self.daemon.process.send_signal(signal.SIGHUP)
        until(lambda: self.daemon.log().count("configuration read again") > count, "the configuration is read")

    def write(self, lines):
        status, text = self.daemon.request("POST", "/write?precision=ns", "\n".join(lines))
        assert status == 204, text

    def write_some(self, count):
        """Lines of every type, of few devices; every tenth corrects one before."""
        lines = []
        for _ in range(count):
            i = self.written
            at = i - 7 if i % 10 == 9 else i
            lines.append(f'm,host=h{at % 5} f={i}.5,n={i}i,s="text {i}",b={"true" if i % 2 else "false"} {at + 1}')
            self.written += 1
        self.write(lines)

    def status(self, name):
        status, text = self.daemon.request("GET", "/api/v1/forward?name=" + name)
        assert status == 200, text
        return json.loads(text)

    def is_current(self, name):
        status = self.status(name)
        return status["state"] == "current" and status["waiting_at_most"] == 0

    def resume(self, name, *more):
        done = self.place.cli("forward", "resume", name, *more)
        assert done.returncode == 0, done.stderr


class ForwardFlow(unittest.TestCase):
    def proxy(self, upstream, **more):
        proxy = LyingProxy(upstream, **more)
        self.addCleanup(proxy.stop)
        return proxy

    def hub(self):
        """Another EdgeCase, as [place, daemon]."""
        place = Place()
        self.addCleanup(place.remove)
        hub = [place, Daemon(place)]
        self.addCleanup(lambda: hub[1].stop())
        return hub

    @staticmethod
    def port_of(hub):
        """Of a hub that may be starting; 1, where nobody listens, until it tells."""
        try:
            return hub[1].port()
        except AttributeError:
            return 1

    def test_all_arrives_whatever_happens(self):
        chance = random.Random(SEED)
        hub = self.hub()
        hub_proxy = self.proxy(lambda: self.port_of(hub), random=random.Random(SEED + 1), fault_rate=0.5)
        targets = target("hub", "edgecase", hub_proxy.port, 'from = "beginning"')
        kills = ["board", "hub", "nobody", "board gently"]
        influxd = None
        if INFLUXD:
            influxd = Influxd()
            self.addCleanup(influxd.stop)
            select(influxd.port, 'CREATE DATABASE "default"')
            influx_proxy = self.proxy(lambda: influxd.port, random=random.Random(SEED + 2), fault_rate=0.5)
            targets += target("influx", "influx", influx_proxy.port, 'from = "beginning"')
            kills.append("influxd")
        board = Board(self, targets)
        for number in range(ROUNDS):
            for _ in range(4):
                asked = hub_proxy.requests
                board.write_some(60)
                until(lambda asked=asked: hub_proxy.requests > asked, f"seed {SEED}: it is sent, or tried")
            whom = kills[number] if number < len(kills) else chance.choice(kills)
            if whom == "board":
                board.restart()
            elif whom == "board gently":
                board.restart(signal.SIGTERM)
            elif whom == "hub":
                hub[1].stop(signal.SIGKILL)
                board.write_some(60)
                hub[1] = Daemon(hub[0])
            elif whom == "influxd":
                influxd.kill()
                board.write_some(60)
                influxd.start()
        # What has no line form, and what is large, goes to an EdgeCase as it is.
        status, text = board.daemon.request("POST", "/api/v1/readings", json.dumps(
            [{"device": "k/1".replace("/", "\\"), "sensor": "t", "value": 5, "type": "int", "time": 5},
             {"device": "odd \\", "sensor": "s,=", "value": "a\nb", "time": 6, "namespace": "lab"}]))
        self.assertEqual(status, 200, text)
        status, text = board.daemon.request("PUT", "/api/v1/blob/default/camera/image?time=7", "\x00\x01" * 40_000)
        self.assertEqual(status, 201, text)
        for proxy in [hub_proxy] + ([influx_proxy] if influxd else []):
            proxy.random = None
        names = ["hub"] + (["influx"] if influxd else [])
        for name in names:
            until(lambda name=name: board.is_current(name), f"seed {SEED}: {name} has everything", 120)
        print(f"seed {SEED}: {board.written} lines; faults at the hub {hub_proxy.faults}", flush=True)
        self.assertEqual(all_readings(hub[1]), all_readings(board.daemon), f"seed {SEED}")
        self.assertEqual(board.status("hub")["undelivered"], 0)
        if influxd:
            statement = "SELECT * FROM m"
            self.assertEqual(select(influxd.port, statement), select(board.daemon.port(), statement), f"seed {SEED}")
            self.assertGreaterEqual(board.status("influx")["unfit"], 1)  # the image

    def test_a_bad_line_costs_itself_and_goes_once_it_is_mended(self):
        hub = self.hub()
        proxy = self.proxy(lambda: self.port_of(hub))
        proxy.refused_word = b"poison"
        board = Board(self, target("hub", "edgecase", proxy.port))
        lines = [f"m,host=h{i % 3} f={i} {i + 1}" for i in range(300)]
        lines[100] = "m,host=poison f=1 5"
        board.write(lines)
        until(lambda: board.is_current("hub"), "the others are there")
        status = board.status("hub")
        self.assertEqual((status["undelivered"], status["undelivered_kept"]), (1, 1))
        self.assertEqual(status["undelivered_readings"][0]["device"], "poison")
        self.assertEqual(len(all_readings(hub[1])), 299)
        self.assertIn("poison", board.place.cli("forward", "status", "hub").stdout)
        board.restart()
        proxy.refused_word = None
        board.resume("hub", "--undelivered")
        until(lambda: board.status("hub")["undelivered_kept"] == 0, "it is sent again")
        self.assertEqual(all_readings(hub[1]), all_readings(board.daemon))

    def test_what_is_no_target_is_told_and_costs_nothing(self):
        hub = self.hub()
        proxy = self.proxy(lambda: self.port_of(hub))
        cases = [
            ((200, {"Content-Type": "text/html"}, b"<html>"), "wrong", "not as EdgeCase does"),
            ((204, {}, b""), "wrong", "as no EdgeCase does"),
            ((302, {"Location": "https://elsewhere"}, b""), "wrong", "302 to https://elsewhere"),
            ((401, {}, b"who?"), "denied", "401: who?"),
            ((403, {}, b""), "denied", "token-file"),
            ((404, {}, b""), "wrong", "404"),
            ((400, {}, b"never"), "wrong", "400: never"),
            ((429, {"Retry-After": "3600"}, b""), "waiting", "429"),
            ((500, {"Retry-After": "3600"}, b""), "waiting", "500"),
        ]
        proxy.answer = cases[0][0]
        board = Board(self, target("hub", "edgecase", proxy.port))
        board.write_some(30)
        for given, state, why in cases:
            with self.subTest(given=given):
                proxy.answer = given
                asked = proxy.requests
                board.resume("hub")
                until(lambda asked=asked: proxy.requests > asked, "it is asked")
                told = until(lambda state=state, why=why: (lambda s: s if s["state"] == state and
                                                           why in (s["why"] or "") else None)(board.status("hub")),
                             f"{state}: {why}, not {board.status('hub')}")
                self.assertEqual(told["readings"], 0)
        proxy.answer = None
        board.resume("hub")
        until(lambda: board.is_current("hub"), "all is there")
        self.assertEqual(all_readings(hub[1]), all_readings(board.daemon))
        self.assertEqual(board.status("hub")["undelivered"], 0)

    @unittest.skipUnless(shutil.which("openssl"), "openssl is not installed")
    def test_by_tls_with_a_token_as_edgecase_and_as_influxdb_2(self):
        place = Place()
        self.addCleanup(place.remove)
        certificate, key, token_file = (os.path.join(place.path, name) for name in ("crt", "key", "token"))
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                        "-keyout", key, "-out", certificate, "-days", "3650", "-subj", "/CN=hub", "-addext",
                        "subjectAltName=DNS:localhost,IP:127.0.0.1"], check=True, capture_output=True, timeout=60)
        os.chmod(key, 0o600)
        place.write_config(listen=f'localhost:0"\ntls-cert = "{certificate}"\ntls-key = "{key}')
        hub = Daemon(place)
        self.addCleanup(hub.stop)
        made = place.cli("token", "create", "--write", "*/*", "-n", "*")
        self.assertEqual(made.returncode, 0, made.stderr)
        with open(token_file, "w", encoding="utf-8") as file:
            file.write("ec1_wrong_token\n")
        secure = f'tls-ca = "{certificate}"\ntoken-file = "{token_file}"\n'
        targets = target("hub", "edgecase", hub.port(), secure + 'namespace = "whole"\n').replace("+http:", "+https:")
        targets += target("lines", "influx", hub.port(), secure + 'bucket = "lines"\norg = "o"\n').replace(
            "+http:", "+https:")
        board = Board(self, targets)
        board.write_some(200)
        for name in ("hub", "lines"):
            until(lambda name=name: board.status(name)["state"] == "denied", f"{name} wants another token")
        with open(token_file, "w", encoding="utf-8") as file:
            file.write(re.search(r"ec1_\S+", made.stdout).group(0) + "\n")
        for name in ("hub", "lines"):
            board.resume(name)
            until(lambda name=name: board.is_current(name), f"{name} has everything")
        wanted = [row.replace('"namespace":"default"', "") for row in all_readings(board.daemon)]
        for namespace in ("whole", "lines"):
            text = place.cli("query", "-n", namespace, "*/*", "--format", "ndjson", "--limit", "100000").stdout
            rows = sorted(row.replace(f'"namespace":"{namespace}"', "") for row in text.splitlines())
            self.assertEqual(rows, sorted(wanted), namespace)
        self.assertNotIn("ec1_", board.daemon.log())
        shown = board.place.cli("config", "show", "--config", board.place.config).stdout
        self.assertIn(token_file, shown)
        self.assertNotIn("ec1_", shown)

    def test_targets_come_and_go_without_losing_their_place(self):
        hub = self.hub()
        proxy = self.proxy(lambda: self.port_of(hub))
        board = Board(self, "")
        board.write(["old,host=a f=1 1"])
        wanted = target("hub", "edgecase", proxy.port)
        board.set_targets(wanted)
        board.reload()
        board.write(["m,host=a f=1 2"])
        until(lambda: len(all_readings(hub[1])) == 1, "what is new arrives, what is old does not")
        self.assertEqual(board.place.cli("forward", "pause", "hub").returncode, 0)
        until(lambda: board.status("hub")["state"] == "paused", "it pauses")
        board.write(["m,host=a f=1 3"])
        board.restart()
        self.assertEqual(board.status("hub")["state"], "paused")
        board.set_targets("")
        board.reload()
        self.assertEqual(board.status("hub")["state"], "not configured")
        board.write(["m,host=a f=1 4"])
        board.restart()
        self.assertIn("not configured", board.place.cli("forward", "list").stdout)
        board.set_targets(wanted)
        board.reload()
        self.assertIn("is configured", board.place.cli("forward", "forget", "hub").stderr)
        board.resume("hub")
        until(lambda: len(all_readings(hub[1])) == 3, "what waited arrives")
        board.set_targets("")
        board.reload()
        self.assertEqual(board.place.cli("forward", "forget", "hub").returncode, 0)
        self.assertEqual(board.place.cli("forward", "status", "hub").returncode, 3)


    def test_verify_names_what_is_missing_and_sends_it_again(self):
        hub = self.hub()
        board = Board(self, "")
        board.write(["m,host=a f=1 1"])  # before there is a target: it was not to go
        ports = {"hub": hub[1].port()}
        targets = target("hub", "edgecase", ports["hub"])
        if INFLUXD:
            influxd = Influxd()
            self.addCleanup(influxd.stop)
            select(influxd.port, 'CREATE DATABASE "default"')
            ports["influx"] = influxd.port
            targets += target("influx", "influx", influxd.port)
        victoria = Victoria() if VICTORIA else None
        if victoria:
            self.addCleanup(victoria.stop)
            targets += target("victoria", "influx", victoria.port)
            ports["victoria"] = victoria.port
        board.set_targets(targets)
        board.reload()
        now = time.time_ns() // 1_000_000 * 1_000_000
        for hour in range(3):
            board.write([f'm,host=h{i % 3} f={i}.5,g={i},n={i}i,s="t {i}",b=true {now - hour * HOUR - i * 1_000_000}'
                         for i in range(600)])
        status, text = board.daemon.request("PUT", "/api/v1/blob/default/camera/image?time=7", "\x00\x01" * 100_000)
        self.assertEqual(status, 201, text)
        for name in ports:
            until(lambda name=name: board.is_current(name), f"{name} has everything")

        def verify(name):
            if name == "victoria":
                victoria.show_all()
            done = board.place.cli("forward", "verify", name, "--json")
            self.assertIn(done.returncode, (0, 6), done.stderr)
            document = json.loads(done.stdout)
            self.assertEqual(done.returncode, 6 if document["missing"] else 0)
            return document

        for name in ports:
            until(lambda name=name: verify(name)["missing"] == 0, f"{name} has all")
            whole = verify(name)
            self.assertEqual(whole["readings"], 9000 if name != "victoria" else 7200, name)
            self.assertEqual(whole["unchecked"], 1, name)
        for name in ports:
            wanted = 1000
            if name == "victoria":  # it deletes series, and holds four of five fields of three hours
                wanted = 2400
                connection = http.client.HTTPConnection("127.0.0.1", victoria.port, timeout=60)
                connection.request("POST", "/api/v1/admin/tsdb/delete_series?" +
                                   urllib.parse.urlencode({"match[]": '{host="h1"}'}))
                self.assertEqual(connection.getresponse().status, 204)
                connection.close()
            else:
                select(ports[name], f"DELETE FROM m WHERE host = 'h1' AND time > {now - HOUR // 2}")
            found = verify(name)
            self.assertEqual((found["missing"], found["sent_again"]), (wanted, wanted), name)
            self.assertEqual({each["device"] for each in found["hours"]}, {"h1"})
            self.assertEqual(sum(each["missing"] for each in found["hours"]), wanted)
            until(lambda name=name: verify(name)["missing"] == 0, f"{name} has all again")
        self.assertEqual(board.place.cli("forward", "verify", "nobody").returncode, 3)
        hub[1].stop()
        away = board.place.cli("forward", "verify", "hub")
        self.assertEqual((away.returncode, away.stdout), (1, ""))
        self.assertIn("the target", away.stderr)

    def test_thinned_and_under_pseudonyms(self):
        hub = self.hub()
        shape = 'every = "1s"\npseudonyms = true\nfrom = "beginning"\n'
        board = Board(self, target("hub", "edgecase", hub[1].port(), shape))
        second = 1_000_000_000
        begin = (time.time_ns() // second - 1000) * second
        board.write([f'm,host=h{i % 3} f={i}.5,s="t{i}" {begin + i * second // 4}' for i in range(120)])

        def windows():
            rows = [json.loads(row) for row in all_readings(hub[1])]
            return {(row["device"], row["sensor"], row["time"]): row["value"] for row in rows}

        # Of 30 windows each device has readings; seven columns of a number, three of a text.
        until(lambda: len(windows()) == 3 * 30 * 10, "every window is there")
        whole = windows()
        self.assertNotIn('"h0"', "".join(all_readings(hub[1])))
        devices = {device for device, _, _ in whole}
        self.assertEqual(len(devices), 3)
        self.assertTrue(all(re.fullmatch(r"p[0-9a-f]{24}", device) for device in devices))
        self.assertEqual(sum(value for (_, sensor, _), value in whole.items() if sensor == "m.f_sum"),
                         sum(i + 0.5 for i in range(120)))
        board.write([f"m,host=h0 f=1000 {begin}"])  # a correction: its window goes again
        until(lambda: 1000 in windows().values(), "the corrected window is there")
        self.assertEqual(len(windows()), len(whole))

        def verified():
            done = board.place.cli("forward", "verify", "hub", "--json")
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            return json.loads(done.stdout)["readings"]
        until(lambda: verified() == len(whole), "all of it is verified")

        board.set_targets(target("hub", "edgecase", hub[1].port(), shape.replace("1s", "2s")))
        board.daemon.process.send_signal(signal.SIGHUP)
        until(lambda: "another shape" in board.daemon.log(), "another shape is refused")
        done = board.place.cli("erase", "h0", "--yes", "--wait-targets")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(windows()), len(whole) * 2 // 3)
        done = board.place.cli("forward", "verify", "hub")
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()
