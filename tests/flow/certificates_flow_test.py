#!/usr/bin/env python3
"""Devices that show a certificate instead of a token: mosquitto_pub and curl against a daemon that asks for one, with
certificates that are good, another authority's, past, revoked, and of nobody that a token stands for."""
import json
import os
import shutil
import socket
import ssl
import struct
import subprocess
import unittest

from daemon_process import TIME_LIMIT_SECONDS, Daemon, Place, clean_environment, until
from mqtt_device import packet, text

TLS = """tls-cert = "{0}/board.crt"
tls-key = "{0}/board.key"
tls-client-ca = "{0}/ca.crt"
tls-client-crl = "{0}/ca.crl"
"""
CONFIG = """[storage]
metadata = "{0}/meta"
values = "{0}/values"
reserve = "0MiB"
[http]
socket = "{0}/s"
listen = "localhost:0"
{tls}
[mqtt]
broker = ""
listen = "localhost:0"
{tls}
[[mqtt.rule]]
topic = "sensors/{{device}}/{{sensor}}"
"""
CA = """[ca]
default_ca = here
[here]
database = {0}/index
serial = {0}/serial
new_certs_dir = {0}
certificate = {0}/ca.crt
private_key = {0}/ca.key
default_md = sha256
default_days = 30
default_crl_days = 30
policy = any
copy_extensions = copy
unique_subject = no
x509_extensions = told
[any]
commonName = supplied
[told]
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
"""


