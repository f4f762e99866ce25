#!/usr/bin/env bash
# `edgecase bench` from outside: reports, exit codes, and nothing left behind, also after Ctrl-C.
#   tests/flow/bench.sh EXECUTABLE
set -euo pipefail

edgecase=$1
work=$(mktemp -d)
bench=
cleanup() {
  if [ -n "$bench" ]; then kill -KILL "$bench" 2> /dev/null || true; fi
  rm -rf "$work"
}
trap cleanup EXIT

fail() {
  echo "FAILED: $*" >&2
  exit 1
}
expect_code() {
  local want=$1 got=0
  shift
  "$@" > "$work/out" 2> "$work/err" || got=$?
  [ "$got" = "$want" ] || fail "$* ended with $got, not $want: $(cat "$work/err")"
}
expect_empty() {
  [ -z "$(ls -A "$1")" ] || fail "$1 still holds $(ls -A "$1")"
}

mkdir "$work/m" "$work/v"
# Under the address sanitizer a look for leaks takes longer than most runs.
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=0}
# A daemon the user has told the shell of is not ours to measure.
export EDGECASE_HTTP_SOCKET=$work/nobody/s EDGECASE_STORAGE_METADATA=$work/nobody/m
# Of a file with a report a line: what every report says, and what some must.
cat > "$work/check.py" << 'PY'
import json
import math
import sys


def check(workload, report):
    for field in ("workload", "engine", "num", "value_size", "threads", "sync", "seed", "seconds",
                  "ops_per_second", "mb_per_second", "latency_us", "write_amplification",
                  "space_amplification", "peak_memory_bytes", "version"):
        assert field in report, field
    assert report["workload"] == workload
    for field, value in report.items():
        assert not isinstance(value, (int, float)) or math.isfinite(value), (field, value)
    # Every answer that a model knows is right; a fifth of the keys is gone.
    if workload in ("erase", "ttl", "gdprbench"):
        assert report["correct_percent"] == 100, report
    if workload == "erase":
        assert report["files_with_bytes"] == 0 and report["devices"] == 20, report
    # Nothing that EdgeCase acknowledged is wrong or missing after a kill; a table without a log forgets.
    if workload == "logkv-recovery":
        assert report["n2000_edgecase_error_percent"] == 0, report
        assert report["n2000_naive_32m_error_percent"] == 100, report
    if workload == "logkv":
        assert report["mixes"] == 4 and report["ratio_to_naive_2m"] > 0, report
    assert report["num"] > 0 and report["ops_per_second"] > 0
    assert set(report["latency_us"]) == {"p50", "p95", "p99", "p999", "max"}


for line in open(sys.argv[1], encoding="utf-8"):
    report = json.loads(line)
    check(report["workload"] if len(sys.argv) < 3 else sys.argv[2], report)
PY
for workload in fillseq fillrandom overwrite deleterandom readrandom readmissing readseq seekrandom mixed query \
  footprint; do
  expect_code 0 "$edgecase" bench "$workload" --smoke --json --rounds 1 --dir "$work/m" --values "$work/v"
  python3 "$work/check.py" "$work/out" "$workload"
  expect_empty "$work/m"
  expect_empty "$work/v"
done

# The report of all experiments of the papers, and what keeps it from being written over.
expect_code 0 "$edgecase" bench papers --smoke --rounds 1 --out "$work/report" --dir "$work/m" --values "$work/v"
! grep -q "did not run" "$work/report/papers.md" || fail "$(grep -B 6 "did not run" "$work/report/papers.md")"
python3 "$work/check.py" "$work/report/papers.json"
python3 - "$work/report" << 'PY'
import html.parser
import json
import sys

runs = [json.loads(line) for line in open(sys.argv[1] + "/papers.json", encoding="utf-8")]
page = open(sys.argv[1] + "/papers.html", encoding="utf-8").read()
words = open(sys.argv[1] + "/papers.md", encoding="utf-8").read()
assert len(runs) >= 23, len(runs)
for run in runs:
    assert f"<h2>{run['workload']}</h2>" in page and f"### {run['workload']}\n" in words, run["workload"]
assert "<script" not in page and "http:" not in page and "https:" not in page
open_tags = []


