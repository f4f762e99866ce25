#!/usr/bin/env bash
# Measures EdgeCase's engine beside LevelDB and RocksDB and prints a table, with the
# machine, versions and seeds it belongs to. The machine should have nothing else to do; how busy it was is
# written down. Peers that the build did not find are left out.
#
#   tests/bench/engine_figures.sh [--edgecase FILE] [--dir DIR] [--values DIR] [--runs N] [--bytes N]
#                                 [--smoke] [--keep FILE] [--write PAGE]
#
#   --edgecase  the executable (default: build/release/cli/edgecase)
#   --dir       where private directories are made: the drive to measure (default: .)
#   --values    the second drive (default: the same; peers use only the first)
#   --runs      runs of each engine, taking turns, of which the median counts (default: 3)
#   --bytes     keys and values that a workload of puts writes, about (default: 1500000000, of which every
#               engine has to merge all that it has several times); others read 400000000, or as many, and
#               updates put a store of 250000000, or as many, three times more
#   --smoke     the smallest sizes: shows that everything runs, measures nothing
#   --keep      also keeps the reports, one JSON object a line
#   --write     puts the table into this page, in place of the one that is there
#
# Exit codes: 0 done, 1 a workload failed, 2 wrong usage
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
edgecase=$here/../../build/release/cli/edgecase
runs=3
bytes=1500000000
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
    --bytes) bytes=$2; shift 2 ;;
    --smoke) smoke=yes; runs=1; common+=(--smoke); shift ;;
    --keep) keep=$2; shift 2 ;;
    --write) write=(--write "$2"); shift 2 ;;
    --help) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"; exit 0 ;;
    *) echo "engine_figures.sh: unknown argument $1 (see --help)" >&2; exit 2 ;;
  esac
done
[ -x "$edgecase" ] || { echo "engine_figures.sh: no executable at $edgecase" >&2; exit 2; }

reports=$(mktemp)
trap 'rm -f "$reports"' EXIT
failed=0

# Which peers this build has: the others end at once with "not built in".
scratch=$(mktemp -d)
peers=
for peer in leveldb rocksdb rocksdb-blob; do
  if "$edgecase" bench fillseq --smoke --engine "$peer" --dir "$scratch" > /dev/null 2>&1; then
    peers=${peers:+$peers,}$peer
  fi
done
rmdir "$scratch"
peer_options=()
if [ -n "$peers" ]; then peer_options=(--peer "$peers"); fi

# least A B
least() {
  echo $(($1 < $2 ? $1 : $2))
}

# measure LABEL VALUE-BYTES ARGUMENTS...
measure() {
  local label=$1 value=$2 wanted=$bytes most=30000000 sizes=()
  shift 2
  case $label in
    get-* | scan-* | seek-*) wanted=$(least "$bytes" 400000000) most=3000000 ;;
    updates) wanted=$(least "$bytes" 250000000) ;;
  esac
  if [ $smoke = no ]; then
    local num
    num=$(least "$most" $((wanted / (value + 16))))
    sizes=(--num "$num")
    if [ "$label" = updates ]; then sizes+=(--operations $((3 * num))); fi
  fi
  echo "$label, $value B" >&2
  if ! "$edgecase" bench "$@" --value-size "$value" --runs "$runs" "${sizes[@]}" --json "${common[@]}" \
    "${peer_options[@]}" | sed "s/^{/{\"label\":\"$label\",/" >> "$reports"; then
    echo "$label, $value B: failed" >&2
    failed=1
  fi
}

for value in 50 256 1024 4096 16384 65536; do measure put-random "$value" fillrandom; done
measure put-random-batch 50 fillrandom --batch 1000
for value in 50 1024 65536; do measure put-in-order "$value" fillseq; done
measure overwrite 1024 overwrite --random-fill
for value in 50 256; do measure updates "$value" overwrite; done
for value in 50 1024 16384; do measure get-warm "$value" readrandom; done
measure get-missing 50 readmissing
measure get-cold 1024 readrandom --cold --operations $([ $smoke = yes ] && echo 500 || echo 20000)
measure scan-in-order 50 readseq
measure scan-settled 50 readseq --random-fill
measure scan-at-once 50 readseq --random-fill --at-once
measure seek-settled 50 seekrandom --random-fill
measure seek-at-once 50 seekrandom --random-fill --at-once
half=(--compression-ratio 0.5 --compression)
for value in 50 1024; do measure put-half "$value" fillrandom "${half[@]}"; done
for value in 50 1024; do measure get-half "$value" readrandom --random-fill "${half[@]}"; done
for value in 50 1024; do measure scan-half "$value" readseq --random-fill "${half[@]}"; done
echo "tenants" >&2
"$edgecase" bench tenants --runs "$runs" --json "${common[@]}" \
  | sed 's/^{/{"label":"tenants",/' >> "$reports" || failed=1

if [ -n "$keep" ]; then cp "$reports" "$keep"; fi
python3 "$here/engine_figures_table.py" "$reports" --runs "$runs" "${write[@]}"
exit "$failed"
