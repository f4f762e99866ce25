#!/usr/bin/env python3
"""What a certificate of erasure says on file systems that overwrite in place, and on those that do not: real ones,
on loop devices, whose raw bytes are looked through wherever it says that nothing is left."""
import json
import os
import shutil
import signal
import subprocess
import time
import unittest
import urllib.request

from daemon_process import PROGRAM, Daemon, Place, until
from residue import Image, canary, search, seeded

_EXT4 = ("mkfs.ext4", "-q", "-F")
_EXT3 = ("mkfs.ext3", "-q", "-F")
_XFS = ("mkfs.xfs", "-q", "-f")
_BTRFS = ("mkfs.btrfs", "-q", "-f")
_JOURNAL = ("tune2fs", "-o", "journal_data")
_BOTH = ("tune2fs", "-o", "journal_data,nodelalloc")

# name, what makes it, what changes its superblock, options of the mount, level, a word of why, in the sandbox too
_CASES = (
    ("ext4", _EXT4, (), "", "physical", "", True),
    ("ext4 without a journal", (*_EXT4, "-O", "^has_journal"), (), "", "physical", "", False),
    ("ext4, nodelalloc and ordered", _EXT4, (), "nodelalloc,data=ordered", "physical", "", True),
    ("ext4, data=journal", _EXT4, (), "data=journal", "logical", "journal", True),
    ("ext4, journal by superblock", _EXT4, _JOURNAL, "", "logical", "journal", True),
    ("ext4, journal and nodelalloc by superblock", _EXT4, _BOTH, "", "logical", "journal", False),
    ("ext4, journal by superblock and ordered by mount", _EXT4, _JOURNAL, "data=ordered", "physical", "", True),
    ("ext4 with data in inodes", (*_EXT4, "-O", "inline_data"), (), "", "logical", "inodes", False),
    ("ext3, journal by superblock", _EXT3, _JOURNAL, "", "logical", "journal", False),
    ("xfs", _XFS, (), "", "physical", "", True),
    ("btrfs", _BTRFS, (), "", "logical", "btrfs", True),
    ("btrfs without CoW", _BTRFS, (), "nodatacow", "logical", "btrfs", False),
    ("f2fs", ("mkfs.f2fs", "-q", "-f"), (), "", "logical", "f2fs", False),
    ("nilfs2", ("mkfs.nilfs2", "-q"), (), "", "logical", "nilfs2", False),
)


