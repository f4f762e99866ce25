#!/usr/bin/env python3
"""QoS 2 over kill -9 of the daemon: a message without a time of its own is stored once, whatever was cut."""
import json
import signal
import struct
import unittest

from daemon_process import Daemon, Place, until
from mqtt_device import PUBCOMP, PUBREC, Device, packet

RULES = """
listen = "localhost:0"
[[mqtt.rule]]
topic = "sensors/{device}/{sensor}"
"""
TOPIC = "sensors/pump/n"
ID = 7


class ListenerRestartFlow(unittest.TestCase):
    def setUp(self):
        self.place = Place()
        self.addCleanup(self.place.remove)
        self.place.write_config(more=RULES)
        self.daemon = Daemon(self.place)
        self.addCleanup(lambda: self.daemon.stop())

    def kill(self):
        self.daemon.stop(signal.SIGKILL)
        self.daemon = Daemon(self.place)

    def device(self, version, name=None):
        device = Device(name or f"pump{version}", version, qos=2)
        self.addCleanup(device.close)
        return device

    def open(self, device, present, **how):
        device.open(self.daemon.mqtt_port(), **how)
        self.assertEqual(device.session_present, present)

    def publish(self, device, payload="21.5", topic=TOPIC, duplicate=False):
        device.send(ID, topic, payload, duplicate)
        self.expect(device, PUBREC)

    def release(self, device):
        device.release(ID)
        self.expect(device, PUBCOMP)

    def expect(self, device, kind):
        got, body = device.receive()
        self.assertEqual((got, struct.unpack(">H", body[:2])[0]), (kind, ID))
        self.assertLess(body[2] if len(body) > 2 else 0, 0x80)

    def values(self):
        result = self.place.cli("query", "pump/n", "--format", "csv")
        return [line.split(",")[4] for line in result.stdout.splitlines()[1:]]

    def listener(self):
        return json.loads(self.place.cli("status", "--json").stdout)["mqtt"]["listener"]

    def wait_for_the_drive(self):
        """What has come before is durable, since groups are stored in order."""
        device = Device("waits", qos=1)
        device.connect(self.daemon.mqtt_port())
        device.publish("sensors/waits/n", "1", 1)
        device.settle()
        device.close()

    def for_both(self, test):
        for version in (4, 5):
            with self.subTest(version=version):
                before = len(self.values())
                test(self.device(version), lambda: len(self.values()) - before)

    def test_what_comes_again_after_a_kill_is_stored_once(self):
        def test(device, stored):
            self.open(device, present=False)
            self.publish(device)
            for _ in range(2):
                self.kill()
                self.open(device, present=True)
                self.publish(device, duplicate=True)
                self.assertEqual(stored(), 1)
            self.release(device)
            # The id is free for another message, that looks the same.
            self.publish(device)
            self.assertEqual(stored(), 2)
            self.release(device)
        self.for_both(test)

    def test_what_was_stored_and_not_answered_is_stored_once(self):
        def test(device, stored):
            self.open(device, present=False)
            device.send(ID, TOPIC, "21.5")
            until(lambda: stored() == 1, "it is stored")
            device.close()
            self.kill()
            self.open(device, present=True)
            self.publish(device, duplicate=True)
            self.release(device)
            self.assertEqual(stored(), 1)
        self.for_both(test)

    def test_a_release_is_finished_after_a_kill(self):
        def test(device, stored):
            self.open(device, present=False)
            self.publish(device)
            device.release(ID)
            device.close()
            self.kill()
            self.open(device, present=True)
            device.release(ID)
            self.assertEqual(device.receive()[0], PUBCOMP)
            self.publish(device)
            self.assertEqual(stored(), 2)
            self.release(device)
            # PUBCOMP was sent when the drive had forgotten the id.
            self.kill()
            self.open(device, present=True)
            self.publish(device)
            self.assertEqual(stored(), 3)
            self.release(device)
        self.for_both(test)

    def test_another_message_under_an_id_of_a_lost_life_is_stored(self):
        def test(device, stored):
            self.open(device, present=False)
            self.publish(device, "21.5")
            self.kill()
            self.open(device, present=True)
            self.publish(device, "22.5")
            self.assertEqual(stored(), 2)
            self.kill()
            self.open(device, present=True)
            self.publish(device, "22.5", duplicate=True)
            self.assertEqual(stored(), 2)
            self.release(device)
        self.for_both(test)

    def test_a_clean_start_forgets_for_good(self):
        def test(device, stored):
            self.open(device, present=False)
            self.publish(device)
            self.kill()
            self.open(device, present=False, clean=True, expiry_seconds=0)
            self.kill()
            self.open(device, present=False)
            self.publish(device)
            self.assertEqual(stored(), 2)
            self.release(device)
        self.for_both(test)

    def test_a_session_ends_with_its_expiry_after_a_kill(self):
        device = self.device(5)
        self.open(device, present=False, expiry_seconds=1)
        self.publish(device)
        self.assertEqual(self.listener()["sessions"], 1)
        self.kill()
        until(lambda: self.listener()["sessions"] == 0, "the session has ended")
        self.wait_for_the_drive()
        self.kill()
        self.assertEqual(self.listener()["sessions"], 0)
        self.open(device, present=False)
        self.publish(device)
        self.assertEqual(len(self.values()), 2)

    def test_a_client_changes_its_expiry(self):
        for first, then, present in ((3600, 0, False), (1, 3600, True)):
            with self.subTest(first=first, then=then):
                device = self.device(5, f"changing{first}")
                self.open(device, present=False, expiry_seconds=first)
                self.publish(device)
                # At the end of its connection, and by connecting again.
                if then == 0:
                    device.socket.sendall(packet(0xE0, b"\0\x05\x11" + struct.pack(">I", then)))
                    until(lambda: self.listener()["sessions"] == 0, "the session has ended")
                    self.wait_for_the_drive()
                else:
                    # While the first is still there, so that its session cannot have ended.
                    device = self.device(5, device.name)
                    self.open(device, present=True, expiry_seconds=then)
                    short = self.device(5, "short")
                    self.open(short, present=False, expiry_seconds=first)
                    self.publish(short)
                self.kill()
                if then != 0:
                    until(lambda: self.listener()["sessions"] == 1, "the short session has ended, alone")
                self.open(device, present=present, expiry_seconds=3600)

    def test_what_is_kept_as_rejected_is_kept_once(self):
        device = self.device(4)
        self.open(device, present=False)
        self.publish(device, topic="nowhere")
        self.kill()
        self.open(device, present=True)
        self.publish(device, topic="nowhere", duplicate=True)
        self.release(device)
        result = self.place.cli("query", "mqtt/message", "-n", "_rejected", "--format", "ndjson")
        self.assertEqual(len(result.stdout.splitlines()), 1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
