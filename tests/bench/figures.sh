#!/usr/bin/env bash
# Measures every figure that RESULTS.md lists and prints its table. Takes some minutes; the machine
# should have nothing else to do. Peers that are not installed are left out of the table.
#
#   tests/bench/figures.sh [--edgecase FILE] [--dir DIR] [--values DIR] [--runs N] [--smoke] [--keep FILE]
#
#   --edgecase  the executable (default: build/release/cli/edgecase)
#   --dir       where private directories are made: the drive to measure (default: .)
#   --values    the second drive (default: the same)
#   --runs      measurements of which the median counts (default: 3)
#   --smoke     the smallest sizes: shows that everything runs, measures nothing
#   --keep      also keeps the reports, one JSON object a line
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
edgecase=$here/../../build/release/cli/edgecase
runs=3
directories=()
smoke=()
keep=
while [ $# -gt 0 ]; do
  case $1 in
    --edgecase) edgecase=$2; shift 2 ;;
    --dir) directories+=(--metadata "$2"); shift 2 ;;
    --values) directories+=(--values "$2"); shift 2 ;;
    --runs) runs=$2; shift 2 ;;
    --smoke) smoke=(--smoke); shift ;;
    --keep) keep=$2; shift 2 ;;
    --help) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"; exit 0 ;;
    *) echo "figures.sh: unknown argument $1 (see --help)" >&2; exit 2 ;;
  esac
done
[ -x "$edgecase" ] || { echo "figures.sh: no executable at $edgecase" >&2; exit 2; }

reports=$(mktemp)
trap 'rm -f "$reports"' EXIT

# measure LABEL ARGUMENTS...: one report a run, with the label that the table knows it by.
measure() {
  local label=$1 run
  shift
  for ((run = 1; run <= runs; ++run)); do
    echo "$label, run $run of $runs" >&2
    if ! "$edgecase" bench "$@" --seed "$run" --json "${directories[@]}" "${smoke[@]}" \
      | sed "s/^{/{\"label\":\"$label\",/" >> "$reports"; then
      echo "$label: failed" >&2
      failed=1
    fi
  done
}

# Operations of a workload, unless the smallest number is asked for.
count() {
  if [ ${#smoke[@]} -eq 0 ]; then echo "--num $1"; fi
}

failed=0
influx=()
if command -v influxd > /dev/null; then influx=(--peer influxdb); fi
for lines in 10000 1000 100; do
  measure "http-$lines" ingest-http --rounds 1 --batch "$lines" $(count 300000) "${influx[@]}"
done
# Long enough for both to pay for what they put off: flushes here, snapshots and compactions there.
measure http-long ingest-http --rounds 1 $(count 3000000) "${influx[@]}"
if command -v mosquitto > /dev/null || [ -x /usr/sbin/mosquitto ]; then
  measure mqtt ingest-mqtt --rounds 1
fi
measure listener ingest-listener --rounds 1
measure query query --rounds 1
measure footprint footprint --rounds 1
measure recovery recovery --rounds 1 --value-size 9
measure recovery-1k recovery --rounds 1 --value-size 1024
for workload in fillseq fillrandom readrandom readseq; do
  measure "$workload" "$workload" $(count 1000000) --value-size 50
done
measure fillrandom-100 fillrandom $(count 1000000) --value-size 50 --batch 100
measure fillrandom-1k fillrandom $(count 200000) --value-size 1024
measure sync-1 fillseq $(count 10000) --value-size 50 --sync --threads 1
measure sync-8 fillseq $(count 40000) --value-size 50 --sync --threads 8

if [ -n "$keep" ]; then cp "$reports" "$keep"; fi
python3 "$here/figures_table.py" "$reports"
exit "$failed"
