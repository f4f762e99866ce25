#!/usr/bin/env bash
# Gives the decoders bytes that nobody thought of: libFuzzer, with Clang's address and undefined-behaviour
# sanitizers. Each target begins with its corpus, which so is replayed, and goes on from what it learned before.
#
#   tests/fuzz/run.sh [options] [TARGET...]     (without: every folder of tests/fuzz/corpus)
#
#   --seconds N   how long for each target (default 8)
#   --jobs N      targets side by side (default: the processors there are)
#   --preset NAME fuzz (default) or asan: slower decoders, whose build the tests have, too
#   --no-install  install nothing
#   --help        this text
#
# What was learned is kept in build/PRESET/learned/TARGET. An input that stops a target is in build/PRESET/found/:
#   EDGECASE_FUZZ_TARGET=wal build/PRESET/tests/fuzz_decoders build/PRESET/found/wal-crash-...
#
# Exit codes: 0 nothing was found, 1 something was, 2 wrong usage
set -euo pipefail

usage() { sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; }
wrong() { echo "tests/fuzz/run.sh: $1; see --help" >&2; exit 2; }

readonly kInputMaxBytes=16384
# Of one input, in seconds and MiB: what takes more hangs, or takes memory by what a length says.
readonly kInputSecondsMax=20
readonly kMemoryMaxMiB=1024
# What was freed and is not used again yet: more of it costs fresh pages at each input.
readonly kQuarantineMiB=16

top=$(cd "$(dirname "$0")/../.." && pwd)
seconds=8
jobs=$(nproc)
install=yes
preset=fuzz
targets=()
while [ $# -gt 0 ]; do
  case $1 in
    --preset) case "${2:-}" in fuzz | asan) ;; *) wrong "--preset needs fuzz or asan" ;; esac ;;
    --seconds | --jobs) [[ "${2:-}" =~ ^[1-9][0-9]*$ ]] || wrong "$1 needs a number" ;;
  esac
  case $1 in
    --seconds) seconds=$2; shift ;;
    --jobs) jobs=$2; shift ;;
    --preset) preset=$2; shift ;;
    --no-install) install=no ;;
    -h | --help) usage; exit 0 ;;
    -*) wrong "unknown option $1" ;;
    *) [ -d "$top/tests/fuzz/corpus/$1" ] || wrong "there is no target '$1'"; targets+=("$1") ;;
  esac
  shift
done
cd "$top"
[ ${#targets[@]} -gt 0 ] || mapfile -t targets < <(ls tests/fuzz/corpus)

[ $install = no ] || packaging/install-dependencies.sh build tests clang
packaging/configure.sh "$preset"
cmake --build --preset "$preset" --target fuzz_decoders --parallel "$jobs"

run_target() {
  local target=$1 build=build/$preset log=build/$preset/$1.log
  mkdir -p "$build/learned/$target"
  if EDGECASE_FUZZ_TARGET=$target "$build/tests/fuzz_decoders" -max_total_time="$seconds" \
    -entropic=0 -timeout=$kInputSecondsMax -rss_limit_mb=$kMemoryMaxMiB -max_len=$kInputMaxBytes -print_final_stats=1 \
    -artifact_prefix="$build/found/$target-" "$build/learned/$target" "tests/fuzz/corpus/$target" \
    </dev/null >"$log" 2>&1; then
    printf '%-14s nothing found in %s inputs\n' "$target" \
      "$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")"
  else
    printf '%-14s FOUND: the end of %s says what\n' "$target" "$log"
    grep -aE 'ERROR:|Test unit written|SUMMARY' "$log" || tail -n 5 "$log"
    return 1
  fi
}
export -f run_target
export preset seconds kInputMaxBytes kInputSecondsMax kMemoryMaxMiB

export ASAN_OPTIONS=quarantine_size_mb=$kQuarantineMiB${ASAN_OPTIONS:+:$ASAN_OPTIONS}

mkdir -p "build/$preset/found"
printf '%s\n' "${targets[@]}" | xargs -P "$jobs" -I{} bash -c 'run_target {}' || exit 1