@unittest.skipUnless(shutil.which("openssl"), "openssl is not installed")
class CertificatesFlow(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place = Place()
        cls.path = cls.place.path
        cls.file("ca.conf", CA.format(cls.path))
        cls.file("index", "")
        cls.file("serial", "10\n")
        cls.authority("ca")
        cls.authority("other")
        cls.request("board", "board", "DNS:localhost,IP:127.0.0.1")
        cls.sign("board")
        for name in ("sensor-17", "stranger", "lost"):
            cls.request(name, name)
            cls.sign(name)
        cls.request("long", "a name of no token", "DNS:pump.plant")
        cls.sign("long")
        cls.request("past", "sensor-17")
        cls.sign("past", "-startdate", "20200101000000Z", "-enddate", "20210101000000Z")
        cls.request("foreign", "sensor-17")
        cls.sign("foreign", "-cert", cls.at("other.crt"), "-keyfile", cls.at("other.key"))
        cls.revoke("lost")
        os.chmod(cls.at("board.key"), 0o600)
        cls.file("edgecase.toml", CONFIG.format(cls.path, tls=TLS.format(cls.path)))
        cls.daemon = Daemon(cls.place)
        cls.cli("token", "create", "--write", "sensor-17/*", "--read", "sensor-17/*", "--certificate", "sensor-17")
        cls.cli("token", "create", "--write", "pump/*", "--certificate", "pump.plant")
        cls.cli("token", "create", "--write", "*", "--certificate", "lost")

    @classmethod
    def tearDownClass(cls):
        cls.daemon.stop()
        cls.place.remove()

    @classmethod
    def at(cls, name):
        return os.path.join(cls.path, name)

    @classmethod
    def file(cls, name, text):
        with open(cls.at(name), "w", encoding="utf-8") as file:
            file.write(text)

    @classmethod
    def openssl(cls, *arguments):
        subprocess.run(["openssl", *arguments], check=True, capture_output=True, timeout=TIME_LIMIT_SECONDS)

    @classmethod
    def authority(cls, name):
        cls.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout",
                    cls.at(f"{name}.key"), "-out", cls.at(f"{name}.crt"), "-days", "30", "-subj", f"/CN={name}",
                    "-addext", "keyUsage=critical,keyCertSign,cRLSign")

    @classmethod
    def request(cls, name, common_name, alternative=None):
        more = ["-addext", f"subjectAltName={alternative}"] if alternative else []
        cls.openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout",
                    cls.at(f"{name}.key"), "-out", cls.at(f"{name}.csr"), "-subj", f"/CN={common_name}", *more)

    @classmethod
    def sign(cls, name, *more):
        cls.openssl("ca", "-batch", "-config", cls.at("ca.conf"), "-in", cls.at(f"{name}.csr"), "-out",
                    cls.at(f"{name}.crt"), "-notext", *more)

    @classmethod
    def revoke(cls, name):
        cls.openssl("ca", "-config", cls.at("ca.conf"), "-revoke", cls.at(f"{name}.crt"))
        cls.openssl("ca", "-config", cls.at("ca.conf"), "-gencrl", "-out", cls.at("ca.crl"))

    @classmethod
    def cli(cls, *arguments):
        result = cls.place.cli(*arguments)
        if result.returncode != 0:
            raise AssertionError(result.stderr)
        return result.stdout

    def shown(self, name):
        return ["--cert", self.at(f"{name}.crt"), "--key", self.at(f"{name}.key")] if name else []

    def curl(self, name, *arguments, path="/api/v1/last"):
        """The status, 0 where no connection came about, and the body."""
        result = subprocess.run(
            ["curl", "-sS", "-w", "\n%{http_code}", "--cacert", self.at("ca.crt"), *self.shown(name), *arguments,
             f"https://localhost:{self.daemon.port()}{path}"], capture_output=True, text=True,
            timeout=TIME_LIMIT_SECONDS, env=clean_environment({}), check=False)
        body, status = result.stdout.rsplit("\n", 1)
        return int(status), body

    def publish(self, name, topic, payload):
        return subprocess.run(
            ["mosquitto_pub", "-h", "localhost", "-p", str(self.daemon.mqtt_port()), "--cafile", self.at("ca.crt"),
             *self.shown(name), "-q", "1", "-t", topic, "-m", payload], capture_output=True, text=True,
            timeout=TIME_LIMIT_SECONDS, check=False).returncode

    def test_a_certificate_stands_for_its_token_over_http(self):
        write = ("--data-binary", "air,device=sensor-17 v=1")
        self.assertEqual(self.curl("sensor-17", *write, path="/write")[0], 204)
        status, body = self.curl("sensor-17", path="/api/v1/last?select=sensor-17/*&format=ndjson")
        self.assertEqual(status, 200)
        self.assertIn("sensor-17", body)
        elsewhere = ("--data-binary", "air,device=cellar v=1")
        self.assertEqual(self.curl("sensor-17", *elsewhere, path="/write")[0], 403)
        # By an alternative name; the common name has no token.
        self.assertEqual(self.curl("long", "--data-binary", "air,device=pump v=1", path="/write")[0], 204)
        audit = self.cli("audit", "--json")
        self.assertIn("certificate sensor-17 of", audit)
        # A token that is shown is used, not the certificate.
        token = json.loads(self.cli("token", "create", "--write", "cellar/*", "--json"))["token"]
        bearer = ("-H", f"Authorization: Bearer {token}")
        self.assertEqual(self.curl("sensor-17", *elsewhere, *bearer, path="/write")[0], 204)
        self.assertEqual(self.curl("sensor-17", *write, *bearer, path="/write")[0], 403)

    def test_without_one_or_with_nobodys_a_token_is_needed(self):
        status, body = self.curl(None)
        self.assertEqual(status, 401)
        self.assertIn("a token is needed", body)
        status, body = self.curl("stranger")
        self.assertEqual(status, 401)
        self.assertIn("--certificate", body)
        self.assertNotEqual(self.publish(None, "sensors/sensor-17/t", "1"), 0)
        self.assertNotEqual(self.publish("stranger", "sensors/sensor-17/t", "1"), 0)

    def test_one_that_is_not_good_ends_the_connection(self):
        for name in ("foreign", "past", "lost"):
            with self.subTest(name):
                self.assertEqual(self.curl(name)[0], 0)
                self.assertNotEqual(self.publish(name, "sensors/sensor-17/t", "1"), 0)
        self.assertNotIn("lost", self.cli("devices"))

    def test_a_device_publishes_by_its_certificate(self):
        self.assertEqual(self.publish("sensor-17", "sensors/sensor-17/temp", "21.5"), 0)
        self.assertIn("21.5", self.cli("query", "sensor-17/temp", "--format", "csv"))
        # Of another device: not allowed, and kept as rejected.
        self.publish("sensor-17", "sensors/cellar/temp", "99.25")
        self.assertNotIn("99.25", self.cli("query", "cellar/*", "--format", "csv"))

    def test_a_small_device_publishes_in_small_records(self):
        """As microcontrollers do: TLS 1.2 and one cipher, no ticket, records of a few bytes, packets cut anywhere."""
        context = ssl.create_default_context(cafile=self.at("ca.crt"))
        context.verify_flags |= ssl.VERIFY_X509_STRICT  # as Python 3.13 does by itself
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        context.set_ciphers("ECDHE-ECDSA-AES128-GCM-SHA256")
        context.options |= ssl.OP_NO_TICKET
        context.load_cert_chain(self.at("sensor-17.crt"), self.at("sensor-17.key"))
        publishes = b"".join(
            packet(0x32, text("sensors/sensor-17/small") + struct.pack(">H", number) + str(number).encode())
            for number in range(1, 21))
        for record_bytes in (1, 7, 64):
            with self.subTest(record_bytes=record_bytes), \
                    socket.create_connection(("localhost", self.daemon.mqtt_port()), TIME_LIMIT_SECONDS) as plain, \
                    context.wrap_socket(plain, server_hostname="localhost") as device:
                self.assertEqual(device.cipher()[0], "ECDHE-ECDSA-AES128-GCM-SHA256")

                def send(data):
                    for at in range(0, len(data), record_bytes):
                        device.sendall(data[at:at + record_bytes])

                def receive(size):
                    got = b""
                    while len(got) < size:
                        piece = device.recv(size - len(got))
                        self.assertTrue(piece, got)
                        got += piece
                    return got
                send(packet(0x10, text("MQTT") + bytes([4, 2, 0, 30]) + text("esp")))
                self.assertEqual(receive(4), b"\x20\x02\x00\x00")
                send(publishes)
                acknowledged = receive(20 * 4)
                self.assertEqual({acknowledged[i:i + 4] for i in range(0, 80, 4)},
                                 {b"\x40\x02" + struct.pack(">H", number) for number in range(1, 21)})
                send(b"\xe0\x00")
        # What was acknowledged is there.
        self.assertIn(",20,", self.cli("query", "sensor-17/small", "--format", "csv"))

    def test_a_revocation_holds_from_the_next_connection_on(self):
        self.request("leaving", "leaving")
        self.sign("leaving")
        made = json.loads(self.cli("token", "create", "--write", "leaving/*", "--certificate", "leaving", "--json"))
        self.assertIsNone(made["token"])
        again = self.place.cli("token", "create", "--write", "*", "--certificate", "leaving")
        self.assertEqual(again.returncode, 2)
        self.assertIn("revoke it first", again.stderr)
        self.assertIn("by certificate leaving", self.cli("token", "list"))
        write = ("--data-binary", "air,device=leaving v=1")
        self.assertEqual(self.curl("leaving", *write, path="/write")[0], 204)
        self.cli("token", "revoke", made["id"])
        self.assertEqual(self.curl("leaving", *write, path="/write")[0], 401)
        self.cli("token", "create", "--write", "leaving/*", "--certificate", "leaving")
        self.assertEqual(self.curl("leaving", *write, path="/write")[0], 204)
        self.revoke("leaving")
        self.daemon.process.send_signal(1)
        until(lambda: self.curl("leaving", *write, path="/write")[0] == 0, "the list of revoked ones is read")

    def test_wrong_files_are_one_line(self):
        place = Place()
        self.addCleanup(place.remove)
        for more, says in ((f'tls-client-ca = "{self.at("ca.crt")}"\n', "http.tls-cert is empty"),
                           (f'tls-cert = "{self.at("board.crt")}"\ntls-key = "{self.at("board.key")}"\n'
                            f'tls-client-crl = "{self.at("ca.crl")}"\n', "http.tls-client-ca is empty"),
                           (f'tls-cert = "{self.at("board.crt")}"\ntls-key = "{self.at("board.key")}"\n'
                            f'tls-client-ca = "{self.at("ca.key")}"\n', "is no certificate")):
            with self.subTest(says):
                self.file(place.config, CONFIG.format(place.path, tls="").replace("[mqtt]", more + "[mqtt]"))
                checked = place.cli("config", "check", place.config)
                self.assertEqual(checked.returncode, 2)
                self.assertIn(says, checked.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
