"""More of InfluxQL by chance: SHOW, statements inside each other, zones, parameters, texts and truth values."""

from influxql_grammar import FIELDS, HOSTS, NUMBERS, SECOND, SPAN, START, TAGS, Grammar

ZONES_OF_TIME = ("Europe/Berlin", "America/New_York", "Asia/Kolkata", "UTC")
WINDOWS = ("45s", "1m", "7m", "10m", "1h", "90m", "1d", "1w")
FILLS = ("none", "null", "previous", "linear", "0", "-3", "2.5")
TRANSFORMS = ("derivative", "non_negative_derivative", "difference", "non_negative_difference", "cumulative_sum",
              "elapsed", "moving_average")
MATH = ("abs", "floor", "ceil", "round", "sin", "cos", "atan")


class WideGrammar(Grammar):
    """Statements, each with its parameters ($name): {} where it has none."""

    def statement(self):
        return self.pick((self.listing, self.nested, self.windows, self.of_windows, self.texts, self.chosen,
                          self.with_parameters, self.of_names, self.at_times))()

    # SHOW.

    def listing(self):
        text = self.pick((self.measurements, self.series, self.tag_keys, self.field_keys, self.tag_values,
                          self.counts))()
        if self.chance(0.3):
            text += f" LIMIT {self.random.randint(1, 4)}"
        if self.chance(0.2):
            text += f" OFFSET {self.random.randint(1, 3)}"
        return text, {}

    def of(self, share=0.5):
        return self.pick((" FROM cpu", " FROM cpu, mem", " FROM /c|u/", " FROM nosuch", " FROM mem, up",
                          " FROM autogen.cpu")) if self.chance(share) else ""

    def on(self):
        return " ON d" if self.chance(0.2) else ""

    def tags(self, share=0.5):
        """A condition of tags alone."""
        if not self.chance(share):
            return ""
        one = lambda: self.pick((
            f"host {self.pick(('=', '!='))} '{self.pick(HOSTS + ('', 'q'))}'",
            f"host {self.pick(('=~', '!~'))} /{self.pick(('a|b', '^[ab]$', '.', 'z', '^$'))}/",
            f"zone {self.pick(('=', '!='))} '{self.pick(('x', 'y', ''))}'",
            f"zone =~ /{self.pick(('x', '.*', '^$'))}/",
            f"nosuch {self.pick(('=', '!='))} '{self.pick(('', 'x'))}'",
            f'"zone"::tag = \'{self.pick(("x", "y"))}\'',
        ))
        text = one()
        if self.chance(0.4):
            text = f"{text} {self.pick(('AND', 'OR'))} {one()}"
            if self.chance(0.3):
                text = f"({text}) {self.pick(('AND', 'OR'))} {one()}"
        return f" WHERE {text}"

    def hosts(self, share=0.5):
        """A condition that InfluxDB asks alike of measurements and of series: of a tag that is there."""
        text = self.pick((f"host = '{self.pick(HOSTS)}'", "host =~ /a|b/", "host =~ /^[cd]$/", "host = 'q'"))
        if self.chance(0.3):
            text += f" OR host = '{self.pick(HOSTS)}'"
        return f" WHERE {text}" if self.chance(share) else ""

    def measurements(self):
        with_name = self.pick((" WITH MEASUREMENT = cpu", " WITH MEASUREMENT =~ /c|m/", " WITH MEASUREMENT = nosuch",
                               ' WITH MEASUREMENT =~ /(?i)CP/')) if self.chance(0.4) else ""
        return f"SHOW MEASUREMENTS{self.on()}{with_name}{self.hosts()}"

    def series(self):
        return f"SHOW SERIES{self.on()}{self.of()}{self.tags()}"

    def tag_keys(self):
        return f"SHOW TAG KEYS{self.on()}{self.of()}{self.tags()}"

    def field_keys(self):
        return f"SHOW FIELD KEYS{self.on()}{self.of()}"

    def tag_values(self):
        return f"SHOW TAG VALUES{self.on()}{self.of()}{self.key()}{self.tags()}"

    def key(self):
        return " WITH KEY " + self.pick(("= host", '= "zone"', "!= host", "=~ /o/", "!~ /ho/", "IN (host, zone)",
                                         'IN ("host")', "= nosuch", "IN (zone, nosuch)"))

    def counts(self):
        exact = self.pick((" EXACT", ""))
        return self.pick((
            lambda: f"SHOW SERIES EXACT CARDINALITY{self.on()}{self.of()}{self.tags()}",
            lambda: f"SHOW MEASUREMENT EXACT CARDINALITY{self.on()}{self.of()}{self.tags()}",
            lambda: f"SHOW TAG KEY{exact} CARDINALITY{self.on()}{self.of()}{self.tags()}",
            lambda: f"SHOW FIELD KEY{exact} CARDINALITY{self.on()}{self.of()}",
            lambda: f"SHOW TAG VALUES{exact} CARDINALITY{self.on()}{self.of()}{self.key()}{self.hosts()}",
        ))()

    # Statements inside each other: each with times of its own.

    def span(self):
        start = START + self.random.randint(0, SPAN // 60) * 60
        return f"time >= {start}s AND time < {start + self.random.randint(1, SPAN // 60) * 60}s"

    def inner(self, depth):
        """Gives the field `x`, and with raw points `host` as well."""
        source = f"({self.inner(depth - 1)})" if depth > 0 else self.pick(("cpu", "cpu", "mem", "up"))
        value = "x" if depth > 0 else self.pick(NUMBERS)
        if self.chance(0.35):
            fields = f"{self.pick((value, f'{value} * 2', f'{value} + {value}', f'abs({value})'))} AS x"
            tags = self.pick(("", " GROUP BY host", " GROUP BY *"))
            return f"SELECT {fields} FROM {source}{self.where_x(depth)}{tags}"
        groups = [self.pick(("host", "*", "host, zone"))] if self.chance(0.6) else []
        has_windows = self.chance(0.7)
        # influxd gives points that are chosen in the order of their groups.
        calls = ("mean", "sum", "count", "median", "spread") + (("max", "min") if has_windows or not groups else ())
        call = f"{self.pick(calls)}({value})"
        if self.chance(0.2):
            call = f"{call} {self.pick('+-*/')} {self.pick((2, 0.5))}"
        text = f"SELECT {call} AS x FROM {source}"
        if has_windows:
            text += f" WHERE {self.span()}"
            groups.append(f"time({self.pick(('1m', '2m', '5m'))})")
        if groups:
            text += f" GROUP BY {', '.join(groups)}"
            # influxd begins to fill anew whenever groups alternate: `up` is of one.
            if has_windows and self.chance(0.3) and "cpu" not in text and "mem" not in text:
                text += f" fill({self.pick(('none', 'previous', '0'))})"
        return text

    def where_x(self, depth):
        if depth > 0 and self.chance(0.3):
            return f" WHERE x {self.pick(('>', '<', '!='))} {self.random.randint(-3, 5)}"
        return ""

    def nested(self):
        source = f"({self.inner(self.random.randint(0, 2))})"
        if self.chance(0.3):
            return f"SELECT x FROM {source}{self.pick(('', ' GROUP BY host', ' WHERE x > 2'))}", {}
        call = f"{self.pick(('mean', 'max', 'min', 'sum', 'count', 'spread', 'median'))}(x)"
        text = f"SELECT {call} FROM {source}"
        groups = [self.pick(("host", "*"))] if self.chance(0.4) else []
        if " time(" not in source and self.chance(0.5):
            text += f" WHERE {self.span()}"
            groups.append(f"time({self.pick(WINDOWS)})")
        return text + (f" GROUP BY {', '.join(groups)}" if groups else ""), {}

    # Windows: each function, each fill, each zone.

    def number_call(self, source):
        """Which of several points of one value or time is given is by chance in influxd."""
        number = self.pick(NUMBERS)
        calls = ["count", "sum", "mean", "median", "stddev", "spread", "min", "max"]
        if source in ("up", "cpu"):
            calls += ["first", "last"]
        call = self.pick([f"{each}({number})" for each in calls] +
                         [f"percentile({number}, {self.pick((50, 95))})", f"count(distinct({number}))"])
        if source == "up" and self.chance(0.15):
            call = self.pick((f"integral({number})", f"integral({number}, 1m)"))
        return call

    def windows(self):
        source = self.pick(("cpu", "cpu", "up", "mem", "cpu, mem", "/c|u/", "cpu, up"))
        fields = []
        for _ in range(self.random.randint(1, 3)):
            field = self.number_call(source)
            if self.chance(0.2):
                field = f"{field} {self.pick('+-*/%')} {self.pick((self.number_call(source), '2', '0.5', '-1'))}"
            if self.chance(0.15):
                field = f"{self.pick(MATH)}({field})"
            if self.chance(0.15):
                field += f" AS {self.pick(('x', 'y', 'mean'))}"
            fields.append(field)
        if all("percentile" in field for field in fields) or "integral" in "".join(fields):
            fields = [field for field in fields if "integral" not in field][:1] + ["mean(v)"]
        text = f"SELECT {', '.join(fields)} FROM {source} WHERE {self.span()}"
        if self.chance(0.2):
            text += f" AND {self.condition()}"
        offset = self.pick(("", "", ", 30s", ", -90s", ", 15m"))
        tags = self.pick(("", "", ", host", ", *", ", zone"))
        text += f" GROUP BY time({self.pick(WINDOWS)}{offset}){tags}"
        if self.chance(0.6):
            text += f" fill({self.pick(FILLS)})"
        if self.chance(0.25):
            text += " ORDER BY time DESC"
        if self.chance(0.2):
            text += f" LIMIT {self.random.randint(1, 5)}"
            if self.chance(0.4):
                text += f" OFFSET {self.random.randint(1, 3)}"
        if tags and self.chance(0.15):
            text += f" SLIMIT {self.random.randint(1, 3)}"
            if self.chance(0.5):
                text += f" SOFFSET {self.random.randint(1, 2)}"
        if self.chance(0.3):
            text += f" tz('{self.pick(ZONES_OF_TIME)}')"
        return text, {}

    def of_windows(self):
        """derivative() and its like over functions, with each fill."""
        name = self.pick(TRANSFORMS)
        call = self.pick(("mean", "max", "min", "sum", "count", "median", "last", "stddev"))
        if name.startswith("non_negative"):  # tenths are added up in another order there
            inside = f"{call}({self.pick(('v', 'n'))})"
        else:
            inside = f"{call}({self.pick(NUMBERS)})"
        more = {"derivative": self.pick(("", ", 1s", ", 10m")), "non_negative_derivative": self.pick(("", ", 1m")),
                "elapsed": self.pick(("", ", 1s")), "moving_average": f", {self.random.randint(2, 4)}"}.get(name, "")
        text = (f"SELECT {name}({inside}{more}) FROM {self.pick(('cpu', 'up'))} WHERE {self.span()} "
                f"GROUP BY time({self.pick(('1m', '3m', '10m'))}){self.pick(('', '', ', host', ', *'))}")
        if self.chance(0.6):
            text += f" fill({self.pick(FILLS)})"
        return text + (" ORDER BY time DESC" if self.chance(0.2) else ""), {}

    # Texts and truth values.

    def texts(self):
        name = self.pick(("s", "b"))
        fields = self.pick((
            f"count({name})", f"first({name}), host", f"last({name})", f"distinct({name})", f"count(distinct({name}))",
            "max(b)", "min(b)", f"{name}, v", "b, s, host", f"elapsed({name}, 1s)", "v > 3", "b = true", "s = 'red'",
            f"sum({name})", f"mean({name})", f"spread({name})", f"derivative({name})", "top(s, 1)", "max(s)",
            "b & true", "b | false", "b ^ true", "s + s", "v + s", "v + b", "n & 3", "n | 1", "n ^ 5", "n % 3", "v % 3",
            "abs(s)", "round(b)", "v::string, s", "max(v::string)", "mean(v::boolean)", "b::boolean, v",
            "first(s::float), v", "count(s::string)", "s::integer, n"))
        text = f"SELECT {fields} FROM {self.pick(('cpu', 'cpu', 'up'))}"
        if self.chance(0.5):
            text += f" WHERE {self.pick((self.text_condition, self.span))()}"
        return text + self.pick(("", "", " GROUP BY host", " GROUP BY *")), {}

    def text_condition(self):
        return self.pick(("s = 'red'", "s != 'red'", "s =~ /re/", "s !~ /re/", "b = true", "b != true", "b",
                          "s = ''", "s > 'a'", "v = 's'", "b = 1", "s = 'red' OR b = false",
                          "(s = 'red' AND v > 0) OR host = 'a'", "s =~ /^$/", "time > 0 AND s = 'green'",
                          "v > n", "v * 2 > w", "n & 1 = 1", "n % 2 = 0", "v > 1 AND v < 9 AND host != 'a'",
                          "nosuch = 1", "nosuch != 1", "nosuch = ''", "v >= 0.5e1", "-v > 3", "abs(v) > 20"))

    # Points that are chosen.

    def chosen(self):
        call = self.pick(("max(v)", "min(w)", "first(n)", "last(v)", f"top(v, {self.random.randint(1, 5)})",
                          f"bottom(w, {self.random.randint(1, 5)})", "top(v, host, 2)", "bottom(v, zone, host, 3)",
                          "first(s)", "last(b)"))
        fields = [call] + self.random.sample(FIELDS + TAGS, self.random.randint(0, 3))
        text = f"SELECT {', '.join(fields)} FROM cpu"
        groups = [self.pick(("host", "*", "zone"))] if self.chance(0.4) and "(v, host" not in call else []
        if self.chance(0.6):
            text += f" WHERE {self.span()}"
            if self.chance(0.7):
                groups.append(f"time({self.pick(WINDOWS)})")
        if groups:
            text += f" GROUP BY {', '.join(groups)}"
        if "time(" in text and self.chance(0.5):
            text += f" fill({self.pick(FILLS)})"
        return text, {}

    # $name.

    def with_parameters(self):
        kind = self.random.randint(0, 4)
        if kind == 4:
            return ("SELECT $f($v) FROM $m WHERE host =~ $h AND n > $n AND v != $x AND time < $t GROUP BY time($w) "
                    "LIMIT $l"), {
                "f": {"identifier": self.pick(("mean", "max", "count"))}, "v": {"ident": self.pick(NUMBERS)},
                "m": {"identifier": "cpu"}, "h": {"regex": self.pick(("a|b", ".", "q"))},
                "n": {"integer": self.random.randint(-9, 9)}, "x": {"float": self.random.randint(-9, 9)},
                "t": {"string": "2020-01-01 01:30:00"}, "w": {"duration": self.pick(("10m", 420 * SECOND))},
                "l": {"int": self.random.randint(1, 5)}}
        if kind == 0:
            return "SELECT v FROM cpu WHERE host = $h AND v > $n", {
                "h": self.pick(HOSTS), "n": self.pick((0, -3.5, 7, 1e2))}
        if kind == 1:
            return "SELECT mean(v) FROM cpu WHERE b = $b AND time < $t GROUP BY host", {
                "b": self.chance(0.5), "t": (START + self.random.randint(0, SPAN)) * SECOND}
        if kind == 2:
            return "SELECT v FROM up WHERE time >= $from AND time < $to LIMIT 5", {
                "from": f"2020-01-01T00:{self.random.randint(0, 59):02}:00Z", "to": "2020-01-01T01:30:00.5Z"}
        return "SELECT count(v) FROM cpu WHERE s = $s AND host != $missing", {
            "s": self.pick(("red", "it's", 'a"b', "", "\\", "\u00fc")),
            **({"missing": "a"} if self.chance(0.7) else {})}

    # Which names: wildcards, patterns, quotes, aliases.

    def of_names(self):
        fields = self.pick(("*", "*::field", "*::tag", "*::tag, v", "/^[vn]$/", "/s|b/", "*, v", "v AS a, v AS a",
                            "v, v, v", "mean(*)", "max(/v|w/)", "mean(/nosuch/)", "count(*), sum(*)", "first(*)",
                            "mean(v) AS \"a b\"", '"v" AS "select"', "v AS time", "time, v", "time AS t, v",
                            "count(time)",
                            "host", "host, zone", "host AS v", "mean(host)", "nosuch", "nosuch, v", "mean(nosuch)",
                            "mean(v), mean(v)", "mean(v), max(v) AS mean", "derivative(*)", "top(*, 1)", "spread(*)",
                            "percentile(*, 50)", "1", "v, 1", "v + 1", "mean(v) + 1", "mean(v) + mean(nosuch)",
                            "mean(v), v", "v, mean(v)", "count(distinct v)", "distinct v", "stddev(*) ",
                            "non_negative_derivative(/v|n/)", "difference(*)", "bottom(v, 2), v"))
        source = self.pick(("cpu", "up", "mem, up" if fields[0] in "cms*/" else "up", "/./" if fields[0] in "*/m"
                            else "cpu", '"cpu"', "d.autogen.cpu", "d..cpu", "autogen./c/", "(SELECT * FROM cpu)",
                            "(SELECT v, w FROM cpu GROUP BY host)"))
        where = self.pick(("", "", " WHERE host = 'a'", " WHERE v > 0"))
        groups = self.pick(("", "", "", " GROUP BY host", " GROUP BY *", " GROUP BY /zo/", " GROUP BY host, nosuch"))
        return f"SELECT {fields} FROM {source}{where}{groups}", {}

    # Times as they may be written.

    def at_times(self):
        minute = self.random.randint(0, 59)
        point = self.pick((
            f"'2020-01-01T00:{minute:02}:00Z'", f"'2020-01-01 00:{minute:02}:00'", f"'2020-01-01 00:{minute:02}:00.5'",
            "'2020-01-01'", f"'2020-01-01T02:{minute:02}:00+02:00'", f"{START + minute * 60}s",
            f"{START // 60 + minute}m",
            f"{(START + minute * 60) * 1000}ms", f"{(START + minute * 60) * 1000000}u", f"'2020-01-01' + {minute}m",
            f"now() - {minute}m", f"{(START + minute * 60) * SECOND}", f"'2020-01-01T01:00:00Z' - {minute}m",
            f"'2020-01-01T00:00:00Z' + {minute}m + 30s", f"{(START + minute * 60) * SECOND}.0", "'never'", "true"))
        text = f"time {self.pick(('>', '>=', '<', '<=', '=', '!='))} {point}"
        if self.chance(0.2):
            text = f"{point} {self.pick(('>', '<='))} time"
        if self.chance(0.3):
            text += f" {self.pick(('AND', 'AND', 'OR'))} {self.pick(('v > 3', 'time < 1577840400s', 'n = 1'))}"
        fields = self.pick(("v", "count(v)", "mean(v), max(v)"))
        zone = f" tz('{self.pick(ZONES_OF_TIME)}')" if self.chance(0.3) else ""
        return f"SELECT {fields} FROM up WHERE {text}{zone}", {}
