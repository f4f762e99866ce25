#!/usr/bin/env python3
"""The first hour: what people type, and what answers the mistakes that they make most; and who comes from 0.1.0."""
import fcntl
import json
import os
import pty
import re
import select
import shutil
import socket
import struct
import subprocess
import tarfile
import termios
import unittest

from daemon_process import PROGRAM, TIME_LIMIT_SECONDS, Daemon, Place, clean_environment, run

T0 = "2026-11-20T14:00:00Z"


class FirstHour(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place = Place()
        cls.addClassCleanup(cls.place.remove)
        cls.daemon = Daemon(cls.place)
        cls.addClassCleanup(lambda: cls.daemon.stop())
        for i in range(15):
            cls.write("kitchen/temp", str(20 + i), f"2026-11-20T14:{i:02}:00Z")
        cls.write("kitchen/humidity", "55", "2026-11-20T13:00:00Z")
        cls.write("boiler/temp", "70", "2026-11-20T12:00:00Z")

    @classmethod
    def write(cls, series, value, time):
        result = cls.place.cli("write", series, value, "--time", time)
        assert result.returncode == 0, result.stderr

    def ok(self, *arguments, **more):
        result = self.place.cli(*arguments, **more)
        self.assertEqual(result.returncode, 0, (arguments, result.stdout, result.stderr))
        return result.stdout

    def values(self, *arguments):
        return [json.loads(line)["value"] for line in self.ok(*arguments, "--format", "ndjson").splitlines()]

    def test_mistakes_that_a_daemon_knows_of(self):
        """Each answers in one or two lines, the second of which is the right command."""
        directory = os.path.join(self.place.path, "home")
        for name in ("kitchen/a", "boiler/b", "loft/c", "loft/d", "old.txt", "old.tsv"):
            path = os.path.join(directory, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8"):
                pass
        for typed, code, line in (
                # Names that are not there, but others that are near.
                (("query", "kitchn/temp"), 3, "query kitchen/temp"),
                (("query", "Kitchen/Temp"), 3, "query kitchen/temp"),
                (("query", "kitchen.temp"), 0, "query kitchen/temp"),
                (("query", "kitchen/tmp", "--desc"), 3, "query kitchen/temp --desc"),
                (("query", "kitchen/xyzzy"), 3, "query 'kitchen/*'"),
                (("last", "kichen"), 0, "last 'kitchen/*'"),
                (("last", "humidity"), 0, "last '*/humidity'"),
                (("plot", "kitchn"), 3, "plot 'kitchen/*'"),
                (("get", "kitchn/temp"), 3, "get kitchen/temp"),
                (("series", "kitchn"), 0, "series 'kitchen/*'"),
                (("where", "kitchn/temp"), 3, "where kitchen/temp"),
                (("export", "kitchn/temp"), 3, "export kitchen/temp"),
                (("device", "show", "kitchn"), 3, "device show kitchen"),
                (("erase", "kitchn/temp"), 3, "erase kitchen/temp"),
                (("query", "kitchen/temp", "boilr/temp"), 6, "query kitchen/temp boiler/temp"),
                # Quotes that were lost: the shell made names of files of `*/*`, `loft/*` and `*`.
                (("query", "boiler/b", "kitchen/a", "loft/c", "loft/d"), 3, "query '*/*'"),
                (("last", "loft/c", "loft/d"), 3, "last 'loft/*'"),
                (("query", "old.txt"), 0, "query '*/*'"),
                # Quotes around too much.
                (("query", "kitchen --since 1h --desc"), 0, "query kitchen --since 1h --desc"),
                # Lists and wildcards of others, and counts as `tail` has them.
                (("query", "kitchen,boiler"), 0, "query kitchen boiler"),
                (("query", "{kitchen,boiler}/temp"), 3, "query kitchen/temp boiler/temp"),
                (("query", "kitchen/#"), 3, "query 'kitchen/*'"),
                (("query", "+/temp"), 3, "query '*/temp'"),
                (("query", "kitchen/.*"), 0, "query 'kitchen/*'"),
                (("query", "kitchen", "-n", "10"), 3, "query kitchen --limit 10"),
                (("query", "-5"), 0, "query '*/*' --limit=5"),
                # Files whose names do not tell what they hold.
                (("import", "old.txt"), 2, "import old.txt --format csv"),
                (("import", "old.tsv"), 2, "import old.tsv --format csv --delimiter tab"),
                # Nothing to read allows nothing.
                (("token", "create"), 2, "token create --read '*/*'"),
                (("token", "create", "--admin", "--expires", "90"), 2, "token create --admin --expires 90d"),
                (("token", "create", "--admin", "--expires", "2030"), 2, "token create --admin --expires 2030-01-01")):
            with self.subTest(typed=typed):
                result = self.place.cli(*typed, cwd=directory)
                self.assertEqual(result.returncode, code, result.stderr)
                self.assertTrue(result.stderr.endswith(f"\n  try: edgecase {line}\n"), result.stderr)

    def test_daemons_that_do_not_answer(self):
        with socket.socket() as listener:
            listener.bind(("localhost", 0))
            port = listener.getsockname()[1]
        for arguments, code, says in (
                (("status", "--socket", "/nowhere/s"), 5, "sudo systemctl start edgecased"),
                (("status", "--host", f"localhost:{port}"), 5, "It is 8650 unless http.listen says otherwise"),
                (("status", "--host", f"https://localhost:{self.daemon.port()}"), 5,
                 f"without TLS: --host http://localhost:{self.daemon.port()}"),
                (("status", "--host", "nohost.invalid:8650"), 5, "is not known"),
                (("last", "--host", f"localhost:{self.daemon.port()}", "--token", "another"), 4,
                 "it may be another store's. edgecase token create makes one"),
                (("last", "--host", "ftp://localhost"), 2, "use http://HOST:PORT")):
            with self.subTest(arguments=arguments):
                result = self.place.cli(*arguments)
                self.assertEqual(result.returncode, code, result.stderr)
                self.assertIn(says, result.stderr)
                self.assertEqual(result.stderr.count("\n"), 1)
        # Without a scheme it is http, as for curl.
        self.assertIn("kitchen", self.ok("last", "--host", f"localhost:{self.daemon.port()}"))

    @unittest.skipIf(os.geteuid() != 0, "only root can be somebody else")
    def test_who_may_not_use_the_socket_is_told_how(self):
        mode = os.stat(self.place.path).st_mode
        os.chmod(self.place.path, 0o755)
        try:
            result = subprocess.run([PROGRAM, "last", "--socket", self.place.socket], capture_output=True, text=True,
                                    user=65534, group=65534, extra_groups=[], env=clean_environment(),
                                    timeout=TIME_LIMIT_SECONDS, check=False)
        except PermissionError:
            self.skipTest("the program cannot be run by somebody else")
        finally:
            os.chmod(self.place.path, mode)
        if result.returncode == 0:
            self.skipTest("the socket is open to everybody here")
        self.assertEqual(result.returncode, 4, result.stderr)
        self.assertIn("try: sudo usermod -aG ", result.stderr)

    def test_a_window_without_readings_says_where_the_newest_is(self):
        result = self.place.cli("query", "kitchen/temp", "--since", "1ms")
        self.assertEqual(result.stdout, "namespace,device,sensor,time,value,type\n")
        self.assertRegex(result.stderr,
                         r"^No readings there; the newest is of 2026-11-20T14:14:00Z, \d+[smhd] ago\.\n$")
        result = self.place.cli("query", "kitchen", "boiler/temp", "--since", "1ms", "--format", "table",
                                "--tz", "+01:00")
        self.assertIn("the newest is of 2026-11-20T15:14:00+01:00", result.stderr)
        self.assertEqual(self.place.cli("query", "kitchen/temp", "--since", "100y").stderr, "")

    def test_aggregates_have_their_other_names(self):
        for name, value in (("avg", 27), ("MEAN", 27), ("maximum", 34), ("median", 27), ("total", 405)):
            self.assertEqual(self.values("query", "kitchen/temp", "--every", "1D", "--agg", name), [value])
        status, text = self.daemon.request("GET", "/api/v1/query?select=kitchen/temp&every=1d&agg=avg")
        self.assertEqual((status, json.loads(text)["value"]), (200, 27))
        status, text = self.daemon.request("GET", "/api/v1/query?select=kitchen/temp&every=1d&agg=maen")
        self.assertEqual(status, 400)
        self.assertIn("did you mean mean?", text)

    def test_options_stand_anywhere(self):
        for typed in (("-n", "default", "query", "kitchen/temp", "--limit", "1"),
                      ("--limit", "1", "query", "-n", "default", "kitchen/temp"),
                      ("query", "--limit", "1", "kitchen/temp", "-n", "default")):
            self.assertEqual(self.values(*typed), [20])

    def test_a_shell_is_told_the_names_there_are(self):
        self.assertEqual(self.ok("completion", "names", "k"), "kitchen/\n")
        self.assertEqual(self.ok("completion", "names", "kitchen/t"), "kitchen/temp\n")
        self.assertEqual(self.ok("completion", "names", "--devices"), "boiler\nkitchen\n")
        self.assertEqual(self.ok("completion", "names", "--", "-x"), "")
        nobody = self.place.cli("completion", "names", "k", "--socket", "/nowhere")
        self.assertEqual((nobody.returncode, nobody.stdout, nobody.stderr), (0, "", ""))

    def test_the_shells_take_what_teaches_them_to_complete(self):
        for shell in ("bash", "zsh", "fish"):
            if shutil.which(shell) is None:
                print(f"skipped: {shell} is not installed")
                continue
            script = self.ok("completion", shell)
            told = subprocess.run([shell, "-n", "/dev/stdin"], input=script, capture_output=True, text=True,
                                  timeout=TIME_LIMIT_SECONDS)
            self.assertEqual((told.returncode, told.stdout + told.stderr), (0, ""))
        asked = "\n".join((self.ok("completion", "bash"), "COMP_WORDS=(edgecase last kitchen/t)", "COMP_CWORD=2",
                           "_edgecase", 'echo "${COMPREPLY[*]}"'))
        named = {"EDGECASE_HTTP_SOCKET": self.place.socket,
                 "PATH": f"{os.path.dirname(PROGRAM)}:{os.environ['PATH']}"}
        told = subprocess.run(["bash", "--norc"], input=asked, capture_output=True, text=True,
                              timeout=TIME_LIMIT_SECONDS, env=clean_environment(named))
        self.assertEqual((told.stdout, told.stderr), ("kitchen/temp\n", ""))

    def test_tail_begins_with_the_newest(self):
        lines = self.ok("tail", "*/*", "--lines", "3", "--limit", "3", "--format", "ndjson").splitlines()
        self.assertEqual([json.loads(line)["value"] for line in lines], [32, 33, 34])
        lines = self.ok("tail", "*/*", "--lines", "17", "--limit", "17", "--format", "ndjson").splitlines()
        self.assertEqual([json.loads(line)["value"] for line in lines][:3], [70, 55, 20])
        # Where somebody looks, ten; and then what comes.
        master, terminal = pty.openpty()
        process = subprocess.Popen([PROGRAM, "tail", "kitchen/temp"], stdout=terminal, stderr=terminal,
                                   env=clean_environment({"EDGECASE_HTTP_SOCKET": self.place.socket}))
        os.close(terminal)
        try:
            shown = self.read_until(master, "34")
            self.assertEqual(re.findall(r" (\d\d)\r", shown), [str(25 + i) for i in range(10)])
            self.write("kitchen/temp", "99", "2026-11-20T13:59:00Z")
            self.assertIn("99", self.read_until(master, "99"))
        finally:
            process.terminate()
            process.wait(TIME_LIMIT_SECONDS)
            os.close(master)
            self.ok("erase", "kitchen/temp", "--from", "2026-11-20T13:59:00Z", "--to", T0, "--yes")

    def test_tail_says_when_nothing_is_called_so(self):
        for typed, says in ((("kitchn",), "in namespace default yet (did you mean 'kitchen/*'?); what comes"),
                            (("kitchen", "-n", "5"), "Nothing of that is there in namespace 5 yet; what comes")):
            with subprocess.Popen([PROGRAM, "tail", *typed], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  env=clean_environment({"EDGECASE_HTTP_SOCKET": self.place.socket})) as process:
                try:
                    self.assertIn(says, self.read_until(process.stderr.fileno(), "\n"))
                finally:
                    process.terminate()

    def test_status_watch_stays_on_a_small_terminal(self):
        master, terminal = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 5, 80, 0, 0))
        with subprocess.Popen([PROGRAM, "status", "--watch", "1"], stdout=terminal, stderr=terminal,
                              env=clean_environment({"EDGECASE_HTTP_SOCKET": self.place.socket})) as process:
            try:
                os.close(terminal)
                shown = self.read_until(master, "\x1b[J")
                shown += self.read_until(master, "\x1b[J")
                first = shown.split("\x1b[J")[1]
                self.assertIn("EdgeCase", first)
                self.assertEqual(first.count("\n"), 4, first)
            finally:
                process.terminate()
                os.close(master)

    def test_devices_of_many_sensors_are_told_apart_on_a_terminal(self):
        self.write("greenhouse/temperature", "1", "2026-11-20T14:00:00.123456789Z")
        self.write("greenhouse/humidity", "1", "1969-11-20T14:00:00.123456789Z")
        master, terminal = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        with subprocess.Popen([PROGRAM, "series", "greenhouse"], stdout=terminal, stderr=terminal,
                              env=clean_environment({"EDGECASE_HTTP_SOCKET": self.place.socket})) as process:
            os.close(terminal)
            shown = self.read_until(master, "greenhouse/tem")
            process.wait(TIME_LIMIT_SECONDS)
            os.close(master)
        self.assertIn("greenhouse/humi", shown)
        self.assertNotIn(".123456789", shown)
        self.assertIn(".123456789", self.ok("series", "greenhouse"))
        self.ok("erase", "greenhouse", "--yes")

    def read_until(self, descriptor, wanted):
        """What a terminal shows, until `wanted` stands in it."""
        text = ""
        while wanted not in text:
            self.assertTrue(select.select([descriptor], [], [], TIME_LIMIT_SECONDS)[0], text)
            text += os.read(descriptor, 65536).decode()
        return text


