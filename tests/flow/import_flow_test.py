#!/usr/bin/env python3
"""What was exported comes back through `edgecase import`, and bad files lose nothing but their bad lines."""
import gzip
import os
import unittest

from daemon_process import Daemon, Place

PHOTO = bytes(range(256)) * 2000  # large enough to go as a value of its own


class ImportFlow(unittest.TestCase):
    def setUp(self):
        self.place = Place()
        self.daemon = Daemon(self.place)

    def tearDown(self):
        self.daemon.stop()
        self.place.remove()

    def write(self, name, text):
        path = os.path.join(self.place.path, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def done(self, *arguments, **more):
        result = self.place.cli(*arguments, **more)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def fill(self):
        for series, value, kind in (("press/on", "true", "bool"), ("press/count", "-7", "int"),
                                    ("press/state", "21.5", "text"), ("press/temp", "21.25", "float"),
                                    ("a b/ü,\"x\"", "two\nlines", "text")):
            for second in range(3):
                self.done("write", series, value, "--type", kind, "--time", f"@{second}", "-n", "plant")
        photo = os.path.join(self.place.path, "front.jpg")
        with open(photo, "wb") as file:
            file.write(PHOTO)
        self.done("write", "door/photo", "--file", photo, "--time", "@9", "-n", "plant")

    def test_every_format_comes_back(self):
        self.fill()
        whole = self.done("query", "*/*", "-n", "plant", "--format", "ndjson")
        for name, keeps_all in (("all.csv", True), ("all.ndjson", True), ("all.line", False)):
            path = os.path.join(self.place.path, name)
            self.done("export", "*/*", "-n", "plant", "--format", name[4:], "-o", path)
            self.done("namespace", "drop", "plant", "--yes")
            self.done("import", path, "-n", "plant")
            again = self.done("query", "*/*", "-n", "plant", "--format", "ndjson")
            if keeps_all:
                self.assertEqual(again, whole)
            else:  # line protocol has no bytes
                self.assertEqual(again, "".join(line for line in whole.splitlines(True) if "photo" not in line))

    def test_gzip_is_unpacked(self):
        self.fill()
        whole = self.done("query", "press", "-n", "plant", "--format", "ndjson")
        for name in ("all.csv", "all.ndjson", "all.line"):
            path = os.path.join(self.place.path, name)
            self.done("export", "press", "-n", "plant", "--format", name[4:], "-o", path)
            with open(path, "rb") as file, gzip.open(path + ".gz", "wb") as packed:
                packed.write(file.read())
            self.done("namespace", "drop", "plant", "--yes")
            self.done("import", path + ".gz", "-n", "plant")
            self.assertEqual(self.done("query", "press", "-n", "plant", "--format", "ndjson"), whole)
        with open(path + ".gz", "r+b") as packed:
            packed.truncate(60)
        self.assertEqual(self.place.cli("import", path + ".gz", "-n", "plant").returncode, 7)

    def test_a_directory_of_exports_and_a_pipe(self):
        self.fill()
        directory = os.path.join(self.place.path, "out")
        self.done("export", "*/*", "-A", "-o", directory + "/")
        whole = self.done("query", "*/*", "-n", "plant", "--format", "ndjson")
        looked = self.place.cli("import", directory, "--dry-run")
        self.assertEqual(looked.returncode, 0, looked.stderr)
        readings, table = looked.stdout.split("\n\n")  # the first file's, then a row a file
        self.assertTrue(readings.startswith("NAMESPACE"), readings)
        self.assertEqual(table.count("\n"), 7)
        self.assertIn("16 readings found from 6 files", looked.stderr)
        cut_short = self.place.cli("import", os.path.join(directory, "plant/door/photo.csv"), "none.csv")
        self.assertEqual(cut_short.returncode, 6, cut_short.stderr)
        self.assertIn(" stored from 1 of 2 files\n", cut_short.stderr)
        self.done("namespace", "drop", "plant", "--yes")
        self.done("import", directory)
        self.assertEqual(self.done("query", "*/*", "-n", "plant", "--format", "ndjson"), whole)
        self.done("namespace", "drop", "plant", "--yes")
        self.assertEqual(self.place.cli("import", "-", input=whole).returncode, 2)  # which format?
        self.done("import", "-", "--format", "ndjson", input=whole)
        self.assertEqual(self.done("query", "*/*", "-n", "plant", "--format", "ndjson"), whole)

    def test_line_protocol_of_all_namespaces_keeps_them_apart(self):
        lines = ['s,device=d value=1 1', 's,device=d value=2 1']
        for name, line in (("one", lines[0]), ("two words", lines[1])):
            self.done("import", self.write("line", line + "\n"), "--format", "line", "-n", name)
        whole = self.done("query", "d", "-A", "--format", "ndjson")
        self.assertEqual(self.done("export", "d", "-A", "--format", "line"),
                         f"# DML\n# CONTEXT-DATABASE: one\n{lines[0]}\n# CONTEXT-DATABASE: two words\n{lines[1]}\n")
        self.assertEqual(self.done("export", "d", "-n", "one", "--format", "line"), lines[0] + "\n")
        directory = os.path.join(self.place.path, "lines")
        for target in (directory + ".line", directory + "/"):
            self.done("export", "d", "-A", "--format", "line", "-o", target)
            for name in ("one", "two words"):
                self.done("namespace", "drop", name, "--yes")
            self.done("import", target)
            self.assertEqual(self.done("query", "d", "-A", "--format", "ndjson"), whole)
        for name in ("one", "two words"):
            self.done("namespace", "drop", name, "--yes")

    def test_many_readings_arrive_once(self):
        lines = "".join(f"s,device=d value={i}i {i}\n" for i in range(50_000))
        path = self.write("many.line", lines)
        for _ in range(2):
            self.done("import", path)
        self.assertEqual(self.done("export", "d/s", "--format", "line"), lines)

    def test_a_table_of_somebody_else_says_its_columns(self):
        rows = "".join(f"{hour};01.03.2013 {hour:02}:00;{hour},5;{hour * 2};NNW\n" for hour in range(24))
        path = self.write("weather.csv", "No;Datum;Temp;Rain;Wind\n" + rows)
        how = ("--delimiter", ";", "--decimal", ",", "--device", "roof", "--time-column", "Datum", "--time-format",
               "%d.%m.%Y %H:%M", "--tz", "Europe/Berlin")
        looked = self.done("import", path, *how, "--value-columns", "Temp,Wind", "--dry-run")
        self.assertEqual(looked.count("\n"), 1 + 10 + 1 + 2)
        self.assertIn("roof/Temp", looked)
        self.assertEqual(self.place.cli("query", "roof/*").stdout.count("\n"), 1)  # nothing is stored
        self.done("import", path, *how, "--value-columns", "Temp,Wind")
        got = self.done("query", "roof", "--format", "csv").splitlines()
        self.assertEqual(len(got), 1 + 48)
        self.assertEqual(got[1], "default,roof,Temp,2013-02-28T23:00:00.000000000Z,0.5,float")
        self.assertEqual(got[-1], "default,roof,Wind,2013-03-01T22:00:00.000000000Z,NNW,text")
        self.done("import", path, *how)  # all columns that are no time
        self.assertEqual(self.done("query", "roof", "--format", "csv").count("\n"), 1 + 4 * 24)
        for wrong, word in ((("--time-column", "Zeit"), "it has No, Datum, Temp, Rain, Wind"),
                            (("--time-format", "%H:%M"), "says no day"), (("--device-column", "No"), "xcludes"),
                            (("--format", "ndjson"), "of CSV alone")):
            result = self.place.cli("import", path, *how, *wrong)
            self.assertEqual(result.returncode, 2, (wrong, result.stderr))
            self.assertIn(word, result.stderr)
        for separator, said in ((";", "';'"), ("\t", "tab"), ("|", "'|'")):
            other = self.write("other.csv", separator.join(("Datum", "Temp")) + "\n01.03.2013" + separator + "1\n")
            for columns in ((), ("--device", "roof", "--time-column", "Datum")):
                result = self.place.cli("import", other, *columns)
                self.assertEqual(result.returncode, 2, result.stderr)
                self.assertIn(f"add --delimiter {said}", result.stderr)

    def test_counts_that_are_no_nanoseconds_are_noticed_before_anything_is_stored(self):
        for unit, factor in (("unix", 1), ("unix_ms", 10**3), ("unix_us", 10**6), ("unix_ns", 10**9)):
            time = 1_763_647_200 * factor
            for ending, text in (("csv", "device,sensor,time,value\nDEVICE,s,TIME,1\n"),
                                 ("ndjson", '{"device":"DEVICE","sensor":"s","time":TIME,"value":1}\n'),
                                 ("line", "s,device=DEVICE value=1 TIME\n")):
                with self.subTest(unit=unit, ending=ending):
                    device = f"{ending}-{unit}"
                    path = self.write(f"{unit}.{ending}", text.replace("DEVICE", device).replace("TIME", str(time)))
                    result = self.place.cli("import", path)
                    self.assertEqual(result.returncode, 0 if unit == "unix_ns" else 2, result.stderr)
                    if unit != "unix_ns":
                        self.assertIn(f"--time-format {unit},", result.stderr)
                        self.assertTrue(result.stderr.endswith(f"{path} --time-format {unit}\n"), result.stderr)
                        self.assertEqual(self.place.cli("last", f"{device}/*").stdout.count("\n"), 1)
                        self.done("import", path, "--time-format", unit)
                    last = self.done("last", f"{device}/*", "--format", "csv")
                    self.assertIn("2025-11-20T14:00:00.000000000Z", last)
        meant = self.write("meant.line", "c,device=early v=1 1763647200\n")
        self.done("import", meant, "--time-format", "unix_ns")
        self.assertIn("1970-01-01T00:00:01.763647200Z", self.done("last", "early/*", "--format", "csv"))

    def test_bad_lines_cost_themselves_alone(self):
        path = self.write("some.csv", "device,sensor,time,value\nd,s,0,1\nd,s,soon,1\nd,s,1,2\n")
        for options, word in ((("--dry-run",), "found"), ((), "stored")):
            result = self.place.cli("import", path, *options)
            self.assertEqual(result.returncode, 6, result.stderr)
            self.assertIn("some.csv:3: ", result.stderr)
            self.assertIn(f"2 readings {word}", result.stderr)
            self.assertIn("1 refused", result.stderr)
            stored = self.place.cli("query", "d/*").stdout.count("\n")
            self.assertEqual(stored, 3 if not options else 1)
        timeless = self.write("timeless.ndjson", '{"device":"d","sensor":"x","value":1}\n')
        result = self.place.cli("import", timeless)
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn("without a time", result.stderr)

    def test_mistakes_have_their_exit_codes(self):
        empty = os.path.join(self.place.path, "nothing")
        os.mkdir(empty)
        for arguments, code, word in (
                (("/nowhere.csv",), 3, "No such file"),
                ((self.write("x.txt", "1"),), 2, "--format"),
                ((empty,), 3, "no file"),
                ((self.write("x.csv", "a,b\n"),), 2, "unknown column"),
                ((self.write("e.csv", ""),), 2, "empty"),
                ((self.write("x.ndjson", "[1,"),), 2, "JSON"),
                ((self.write("ok.csv", "device,sensor,time,value\nd,s,0,1\n"), "-n", "a/b"), 2, "namespace")):
            result = self.place.cli("import", *arguments)
            self.assertEqual(result.returncode, code, (arguments, result.stderr))
            self.assertIn(word, result.stderr)
        good = self.write("good.line", "s,device=d value=1 1\n")
        self.daemon.stop()
        self.assertEqual(self.place.cli("import", good).returncode, 5)


if __name__ == "__main__":
    unittest.main()
