#!/usr/bin/env bash
# Lives of the crash harness for as long as you like: builds it, optimized, and runs seed after seed, on all
# processors. A seed that breaks a promise is printed at once with its plan, shrunk; every minute a line says how
# far it is, and from which seed to go on.
#
#   tests/crash/soak.sh --hours N [--first SEED] [--processes N] [--log FILE]
#   tests/crash/soak.sh --seeds N [--first SEED] [--processes N] [--log FILE]
#   tests/crash/soak.sh --sum FILE       how many seeds the runs with that log have done, by commit; and in all
#   tests/crash/soak.sh --seed SEED      one life: its plan, what became of it, and what is left of that shrunk
#   tests/crash/soak.sh --plan FILE      the same of a plan's text
#
# The log gets a line for every thousand seeds that are done, and one for the rest: time, commit ("+": with
# changes), first seed, how many, how many of them broke a promise. No seed is counted before it is done, and
# --sum counts those that a commit did twice once.
#
# Ctrl-C ends it with its summary. Exit codes: 0 every promise was held, 1 one was broken, 2 wrong usage
set -euo pipefail

usage() { sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; }
case "${1:-}" in
  --hours | --seeds | --seed | --plan | --sum) [ $# -ge 2 ] || { usage >&2; exit 2; } ;;
  -h | --help) usage; exit 0 ;;
  *) usage >&2; exit 2 ;;
esac

if [ "$1" = --sum ]; then
  sort -s -k2,2 -k3,3n -- "$2" | awk '
    function tell() { printf "%s: %d seeds, %d broken\n", commit, seeds, broken }
    NF != 5 || $4 !~ /^[0-9]+$/ { print "not a line of a log: " $0 > "/dev/stderr"; bad = 1; next }
    $2 != commit { if (commit != "") tell(); commit = $2; seeds = broken = end = 0 }
    {
      begin = $3 > end ? $3 : end; new = $3 + $4 - begin
      if (new <= 0) next
      seeds += new; all += new; broken += $5; end = $3 + $4
    }
    END { if (commit != "") tell(); printf "all: %d seeds\n", all; exit bad }'
  exit
fi

mode=$1
arguments=()
processes=$(nproc)
log=
while [ $# -gt 0 ]; do
  [ $# -ge 2 ] || { usage >&2; exit 2; }
  case "$1" in
    --processes) processes=$2 ;;
    --log) log=$(realpath "$2") ;;
    --plan) arguments+=(--plan "$(realpath "$2")") ;;
    *) arguments+=("$1" "$2") ;;
  esac
  shift 2
done

cd "$(dirname "$0")/../.."
case $mode in
  --hours | --seeds) arguments+=(--processes "$processes") ;;
esac
if [ -n "$log" ]; then
  commit=$(git rev-parse --short=12 HEAD)
  git diff --quiet HEAD || commit+=+
  arguments+=(--log "$log" --commit "$commit")
fi
cmake --preset soak --log-level=WARNING >&2
cmake --build --preset soak >&2
# Lives allocate small things without end: glibc is to keep them at hand.
export GLIBC_TUNABLES="glibc.malloc.tcache_count=4000:glibc.malloc.mmap_threshold=268435456:\
glibc.malloc.trim_threshold=268435456${GLIBC_TUNABLES:+:$GLIBC_TUNABLES}"
exec nice build/soak/tests/crash_soak "${arguments[@]}"