class Balance(html.parser.HTMLParser):
    def handle_starttag(self, tag, attrs):
        if tag not in ("meta", "rect"):
            open_tags.append(tag)

    def handle_endtag(self, tag):
        if tag != "rect":
            assert open_tags.pop() == tag, tag


Balance().feed(page)
assert not open_tags, open_tags
PY
expect_code 2 "$edgecase" bench papers --smoke --out "$work/report" --dir "$work/m"
expect_code 2 "$edgecase" bench papers --smoke --dir "$work/m"
expect_empty "$work/m"
expect_empty "$work/v"

# Beside the peers that this build found: what is measured beside them runs in edgecase-bench-peers.
for peer in leveldb rocksdb rocksdb-blob; do
  code=0
  "$edgecase" bench fillrandom --smoke --json --peer "$peer" --dir "$work/m" > "$work/out" 2> "$work/err" || code=$?
  if [ $code -ne 0 ]; then
    grep -q "not built in" "$work/err" || fail "--peer $peer ended with $code: $(cat "$work/err")"
    continue
  fi
  grep -q "\"ratio_to_${peer//-/_}\"" "$work/out" || fail "no ratio to $peer: $(cat "$work/out")"
  expect_code 0 "$edgecase" bench readrandom --smoke --json --engine "$peer" --dir "$work/m"
  grep -q "\"engine\":\"$peer\"" "$work/out" || fail "$peer is not what was measured"
  expect_empty "$work/m"
done
# What asks for a store beside it and starts a daemon, too, as papers does.
expect_code 0 "$edgecase" bench ingest-http --smoke --peer naive-2m --dir "$work/m"

# Alone, `edgecase` sizes a board; of the others it says in one line how they are to be had.
mkdir "$work/alone"
cp "$edgecase" "$work/alone/edgecase"
expect_code 0 "$work/alone/edgecase" bench mixed --smoke --dir "$work/m"
for arguments in "ycsb-a" "papers --out $work/none" "fillseq --peer leveldb" "fillseq --engine naive-2m" \
  "ingest-http --peer influxdb" "ttl --peer redis"; do
  # shellcheck disable=SC2086 # words are meant
  expect_code 1 "$work/alone/edgecase" bench $arguments --smoke --dir "$work/m"
  grep -q "edgecase-bench-peers, which measures this, is not beside" "$work/err" ||
    fail "$arguments: $(cat "$work/err")"
  [ "$(wc -l < "$work/err")" = 1 ] || fail "$arguments: more than a line: $(cat "$work/err")"
done
expect_empty "$work/m"

