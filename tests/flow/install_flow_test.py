#!/usr/bin/env python3
"""install.sh of an archive, made here as release.sh makes it: into an empty root, over what runs, and refusing."""
import filecmp
import os
import platform
import re
import shutil
import stat
import subprocess
import tempfile
import unittest

from daemon_process import PROGRAM, TIME_LIMIT_SECONDS, Daemon, Place

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.dirname(os.path.dirname(os.path.abspath(PROGRAM)))
MADE_FOR = "x86_64 with glibc 2.27 or later"
# Whatever goes wrong, this machine's own directories stay as they are.
NOTHING_IS_WRITTEN = "for d in /usr /etc /lib; do mount --bind $d $d && mount -o remount,bind,ro $d || exit 99; done; "


def files_of(root):
    return sorted(os.path.relpath(os.path.join(where, name), root)
                  for where, _, names in os.walk(root) for name in names)


class InstallFlow(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.kept = tempfile.mkdtemp(prefix="ec-archive-")
        cls.addClassCleanup(shutil.rmtree, cls.kept)
        subprocess.run(["cmake", "--install", BUILD, "--prefix", "/usr"], check=True, stdout=subprocess.DEVNULL,
                       env={**os.environ, "DESTDIR": cls.kept + "/archive"})
        shutil.copy(TOP + "/packaging/install.sh", cls.kept + "/archive/install.sh")
        with open(cls.kept + "/archive/made-for", "w", encoding="ascii") as file:
            file.write(MADE_FOR + "\n")

    def setUp(self):
        self.scratch = tempfile.mkdtemp(prefix="ec-install-")
        self.addCleanup(shutil.rmtree, self.scratch)
        os.chmod(self.scratch, 0o755)
        self.archive = self.scratch + "/archive"
        shutil.copytree(self.kept + "/archive", self.archive, symlinks=True)

    def install(self, *arguments, before=()):
        return subprocess.run([*before, self.archive + "/install.sh", *arguments], capture_output=True, text=True,
                              timeout=TIME_LIMIT_SECONDS, check=False)

    def refuses_to_run_here(self):
        """One line, exit code 1."""
        guarded = ("unshare", "--mount", "sh", "-c", NOTHING_IS_WRITTEN + 'exec "$0" "$@"')
        if subprocess.run([*guarded, "true"], capture_output=True, check=False).returncode != 0:
            self.skipTest("needs mounts of its own")
        done = self.install("--no-start", before=guarded)
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (1, "", 1), done.stderr)
        libc = " ".join(platform.libc_ver())
        self.assertEqual(done.stderr, f"install.sh: does not run here: made for {MADE_FOR}, this is "
                                      f"{platform.machine()} with {libc}; the musl archives need no libc\n")

    def test_into_an_empty_root_and_again_over_what_runs(self):
        root = self.scratch + "/root"
        done = self.install("--root", root)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        wanted = sorted(set(files_of(self.archive)) - {"install.sh", "made-for"})
        self.assertEqual(files_of(root), wanted)
        for name in wanted:
            with self.subTest(name=name):
                there, here = f"{root}/{name}", f"{self.archive}/{name}"
                self.assertEqual(os.path.islink(there), os.path.islink(here))
                self.assertTrue(filecmp.cmp(there, here, shallow=False))
                self.assertEqual(stat.S_IMODE(os.lstat(there).st_mode), stat.S_IMODE(os.lstat(here).st_mode))
        for name in ("usr/bin/edgecased", "etc/edgecase/edgecase.toml", "lib/systemd/system/edgecased.service",
                     "usr/share/doc/edgecase/examples/credentials.conf"):
            self.assertIn(name, wanted)

        place = Place()
        self.addCleanup(place.remove)
        daemon = Daemon(place, program=root + "/usr/bin/edgecased", verb=())
        self.addCleanup(daemon.stop)
        configuration, unit = root + "/etc/edgecase/edgecase.toml", root + "/lib/systemd/system/edgecased.service"
        for path in (configuration, unit):
            with open(path, "w", encoding="ascii") as file:
                file.write("# changed\n")
        before = os.stat(root + "/usr/bin/edgecase").st_ino
        done = self.install("--root", root)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(files_of(root), wanted)
        with open(configuration, encoding="ascii") as file:
            self.assertEqual(file.read(), "# changed\n")
        self.assertTrue(filecmp.cmp(unit, self.archive + "/lib/systemd/system/edgecased.service", shallow=False))
        self.assertNotEqual(os.stat(root + "/usr/bin/edgecase").st_ino, before)
        self.assertEqual(place.cli("write", "kitchen/temp", "1").returncode, 0)

    def test_the_archive_of_another_architecture_says_so(self):
        # A program of a machine that nothing here emulates: the number of no architecture.
        with open(self.archive + "/usr/bin/edgecase", "r+b") as program:
            program.seek(18)
            program.write(b"\xfe\xfe")
        self.refuses_to_run_here()

    def test_too_old_a_libc_says_so(self):
        path = self.archive + "/usr/bin/edgecase"
        with open(path, "rb") as program:
            content = program.read()
        versions = set(re.findall(rb"\0GLIBC_2\.\d+(?=\0)", content))
        if not versions:
            self.skipTest("the program needs no glibc")
        # As if it had been made with a libc that does not exist yet.
        newest = max(versions, key=lambda version: int(version.rsplit(b".")[-1]))
        with open(path, "wb") as program:
            program.write(content.replace(newest + b"\0", newest.replace(b"_2.", b"_9.") + b"\0"))
        wrong = subprocess.run([path, "version"], capture_output=True, check=False)
        self.assertIn(b"' not found (required by", wrong.stderr)
        self.refuses_to_run_here()

    @unittest.skipUnless(os.geteuid() == 0, "only root can be less")
    def test_without_root_rights_or_with_wrong_words_nothing_is_done(self):
        done = self.install(before=("setpriv", "--reuid=65534", "--clear-groups"))
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertEqual(done.stderr, "install.sh: needs root rights: run it with sudo, or with --root DIR\n")
        for wrong in (("--root",), ("--to", "/x")):
            done = self.install(*wrong)
            self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done.stderr)
            self.assertIn("see --help", done.stderr)
        self.assertIn("Exit codes: 0 installed", self.install("--help").stdout)

    def test_a_root_that_cannot_be_written_is_named(self):
        root = self.scratch + "/root"
        with open(root, "w", encoding="ascii"):
            pass
        done = self.install("--root", root)
        self.assertEqual(done.returncode, 1)
        self.assertIn(root, done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
