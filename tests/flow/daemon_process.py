"""A real daemon on a private directory, and the real command line talking to it."""
import gzip
import http.client
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

TIME_LIMIT_SECONDS = float(os.environ.get("EDGECASE_TEST_TIME_LIMIT", "60"))
PROGRAM = os.environ["EDGECASE_PROGRAM"]
# Under the address sanitizer a look for leaks takes longer than most commands; daemons and units are looked through.
_COMMANDS_ONLY = {"ASAN_OPTIONS": "detect_leaks=0"}
_OURS = re.compile(r"EDGECASE_(HOST|TOKEN|PURPOSE|NAMESPACE|STORAGE_|HTTP_|MQTT_|LIMITS_|AUDIT_)")


def clean_environment(extra=None):
    """This process' environment without anything that EdgeCase would read."""
    kept = {k: v for k, v in os.environ.items() if not _OURS.match(k)}
    for name in ("NOTIFY_SOCKET", "CREDENTIALS_DIRECTORY"):
        kept.pop(name, None)
    kept.update(extra or {})
    return kept


def run(arguments, **more):
    """Runs the program to its end."""
    more["env"] = {**_COMMANDS_ONLY, **more.get("env", clean_environment())}
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=more.pop("text", True),
                          timeout=TIME_LIMIT_SECONDS, check=False, **more)


def until(condition, what, seconds=3 * TIME_LIMIT_SECONDS):
    """What `condition` returns, looked at every few milliseconds, once that is true."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if found := condition():
            return found
        threading.Event().wait(0.02)
    raise AssertionError(f"never: {what}")


class Place:
    """A private directory with a configuration; short, since it holds Unix sockets."""

    def __init__(self):
        self.path = tempfile.mkdtemp(prefix="ec-flow-")
        self.socket = os.path.join(self.path, "s")
        self.config = os.path.join(self.path, "edgecase.toml")
        self.write_config()

    def write_config(self, listen="localhost:0", storage="", broker="", more="", reserve="0MiB"):
        with open(self.config, "w", encoding="utf-8") as file:
            file.write(f"""[storage]
metadata = "{self.path}/meta"
values = "{self.path}/values"
reserve = "{reserve}"
{storage}
[http]
socket = "{self.socket}"
listen = "{listen}"
[mqtt]
broker = "{broker}"
{more}""")

    def remove(self):
        shutil.rmtree(self.path, ignore_errors=True)

    def cli(self, *arguments, **more):
        extra = {"EDGECASE_HTTP_SOCKET": self.socket, **more.pop("extra", {})}
        return run(arguments, env=clean_environment(extra), **more)


class Daemon:
    """Started and, unless told otherwise, ready. Ready is what the daemon tells the service manager."""

    def __init__(self, place, program=PROGRAM, verb=("serve",), watchdog_microseconds=None,
                 until="READY=1", environment=None):
        self.place = place
        self.notify_path = os.path.join(place.path, "notify")
        if os.path.exists(self.notify_path):
            os.unlink(self.notify_path)
        self.notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notify.bind(self.notify_path)
        os.chmod(self.notify_path, 0o777)  # a daemon of another user tells, too
        self.notify.settimeout(TIME_LIMIT_SECONDS)
        self.messages = []
        self.log_path = os.path.join(place.path, "log")
        extra = {**(environment or {}), "NOTIFY_SOCKET": self.notify_path}
        if watchdog_microseconds:
            extra["WATCHDOG_USEC"] = str(watchdog_microseconds)
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen([program, *verb, "--config", place.config],
                                            stdin=subprocess.DEVNULL, stderr=log,
                                            env=clean_environment(extra))
        if until:
            self.wait_for(until)

    def wait_for(self, wanted):
        """Until the daemon has told `wanted`."""
        while not any(wanted in message.split("\n") for message in self.messages):
            if self.process.poll() is not None:
                raise AssertionError(f"the daemon ended: {self.log()}")
            try:
                self.messages.append(self.notify.recv(4096).decode())
            except TimeoutError as error:
                raise AssertionError(f"no {wanted}: {self.log()}") from error

    def hear(self):
        """Takes what the daemon has told until now: it waits when nobody does for long."""
        while select.select([self.notify], [], [], 0)[0]:
            self.messages.append(self.notify.recv(4096).decode())

    def log(self):
        with open(self.log_path, encoding="utf-8") as file:
            return file.read()

    def port(self):
        return int(re.search(r"listening on .*(?:localhost|127\.0\.0\.1|\]):(\d+)", self.log()).group(1))

    def mqtt_port(self):
        """Of mqtt.listen."""
        return int(re.search(r"taking messages at .*:(\d+)", self.log()).group(1))

    def request(self, method, path, body=None):
        """Status and text of the answer, over TCP."""
        status, _, text = self.exchange(method, path, body)
        return status, text

    def exchange(self, method, path, body=None, headers=None):
        """Status, headers and text of the answer, over TCP."""
        connection = http.client.HTTPConnection("localhost", self.port(), timeout=TIME_LIMIT_SECONDS)
        try:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            text = answer.read()
            if answer.headers.get("Content-Encoding") == "gzip":
                text = gzip.decompress(text)
            return answer.status, answer.headers, text.decode()
        finally:
            connection.close()

    def resident_bytes(self):
        with open(f"/proc/{self.process.pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")

    def memory_bytes(self, name):
        """VmHWM, its peak, RssAnon, ... of /proc/PID/status."""
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as file:
            return int(re.search(rf"^{name}:\s+(\d+) kB", file.read(), re.MULTILINE).group(1)) << 10

    def forget_peak(self):
        """VmHWM begins anew at what is resident."""
        with open(f"/proc/{self.process.pid}/clear_refs", "w", encoding="ascii") as file:
            file.write("5")

    def stop(self, how=signal.SIGTERM):
        """The exit code."""
        ended = self.process.poll()
        if ended is None:
            self.process.send_signal(how)
        elif ended not in (0, -signal.SIGKILL) and os.path.exists(self.log_path):
            # Its log goes with its directory, and says why.
            print(f"the daemon had ended by itself, exit code {ended}:\n{self.log()[-20_000:]}", file=sys.stderr)
        code = self.process.wait(TIME_LIMIT_SECONDS)
        self.notify.close()
        return code

    def kill_after(self, seconds):
        """SIGKILL at that moment; it must not have ended by itself before."""
        threading.Event().wait(seconds)
        if self.process.poll() is not None:
            raise AssertionError(f"the daemon ended by itself: {self.log()}")
        self.stop(signal.SIGKILL)
