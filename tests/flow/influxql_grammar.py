"""Lines and SELECT statements of InfluxQL, made by chance: the same ones for the same seed."""

START = 1_577_836_800  # 2020-01-01, in seconds; all lines lie within one of InfluxDB's shards
SPAN = 7_200
SECOND = 1_000_000_000

NUMBERS = ("v", "w", "n")
FIELDS = ("v", "w", "n", "s", "b")
TAGS = ("host", "zone")
HOSTS = ("a", "b", "c", "d")
ZONES = ("x", "y")
AGGREGATES = ("count", "sum", "mean", "median", "stddev", "spread", "min", "max", "first", "last")
SELECTORS = ("min", "max", "first", "last")
WINDOWS = ("1m", "7m", "10m", "1h")


def lines(random):
    """`cpu`, whose points all have times of their own; `mem`, whose series share theirs; `up`, of one series."""
    made = []
    order = list(range(240))
    random.shuffle(order)
    for i, slot in enumerate(order):
        host = HOSTS[i % len(HOSTS)]
        zone = "" if host == "d" else f",zone={random.choice(ZONES)}"
        made.append(f"cpu,host={host}{zone} {_fields(random)} {(START + slot * 30) * SECOND}")
    for slot in range(0, SPAN, 300):
        for host in HOSTS[:3]:
            made.append(f"mem,host={host} v={random.randint(0, 50)}i,w={random.randint(0, 99) / 4} "
                        f"{(START + slot) * SECOND}")
    for slot in range(0, SPAN, 60):
        made.append(f"up v={slot / 60},n={slot * slot % 97}i {(START + slot) * SECOND}")
    return "\n".join(made) + "\n"


def _fields(random):
    made = {
        "v": f"{random.randint(-400, 400) / 8}",
        "w": f"{random.randint(0, 100) * 0.1:.1f}",
        "n": f"{random.randint(-20, 20)}i",
        "s": f'"{random.choice(("red", "green", "", "blue sky"))}"',
        "b": random.choice(("true", "false")),
    }
    kept = [name for name in made if random.random() < 0.6] or ["v"]
    return ",".join(f"{name}={made[name]}" for name in kept)


