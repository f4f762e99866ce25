#!/usr/bin/env python3
"""Tokens through the real daemon: the command line, HTTP as curl and Influx's clients speak it, MQTT."""
import base64
import json
import os
import shutil
import signal
import socket
import subprocess
import unittest
import urllib.error
import urllib.request

from daemon_process import TIME_LIMIT_SECONDS, Daemon, Place, clean_environment, run, until

LISTEN = """
listen = "localhost:0"
[[mqtt.rule]]
topic = "sensors/{device}/{sensor}"
"""
HAS_CLIENTS = shutil.which("mosquitto_pub") is not None


def own_address():
    """An address of this machine that is not loopback; None when it has none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return None
        address = probe.getsockname()[0]
        return None if address.startswith("127.") else address


class AccessFlow(unittest.TestCase):
    def setUp(self):
        self.place = Place()
        self.addCleanup(self.place.remove)
        self.place.write_config(more=LISTEN)
        self.daemon = Daemon(self.place)
        self.addCleanup(lambda: self.daemon.stop())
        self.address = f"localhost:{self.daemon.port()}"

    def token(self, *arguments):
        made = self.place.cli("token", "create", *arguments)
        self.assertEqual(made.returncode, 0, made.stderr)
        self.assertIn("not shown again", made.stderr)
        return made.stdout.strip()

    def remote(self, *arguments, token=None):
        """The command line over TCP."""
        extra = {"EDGECASE_HOST": self.address}
        if token:
            extra["EDGECASE_TOKEN"] = token
        return run(arguments, env=clean_environment(extra))

    def http(self, path, body=None, authorization=None):
        request = urllib.request.Request(f"http://{self.address}{path}", data=body)
        if authorization:
            request.add_header("Authorization", authorization)
        try:
            with urllib.request.urlopen(request, timeout=TIME_LIMIT_SECONDS) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            with error:
                return error.code

    def test_the_command_line(self):
        self.assertEqual(self.remote("write", "kitchen/temp", "21.5").returncode, 0)
        reader = self.token("--read", "kitchen/*")
        writer = self.token("--write", "kitchen/*", "--expires", "1d")
        self.assertEqual(self.remote("last").returncode, 4)
        self.assertEqual(self.remote("last", token="nonsense").returncode, 4)
        self.assertEqual(self.remote("last", "kitchen/*", token=reader).returncode, 0)
        self.assertEqual(self.remote("last", "kitchen/*", "--token", reader).returncode, 0)
        self.assertEqual(self.remote("last", "shed/*", token=reader).returncode, 4)
        self.assertEqual(self.remote("write", "kitchen/temp", "1", token=reader).returncode, 4)
        self.assertEqual(self.remote("write", "kitchen/temp", "1", token=writer).returncode, 0)
        self.assertEqual(self.remote("write", "shed/temp", "1", token=writer).returncode, 4)
        self.assertEqual(self.remote("export", "kitchen/*", token=reader).returncode, 4)
        self.assertEqual(self.remote("token", "list", token=reader).returncode, 4)
        # The socket is its group's; a token shown there holds all the same.
        self.assertEqual(self.place.cli("last").returncode, 0)
        self.assertEqual(self.place.cli("last", "shed/*", "--token", reader).returncode, 4)
        listed = json.loads(self.place.cli("token", "list", "--json").stdout)["tokens"]
        self.assertEqual([t["state"] for t in listed], ["active", "active"])
        self.assertEqual(listed[0]["read"], "kitchen/*")
        self.assertIn(reader[4:14], self.place.cli("token", "list").stdout)
        self.assertNotIn(reader, self.place.cli("token", "list", "--json").stdout)
        self.assertEqual(self.place.cli("token", "revoke", reader[4:14]).returncode, 0)
        self.assertEqual(self.remote("last", "kitchen/*", token=reader).returncode, 4)
        self.assertEqual(self.place.cli("token", "revoke", "0123456789").returncode, 3)
        self.assertEqual(self.place.cli("token", "create").returncode, 2)
        self.assertEqual(self.place.cli("token", "create", "--read", "a/b/c").returncode, 2)
        # Several globs, each named; a second word behind one is what a shell made of a lost quote.
        both = self.token("--read", "kitchen/*", "--read", "cell*/temp")
        self.assertEqual(self.place.cli("token", "create", "--read", "a", "b").returncode, 2)
        self.assertIn("read kitchen/* cell*/temp", self.place.cli("token", "list").stdout)
        for selector, wanted in (("kitchen/*", 0), ("cellar/temp", 0), ("hall/temp", 4)):
            self.place.cli("write", selector.replace("*", "temp"), "1")
            self.assertEqual(self.remote("last", selector, token=both).returncode, wanted, selector)
        # Made is made: a kill changes nothing.
        self.daemon.stop(signal.SIGKILL)
        self.daemon = Daemon(self.place)
        self.address = f"localhost:{self.daemon.port()}"
        self.assertEqual(self.remote("write", "kitchen/temp", "2", token=writer).returncode, 0)
        self.assertEqual(self.remote("last", "kitchen/*", token=reader).returncode, 4)

    def test_tokens_end_when_it_was_said(self):
        """Served before, refused from the moment on, over HTTP and the command line, also after a restart."""
        later, ended = (self.token("--read", "*/*") for _ in range(2))
        short = self.token("--read", "*/*", "--expires", "2s")
        kept = f"Bearer {later}"
        self.assertEqual(self.http("/api/v1/last", authorization=f"Bearer {ended}"), 200)
        for token, after in ((later, "1h"), (ended, "2s")):
            self.assertEqual(self.place.cli("token", "revoke", token[4:14], "--after", after).returncode, 0)
        self.assertEqual(self.http("/api/v1/last", authorization=kept), 200)
        for token in (short, ended):
            until(lambda: self.http("/api/v1/last", authorization=f"Bearer {token}") in (401, 429), "it ends")
            self.assertEqual(self.remote("last", token=token).returncode, 4)
            self.assertEqual(self.http("/api/v1/last", authorization=kept), 200)
        states = {t["id"]: t["state"] for t in json.loads(self.place.cli("token", "list", "--json").stdout)["tokens"]}
        self.assertEqual([states[each[4:14]] for each in (short, ended, later)], ["expired", "revoked", "active"])
        self.daemon.stop(signal.SIGKILL)
        self.daemon = Daemon(self.place)
        self.address = f"localhost:{self.daemon.port()}"
        self.assertEqual(self.remote("last", token=ended).returncode, 4)
        self.assertEqual(self.http("/api/v1/last", authorization=f"Bearer {short}"), 401)
        self.assertEqual(self.http("/api/v1/last", authorization=kept), 200)

    def test_secrets_are_in_no_file_and_no_log(self):
        token = self.token("--admin")
        self.assertEqual(self.remote("status", token=token).returncode, 0)
        self.assertEqual(self.remote("status", token=token[:-1] + "g").returncode, 4)
        self.daemon.stop()
        needle = token[15:].encode()
        for folder, _, files in os.walk(self.place.path):
            for name in files:
                if not os.path.isfile(os.path.join(folder, name)):
                    continue  # sockets
                with open(os.path.join(folder, name), "rb") as file:
                    self.assertNotIn(needle[:-1], file.read(), name)

    def test_http_as_clients_speak_it(self):
        token = self.token("--write", "*/*")
        basic = base64.b64encode(f"telegraf:{token}".encode()).decode()
        line = b"air,device=kitchen co2=655"
        for authorization in (f"Bearer {token}", f"Token {token}", f"Basic {basic}"):
            self.assertEqual(self.http("/write?db=default", line, authorization), 204)
            self.assertEqual(self.http("/api/v2/write?bucket=default", line, authorization), 204)
        self.assertEqual(self.http("/write", line), 401)
        self.assertEqual(self.http(f"/write?u=x&p={token}", line), 400)
        self.assertEqual(self.http("/write?db=other", line, f"Token {token}"), 403)
        self.assertEqual(self.http("/healthz"), 200)
        if curl := shutil.which("curl"):
            asked = subprocess.run([curl, "-s", "-o", "/dev/null", "-w", "%{http_code}", "-u", f"x:{token}",
                                    "--data-binary", line.decode(), f"http://{self.address}/write"],
                                   capture_output=True, text=True, timeout=TIME_LIMIT_SECONDS, check=False)
            self.assertEqual(asked.stdout, "204")

    def test_devices_and_purposes(self):
        for device in ("meter", "lamp"):
            self.assertEqual(self.place.cli("write", f"{device}/x", "1", "--time", "@1").returncode, 0)
        said = self.place.cli("device", "set", "meter", "--owner", "alice", "--purpose", "billing",
                              "--object", "marketing", "--label", "kind=meter", "--label", "floor=1")
        self.assertEqual(said.returncode, 0, said.stderr)
        self.assertIn("floor=1, kind=meter", said.stdout)
        self.daemon.stop(signal.SIGKILL)
        self.daemon = Daemon(self.place)
        self.assertIn("owner       alice", self.place.cli("device", "show", "meter").stdout)
        self.assertEqual(self.place.cli("device", "show", "none").returncode, 3)
        self.assertEqual(self.place.cli("device", "set", "meter").returncode, 2)
        devices = json.loads(self.place.cli("devices", "--owner", "alice", "--json").stdout)["devices"]
        self.assertEqual([d["device"] for d in devices], ["meter"])
        for command in ("query", "last", "get", "export"):
            series = "meter/x"
            self.assertEqual(self.place.cli(command, series).returncode, 4, command)
            self.assertEqual(self.place.cli(command, series, "--purpose", "marketing").returncode, 4, command)
            self.assertEqual(self.place.cli(command, series, "--purpose", "billing").returncode, 0, command)
            self.assertEqual(self.place.cli(command, series, extra={"EDGECASE_PURPOSE": "billing"}).returncode, 0)
        partly = self.place.cli("query", "*/*", "--format", "csv")
        self.assertEqual((partly.returncode, partly.stdout.count("\n")), (0, 2))
        self.assertIn("1 device was left out", partly.stderr)
        target = os.path.join(self.place.path, "out/")
        self.assertEqual(self.place.cli("export", "*/*", "-o", target).returncode, 0)
        self.assertEqual(os.listdir(os.path.join(target, "default")), ["lamp"])
        self.assertEqual(self.place.cli("plot", "meter/x", "--purpose", "billing").returncode, 0)

    @unittest.skipUnless(HAS_CLIENTS, "mosquitto-clients is not installed")
    def test_rules_say_whose_new_devices_are(self):
        self.daemon.stop()
        self.place.write_config(more=LISTEN + 'owner = "alice"\npurpose = ["billing", "heating"]\n')
        self.daemon = Daemon(self.place)
        for device in ("meter", "lamp"):
            subprocess.run(["mosquitto_pub", "-p", str(self.daemon.mqtt_port()), "-q", "1", "-t",
                            f"sensors/{device}/x", "-m", "1"], timeout=TIME_LIMIT_SECONDS, check=True)
            self.assertIn("billing, heating", self.place.cli("device", "show", device).stdout)
            self.assertEqual(self.place.cli("last", f"{device}/x").returncode, 4)
            self.assertEqual(self.place.cli("last", f"{device}/x", "--purpose", "heating").returncode, 0)
        # What is said by hand stays.
        self.assertEqual(self.place.cli("device", "set", "meter", "--owner", "bob").returncode, 0)
        subprocess.run(["mosquitto_pub", "-p", str(self.daemon.mqtt_port()), "-q", "1", "-t",
                        "sensors/meter/y", "-m", "1"], timeout=TIME_LIMIT_SECONDS, check=True)
        self.assertIn("owner       bob", self.place.cli("device", "show", "meter").stdout)

    @unittest.skipUnless(HAS_CLIENTS, "mosquitto-clients is not installed")
    def test_mqtt_clients(self):
        port = str(self.daemon.mqtt_port())

        def publish(version, topic, *credentials):
            return subprocess.run(["mosquitto_pub", "-p", port, "-V", version, "-q", "1", "-t", topic, "-m", "1",
                                   *credentials], capture_output=True, text=True,
                                  timeout=TIME_LIMIT_SECONDS, check=False)
        self.assertEqual(publish("mqttv311", "sensors/kitchen/temp").returncode, 0)
        token = self.token("--write", "kitchen/*")
        good = ("-u", token[4:14], "-P", token)
        for version in ("mqttv311", "mqttv5"):
            self.assertNotEqual(publish(version, "sensors/kitchen/temp").returncode, 0)
            self.assertNotEqual(publish(version, "sensors/kitchen/temp", "-u", "x", "-P", token).returncode, 0)
            self.assertEqual(publish(version, "sensors/kitchen/temp", *good).returncode, 0)
            refused = publish(version, "sensors/shed/temp", *good)
            if version == "mqttv5":
                self.assertIn("not authorized", (refused.stdout + refused.stderr).lower())
        self.assertEqual(self.place.cli("last", "shed/temp").returncode, 3)
        counted = self.place.cli("query", "kitchen/temp", "--format", "csv").stdout.count("\n") - 1
        self.assertEqual(counted, 3)
        rejected = self.place.cli("query", "mqtt/message", "-n", "_rejected", "--format", "ndjson").stdout
        self.assertEqual(rejected.count("may not write shed/temp"), 2)
        self.assertNotIn(token, rejected)

    def test_other_machines_need_a_token(self):
        everywhere = "--http.listen", "0.0.0.0:0"
        started = ["serve", "--config", self.place.config]
        self.daemon.stop()
        for flags in (everywhere, ("--mqtt.listen", "0.0.0.0:0")):
            result = run([*started, *flags])
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertIn("edgecase token create", result.stderr)
        self.daemon = Daemon(self.place)
        token = self.token("--read", "*/*")
        self.daemon.stop()
        self.daemon = Daemon(self.place, verb=("serve", *everywhere))
        port = self.daemon.log().rsplit("0.0.0.0:", 1)[1].split()[0]
        if address := own_address():
            self.address = f"{address}:{port}"
            self.assertEqual(self.remote("last").returncode, 4)
            self.assertEqual(self.remote("last", token=token).returncode, 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
