#!/usr/bin/env bash
# Installs the Debian packages that a piece of work needs; does nothing, and needs no network, when they are
# there already. Uses sudo when not run as root. Services that come along (the MQTT broker) are not started.
#
#   packaging/install-dependencies.sh GROUP...
#
#   build    compiler, CMake, libraries of the build
#   tests    broker and clients that tests and the quick start talk to, file systems that they make
#   readers  what reads what the program says: shells that complete, groff, jq, InfluxDB's clients; and InfluxDB itself
#   browser  what shows the page to its test
#   clang    the second compiler
#   format   the formatter
#   cross    cross compiler and emulator for 64-bit ARM
#   package  making and judging the .deb
#   portable the portable builds of toolchains/; cargo, if it is not there, as a program of your own
#   peers    what "edgecase bench --peer" measures beside EdgeCase; nothing else needs them
#   vm       a virtual machine whose power is cut; with --package for 64-bit ARM also "cross"
#   root     a root of another Debian to compile in
#   system   booting a Debian in a container with its own systemd
#
# Exit codes: 0 everything is there, 1 a package could not be installed, 2 wrong usage
set -euo pipefail

packages_of() {
  case $1 in
    build) echo g++ cmake ninja-build pkg-config git libcpp-httplib-dev libpaho-mqtt-dev libmbedtls-dev \
      nettle-dev libcli11-dev nlohmann-json3-dev doctest-dev libtomlplusplus-dev zlib1g-dev liblz4-dev \
      libre2-dev libzstd-dev ;;
    tests) echo mosquitto mosquitto-clients curl openssl python3 python3-paho-mqtt pyflakes3 iproute2 \
      e2fsprogs xfsprogs btrfs-progs f2fs-tools zstd ;;
    readers) echo fish zsh groff-base jq influxdb influxdb-client python3-influxdb \
      golang-github-influxdata-influxdb1-client-dev \
      python3-pandas python3-pip python3-setuptools python3-wheel ;;
    browser) echo chromium ;;
    clang) echo clang libclang-rt-dev ;;
    format) echo clang-format ;;
    cross) echo g++-aarch64-linux-gnu qemu-user-static ;;
    package) echo dpkg-dev fakeroot lintian systemd ;;
    portable) echo cmake ninja-build gcc libc6-dev make m4 patch python3 python3-pip dpkg-dev binutils git \
      fakeroot lintian qemu-user-static tzdata umoci runc ;;
    peers) echo libleveldb-dev librocksdb-dev redis-server ;;
    vm) echo qemu-system-x86 qemu-system-arm ipxe-qemu nbdkit mmdebstrap arch-test e2fsprogs dosfstools mtools \
      openssh-client dpkg-dev python3 mosquitto ;;
    root) echo mmdebstrap ;;
    system) echo debootstrap systemd-container systemd util-linux openssl ;;
    *) return 1 ;;
  esac
}

if [ $# -eq 0 ] || [ "$1" = --help ]; then
  sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"
  exit $(($# == 0 ? 2 : 0))
fi

missing=()
for group in "$@"; do
  packages=$(packages_of "$group") || { echo "$0: no group is called '$group'; see --help" >&2; exit 2; }
  for package in $packages; do
    state=$(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null || true)
    [ "$state" = installed ] || missing+=("$package")
  done
done
[ ${#missing[@]} -gt 0 ] || exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "$0: as root, run: apt-get install ${missing[*]}" >&2; exit 1; }
  as_root=(sudo)
fi

# A broker that starts by itself would take the standard port of a machine that only wanted to build.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  trap '"${as_root[@]}" rm -f "$policy"' EXIT
  printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$policy" >/dev/null
  "${as_root[@]}" chmod 755 "$policy"
fi

log=$(mktemp)
echo "Installing: ${missing[*]}" >&2
# A source that cannot be reached may not matter; what is missing then stops the installation.
if ! { "${as_root[@]}" apt-get -qq update || true
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -y install --no-install-recommends \
    "${missing[@]}"; } >"$log" 2>&1 </dev/null; then
  cat "$log" >&2
  echo "$0: could not install: ${missing[*]}" >&2
  rm -f "$log"
  exit 1
fi
rm -f "$log"
