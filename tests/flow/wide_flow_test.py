#!/usr/bin/env python3
"""A column for each series: `--layout wide` of query and export, `layout=wide` over HTTP, and back by import."""
import csv
import io
import json
import os
import unittest
import urllib.parse

from daemon_process import Daemon, Place

T0 = 1_763_647_200
COLUMNS_MAX = 256


def seconds(text):
    """Of a time that is on this day, since T0."""
    hour, minute, second = text[11:19].split(":")
    return int(hour) * 3600 + int(minute) * 60 + int(second) - 14 * 3600


class WideFlow(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place = Place()
        cls.addClassCleanup(cls.place.remove)
        cls.daemon = Daemon(cls.place)
        cls.addClassCleanup(cls.daemon.stop)
        temperatures = (0, 1.0), (60, 2.5), (180, 4.0), (301, 5.0)
        cls.write("default", [("room", "temp", at, value) for at, value in temperatures]
                  + [("room", "hum", at, value) for at, value in ((60, 40), (120, 41), (300, 50))]
                  + [("hall", "door", at, value) for at, value in ((60, True), (240, False))])

    @classmethod
    def write(cls, namespace, rows):
        """Rows of device, sensor, seconds since T0 and value."""
        readings = [{"namespace": namespace, "device": device, "sensor": sensor, "value": value,
                     "time": round((T0 + at) * 10**9),
                     **({"type": "int"} if isinstance(value, int) and not isinstance(value, bool) else {})}
                    for device, sensor, at, value in rows]
        status, text = cls.daemon.request("POST", "/api/v1/readings", json.dumps(readings))
        assert status == 200, text

    def ask(self, **parameters):
        query = urllib.parse.urlencode({"layout": "wide", "format": "csv", **parameters})
        status, text = self.daemon.request("GET", f"/api/v1/query?{query}")
        self.assertEqual(status, 200, text)
        return text

    def rows(self, **parameters):
        """Seconds since T0 and the cells, as text."""
        return [(seconds(row[0]), *row[1:]) for row in list(csv.reader(io.StringIO(self.ask(**parameters))))[1:]]

    def test_columns_are_aligned_by_time(self):
        self.assertEqual(self.ask().splitlines()[0], "time,hall/door,room/hum,room/temp")
        want = [(0, "", "", "1.0"), (60, "true", "40", "2.5"), (120, "", "41", ""), (180, "", "", "4.0"),
                (240, "false", "", ""), (300, "", "50", ""), (301, "", "", "5.0")]
        self.assertEqual(self.rows(), want)
        self.assertEqual(self.rows(desc="true"), want[::-1])
        self.assertEqual(self.rows(limit=2), want[:2])
        self.assertEqual(self.rows(desc="true", limit=2), want[:-3:-1])
        self.assertEqual(self.rows(**{"from": f"@{T0 + 60}", "to": f"@{T0 + 180}"}), want[1:3])

    def test_cells_without_a_reading_are_filled(self):
        previous = [(0, "", "", "1.0"), (60, "true", "40", "2.5"), (120, "true", "41", "2.5"),
                    (180, "true", "41", "4.0"), (240, "false", "41", "4.0"), (300, "false", "50", "4.0"),
                    (301, "false", "50", "5.0")]
        self.assertEqual(self.rows(fill="previous"), previous)
        self.assertEqual(self.rows(fill="previous", desc="true"), previous[::-1])
        linear = {at: (hum, temp) for at, _, hum, temp in self.rows(fill="linear")}
        self.assertEqual(linear[120], ("41", "3.25"))
        self.assertEqual(float(linear[180][0]), 44)
        self.assertEqual(linear[0], ("", "1.0"))
        backwards = {at: (hum, temp) for at, _, hum, temp in self.rows(fill="linear", desc="true")}
        self.assertEqual({at: tuple(cell and float(cell) for cell in cells) for at, cells in backwards.items()},
                         {at: tuple(cell and float(cell) for cell in cells) for at, cells in linear.items()})
        self.assertEqual(self.rows(fill="-1.5", limit=1), [(0, "-1.5", "-1.5", "1.0")])

    def test_windows_without_a_reading_have_rows_where_they_are_filled(self):
        windows = {"select": "room/temp", "every": "1m", "agg": "mean"}
        self.assertEqual(self.rows(**windows), [(0, "1.0"), (60, "2.5"), (180, "4.0"), (300, "5.0")])
        filled = [(0, "1.0"), (60, "2.5"), (120, ""), (180, "4.0"), (240, ""), (300, "5.0")]
        self.assertEqual(self.rows(fill="null", **windows), filled)
        self.assertEqual(self.rows(fill="null", desc="true", **windows), filled[::-1])
        bounds = {"from": f"@{T0 - 60}", "to": f"@{T0 + 420}"}
        bounded = [(-60, ""), *filled, (360, "")]
        self.assertEqual(self.rows(fill="null", **windows, **bounds), bounded)
        self.assertEqual(self.rows(fill="null", desc="true", **windows, **bounds), bounded[::-1])
        self.assertEqual([cell for _, cell in self.rows(fill="previous", **windows, **bounds)],
                         ["", "1.0", "2.5", "2.5", "4.0", "4.0", "5.0", "5.0"])
        self.assertEqual(self.rows(fill="null", select="nobody/*", every="1m", **bounds), [])
        status, text = self.daemon.request("GET", "/api/v1/query?layout=wide&fill=null&every=1ns&from=2020-01-01")
        self.assertEqual((status, "limits.query-windows" in text), (400, True), text)

    def test_json_and_ndjson_have_an_object_a_row(self):
        lines = [json.loads(line) for line in self.ask(format="ndjson").splitlines()]
        self.assertEqual(lines[1], {"time": "2025-11-20T14:01:00.000000000Z", "hall/door": True, "room/hum": 40,
                                    "room/temp": 2.5})
        self.assertIsNone(lines[0]["hall/door"])
        self.assertEqual(json.loads(self.ask(format="json")), lines)
        self.assertEqual(json.loads(self.ask(format="json", select="nobody/*")), [])
        spaced = json.loads(self.ask(format="json", ns="*"))
        self.assertIn("default/room/temp", spaced[0])

    def test_what_cannot_be_is_refused_in_words(self):
        for query, words in (("layout=broad", "long, wide"), ("fill=null", "layout=wide"),
                             ("layout=wide&fill=most", "linear"), ("layout=wide&format=line", "ndjson"),
                             ("layout=wide&format=parquet", "ndjson")):
            with self.subTest(query=query):
                status, text = self.daemon.request("GET", f"/api/v1/query?{query}")
                self.assertEqual((status, words in text), (400, True), text)
        for arguments in (("query", "*/*", "--fill", "null"), ("query", "*/*", "--layout", "wide", "--format", "table"),
                          ("export", "*/*", "--layout", "wide", "-o", f"{self.place.path}/dir/"),
                          ("export", "*/*", "--layout", "wide", "--format", "parquet")):
            with self.subTest(arguments=arguments):
                self.assertEqual(self.place.cli(*arguments).returncode, 2)

    def test_more_columns_than_go_side_by_side_are_refused(self):
        self.write("many", [("d", f"s{i:03}", i, i) for i in range(COLUMNS_MAX + 1)])
        status, text = self.daemon.request("GET", "/api/v1/query?ns=many&layout=wide")
        self.assertEqual((status, str(COLUMNS_MAX) in text, "layout=long" in text), (400, True, True), text)
        rows = self.rows(ns="many", select="d/s0*")
        self.assertEqual([row.index(str(at), 1) for at, row in enumerate(rows)], list(range(1, 101)))

    def test_import_takes_back_what_export_wrote(self):
        odd = 'a, "b"'
        self.write("from", [(odd, 'c,"d":;%', 1, 1.5), (odd, 'c,"d":;%', 2, 5.0), (odd, "int", 1, -7),
                            (odd, "text", 1, 'say "hi",\r\n=2'), (odd, "text", 2, ""), (odd, "text", 3, "12"),
                            (odd, "text", 4, "true"), (odd, "text", 5, "null"), (odd, "text", 6, "base64:AA=="),
                            (odd, "text", 7, "x" * 300_000 + 'ü"'), ("ü", "mixed", 1, "five"), ("ü", "mixed", 2, 5),
                            ("ü", "mixed", 3, 5.0), ("ü", "mixed", 4, False), ("ü", "mixed", 5, 1e300)])
        for sensor, kind in (("raw", "application/octet-stream"), ("typed", 'text/plain; charset="utf-8", x')):
            for size in (1, 5, 400_000):
                path = "/api/v1/blob/from/" + urllib.parse.quote(f"ü/{sensor}")
                status, _, text = self.daemon.exchange("PUT", f"{path}?time=@{T0 + size}", b"\xff" * size,
                                                       {"Content-Type": kind})
                self.assertEqual(status, 201, text)
        want = self.place.cli("query", "*/*", "-n", "from", "--format", "ndjson").stdout.replace('"from"', '"to"')
        target = os.path.join(self.place.path, "wide.csv")
        done = self.place.cli("export", "*/*", "-n", "from", "--layout", "wide", "-o", target)
        self.assertEqual(done.returncode, 0, done.stderr)
        done = self.place.cli("import", target, "-n", "to")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.place.cli("query", "*/*", "-n", "to", "--format", "ndjson").stdout, want)
        self.place.cli("export", "*/*", "-n", "to", "--layout", "wide", "-o", target + "2")
        with open(target, "rb") as one, open(target + "2", "rb") as two:
            self.assertEqual(one.read(), two.read())
        lines = self.ask(ns="from", format="ndjson").splitlines()
        self.assertTrue(any(json.loads(line)[f"{odd}/text"] == "x" * 300_000 + 'ü"' for line in lines))

    def test_a_bad_cell_costs_itself_alone(self):
        path = os.path.join(self.place.path, "bad.csv")
        with open(path, "w", encoding="utf-8") as file:
            file.write("time,d/a,d/b\n2026-01-01T00:00:00Z,1,base64:!\n2026-01-01T00:00:01Z,99999999999999999999,2\n")
        done = self.place.cli("import", path, "-n", "bad")
        self.assertEqual((done.returncode, "d/b" in done.stderr, "d/a" in done.stderr), (6, True, True), done.stderr)
        self.assertEqual(self.rows(ns="bad"), [(-50_400, "1", ""), (-50_399, "", "2")])


if __name__ == "__main__":
    unittest.main()
