#!/usr/bin/env python3
"""Readings as files of columns: Parquet and Arrow, over HTTP and from `export`, read by pyarrow, pandas, DuckDB and
Polars. What is not installed is skipped, and said."""
import importlib.util
import io
import json
import os
import random
import shutil
import socket
import unittest
import urllib.parse

from daemon_process import Daemon, Place

T0 = 1_763_647_200_000_000_000
FORMATS = ("parquet", "arrow")
TYPES = {"parquet": "application/vnd.apache.parquet", "arrow": "application/vnd.apache.arrow.file"}
GROUP_ROWS = 65_536


def has(*modules):
    return all(importlib.util.find_spec(module) for module in modules)


def needs(*modules):
    return unittest.skipUnless(has(*modules), f"without {' and '.join(modules)} nothing reads it here")


def table_of(data, form):
    if form == "parquet":
        import pyarrow.parquet
        return pyarrow.parquet.read_table(io.BytesIO(data))
    import pyarrow.ipc
    return pyarrow.ipc.open_file(io.BytesIO(data)).read_all()


def values():
    """Readings of each type, at the ends of what each holds."""
    ends = -9 * 10**18, -(10**9), 0, 1, T0, T0 + 1, 2**63 - 1
    given = {
        "float": [0.0, -0.0, 21.5, 1e300, -1e-300, 0.1, 5.0],
        "int": [-(2**63), -1, 0, 1, 2**53 + 1, 2**63 - 1, 7],
        "bool": [True, False, True, True, False, False, True],
        "text": ["", "a", 'say "hi", ü\n2', "x" * 300, "🎈", "null", "12"],
        "bytes": [b"\1", b"\0", b"\xff" * 300, b"a,b", b"\n", b"PAR1", b"ARROW1"],
    }
    return {kind: list(zip(ends, values)) for kind, values in given.items()}


