#!/usr/bin/env bash
# Makes the Debian package for the machine it runs on and prints where it is.
#
#   packaging/build-deb.sh [--lint] [--no-install]
#
#   --lint        have lintian judge the package and systemd-analyze the service; any complaint is a failure
#   --no-install  install nothing; without it, what the build needs is installed first
#
# Exit codes: 0 made, 1 failed, 2 wrong usage
set -euo pipefail

top=$(cd "$(dirname "$0")/.." && pwd)
lint=no
install=yes
for option in "$@"; do
  case $option in
    --lint) lint=yes ;;
    --no-install) install=no ;;
    -h | --help) sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; exit 0 ;;
    *) echo "$0: unknown option $option; see --help" >&2; exit 2 ;;
  esac
done
[ $install = no ] || "$top/packaging/install-dependencies.sh" build package

cd "$top"
umask 022
if [ -z "${SOURCE_DATE_EPOCH:-}" ]; then
  SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || stat --format=%Y packaging/CHANGELOG.md)
  export SOURCE_DATE_EPOCH
fi

rm -rf build/release/packages
packaging/configure.sh release >&2
cmake --build --preset release --parallel "$(nproc)" --target edgecase packaging_files >&2
(cd build/release && cpack >&2)
package=$(echo build/release/packages/*.deb)

if [ $lint = yes ]; then
  lintian --fail-on error,warning --tag-display-limit 0 --allow-root "$package" >&2
  # In tenths: 12 is an exposure of 1.2.
  systemd-analyze --offline=true --threshold=12 security packaging/edgecased.service | tail -n 1 >&2
fi
echo "$package"
