#!/usr/bin/env python3
"""The daemon behind its own certificate: the command line, curl, mosquitto_pub and a broker's bridge."""
import json
import os
import select
import shutil
import signal
import socket
import ssl
import subprocess
import unittest

import mosquitto
from daemon_process import (PROGRAM, TIME_LIMIT_SECONDS, Daemon, Place, clean_environment, until)

TLS = """
listen = "localhost:0"
tls-cert = "{path}/board.crt"
tls-key = "{path}/board.key"
[[mqtt.rule]]
topic = "sensors/{{device}}/{{sensor}}"
"""


@unittest.skipUnless(shutil.which("openssl"), "openssl is not installed")
class TlsFlow(unittest.TestCase):
    def setUp(self):
        self.place = Place()
        self.addCleanup(self.place.remove)
        self.certificate = os.path.join(self.place.path, "board.crt")
        self.key = os.path.join(self.place.path, "board.key")
        self.make_certificate()
        self.place.write_config(
            listen=f'localhost:0"\ntls-cert = "{self.certificate}"\ntls-key = "{self.key}',
            more=TLS.format(path=self.place.path))

    def make_certificate(self):
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                        "-nodes", "-keyout", self.key, "-out", self.certificate, "-days", "3650",
                        "-subj", "/CN=board", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"],
                       check=True, capture_output=True, timeout=TIME_LIMIT_SECONDS)
        os.chmod(self.key, 0o600)

    def start(self):
        daemon = Daemon(self.place)
        self.addCleanup(daemon.stop)
        return daemon

    def has_client(self):
        status = json.loads(self.place.cli("status", "--json").stdout)
        return status["mqtt"]["listener"]["connections"] == 1

    def test_every_client_reads_and_writes_through_it(self):
        daemon = self.start()
        self.assertIn("(TLS)", daemon.log())
        host = f"https://localhost:{daemon.port()}"
        secure = ("--host", host, "--tls-ca", self.certificate)
        written = self.place.cli("write", "a/x", "1", "--time", "@1", *secure)
        self.assertEqual(written.returncode, 0, written.stderr)
        lines = "".join(f"m,device=curl x={i} {i}\n" for i in range(50_000))
        posted = subprocess.run(["curl", "-sS", "--fail", "--cacert", self.certificate, "--data-binary", "@-",
                                 host + "/write"], input=lines, text=True, capture_output=True, check=False,
                                timeout=TIME_LIMIT_SECONDS)
        self.assertEqual((posted.returncode, posted.stderr), (0, ""))
        if shutil.which("mosquitto_pub"):
            sent = subprocess.run(["mosquitto_pub", "-h", "localhost", "-p", str(daemon.mqtt_port()),
                                   "--cafile", self.certificate, "-q", "1", "-t", "sensors/a/y", "-m", "2"],
                                  capture_output=True, text=True, check=False, timeout=TIME_LIMIT_SECONDS)
            self.assertEqual((sent.returncode, sent.stderr), (0, ""))
            last = self.place.cli("last", "a/y", *secure)
            self.assertIn(",2,float", last.stdout, last.stderr)
        exported = self.place.cli("export", "curl", "--format", "csv", *secure)
        self.assertEqual(exported.stdout.count("\n"), 50_001)
        # The socket of this machine needs none of it.
        self.assertEqual(self.place.cli("last", "a/x").returncode, 0)

    def tail(self, daemon, extra):
        """`edgecase tail` through TLS that has shown a reading."""
        tail = subprocess.Popen([PROGRAM, "tail", "a/tail", "--format", "csv", "--host",
                                 f"https://localhost:{daemon.port()}", "--tls-ca", self.certificate],
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                env=clean_environment(extra))
        self.addCleanup(tail.stdout.close)
        self.addCleanup(tail.wait, TIME_LIMIT_SECONDS)
        self.addCleanup(tail.kill)
        self.shows(tail)
        return tail

    def shows(self, tail):
        """Writes until the tail shows something."""
        def comes():
            self.assertEqual(self.place.cli("write", "a/tail", "1").returncode, 0)
            return select.select([tail.stdout], [], [], 0.1)[0]
        until(comes, "the tail shows a reading")

    def test_a_hangup_takes_a_new_certificate_and_new_names(self):
        daemon = self.start()

        def asked(host):
            """The certificate that is shown, and the status that a browser gets by that name."""
            context = ssl.create_default_context()
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
            with context.wrap_socket(socket.create_connection(("localhost", daemon.port()), TIME_LIMIT_SECONDS)) as tls:
                certificate = tls.getpeercert(binary_form=True)
                tls.sendall(f"GET /api/v1/status HTTP/1.1\r\nHost: {host}\r\nUser-Agent: Mozilla/5.0\r\n"
                            "Connection: close\r\n\r\n".encode())
                return certificate, int(tls.recv(4096).split()[1])

        first, status = asked("pump-house.example")
        self.assertEqual(status, 403)
        self.make_certificate()
        self.place.write_config(
            listen=f'localhost:0"\ntls-cert = "{self.certificate}"\ntls-key = "{self.key}"\n'
                   'names = ["pump-house.example"]\n#',
            more=TLS.format(path=self.place.path))
        daemon.process.send_signal(signal.SIGHUP)
        until(lambda: asked("pump-house.example")[0] != first, "the new certificate is shown")
        until(lambda: asked("pump-house.example")[1] == 200, "the new name is taken")
        self.assertEqual(asked("other.example")[1], 403)
        # A certificate that cannot be used changes nothing.
        second = asked("localhost")[0]
        with open(self.certificate, "w", encoding="ascii") as file:
            file.write("no certificate")
        daemon.process.send_signal(signal.SIGHUP)
        until(lambda: "nothing changes" in daemon.log() or self.certificate in daemon.log(), "it is told")
        self.assertEqual(asked("localhost")[0], second)

    def test_the_way_through_tls_leaves_no_file_however_it_ends(self):
        daemon = self.start()
        own = os.path.join(self.place.path, "tmp")
        os.mkdir(own)
        for how in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            with self.subTest(how=how):
                tail = self.tail(daemon, {"TMPDIR": own})
                self.assertEqual(os.listdir(own), [])
                tail.send_signal(how)
                tail.wait(TIME_LIMIT_SECONDS)
                self.assertEqual(os.listdir(own), [])

    def test_where_the_machine_trusts_nobody_one_line_says_what_to_do(self):
        daemon = self.start()
        without = ("unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /etc/ssl/certs && exec "$0" "$@"')
        if subprocess.run([*without, "true"], capture_output=True, check=False).returncode != 0:
            self.skipTest("needs mounts of its own")
        told = "No such file or directory; name a file of certificates to trust, or install the package ca-certificates"
        done = subprocess.run([*without, PROGRAM, "status", "--host", f"https://localhost:{daemon.port()}"],
                              capture_output=True, text=True, timeout=TIME_LIMIT_SECONDS, check=False)
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), done.stderr)
        self.assertIn(told, done.stderr)
        self.place.write_config(broker="mqtts://localhost:1")
        done = subprocess.run([*without, PROGRAM, "serve", "--config", self.place.config], capture_output=True,
                              text=True, timeout=TIME_LIMIT_SECONDS, check=False)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("mqtt.tls-ca: ", done.stderr)
        self.assertIn(told, done.stderr)

    @unittest.skipUnless(os.path.exists("/etc/ssl/certs/ca-certificates.crt"), "ca-certificates is not installed")
    def test_who_does_not_trust_it_is_told_how_to(self):
        daemon = self.start()
        refused = self.place.cli("status", "--host", f"https://localhost:{daemon.port()}")
        self.assertEqual(refused.returncode, 5)
        self.assertIn("--tls-ca FILE", refused.stderr)
        clear = self.place.cli("status", "--host", f"http://localhost:{daemon.port()}")
        self.assertEqual(clear.returncode, 5)

    def test_a_certificate_that_cannot_be_used_is_one_line_and_exit_code_2(self):
        os.chmod(self.key, 0o644)
        served = self.place.cli("serve", "--config", self.place.config)
        self.assertEqual(served.returncode, 2)
        self.assertIn("http.tls-cert: ", served.stderr)
        self.assertIn("chmod 0640", served.stderr)
        self.assertEqual(served.stderr.count("\n"), 1)
        checked = self.place.cli("config", "check", self.place.config)
        self.assertEqual(checked.returncode, 2)

    @unittest.skipUnless(mosquitto.PROGRAM, "mosquitto is not installed")
    def test_a_brokers_bridge_publishes_through_it(self):
        daemon = self.start()
        broker = mosquitto.Broker(f"""connection up
address localhost:{daemon.mqtt_port()}
bridge_cafile {self.certificate}
topic sensors/# out 1
cleansession false
notifications false
restart_timeout 1
""")
        self.addCleanup(broker.remove)
        until(self.has_client, "the bridge is there")
        publisher = mosquitto.Publisher(broker, "sensor")
        for number in range(20):  # mosquitto may hang with more before its bridge is up
            publisher.publish("sensors/bridge/n", str(number))
        publisher.settle()
        until(lambda: self.place.cli("query", "bridge/n", "--format", "csv").stdout.count("\n") == 21,
              "everything was bridged")


if __name__ == "__main__":
    unittest.main(verbosity=2)
