#!/usr/bin/env python3
"""The Python module of packaging/python against a real daemon, over its socket and over TCP; its page of examples; its
wheel. What needs pandas or pip is skipped where they are not there."""
import contextlib
import datetime
import importlib.util
import io
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time as clock
import unittest
import warnings
import zipfile

from daemon_process import Daemon, Place, clean_environment

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.normpath(os.path.join(HERE, "..", "..", "packaging", "python"))
PAGE = os.path.join(SOURCE, "..", "recipes", "python.md")
NOTEBOOK = os.path.join(SOURCE, "..", "recipes", "notebook.md")
sys.dont_write_bytecode = True
sys.path.insert(0, SOURCE)

import edgecase  # noqa: E402

T0 = 1_763_647_200_000_000_000
HAS_PANDAS = importlib.util.find_spec("pandas") is not None
HAS_NUMPY = importlib.util.find_spec("numpy") is not None


def answering(answers):
    """A server that sends each of `answers` to a connection of its own, after the head of a request; its address."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve():
        for answer in answers:
            connection, _ = server.accept()
            with connection:
                connection.recv(65_536)
                connection.sendall(answer)
        server.close()

    threading.Thread(target=serve, daemon=True).start()
    return f"http://127.0.0.1:{server.getsockname()[1]}"


class PythonFlow(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place = Place()
        cls.daemon = Daemon(cls.place)
        cls.board = edgecase.Client(cls.place.socket)

    @classmethod
    def tearDownClass(cls):
        cls.board.close()
        cls.daemon.stop()
        cls.place.remove()

    def test_values_of_each_type_come_back_as_they_were(self):
        values = {"float": 21.5, "whole": 5.0, "int": -(2**63), "bool": True, "text": 'say "hi", ü\n2',
                  "bytes": b"\0\xff"}
        stored = self.board.write_many((f"types/{kind}", value, T0 + 1) for kind, value in values.items())
        self.assertEqual(stored.stored, len(values))
        back = {reading.sensor: reading for reading in self.board.readings("types")}
        self.assertEqual({kind: reading.value for kind, reading in back.items()}, values)
        self.assertEqual({kind: type(reading.value) for kind, reading in back.items()},
                         {kind: type(value) for kind, value in values.items()})
        self.assertTrue(all(reading.time_ns == T0 + 1 for reading in back.values()))

    def test_times_of_each_kind_are_the_same_instant(self):
        moment = datetime.datetime(2025, 11, 20, 14, 0, 0, 123456, datetime.timezone.utc)
        east = moment.astimezone(datetime.timezone(datetime.timedelta(hours=9)))
        for sensor, time in (("a", moment), ("b", east), ("c", T0 + 123_456_000), ("d", "2025-11-20T14:00:00.123456Z")):
            self.board.write(f"times/{sensor}", 1.0, time)
        self.assertEqual({reading.time_ns for reading in self.board.readings("times")}, {T0 + 123_456_000})
        self.assertEqual(len(list(self.board.readings("times", since=moment))), 4)
        self.assertEqual(list(self.board.readings("times", until=moment)), [])
        with self.assertRaises(ValueError):
            self.board.write("times/naive", 1.0, datetime.datetime(2025, 1, 1))
        for ns in (-1, -1_500_000_000, 1, -(10**9)):
            self.board.write("times/ends", 1.0, ns)
            self.assertEqual([each.time_ns for each in self.board.readings("times/ends", since=ns, until=ns + 1)], [ns])

    def test_counts_that_are_no_nanoseconds_and_types_of_others_are_told(self):
        for count, says in ((T0 // 10**9, "of seconds say 1763647200 * 1000000000"),
                            (T0 // 10**6, "of milliseconds say 1763647200000 * 1000000"),
                            (T0 // 10**3, "of microseconds say 1763647200000000 * 1000"),
                            (T0 / 10**9, "of seconds say int(seconds * 1e9)")):
            with self.assertRaises((ValueError, TypeError)) as caught:
                self.board.write("counts/a", 1.0, count)
            self.assertIn(says, str(caught.exception))
            with self.assertRaises((ValueError, TypeError)):
                list(self.board.readings("counts", since=count))
        for series in (None, 5):
            with self.subTest(series=series), self.assertRaises(TypeError):
                self.board.write(series, 1)

    @unittest.skipIf(not HAS_NUMPY, "numpy is not there")
    def test_numbers_and_times_of_numpy_are_taken(self):
        import numpy
        moment = numpy.datetime64("2025-11-20T14:00:00.123456789")
        for name, value, wanted in (("f", numpy.float32(1.5), 1.5), ("i", numpy.int64(5), 5),
                                    ("b", numpy.bool_(True), True)):
            self.board.write(f"numpy/{name}", value, moment)
            reading = self.board.last(f"numpy/{name}")[0]
            self.assertEqual((reading.value, type(reading.value), reading.time_ns),
                             (wanted, type(wanted), T0 + 123_456_789))
        with self.assertRaises(ValueError):
            self.board.write("numpy/large", numpy.uint64(2**64 - 1))
        with self.assertRaisesRegex(ValueError, "NaT is no time"):
            self.board.write("numpy/f", 1.5, numpy.datetime64("NaT"))

    def test_many_readings_go_in_batches_and_stream_back(self):
        count = 2 * edgecase.client.BATCH_READINGS_MAX + 7
        stored = self.board.write_many((f"many/{i % 10}", i, T0 + i) for i in range(count))
        self.assertEqual(stored.stored, count)
        self.assertEqual(sum(1 for _ in self.board.readings("many")), count)
        windows = list(self.board.readings("many/3", agg="count", every="1h", since=T0, until=T0 + 3600 * 10**9))
        self.assertEqual([window.value for window in windows], [len(range(3, count, 10))])
        self.assertEqual([r.value for r in self.board.readings("many/3", limit=1, newest_first=True)], [count - 1 - 3])
        with contextlib.closing(self.board.readings("many")) as some:  # left in the middle: the next request works
            next(some)
        self.assertEqual(len(self.board.last("many/*")), 10)
        never_begun = self.board.readings("many")
        self.assertEqual(len(self.board.last("many/*")), 10)
        first, second = self.board.readings("many"), self.board.readings("many", newest_first=True)
        self.assertEqual(sum(1 for _ in zip(first, second)), count)  # in turns
        self.assertEqual(sum(1 for _ in never_begun), count)

    def test_bad_readings_cost_themselves_alone(self):
        with self.assertRaises(edgecase.Refused) as caught:
            self.board.write_many([("bad/a", 1.0, T0), ("bad/" + "x" * 2000, 1.0, T0), ("bad/c", 2.0, T0)])
        self.assertEqual(caught.exception.stored, 2)
        self.assertEqual([line for line, _ in caught.exception.rejected], [2])
        self.assertEqual(len(self.board.last("bad/*")), 2)
        for value in (float("nan"), float("inf"), 2**63, None, [1]):
            with self.subTest(value=value), self.assertRaises((ValueError, TypeError)):
                self.board.write("bad/value", value)
        for series in ("", "x", "/x", "x/"):
            with self.subTest(series=series), self.assertRaises(ValueError):
                self.board.write(series, 1)
        with self.assertRaises(edgecase.Refused):
            self.board.readings("bad/*", agg="mean,max")

    def test_tail_gives_what_is_stored_from_now_on(self):
        with edgecase.Client(self.place.socket) as follower:
            tail = follower.tail("tail/*")
            begun = threading.Thread(target=self._write_until_seen, args=(seen := threading.Event(),))
            begun.start()
            reading = next(tail)
            seen.set()
            begun.join()
        self.assertEqual(reading.series, "tail/x")

    def _write_until_seen(self, seen):
        with edgecase.Client(self.place.socket) as writer:
            while not seen.wait(0.05):
                writer.write("tail/x", 1.0)

    def test_blobs_and_names_with_every_character(self):
        series = "kamera ü%:&+/bild?#%2f"
        time = self.board.put_blob(series, b"\xff\xd8" * 50_000, "image/jpeg", T0)
        blob = self.board.blob(series)
        self.assertEqual((blob.data, blob.content_type, blob.time_ns), (b"\xff\xd8" * 50_000, "image/jpeg", time))
        with self.assertRaises(edgecase.NotFound):
            self.board.blob("nobody/nothing")

    def test_erasure_returns_its_certificate(self):
        self.board.write_many(("gone/x", float(i), T0 + i) for i in range(100))
        self.assertEqual(self.board.erase_preview("gone", until=T0 + 50)["readings"], 50)
        certificate = self.board.erase("gone", until=T0 + 50)
        self.assertEqual((certificate["state"], certificate["readings"]), ("done", 50))
        self.assertTrue(certificate["signature"]["value"])
        self.assertEqual(self.board.certificate(certificate["id"])["signature"], certificate["signature"])
        self.assertEqual(sum(1 for _ in self.board.readings("gone")), 50)
        with self.assertRaises(edgecase.Refused):
            self.board.erase("*/*")
        stored = self.board.write("gone/x", 1.0, T0)
        self.assertEqual((stored.stored, stored.erased), (0, 1))

    def test_tokens_and_namespaces(self):
        secret = self.place.cli("token", "create", "--read", "open/*", "-n", "team", "--admin").stdout.split()
        token = next(word for word in secret if word.startswith("ec1_"))
        url = f"http://localhost:{self.daemon.port()}"
        with edgecase.Client(self.place.socket, namespace="team") as team:
            team.write("open/x", 1.0, T0)
        with edgecase.Client(url, token, namespace="team") as board:
            self.assertEqual([(r.namespace, r.series) for r in board.last()], [("team", "open/x")])
        with edgecase.Client(url) as board, self.assertRaises(edgecase.NotAllowed) as caught:
            board.last()
        self.assertEqual(caught.exception.status, 401)

    def test_addresses_that_lead_nowhere_say_so(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            closed = f"http://127.0.0.1:{taken.getsockname()[1]}"
        for address in (closed, "/nowhere/s", "http://localhost:1"):
            with self.subTest(address=address), self.assertRaises(edgecase.Unreachable):
                edgecase.Client(address).last()
        for address in ("ftp://x", "http://", "http://x/path", "http://u:p@x"):
            with self.subTest(address=address), self.assertRaises(ValueError):
                edgecase.Client(address)

    def test_an_answer_that_ends_in_the_middle_is_cut(self):
        line = b'{"device":"a","sensor":"b","time":"2025-11-20T14:00:00.000000000Z","value":1}\n'
        whole = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + f"{len(line):x}\r\n".encode() + line
        with edgecase.Client(answering([whole])) as board:
            readings = board.readings("*/*")
            self.assertEqual(next(readings).value, 1.0)
            with self.assertRaises(edgecase.Cut):
                next(readings)

    def test_busy_is_tried_again_and_then_told(self):
        body = b'{"error":{"code":"busy","message":"the log is full"}}'
        busy = (b"HTTP/1.1 503 Busy\r\nRetry-After: 0\r\nConnection: close\r\nContent-Length: "
                + str(len(body)).encode() + b"\r\n\r\n" + body)
        good = b'HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 12\r\n\r\n{"stored":1}'
        with edgecase.Client(answering([busy, busy, good])) as board:
            self.assertEqual(board.write("a/b", 1, T0).stored, 1)
        with edgecase.Client(answering([busy] * (edgecase.client.RETRIES_MAX + 1))) as board:
            with self.assertRaises(edgecase.Busy):
                board.write("a/b", 1, T0)

    def test_what_is_left_out_is_warned_of(self):
        body = b'[{"series":"a/b"}]00000018'
        answer = b"HTTP/1.1 200 OK\r\nContent-Length: " + str(len(body)).encode() + b"\r\n\r\n" + body
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with edgecase.Client(answering([answer])) as board:
                self.assertEqual(board.last(), [])
        self.assertEqual([each.category for each in caught], [edgecase.LeftOut])

    def test_the_page_of_examples_runs(self):
        with open(PAGE, encoding="utf-8") as file:
            code = "".join(re.findall(r"```python\n(.*?)```", file.read(), re.DOTALL))
        if not HAS_PANDAS:
            code = re.sub(r"(?m)^frame = .*\n", "", code)
        self.assertIn("board.erase(", code)
        told = self.run_code(code, PAGE)
        self.assertIn("kitchen/temperature 21.5", told)
        self.assertIn("image/jpeg\n1 readings would go\ndone ", told)

    def run_page(self, page, **environment):
        """What the blocks of a page say."""
        with open(page, encoding="utf-8") as file:
            return self.run_code("".join(re.findall(r"```python\n(.*?)```", file.read(), re.DOTALL)), page, environment)

    def run_code(self, code, page, environment=None):
        out = io.StringIO()
        kept = os.environ.copy()
        os.environ.update(environment or {})
        os.environ["EDGECASE_HTTP_SOCKET"] = self.place.socket
        try:
            with contextlib.redirect_stdout(out):
                exec(compile(code, page, "exec"), {})  # pylint: disable=exec-used
        finally:
            os.environ.clear()
            os.environ.update(kept)
        return out.getvalue()

    @unittest.skipUnless(HAS_PANDAS, "pandas is not installed")
    def test_data_frames_go_in_and_come_back(self):
        import pandas
        times = pandas.to_datetime([T0, T0 + 1, T0 + 2], unit="ns", utc=True)
        given = pandas.DataFrame({"series": ["frame/a", "frame/b", "frame/a"], "value": [1.5, 2.5, float("nan")]},
                                 index=times)
        self.assertEqual(self.board.write_many(given).stored, 2)
        frame = self.board.query("frame/*")
        self.assertEqual(frame[["device", "sensor", "value"]].values.tolist(),
                         [["frame", "a", 1.5], ["frame", "b", 2.5]])
        self.assertEqual(frame["time"].astype("int64").tolist(), [T0, T0 + 1])
        wide = self.board.query("frame/*", wide=True)
        self.assertEqual(wide.columns.tolist(), ["frame/a", "frame/b"])
        self.assertTrue(self.board.query("nobody/*").empty)

    @unittest.skipUnless(HAS_PANDAS, "pandas is not installed")
    def test_a_data_frame_is_the_same_with_arrow_and_without(self):
        if not edgecase.frames.HAS_ARROW:
            self.skipTest("pyarrow is not installed")
        self.board.write_many([("kind/f", 1.5, T0), ("kind/i", 7, T0), ("kind/i", 2**62 + 1, T0 + 1),
                               ("kind/b", True, T0), ("kind/t", "a", T0), ("kind/x", b"\0\1", T0),
                               ("kind/f", 2.0, T0 + 1)])
        for select in ("kind/f", "kind/i", "kind/b", "kind/t", "kind/x", "kind/*", "nobody/*"):
            with self.subTest(select=select):
                fast = self.board.query(select)
                edgecase.frames.HAS_ARROW = False
                try:
                    plain = self.board.query(select)
                finally:
                    edgecase.frames.HAS_ARROW = True
                for name in ("time", "device", "sensor", "value"):
                    self.assertEqual(fast[name].tolist(), plain[name].tolist())
                    self.assertEqual([type(each) for each in fast[name]], [type(each) for each in plain[name]])

    @unittest.skipUnless(HAS_PANDAS, "pandas is not installed")
    def test_the_notebook_runs(self):
        hour = 3_600 * 10**9
        end = clock.time_ns() // hour * hour
        with edgecase.Client(self.place.socket, namespace="house") as house:
            house.write_many((f"{room}/temperature", base + back % 24 / 4, end - back * hour)
                             for room, base in (("bedroom", 17.0), ("garden", 14.0)) for back in range(1, 160))
        out = self.run_page(NOTEBOOK, EDGECASE_NAMESPACE="house")
        self.assertIn("['bedroom', 'garden']", out)
        self.assertIn("0 hours", out)
        self.assertIn("garden temperature", re.sub(" +", " ", out))

    def test_the_wheel_holds_the_typed_module(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(["cp", "-r", SOURCE, f"{folder}/source"], check=True)
            made = subprocess.run([sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation",
                                   "--no-index", "-q", "-w", folder, f"{folder}/source"], capture_output=True,
                                  text=True, check=False, env=clean_environment())
            wheels = [name for name in os.listdir(folder) if name.endswith(".whl")]
            if made.returncode != 0 and re.search("No module named|invalid command 'bdist_wheel'", made.stderr):
                self.skipTest("pip, setuptools or wheel is not installed")
            self.assertEqual((made.returncode, len(wheels)), (0, 1), made.stderr)
            with zipfile.ZipFile(os.path.join(folder, wheels[0])) as wheel:
                self.assertIn("edgecase/client.py", wheel.namelist())
                self.assertIn("edgecase/py.typed", wheel.namelist())


if __name__ == "__main__":
    unittest.main()
