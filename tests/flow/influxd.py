"""InfluxDB 1.x on a private directory and free ports, which may be killed and started again."""
import os
import shutil
import socket
import subprocess
import tempfile

from daemon_process import TIME_LIMIT_SECONDS, until

INFLUXD = shutil.which("influxd")


class Influxd:
    def __init__(self):
        self.path = tempfile.mkdtemp(prefix="influxd-")
        self.port = self.free_port()
        self.config = os.path.join(self.path, "conf")
        with open(self.config, "w", encoding="utf-8") as file:
            file.write(f"""bind-address = "127.0.0.1:{self.free_port()}"
reporting-disabled = true
[meta]
dir = "{self.path}/meta"
[data]
dir = "{self.path}/data"
wal-dir = "{self.path}/wal"
[monitor]
store-enabled = false
[http]
bind-address = "127.0.0.1:{self.port}"
log-enabled = false
""")
        self.start()

    def start(self):
        with open(os.path.join(self.path, "log"), "wb") as log:
            self.process = subprocess.Popen([INFLUXD, "-config", self.config], stdout=log, stderr=log)
        until(self.answers, "influxd answers")

    @staticmethod
    def free_port():
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            return probe.getsockname()[1]

    def answers(self):
        try:
            with socket.create_connection(("127.0.0.1", self.port), 1):
                return True
        except OSError:
            if self.process.poll() is not None:
                with open(os.path.join(self.path, "log"), encoding="utf-8") as log:
                    raise AssertionError(f"influxd ended: {log.read()}") from None
            return False

    def kill(self):
        self.process.kill()
        self.process.wait(TIME_LIMIT_SECONDS)

    def stop(self):
        self.kill()
        shutil.rmtree(self.path, ignore_errors=True)
