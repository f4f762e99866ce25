#!/usr/bin/env python3
"""How the daemon starts, refuses to start, stops and comes back."""
import json
import os
import re
import resource
import signal
import socket
import subprocess
import unittest

from daemon_process import PROGRAM, TIME_LIMIT_SECONDS, Daemon, Place, clean_environment, run, until
from loopback import LOOPBACK, LOOPBACK_FAMILY, LOOPBACK_IN_URL


class StartFlow(unittest.TestCase):
    def setUp(self):
        self.place = Place()
        self.daemons = []

    def tearDown(self):
        for daemon in self.daemons:
            daemon.stop(signal.SIGKILL)
        self.place.remove()

    def start(self, **more):
        self.daemons.append(Daemon(self.place, **more))
        return self.daemons[-1]

    def serve(self, *arguments):
        """A daemon that is not expected to stay."""
        return run(("serve", "--config", self.place.config, *arguments))

    def test_stops_in_order_when_asked(self):
        for how in (signal.SIGTERM, signal.SIGINT):
            daemon = self.start()
            self.assertEqual(daemon.stop(how), 0)
            self.assertIn("stopped", daemon.log())
            self.assertFalse(os.path.exists(self.place.socket))

    def test_the_daemons_own_name_serves(self):
        daemon = self.start(program=PROGRAM + "d", verb=())
        self.assertEqual(self.place.cli("status").returncode, 0)
        self.assertEqual(daemon.stop(), 0)

    def test_a_process_without_standard_descriptors_writes_into_no_file(self):
        self.start().stop()
        closed = ("sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh")
        for program, verb in ((PROGRAM, ("serve",)), (PROGRAM + "d", ())):
            daemon = self.start(program=closed[0], verb=(*closed[1:], program, *verb))
            for number in (0, 1, 2):
                self.assertEqual(os.readlink(f"/proc/{daemon.process.pid}/fd/{number}"), "/dev/null")
            written = self.place.cli("write", "shed/temp", "21.5", "--time", "@100")
            self.assertEqual(written.returncode, 0, written.stderr)
            self.assertEqual(daemon.stop(), 0)
        for folder, _, names in os.walk(self.place.path):
            for name in names:
                if name == "log" or not os.path.isfile(os.path.join(folder, name)):
                    continue
                with open(os.path.join(folder, name), "rb") as file:
                    self.assertNotIn(b"listening on", file.read(), name)
        self.start()
        for number, redirection in enumerate(("<&-", ">&-", "2>&-", "<&- >&- 2>&-")):
            target = f"{self.place.path}/export{number}.csv"
            result = subprocess.run(["sh", "-c", f'exec "$@" {redirection}', "sh", PROGRAM, "export", "*/*", "-o",
                                     target], env=clean_environment({"EDGECASE_HTTP_SOCKET": self.place.socket}),
                                    check=False, timeout=TIME_LIMIT_SECONDS, stderr=subprocess.DEVNULL)
            self.assertEqual(result.returncode, 0)
            with open(target, encoding="utf-8") as file:
                self.assertEqual(file.read(), "namespace,device,sensor,time,value,type\n"
                                 "default,shed,temp,1970-01-01T00:01:40.000000000Z,21.5,float\n")
        # What nobody gets was not printed.
        printed = subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", PROGRAM, "query", "*/*"], check=False,
                                 env=clean_environment({"EDGECASE_HTTP_SOCKET": self.place.socket}),
                                 stderr=subprocess.PIPE, timeout=TIME_LIMIT_SECONDS)
        self.assertEqual(printed.returncode, 1, printed.stderr)

    def test_the_watchdog_is_fed(self):
        daemon = self.start(watchdog_microseconds=200_000)
        daemon.wait_for("WATCHDOG=1")
        self.assertEqual(daemon.stop(), 0)

    def test_no_core_dump_holds_its_memory(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
        before = os.getcwd()
        self.addCleanup(os.chdir, before)
        self.addCleanup(resource.setrlimit, resource.RLIMIT_CORE, (soft, hard))
        os.chdir(self.place.path)  # where a dump would be
        resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))

        def ended(process):
            process.send_signal(signal.SIGTRAP)  # dumps, and no sanitizer answers it
            return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT).si_code

        with subprocess.Popen(["sleep", "infinity"]) as other:
            # The limit that this was started with, or where dumps go, may let nobody dump.
            if ended(other) != os.CLD_DUMPED:
                self.skipTest("nothing is dumped here")
        daemon = self.start()
        self.assertEqual(ended(daemon.process), os.CLD_KILLED)

    def test_kill_9_loses_nothing_acknowledged(self):
        for round_number in range(5):
            daemon = self.start()
            for i in range(5):
                written = self.place.cli("write", "kill/x", str(round_number * 5 + i), "--time",
                                         f"@{round_number * 5 + i}")
                self.assertEqual(written.returncode, 0, written.stderr)
            daemon.stop(signal.SIGKILL)
        self.start()
        text = self.place.cli("query", "kill/x", "--format", "ndjson").stdout
        self.assertEqual([json.loads(x)["value"] for x in text.splitlines()], list(range(25)))

    def test_a_reserve_is_kept_on_each_drive(self):
        def sizes():
            paths = [f"{self.place.path}/{drive}/RESERVE" for drive in ("meta", "values")]
            return [os.path.getsize(path) if os.path.exists(path) else 0 for path in paths]
        self.start().stop()
        self.assertEqual(sizes(), [0, 0])
        with open(self.place.config, encoding="utf-8") as file:
            text = file.read()
        with open(self.place.config, "w", encoding="utf-8") as file:
            file.write(text.replace('reserve = "0MiB"', 'reserve = "3MiB"'))
        self.start().stop()
        self.assertEqual(sizes(), [3 << 20, 3 << 20])

    def test_one_daemon_a_store(self):
        self.start()
        with_other_socket = self.serve("--http.socket", self.place.socket + "2")
        self.assertEqual(with_other_socket.returncode, 1, with_other_socket.stderr)
        self.assertIn("locked", with_other_socket.stderr)

    def test_a_port_in_use_is_named(self):
        with socket.socket(LOOPBACK_FAMILY) as taken:
            taken.bind((LOOPBACK, 0))
            taken.listen()
            address = f"{LOOPBACK_IN_URL}:{taken.getsockname()[1]}"
            result = self.serve("--http.listen", address)
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn(address, result.stderr)

    def refused_with(self, *wanted, before=(), flags=()):
        """The daemon does not start, and its last line says all of `wanted`."""
        result = subprocess.run([*before, PROGRAM, "serve", "--config", self.place.config, *flags],
                                capture_output=True, text=True, timeout=TIME_LIMIT_SECONDS,
                                check=False, env=clean_environment())
        self.assertIn(result.returncode, (1, 2), result.stderr)
        for words in wanted:
            self.assertIn(words, result.stderr.splitlines()[-1], result.stderr)

    def degraded(self):
        """Why the values drive takes no writes; None: it does."""
        return json.loads(self.place.cli("status", "--json").stdout)["drives"]["values"]["degraded"]

    def test_what_ends_a_start_says_what_to_do(self):
        self.start().stop()
        values, kept = self.place.path + "/values", self.place.path + "/kept"
        os.rename(values, kept)
        # Without it, it starts all the same, and is whole when that comes.
        os.mkdir(values)
        daemon = self.start()
        self.assertIn("is the drive mounted?", self.degraded())
        told = [line for message in daemon.messages for line in message.split("\n")]
        self.assertRegex("\n".join(told), r"STATUS=the values drive takes no writes: .*/values: .*is the drive "
                         r"mounted\?\); to do: mount it, or correct storage.values; 0 readings taken, 0 series")
        self.assertEqual(os.listdir(values), [])
        audited = self.place.cli("audit", "--json").stdout
        self.assertIn("audit.unchecked", audited)
        self.assertNotIn("audit.mismatch", audited)
        os.rmdir(values)
        os.rename(kept, values)
        until(lambda: self.degraded() is None, "the drive that came is taken")
        daemon.stop()
        with socket.socket(LOOPBACK_FAMILY) as taken:
            taken.bind((LOOPBACK, 0))
            taken.listen()
            self.refused_with(" in use", "to do: stop what has it, or set another",
                              flags=("--http.listen", f"{LOOPBACK_IN_URL}:{taken.getsockname()[1]}"))
        with open(self.place.path + "/meta/IDENTITY", "r+b") as identity:
            older = identity.read()
            identity.seek(8)
            identity.write(b"\x02\0\0\0")
            identity.seek(0, os.SEEK_END)
            identity.write(b"more")
            identity.flush()
            self.refused_with("newer version of EdgeCase (format 2)", "to do: install the version")
            identity.seek(0)
            identity.truncate()
            identity.write(older)
        self.start().stop()

    def test_what_may_not_be_read_is_named(self):
        # Root may read everything, unless it is told that it may not.
        reduced = ("setpriv", "--bounding-set=-dac_override,-dac_read_search")
        before = reduced if os.geteuid() == 0 else ()
        key = self.place.path + "/key"
        with open(key, "wb") as file:
            file.write(os.urandom(32))
        flags = ("--storage.encryption-key-file", key)
        for mode, wanted in ((0o000, "chown edgecase"), (0o404, "everybody can read it, run chmod 0400"),
                             (0o402, "everybody can write it, run chmod 0400")):
            os.chmod(key, mode)
            self.refused_with(key, wanted, before=before, flags=flags)
        os.chmod(self.place.config, 0)
        self.refused_with(self.place.config, "let the daemon's user read it", before=before)

    def test_a_configuration_that_others_may_change_is_refused(self):
        os.chmod(self.place.config, 0o646)
        self.judged_everywhere(f":1:1: file: everybody on this machine may change it; to do: see what "
                               f"it says, then chmod o-w {self.place.config}\n")
        os.chmod(self.place.config, 0o664)  # as a checkout with umask 002 has it
        self.assertEqual(run(("config", "check", self.place.config)).returncode, 0)
        self.assertEqual(self.start().stop(), 0)

    @unittest.skipUnless(os.geteuid() == 0, "only root gives files away")
    def test_a_configuration_of_somebody_elses_is_refused(self):
        os.chown(self.place.config, 54321, 0)
        self.judged_everywhere("belongs to the user with the number 54321, neither to root nor to the "
                               f"daemon's user; to do: chown root {self.place.config}\n")

    def test_why_it_does_not_start_is_told_to_the_service_manager(self):
        path = self.place.path + "/notify"
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager, socket.socket(LOOPBACK_FAMILY) as taken:
            manager.bind(path)
            manager.settimeout(TIME_LIMIT_SECONDS)
            taken.bind((LOOPBACK, 0))
            taken.listen()
            for flags, wanted in ((("--http.threads", "x"), "--http.threads: http.threads: \"x\" is not a whole"),
                                  (("--http.listen", f"{LOOPBACK_IN_URL}:{taken.getsockname()[1]}"),
                                   "to do: stop what has it, or set another")):
                done = run(("serve", "--config", self.place.config, *flags),
                           env=clean_environment({"NOTIFY_SOCKET": path}))
                self.assertNotEqual(done.returncode, 0)
                told = manager.recv(4096).decode()
                self.assertTrue(told.startswith("STATUS="), told)
                self.assertIn(wanted, told)

    def judged_everywhere(self, ending):
        """The daemon and `config check` end with exit code 2 and one line that ends so."""
        for verb in (("serve", "--config"), ("config", "check"), ("config", "show", "--config")):
            with self.subTest(verb=verb):
                result = run((*verb, self.place.config))
                self.assertEqual(result.returncode, 2, result.stderr)
                self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
                self.assertTrue(result.stderr.startswith(self.place.config + ":1:1: "), result.stderr)
                self.assertTrue(result.stderr.endswith(ending), result.stderr)

    def test_variables_are_judged_as_the_file_is(self):
        for variable, value, wanted in (
                ("EDGECASE_HTTP_THREADS", "many", "EDGECASE_HTTP_THREADS: http.threads: \"many\" is not a whole"),
                ("EDGECASE_HTTP_LISTEN", "8650", "EDGECASE_HTTP_LISTEN: http.listen: \"8650\" is not an address"),
                ("EDGECASE_HTTP_TLS_CERT", "/c",
                 "EDGECASE_HTTP_TLS_CERT: http.tls-cert: is set but http.tls-key is empty"),
                ("EDGECASE_HTTP_LISTNE", "x",
                 "EDGECASE_HTTP_LISTNE: unknown key, did you mean EDGECASE_HTTP_LISTEN?"),
                ("EDGECASE_STROAGE_VALUES", "x", "EDGECASE_STROAGE_VALUES: unknown key, did you mean ")):
            for verb in (("serve", "--config"), ("config", "check"), ("config", "show", "--config")):
                with self.subTest(verb=verb, variable=variable):
                    result = run((*verb, self.place.config), env=clean_environment({variable: value}))
                    self.assertEqual(result.returncode, 2, result.stderr)
                    self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
                    self.assertTrue(result.stderr.startswith(wanted), result.stderr)
        # One that is right hides no mistake of the file, and is told of.
        shell = clean_environment({"EDGECASE_HTTP_THREADS": "3"})
        result = run(("config", "check", self.place.config), env=shell)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("what the environment sets", result.stderr)
        with open(self.place.config, "a", encoding="utf-8") as file:
            file.write("\n[limits]\ndevices = 0\n")
        result = run(("config", "check", self.place.config),
                     env=clean_environment({"EDGECASE_LIMITS_DEVICES": "3"}))
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("limits.devices: 0 is out of range", result.stderr)

    def test_a_full_drive_or_one_that_takes_no_writes_is_named(self):
        drive = self.place.path + "/drive"
        os.mkdir(drive)
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", drive],
                                 capture_output=True, check=False)
        if mounted.returncode != 0:
            self.skipTest("needs to mount a drive")
        self.addCleanup(subprocess.run, ["umount", drive], check=True)
        flags = ("--storage.metadata", drive + "/meta")
        self.refused_with(drive + "/meta", "No space left on device",
                          "to do: free space on that drive", flags=flags)
        subprocess.run(["mount", "-o", "remount,ro", drive], check=True)
        for directory in ("/meta", "/other"):
            self.refused_with(drive + directory, "Read-only file system, use a directory that",
                              flags=("--storage.metadata", drive + directory))

    def test_no_memory_takes_nothing_acknowledged_along(self):
        daemon = self.start()
        lines = "".join(f"load,device=drive x={i} {i}\n" for i in range(20_000))
        path = self.place.path + "/lines"
        with open(path, "w", encoding="utf-8") as file:
            file.write(lines)
        self.assertEqual(self.place.cli("write", "before/x", "1").returncode, 0)
        with open(f"/proc/{daemon.process.pid}/status", encoding="ascii") as file:
            held = int(re.search(r"VmData:\s+(\d+)", file.read()).group(1)) << 10
        resource.prlimit(daemon.process.pid, resource.RLIMIT_DATA, (held, held))
        # Refused, or with the end of the process: never told to be stored and then not there.
        stored = 0
        for _ in range(20):
            imported = self.place.cli("import", "--format", "line", path)
            stored += imported.returncode == 0
            if daemon.process.poll() is not None:
                break
        ended = daemon.process.poll()
        self.assertTrue(ended is None or ended != 0, ended)
        daemon.stop(signal.SIGKILL)
        self.start()
        self.assertIn("before", self.place.cli("last", "before/x", "--format", "csv").stdout)
        kept = self.place.cli("query", "drive/*", "--format", "ndjson").stdout.count("\n")
        self.assertEqual(kept, 20_000 if stored else kept)

    def test_a_broker_that_is_down_does_not_matter(self):
        with socket.socket(LOOPBACK_FAMILY) as nobody:
            nobody.bind((LOOPBACK, 0))  # not listening
            address = f"mqtt://{LOOPBACK_IN_URL}:{nobody.getsockname()[1]}"
            self.place.write_config()
            with open(self.place.config, encoding="utf-8") as file:
                text = file.read().replace('broker = ""', f'broker = "{address}"')
            with open(self.place.config, "w", encoding="utf-8") as file:
                file.write(text)
            daemon = self.start()
            status = json.loads(self.place.cli("status", "--json").stdout)
            self.assertFalse(status["mqtt"]["connected"])
            self.assertEqual(self.place.cli("write", "a/b", "1").returncode, 0)
            self.assertEqual(daemon.stop(), 0)

    def test_bad_configurations_are_one_line_and_exit_code_2(self):
        path = self.place.path
        with open(os.path.join(path, "file"), "w", encoding="utf-8"):
            pass
        table = {
            ("--storage.values", f"{path}/no/where"): "its parent does not exist",
            ("--storage.values", f"{path}/meta"): "is the directory of storage.metadata too",
            ("--storage.values", f"{path}/file"): "is no directory",
            ("--storage.memory-limit", "1MiB"): "is out of range, use 32MiB to 64GiB",
            ("--storage.on-full", "evict-newest"): "use one of reject|evict-oldest|thin-oldest",
            ("--storage.encryption-key-file", "/k"): "No such file or directory",
            ("--http.listen", "everywhere"): "is not an address",
            ("--http.threads", "none"): "is not a whole number",
        }
        for flags, message in table.items():
            with self.subTest(flags=flags):
                result = self.serve(*flags)
                self.assertEqual(result.returncode, 2, result.stderr)
                self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
                self.assertIn(f"{flags[0]}: {flags[0][2:]}: ", result.stderr)
                self.assertIn(message, result.stderr)
        for text, message in {
            "[storage]\nvaleus = 1\n": ":2:1: storage.valeus: unknown key, did you mean",
            "[[mqtt.rule]]\ntopic = \"a/{nonsense}\"\n": ":2:9: mqtt.rule.topic: ",
            "[http\n": "not TOML",
        }.items():
            with self.subTest(text=text):
                with open(self.place.config, "w", encoding="utf-8") as file:
                    file.write(text)
                for verb in (("serve", "--config"), ("config", "check")):
                    result = run((*verb, self.place.config))
                    self.assertEqual(result.returncode, 2, result.stderr)
                    self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
                    self.assertIn(message, result.stderr)
        self.assertEqual(run(("serve", "--config", path + "/none")).returncode, 2)
        self.assertEqual(run(("serve", "--storage.valeus", "x")).returncode, 2)


