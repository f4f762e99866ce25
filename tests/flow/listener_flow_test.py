#!/usr/bin/env python3
"""Real clients that publish straight to the daemon: mosquitto's and a broker's bridge; and hostile ones."""
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import unittest

import mosquitto
from daemon_process import TIME_LIMIT_SECONDS, Daemon, Place, until
from loopback import LOOPBACK, LOOPBACK_FAMILY
from mqtt_device import Device, packet, text

LISTEN = """
listen = "localhost:{port}"
[[mqtt.rule]]
topic = "sensors/{{device}}/{{sensor}}"
"""
HAS_CLIENTS = shutil.which("mosquitto_pub") is not None
VERSIONS = ("mqttv311", "mqttv5")
HALVES = 200
HALF_BYTES = 50_000


class ListenerFlow(unittest.TestCase):
    def setUp(self):
        self.place = Place()
        self.addCleanup(self.place.remove)
        self.place.write_config(more=LISTEN.format(port=0))
        self.daemon = Daemon(self.place)
        self.addCleanup(lambda: self.daemon.stop())
        self.port = self.daemon.mqtt_port()

    def values(self, device):
        result = self.place.cli("query", f"{device}/*", "--format", "csv")
        return [line.split(",")[4] for line in result.stdout.splitlines()[1:]]

    def listener(self):
        return json.loads(self.place.cli("status", "--json").stdout)["mqtt"]["listener"]

    def rejected(self):
        result = self.place.cli("query", "mqtt/message", "-n", "_rejected", "--format", "ndjson")
        return [json.loads(json.loads(line)["value"]) for line in result.stdout.splitlines()]

    def client(self, program, *arguments, **more):
        return subprocess.run([program, "-p", str(self.port), *arguments], capture_output=True, text=True,
                              timeout=TIME_LIMIT_SECONDS, check=False, **more)

    @unittest.skipUnless(HAS_CLIENTS, "mosquitto-clients is not installed")
    def test_a_topic_of_ones_own_leads_to_its_rule(self):
        """As typed: nothing is there, the log says where to look, the lines that are shown are taken."""
        publish = ("mosquitto_pub", "-q", "1", "-t", "plant/press/temp", "-m", "21.5")
        self.assertEqual(self.client(*publish).returncode, 0)
        nothing = self.place.cli("last")
        self.assertIn("1 message was not understood, and kept: edgecase query -n _rejected", nothing.stderr)
        self.assertIn("no rule takes this topic; edgecase mqtt test TOPIC PAYLOAD shows one", self.daemon.log())
        tried = self.place.cli("mqtt", "test", "plant/press/temp", "21.5")
        self.assertEqual(tried.returncode, 1)
        lines = tried.stdout.split("\n\n")[1] + "\n"
        self.assertTrue(lines.startswith("[[mqtt.rule]]\n"), tried.stdout)
        self.place.write_config(more=LISTEN.format(port=0) + lines)
        self.daemon.process.send_signal(signal.SIGHUP)
        until(lambda: self.place.cli("mqtt", "test", "plant/press/temp", "21.5").returncode == 0, "the rule is read")
        self.assertEqual(self.client(*publish).returncode, 0)
        self.assertEqual(self.values("press"), ["21.5"])

    @unittest.skipUnless(HAS_CLIENTS, "mosquitto-clients is not installed")
    def test_mosquitto_pub_at_every_version_and_qos(self):
        numbers = [str(n) for n in range(200)]
        for version in VERSIONS:
            for qos in "012":
                device = f"{version}-{qos}"
                sent = self.client("mosquitto_pub", "-V", version, "-q", qos, "-r", "-l", "-t",
                                   f"sensors/{device}/n", "--will-topic", "gone", "--will-payload", "x",
                                   input="\n".join(numbers) + "\n")
                self.assertEqual((sent.returncode, sent.stderr), (0, ""), device)
                if qos == "0":
                    until(lambda: len(self.values(device)) == len(numbers), "everything is stored")
                self.assertEqual(self.values(device), numbers, device)
        status = self.listener()
        self.assertEqual((status["rejected"], status["failed"], status["refused"]), (0, 0, 0))
        self.assertEqual(status["acknowledged_means"], "durable on the drive")
        self.assertIn("not acknowledged", status["qos0_means"])

    @unittest.skipUnless(HAS_CLIENTS, "mosquitto-clients is not installed")
    def test_mosquitto_sub_is_told_that_nothing_is_to_be_had(self):
        for version in VERSIONS:
            asked = self.client("mosquitto_sub", "-V", version, "-t", "sensors/#")
            self.assertIn("denied", asked.stderr, version)

    @unittest.skipUnless(HAS_CLIENTS, "mosquitto-clients is not installed")
    def test_the_will_of_a_client_that_is_killed_is_stored(self):
        for version in VERSIONS:
            client = subprocess.Popen(["mosquitto_pub", "-p", str(self.port), "-V", version, "-l", "-t",
                                       f"sensors/{version}/lwt", "--will-topic", f"sensors/{version}/lwt",
                                       "--will-payload", "Offline"], stdin=subprocess.PIPE, text=True)
            self.addCleanup(client.stdin.close)
            client.stdin.write("Online\n")
            client.stdin.flush()
            until(lambda: self.values(version) == ["Online"], "it is online")
            client.kill()
            client.wait()
            until(lambda: self.values(version) == ["Online", "Offline"], "its will is stored")
        self.assertEqual(self.listener()["wills"], 2)

    @unittest.skipUnless(HAS_CLIENTS, "mosquitto-clients is not installed")
    def test_subscriptions_are_granted_where_the_setting_says_so(self):
        self.daemon.stop()
        self.place.write_config(more=LISTEN.format(port=0).replace("[[", 'subscriptions = "grant"\n[[', 1))
        self.daemon = Daemon(self.place)
        self.port = self.daemon.mqtt_port()
        for version in VERSIONS:
            asked = self.client("mosquitto_sub", "-V", version, "-t", "sensors/#", "-W", "1")
            self.assertNotIn("denied", asked.stderr, version)

    @unittest.skipUnless(HAS_CLIENTS, "mosquitto-clients is not installed")
    def test_a_message_over_the_limit_is_kept_as_rejected_and_holds_nothing_up(self):
        large = os.path.join(self.place.path, "large")
        with open(large, "wb") as file:
            file.write(b"x" * (3 << 20))
        sent = self.client("mosquitto_pub", "-q", "1", "-t", "sensors/large/x", "-f", large)
        self.assertEqual((sent.returncode, sent.stderr), (0, ""))
        [kept] = self.rejected()
        self.assertEqual(kept["topic"], "sensors/large/x")
        self.assertIn("limits.message-limit", kept["reason"])
        # Version 5 is told the limit, so its client does not even try.
        self.client("mosquitto_pub", "-V", "mqttv5", "-q", "1", "-t", "sensors/large/x", "-f", large)
        self.assertEqual(len(self.rejected()), 1)
        self.assertEqual((self.listener()["connects"], self.listener()["failed"]), (2, 0))

    def test_half_packets_and_garbage_leave_others_alone(self):
        halves = []
        for number in range(HALVES):
            device = Device(f"half{number}", version=5)
            device.connect(self.port)
            self.addCleanup(device.close)
            halves.append(device)
            large = packet(0x32, text("sensors/half/x") + b"\0\1\0" + b"x" * 900_000)
            try:
                device.socket.sendall(large[:HALF_BYTES])
            except OSError:
                pass  # shown out already
        # What they may hold together is mqtt.in-flight-limit; who comes over it is told so.
        until(lambda: self.listener()["failed"] >= HALVES - (4 << 20) // HALF_BYTES - 1, "it is bounded")
        told, _, _ = select.select([device.socket for device in halves], [], [], TIME_LIMIT_SECONDS)
        answers = [device.receive() for device in halves if device.socket in told]
        self.assertIn((0xE0, 0x97), [(kind, body[0]) for kind, body in answers])
        garbage = socket.create_connection(("localhost", self.port), TIME_LIMIT_SECONDS)
        self.addCleanup(garbage.close)
        garbage.sendall(packet(0x10, text("MQTT") + b"\4\2\0\0" + text("garbage")))
        garbage.sendall(b"".join(packet(0x30, text(f"nowhere/{n}") + b"1") for n in range(20_000)))
        good = Device("good", 5, 2)
        self.addCleanup(good.close)
        good.connect(self.port)
        for number in range(100):
            good.publish("sensors/good/n", str(number), number)
        self.assertEqual(good.settle(), list(range(100)))
        self.assertEqual(self.values("good"), [str(number) for number in range(100)])
        until(lambda: self.listener()["rejected"] == 20_000, "all garbage is counted")
        self.assertLessEqual(len(self.rejected()), 10_000)

    @unittest.skipUnless(mosquitto.PROGRAM and HAS_CLIENTS, "mosquitto is not installed")
    def test_a_bridge_brings_everything_though_the_daemon_is_killed(self):
        self.daemon.stop()
        with socket.socket(LOOPBACK_FAMILY) as free:  # the bridge is told where once
            free.bind((LOOPBACK, 0))
            self.port = free.getsockname()[1]
        self.place.write_config(more=LISTEN.format(port=self.port))
        self.daemon = Daemon(self.place)
        for version in ("mqttv311", "mqttv50"):
            broker = mosquitto.Broker(f"""connection {version}
address localhost:{self.port}
topic sensors/# out 1
cleansession false
bridge_protocol_version {version}
restart_timeout 1
notifications false
""")
            self.addCleanup(broker.remove)
            until(lambda: self.listener()["connections"] == 1, "the bridge is there")
            publisher = mosquitto.Publisher(broker, "sensor")
            for number in range(1_000):
                publisher.publish(f"sensors/{version}/n", str(number))
                if number == 500 and version == "mqttv311":
                    self.daemon.stop(signal.SIGKILL)
            publisher.settle()
            if self.daemon.process.poll() is not None:
                self.daemon = Daemon(self.place)
            until(lambda: len(set(self.values(version))) == 1_000, "everything is stored")
            broker.remove()
            until(lambda: self.listener()["connections"] == 0, "the bridge is gone")


if __name__ == "__main__":
    unittest.main(verbosity=2)
