"""A board with EdgeCase installed from its package: metadata on one drive, values on another, and power that fails."""
import json
import shutil
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.request

from kill_rounds import KILLED_WHILE_OPENING, KILLS, KillRounds
from machine import Machine, until

HTTP_PORT = 8650
MQTT_PORT = 1884
HOST_IN_GUEST = "10.0.2.2"
DRIVE_BYTES = 2 << 30
SSD = "/mnt/ssd"
# As `edgecase config storage` advises.
FSTAB = f"""
/dev/disk/by-label/metadata /var/lib/edgecase ext4 defaults,noatime 0 2
/dev/disk/by-label/values {SSD} ext4 defaults,noatime,nofail,x-systemd.device-timeout=10s 0 2
"""
# systemd alone does not mount a drive that comes later than at the start.
UDEV_RULE = "".join(
    f'SUBSYSTEM=="block", ENV{{ID_FS_LABEL}}=="{label}", TAG+="systemd", ENV{{SYSTEMD_WANTS}}+="{units}"\n'
    for label, units in (("values", "mnt-ssd.mount"),
                         ("metadata", "var-lib-edgecase.mount edgecased.service")))
# A drive that is gone lets go of its mount point, though its files are open.
LAZY = "[Mount]\nLazyUnmount=yes\n"
DROP_IN = f"[Service]\nReadWritePaths=-{SSD}\n"
# Small enough that tables are written and merged between two cuts.
CONFIGURATION = """[storage]
metadata = "/var/lib/edgecase"
values = "{ssd}/edgecase"
memory-limit = "32MiB"
wal-limit = "16MiB"
[http]
listen = "0.0.0.0:{http}"
allow-insecure = true
[mqtt]
broker = "{broker}"
client-id = "edgecase-board"
listen = "0.0.0.0:{mqtt}"
[[mqtt.rule]]
topic = "plain/{{device}}/{{sensor}}"
[[mqtt.rule]]
topic = "timed/{{device}}"
time = "/ts"
time-format = "unix"
"""
NOT_FOUND = 3
SHORTEST_SECONDS, LONGEST_SECONDS = 0.3, 6  # from ready to the cut


