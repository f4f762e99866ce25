#!/usr/bin/env python3
"""What the command line says when something is not as it should be: the thing by its name, and what to do."""
import os
import pty
import select
import subprocess
import unittest

from daemon_process import PROGRAM, Daemon, Place, clean_environment, run

NOBODY = 65534


def on_terminal(place, *arguments, typed=""):
    """Exit code and what a terminal was sent, by a command that has one for all three descriptors."""
    master, slave = pty.openpty()
    process = subprocess.Popen([PROGRAM, *arguments], stdin=slave, stdout=slave, stderr=slave,
                               env=clean_environment({"EDGECASE_HTTP_SOCKET": place.socket}))
    os.close(slave)
    os.write(master, typed.encode())
    shown = b""
    while select.select([master], [], [], 60)[0]:
        try:
            piece = os.read(master, 65536)
        except OSError:  # the other side has gone
            break
        if not piece:
            break
        shown += piece
    os.close(master)
    return process.wait(timeout=60), shown


class WordsFlow(unittest.TestCase):
    def setUp(self):
        self.place = Place()
        self.daemon = Daemon(self.place)

    def tearDown(self):
        self.daemon.stop()
        self.place.remove()

    def ok(self, *arguments, **more):
        result = self.place.cli(*arguments, **more)
        self.assertEqual(result.returncode, 0, (arguments, result.stderr))
        return result.stdout

    def fails(self, code, *arguments, **more):
        result = self.place.cli(*arguments, **more)
        self.assertEqual(result.returncode, code, (arguments, result.stdout, result.stderr))
        return result.stderr


class Empty(WordsFlow):
    def test_the_default_namespace_is_there_before_its_first_reading(self):
        self.assertIn("default", self.ok("namespace", "list").split())
        for command in (["last", "*/*"], ["query", "*/*"], ["devices"], ["series"], ["export", "*/*"], ["where", "*/*"],
                        ["retention", "preview", "*/*", "90d"], ["erase", "kitchen"], ["device", "show", "kitchen"]):
            said = self.place.cli(*command)
            self.assertNotIn("no namespace", said.stderr, command)
            self.assertIn(said.returncode, (0, 3), (command, said.stderr))
        self.assertIn("plant", self.fails(3, "last", "*/*", "-n", "plant"))

    def test_a_rule_is_set_before_its_device_comes(self):
        said = self.place.cli("retention", "set", "garage", "1h")
        self.assertEqual(said.returncode, 0, said.stderr)
        self.assertIn("nothing of garage is stored yet", said.stderr)
        self.assertIn("garage/*", self.ok("retention", "list"))

    def test_a_full_drive_behind_standard_output_is_told(self):
        self.ok("write", "kitchen/temp", "21.5")
        for command in (["version"], ["--version"], ["--help"], ["query", "--help"], ["status"], ["last", "*/*"],
                        ["query", "*/*"], ["devices"], ["series", "--json"], ["export", "*/*"], 
                        ["retention", "list"], ["namespace", "list"], ["audit"], ["report"], ["where", "kitchen"],
                        ["config", "example"], ["config", "show"], ["completion", "bash"], ["get", "kitchen/temp"],
                        ["mqtt", "test", "sensors/a/b", "1"], ["erase", "--list", "--json"]):
            with open("/dev/full", "wb") as full:
                said = subprocess.run([PROGRAM, *command], stdout=full, stderr=subprocess.PIPE, check=False, timeout=60,
                                      env=clean_environment({"EDGECASE_HTTP_SOCKET": self.place.socket}), text=True)
            self.assertEqual(said.returncode, 1, (command, said.stderr))
            self.assertEqual(said.stderr.count("No space left on device"), 1, (command, said.stderr))


class Socket(WordsFlow):
    @unittest.skipIf(os.geteuid() != 0, "skipped: only root can become somebody else")
    def test_who_may_not_use_the_socket_hears_of_the_group(self):
        os.chmod(self.place.path, 0o755)
        os.chmod(self.place.socket, 0o660)
        said = self.fails(4, "last", "*/*", user=NOBODY, group=NOBODY, extra_groups=[])
        self.assertIn("not a member of group", said)
        self.assertIn("newgrp", said)
        self.assertEqual(said.count("\n"), 1)

    def test_no_daemon_is_told_by_what_is_there(self):
        self.daemon.stop()
        self.assertIn("no daemon", self.fails(5, "status"))
        with open(self.place.socket, "w", encoding="utf-8"):
            pass
        self.assertIn("no daemon", self.fails(5, "status"))
        os.unlink(self.place.socket)
        self.daemon = Daemon(self.place)
        self.ok("status")


