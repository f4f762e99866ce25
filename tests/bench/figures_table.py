#!/usr/bin/env python3
"""Turns the reports that figures.sh gathered into the table of RESULTS.md: medians, and the range they lie in."""
import json
import sys


def thousands(value):
    return f"{value:,.0f}"


def decimals(places):
    return lambda value: f"{value:,.{places}f}"


def line_protocol(label, what, *more, aim=""):
    """Of one run of ingest-http: its rows."""
    return [
        (f"durable line protocol over HTTP, {what} a request", "", label, "ops_per_second", "lines/s", thousands),
        *more,
        ("InfluxDB 1.6.7 beside it", "", label, "influxdb_ops_per_second", "lines/s", thousands),
        ("ratio", aim, label, "ratio_to_influxdb", "", decimals(2)),
        ("processor time of the daemon", "", label, "server_cpu_us_per_reading", "µs a reading", decimals(2)),
        ("processor time of InfluxDB", "", label, "influxdb_cpu_us_per_reading", "µs a reading", decimals(2)),
    ]


def trucks(lines):
    """300,000 lines of TSBS's trucks, so many a request."""
    label = f"http-{lines}"
    return [*line_protocol(label, f"300,000 lines, {lines:,}", aim="≥ 4"),
            ("tables afterwards", "≤ 20", label, "stored_mb", "MB", decimals(1))]


# Figure, aim, label of the report, field, unit, how to write it.
FIGURES = [
    *trucks(10000), *trucks(1000), *trucks(100),
    *line_protocol("http-long", "3 M lines, 1,000",
                   ("the same in readings", "", "http-long", "readings_per_second", "readings/s", thousands)),
    ("durable MQTT QoS 1 through mosquitto", "", "mqtt", "ops_per_second", "messages/s", thousands),
    ("paho that stores nothing, QoS 0", "", "mqtt", "paho_qos0_per_second", "messages/s", thousands),
    ("paho that stores nothing, QoS 1", "", "mqtt", "paho_qos1_per_second", "messages/s", thousands),
    ("ratio to QoS 0", "", "mqtt", "ratio_to_paho_qos0", "", decimals(2)),
    ("ratio to QoS 1", "≥ 0.9", "mqtt", "ratio_to_paho_qos1", "", decimals(2)),
    ("ratio to QoS 1 with MQTT 5 and the same window", "≥ 0.9", "mqtt", "ratio_to_paho_qos1_wide", "", decimals(2)),
    ("durable MQTT QoS 1 straight to the daemon, 50-byte payloads", "≥ 250,000", "listener", "ops_per_second",
     "messages/s", thousands),
    ("processor time of the daemon", "", "listener", "server_cpu_us_per_message", "µs a message", decimals(2)),
    ("acknowledgement of one publisher that waits, p99", "", "listener", "waiting_p99_us", "µs", thousands),
    ("the same over the p99 of fdatasync", "≤ 2", "listener", "ratio_to_fdatasync_p99", "", decimals(2)),
    ("1 M readings, --every 1h --agg mean", "≥ 5 M", "query", "ops_per_second", "readings/s", thousands),
    ("its first row", "≤ 10", "query", "mean_first_row_ms", "ms", decimals(2)),
    ("1 M readings as CSV", "", "query", "csv_readings_per_second", "readings/s", thousands),
    ("`last` of one series, median", "≤ 1", "query", "last_p50_ms", "ms", decimals(3)),
    ("`last` of one series, p99", "≤ 1", "query", "last_p99_ms", "ms", decimals(3)),
    ("resident after 10 M readings, 1,000 series", "≤ 64", "footprint", "loaded_resident_mib", "MiB", decimals(1)),
    ("the same, at its peak", "≤ 64", "footprint", "peak_memory_bytes", "MiB", lambda v: f"{v / 2**20:,.1f}"),
    ("resident idle, empty store", "≤ 12", "footprint", "idle_resident_mib", "MiB", decimals(1)),
    ("start on an empty store", "≤ 50", "footprint", "start_ms", "ms", decimals(1)),
    ("recovery of all the WAL can hold, readings", "≤ 1000", "recovery", "recovery_ms", "ms", decimals(0)),
    ("entries in it", "", "recovery", "num", "", thousands),
    ("recovery of all the WAL can hold, 1 KiB values", "≤ 1000", "recovery-1k", "recovery_ms", "ms", decimals(0)),
    ("bytes in it", "", "recovery-1k", "wal_bytes", "MB", lambda v: f"{v / 1e6:,.0f}"),
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
]


def median(values):
    return sorted(values)[(len(values) - 1) // 2]


def main():
    reports = {}
    with open(sys.argv[1], encoding="utf-8") as lines:
        for line in lines:
            report = json.loads(line)
            reports.setdefault(report["label"], []).append(report)
    print("| figure | aim | median | lowest to highest |")
    print("|---|---|---|---|")
    for name, aim, label, field, unit, write in FIGURES:
        values = [report[field] for report in reports.get(label, []) if field in report]
        if values:
            print(f"| {name} | {aim} | {write(median(values))} {unit} | {write(min(values))}–{write(max(values))} |"
                  .replace("  ", " "))


if __name__ == "__main__":
    main()
