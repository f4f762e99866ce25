#!/usr/bin/env bash
# Configures a build of CMakePresets.json, with ccache where that is installed. Where nothing of a release build is
# there yet, all of it is to be built: by folders, in half the time, if there are two GiB of memory a processor.
#
#   packaging/configure.sh PRESET [OPTION OF CMAKE...]
set -euo pipefail

cd "$(dirname "$0")/.."
preset=$1
shift
options=()
if command -v ccache >/dev/null; then options+=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
gibs=$(awk '/^MemAvailable:/ { print int($2 / 1048576) }' /proc/meminfo)
if [ "$preset" = release ] && [ ! -e build/release ] && [ "$gibs" -ge $((2 * $(nproc))) ]; then
  options+=(-DEDGECASE_FOLDERS_AT_ONCE=ON)
fi
exec cmake --preset "$preset" --log-level=WARNING "${options[@]}" "$@"