class LocalCommands(unittest.TestCase):
    """What needs no daemon."""

    def test_every_help_ends_with_an_example_and_the_codes(self):
        pending = [()]
        seen = 0
        while pending:
            command = pending.pop()
            result = run((*command, "--help"))
            self.assertEqual(result.returncode, 0, command)
            self.assertEqual(result.stderr, "")
            self.assertRegex(result.stdout, r"\nExamples?:\n  edgecase ", command)
            self.assertTrue(result.stdout.rstrip().endswith("7 corruption found"), command)
            self.assertIn("Exit codes: 0 ok, 1 failed", result.stdout)
            seen += 1
            if "\nSubcommands:\n" in result.stdout:
                listed = result.stdout.split("\nSubcommands:\n")[1].split("\n\n")[0]
                for line in listed.splitlines():
                    if line.startswith("  ") and not line.startswith("   "):
                        pending.append((*command, line.split()[0]))
        self.assertGreater(seen, 15)

    def test_configuration_commands(self):
        place = Place()
        self.addCleanup(place.remove)
        example = run(("config", "example")).stdout
        with open(place.config, "w", encoding="utf-8") as file:
            file.write(example)
        self.assertEqual(run(("config", "check", place.config)).returncode, 0)
        shown = run(("config", "show", "--config", place.config, "--json", "--http.threads", "7"),
                    env=clean_environment({"EDGECASE_STORAGE_VALUES": "/mnt/ssd"}))
        rows = {row["key"]: row for row in json.loads(shown.stdout)["settings"]}
        self.assertEqual(rows["http.threads"]["value"], "7")
        self.assertEqual(rows["http.threads"]["source"], "flag")
        self.assertEqual(rows["storage.values"]["source"], "environment")
        self.assertEqual(rows["storage.metadata"]["source"], "file")

    def test_a_judged_configuration_leads_to_a_second_drive(self):
        place = Place()
        self.addCleanup(place.remove)
        hint = "for values on another: edgecase config storage --values DIR\n"
        judged = run(("config", "check", place.config))
        self.assertEqual((judged.returncode, judged.stderr.count("\n")), (0, 2), judged.stderr)
        self.assertTrue(judged.stderr.endswith(hint), judged.stderr)
        self.assertIn("edgecase config storage --values DIR", run(("config", "example")).stdout)
        with open(place.config, encoding="utf-8") as file:
            text = file.read()
        with open(place.config, "w", encoding="utf-8") as file:
            file.write(text.replace(f"{place.path}/values", "/proc/values"))
        judged = run(("config", "check", place.config))
        self.assertEqual((judged.returncode, judged.stderr), (0, f"{place.config} is right\n"))

    def test_version(self):
        self.assertRegex(run(("version",)).stdout, r"^edgecase \d+\.\d+\.\d+\n$")
        self.assertIn("version", json.loads(run(("version", "--json")).stdout))

    def test_a_reader_that_leaves_is_no_noise(self):
        result = subprocess.run(["sh", "-c", f"'{PROGRAM}' config example | head -1"],
                                capture_output=True, text=True, timeout=TIME_LIMIT_SECONDS,
                                check=False)
        self.assertEqual(result.stderr, "")


if __name__ == "__main__":
    unittest.main()
