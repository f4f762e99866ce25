#!/usr/bin/env python3
"""Measures TSBS's questions about trucks (its use case `iot`) beside the same questions to peers, in one run.

  EDGECASE_PROGRAM=build/release/cli/edgecase tests/bench/tsbs_figures.py [--trucks N] [--days N] [--interval SECONDS]
      [--rounds N] [--check]

--trucks (100) send `readings` (seven numbers) and `diagnostics` (three) for --days (3), every --interval seconds (10);
measurements, tags and questions are those that TSBS's README names, data and statements are our own. What a language
has no form for is `nan`. Servers, memory, figures and exit codes: query_figures.py.
"""
import itertools
import json
import random
import sys

from query_figures import BEGIN, compare, given_to

DAY = 86_400
FLEETS = ("East", "North", "South", "West")
DRIVERS = ("Andy", "Derek", "Rodney", "Trish")
MODELS = ("F-150", "G-2000", "H-2")
LINES = 5_000


def trucks(count):
    chance = random.Random(1)
    for i in range(count):
        capacity = chance.choice((1500, 2000, 5000))
        yield (f"name=truck_{i},fleet={chance.choice(FLEETS)},driver={chance.choice(DRIVERS)},"
               f"model={chance.choice(MODELS)},device_version=v{chance.choice('12')}.0", capacity,
               chance.choice((150, 300)), chance.choice((12, 15, 19)))