class FileSystems(unittest.TestCase):
    def setUp(self):
        if os.geteuid() != 0:
            self.skipTest("only root can mount an image")
        self.source = seeded()
        self.place = Place()
        self.daemon = None
        self.addCleanup(self.place.remove)
        self.addCleanup(self.stop)

    def stop(self, how=signal.SIGTERM):
        if self.daemon:
            self.daemon.stop(how)
        self.daemon = None

    def image(self, **more):
        """Mounted until the test ends, after the daemon has; skips where it cannot be."""
        image = Image(megabytes=400, **more)
        if image.reason:
            image.remove()
            self.skipTest(image.reason)
        self.after_the_daemon(image.remove)
        return image

    def after_the_daemon(self, remove):
        """`remove`, when the daemon has stopped."""
        self.addCleanup(remove)
        self.addCleanup(self.stop)

    def start(self, program=None, **more):
        self.place.write_config(reserve="0MiB", **more)
        if program:
            self.daemon = Daemon(self.place, program=program[0], verb=tuple(program[1:]))
        else:
            self.daemon = Daemon(self.place)

    def ok(self, *arguments):
        result = self.place.cli(*arguments)
        self.assertEqual(result.returncode, 0, (arguments, result.stdout, result.stderr))
        return result.stdout

    def fill(self, device, text):
        now_ns = time.time_ns() - 10**12
        lines = [f'm,device={device} text="{text}-{i}" {now_ns + i}' for i in range(2_000)]
        request = urllib.request.Request(f"http://localhost:{self.daemon.port()}/write?db=default",
                                         "\n".join(lines).encode())
        with urllib.request.urlopen(request, timeout=60) as answer:
            self.assertEqual(answer.status, 204)

    def erased(self, level, *words):
        """A certificate, of a device that is written and erased. Everything that tells the level tells the same."""
        device, text = canary(self.source), canary(self.source)
        self.fill(device, text)
        before = json.loads(self.ok("erase", device, "--dry-run", "--json"))
        certificate = json.loads(self.ok("erase", device, "--yes", "--json"))
        status = json.loads(self.ok("status", "--json"))
        self.assertEqual(certificate["state"], "done")
        told = [(each["level"], each["level_why"]) for each in (before, certificate, status["erasure"])]
        for each in told:
            self.assertEqual(each[0], level, told)
            for word in words:
                self.assertIn(word, each[1])
            self.assertEqual(each[1] is None, level == "physical", told)
        log = self.daemon.log()
        self.assertIn(f"erasures are {level}", log)
        report = json.loads(self.ok("report", "--json"))
        deletion = report["features"][0]
        self.assertEqual("what is overwritten may stay" in (deletion["missing"] or ""), level != "physical", deletion)
        self.assertEqual(report["erasures"][0]["level"], level)
        preview = json.loads(self.ok("retention", "preview", "*/*", "1d", "--json"))
        self.assertEqual(preview["level"] == "physical", level == "physical")
        return text

    def check_advice(self, directory, level, *words):
        advice = json.loads(self.ok("config", "storage", "--config", self.place.config, "--values", directory,
                                    "--json"))
        self.assertEqual(advice["overwrites"] == "in-place", level == "physical", advice)
        for word in words:
            self.assertIn(word, advice["overwrites_why"])
            self.assertTrue(any("certificates" in each and word in each for each in advice["warnings"]), advice)

    def look_through(self, image, text):
        """The daemon has said that it is gone."""
        self.stop()
        image.settle()
        self.assertEqual(search([image.image], [text]), set())

    def test_the_level_is_what_is_true_of_the_file_system(self):
        tried = 0
        for name, make, tune, options, level, word, _ in _CASES:
            with self.subTest(name):
                image = Image(400, make, tune, options)
                try:
                    if image.reason:
                        print(f"{name}: not tried, {image.reason}")
                        continue
                    tried += 1
                    image.hold(self.place)
                    self.start()
                    text = self.erased(level, *filter(None, (word,)))
                    self.check_advice(os.path.join(image.mount, "advice"), level, *filter(None, (word,)))
                    if level == "physical":
                        self.look_through(image, text)
                finally:
                    self.stop()
                    image.remove()
                    self.place.remove()
                    self.place = Place()
        if tried == 0:
            self.skipTest("nothing could be mounted")

    def test_either_drive_counts(self):
        for drive, other in (("metadata", "values"), ("values", "metadata")):
            image = self.image(make=_BTRFS)
            image.hold(self.place, "meta" if drive == "metadata" else "values")
            self.start()
            self.erased("logical", f"the {drive} drive", "btrfs")
            facts = json.loads(self.ok("status", "--json"))["drives"]
            self.assertEqual((facts[drive]["file_system"], facts[drive]["overwrites"]), ("btrfs", "elsewhere"))
            self.assertIn("level logical", self.ok("retention", "preview", "*/*", "1d"))
            self.assertNotIn(f"the {other} drive: it is btrfs", self.daemon.log())
            self.stop()
            self.place.remove()
            self.place = Place()
            self.addCleanup(self.place.remove)

    def test_a_key_that_is_destroyed_helps_where_its_ring_is_overwritten(self):
        def key():
            path = os.path.join(self.place.path, "key")
            with open(path, "wb") as file:
                file.write(os.urandom(32))
            os.chmod(path, 0o400)
            return f'encryption-key-file = "{path}"'

        metadata, values = self.image(), self.image(make=_BTRFS)
        metadata.hold(self.place, "meta")
        values.hold(self.place, "values")
        self.start(storage=key())
        self.erased("cryptographic", "the values drive", "btrfs")
        # A range of times shares its key with the rest of its device.
        self.fill("kitchen", "x")
        certificate = json.loads(self.ok("erase", "kitchen", "--to", "now", "--yes", "--json"))
        self.assertEqual(certificate["level"], "logical", certificate)
        self.stop()
        self.place.remove()
        self.place = Place()
        self.addCleanup(self.place.remove)
        ring = self.image(make=_BTRFS)
        ring.hold(self.place)
        self.start(storage=key())
        self.erased("logical", "the metadata drive", "keys that were destroyed may be")

    def test_a_drive_that_comes_back_as_another_is_looked_at_anew(self):
        metadata, values = self.image(), self.image()
        metadata.hold(self.place, "meta")
        values.hold(self.place, "values")
        self.start()
        self.erased("physical")
        values.settle()
        subprocess.run(["umount", "-l", values.mount], check=True)
        # A copy: as long as the daemon has files open, the same one would only be mounted as it was.
        until(lambda: json.loads(self.ok("status", "--json"))["drives"]["values"]["degraded"], "it is away")
        subprocess.run(["cp", "--sparse=always", values.image, values.image + "2"], check=True)
        values.image += "2"
        values.options = "data=journal"
        self.assertEqual(values.mount_again(), "")
        until(lambda: json.loads(self.ok("status", "--json"))["drives"]["values"]["degraded"] is None, "it is back")
        self.erased("logical", "the values drive", "journal")
        # What went through the journal is still in it.
        self.stop()
        subprocess.run(["umount", values.mount], check=True)
        values.options = ""
        self.assertEqual(values.mount_again(), "")
        self.start()
        self.erased("logical", "the values drive", "overwrites in place now")
        older = json.loads(self.ok("erase", "--list", "--json"))["erasures"][-1]
        self.assertEqual(older["level"], "physical")

    def test_layers_and_memory(self):
        below = self.image()
        for name in ("lower", "upper", "work", "merged"):
            os.mkdir(os.path.join(below.mount, name))
        merged = os.path.join(below.mount, "merged")
        layers = ",".join(f"{key}={below.mount}/{name}" for key, name in
                          (("lowerdir", "lower"), ("upperdir", "upper"), ("workdir", "work")))
        mounted = subprocess.run(["mount", "-t", "overlay", "overlay", "-o", layers, merged], capture_output=True,
                                 text=True, check=False)
        if mounted.returncode != 0:
            self.skipTest(mounted.stderr)
        self.after_the_daemon(lambda: subprocess.run(["umount", merged], check=False))
        os.symlink(merged, os.path.join(self.place.path, "values"))
        self.start()
        self.erased("logical", "the values drive", "overlay")
        self.check_advice(merged, "logical", "overlay")
        self.stop()
        memory = os.path.join(self.place.path, "memory")
        os.mkdir(memory)
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", memory], check=True)
        self.after_the_daemon(lambda: subprocess.run(["umount", memory], check=False))
        with open("/proc/swaps", encoding="ascii") as file:
            swaps = len(file.readlines()) > 1
        self.check_advice(memory, "logical" if swaps else "physical")

    def test_a_loop_device_is_what_its_file_lies_on(self):
        outer = self.image(make=_BTRFS)
        inner = os.path.join(outer.mount, "image")
        with open(inner, "wb") as file:
            file.truncate(300 << 20)
        subprocess.run([*_EXT4, inner], check=True)
        mount = os.path.join(self.place.path, "inner")
        os.mkdir(mount)
        subprocess.run(["mount", "-o", "loop", inner, mount], check=True)
        self.after_the_daemon(lambda: subprocess.run(["umount", mount], check=False))
        self.check_advice(os.path.join(mount, "values"), "logical", "it lies in", "btrfs")

    def test_a_file_that_is_marked_for_the_journal_counts(self):
        image = self.image()
        image.hold(self.place)
        self.start()
        self.erased("physical")
        self.stop()
        marked = subprocess.run(["chattr", "+j", os.path.join(image.mount, "values")], capture_output=True, text=True,
                                check=False)
        if marked.returncode != 0:
            self.skipTest(marked.stderr.strip())
        self.start()
        self.erased("logical", "the values drive", "attribute j")

    def test_the_services_sandbox_hides_nothing_that_is_needed(self):
        """ProtectProc=invisible, ProcSubset=pid, /sys read-only, a user without rights: as of the shipped unit."""
        if not shutil.which("setpriv") or not shutil.which("unshare"):
            self.skipTest("there is no setpriv or unshare")
        sandbox = ("unshare", "--mount", "--propagation", "private", "sh", "-c",
                   "mount -t proc -o subset=pid,hidepid=invisible proc /proc && "
                   "{ mount -o remount,bind,ro /sys 2>/dev/null || true; } && "
                   "[ ! -e /proc/fs ] && [ ! -e /proc/devices ] && "
                   'exec setpriv --reuid=65534 --regid=65534 --clear-groups --no-new-privs "$@"', "sh", PROGRAM,
                   "serve")
        if subprocess.run([*sandbox[:-2], "true"], capture_output=True, check=False).returncode != 0:
            self.skipTest("there is no such /proc here")
        for name, make, tune, options, level, word, in_sandbox in _CASES:
            if not in_sandbox:
                continue
            with self.subTest(name):
                image = Image(400, make, tune, options)
                try:
                    if image.reason:
                        print(f"{name}: not tried, {image.reason}")
                        continue
                    image.hold(self.place)
                    with open("/proc/mounts", encoding="utf-8") as mounts:
                        device = next(line.split()[0] for line in mounts if line.split()[1] == image.mount)
                    # Below a root of its own (chroot) another name space of mounts knows the image by another name.
                    seen = subprocess.run([*sandbox[:4], "sh", "-c", 'test -e "$(cat "$1")"', "sh",
                                           f"/sys/class/block/{os.path.basename(device)}/loop/backing_file"],
                                          check=False)
                    if seen.returncode != 0:
                        self.skipTest("in a root of its own the service would not see what a loop device lies in")
                    for path in (self.place.path, image.path, image.mount, f"{image.mount}/meta",
                                 f"{image.mount}/values"):
                        os.chown(path, 65534, 65534)
                    self.start(program=sandbox)
                    self.erased(level, *filter(None, (word,)))
                finally:
                    self.stop()
                    image.remove()
                    self.place.remove()
                    self.place = Place()


if __name__ == "__main__":
    unittest.main()
