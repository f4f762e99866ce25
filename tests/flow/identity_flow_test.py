#!/usr/bin/env python3
"""What lines of line protocol were called comes back byte for byte: into one store, out as lines,
into a second store, and out again.

EDGECASE_SEED=N repeats a run. EDGECASE_LINES=FILE takes lines of a file along."""
import os
import random
import unittest

from daemon_process import Daemon, Place

IDENTITIES = 3000
LONGEST = 15_000  # of a text; all of an identity have 16 KiB
SECOND = 1_700_000_000
LINES = os.environ.get("EDGECASE_LINES")
CHARACTERS = ["a", "b", "Z", "0", ".", "/", "{", "}", ",", " ", "=", '"', "'", "\\", "~", ":", "#", "%", "*", "?",
              "[", "_", "-", "+", "@", "\t", "ü", "µ", "气", "🙂", "\u200b", "\u0301"]


def escaped(text, specials):
    return "".join("\\" + c if c in specials else c for c in text)


def unescaped(text, specials):
    out, i = "", 0
    while i < len(text):
        if text[i] == "\\" and i + 1 < len(text) and text[i + 1] in specials:
            i += 1
        out += text[i]
        i += 1
    return out


def line_of(identity, value):
    measurement, tags, field = identity
    return (escaped(measurement, ", ") + "".join("," + escaped(k, ",= ") + "=" + escaped(v, ",= ") for k, v in tags)
            + " " + escaped(field, ",= ") + "=" + value + f" {SECOND}000000000")


def first_space(line):
    i = 0
    while line[i] != " ":
        i += 2 if line[i] == "\\" and i + 1 < len(line) and line[i + 1] in ",= " else 1
    return i


def parsed(line):
    """One line with one field, as identity and (value, time)."""
    end = first_space(line)
    head, rest = line[:end], line[end + 1:]
    fields, time = rest.rsplit(" ", 1)
    names, i, start = [], 0, 0
    while i <= len(head):
        if i == len(head) or head[i] == ",":
            names.append(head[start:i])
            start = i + 1
        elif head[i] == "\\" and i + 1 < len(head) and head[i + 1] in ",= ":
            i += 1
        i += 1
    tags = []
    for name in names[1:]:
        at = 0
        while name[at] != "=":
            at += 2 if name[at] == "\\" and name[at + 1] in ",= " else 1
        tags.append((unescaped(name[:at], ",= "), unescaped(name[at + 1:], ",= ")))
    at = 0
    while fields[at] != "=":
        at += 2 if fields[at] == "\\" and fields[at + 1] in ",= " else 1
    field = unescaped(fields[:at], ",= ")
    return (unescaped(names[0], ", "), tuple(sorted(tags)), field), (fields[at + 1:], time)


class Identities(unittest.TestCase):
    def start(self, more=""):
        self.places = [Place(), Place()]
        for place in self.places:
            place.write_config(more=more)
        self.daemons = [Daemon(place) for place in self.places]

    def tearDown(self):
        for daemon, place in zip(getattr(self, "daemons", []), getattr(self, "places", [])):
            daemon.stop()
            place.remove()

    def there_and_back(self, body):
        status, answer = self.daemons[0].request("POST", "/write?db=default", body)[:2]
        self.assertEqual(status, 204, answer[:500])
        first = self.exported(0)
        path = os.path.join(self.places[1].path, "all.lp")
        with open(path, "w", encoding="utf-8", newline="") as file:
            file.write(first)
        result = self.places[1].cli("import", path)
        self.assertEqual(result.returncode, 0, result.stderr[-500:])
        self.assertEqual(sorted(self.exported(1).split("\n")), sorted(first.split("\n")))
        return first

    def exported(self, number):
        result = self.places[number].cli("export", "--format", "line", "*/*", "-o", "-")
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def test_hostile_identities(self):
        self.start()
        self.hostile(IDENTITIES)

    def test_hostile_identities_by_rules(self):
        self.start('[[influx.rule]]\nmeasurement = "a*"\ndevice = "{host}"\n[[influx.rule]]\n'
                   'device = "{host}{device}"\n[[influx.rule]]\nmeasurement = "?"\ndevice = "house"\n')
        self.hostile(IDENTITIES // 3)

    def hostile(self, count):
        seed = int(os.environ.get("EDGECASE_SEED", random.SystemRandom().randrange(2**32)))
        print(f"seed {seed}: EDGECASE_SEED={seed} repeats it")
        chance = random.Random(seed)

        def text():
            length = chance.choice([1, 1, 2, 3, 5, 8, 40, 200]) if chance.random() < 0.99 else LONGEST // 60
            made = "".join(chance.choice(CHARACTERS) for _ in range(length))
            # A line that begins with # is a comment, a tab before something is a blank, and the last backslash would
            # keep what follows.
            return made.rstrip("\\").lstrip("#\t") or "x"

        # The second is what a reading without any identity would be called.
        lines = {("a", (), "value"): "1", ("a", (("device", "a"),), "value"): "2"}
        values = ["1", "-5i", "true", '"a b,c=d"', "1.5", "9223372036854775807i", "false", '"\\"q\\\\"']
        while len(lines) < count:
            keys = {chance.choice(["host", "device", "domain", "entity_id", text()])
                    for _ in range(chance.randrange(5))}
            identity = (text(), tuple(sorted((key, text()) for key in keys)), chance.choice(["value", text()]))
            lines[identity] = values[len(lines) % len(values)]
        body = "\n".join(line_of(identity, value) for identity, value in lines.items())
        back = self.there_and_back(body.encode())
        # All at one time: two identities of one series would replace each other.
        found = dict(parsed(line) for line in back.split("\n") if line)
        self.assertEqual(set(found), set(lines))
        for identity, value in lines.items():
            self.assertEqual(found[identity][0], value, identity)

    def test_csv_says_what_it_drops(self):
        self.start()
        self.daemons[0].request("POST", "/write", b"cpu,host=pi,core=0 idle=1 1\ncpu,device=pi value=1 1")
        for selector, said in (("*/*", True), ("pi/cpu", False)):
            for arguments in (("query", selector), ("export", selector, "-o", "-")):
                result = self.places[0].cli(*arguments, "--format", "csv")
                self.assertEqual((result.returncode, "measurement" in result.stderr), (0, said), result.stderr)
        for name in ("ndjson", "line"):
            self.assertEqual(self.places[0].cli("export", "*/*", "--format", name, "-o", "-").stderr, "")

    if LINES:
        def test_lines_of_a_file(self):
            self.start()
            with open(LINES, "rb") as file:
                self.there_and_back(file.read())


if __name__ == "__main__":
    unittest.main(verbosity=2)
