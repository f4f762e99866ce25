"""VictoriaMetrics, single node, on a private directory and a free port; nothing where it is not installed."""
import shutil
import socket
import subprocess
import tempfile
import urllib.request

from daemon_process import TIME_LIMIT_SECONDS, until
from influxd import Influxd

VICTORIA = shutil.which("victoria-metrics")


class Victoria:
    def __init__(self):
        self.path = tempfile.mkdtemp(prefix="victoria-")
        self.port = Influxd.free_port()
        self.process = subprocess.Popen(
            [VICTORIA, "-storageDataPath", self.path, "-httpListenAddr", f"127.0.0.1:{self.port}",
             "-retentionPeriod", "100y", "-memory.allowedBytes", "64MiB"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until(self.answers, "VictoriaMetrics answers")

    def answers(self):
        try:
            with socket.create_connection(("127.0.0.1", self.port), 1):
                return True
        except OSError:
            return False

    def show_all(self):
        """What it has taken is found by questions from now on, not within the seconds that it takes by itself."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/internal/force_flush", timeout=60) as answer:
            assert answer.status == 200, answer.status

    def stop(self):
        self.process.kill()
        self.process.wait(TIME_LIMIT_SECONDS)
        shutil.rmtree(self.path, ignore_errors=True)