class Board:
    """Stands where the tests that kill have their place and their daemon."""

    def __init__(self, image, builds):
        self.path = tempfile.mkdtemp(prefix="run-", dir=builds)
        shutil.copy(image.path / "root.img", self.path)  # copies what is there, not the holes
        for name in ("metadata", "values"):
            path = f"{self.path}/{name}.img"
            with open(path, "wb") as file:
                file.truncate(DRIVE_BYTES)
            subprocess.run(["mkfs.ext4", "-q", "-L", name, path], check=True)
        self.saves = False
        self.machine = Machine(image, self.path, [HTTP_PORT, MQTT_PORT])

    def port(self):
        return self.machine.ports[HTTP_PORT]

    def mqtt_port(self):
        return self.machine.ports[MQTT_PORT]

    def cli(self, *arguments):
        """The command line, in the machine. A query that finds nothing is no error."""
        done = self.machine.ssh(" ".join(f"'{each}'" for each in ("edgecase", *arguments)), check=False)
        if arguments[0] == "query" and done.returncode == NOT_FOUND:
            done.returncode = 0
        return done

    def status(self):
        return json.loads(self.cli("status", "--json").stdout or "{}")

    def is_connected(self):
        return self.status().get("mqtt", {}).get("connected")

    def is_ready(self):
        """Whether it takes readings."""
        if not self.machine.is_on():
            raise AssertionError("the machine is off")
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port()}/readyz", timeout=20):
                return True
        except (OSError, urllib.error.HTTPError):
            return False

    def wait_until_ready(self):
        try:
            until(self.is_ready, "ready")
        except AssertionError:
            self.tell()
            raise

    def wait_until_active(self):
        """For a service that answers this machine alone."""
        until(lambda: self.machine.ssh("systemctl is-active edgecased", check=False).returncode == 0, "active")

    def tell(self):
        """What the machine says of itself, for people."""
        if self.machine.is_on():
            print(self.machine.ssh("systemctl status --no-pager edgecased; journalctl --no-pager -b -n 40; "
                                   "edgecase status; mount | grep ext4", check=False).stdout, flush=True)

    def tell_figures(self):
        """How large it is while it has nothing to do. How long the start took says something of a real board alone."""
        said = self.machine.ssh(
            "systemctl show --property=InactiveExitTimestampMonotonic,ActiveEnterTimestampMonotonic edgecased; "
            "sed -n 's/^VmRSS:/VmRSS=/p' /proc/$(systemctl show --value --property=MainPID edgecased)/status",
            check=False).stdout
        facts = dict(line.split("=", 1) for line in said.splitlines() if "=" in line)
        took_us = (int(facts.get("ActiveEnterTimestampMonotonic", 0))
                   - int(facts.get("InactiveExitTimestampMonotonic", 0)))
        print(f"-- idle: {facts.get('VmRSS', 'unknown').strip()} resident; {took_us / 1000:.0f} ms from its start to "
              "ready", flush=True)

    def install(self, package, broker, saves):
        """Debian as it comes, the package, its values on the second drive; then off.

        `saves`: the running machine is kept, so that it need not boot again.
        """
        machine = self.machine
        machine.boot()
        machine.wait_for_ssh()
        machine.ssh(f"mkdir -p {SSD} /var/lib/edgecase && cat >>/etc/fstab", data=FSTAB)
        machine.ssh(f"systemctl daemon-reload && mount /var/lib/edgecase && mount {SSD}")
        machine.write("/etc/systemd/system/mnt-ssd.mount.d/lazy.conf", LAZY)
        machine.write("/etc/udev/rules.d/99-values.rules", UDEV_RULE)
        machine.copy(package, "/var/tmp/edgecase.deb")
        machine.ssh("dpkg --install /var/tmp/edgecase.deb")
        machine.ssh("systemctl is-active edgecased && systemctl stop edgecased")
        machine.ssh(f"install -d -o edgecase -g edgecase {SSD}/edgecase")
        machine.write("/etc/systemd/system/edgecased.service.d/values.conf", DROP_IN)
        machine.write("/etc/edgecase/edgecase.toml", CONFIGURATION.format(
            ssd=SSD, http=HTTP_PORT, mqtt=MQTT_PORT, broker=broker))
        # The first start made a store that knows its drives; this one has others.
        machine.ssh("find /var/lib/edgecase -mindepth 1 -delete; "
                    "systemctl daemon-reload && systemctl start edgecased")
        self.wait_until_ready()
        if broker:
            until(self.is_connected, "connected")
        self.tell_figures()
        self.saves = saves
        if saves:
            machine.ssh(f"systemctl stop edgecased && umount {SSD} /var/lib/edgecase && udevadm settle && sync")
            machine.save()
        else:
            machine.power_off()

    def power_on(self):
        """Returns before anything is ready."""
        if self.saves:
            self.machine.resume()
        else:
            self.machine.boot()

    def check(self):
        """`edgecase check`, with the service stopped. Says what is wrong."""
        done = self.machine.ssh("systemctl stop edgecased && runuser -u edgecase -- edgecase check", check=False)
        return "" if done.returncode == 0 else f"{done.returncode}: {done.stdout}{done.stderr}"

    def remove(self, keep):
        """Off; the drives stay where a failure is to be looked at."""
        self.machine.remove()
        if keep:
            print(f"kept: {self.path}", flush=True)
        else:
            shutil.rmtree(self.path, ignore_errors=True)


class PowerRounds(KillRounds):
    """The rounds of the tests that kill, with the power of the whole board."""

    def start(self):
        board = self.place
        board.power_on()
        began = time.monotonic()
        board.wait_until_ready()
        self.recovery_seconds.append(time.monotonic() - began)
        self.daemon = board
        with self.turn:
            self.generation += 1
            self.turn.notify_all()

    def run(self, at_each=lambda: None):
        for number in range(1, KILLS + 1):
            # The last one always: a run without a cut of that kind would say less.
            starts = self.random.random() < KILLED_WHILE_OPENING or number == KILLS
            if self.recovery_seconds and starts:
                self.place.power_on()
                self._cut(number, self._span(0, self.recovery_seconds[-1]), "power on")
                self.killed_while_opening += 1
            else:
                self.start()
                at_each()
                self._cut(number, self._span(SHORTEST_SECONDS, LONGEST_SECONDS),
                          f"ready, which took {self.recovery_seconds[-1]:.0f} s")
        self.start()

    def _cut(self, number, seconds, what):
        """A random moment: nothing else is waited for."""
        threading.Event().wait(seconds)
        self.place.machine.cut()
        print(f"cut {number} of {KILLS}: {seconds:.2f} s after {what}", flush=True)

    def report(self, verdict):
        times = sorted(self.recovery_seconds)
        print(f"{KILLS} power cuts, {self.killed_while_opening} of them while it started; refused to open: 0; "
              f"ready {times[len(times) // 2]:.0f} s after power on (median)\n{verdict}", flush=True)