def lines_of(number, truck, at, chance):
    """Six hours of driving, two of rest, each truck at its own time; some break down."""
    tags, capacity, fuel_capacity, nominal = truck
    is_driving = (at + number * 1711) % (8 * 3600) < 6 * 3600
    velocity = chance.randint(30, 95) if is_driving else 0
    status = 1 if number % 9 == 0 and at % DAY < 3 * 3600 else 0
    load = capacity * (number % 10 + 1) // 10 - chance.randint(0, 50)
    fuel = max(0, 100 - at // 360 % 101) / 100
    of_kind = (f"load_capacity={capacity}.0,fuel_capacity={fuel_capacity}.0,nominal_fuel_consumption={nominal}.0 "
               f"{BEGIN + at}\n")
    return (f"readings,{tags} latitude={chance.randint(-9000, 9000) / 100},"
            f"longitude={chance.randint(-18000, 18000) / 100},elevation={chance.randint(0, 900)}.0,"
            f"velocity={velocity}.0,heading={chance.randint(0, 359)}.0,grade={chance.randint(0, 60)}.0,"
            f"fuel_consumption={chance.randint(0, 400) / 10}," + of_kind,
            f"diagnostics,{tags} fuel_state={fuel},current_load={max(load, 0)}.0,status={status}.0," + of_kind)


def all_lines(given):
    chance = random.Random(2)
    fleet = list(trucks(given.trucks))
    for at in range(0, given.days * DAY, given.interval):
        for number, truck in enumerate(fleet):
            yield from lines_of(number, truck, at, chance)


def fill(servers, given):
    """All servers at once, so that lines are made once."""
    lines, count = all_lines(given), given.trucks * given.days * DAY // given.interval
    while piece := "".join(itertools.islice(lines, LINES)):
        for server in servers:
            server.write(piece)
    for server in servers:
        server.written({"readings": count, "diagnostics": count})


class Statements:
    """One method a question: InfluxQL, MetricsQL (a query, and how many seconds apart it is asked; 0: once), SQL."""

    def __init__(self, given):
        self.begin, self.end = BEGIN, BEGIN + given.days * DAY
        self.days, self.interval = given.days, given.interval

    def span(self, seconds=None):
        begin = self.begin if seconds is None else self.end - seconds
        return (f"time >= {begin}s AND time < {self.end}s",
                f"timestamp >= {begin}000000 AND timestamp < {self.end}000000")

    def last_loc(self):
        return ("SELECT last(latitude), last(longitude) FROM readings WHERE fleet = 'South' GROUP BY \"name\", driver",
                (f"last_over_time({{__name__=~'readings_(latitude|longitude)',fleet='South'}}[{self.days}d])", 0),
                "SELECT name, driver, latitude, longitude FROM readings WHERE fleet = 'South' "
                "LATEST ON timestamp PARTITION BY name")

    def low_fuel(self):
        return ("SELECT * FROM (SELECT last(fuel_state) AS f FROM \"diagnostics\" WHERE fleet = 'South' "
                "GROUP BY \"name\", driver) WHERE f <= 0.1",
                (f"last_over_time(diagnostics_fuel_state{{fleet='South'}}[{self.days}d]) <= 0.1", 0),
                "SELECT name, driver, fuel_state FROM (SELECT * FROM \"diagnostics\" WHERE fleet = 'South' "
                "LATEST ON timestamp PARTITION BY name) WHERE fuel_state <= 0.1")

    def high_load(self):
        return ("SELECT * FROM (SELECT last(current_load) AS l, last(load_capacity) AS c FROM \"diagnostics\" "
                "WHERE fleet = 'South' GROUP BY \"name\", driver) WHERE l >= 0.9 * c",
                (f"last_over_time(diagnostics_current_load{{fleet='South'}}[{self.days}d]) >= "
                 f"0.9 * last_over_time(diagnostics_load_capacity{{fleet='South'}}[{self.days}d])", 0),
                "SELECT name, driver, current_load, load_capacity FROM (SELECT * FROM \"diagnostics\" "
                "WHERE fleet = 'South' LATEST ON timestamp PARTITION BY name) "
                "WHERE current_load >= 0.9 * load_capacity")

    def stationary_trucks(self):
        influx, sql = self.span(600)
        return (f"SELECT * FROM (SELECT mean(velocity) AS v FROM readings WHERE {influx} AND fleet = 'West' "
                "GROUP BY \"name\", driver) WHERE v < 1",
                ("avg_over_time(readings_velocity{fleet='West'}[10m]) < 1", 0),
                f"SELECT name, driver, v FROM (SELECT name, driver, avg(velocity) v FROM readings WHERE {sql} AND "
                "fleet = 'West') WHERE v < 1")

    def sessions(self, hours, more_than):
        influx, sql = self.span(hours * 3600)
        return (f"SELECT * FROM (SELECT count(v) AS n FROM (SELECT mean(velocity) AS v FROM readings WHERE {influx} "
                f"AND fleet = 'West' GROUP BY time(10m), \"name\", driver) WHERE v > 1 GROUP BY \"name\", driver) "
                f"WHERE n > {more_than}",
                (f"count_over_time((avg_over_time(readings_velocity{{fleet='West'}}[10m]) > 1)[{hours}h:10m]) > "
                 f"{more_than}", 0),
                "SELECT name, driver, n FROM (SELECT name, driver, count() n FROM (SELECT timestamp, name, driver, "
                f"avg(velocity) v FROM readings WHERE {sql} AND fleet = 'West' SAMPLE BY 10m) WHERE v > 1) "
                f"WHERE n > {more_than}")

    def long_driving_sessions(self):
        return self.sessions(4, 20)

    def long_daily_sessions(self):
        return self.sessions(24, 60)

    def avg_vs_projected_fuel_consumption(self):
        return ("SELECT mean(fuel_consumption), mean(nominal_fuel_consumption) FROM readings WHERE velocity > 1 "
                "GROUP BY fleet",
                (" / ".join(f"avg(avg_over_time((readings_{of} if (readings_velocity > 1))[{self.days}d:"
                            f"{self.interval}s])) by (fleet)"
                            for of in ("fuel_consumption", "nominal_fuel_consumption")), 0),
                "SELECT fleet, avg(fuel_consumption), avg(nominal_fuel_consumption) FROM readings WHERE velocity > 1")

    def avg_daily_driving_duration(self):
        influx, sql = self.span()
        return ("SELECT count(v) / 6 FROM (SELECT mean(velocity) AS v FROM readings WHERE "
                f"{influx} GROUP BY time(10m), fleet, \"name\", driver) WHERE {influx} AND v > 1 "
                "GROUP BY time(1d), fleet, \"name\", driver",
                ("count_over_time((avg_over_time(readings_velocity[10m]) > 1)[1d:10m]) / 6", DAY),
                "SELECT timestamp, fleet, name, driver, count() / 6.0 FROM ((SELECT timestamp, fleet, name, driver, "
                f"avg(velocity) v FROM readings WHERE {sql} SAMPLE BY 10m) TIMESTAMP(timestamp)) WHERE v > 1 "
                "SAMPLE BY 1d")

    def avg_daily_driving_session(self):
        influx, sql = self.span()
        return ("SELECT mean(e) FROM (SELECT elapsed(v, 1m) AS e FROM (SELECT mean(velocity) AS v FROM readings WHERE "
                f"{influx} GROUP BY time(10m), \"name\", driver) WHERE v <= 1 GROUP BY \"name\", driver) "
                f"WHERE {influx} AND e > 10 GROUP BY time(1d), \"name\", driver",
                None,
                "SELECT timestamp, name, driver, avg(e) FROM (SELECT * FROM (SELECT timestamp, name, driver, "
                "(timestamp - lag(timestamp) OVER (PARTITION BY name ORDER BY timestamp)) / 60000000 e FROM "
                f"(SELECT timestamp, name, driver, avg(velocity) v FROM readings WHERE {sql} SAMPLE BY 10m) "
                "WHERE v <= 1) WHERE e > 10) TIMESTAMP(timestamp) SAMPLE BY 1d")

    def avg_load(self):
        return ("SELECT mean(l) FROM (SELECT current_load / load_capacity AS l FROM \"diagnostics\" "
                "GROUP BY \"name\", fleet, model) GROUP BY fleet, model",
                (f"avg(avg_over_time((diagnostics_current_load / diagnostics_load_capacity)[{self.days}d:"
                 f"{self.interval}s])) by (fleet, model)", 0),
                "SELECT fleet, model, avg(current_load / load_capacity) FROM \"diagnostics\"")

    def daily_activity(self):
        influx, sql = self.span()
        return ("SELECT count(s) / 144 FROM (SELECT mean(status) AS s FROM \"diagnostics\" WHERE "
                f"{influx} GROUP BY time(10m), model, fleet, \"name\") WHERE {influx} AND s < 1 "
                "GROUP BY time(1d), model, fleet",
                ("sum(count_over_time((avg_over_time(diagnostics_status[10m]) < 1)[1d:10m])) by (model, fleet) / 144",
                 DAY),
                "SELECT timestamp, model, fleet, count() / 144.0 FROM ((SELECT timestamp, model, fleet, name, "
                f"avg(status) s FROM \"diagnostics\" WHERE {sql} SAMPLE BY 10m) TIMESTAMP(timestamp)) WHERE s < 1 "
                "SAMPLE BY 1d")

    def breakdown_frequency(self):
        influx, sql = self.span()
        return (f"SELECT count(s) FROM (SELECT mean(status) AS s FROM \"diagnostics\" WHERE {influx} "
                "GROUP BY time(10m), model, \"name\") WHERE s >= 0.5 GROUP BY model",
                (f"sum(count_over_time((avg_over_time(diagnostics_status[10m]) >= 0.5)[{self.days}d:10m])) by (model)",
                 0),
                "SELECT model, count() FROM (SELECT timestamp, model, name, avg(status) s FROM \"diagnostics\" "
                f"WHERE {sql} SAMPLE BY 10m) WHERE s >= 0.5")

    def question(self, name):
        influxql, metricsql, sql = getattr(self, name)()

        def ask(server):
            if server.name == "QuestDB":
                return [server.sql(sql)]
            if server.name != "VictoriaMetrics":
                return server.influxql(influxql)
            if metricsql is None:
                return None
            query, every = metricsql
            if every:
                return [server.metricsql(query, self.begin + every - 1, self.end - 1, every)]
            return [server.ask("/api/v1/query", query=query, time=self.end - 1, nocache="1")]
        return name.replace("_", "-"), ask


QUESTIONS = ("last_loc", "low_fuel", "high_load", "stationary_trucks", "long_driving_sessions",
             "long_daily_sessions",
             "avg_vs_projected_fuel_consumption", "avg_daily_driving_duration", "avg_daily_driving_session", "avg_load",
             "daily_activity", "breakdown_frequency")


def check_same(servers, asked):
    """Who speaks InfluxQL answers the same values, but for the last digits of means."""
    alike = [server for server in servers if server.name in ("EdgeCase", "InfluxDB")]

    def rounded(value):
        if isinstance(value, float):
            return float(f"{value:.9g}")
        if isinstance(value, list):
            return [rounded(each) for each in value]
        return {key: rounded(each) for key, each in value.items()} if isinstance(value, dict) else value
    for name, ask in asked:
        answers = [rounded(json.loads(ask(server)[0])) for server in alike]
        if answers[1:] and answers[0] != answers[1]:
            print(f"{name}: EdgeCase and InfluxDB answer differently", file=sys.stderr)
            for answer in answers:
                print("  " + json.dumps(answer)[:400], file=sys.stderr)


def main():
    given = given_to(__doc__, trucks=(1, 100), days=(1, 3), interval=(1, 10))
    statements = Statements(given)
    asked = [statements.question(name) for name in QUESTIONS]

    def fill_all(servers):
        fill(servers, given)
        check_same(servers, asked)
    return compare(given, fill_all, asked, are_alike=False)


if __name__ == "__main__":
    sys.exit(main())
