"""A virtual machine whose drives have a volatile write cache, and whose power can be cut.

Each drive is a file behind nbdkit, which keeps what was written until the machine asks for a flush. A cut kills
both: what was not flushed is gone, as it is in a drive that loses its power.
"""
import json
import os
import pathlib
import signal
import socket
import subprocess
import threading
import time

BOOT_SECONDS = 400
COMMAND_SECONDS = 300
POLL_SECONDS = 0.1
MEMORY = "512M"
# The root beside the board's two drives: metadata built in, values to be pulled.
DRIVES = ("root", "metadata", "values")
DATA_DRIVES = DRIVES[1:]
_QEMU = {
    "amd64": ["qemu-system-x86_64", "-machine", "q35,sata=off,smbus=off"],
    "arm64": ["qemu-system-aarch64", "-machine", "virt"],
}
_EMULATED = {"amd64": "Nehalem", "arm64": "cortex-a72"}
# What emulation makes slow and this board does not need.
_KERNEL = ("panic=-1 quiet net.ifnames=0 mitigations=off nokaslr audit=0 apparmor=0 random.trust_cpu=1 "
           "cryptomgr.notests raid=noautodetect systemd.show_status=0 "
           "modprobe.blacklist=ahci,sg,cfg80211,psmouse,serio_raw,pcspkr,joydev,evdev,iTCO_wdt,lpc_ich")
_CONSOLE = {"amd64": "ttyS0", "arm64": "ttyAMA0"}


def acceleration(architecture):
    """How qemu runs the machine: by the processor, where it has instructions for that and we may use them.

    A /dev/kvm without those instructions is of a machine that is a virtual one itself: Debian's kernel does not
    start there. EDGECASE_VM_EMULATED=1 emulates in any case.
    """
    if (architecture == "amd64" and os.environ.get("EDGECASE_VM_EMULATED") != "1"
            and os.access("/dev/kvm", os.R_OK | os.W_OK)):
        flags = pathlib.Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace").split()
        if "vmx" in flags or "svm" in flags:
            return ["-accel", "kvm", "-cpu", "host"]
    return ["-accel", "tcg,thread=multi", "-cpu", _EMULATED[architecture]]


