#!/usr/bin/env python3
"""Readings in and out through the command line and HTTP, on one daemon."""
import csv
import io
import json
import os
import re
import signal
import stat
import subprocess
import time
import unittest
import urllib.error
import urllib.request
import xml.etree.ElementTree

from daemon_process import PROGRAM, TIME_LIMIT_SECONDS, Daemon, Place, clean_environment, until

T0 = "2025-11-20T14:00:00.000000000Z"
T1 = "2025-11-20T14:00:01.000000000Z"


class ReadingsFlow(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place = Place()
        started = time.monotonic()
        cls.daemon = Daemon(cls.place)
        print(f"ready after {(time.monotonic() - started) * 1000:.0f} ms, "
              f"{cls.daemon.resident_bytes() / 2**20:.1f} MiB resident")

    @classmethod
    def tearDownClass(cls):
        cls.daemon.stop()
        cls.place.remove()

    def ok(self, *arguments, **more):
        result = self.place.cli(*arguments, **more)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def fails(self, code, *arguments, **more):
        result = self.place.cli(*arguments, **more)
        self.assertEqual(result.returncode, code, (arguments, result.stdout, result.stderr))
        problem = result.stderr.partition("\n  try: edgecase ")[0]
        self.assertEqual(problem.strip().count("\n"), 0, result.stderr)
        return result.stderr

    def test_every_type_comes_back_in_every_format(self):
        values = {"float": "21.5", "int": "-42", "bool": "true", "text": 'say "hi", ü\n2'}
        for kind, value in values.items():
            self.ok("write", f"types/{kind}", value, "--type", kind, "--time", T0)
        self.ok("write", "types/bytes", "raw", "--type", "bytes", "--time", T0)

        rows = list(csv.DictReader(io.StringIO(self.ok("query", "types", "--format", "csv"))))
        self.assertEqual([(r["sensor"], r["value"], r["type"]) for r in rows],
                         [("bool", "true", "bool"), ("bytes", "cmF3", "bytes"),
                          ("float", "21.5", "float"), ("int", "-42", "int"),
                          ("text", values["text"], "text")])
        self.assertEqual(rows[0]["time"], T0)
        self.assertEqual(self.ok("query", "types"), self.ok("query", "types", "--format", "csv"))

        lines = [json.loads(x) for x in self.ok("query", "types", "--format", "ndjson").splitlines()]
        self.assertEqual([x["value"] for x in lines], [True, "cmF3", 21.5, -42, values["text"]])
        self.assertEqual(lines[3]["type"], "int")
        self.assertEqual(json.loads(self.ok("query", "types", "--format", "json")), lines)
        self.assertIn("float,device=types value=21.5 1763647200000000000",
                      self.ok("query", "types", "--format", "line"))
        table = self.ok("query", "types/float", "--format", "table")
        self.assertEqual(table.splitlines(), ["SERIES       TIME                  VALUE",
                                              "types/float  2025-11-20T14:00:00Z   21.5"])

    def test_values_are_guessed_and_read_from_stdin_and_files(self):
        self.ok("write", "guess/a", "-1.5")
        self.ok("write", "guess/b", "false")
        self.ok("write", "guess/c", "-", input="from a pipe\n")
        newest = [json.loads(x) for x in self.ok("last", "guess", "--format", "ndjson").splitlines()]
        for command in ("last", "query"):
            self.assertEqual(json.loads(self.ok(command, "guess", "--json")), newest)
            self.assertEqual(json.loads(self.ok(command, "gues?", "--json", "-A")), newest)
            self.assertEqual(json.loads(self.ok(command, "nobody*", "--json")), [])
            self.fails(2, command, "guess", "--json", "--format", "csv")
        self.assertEqual([x["value"] for x in newest], [-1.5, False, "from a pipe"])

    def test_an_empty_value_is_meant_or_refused(self):
        self.assertIn("--type text", self.fails(2, "write", "empty/x", ""))
        self.assertIn("VALUE or --file", self.fails(2, "write", "empty/x"))
        self.ok("write", "empty/x", "", "--type", "text")
        self.assertEqual(json.loads(self.ok("last", "empty/x", "--format", "ndjson"))["value"], "")
        self.assertIn("names no sensor", self.fails(2, "write", "empty", "5"))
        self.assertIn("say which: list, create, drop", self.fails(2, "namespace"))
        self.assertIn("'tcsh' is none of bash, zsh, fish", self.fails(2, "completion", "tcsh"))
        self.assertIn("did you mean 'query'?", self.fails(2, "qurey"))
        self.assertLess(len(self.fails(2, "query", "empty", "--limit", "-1")), 200)

    def test_outputs_that_are_links_or_pipes_stay(self):
        self.ok("write", "out/x", "5", "--time", T0)
        target, link = (os.path.join(self.place.path, name) for name in ("target.csv", "link.csv"))
        with open(target, "w", encoding="utf-8"):
            os.chmod(target, 0o600)
        os.symlink(target, link)
        self.ok("export", "out/x", "-o", link)
        self.assertTrue(os.path.islink(link))
        self.assertEqual(os.stat(target).st_mode & 0o777, 0o600)
        with open(target, encoding="utf-8") as file:
            self.assertIn("default,out,x,", file.read())
        pipe = os.path.join(self.place.path, "pipe")  # not /dev/null: were it wrong, root would lose that
        os.mkfifo(pipe)
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        for arguments in (("export", "out/x", "-o"), ("get", "out/x", "-o"), ("plot", "out/x", "--svg"),
                          ("plot", "out/x", "--png")):
            self.ok(*arguments, pipe)
            self.assertTrue(os.read(reader, 65536))
        os.close(reader)
        self.assertTrue(stat.S_ISFIFO(os.stat(pipe).st_mode))

    def test_ranges_windows_limits_and_order(self):
        for second in range(10):
            self.ok("write", "range/x", str(second), "--time", f"@{1763647200 + second}")
        def values(*arguments):
            text = self.ok("query", "range/x", "--format", "ndjson", *arguments)
            return [json.loads(x)["value"] for x in text.splitlines()]
        self.assertEqual(values("--from", "@1763647202", "--to", "@1763647204"), [2, 3])
        self.assertEqual(values("--desc", "--limit", "2"), [9, 8])
        self.assertEqual(values("--every", "5s", "--agg", "mean"), [2, 7])
        self.assertEqual(values("--agg", "count"), [10])
        self.assertEqual(values("--since", "1s"), [])

    def test_new_readings_are_followed(self):
        environment = clean_environment({"EDGECASE_HTTP_SOCKET": self.place.socket})
        with subprocess.Popen([PROGRAM, "tail", "live/*", "--limit", "2"], stdout=subprocess.PIPE,
                              text=True, env=environment) as follower:
            self.assertEqual(follower.stdout.readline(), "namespace,device,sensor,time,value,type\n")
            self.ok("write", "live/x", "1", "--time", T1)
            self.assertEqual(follower.stdout.readline(), f"default,live,x,{T1},1,float\n")
            self.ok("write", "other/x", "2")
            self.ok("write", "live/y", "3", "--time", T0)
            self.assertEqual(follower.stdout.readline(), f"default,live,y,{T0},3,float\n")
            self.assertEqual(follower.wait(TIME_LIMIT_SECONDS), 0)
        self.fails(2, "tail", "a/b/c")

    def test_a_follower_goes_on_over_a_restart(self):
        times = [f"2026-11-20T14:00:{second:02}.000000000Z" for second in range(10)]
        self.ok("write", "live/old", "0", "--time", times[3])
        environment = clean_environment({"EDGECASE_HTTP_SOCKET": self.place.socket})
        with subprocess.Popen([PROGRAM, "tail", "live/*", "--limit", "8"], stdout=subprocess.PIPE,
                              text=True, env=environment) as follower:
            self.assertEqual(follower.stdout.readline(), "namespace,device,sensor,time,value,type\n")
            self.ok("write", "live/x", "1", "--time", times[1])
            self.assertEqual(follower.stdout.readline(), f"default,live,x,{times[1]},1,float\n")
            # It looks away while the daemon is killed, comes back, and takes readings.
            follower.send_signal(signal.SIGSTOP)
            self.daemon.stop(signal.SIGKILL)
            type(self).daemon = Daemon(self.place)
            for series, value, at in (("live/x", "3", times[3]), ("live/x", "2", times[2]),
                                      ("live/new", "1", times[0]), ("live/old", "4", times[4]),
                                      ("live/old", "2", times[2]),
                                      ("other/x", "9", times[9])):
                self.ok("write", series, value, "--time", at)
            follower.send_signal(signal.SIGCONT)
            # By series and time, what is later than all the series had before; then as it comes.
            for series, value, at in (("new", 1, times[0]), ("old", 4, times[4]), ("x", 2, times[2]),
                                      ("x", 3, times[3])):
                self.assertEqual(follower.stdout.readline(), f"default,live,{series},{at},{value},float\n")
            for value, at in ((5, times[5]), (0, times[0]), (3, times[3])):
                self.ok("write", "live/x", str(value), "--time", at)
                self.assertEqual(follower.stdout.readline(), f"default,live,x,{at},{value},float\n")
            self.assertEqual(follower.wait(TIME_LIMIT_SECONDS), 0)

    def test_everything_of_a_person_is_reported_and_exported(self):
        self.ok("write", "watch/pulse", "61", "--type", "int", "--time", T0)
        self.ok("write", "watch/note", 'a "b",\nc', "--time", T1)
        self.ok("write", "-n", "hall", "door/picture", "raw", "--type", "bytes", "--time", T0)
        self.fails(3, "report", "--owner", "eve")
        self.fails(3, "export", "--owner", "eve")
        self.ok("device", "set", "watch", "--owner", "eve", "--purpose", "care", "--object", "ads")
        self.ok("device", "set", "-n", "hall", "door", "--owner", "eve")
        told = json.loads(self.ok("report", "--owner", "eve", "--json"))
        self.assertEqual([(d["device"], d["purposes"], len(d["series"])) for d in told["devices"]],
                         [("watch", ["care"], 2), ("door", [], 1)])
        self.assertIn("ads", self.ok("report", "--owner", "eve"))
        self.assertIn("timely deletion", self.ok("report"))
        directory = os.path.join(self.place.path, "eve")
        self.ok("export", "--owner", "eve", "-o", directory + "/")
        with open(directory + "/manifest.json", encoding="utf-8") as file:
            manifest = json.load(file)
        self.assertEqual(manifest["devices"], told["devices"])
        self.assertEqual([f["readings"] for f in manifest["files"]], [3, 3])
        with open(directory + "/readings.csv", encoding="utf-8") as file:
            rows = file.read()
        with open(directory + "/readings.ndjson", encoding="utf-8") as file:
            lines = file.read()
        self.assertEqual(rows, self.ok("export", "--owner", "eve"))
        # Another store takes it in, and has the same.
        other = Place()
        try:
            daemon = Daemon(other)
            for name in ("readings.ndjson", "readings.csv"):
                self.assertEqual(other.cli("import", f"{directory}/{name}").returncode, 0)
                self.assertEqual(other.cli("export", "*/*", "-A", "--format", "ndjson").stdout, lines)
            daemon.stop()
        finally:
            other.remove()
        self.fails(2, "export", "--owner", "eve", "--since", "1d")
        self.fails(2, "export")

    def test_series_are_drawn(self):
        for second, value in enumerate((1, 5, 2, 9, 3)):
            self.ok("write", "plot/wave", str(value), "--time", f"@{second}")
        self.ok("write", "plot/name", "text alone", "--time", "@0")
        drawn = self.ok("plot", "plot", "--width", "60", "--height", "5", extra={"LC_ALL": "C"}).splitlines()
        self.assertEqual((drawn[0], drawn[1][:3], drawn[5][:4]), ("plot/wave", "9 |", "1 |*"))
        self.assertIn("1970-01-01T00:00:04", drawn[-1])
        self.assertIn("\u2514", self.ok("plot", "plot/wave", extra={"LC_ALL": "C.UTF-8"}))
        picture = os.path.join(self.place.path, "wave.svg")
        self.ok("plot", "plot/wave", "--from", "@1", "--to", "@4", "--svg", picture)
        with open(picture, encoding="utf-8") as file:
            self.assertEqual(xml.etree.ElementTree.fromstring(file.read()).get("viewBox").split()[:2], ["0", "0"])
        self.ok("plot", "plot/wave", "--png", picture)
        with open(picture, "rb") as file:
            self.assertEqual(file.read(8), b"\x89PNG\r\n\x1a\n")
        self.fails(2, "plot", "plot/wave", "--png", picture, "--svg", picture)
        self.ok("write", "plot/once", "21.5")
        once = self.ok("plot", "plot/once", extra={"LC_ALL": "C"})
        self.assertEqual(once.count("*"), 1, once)
        self.fails(3, "plot", "nobody/*")
        self.fails(3, "plot", "plot/name")
        self.fails(2, "plot", "plot/wave", "--from", "soon")
        self.fails(2, "plot", "plot/wave", "--width", "3")

    def test_what_is_stored_is_listed(self):
        self.ok("write", "list/a", "1", "--time", T0)
        self.ok("write", "list/a", "2", "--time", T1)
        self.ok("write", "list/b", "3", "--time", T0)
        series = json.loads(self.ok("series", "list", "--json"))["series"]
        self.assertEqual([(s["device"], s["sensor"], s["count"]) for s in series],
                         [("list", "a", 2), ("list", "b", 1)])
        self.assertIn("list/a", self.ok("series", "list"))
        devices = json.loads(self.ok("devices", "list", "--json"))["devices"]
        self.assertEqual((devices[0]["series"], devices[0]["count"]), (2, 3))
        self.assertIn("READINGS", self.ok("devices"))
        last = self.ok("last", "list/a", "--format", "csv").splitlines()
        self.assertEqual(last[1], f"default,list,a,{T1},2,float")
        status = json.loads(self.ok("status", "--json"))
        self.assertTrue(status["ready"])
        page = self.ok("status").splitlines()
        self.assertLessEqual(len(page), 14)
        self.assertIn("ready, all is well", page[0])
        self.assertEqual(self.ok("status", "--health"), "ready\n")
        for odd in (["--health", "--json"], ["--json", "-v"], ["--watch", "0"], ["--watch", "x"]):
            self.fails(2, "status", *odd)
        watched = subprocess.Popen([PROGRAM, "status", "--watch", "1"], stdout=subprocess.PIPE, text=True,
                                   env=clean_environment({"EDGECASE_HTTP_SOCKET": self.place.socket}))
        with watched:
            heads = [line for line in (watched.stdout.readline() for _ in range(len(page) + 2))
                     if line.startswith("EdgeCase ")]
            watched.terminate()
        self.assertEqual(len(heads), 2)
        shown = self.ok("status", "-v")
        self.assertIn("drives", shown)
        for words in ("expiry waits ", "expiry waits seconds ", "held bytes ", "held seconds "):
            self.assertIn("\n  " + words, shown)
        self.assertLess(len(re.search(r"\n  write +(\S+)", shown).group(1)), 9)

    def test_names_with_blanks_colons_and_globs(self):
        self.ok("write", "AA:BB:CC/Küche temp", "1", "--time", T0)
        self.ok("write", "star/a\\*b", "2", "--time", T0)
        self.assertIn("AA:BB:CC,Küche temp", self.ok("query", "AA:*/K?che *"))
        self.assertIn("star,a*b", self.ok("query", "star/a\\*b"))
        self.fails(2, "write", "star/a*", "2")
        self.fails(2, "write", "no-slash", "2")

    def test_a_dropped_namespace_is_gone_and_its_name_is_free(self):
        self.ok("write", "-n", "doomed", "a/x", "1", "--time", T0)
        self.fails(2, "namespace", "drop", "doomed", input="doomed\n")  # no terminal, no --yes
        self.assertIn(T0, self.ok("query", "-n", "doomed", "a/x"))
        self.ok("namespace", "drop", "doomed", "--yes")
        self.fails(3, "query", "-n", "doomed", "a/x")
        self.assertNotIn("doomed", self.ok("namespace", "list").split())
        self.fails(3, "namespace", "drop", "doomed", "--yes")
        self.fails(4, "namespace", "drop", "_rejected", "--yes")
        self.ok("write", "-n", "doomed", "a/x", "2", "--time", T1)
        self.assertNotIn(T0, self.ok("query", "-n", "doomed", "a/x"))

    def test_check_and_inspect_know_the_store(self):
        directories = ["--metadata", f"{self.place.path}/meta", "--values",
                       f"{self.place.path}/values"]
        self.fails(1, "check", *directories)  # the daemon has it open
        summary = json.loads(self.ok("inspect", "--summary", "--json", *directories))
        self.assertEqual(summary["facts"]["store"],
                         json.loads(self.ok("inspect", "--json", f"{self.place.path}/meta/IDENTITY"))
                         ["facts"]["store"])

    def test_namespaces_are_apart(self):
        self.ok("namespace", "create", "plant")
        self.ok("namespace", "create", "plant")
        self.ok("write", "apart/x", "1", "-n", "plant", "--time", T0)
        self.ok("write", "apart/x", "2", "--time", T0, extra={"EDGECASE_NAMESPACE": "plant2"})
        self.assertEqual(self.ok("query", "apart/*"), "namespace,device,sensor,time,value,type\n")
        everywhere = self.ok("query", "apart/*", "-A", "--format", "csv")
        self.assertIn("plant,apart,x", everywhere)
        self.assertIn("plant2,apart,x", everywhere)
        names = self.ok("namespace", "list").split()
        self.assertTrue({"plant", "plant2"} <= set(names))
        self.assertIn("plant", json.loads(self.ok("namespace", "list", "--json"))["namespaces"])
        self.fails(4, "write", "apart/x", "1", "-n", "_secret")
        self.fails(2, "namespace", "create", "a/b")
        for more in (["-n", "a/b"], []):
            wrong = self.fails(2, "last", *more, extra={"EDGECASE_NAMESPACE": "a/b"})
            self.assertIn("namespace name holds a '/'", wrong)
            self.assertIn("--namespace:" if more else "EDGECASE_NAMESPACE:", wrong)

    def test_blobs_keep_their_bytes(self):
        source = os.path.join(self.place.path, "photo.jpg")
        content = bytes(range(256)) * 1000
        with open(source, "wb") as file:
            file.write(content)
        self.ok("write", "door/photo", "--file", source, "--time", T0)
        target = os.path.join(self.place.path, "copy.jpg")
        self.ok("get", "door/photo", "--time", T0, "-o", target)
        with open(target, "rb") as file:
            self.assertEqual(file.read(), content)
        self.assertEqual(self.place.cli("get", "door/photo", text=False).stdout, content)
        self.assertIn("image/jpeg", self.ok("query", "door/photo", "--format", "table"))
        self.fails(3, "get", "door/photo", "--time", T1)
        self.fails(3, "write", "door/photo", "--file", source + ".missing")

    def test_exports_are_whole(self):
        for second in range(50):
            self.ok("write", f"export/{'ab'[second % 2]}", str(second), "--time", f"@{second}")
        whole = self.ok("export", "export/*")
        self.assertEqual(len(whole.splitlines()), 51)
        folder = os.path.join(self.place.path, "out")
        os.mkdir(folder)
        target = os.path.join(folder, "x.csv")
        self.ok("export", "export/*", "-o", target)
        with open(target, encoding="utf-8") as file:
            self.assertEqual(file.read(), whole)
        self.assertEqual(os.listdir(folder), ["x.csv"])
        self.fails(3, "export", "export/nothing", "-o", os.path.join(folder, "y.csv"))
        self.assertEqual(os.listdir(folder), ["x.csv"])
        line = self.ok("export", "export/a", "--format", "line", "--to", "@3")
        self.assertEqual(line, "a,device=export value=0 0\na,device=export value=2 2000000000\n")

    def test_exports_into_a_directory_are_resumed(self):
        for name in ("a", "b"):
            self.ok("write", f"tree/{name}", "1", "--time", T0)
        folder = os.path.join(self.place.path, "tree")
        self.ok("export", "tree/*", "-o", folder + "/")
        first = os.path.join(folder, "default/tree/a.csv")
        second = os.path.join(folder, "default/tree/b.csv")
        with open(first, encoding="utf-8") as file:
            self.assertEqual(file.read(), self.ok("export", "tree/a"))
        os.unlink(second)
        before = os.stat(first).st_ino
        self.ok("export", "tree/*", "-o", folder, "--resume")
        self.assertTrue(os.path.exists(second))
        self.assertEqual(os.stat(first).st_ino, before)
        self.fails(2, "export", "tree/a", "-o", folder, "--resume")
        self.fails(2, "export", "tree/a", "--resume")

    def test_an_interrupted_export_leaves_nothing(self):
        self.ok("write", "stopped/x", "1")
        folder = os.path.join(self.place.path, "stopped")
        os.mkdir(folder)
        self.daemon.process.send_signal(19)  # SIGSTOP: no answer comes
        try:
            export = subprocess.Popen(
                [PROGRAM, "export", "stopped/x", "-o", os.path.join(folder, "x.csv")],
                env=clean_environment({"EDGECASE_HTTP_SOCKET": self.place.socket}),
                stderr=subprocess.PIPE, text=True)
            # What is not whole has no name: the file is seen where the process holds it open.
            def is_open():
                held = f"/proc/{export.pid}/fd"
                return any(os.readlink(os.path.join(held, fd)).startswith(folder) for fd in os.listdir(held))
            until(is_open, "the file is open")
            self.assertEqual(os.listdir(folder), [])
            export.send_signal(2)
            message = export.communicate(timeout=TIME_LIMIT_SECONDS)[1]
        finally:
            self.daemon.process.send_signal(18)
        self.assertEqual(export.returncode, 1)
        self.assertIn("stopped", message)
        self.assertEqual(os.listdir(folder), [])

    def test_mistakes_have_their_exit_codes(self):
        self.fails(3, "query", "nobody/nothing")
        self.assertEqual(self.ok("query", "nobody/*", "--format", "csv"),
                         "namespace,device,sensor,time,value,type\n")
        for arguments in (("query",), ("query", "a/b/c"), ("query", "a/b", "--from", "yesterdayish"),
                          ("query", "a/b", "--since", "5"), ("query", "a/b", "--every", "1h"),
                          ("query", "a/b", "--agg", "middle"), ("query", "a/b", "--format", "xml"),
                          ("query", "a/b", "--from", "now", "--to", "-1h"),
                          ("query", "a/b", "--limit", "-1"), ("write", "a/b"),
                          ("write", "a/b", "x", "--type", "int"), ("write", "a/b", "nan", "--type", "float"),
                          ("write", "a/b", "1", "--time", "soon"), ("write", "/b", "1"),
                          ("last", ""), ("export",), ("qurey", "a/b"), ("mqtt",)):
            with self.subTest(arguments=arguments):
                self.fails(2, *arguments)
        self.assertIn("did you mean 'query'", self.fails(2, "qurey", "a/b"))
        gone = {"EDGECASE_HTTP_SOCKET": self.place.socket + ".gone"}
        self.assertIn("no daemon", self.fails(5, "query", "a/b", extra=gone))
        self.fails(5, "status", "--host", "http://localhost:1")

    def test_tcp_and_line_protocol(self):
        host = f"http://localhost:{self.daemon.port()}"
        request = urllib.request.Request(
            f"{host}/write?db=influx", data=b"weather,host=roof temp=21.5,humid=40i 1763647200000000000\n")
        with urllib.request.urlopen(request, timeout=TIME_LIMIT_SECONDS) as answer:
            self.assertEqual(answer.status, 204)
        text = self.ok("query", "roof", "-n", "influx", "--host", host)
        self.assertIn(f"influx,roof,weather.humid,{T0},40,int", text)
        self.assertIn(f"influx,roof,weather.temp,{T0},21.5,float", text)
        text = self.ok("query", "roof", "-n", "influx", extra={"EDGECASE_HOST": host[7:]})
        self.assertIn("weather.temp", text)
        for path in ("/healthz", "/readyz", "/metrics", "/ping"):
            with urllib.request.urlopen(host + path, timeout=TIME_LIMIT_SECONDS) as answer:
                self.assertIn(answer.status, (200, 204))
        with self.assertRaises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(f"{host}/api/v1/query?select=no/body", timeout=TIME_LIMIT_SECONDS)
        self.assertEqual(caught.exception.code, 404)
        caught.exception.close()

    def test_mqtt_rules_are_tried(self):
        document = json.loads(self.ok("mqtt", "test", "sensors/kitchen/temp", "21.5", "--json"))
        self.assertEqual(document["outcome"], "readings")
        self.assertEqual(document["readings"][0]["device"], "kitchen")
        self.assertIn("kitchen/temp", self.ok("mqtt", "test", "sensors/kitchen/temp", "21.5"))
        self.assertRegex(self.ok("mqtt", "test", "sensors/kitchen/temp", "5"), r"arrival +5 +float")
        self.assertEqual(self.place.cli("mqtt", "test", "other", "1").returncode, 1)

    def test_influx_rules(self):
        said = self.ok("influx", "test", "cpu,host=pi usage=98.5", "air co2=5i 1700000000000000000")
        self.assertRegex(said, r"pi/cpu.usage +- +on arrival +98.5 +float")
        self.assertRegex(said, r"air/air.co2 +- +2023-11-14T22:13:20")
        some = self.place.cli("influx", "test", "a b=1", "nonsense")
        self.assertEqual(some.returncode, 6)
        self.assertIn("line 2: ", some.stderr)
        self.assertEqual(self.place.cli("influx", "test", "nonsense").returncode, 1)


if __name__ == "__main__":
    unittest.main()
