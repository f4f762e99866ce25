#!/usr/bin/env bash
# Builds EdgeCase and runs its tests; on Debian 12 or 13 from a bare clone, everything needed is installed first.
#
#   tests/run.sh [options]
#
#   --preset NAME   release (default), debug, asan, tsan, clang or aarch64: a build of CMakePresets.json
#   --filter REGEX  only tests whose names match; -R of ctest
#   --exclude LABEL leave out the tests with this label, or labels (a|b): tidy, flow, crash, long (flows of minutes),
#                   commands (flows that mostly start commands), lives (flows of processes that end and begin)
#   --skip REGEX    not those whose names match; -E of ctest
#   --long          the long forms of tests too (EDGECASE_TEST_LONG=1): hours are possible
#   --seed N        EDGECASE_TEST_SEED=N: random tests replay this seed
#   --system DIR    EDGECASE_SYSTEM_ROOT=DIR: a Debian root that tests/flow/systemd.sh may boot and change
#   --jobs N        tests and compilations side by side (default: the processors there are)
#   --strict        stop at warnings of the compiler, as asan, tsan, clang and aarch64 do
#   --no-install    install nothing
#   --build-only    run no test
#   --help          this text
#
# Every test has a time limit, set in the preset. The last lines are ctest's summary.
#
# Examples
#   tests/run.sh
#   tests/run.sh --preset asan --filter 'wal|recovery'
#
# Exit codes: 0 all passed, 1 something failed, 2 wrong usage
set -euo pipefail

usage() { sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; }
wrong() { echo "tests/run.sh: $1; see --help" >&2; exit 2; }

top=$(cd "$(dirname "$0")/.." && pwd)
preset=release
install=yes
run=yes
jobs=$(nproc)
select=()
strict=()
while [ $# -gt 0 ]; do
  case $1 in
    --preset | --filter | --exclude | --skip | --seed | --system | --jobs)
      [ $# -ge 2 ] || wrong "$1 needs a value" ;;
  esac
  case $1 in
    --preset) preset=$2; shift ;;
    --filter) select+=(--tests-regex "$2"); shift ;;
    --exclude) select+=(--label-exclude "$2"); shift ;;
    --skip) select+=(--exclude-regex "$2"); shift ;;
    --seed) export EDGECASE_TEST_SEED=$2; shift ;;
    --system) EDGECASE_SYSTEM_ROOT=$(cd "$2" && pwd) || wrong "no directory $2"; export EDGECASE_SYSTEM_ROOT; shift ;;
    --jobs) jobs=$2; shift ;;
    --long) export EDGECASE_TEST_LONG=1 ;;
    --strict) strict=(-DEDGECASE_WARNINGS_AS_ERRORS=ON) ;;
    --no-install) install=no ;;
    --build-only) run=no ;;
    -h | --help) usage; exit 0 ;;
    *) wrong "unknown option $1" ;;
  esac
  shift
done

groups=(build tests readers)
case $preset in
  release | debug) ;;
  asan | tsan | clang) groups+=(clang) ;;
  aarch64) groups+=(clang cross) ;;
  *) wrong "no preset is called '$preset'" ;;
esac
[ $install = no ] || "$top/packaging/install-dependencies.sh" "${groups[@]}"

cd "$top"
[ "$preset" != aarch64 ] || toolchains/debian-sysroot.sh arm64 build/sysroot-arm64
packaging/configure.sh "$preset" "${strict[@]}"
# The thread sanitizer cannot place its memory when addresses are too random.
steady=()
if [ "$preset" = tsan ] && setarch --addr-no-randomize true 2>/dev/null; then steady=(setarch --addr-no-randomize); fi
"${steady[@]}" cmake --build --preset "$preset" --parallel "$jobs"
[ $run = yes ] || exit 0
"${steady[@]}" ctest --preset "$preset" --parallel "$jobs" --no-tests=error "${select[@]}" </dev/null || exit 1
