#!/usr/bin/env python3
"""Turns the reports that figures.sh gathered into FIGURES.md: medians, the range they lie in, and the run they are of.

A row that was not measured again keeps its figures, and the letter of its run, whose line says day, commit and machine.
"""
import argparse
import json
import os
import re
import string
import sys

import provenance

HEAD = """# Figures

Made by `tests/bench/figures.sh`. Each is the median of some runs; its letter leads to them. Workloads:
[README.md](README.md); tried: [HISTORY.md](HISTORY.md)."""


def thousands(value):
    return f"{value:,.0f}"


def decimals(places):
    return lambda value: f"{value:,.{places}f}"


def line_protocol(label, what, *more, aim=""):
    """Of one run of ingest-http: its rows."""
    what = f"HTTP, {what} a request"
    return [
        (f"{what}: durable lines", "", label, "ops_per_second", "lines/s", thousands),
        *((f"{what}: {name}", *rest) for name, *rest in more),
        (f"{what}: InfluxDB 1.6.7", "", label, "influxdb_ops_per_second", "lines/s", thousands),
        (f"{what}: ratio to it", aim, label, "ratio_to_influxdb", "", decimals(2)),
        (f"{what}: CPU", "", label, "server_cpu_us_per_reading", "µs/reading", decimals(2)),
        (f"{what}: CPU of InfluxDB", "", label, "influxdb_cpu_us_per_reading", "µs/reading", decimals(2)),
    ]


def trucks(lines):
    """300,000 lines of TSBS's trucks, so many a request."""
    label = f"http-{lines}"
    what = f"300,000 lines, {lines:,}"
    return [*line_protocol(label, what, aim="≥ 4"),
            (f"HTTP, {what} a request: tables afterwards", "≤ 20", label, "stored_mb", "MB", decimals(1))]


def question(what, key, places):
    """Of query_figures.py: how long until the whole answer is there."""
    write = decimals(places)
    return [(what, "", "questions", f"{key}_edgecase_ms", "ms", write),
            *((f"{what}: {peer}", "", "questions", f"{key}_{peer.lower()}_ms", "ms", write)
              for peer in ("InfluxDB", "VictoriaMetrics", "QuestDB"))]


