#!/usr/bin/env bash
# Measures every figure of FIGURES.md on this machine and writes that page. Takes half an hour; the machine
# should have nothing else to do: how busy it was is written down. What is not measured keeps its figures and
# the run that they are of; peers that are not installed are left out.
#
#   tests/bench/figures.sh [--edgecase FILE] [--dir DIR] [--values DIR] [--runs N] [--only GROUP,...]
#                          [--write PAGE] [--smoke] [--keep FILE]
#
#   --edgecase  the executable (default: build/release/cli/edgecase), edgecase-bench-peers beside it
#   --dir       where private directories are made: the drive to measure (default: .)
#   --values    the second drive (default: the same)
#   --runs      measurements of which the median counts (default: 3)
#   --only      of these groups: http mqtt listener query footprint recovery store questions forward
#   --write     the page (default: tests/bench/FIGURES.md; with --smoke: none, it is printed)
#   --smoke     the smallest sizes: shows that everything runs, measures nothing
#   --keep      also keeps the reports, one JSON object a line
#
# Exit codes: 0 done, 1 a workload failed, 2 wrong usage
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
edgecase=$here/../../build/release/cli/edgecase
runs=3
directories=()
only=http,mqtt,listener,query,footprint,recovery,store,questions,forward
smoke=()
page=$here/FIGURES.md
keep=
while [ $# -gt 0 ]; do
  case $1 in
    --edgecase) edgecase=$2; shift 2 ;;
    --dir) directories+=(--metadata "$2"); shift 2 ;;
    --values) directories+=(--values "$2"); shift 2 ;;
    --runs) runs=$2; shift 2 ;;
    --only) only=$2; shift 2 ;;
    --write) page=$2; shift 2 ;;
    --smoke) smoke=(--smoke); page=; shift ;;
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

# script LABEL FILE ARGUMENTS...: the same of a script beside this one, whose figures are an object a run.
script() {
  local label=$1 file=$2 run version
  shift 2
  version=$("$edgecase" version | awk '{ print $2; exit }')
  for ((run = 1; run <= runs; ++run)); do
    echo "$label, run $run of $runs" >&2
    if ! EDGECASE_PROGRAM=$edgecase python3 "$here/$file" --json "$@" \
      | sed "s/^{/{\"label\":\"$label\",\"seed\":$run,\"version\":\"$version\",/" >> "$reports"; then
      echo "$label: failed" >&2
      failed=1
    fi
  done
}

# Operations of a workload, unless the smallest number is asked for.
count() {
  if [ ${#smoke[@]} -eq 0 ]; then echo "--num $1"; fi
}

measure_http() {
  local influx=() lines
  if command -v influxd > /dev/null; then influx=(--peer influxdb); fi
  for lines in 10000 1000 100; do
    measure "http-$lines" ingest-http --rounds 1 --batch "$lines" $(count 300000) "${influx[@]}"
  done
  # Long enough for both to pay for what they put off: flushes here, snapshots and compactions there.
  measure http-long ingest-http --rounds 1 $(count 3000000) "${influx[@]}"
}
measure_mqtt() {
  if command -v mosquitto > /dev/null || [ -x /usr/sbin/mosquitto ]; then
    measure mqtt ingest-mqtt --rounds 1
  fi
}
measure_listener() { measure listener ingest-listener --rounds 1; }
measure_query() { measure query query --rounds 1; }
measure_footprint() { measure footprint footprint --rounds 1; }
measure_recovery() {
  measure recovery recovery --rounds 1 --value-size 9
  measure recovery-1k recovery --rounds 1 --value-size 1024
}
measure_store() {
  local workload
  for workload in fillseq fillrandom readrandom readseq; do
    measure "$workload" "$workload" $(count 1000000) --value-size 50
  done
  measure fillrandom-100 fillrandom $(count 1000000) --value-size 50 --batch 100
  measure fillrandom-1k fillrandom $(count 200000) --value-size 1024
  measure sync-1 fillseq $(count 10000) --value-size 50 --sync --threads 1
  measure sync-8 fillseq $(count 40000) --value-size 50 --sync --threads 8
}

# Peers that are installed are beside it.
measure_questions() {
  if [ ${#smoke[@]} -eq 0 ]; then
    script questions query_figures.py --hours 3
  else
    script questions query_figures.py --readings 7200 --hours 0 --rounds 2
  fi
}
measure_forward() {
  if [ ${#smoke[@]} -eq 0 ]; then
    script forward forward_figures.py drain delay hub --seconds 30
  else
    script forward forward_figures.py drain --readings 20000
  fi
}

failed=0
for group in ${only//,/ }; do
  declare -F "measure_$group" > /dev/null || { echo "figures.sh: no group $group (see --help)" >&2; exit 2; }
done
for group in ${only//,/ }; do "measure_$group"; done

if [ -n "$keep" ]; then cp "$reports" "$keep"; fi
python3 "$here/figures_table.py" "$reports" ${page:+--write "$page"}
exit "$failed"