def until(condition, what, seconds=BOOT_SECONDS):
    """What `condition` returns once that is true."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"never: {what}")
        threading.Event().wait(POLL_SECONDS)
    return found


def free_port():
    """One that nobody listens on now."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Drive:
    """One image behind a write cache. `cache="unsafe"` is a drive that lies: it drops what it is told to flush."""

    def __init__(self, image, cache="writeback"):
        self.image = pathlib.Path(image)
        self.socket = self.image.with_suffix(".nbd")
        self.cache = cache
        self.process = None

    def start(self):
        self.socket.unlink(missing_ok=True)
        self.process = subprocess.Popen(
            ["nbdkit", "--foreground", "--unix", str(self.socket), "--filter=cache", "file",
             str(self.image), f"cache={self.cache}"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True)
        until(lambda: self.socket.exists() or self.process.poll() is not None, "nbdkit is there", 30)
        if self.process.poll() is not None:
            raise AssertionError("nbdkit does not start")

    def is_on(self):
        return self.process is not None and self.process.poll() is None

    def freeze(self):
        """From now on nothing reaches the image."""
        self.process.send_signal(signal.SIGSTOP)

    def cut(self):
        """What was not flushed is gone."""
        self.process.kill()
        self.process.wait()

    def stop(self):
        """In good order; the machine has flushed before."""
        self.process.terminate()
        self.process.wait(COMMAND_SECONDS)


class Machine:
    """One board. `ports` are those of the guest that can be reached from here, at other numbers."""

    def __init__(self, image, path, ports):
        self.image = image
        self.path = pathlib.Path(path)
        self.guest_ports = [22, *ports]
        self.ports = {}
        self.drives = {name: Drive(self.path / f"{name}.img") for name in DRIVES}
        self.process = None
        self.monitor = None
        self.boots = 0

    def is_on(self):
        return self.process is not None and self.process.poll() is None

    def boot(self, *more):
        """Power on; returns before anything runs. `more`: arguments of qemu."""
        self._start(DRIVES, *more)

    def resume(self):
        """Power on, in the state that save() has kept; then the data drives are plugged in."""
        self._start(["root"], "-incoming", f"exec:cat {self.path}/saved")
        until(lambda: self.monitor.ask("query-status")["status"] != "inmigrate", "resumed")
        self.monitor.ask("cont")
        self.wait_for_ssh()
        # It believes that no time has passed.
        self.ssh(f"date --set=@{time.time():.3f}")
        for name in DATA_DRIVES:
            self.plug(name)

    def save(self):
        """Keeps the state of the running machine, its data drives unplugged, for resume(). It is off then."""
        for name in DATA_DRIVES:
            self._unplug(name)
            self.drives[name].stop()
        self.monitor.ask("stop")
        self.monitor.ask("migrate", uri=f"exec:cat >{self.path}/saved")
        until(lambda: self.monitor.ask("query-migrate").get("status") == "completed", "saved")
        self.monitor.ask("quit")
        self.process.wait(COMMAND_SECONDS)
        self.monitor.close()
        self.drives["root"].stop()
        # Whoever resumes needs the root as it is now: nothing written from here on is kept.
        self.drives["root"].cache = "unsafe"

    def _start(self, plugged, *more):
        self.boots += 1
        self.ports = {port: free_port() for port in self.guest_ports}
        for name in plugged:
            self.drives[name].start()
        monitor = self.path / "monitor"
        monitor.unlink(missing_ok=True)
        forwarded = ",".join(f"hostfwd=tcp:127.0.0.1:{here}-:{there}"
                             for there, here in self.ports.items())
        architecture = self.image.architecture
        command = [*_QEMU[architecture], *acceleration(architecture), "-smp", "1", "-m", MEMORY,
                   "-nodefaults", "-display", "none", "-no-reboot",
                   "-serial", f"file:{self.path}/console-{self.boots}.log",
                   "-qmp", f"unix:{monitor},server=on,wait=off",
                   "-kernel", str(self.image.path / "vmlinuz"),
                   "-initrd", str(self.image.path / "initrd.img"),
                   "-append", f"root=/dev/vda rw console={_CONSOLE[architecture]} {_KERNEL}",
                   "-netdev", f"user,id=net,{forwarded}",
                   "-device", "virtio-net-pci,netdev=net,romfile=", "-device", "virtio-rng-pci",
                   "-device", "virtio-scsi-pci,id=scsi"]
        for name in plugged:
            command += ["-blockdev", json.dumps(self._node(name))]
            command += ["-device", json.dumps(self._device(name))]
        command += more
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
        until(lambda: monitor.exists() or not self.is_on(), "qemu is there", 30)
        if not self.is_on():
            raise AssertionError("qemu does not start")
        self.monitor = Monitor(monitor)

    def _node(self, name):
        return {"driver": "nbd", "node-name": name,
                "server": {"type": "unix", "path": str(self.drives[name].socket)}}

    @staticmethod
    def _device(name):
        device = {"id": name, "drive": name, "write-cache": "on"}
        if name == "root":
            return {"driver": "virtio-blk-pci", **device}
        return {"driver": "scsi-hd", "bus": "scsi.0", "lun": DRIVES.index(name), **device}

    def cut(self):
        """The power fails, for the machine and all drives at once."""
        running = [drive for drive in self.drives.values() if drive.is_on()]
        for drive in running:
            drive.freeze()
        self.process.kill()
        self.process.wait()
        for drive in running:
            drive.cut()
        self.monitor.close()

    def power_off(self):
        """In good order: everything is flushed."""
        self.ssh("systemctl poweroff", check=False)
        self.process.wait(BOOT_SECONDS)
        for drive in self.drives.values():
            drive.stop()
        self.monitor.close()

    def pull(self, name):
        """A drive is unplugged while everything runs: what is in its cache is gone."""
        self.drives[name].cut()
        self._unplug(name)

    def plug(self, name):
        """It is back."""
        self.drives[name].start()
        self.monitor.ask("blockdev-add", **self._node(name))
        self.monitor.ask("device_add", **self._device(name))

    def _unplug(self, name):
        self.monitor.ask("device_del", id=name)
        until(lambda: self.monitor.tries("blockdev-del", **{"node-name": name}), "unplugged")

    def remove(self):
        """Whatever state it is in; the images stay."""
        if self.is_on():
            self.cut()
        for drive in self.drives.values():
            if drive.is_on():
                drive.cut()

    def _ssh_command(self):
        options = ["BatchMode=yes", "StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null",
                   "LogLevel=ERROR", "ConnectTimeout=20", "ServerAliveInterval=30",
                   "ControlMaster=auto", f"ControlPath={self.path}/ssh-{self.boots}",
                   "ControlPersist=yes"]
        return ["ssh", "-F", "none", "-i", str(self.image.path / "key"), "-p", str(self.ports[22]),
                *[word for option in options for word in ("-o", option)], "root@127.0.0.1"]

    def ssh(self, command, check=True, data=None, seconds=COMMAND_SECONDS):
        """What the command does in the machine, as root, within so many seconds."""
        done = subprocess.run([*self._ssh_command(), command], input=data, capture_output=True,
                              text=True, timeout=seconds, check=False,
                              stdin=None if data is not None else subprocess.DEVNULL)
        if check and done.returncode != 0:
            raise AssertionError(f"{command}: {done.returncode}: {done.stdout}{done.stderr}")
        return done

    def wait_for_ssh(self):
        until(lambda: self.is_on() and self.ssh("true", check=False).returncode == 0, "ssh answers")

    def write(self, path, text):
        """A file in the machine."""
        self.ssh(f"mkdir -p $(dirname {path}) && cat >{path}", data=text)

    def copy(self, source, target):
        """A file of ours into the machine."""
        with open(source, "rb") as file:
            subprocess.run([*self._ssh_command(), f"cat >{target}"], stdin=file, check=True,
                           timeout=COMMAND_SECONDS)


class Monitor:
    """qemu's own, by which drives are pulled."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(COMMAND_SECONDS)
        self.socket.connect(os.fspath(path))
        self.stream = self.socket.makefile("rw")
        self.stream.readline()
        self.ask("qmp_capabilities")

    def _exchange(self, command, arguments):
        self.stream.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
        self.stream.flush()
        while line := self.stream.readline():
            answer = json.loads(line)
            if "return" in answer or "error" in answer:
                return answer
        raise AssertionError("qemu is gone")

    def ask(self, command, **arguments):
        answer = self._exchange(command, arguments)
        if "error" in answer:
            raise AssertionError(f"{command}: {answer['error']}")
        return answer["return"]

    def tries(self, command, **arguments):
        """Whether it did that."""
        return "return" in self._exchange(command, arguments)

    def close(self):
        self.stream.close()
        self.socket.close()