# Figure, aim, label of the report, field, unit, how to write it.
FIGURES = [
    *trucks(10000), *trucks(1000), *trucks(100),
    *line_protocol("http-long", "3 M lines, 1,000",
                   ("readings", "", "http-long", "readings_per_second", "readings/s", thousands)),
    ("MQTT QoS 1 through mosquitto: durable messages", "", "mqtt", "ops_per_second", "messages/s", thousands),
    ("MQTT through mosquitto: paho that stores nothing, QoS 0",
     "", "mqtt", "paho_qos0_per_second", "messages/s", thousands),
    ("MQTT through mosquitto: paho that stores nothing, QoS 1",
     "", "mqtt", "paho_qos1_per_second", "messages/s", thousands),
    ("MQTT QoS 1 through mosquitto: ratio to paho's QoS 0", "", "mqtt", "ratio_to_paho_qos0", "", decimals(2)),
    ("MQTT QoS 1 through mosquitto: ratio to paho's QoS 1", "≥ 0.9", "mqtt", "ratio_to_paho_qos1", "", decimals(2)),
    ("MQTT QoS 1 through mosquitto: ratio to it with MQTT 5",
     "≥ 0.9", "mqtt", "ratio_to_paho_qos1_wide", "", decimals(2)),
    ("MQTT QoS 1 straight to the daemon: durable messages, 50-byte payloads", "≥ 250,000", "listener", "ops_per_second",
     "messages/s", thousands),
    ("MQTT QoS 1 straight to the daemon: CPU",
     "", "listener", "server_cpu_us_per_message", "µs/message", decimals(2)),
    ("MQTT QoS 1 straight to the daemon: p99 of a publisher that waits",
     "", "listener", "waiting_p99_us", "µs", thousands),
    ("MQTT QoS 1 straight to the daemon: the same over the p99 of fdatasync",
     "≤ 2", "listener", "ratio_to_fdatasync_p99", "", decimals(2)),
    ("1 M readings, --every 1h --agg mean", "≥ 5 M", "query", "ops_per_second", "readings/s", thousands),
    ("1 M readings, --every 1h --agg mean: its first row", "≤ 10", "query", "mean_first_row_ms", "ms", decimals(2)),
    ("1 M readings as CSV", "", "query", "csv_readings_per_second", "readings/s", thousands),
    ("`last` of one series, median", "≤ 1", "query", "last_p50_ms", "ms", decimals(3)),
    ("`last` of one series, p99", "≤ 1", "query", "last_p99_ms", "ms", decimals(3)),
    ("resident after 10 M readings, 1,000 series", "≤ 64", "footprint", "loaded_resident_mib", "MiB", decimals(1)),
    ("resident after 10 M readings, 1,000 series: at its peak",
     "≤ 64", "footprint", "peak_memory_bytes", "MiB", lambda v: f"{v / 2**20:,.1f}"),
    ("resident idle, empty store", "≤ 12", "footprint", "idle_resident_mib", "MiB", decimals(1)),
    ("start on an empty store", "≤ 50", "footprint", "start_ms", "ms", decimals(1)),
    ("recovery of all the WAL can hold, readings", "≤ 1000", "recovery", "recovery_ms", "ms", decimals(0)),
    ("recovery of all the WAL can hold, readings: entries in it", "", "recovery", "num", "", thousands),
    ("recovery of all the WAL can hold, 1 KiB values", "≤ 1000", "recovery-1k", "recovery_ms", "ms", decimals(0)),
    ("recovery of all the WAL can hold, 1 KiB values: bytes in it",
     "", "recovery-1k", "wal_bytes", "MB", lambda v: f"{v / 1e6:,.0f}"),
    ("bytes a reading: one sensor, 1 s, 1 decimal", "≤ 3", "footprint", "bytes_per_regular_reading", "", decimals(2)),
    ("bytes a reading: 1,000 series of ten kinds", "", "footprint", "bytes_per_reading", "", decimals(2)),
    ("fillseq, 50 B", "", "fillseq", "ops_per_second", "puts/s", thousands),
    ("fillrandom, 50 B", "", "fillrandom", "ops_per_second", "puts/s", thousands),
    ("fillrandom, 50 B, batches of 100", "", "fillrandom-100", "ops_per_second", "puts/s", thousands),
    ("fillrandom, 1 KiB", "", "fillrandom-1k", "ops_per_second", "puts/s", thousands),
    ("write amplification, fillrandom 1 KiB", "", "fillrandom-1k", "write_amplification", "", decimals(2)),
    ("readrandom, 50 B", "", "readrandom", "ops_per_second", "gets/s", thousands),
    ("readseq, 50 B", "", "readseq", "ops_per_second", "entries/s", thousands),
    ("synced puts, 1 writer", "", "sync-1", "ops_per_second", "puts/s", thousands),
    ("synced puts, 8 writers", "", "sync-8", "ops_per_second", "puts/s", thousands),
    *question("InfluxQL, hourly means of 1 M", "hour", 1),
    *question("InfluxQL, means of 10 s of 1 M", "ten_seconds", 0),
    *question("InfluxQL, a dashboard of 3 h", "dashboard", 0),
    ("forwarding 10 M, 100,000/s coming in", "≥ 500,000", "forward", "drain_readings_per_second", "readings/s",
     thousands),
    ("forwarding 10 M, 100,000/s coming in: link", "≤ 12", "forward", "drain_bytes_per_reading", "B/reading",
     decimals(2)),
    ("forwarding 10 M, 100,000/s coming in: peak", "≤ 64", "forward", "drain_peak_mib", "MiB", decimals(0)),
    ("answered here to readable there, p99", "≤ 100", "forward", "delay_p99_ms", "ms", decimals(1)),
    ("hub of 200 boards", "", "forward", "hub_readings_per_second", "readings/s", thousands),
    ("hub of 200 boards: p99", "", "forward", "hub_p99_ms", "ms", decimals(1)),
    ("hub of 200 boards: processors", "", "forward", "hub_processors", "", decimals(2)),
]


COLUMNS = ["figure", "aim", "median", "lowest to highest", "run"]
RUN_COLUMNS = ["run", "day", "commit", "version", "machine", "runs of each", "load of 15 minutes"]


