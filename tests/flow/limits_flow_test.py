#!/usr/bin/env python3
"""Limits of the process and signals: one line that names the limit, nothing half made, what was ignored stays so."""
import os
import resource
import signal
import subprocess
import tempfile
import unittest

from daemon_process import PROGRAM, TIME_LIMIT_SECONDS, Daemon, Place, clean_environment, until

_NOBODY = 65534


def limited(limits, arguments, user=None, **more):
    """Runs the program with `limits`, (resource, value) each, as another user where that is said."""
    def prepare():
        if user is not None:
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)
        for which, value in limits:
            resource.setrlimit(which, (value, value))
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=TIME_LIMIT_SECONDS,
                          check=False, preexec_fn=prepare, env=more.pop("env", clean_environment()), **more)


class Limits(unittest.TestCase):
    def setUp(self):
        self.place = Place()
        self.addCleanup(self.place.remove)
        self.daemon = None
        self.addCleanup(self.stop)

    def stop(self, how=signal.SIGTERM):
        code = self.daemon.stop(how) if self.daemon else 0
        self.daemon = None
        return code

    def environment(self):
        return clean_environment({"EDGECASE_HTTP_SOCKET": self.place.socket})

    def fill(self, count=2_000):
        path = os.path.join(self.place.path, "readings.line")
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(f"m,device=kitchen value={i} {i}\n" for i in range(count))
        imported = self.place.cli("import", path, "--format", "line")
        self.assertEqual(imported.returncode, 0, imported.stderr)

    def one_line(self, text, *words):
        """The last line says all of `words`; there is no word of ours about a mistake."""
        self.assertNotIn("terminate", text)
        self.assertNotIn("unexpected", text)
        for word in words:
            self.assertIn(word, text.strip().splitlines()[-1], text)

    def test_each_limit_of_a_command(self):
        self.daemon = Daemon(self.place)
        self.fill()
        target = os.path.join(self.place.path, "export.csv")
        export = ("export", "kitchen", "-o", target)
        refused = (
            ("FSIZE", resource.RLIMIT_FSIZE, 1024, "RLIMIT_FSIZE"),
            ("FSIZE of nothing", resource.RLIMIT_FSIZE, 1, "RLIMIT_FSIZE"),
            ("NOFILE", resource.RLIMIT_NOFILE, 8, "RLIMIT_NOFILE"),
            ("STACK", resource.RLIMIT_STACK, 256 << 10, "RLIMIT_STACK"),
        )
        for name, which, value, word in refused:
            with self.subTest(name):
                result = limited([(which, value)], export, env=self.environment())
                self.assertEqual(result.returncode, 1, result.stderr)
                self.one_line(result.stderr, word)
                self.assertEqual(len(result.stderr.strip().splitlines()), 1, result.stderr)
                self.assertEqual([each for each in os.listdir(self.place.path) if "export" in each or
                                  "partial" in each], [])
        harmless = [(name, getattr(resource, "RLIMIT_" + name)) for name in
                    ("CORE", "MEMLOCK", "MSGQUEUE", "NICE", "RTPRIO", "RTTIME", "SIGPENDING")]
        for name, which in harmless:
            with self.subTest(name):
                result = limited([(which, 0)], export, env=self.environment())
                self.assertEqual(result.returncode, 0, result.stderr)
                os.unlink(target)
        with self.subTest("LOCKS"):
            self.assertEqual(limited([(10, 0)], export, env=self.environment()).returncode, 0)  # RLIMIT_LOCKS

    def test_output_that_may_not_grow_is_an_error(self):
        self.daemon = Daemon(self.place)
        self.fill()
        with tempfile.TemporaryFile(dir=self.place.path) as out:
            def prepare():
                resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))
            result = subprocess.run([PROGRAM, "query", "kitchen", "--format", "csv"], stdout=out,
                                    stderr=subprocess.PIPE, text=True, env=self.environment(), check=False,
                                    preexec_fn=prepare, timeout=TIME_LIMIT_SECONDS)
        self.assertEqual(result.returncode, 1)
        self.one_line(result.stderr, "RLIMIT_FSIZE", "1024")

    def test_memory_that_is_not_to_be_had(self):
        # A file of settings is read whole before it is looked at.
        for which, word in ((resource.RLIMIT_AS, "RLIMIT_AS"), (resource.RLIMIT_DATA, "RLIMIT_DATA")):
            for megabytes in (48, 64, 96, 128, 160, 192, 256):
                with self.subTest(f"{word} {megabytes}"):
                    result = limited([(which, megabytes << 20)], ("serve", "--config", self.place.config,
                                                                  "--http.socket", self.place.path + "/none/x/s"))
                    if "shared libraries" in result.stderr:
                        continue  # not of ours: the program was not loaded
                    self.assertIn(result.returncode, (1, 2), result.stderr)
                    self.assertNotIn("terminate", result.stderr)

    @staticmethod
    def handles(pid, number):
        with open(f"/proc/{pid}/status", encoding="ascii") as file:
            caught = [int(line.split()[1], 16) for line in file if line.startswith("SigCgt")]
        return bool(caught) and bool(caught[0] >> (number - 1) & 1)

    def test_no_time_is_left(self):
        for arguments in (("serve", "--config", self.place.config), ("bench", "fillrandom", "--num", "100000000",
                                                                     "--dir", self.place.path)):
            with self.subTest(arguments[0]):
                with subprocess.Popen([PROGRAM, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                      text=True, env=clean_environment()) as process:
                    until(lambda p=process: self.handles(p.pid, signal.SIGXCPU), "it is ready for the signal")
                    if arguments[0] == "serve":
                        until(lambda: os.path.exists(self.place.socket), "it serves")
                    process.send_signal(signal.SIGXCPU)
                    _, err = process.communicate(timeout=TIME_LIMIT_SECONDS)
                self.assertEqual(process.returncode, 1, err)
                self.assertIn("RLIMIT_CPU", err)

    def test_no_thread_is_to_be_had(self):
        if os.geteuid() != 0:
            self.skipTest("only root starts a process as another user")
        user = 61_234  # whose processes are these alone
        os.chown(self.place.path, user, user)
        for threads in (1, 2, 4, 8):
            with self.subTest(threads):
                result = limited([(resource.RLIMIT_NPROC, threads)], ("serve", "--config", self.place.config), user)
                self.assertEqual(result.returncode, 1, result.stderr)
                self.one_line(result.stderr, f"RLIMIT_NPROC (ulimit -u) is {threads}")
        # Nothing was left half made.
        os.chown(self.place.path, 0, 0)
        self.daemon = Daemon(self.place)

    def group(self, controller, settings):
        """A new control group's folder; the first of `settings`, (file, value), whose file is there is set."""
        name = f"edgecase-test-{os.getpid()}-{controller}"
        for root in ("/sys/fs/cgroup", f"/sys/fs/cgroup/{controller}"):
            folder = os.path.join(root, name)
            try:
                os.mkdir(folder)
            except OSError:
                continue
            self.addCleanup(os.rmdir, folder)
            for file, value in settings:
                path = os.path.join(folder, file)
                if os.path.exists(path):
                    with open(path, "w", encoding="ascii") as setting:
                        setting.write(str(value))
                    return folder
        self.skipTest(f"no control group for {controller} may be made here")
        return None

    @staticmethod
    def in_group(folder):
        return "sh", ("-c", f'echo $$ > {folder}/cgroup.procs && exec "$@"', "sh", PROGRAM, "serve")

    def test_processes_of_a_control_group(self):
        folder = self.group("pids", [("pids.max", 3)])
        program, verb = self.in_group(folder)
        result = subprocess.run([program, *verb, "--config", self.place.config], capture_output=True, text=True,
                                timeout=TIME_LIMIT_SECONDS, check=False, env=clean_environment())
        self.assertEqual(result.returncode, 1, result.stderr)
        self.one_line(result.stderr, "pids.max", "is 3")
        self.daemon = Daemon(self.place)  # nothing was left half made

    def test_memory_of_a_control_group(self):
        folder = self.group("memory", [("memory.max", 256 << 20), ("memory.limit_in_bytes", 256 << 20)])
        self.place.write_config(storage='memory-limit = "32MiB"')
        program, verb = self.in_group(folder)
        self.daemon = Daemon(self.place, program=program, verb=verb)
        for begin in range(0, 200_000, 50_000):
            lines = "".join(f'm,device=d{i % 50} value="{i:0200}" {i}\n' for i in range(begin, begin + 50_000))
            stored = self.place.cli("import", "-", "--format", "line", input=lines)
            self.assertEqual(stored.returncode, 0, stored.stderr)
        self.assertIsNone(self.daemon.process.poll(), self.daemon.log())
        counted = self.place.cli("query", "*/*", "--agg", "count", "--format", "csv")
        self.assertEqual(sum(int(line.split(",")[4]) for line in counted.stdout.splitlines()[1:]), 200_000)
        self.assertEqual(self.stop(), 0)

    def test_each_limit_of_the_daemon(self):
        for name, which, value, word in (("NOFILE", resource.RLIMIT_NOFILE, 32, "RLIMIT_NOFILE"),
                                         ("STACK", resource.RLIMIT_STACK, 128 << 10, "RLIMIT_STACK"),
                                         ("FSIZE", resource.RLIMIT_FSIZE, 64 << 10, "RLIMIT_FSIZE")):
            with self.subTest(name):
                result = limited([(which, value)], ("serve", "--config", self.place.config))
                self.assertEqual(result.returncode, 1, result.stderr)
                self.one_line(result.stderr, word)
        harmless = (*("RLIMIT_" + each for each in ("CORE", "MEMLOCK", "MSGQUEUE", "NICE", "RTPRIO", "RTTIME",
                                                    "SIGPENDING")),)
        command = " && ".join(f"prlimit --pid $$ --{each[7:].lower()}=0:0" for each in harmless)
        self.daemon = Daemon(self.place, program="sh", verb=("-c", command + ' && exec "$@"', "sh", PROGRAM, "serve"))
        written = self.place.cli("write", "shed/temp", "1")
        self.assertEqual(written.returncode, 0, written.stderr)
        self.assertEqual(self.stop(), 0)

    def test_files_that_may_not_grow_while_it_runs(self):
        self.place.write_config(storage='wal-limit = "16MiB"')
        self.daemon = Daemon(self.place)
        subprocess.run(["prlimit", "--pid", str(self.daemon.process.pid), "--fsize=4096:unlimited"], check=True)
        blob = os.path.join(self.place.path, "blob")
        with open(blob, "wb") as file:
            file.write(os.urandom(1 << 20))
        refused = self.place.cli("write", "shed/blob", "--type", "bytes", "--file", blob)
        self.assertEqual(refused.returncode, 1, refused.stderr)
        self.assertIn("RLIMIT_FSIZE", refused.stderr + self.daemon.log())
        subprocess.run(["prlimit", "--pid", str(self.daemon.process.pid), "--fsize=unlimited:unlimited"], check=True)
        until(lambda: self.place.cli("write", "shed/temp", "1").returncode == 0, "writes are taken again")

    def test_a_hangup_that_was_ignored_stays_ignored(self):
        ignoring = ("sh", "-c", "trap '' HUP; exec \"$@\"", "sh")
        self.daemon = Daemon(self.place, program=ignoring[0], verb=(*ignoring[1:], PROGRAM, "serve"))
        self.daemon.process.send_signal(signal.SIGHUP)
        self.assertEqual(self.place.cli("write", "shed/temp", "1").returncode, 0)
        with open(f"/proc/{self.daemon.process.pid}/status", encoding="ascii") as file:
            ignored = [int(line.split()[1], 16) for line in file if line.startswith("SigIgn")]
        self.assertTrue(ignored[0] >> (signal.SIGHUP - 1) & 1)
        self.assertEqual(self.stop(), 0)

    def told_since(self, words):
        """What the daemon has told the service manager since it first told `words`."""
        self.daemon.hear()
        return "\n".join(self.daemon.messages).partition(words)[2]

    def test_a_hangup_reads_the_configuration_again(self):
        rule = '[[mqtt.rule]]\ntopic = "{0}/{{device}}/{{sensor}}"\n'
        more = '[limits]\nseries = 1000\n'
        self.place.write_config(more='listen = "127.0.0.1:0"\n' + rule.format("old") + more)
        self.daemon = Daemon(self.place)

        def matched(topic):
            return self.place.cli("mqtt", "test", topic, "1").returncode == 0

        def said(words):
            until(lambda: words in self.daemon.log(), words)

        self.assertEqual((matched("old/a/b"), matched("new/a/b")), (True, False))
        self.place.write_config(more='listen = "127.0.0.1:0"\n' + rule.format("new") + more.replace("1000", "2000"))
        self.daemon.process.send_signal(signal.SIGHUP)
        said("configuration read again; changed: mqtt.rule")
        said("holds after a restart alone: limits.series")
        self.assertEqual((matched("old/a/b"), matched("new/a/b")), (False, True))
        # Ready once more comes after the log's last words.
        until(lambda: self.told_since("RELOADING=1").count("READY=1") == 1, "it is ready again")
        # A file that is wrong changes nothing, and its line is told.
        self.place.write_config(more="nonsense = 1\n" + rule.format("other"))
        self.daemon.process.send_signal(signal.SIGHUP)
        said("is not read again, nothing changes: " + self.place.config + ":")
        self.assertEqual((matched("new/a/b"), matched("other/a/b")), (True, False))
        self.assertEqual(self.stop(), 0)

    @staticmethod
    def writes_into(pid, directory):
        """Whether a file beneath `directory` is open there; false while files close or the process ends."""
        try:
            return any(directory in os.readlink(f"/proc/{pid}/fd/{each}") for each in os.listdir(f"/proc/{pid}/fd"))
        except OSError:
            return False

    def test_an_export_that_is_ended_leaves_nothing(self):
        self.daemon = Daemon(self.place)
        self.fill(100_000)
        directory = os.path.join(self.place.path, "out")
        os.mkdir(directory)
        for how in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            with self.subTest(how):
                with subprocess.Popen([PROGRAM, "export", "kitchen", "-o", os.path.join(directory, "x.csv")],
                                      env=self.environment(), stderr=subprocess.DEVNULL) as export:
                    until(lambda p=export: p.poll() is not None or self.writes_into(p.pid, directory), "it writes")
                    export.send_signal(how)
                    export.wait(TIME_LIMIT_SECONDS)
                # Nothing, or all of it: the signal may come when the file has just got its name.
                for name in os.listdir(directory):
                    with open(os.path.join(directory, name), encoding="utf-8") as file:
                        self.assertEqual(sum(1 for _ in file), 100_001, name)
                if export.returncode == 0:
                    self.assertEqual(os.listdir(directory), ["x.csv"])
                for name in os.listdir(directory):
                    os.unlink(os.path.join(directory, name))


if __name__ == "__main__":
    unittest.main()