class Grammar:
    """`functions`: whether there are any; else fields alone are asked for."""

    def __init__(self, random, functions=True):
        self.random = random
        self.functions = functions

    def chance(self, share):
        return self.random.random() < share

    def pick(self, among):
        return self.random.choice(among)

    def statement(self):
        if self.functions and self.chance(0.7):
            return self.summing(0)
        return self.raw(0)

    # Without functions.

    def raw(self, depth):
        is_ordered = self.chance(0.25)  # LIMIT needs points that have an order
        source = "cpu" if is_ordered else self.source(depth, self.raw_inner)
        text = f"SELECT {self.raw_fields(source)} FROM {source}"
        text += self.where() + self.group_by_tags()
        if self.chance(0.1):
            text += self.pick((" fill(0)", " fill(2.5)"))
        if is_ordered and self.chance(0.1) and "fill" not in text:
            text += " fill(previous)"
        descending = self.chance(0.2)
        if descending:
            text += " ORDER BY time DESC"
        if is_ordered:
            text += f" LIMIT {self.random.randint(1, 9)}"
            if self.chance(0.4):
                text += f" OFFSET {self.random.randint(1, 5)}"
        return text + self.series_limit(text)

    def raw_inner(self, depth):
        names = self.random.sample(FIELDS, self.random.randint(1, 3))
        fields = [f"{name} AS {name}" if self.chance(0.2) else name for name in names]
        if self.chance(0.3):
            fields.append(f"{self.pick(NUMBERS)} * 2 AS x")
        text = f"SELECT {', '.join(fields)} FROM {self.pick(('cpu', 'cpu', 'mem', 'up'))}"
        return text + self.where() + self.pick(("", "", " GROUP BY host", " GROUP BY host, zone", " GROUP BY *"))

    def raw_fields(self, source):
        if self.chance(0.15):
            return self.pick(("*", "*::field", "*::tag, v", "/^[vn]$/", "/./"))
        fields = []
        for _ in range(self.random.randint(1, 3)):
            field = self.pick((self.name, self.name, self.name, self.arithmetic, self.cast))()
            if self.chance(0.15):
                field += f" AS {self.pick(('x', 'y', 'v'))}"
            fields.append(field)
        return ", ".join(fields)

    def name(self):
        return self.pick(FIELDS + TAGS + ("v", "v", "nosuch"))

    def cast(self):
        return self.pick(("v::integer", "n::float", "v::float", "v::field", "host::tag", "v::string", "b::boolean"))

    def arithmetic(self):
        left, right = self.pick(NUMBERS), self.pick(NUMBERS + ("2", "0.5", "3"))
        text = f"{left} {self.pick('+-*/')} {right}"
        if self.chance(0.3):
            text = f"({text}) {self.pick('+-*')} {self.pick(NUMBERS)}"
        return text if self.chance(0.85) else f"{self.pick(('abs', 'floor', 'ceil', 'round', 'sqrt'))}({left})"

    # What all have.

    def source(self, depth, inner):
        if depth < 2 and self.chance(0.2):
            return f"({inner(depth + 1)})"
        return self.pick(("cpu", "cpu", "cpu", "cpu", "mem", "up", "cpu, mem", "/c|u/", "/./", "nosuch"))

    def where(self):
        parts = []
        if self.chance(0.35):
            parts.append(self.condition())
            if self.chance(0.4):
                parts = [f"({parts[0]} {self.pick(('AND', 'OR'))} {self.condition()})"]
        if self.chance(0.5):
            parts.append(self.times())
        return f" WHERE {' AND '.join(parts)}" if parts else ""

    def condition(self):
        return self.pick((
            lambda: f"host {self.pick(('=', '!='))} '{self.pick(HOSTS + ('', 'q'))}'",
            lambda: f"host {self.pick(('=~', '!~'))} /{self.pick(('a|b', '^[ab]$', '.', 'z'))}/",
            lambda: f"zone {self.pick(('=', '!='))} '{self.pick(('x', ''))}'",
            lambda: f"{self.pick(NUMBERS)} {self.pick(('>', '<', '>=', '<=', '=', '!='))} {self.random.randint(-5, 9)}",
            lambda: f"{self.pick(NUMBERS)} {self.pick('+-*')} {self.pick(NUMBERS)} > {self.random.randint(-5, 9)}",
            lambda: f"s = '{self.pick(('red', 'green', ''))}'",
            lambda: f"b = {self.pick(('true', 'false'))}",
            lambda: f"s =~ /{self.pick(('e', '^b', 'n$'))}/",
        ))()

    def times(self):
        start = START + self.random.randint(0, SPAN // 2)
        end = start + self.random.randint(60, SPAN)
        return self.pick((f"time >= {start}s AND time < {end}s", f"time > {start * SECOND} AND time <= {end}s",
                          f"time >= '2020-01-01T00:{self.random.randint(0, 59):02}:00Z' AND time < {end}s",
                          f"time >= {start}s", f"time < {end}s"))

    def group_by_tags(self):
        return self.pick(("", "", "", " GROUP BY host", " GROUP BY host, zone", " GROUP BY *", " GROUP BY /o/",
                          " GROUP BY nosuch"))

    def series_limit(self, text):
        if "GROUP BY" not in text or not self.chance(0.1) or "(SELECT" in text:
            return ""
        offset = f" SOFFSET {self.random.randint(1, 2)}" if self.chance(0.5) else ""
        return f" SLIMIT {self.random.randint(1, 3)}{offset}"

    # With functions.

    def summing(self, depth):
        """One or more functions, over windows or all; over points, some that make a point of each point."""
        kind = self.random.random()
        if kind < 0.55:
            return self.aggregated(depth)
        if kind < 0.75:
            return self.selected()
        return self.transformed()

    def aggregated(self, depth):
        source = self.source(depth, self.pick((self.summing_inner, self.raw_inner)))
        fields = []
        for _ in range(self.random.randint(1, 3)):
            field = self.aggregate()
            if self.chance(0.15):
                field = f"{field} {self.pick('+-*/')} {self.pick((self.aggregate(), '2', '0.5'))}"
            if self.chance(0.2):
                field += f" AS {self.pick(('x', 'y', 'mean'))}"
            fields.append(field)
        if self.chance(0.1):
            fields = [f"{self.pick(('mean', 'count', 'max', 'first', 'sum'))}({self.pick(('*', '/^[vn]$/'))})"]
        # Which of several series influxd takes first() and last() from at one instant is by chance.
        if "mem" in source or source == "/./":
            fields = [field.replace("first(", "min(").replace("last(", "max(") for field in fields]
            fields = [field for field in fields if "min(s" not in field and "max(s" not in field] or ["mean(v)"]
        # Which of several points of one value percentile() gives is by chance: not by its time, which one such call
        # shows, however often it is named.
        if all("percentile" in field for field in fields):
            fields.append("count(v)")
        return self.windowed(f"SELECT {', '.join(fields)} FROM {source}")

    def aggregate(self):
        if self.chance(0.1):
            return f"percentile({self.pick(NUMBERS)}, {self.pick((50, 90, 99.5))})"
        if self.chance(0.07):
            return f"count(distinct({self.pick(FIELDS)}))"
        name = self.pick(AGGREGATES)
        if name in ("count", "first", "last"):
            return f"{name}({self.pick(FIELDS + ('nosuch',))})"
        return f"{name}({self.pick(NUMBERS + ('v', 'w'))})"

    def windowed(self, text, series_limit=True):
        """WHERE, GROUP BY, fill(), ORDER BY and LIMIT for functions."""
        start = START + self.random.randint(0, SPAN // 2)
        times = f"time >= {start}s AND time < {start + self.random.randint(600, SPAN)}s"
        has_windows = self.chance(0.6)
        # influxd gives up at a row of the statement in brackets whose window began before `start`.
        if " time(" in text and not has_windows:
            return text
        parts = [self.condition()] if self.chance(0.25) else []
        if has_windows or self.chance(0.4):
            parts.append(times)
        text += f" WHERE {' AND '.join(parts)}" if parts else ""
        groups = []
        if has_windows:
            every = self.pick(WINDOWS)
            groups.append(f"time({every}{self.pick(('', '', ', 30s', ', -90s'))})")
        if self.chance(0.5):
            groups.append(self.pick(("host", "host, zone", "*", "zone")))
        if groups:
            text += f" GROUP BY {', '.join(groups)}"
        if has_windows and self.chance(0.5):
            text += f" fill({self.pick(('none', 'null', 'previous', 'linear', '0', '2.5'))})"
        if self.chance(0.2):
            text += " ORDER BY time DESC"
        # influxd reads no more points than LIMIT for top() and bottom().
        if self.chance(0.2) and "top(" not in text and "bottom(" not in text:
            text += f" LIMIT {self.random.randint(1, 5)}"
            if self.chance(0.4):
                text += f" OFFSET {self.random.randint(1, 3)}"
        if has_windows and self.chance(0.15):
            text += " tz('Europe/Berlin')"
        return text

    def summing_inner(self, depth):
        name = self.pick(("mean", "max", "min", "sum", "count", "first"))
        field = f"{name}({self.pick(NUMBERS)}) AS {self.pick(NUMBERS)}"
        text = f"SELECT {field} FROM {self.pick(('cpu', 'cpu', 'mem', 'up'))}"
        groups = [self.pick(("host", "host, zone", "*"))] if self.chance(0.7) else []
        if self.chance(0.6):
            start = START + self.random.randint(0, SPAN // 2)
            text += f" WHERE time >= {start}s AND time < {start + SPAN // 2}s"
            groups.append(f"time({self.pick(('1m', '7m'))})")
        return text + (f" GROUP BY {', '.join(groups)}" if groups else "")

    def selected(self):
        """One function that gives a point that is there, and what that has beside it."""
        call = self.pick((
            lambda: f"{self.pick(SELECTORS)}({self.pick(NUMBERS)})",
            lambda: f"percentile(v, {self.pick((50, 75))})",
            lambda: f"{self.pick(('top', 'bottom'))}(w, {self.random.randint(1, 4)})",
            lambda: f"{self.pick(('top', 'bottom'))}(v, host, {self.random.randint(1, 4)})",
            lambda: f"distinct({self.pick(FIELDS)})",
        ))()
        fields = [call]
        if not call.startswith("distinct"):
            fields += self.random.sample(FIELDS + TAGS, self.random.randint(0, 2))
        # Which of several points of one value percentile() gives is by chance; `v` of `up` has none twice.
        source = "up" if call.startswith("percentile") else self.pick(("cpu", "up"))
        return self.windowed(f"SELECT {', '.join(fields)} FROM {source}")

    def transformed(self):
        name = self.pick(("derivative", "non_negative_derivative", "difference", "non_negative_difference",
                          "cumulative_sum", "elapsed", "moving_average"))
        of_window = self.chance(0.5)
        # Tenths are added up in another order there: what rises by nothing here may fall there.
        number = self.pick(("v", "n") if name.startswith("non_negative") else NUMBERS)
        inside = f"{self.pick(('mean', 'max', 'sum', 'count'))}({number})" if of_window else number
        more = {"derivative": self.pick(("", ", 1s", ", 10m")), "non_negative_derivative": self.pick(("", ", 1m")),
                "elapsed": self.pick(("", ", 1s")), "moving_average": f", {self.random.randint(2, 4)}"}.get(name, "")
        text = f"SELECT {name}({inside}{more}) FROM {self.pick(('cpu', 'up'))}"
        start = START + self.random.randint(0, SPAN // 2)
        text += f" WHERE time >= {start}s AND time < {start + self.random.randint(600, SPAN)}s"
        groups = [f"time({self.pick(('1m', '10m'))})"] if of_window else []
        if self.chance(0.4):
            groups.append("host")
        if groups:
            text += f" GROUP BY {', '.join(groups)}"
        if of_window and self.chance(0.3):
            text += f" fill({self.pick(('none', 'previous', '0'))})"
        return text + (" ORDER BY time DESC" if self.chance(0.15) else "")
