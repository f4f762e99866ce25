#!/usr/bin/python3
"""paho for Python publishes straight to the daemon."""
import importlib.util
import unittest

from daemon_process import Daemon, Place, until

MESSAGES = 300
SETTINGS = """
listen = "localhost:0"
[[mqtt.rule]]
topic = "sensors/{device}/{sensor}"
"""


@unittest.skipUnless(importlib.util.find_spec("paho"), "python3-paho-mqtt is not installed")
class ListenerPahoFlow(unittest.TestCase):
    def test_every_version_and_qos(self):
        from paho.mqtt import client as paho  # pylint: disable=import-outside-toplevel,import-error
        place = Place()
        self.addCleanup(place.remove)
        place.write_config(more=SETTINGS)
        daemon = Daemon(place)
        self.addCleanup(daemon.stop)

        def stored(device):
            rows = place.cli("query", f"{device}/n", "--format", "csv").stdout.splitlines()[1:]
            return [row.split(",")[4] for row in rows]

        for version in (paho.MQTTv311, paho.MQTTv5):
            for qos in (0, 1, 2):
                device = f"paho-{version}-{qos}"
                # Its second version wants to be told which callbacks it is given.
                choice = [paho.CallbackAPIVersion.VERSION2] if hasattr(paho, "CallbackAPIVersion") else []
                client = paho.Client(*choice, client_id=device, protocol=version)
                client.connect("localhost", daemon.mqtt_port())
                client.loop_start()
                for each in [client.publish(f"sensors/{device}/n", str(n), qos=qos)
                             for n in range(MESSAGES)]:
                    until(each.is_published, "a message is acknowledged")
                if qos > 0:
                    self.assertEqual(len(stored(device)), MESSAGES)
                client.disconnect()
                client.loop_stop()
                until(lambda: len(stored(device)) == MESSAGES, "everything is stored")
                self.assertEqual(stored(device), [str(n) for n in range(MESSAGES)])


if __name__ == "__main__":
    unittest.main(verbosity=2)