# All of YCSB in one command: twelve cells, each peer ran in each or is said not to be installed.
expect_code 0 "$edgecase" bench ycsb --smoke --json --peer naive-32m --dir "$work/m" --values "$work/v"
python3 "$work/check.py" "$work/out" ycsb
[ "$(grep -o '_ratio_to_naive_32m"' "$work/out" | wc -l)" = 13 ] || fail "not every cell of ycsb: $(cat "$work/out")"
expect_code 0 "$edgecase" bench ycsb --smoke --rounds 1 --dir "$work/m" --value-size 50
grep -q "^  f_50 " "$work/out" || fail "no table of ycsb: $(cat "$work/out")"
expect_code 2 "$edgecase" bench ycsb --smoke --peer nosuchdb --dir "$work/m"
expect_code 2 "$edgecase" bench ycsb --smoke --value-size 51 --dir "$work/m"
expect_code 1 "$edgecase" bench ycsb --num 1000000000000 --dir "$work/m"
grep -q "MiB free" "$work/err" || fail "no word of the missing room: $(cat "$work/err")"
expect_empty "$work/m"
expect_empty "$work/v"

# Metadata and values on drives of two speeds: made here, and two directories as they are.
for drives in "--dir $work/m" "--metadata $work/m --values $work/v"; do
  # shellcheck disable=SC2086 # words are meant
  expect_code 0 "$edgecase" bench casedb-drives --smoke --json --rounds 1 $drives
  python3 "$work/check.py" "$work/out" casedb-drives
  grep -q '"metadata_fast_ratio"' "$work/out" || fail "no ratio of drives: $(cat "$work/out")"
  expect_empty "$work/m"
  expect_empty "$work/v"
done
# Two loop devices, where this user and kernel have them: nothing of them is left.
two_drives=$(dirname "$0")/../bench/two_drives.sh
expect_code 2 "$two_drives" --edgecase "$edgecase" --dir "$work/m" --size none
throttle=/sys/fs/cgroup/blkio/blkio.throttle.write_bps_device
if [ "$(id -u)" = 0 ] && [ -e $throttle ] && losetup -f > "$work/out" 2>&1; then
  expect_code 0 "$two_drives" --edgecase "$edgecase" --dir "$work/m" --size 512 casedb-drives --smoke --json --rounds 1
  python3 "$work/check.py" "$work/out" casedb-drives
  expect_code 2 "$two_drives" --edgecase "$edgecase" --dir "$work/m" --size 512 nosuchworkload
  ! losetup -a | grep -q "$work" || fail "a loop device is left: $(losetup -a)"
  ! grep -q "$work" /proc/self/mounts || fail "a mount is left"
fi
expect_empty "$work/m"
expect_code 2 "$edgecase" bench casedb-drives --smoke --metadata "$work/m" --values "$work/m"
grep -q "are one directory" "$work/err" || fail "no word of one directory: $(cat "$work/err")"
expect_code 2 "$edgecase" bench casedb-drives --smoke --dir "$work/m" --slow-price 0
touch "$work/v/IDENTITY"
expect_code 2 "$edgecase" bench casedb-drives --smoke --metadata "$work/m" --values "$work/v"
grep -q "holds a store" "$work/err" || fail "no word of the store: $(cat "$work/err")"
rm "$work/v/IDENTITY"
expect_empty "$work/m"

# What a board keeps up with, in words and as figures.
expect_code 0 "$edgecase" bench board --smoke --json --metadata "$work/m" --values "$work/v"
python3 "$work/check.py" "$work/out" board
for field in model metadata_drive values_sync_p99_us sensors_at_1_hz blob_mb_per_second cpu_us_per_reading \
  days_until_full; do
  grep -q "\"$field\"" "$work/out" || fail "board says nothing of $field: $(cat "$work/out")"
done
expect_code 0 "$edgecase" bench board --smoke --dir "$work/m"
grep -q "sensors at one reading a second" "$work/out" || fail "board has no words: $(cat "$work/out")"
expect_code 2 "$edgecase" bench board --smoke --peer naive-32m --dir "$work/m"
expect_code 2 "$edgecase" bench board --smoke --metadata "$work/m" --values "$work/m"
expect_empty "$work/m"
expect_empty "$work/v"

expect_code 2 "$edgecase" bench fillfast
expect_code 2 "$edgecase" bench fillseq --engine nosuchdb --dir "$work/m"
expect_code 2 "$edgecase" bench fillseq --dir "$work/nowhere"
expect_code 2 "$edgecase" bench fillseq --smoke --key-size 4 --dir "$work/m"

# Ctrl-C in the middle, of what runs here and of what runs in children.
# An interactive shell would have the signal on; a background job has it off.
for arguments in "fillseq --num 1000000000" "casedb-drives --num 1000000 --slow-sync-ms 20" \
  "ycsb --peer naive-32m" "board --seconds 100"; do
# shellcheck disable=SC2086 # words are meant
python3 - "$edgecase" "$work/m" $arguments << 'PY'
import os
import select
import signal
import subprocess
import sys
import time

edgecase, directory, *arguments = sys.argv[1:]
bench = subprocess.Popen([edgecase, "bench", *arguments, "--dir", directory],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                         preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
deadline = time.monotonic() + 60
while not any(files for _, _, files in os.walk(directory)):
    assert bench.poll() is None, bench.communicate()
    assert time.monotonic() < deadline, "it makes no files"
    select.select([bench.stdout], [], [], 0.01)
bench.send_signal(signal.SIGINT)
out, err = bench.communicate(timeout=60)
assert bench.returncode == 1, (bench.returncode, err)
assert b"stopped" in err, err
assert out == b"", out
PY
expect_empty "$work/m"
done
echo "bench: ok"