def median(values):
    return sorted(values)[(len(values) - 1) // 2]


def line(cells):
    return f"|{'|'.join(cells)}|"


def table(columns, rows):
    return [line(columns), "|" + "---|" * len(columns), *map(line, rows)]


def subject_of(name):
    """What a figure is about: "start" of "start: its peak"."""
    return name.rpartition(": ")[0] or name


def shortened(names):
    """Names as the page has them: "… its peak" below another figure of the same subject."""
    before = None
    for name in names:
        follows = before is not None and name.startswith(f"{before}: ") and subject_of(name) == before
        yield f"… {name[len(before) + 2:]}" if follows else name
        before = subject_of(name)


def lengthened(names):
    """The names again."""
    before = None
    for name in names:
        whole = f"{before}: {name[2:]}" if name.startswith("… ") else name
        yield whole
        before = subject_of(whole)


def tables_of(text):
    """The rows of a page's tables, by the name of the first column."""
    tables, head = {}, None
    for text_line in text.splitlines():
        if not text_line.startswith("|"):
            head = None
            continue
        cells = [cell.strip() for cell in text_line.strip("|").split("|")]
        if head is None:
            head = cells[0]
            tables[head] = []
        elif not set(text_line) <= set("|-"):
            tables[head].append(cells)
    return {name: [[whole, *row[1:]] for whole, row in zip(lengthened(row[0] for row in rows), rows)]
            for name, rows in tables.items()}


def measured(reports):
    """What the reports say: by figure, its median and range."""
    found = {}
    for name, _, label, field, unit, write in FIGURES:
        values = [report[field] for report in reports if report["label"] == label and field in report]
        if values:
            found[name] = [f"{write(median(values))} {unit}".strip(), f"{write(min(values))}–{write(max(values))}"]
    return found


def number(text):
    """The number that a cell begins with: "1,005,717 lines/s", "5 M"."""
    found = re.match(r"[\d,.]+", text)
    millions = re.match(r" M\b", text[found.end():]) is not None
    return float(found[0].replace(",", "")) * (1e6 if millions else 1)


def is_missed(aim, value):
    if not aim:
        return False
    wanted, got = number(aim[2:]), number(value)
    return got < wanted if aim.startswith("≥") else got > wanted


def next_letter(used):
    return next(letter for letter in string.ascii_lowercase if letter not in used)


def page(before, reports, run):
    """The page with what was measured now in place of what it says; `run`: the cells behind the letter."""
    old = tables_of(before)
    kept = {row[0]: row[2:] for row in old.get("figure", [])}
    fresh = measured(reports)
    letter = next_letter({row[-1] for name, row in kept.items() if name not in fresh})
    rows = []
    for name, aim, *_ in FIGURES:
        if name in fresh:
            rows.append([name, aim, *fresh[name], letter])
        elif name in kept:
            rows.append([name, aim, *kept[name]])
    used = {row[-1] for row in rows}
    runs = [row for row in old.get("run", []) if row[0] in used and row[0] != letter]
    if letter in used:
        runs.append([letter, *run])
    missed = [f"- {name}: {value}, aim {aim}" for name, aim, value, *_ in rows if is_missed(aim, value)]
    missed = ["", "Aims that are missed:", "", *missed] if missed else []
    rows = [[name, *row[1:]] for name, row in zip(shortened(row[0] for row in rows), rows)]
    return "\n".join([HEAD, "", *table(RUN_COLUMNS, sorted(runs)), *missed, "", *table(COLUMNS, rows), ""])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("reports")
    parser.add_argument("--write", help="the page; without it the tables are printed")
    arguments = parser.parse_args()
    with open(arguments.reports, encoding="utf-8") as lines:
        reports = [json.loads(report) for report in lines if report.strip()]
    if not reports:
        print("figures_table.py: nothing was measured", file=sys.stderr)
        return 1
    seeds = sorted({report["seed"] for report in reports})
    run = [provenance.today(), provenance.commit(), reports[0]["version"], provenance.machine(),
           f"{len(seeds)}, seeds {seeds[0]} to {seeds[-1]}", f"{provenance.load():.1f}"]
    before = ""
    if arguments.write and os.path.exists(arguments.write):
        with open(arguments.write, encoding="utf-8") as text:
            before = text.read()
    after = page(before, reports, run)
    if not arguments.write:
        print(after)
        return 0
    with open(arguments.write, "w", encoding="utf-8") as text:
        text.write(after)
    return 0


if __name__ == "__main__":
    sys.exit(main())