class Upgrade(unittest.TestCase):
    """A store that 0.1.0 wrote, before series had identities: tests/golden/store-0.1.0.tar.gz."""

    TOKEN = "ec1_6142375406_f3bfab0c0b97b8ed29464c5b24df8420d79da967f7247057670b90cb8397c8a0"

    def setUp(self):
        self.place = Place()
        self.addCleanup(self.place.remove)
        golden = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden", "store-0.1.0.tar.gz")
        with tarfile.open(golden) as archive:
            archive.extractall(self.place.path)
        os.rename(os.path.join(self.place.path, "metadata"), os.path.join(self.place.path, "meta"))

    def cli(self, *arguments, code=0, **more):
        result = self.place.cli(*arguments, **more)
        self.assertEqual(result.returncode, code, (arguments, result.stdout, result.stderr))
        return result.stdout

    def test_everything_of_it_is_there_and_goes_on(self):
        daemon = Daemon(self.place)
        self.addCleanup(lambda: daemon.stop())
        lines = self.cli("query", "*/*", "-A", "--purpose", "comfort", "--format", "ndjson").splitlines()
        readings = [json.loads(line) for line in lines]
        self.assertEqual(
            [(f"{r['namespace']}/{r['device']}/{r['sensor']}", r["value"]) for r in readings],
            [("default/door/photo", "cmF3AGJ5dGVz"), ("default/kitchen/count", -42), ("default/kitchen/note", "Grüße"),
             ("default/kitchen/open", True)] + [("default/kitchen/temp", 20.5 + i) for i in range(10)] +
            [("default/old/temp", 5), ("default/pi/cpu.cpu0.usage_idle", 98.5), ("plant/press/force", 7)])
        self.assertEqual(readings[0]["content_type"], "image/jpeg")
        self.assertEqual(self.cli("get", "door/photo"), "raw\0bytes")
        # What is said of devices, rules, tokens, certificates of erasures, the audit log.
        device = json.loads(self.cli("device", "show", "kitchen", "--json"))
        self.assertEqual((device["owner"], device["purposes"], device["labels"]),
                         ("alice", ["comfort"], {"floor": "1"}))
        rules = json.loads(self.cli("retention", "list", "--json"))["rules"]
        self.assertEqual([rule["select"] for rule in rules], ["old/*"])
        self.assertEqual(len(json.loads(self.cli("erase", "--list", "--json"))["erasures"]), 1)
        self.cli("audit", "--verify")
        host = f"http://localhost:{daemon.port()}"
        seen = self.cli("last", "kitchen/temp", "--host", host, "--token", self.TOKEN, "--purpose", "comfort")
        self.assertIn(",29.5,", seen)
        self.cli("last", "old", "--host", host, "--token", self.TOKEN, code=4)
        # A line whose name 0.1.0 derived continues that series.
        path = os.path.join(self.place.path, "more.line")
        with open(path, "w", encoding="utf-8") as file:
            file.write("cpu,host=pi,cpu=cpu0 usage_idle=97 1763647260000000000\n")
        self.cli("import", path)
        self.assertIn(",97,", self.cli("last", "pi"))
        self.assertEqual(json.loads(self.cli("series", "pi", "--json"))["series"][0]["sensor"], "cpu.cpu0.usage_idle")
        daemon.stop()
        self.cli("check", "--config", self.place.config)

    def test_a_newer_store_is_refused_in_words(self):
        path = os.path.join(self.place.path, "meta", "IDENTITY")
        with open(path, "r+b") as file:
            file.seek(8)
            file.write((99).to_bytes(4, "little"))
            file.seek(0, os.SEEK_END)
            file.write(b"more than this program knows")
        result = run(["serve", "--config", self.place.config], env=clean_environment())
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("written by a newer version of EdgeCase (format 99)", result.stderr)

    def test_version_is_json_too(self):
        version = json.loads(self.cli("version", "--json"))["version"]
        self.assertEqual(self.cli("version"), f"edgecase {version}\n")
        self.assertRegex(version, r"^\d+\.\d+\.\d+")


if __name__ == "__main__":
    unittest.main()
