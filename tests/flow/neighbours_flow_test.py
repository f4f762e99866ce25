#!/usr/bin/env python3
"""What stands beside the daemon on a board: reverse proxies by the packaged recipes, and Prometheus."""
import http.client
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import unittest

import mosquitto
from daemon_process import TIME_LIMIT_SECONDS, Daemon, Place, until
from loopback import LOOPBACK, LOOPBACK_FAMILY, LOOPBACK_IN_URL, has_address

HERE = pathlib.Path(__file__).resolve().parent
PACKAGING = HERE.parents[1] / "packaging"
PATH = os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin"
NAME = "board.example"
CONFIG = """[http]
socket = "{path}/s"
listen = "localhost:0"
names = ["{name}"]
proxies = ["127.0.0.1", "::1"]
[storage]
metadata = "{path}/meta"
values = "{path}/values"
reserve = "0MiB"
[audit]
mode = "strict"
[mqtt]
broker = ""
"""
_PORTS_TRIED = 5


def program(name):
    return shutil.which(name, path=PATH)


def free_port():
    """Proxies cannot be asked to choose one themselves."""
    with socket.create_server((LOOPBACK, 0), family=LOOPBACK_FAMILY) as free:
        return free.getsockname()[1]


class NeighboursFlow(unittest.TestCase):
    def setUp(self):
        self.place = Place()
        self.addCleanup(self.place.remove)
        with open(self.place.config, "w", encoding="utf-8") as file:
            file.write(CONFIG.format(path=self.place.path, name=NAME))
        self.daemon = Daemon(self.place)
        self.addCleanup(self.daemon.stop)
        self.daemon_port = int(re.search(r"localhost:(\d+)", self.daemon.log()).group(1))

    def ask(self, port, method, path, body=None, token=None, headers=()):
        """Status and text of the answer, as a browser at the board's name would be given it."""
        given = {"Host": f"{NAME}:{port}", "User-Agent": "Mozilla/5.0", **dict(headers)}
        if token:
            given["Authorization"] = "Bearer " + token
        connection = http.client.HTTPConnection("localhost", port, timeout=TIME_LIMIT_SECONDS)
        try:
            connection.request(method, path, body, given)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def serve(self, write_config, command):
        """A proxy's port, once it takes connections."""
        for _ in range(_PORTS_TRIED):
            port = free_port()
            write_config(port)
            with open(os.path.join(self.place.path, "proxy.log"), "ab") as log:
                proxy = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                         env={**os.environ, "HOME": self.place.path})

            def answers(proxy=proxy, port=port):
                if proxy.poll() is not None:
                    return True
                try:
                    socket.create_connection(("localhost", port), TIME_LIMIT_SECONDS).close()
                    return True
                except OSError:
                    return False
            until(answers, "the proxy takes connections")
            if proxy.poll() is None:
                self.addCleanup(proxy.wait, TIME_LIMIT_SECONDS)
                self.addCleanup(proxy.terminate)
                return port
        raise AssertionError(pathlib.Path(self.place.path, "proxy.log").read_text(encoding="utf-8"))

    def goes_through(self, port):
        """What every recipe promises."""
        # A stranger is none of this machine's programs, whatever it says of itself.
        for headers in ((), {"X-Forwarded-For": "127.0.0.1"}.items(), {"Forwarded": "for=127.0.0.1"}.items()):
            self.assertEqual(self.ask(port, "POST", "/api/v1/tokens?admin=true", headers=headers)[0], 401)
            self.assertEqual(self.ask(port, "GET", "/api/v1/series", headers=headers)[0], 401)
        made = self.place.cli("token", "create", "--admin")
        self.assertEqual(made.returncode, 0, made.stderr)
        token = re.search(r"ec1_\S+", made.stdout).group(0)
        origin = {"Origin": f"http://{NAME}:{port}"}.items()
        self.assertEqual(self.ask(port, "POST", "/write", "m,device=a x=1 1", token, origin)[0], 204)
        status, text = self.ask(port, "GET", "/api/v1/last?select=a/*&format=csv", token=token)
        self.assertEqual(status, 200)
        self.assertIn(",1,float", text)
        self.assertEqual(self.ask(port, "GET", "/", token=token)[0], 200)
        other = {"Origin": "http://evil.example"}.items()
        self.assertEqual(self.ask(port, "POST", "/write", "m,device=a x=2 2", token, other)[0], 403)
        # Who asked is the client, not the proxy, and not what the client says it is.
        lie = {"X-Forwarded-For": "192.0.2.66", "Forwarded": "for=192.0.2.67"}.items()
        self.assertEqual(self.ask(port, "GET", "/api/v1/query?select=a/*", token=token, headers=lie)[0], 200)
        audit = self.place.cli("audit", "--json")
        self.assertEqual(audit.returncode, 0, audit.stderr)
        self.assertRegex(audit.stdout, r"token \w+ of (127\.0\.0\.1|::1)")
        self.assertNotIn("192.0.2.6", audit.stdout)

    @unittest.skipUnless(program("nginx"), "nginx is not installed")
    def test_nginx_by_the_packaged_recipe(self):
        config = os.path.join(self.place.path, "nginx.conf")
        recipe = (PACKAGING / "nginx.conf").read_text(encoding="utf-8")

        def write(port):
            site = re.sub(r"listen 443 ssl;", f"listen 127.0.0.1:{port}; listen [::1]:{port};", recipe)
            if not has_address("::1"):
                site = site.replace(f" listen [::1]:{port};", "")
            if not has_address("127.0.0.1"):
                site = site.replace(f"listen 127.0.0.1:{port};", "")
            site = re.sub(r" *ssl_certificate.*\n", "", site)
            site = re.sub(r"localhost:\d+", f"localhost:{self.daemon_port}", site)
            temporary = "".join(f"{kind}_temp_path {self.place.path}/{kind};\n"
                                for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
            with open(config, "w", encoding="utf-8") as file:
                file.write(f"daemon off; pid {self.place.path}/nginx.pid; worker_processes 1;\n"
                           f"error_log {self.place.path}/nginx.log;\n{'user root;' if os.geteuid() == 0 else ''}\n"
                           f"events {{}}\nhttp {{\naccess_log off;\n{temporary}{site}}}\n")
        self.goes_through(self.serve(write, [program("nginx"), "-e", f"{self.place.path}/nginx.log", "-c", config]))

    @unittest.skipUnless(program("caddy"), "caddy is not installed")
    def test_caddy_by_the_packaged_recipe(self):
        config = os.path.join(self.place.path, "Caddyfile")
        recipe = (PACKAGING / "Caddyfile").read_text(encoding="utf-8")

        def write(port):
            site = recipe.replace("\nboard.example {", f"\nhttp://{NAME}:{port} {{")
            site = re.sub(r"localhost:\d+", f"localhost:{self.daemon_port}", site)
            with open(config, "w", encoding="utf-8") as file:
                file.write("{\n\tadmin off\n\tauto_https off\n}\n" + site)
        self.goes_through(self.serve(write, [program("caddy"), "run", "--config", config, "--adapter", "caddyfile"]))

    def test_prometheus_finds_nothing_wrong_with_the_metrics(self):
        for target in ("m,device=a x=1 1\nbad line",):
            self.ask(self.daemon_port, "POST", "/write", target)
        status, text = self.ask(self.daemon_port, "GET", "/metrics")
        self.assertEqual(status, 200)
        types = dict(re.findall(r"^# TYPE (\S+) (\w+)$", text, re.MULTILINE))
        self.assertGreater(len(types), 50)
        for name, kind in types.items():
            with self.subTest(name=name):
                self.assertRegex(text, rf"(?m)^# HELP {name} \S")
                self.assertEqual(name.endswith("_total"), kind == "counter")
                self.assertNotRegex(name, r"_(milliseconds|ms|minutes|hours|days|kilobytes|megabytes|percent)(_|$)")
        if program("promtool"):
            judged = subprocess.run([program("promtool"), "check", "metrics"], input=text, text=True,
                                    capture_output=True, check=False, timeout=TIME_LIMIT_SECONDS)
            self.assertEqual((judged.returncode, judged.stdout + judged.stderr), (0, ""))


MQTT = """
listen = "localhost:0"
[[mqtt.rule]]
topic = "sensors/{device}/{sensor}"
"""


class LoopbackFlow(unittest.TestCase):
    """On whatever loopback addresses this machine has; LoopbacksFlow runs it with each alone."""

    def test_localhost_is_found_by_whoever_looks_for_it(self):
        place = Place()
        self.addCleanup(place.remove)
        place.write_config(listen="localhost:0", more=MQTT)
        daemon = Daemon(place)
        self.addCleanup(daemon.stop)
        for address in filter(has_address, ("127.0.0.1", "::1")):
            for port in (daemon.port(), daemon.mqtt_port()):
                socket.create_connection((address, port), TIME_LIMIT_SECONDS).close()
        for host in (f"localhost:{daemon.port()}", f"http://LOCALHOST:{daemon.port()}/",
                     f"http://{LOOPBACK_IN_URL}:{daemon.port()}"):
            written = place.cli("write", "cli/x", "1", "--host", host)
            self.assertEqual(written.returncode, 0, written.stderr)
        if program("curl"):
            done = subprocess.run(["curl", "-sS", "--fail", "--data-binary", "m,device=curl x=1",
                                   f"http://localhost:{daemon.port()}/write"], capture_output=True, text=True,
                                  check=False, timeout=TIME_LIMIT_SECONDS)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
        if program("mosquitto_pub"):
            done = subprocess.run(["mosquitto_pub", "-h", "localhost", "-p", str(daemon.mqtt_port()), "-q", "1",
                                   "-t", "sensors/mqtt/x", "-m", "1"], capture_output=True, text=True,
                                  check=False, timeout=TIME_LIMIT_SECONDS)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
        if mosquitto.PROGRAM and program("mosquitto_pub"):
            # A bridge tries one address.
            broker = mosquitto.Broker(f"connection up\naddress localhost:{daemon.mqtt_port()}\n"
                                      "topic sensors/# out 1\nnotifications false\nrestart_timeout 1\n")
            self.addCleanup(broker.remove)
            until(lambda: '"connections":1' in place.cli("status", "--json").stdout.replace(" ", ""),
                  "the bridge is there")


class LoopbacksFlow(unittest.TestCase):
    def test_with_either_loopback_alone_and_with_both(self):
        for kind in ("four", "six", "both"):
            with self.subTest(kind=kind):
                done = subprocess.run([HERE / "loopback.sh", kind, sys.executable, __file__, "LoopbackFlow"],
                                      capture_output=True, text=True, check=False, timeout=20 * TIME_LIMIT_SECONDS)
                if done.returncode == 77:
                    self.skipTest(done.stdout.strip())
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
