#!/usr/bin/env python3
"""As many devices with long names as may be, and something said of each of them, with the daemon's memory looked at:
what lists them, tells of them and changes them, all at once."""
import contextlib
import http.client
import json
import unittest

from daemon_process import TIME_LIMIT_SECONDS, Daemon
from hostile_clients import exchange
from hostile_daemon import HostileDaemon, post

PER_REQUEST = 2_500
LIMITS = "devices = 200000\nseries = 200000"


def name_of(number):
    return f"{'d' * 120}{number:05}"


class HostileDevicesFlow(HostileDaemon):
    def measured(self, name, path, method="GET", status=(200,)):
        """The answer, of which memory has had room."""
        self.daemon.forget_peak()
        connection = http.client.HTTPConnection("localhost", self.port, timeout=TIME_LIMIT_SECONDS)
        with contextlib.closing(connection):
            connection.request(method, path)
            answer = connection.getresponse()
            body = answer.read()
        self.assertIn(answer.status, status, (name, body[:1000]))
        with self.subTest(name):
            self.within_limit(name)
        return body

    def fill(self):
        """How many devices there are then."""
        devices, told = 0, None
        while told is None:
            lines = "".join(f"m,device={name_of(n)} value=1\n"
                            for n in range(devices, devices + 5_000))
            stored = exchange(self.port, post("/write", lines.encode()))
            if stored == (204, ""):
                devices += 5_000
            else:
                told = stored
        self.assertEqual(told[0], 400, told[1][:500])
        self.assertIn("storage.memory-limit", told[1])
        self.beyond = json.loads(told[1])["stored"]  # of the last request, until memory was full
        return devices

    def describe(self, devices, of_one):
        for first in range(0, devices, PER_REQUEST):
            body = "\n".join(json.dumps({"device": name_of(n), **of_one(n)})
                             for n in range(first, first + PER_REQUEST))
            told = exchange(self.port, post("/api/v1/devices", body.encode()))
            self.assertEqual(told, (200, '{"described":%d}\n' % PER_REQUEST))

    def test_something_is_said_of_as_many_devices_as_may_be(self):
        self.start(LIMITS)
        self.daemon.forget_peak()
        devices = self.fill()
        self.within_limit(f"{devices} devices with long names")
        self.daemon.forget_peak()
        self.describe(devices, lambda n: {"owner": f"{'o' * 100}{n}", "purposes": ["billing", "heating"]})
        with self.subTest("described"):
            self.within_limit("each with an owner and purposes")
        self.daemon.stop()
        self.daemon = Daemon(self.daemon.place)
        self.port = self.daemon.port()
        with self.subTest("started anew"):
            self.within_limit("started anew")
        report = json.loads(self.measured("report", "/api/v1/report"))
        self.assertGreaterEqual(report["stored"]["owners"], devices)
        moment = json.loads(self.measured("moment of a backup", "/api/v1/backups", "POST", (201,)))
        self.assertEqual(len(moment["state"]["devices"]), devices)
        self.assertEqual(moment["state"]["devices"][-1]["purposes"], ["billing", "heating"])
        of_moment = f"moment={moment['moment']}"
        saved = json.loads(self.measured("series of a moment", f"/api/v1/series?ns=*&{of_moment}"))
        self.assertGreaterEqual(len(saved["series"]), devices)
        self.measured("end of a backup", f"/api/v1/backups?{of_moment}", "DELETE")
        body = self.measured("set of a group", "/api/v1/device?of_purpose=billing&owner=alice", "POST")
        self.assertEqual(json.loads(body)["described"], devices)
        report = json.loads(self.measured("report of an owner", "/api/v1/report?owner=alice"))
        self.assertEqual(len(report["devices"]), devices)
        self.assertEqual(report["devices"][-1]["series"][0]["readings"], 1)
        told = self.measured("audit log of an owner", "/api/v1/audit?owner=alice").decode()
        self.assertIn('"operation":"device.set"', told)
        preview = json.loads(self.measured("preview of an erasure", "/api/v1/erase/preview?owner=alice"))
        self.assertEqual(preview["devices"], devices)
        for what in ("select=d*", "select=*", "ns=*"):
            where = json.loads(self.measured(f"where {what}", f"/api/v1/where?{what}"))
            self.assertGreaterEqual(where["devices"], devices)
        for what in ("select=d*", "select=d*&keep=100d", "owner=alice"):
            preview = json.loads(self.measured(f"retention preview {what}", f"/api/v1/retention/preview?{what}"))
            self.assertGreaterEqual(preview["series"], devices)
        self.measured("devices of an owner", "/api/v1/devices?owner=alice")
        told = self.measured("erase of too much", "/api/v1/erase?select=d*&yes=true", "POST", (400,)).decode()
        self.assertIn(f"{devices + self.beyond} devices", told)
        self.assertIn("erase it in parts", told)
        # 202: the bytes are still going.
        self.measured("erase of a part", f"/api/v1/erase?select={'d' * 120}0*", "POST", (200, 202))
        left = json.loads(self.measured("where of what is left", "/api/v1/where?select=d*"))
        self.assertEqual(left["devices"], devices + self.beyond - 10_000)
        # A rule of the engine for each of them.
        self.measured("retention of each", "/api/v1/retention?select=d*&keep=1000d", "POST")
        self.measured("another retention of each", "/api/v1/retention?select=d*&keep=999d", "POST")
        self.daemon.stop()
        self.daemon = Daemon(self.daemon.place)
        self.port = self.daemon.port()
        with self.subTest("started with rules"):
            self.within_limit("started with a rule for each")


if __name__ == "__main__":
    unittest.main(verbosity=2)
