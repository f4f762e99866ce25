#!/usr/bin/env bash
# Measures what expiry, erasure, audit, encryption and all of them together cost, beside what they aim at, and
# prints a table with the date, commit and machine it belongs to. Takes about 20
# minutes; the machine should have nothing else to do, and how busy it was is written down. Benches that the
# executable does not know, and peers that are not installed, are left out.
#
#   tests/bench/gdpr_figures.sh [--edgecase FILE] [--dir DIR] [--values DIR] [--runs N] [--smoke]
#                               [--keep FILE] [--write PAGE]
#
#   --edgecase  the executable (default: build/release/cli/edgecase)
#   --dir       where private directories are made: the drive to measure (default: .)
#   --values    the second drive (default: the same)
#   --runs      rounds of audit, encryption and features, of which the median counts (default: 3)
#   --smoke     the smallest sizes: shows that everything runs, measures nothing
#   --keep      also keeps the reports, one JSON object a line
#   --write     puts the table into this page, in place of the one that is there
#
# Rows that miss their aim are named on standard error.
#
# Exit codes: 0 done, 1 a bench failed, 2 wrong usage, 3 a row misses its aim
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
edgecase=$here/../../build/release/cli/edgecase
runs=3
common=(--seed 1)
smoke=no
keep=
write=()
while [ $# -gt 0 ]; do
  case $1 in
    --edgecase) edgecase=$2; shift 2 ;;
    --dir) common+=(--metadata "$2"); shift 2 ;;
    --values) common+=(--values "$2"); shift 2 ;;
    --runs) runs=$2; shift 2 ;;
    --smoke) smoke=yes; runs=1; common+=(--smoke); shift ;;
    --keep) keep=$2; shift 2 ;;
    --write) write=(--write "$2"); shift 2 ;;
    --help) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"; exit 0 ;;
    *) echo "gdpr_figures.sh: unknown argument $1 (see --help)" >&2; exit 2 ;;
  esac
done
[ -x "$edgecase" ] || { echo "gdpr_figures.sh: no executable at $edgecase" >&2; exit 2; }

reports=$(mktemp)
trap 'rm -f "$reports"' EXIT
failed=0

# measure LABEL ARGUMENTS...
measure() {
  local label=$1
  shift
  echo "$label" >&2
  if ! "$edgecase" bench "$@" --json "${common[@]}" | sed "s/^{/{\"label\":\"$label\",/" >> "$reports"; then
    echo "$label: failed" >&2
    failed=1
  fi
}

# count NUMBER: operations of a workload, unless the smallest number is asked for.
count() {
  if [ $smoke = no ]; then echo "--num $1"; fi
}

redis=()
if command -v redis-server > /dev/null; then redis=(--peer redis); fi
slope=(--slope)
if [ $smoke = yes ]; then slope=(); fi

measure ttl-16k ttl $(count 16000) "${redis[@]}"
measure ttl-128k ttl "${redis[@]}"
measure ttl-1m ttl $(count 1000000) "${redis[@]}"
measure ttl-10m ttl $(count 10000000) "${redis[@]}"
measure erase erase $(count 100000000)
measure audit audit --rounds "$runs"
measure encryption encryption --rounds "$runs"
measure gdprbench gdprbench --rounds "$runs" "${slope[@]}"

if [ -n "$keep" ]; then cp "$reports" "$keep"; fi
missed=0
python3 "$here/gdpr_figures_table.py" "$reports" --runs "$runs" "${write[@]}" || missed=$?
[ "$failed" -eq 0 ] || exit 1
exit "$missed"