class Terminal(WordsFlow):
    def test_bytes_are_not_shown_unless_asked_for(self):
        picture = os.path.join(self.place.path, "picture.jpg")
        with open(picture, "wb") as file:
            file.write(b"\xff\xd8\xff\xe0\x00\x10JFIF\x00\x1b[31m" + bytes(range(256)))
        self.ok("write", "door/photo", "--file", picture)
        code, shown = on_terminal(self.place, "get", "door/photo")
        self.assertEqual(code, 2)
        self.assertIn(b"-o", shown)
        self.assertNotIn(b"JFIF", shown)
        code, shown = on_terminal(self.place, "get", "door/photo", "-o", "-")
        self.assertEqual(code, 0)
        self.assertIn(b"JFIF", shown)
        self.ok("write", "door/note", "grüße", "--type", "text")
        code, shown = on_terminal(self.place, "get", "door/note")
        self.assertEqual((code, shown.decode().strip()), (0, "grüße"))

    def test_no_value_and_no_name_moves_the_cursor(self):
        evil = "\x1b]0;gone\x07\x1b[2J\u202ex"
        self.ok("write", "door/note", evil, "--type", "text")
        for command in (["last", "*/*"], ["query", "*/*", "--format", "csv"], ["query", "*/*", "--format", "line"],
                        ["query", "*/*", "--format", "ndjson"], ["last", evil + "/x"], ["export", evil], [evil],
                        ["inspect", evil], ["retention", "set", "door", evil], ["import", evil]):
            code, shown = on_terminal(self.place, *command)
            self.assertNotIn(b"\x1b", shown.replace(b"\r\x1b[K", b""), (command, code))
            self.assertNotIn("\u202e".encode(), shown, command)

    def test_what_destroys_asks(self):
        self.ok("write", "door/open", "true")
        self.ok("namespace", "create", "plant")
        code, shown = on_terminal(self.place, "erase", "door", typed="no\n")
        self.assertIn(b"Type yes", shown)
        self.assertEqual(code, 2)
        self.assertIn("door", self.ok("devices"))
        code, shown = on_terminal(self.place, "namespace", "drop", "plant", typed="plant\n")
        self.assertEqual(code, 0, shown)
        self.assertNotIn("plant", self.ok("namespace", "list"))
        code, shown = on_terminal(self.place, "erase", "door", typed="yes\n")
        self.assertEqual(code, 0, shown)
        self.assertNotIn("door", self.ok("devices"))

    def test_what_destroys_needs_yes_where_nobody_can_be_asked(self):
        self.ok("write", "door/open", "true", "--time", "@1000000000")
        self.ok("namespace", "create", "plant")
        self.ok("retention", "set", "door", "forever")
        self.ok("retention", "set", "*/*", "1d", "--yes")
        for command in (["erase", "door"], ["erase", "*/*"], ["namespace", "drop", "plant"],
                        ["retention", "set", "door", "1h"], ["retention", "clear", "door"]):
            self.assertIn("--yes", self.fails(2, *command), command)
        self.assertIn("door", self.ok("devices"))
        self.ok("retention", "set", "shed", "1h")
        self.ok("retention", "clear", "shed")
        for command in (["erase", "door", "--yes"], ["namespace", "drop", "plant", "--yes"]):
            self.ok(*command)


class WithoutADaemon(unittest.TestCase):
    @unittest.skipIf(os.geteuid() != 0, "skipped: only root can become somebody else")
    def test_a_store_of_another_user_is_told_as_one(self):
        place = Place()
        try:
            Daemon(place).stop()
            os.chmod(place.path, 0o755)
            os.chmod(place.config, 0o644)
            for at, folders, files in os.walk(place.path):
                for name in folders + files:
                    os.chown(os.path.join(at, name), NOBODY, NOBODY)
            for made_by_root in ("meta/IDENTITY", "meta/LOCK", "values/IDENTITY", "meta/wal"):
                path = os.path.join(place.path, made_by_root)
                os.chown(path, 0, 0)
                os.chmod(path, 0o700)
                said = run(["serve", "--config", place.config], user=NOBODY, group=NOBODY, extra_groups=[])
                self.assertEqual(said.returncode, 1, said.stderr)
                self.assertIn(path, said.stderr)
                self.assertIn("chown", said.stderr)
                self.assertNotIn("encryption-key-file", said.stderr)
                os.chown(path, NOBODY, NOBODY)
        finally:
            place.remove()

    def test_bench_leaves_what_lies_beside_it_and_stays_out_of_a_store(self):
        place = Place()
        try:
            letters = os.path.join(place.path, "letters")
            os.makedirs(letters)
            with open(os.path.join(letters, "one.txt"), "w", encoding="utf-8") as file:
                file.write("dear")
            said = run(["bench", "fillseq", "--smoke", "--metadata", letters])
            self.assertEqual(said.returncode, 0, said.stderr)
            self.assertEqual(os.listdir(letters), ["one.txt"])
            daemon = Daemon(place)
            daemon.stop()
            for side in ("--metadata", "--values"):
                store = os.path.join(place.path, "meta" if side == "--metadata" else "values")
                said = run(["bench", "fillseq", "--smoke", side, store])
                self.assertEqual(said.returncode, 2, said.stderr)
                self.assertIn(f"{store} holds a store", said.stderr)
        finally:
            place.remove()


if __name__ == "__main__":
    unittest.main()
