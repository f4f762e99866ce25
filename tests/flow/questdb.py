"""QuestDB on a private directory and a free port; nothing where its jar or Java is not installed.

The jar is EDGECASE_QUESTDB_JAR, or the newest one that Maven has fetched (org.questdb:questdb).
"""
import glob
import os
import shutil
import socket
import subprocess
import tempfile

from daemon_process import TIME_LIMIT_SECONDS, until
from influxd import Influxd

_FETCHED = sorted(glob.glob(os.path.expanduser("~/.m2/repository/org/questdb/questdb/*/questdb-*.jar")))
_JAR = os.environ.get("EDGECASE_QUESTDB_JAR") or (_FETCHED[-1] if _FETCHED else None)
QUESTDB = _JAR if shutil.which("java") else None
HEAP = "256m"  # with 64 MiB it does not start; what it maps comes on top


class Quest:
    def __init__(self):
        self.path = tempfile.mkdtemp(prefix="questdb-")
        self.port = Influxd.free_port()
        os.mkdir(os.path.join(self.path, "conf"))
        with open(os.path.join(self.path, "conf", "server.conf"), "w", encoding="utf-8") as file:
            file.write(f"""http.bind.to=127.0.0.1:{self.port}
http.min.enabled=false
pg.enabled=false
line.tcp.enabled=false
telemetry.enabled=false
""")
        self.process = subprocess.Popen(
            ["java", f"-Xmx{HEAP}", "-p", QUESTDB, "-m", "io.questdb/io.questdb.ServerMain", "-d", self.path],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until(self.answers, "QuestDB answers")

    def answers(self):
        try:
            with socket.create_connection(("127.0.0.1", self.port), 1):
                return True
        except OSError:
            if self.process.poll() is not None:
                raise AssertionError("QuestDB ended") from None
            return False

    def stop(self):
        self.process.kill()
        self.process.wait(TIME_LIMIT_SECONDS)
        shutil.rmtree(self.path, ignore_errors=True)