class ColumnsFlow(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place = Place()
        cls.addClassCleanup(cls.place.remove)
        cls.daemon = Daemon(cls.place)
        cls.addClassCleanup(cls.daemon.stop)
        cls.write([{"device": 'odd, "dev"', "sensor": kind, "time": time, "value": value}
                   for kind, given in values().items() if kind != "bytes" for time, value in given])
        for time, value in values()["bytes"]:
            path = "/api/v1/blob/default/" + urllib.parse.quote('odd, "dev"/bytes')
            status, text = cls.daemon.request("PUT", f"{path}?time=@{time // 10**9}.{time % 10**9:09d}", value)
            assert status == 201, text
        number = random.Random(48)
        for sensor in range(3):
            cls.write([{"device": "many", "sensor": f"s{sensor}", "time": T0 + i * 10**9 + number.randrange(10**6),
                        "value": number.choice((number.random(), number.randrange(99) / 10))} for i in range(30_000)])

    @classmethod
    def write(cls, readings):
        for reading in readings:
            if isinstance(reading["value"], int) and not isinstance(reading["value"], bool):
                reading["type"] = "int"
        for begin in range(0, len(readings), 5_000):
            status, text = cls.daemon.request("POST", "/api/v1/readings", json.dumps(readings[begin:begin + 5_000]))
            assert status == 200, text

    def ask(self, form, **parameters):
        query = urllib.parse.urlencode({"format": form, **parameters})
        status, headers, data = self.raw(f"/api/v1/query?{query}")
        self.assertEqual(status, 200, data[:500])
        self.assertEqual(headers["Content-Type"], TYPES.get(form, headers["Content-Type"]))
        return data

    def raw(self, target, headers=None):
        import http.client
        connection = http.client.HTTPConnection("localhost", self.daemon.port(), timeout=60)
        try:
            connection.request("GET", target, headers=headers or {})
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    def test_a_file_has_its_marks_at_both_ends_and_an_empty_one_too(self):
        for form, mark in (("parquet", b"PAR1"), ("arrow", b"ARROW1")):
            for select in ("*/*", "nobody/*"):
                with self.subTest(form=form, select=select):
                    data = self.ask(form, select=select)
                    self.assertTrue(data.startswith(mark) and data.endswith(mark))
        status, _, text = self.raw("/api/v1/query?format=orc")
        self.assertEqual((status, b"parquet" in text), (400, True))
        self.assertEqual(self.raw("/api/v1/query?format=parquet&select=no/such")[0], 404)

    @needs("pyarrow")
    def test_every_type_comes_back_as_it_was(self):
        for form in FORMATS:
            table = table_of(self.ask(form, select="odd*/*"), form)
            rows = table.to_pylist()
            self.assertEqual(len(rows), 35)
            times = dict.fromkeys(table.column("sensor").to_pylist())
            self.assertEqual(list(times), ["bool", "bytes", "float", "int", "text"])
            exact = table.column("time").cast("int64").to_pylist()
            for kind, given in values().items():
                with self.subTest(form=form, kind=kind):
                    mine = [(time, row) for time, row in zip(exact, rows) if row["sensor"] == kind]
                    self.assertEqual([time for time, _ in mine], [time for time, _ in given])
                    name = "value" if kind == "float" else f"value_{kind}"
                    self.assertEqual([repr(row[name]) for _, row in mine], [repr(value) for _, value in given])
                    for _, row in mine:
                        self.assertEqual((row["namespace"], row["device"], row["type"]),
                                         ("default", 'odd, "dev"', kind))
                        there = {name for name in row if name.startswith("value_") and row[name] is not None}
                        self.assertEqual(there, set() if kind == "float" else {f"value_{kind}"})
                        self.assertEqual(row["value"] is None, kind in ("text", "bytes"))
                        self.assertEqual(row["content_type"] is None, kind != "bytes")

    @needs("pyarrow")
    def test_many_groups_are_the_same_as_ndjson(self):
        want = [(row["sensor"], row["value"]) for row in
                map(json.loads, self.ask("ndjson", select="many/*").splitlines())]
        self.assertGreater(len(want), GROUP_ROWS)
        for form in FORMATS:
            with self.subTest(form=form):
                table = table_of(self.ask(form, select="many/*"), form)
                self.assertEqual(list(zip(table.column("sensor").to_pylist(), table.column("value").to_pylist())), want)
                self.assertEqual(str(table.schema.field("time").type), "timestamp[ns, tz=UTC]")
                windows = table_of(self.ask(form, select="many/*", every="1h", agg="count"), form)
                self.assertEqual(sum(windows.column("value_int").to_pylist()), len(want))

    @needs("pyarrow")
    def test_identity_units_and_time_zone_are_in_the_metadata(self):
        status, _ = self.daemon.request("POST", "/write?db=tags", "cpu,host=pi,core=0 idle=1.5,user=2i 1000")
        self.assertEqual(status, 204)
        self.daemon.request("POST", "/write?db=tags", "W,domain=sensor,entity_id=solar value=5 1000")
        self.daemon.request("POST", "/api/v1/device?ns=tags&device=pi&label=unit%3D%25")
        for form in FORMATS:
            with self.subTest(form=form):
                told = table_of(self.ask(form, ns="tags"), form).schema.metadata
                self.assertEqual(json.loads(told[b"edgecase"])["time_zone"], "UTC")
                series = {(each["device"], each["field"]): each for each in json.loads(told[b"edgecase.series"])}
                idle = series["pi", "idle"]
                self.assertEqual((idle["measurement"], idle["tags"], idle["unit"]),
                                 ("cpu", {"core": "0", "host": "pi"}, "%"))
                self.assertEqual(series["sensor.solar", "value"]["unit"], "W")

    @needs("pyarrow", "pandas")
    def test_pandas_reads_them(self):
        import pandas
        for form, read in (("parquet", pandas.read_parquet), ("arrow", pandas.read_feather)):
            with self.subTest(form=form):
                frame = read(io.BytesIO(self.ask(form, select="many/s0")))
                self.assertEqual(len(frame), 30_000)
                self.assertEqual(str(frame["time"].dtype), "datetime64[ns, UTC]")
                self.assertEqual(str(frame["value"].dtype), "float64")

    @needs("duckdb")
    def test_duckdb_reads_parquet(self):
        import duckdb
        path = os.path.join(self.place.path, "all.parquet")
        done = self.place.cli("export", "*/*", "--format", "parquet", "-o", path)
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = duckdb.sql(f"select sensor, count(*), epoch_ns(min(time)) from '{path}' where device = 'many' "
                          "group by all order by all").fetchall()
        self.assertEqual([(sensor, count) for sensor, count, _ in rows], [(f"s{i}", 30_000) for i in range(3)])
        self.assertTrue(all(T0 <= first < T0 + 10**6 for _, _, first in rows))
        self.assertEqual(duckdb.sql(f"select value_text from '{path}' where type = 'text' order by time").fetchall(),
                         [(text,) for _, text in values()["text"]])

    @needs("polars")
    def test_polars_reads_them(self):
        import polars
        for form, read in (("parquet", polars.read_parquet), ("arrow", polars.read_ipc)):
            with self.subTest(form=form):
                frame = read(io.BytesIO(self.ask(form, select="*/*")))
                self.assertEqual(frame.height, 90_035)
                self.assertEqual(frame.filter(polars.col("sensor") == "s1").height, 30_000)
                ints = frame.filter(polars.col("type") == "int")["value_int"].to_list()
                self.assertEqual(ints, [value for _, value in values()["int"]])

    def test_export_into_a_directory_makes_a_file_a_series(self):
        for form in FORMATS:
            with self.subTest(form=form):
                done = self.place.cli("export", "many/*", "--format", form, "-o", f"{self.place.path}/by-{form}/")
                self.assertEqual(done.returncode, 0, done.stderr)
                files = sorted(os.listdir(f"{self.place.path}/by-{form}/default/many"))
                self.assertEqual(files, [f"s{i}.{form}" for i in range(3)])

    def test_a_client_that_leaves_does_no_harm(self):
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(self.place.socket)
            client.sendall(b"GET /api/v1/query?select=*/*&format=parquet HTTP/1.1\r\nHost: localhost\r\n\r\n")
            self.assertIn(b"200 OK", client.recv(100))
        self.assertTrue(self.ask("parquet", select="many/s0").endswith(b"PAR1"))

    def test_a_cell_that_is_too_large_is_named_and_left_out(self):
        path = "/api/v1/blob/photos/cam/image"
        for size, time in ((1 << 20, 1), ((1 << 20) + 1, 2), (10, 3)):
            status, text = self.daemon.request("PUT", f"{path}?time=@{time}", b"j" * size)
            self.assertEqual(status, 201, text)
        for form in FORMATS:
            with self.subTest(form=form):
                target = os.path.join(self.place.path, f"photos.{form}")
                done = self.place.cli("export", "*/*", "-n", "photos", "--format", form, "-o", target)
                self.assertEqual((done.returncode, "cam/image" in done.stderr), (6, True), done.stderr)
                if has("pyarrow"):
                    with open(target, "rb") as file:
                        cells = table_of(file.read(), form).column("value_bytes").to_pylist()
                    self.assertEqual([cell and len(cell) for cell in cells], [1 << 20, None, 10])

    def test_erased_readings_do_not_leave_with_a_file_under_way(self):
        self.write([{"namespace": "gone", "device": "d", "sensor": "s", "time": T0 + i, "value": i * 1.1}
                    for i in range(5)])
        self.assertEqual(self.place.cli("erase", "-n", "gone", "d/s", "--yes").returncode, 0)
        for form in FORMATS:
            status, _, data = self.raw(f"/api/v1/query?ns=gone&format={form}")
            self.assertTrue(status == 404 or b"PAR1" in data or b"ARROW1" in data)

    def test_answers_come_packed_for_who_takes_it(self):
        import gzip
        import subprocess
        unpack = {"gzip": gzip.decompress, "zstd": None}
        if shutil.which("zstd"):
            unpack["zstd"] = lambda packed: subprocess.run(["zstd", "-d", "-c"], input=packed, check=True,
                                                           stdout=subprocess.PIPE).stdout
        else:
            print("left out: what zstd packed is not unpacked, there is no zstd")
        for target in ("/api/v1/query?select=many/*&format=csv", "/api/v1/query?select=many/*&format=json",
                       "/api/v1/series", "/query?db=default&q=SELECT+*+FROM+s0"):
            for accepts, coding in (("gzip", "gzip"), ("gzip;q=0.5, zstd", "zstd"), ("zstd;q=0.2, gzip", "gzip")):
                with self.subTest(target=target, accepts=accepts):
                    _, plain_headers, plain = self.raw(target)
                    status, headers, packed = self.raw(target, {"Accept-Encoding": accepts})
                    if len(plain) < 1024:
                        continue
                    self.assertEqual((status, headers["Content-Encoding"], headers["Vary"]),
                                     (200, coding, "Accept-Encoding"))
                    self.assertNotIn("Content-Encoding", plain_headers)
                    self.assertEqual(plain_headers["Vary"], "Accept-Encoding")
                    if unpack[coding]:
                        self.assertEqual(unpack[coding](packed), plain)
                    self.assertLess(len(packed), len(plain) / 2)
        _, headers, _ = self.raw("/api/v1/query?select=many/s0&format=parquet", {"Accept-Encoding": "gzip, zstd"})
        self.assertNotIn("Content-Encoding", headers)


if __name__ == "__main__":
    unittest.main()
