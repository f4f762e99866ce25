#!/usr/bin/env python3
"""Clients of InfluxDB 1.x, as their users run them: what they write comes back as they read it.

Each has a program in clients/, whose output is compared. A client that cannot be had is left out, and that is said:
Debian has Python's and Go's (the group `readers` of packaging/install-dependencies.sh), npm gets its own.
"""
import os
import shutil
import subprocess
import tempfile
import unittest

from daemon_process import TIME_LIMIT_SECONDS, Daemon, Place

PROGRAMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "clients")
PYTHON = "/usr/bin/python3"  # where Debian's packages are found
GO_PATH = "/usr/share/gocode"  # the same for Go
GO_CLIENT = "github.com/influxdata/influxdb1-client/v2"
NPM_CLIENT = "influx@5.12.0"

FRAME = """\
                       device  n     on    s     v
2024-01-01 00:00:00+00:00  pi  1   True    a  1.50
2024-01-01 00:01:00+00:00  pi  2  False  b b  2.25
2024-01-01 00:02:00+00:00  pi  3   True  c,d   NaN
2024-01-01 00:03:00+00:00  pi  4  False    ü  4.00
same index: True
types: device object n int64 on bool s object v float64
frame device=pi: 2024-01-01 00:00:00+00:00 1.875 2, 2024-01-01 00:02:00+00:00 4.0 4
nothing: {}
only v: 1.5 2.25 4.0
measurements: frame, seconds
"""
GO = """\
[[1700000000000 0 0 false row 0] [1700000000001 1.5 1 true row 1] [1700000000002 3 2 false row 2]]
[[device pi]]
[[0 4.5]]
[[1700000000001 1.5]]
2 chunks
error parsing query: found EOF, expected identifier, string, number, bool at line 1, char 8
"""
NODE = """\
online: true
{"v":0,"n":0,"on":false,"s":"row \\"0\\", \\\\","device":"p i"} at 1700000000000000000
{"v":1.5,"n":1,"on":true,"s":"row \\"1\\", \\\\","device":"p i"} at 1700000000001000000
groups: from_node {"device":"p i"} 2
two: 1.5 2
placeholder: 2
names: from_node from_node,device=p\\ i node autogen
Error: A 400 Bad Request error occurred: {"error":"error parsing query: found EOF
"""


# Go compiles its own library where that was never done.
BUILD_SECONDS_MAX = 600


def said_by(arguments, seconds_max=TIME_LIMIT_SECONDS, **more):
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=seconds_max, check=False, **more)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def is_there(arguments, **more):
    try:
        return subprocess.run(arguments, capture_output=True, timeout=60, check=False, **more).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


class Clients(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.place = Place()
        cls.addClassCleanup(cls.place.remove)
        cls.daemon = Daemon(cls.place)
        cls.addClassCleanup(cls.daemon.stop)
        cls.port = str(cls.daemon.port())

    def test_data_frames_of_python(self):
        if not is_there([PYTHON, "-c", "import influxdb, pandas"]):
            return print("left out: python3-influxdb and python3-pandas are not installed")
        said = said_by([PYTHON, os.path.join(PROGRAMS, "frames.py"), self.port])
        self.assertEqual([line.split() for line in said.splitlines()], [line.split() for line in FRAME.splitlines()])

    def test_go(self):
        if shutil.which("go") is None or not os.path.isdir(os.path.join(GO_PATH, "src", GO_CLIENT)):
            return print("left out: Go and golang-github-influxdata-influxdb1-client-dev are not installed")
        program = os.path.join(self.place.path, "client-of-go")
        building = {**os.environ, "GO111MODULE": "off", "GOPATH": GO_PATH, "GOFLAGS": "", "CGO_ENABLED": "0",
                    "GOCACHE": os.environ.get("GOCACHE") or os.path.expanduser("~/.cache/go-build")}
        said_by(["go", "build", "-o", program, os.path.join(PROGRAMS, "points.go")], BUILD_SECONDS_MAX, env=building)
        self.assertEqual(said_by([program, f"http://localhost:{self.port}"]), GO)

    def test_node(self):
        if shutil.which("npm") is None:
            return print("left out: npm is not installed")
        with tempfile.TemporaryDirectory() as path:
            # What npm may not reach, it may still have.
            if not is_there(["npm", "install", "--prefix", path, "--prefer-offline", "--no-audit", "--no-fund",
                             NPM_CLIENT]):
                return print(f"left out: npm does not get {NPM_CLIENT}")
            modules = {**os.environ, "NODE_PATH": os.path.join(path, "node_modules")}
            self.assertEqual(said_by(["node", os.path.join(PROGRAMS, "points.js"), self.port], env=modules), NODE)


if __name__ == "__main__":
    unittest.main(verbosity=2)
