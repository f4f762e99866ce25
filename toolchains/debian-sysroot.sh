#!/usr/bin/env bash
# Fills a directory with the libraries of another architecture, for the cross builds of this folder. Takes
# the packages from the machine's own Debian sources through a package state of its own: the machine itself
# gets no foreign architecture and no root rights are needed.
#
#   toolchains/debian-sysroot.sh arm64 build/sysroot-arm64
#
# A directory that is complete already is left as it is; delete it to have it made anew.
set -euo pipefail

if [ $# -ne 2 ] || [ "$1" = --help ]; then
  sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"
  exit $(($# == 1 ? 0 : 2))
fi
architecture=$1
mkdir -p "$2"
root=$(cd "$2" && pwd)

packages="libc6-dev libstdc++6 libcpp-httplib-dev libpaho-mqtt-dev libmbedtls-dev nettle-dev
  libtomlplusplus-dev nlohmann-json3-dev libcli11-dev doctest-dev zlib1g-dev liblz4-dev
  libre2-dev libzstd-dev"
complete=$root/.complete
if [ "$(cat "$complete" 2>/dev/null)" = "$packages" ]; then exit 0; fi
rm -rf "$root"
state=$root/.apt
mkdir -p "$state/lists/partial" "$state/archives/partial"
: > "$state/status"

apt=(apt-get -qq -o "APT::Architecture=$architecture" -o "APT::Architectures::=$architecture"
  -o APT::Sandbox::User=root -o Debug::NoLocking=true
  -o "Dir::State=$state" -o "Dir::State::lists=$state/lists" -o "Dir::State::status=$state/status"
  -o "Dir::Cache=$state" -o "Dir::Cache::archives=$state/archives"
  -o APT::Install-Recommends=false -o Acquire::Languages=none
  -o APT::Update::Post-Invoke::= -o DPkg::Post-Invoke::=)

# Sources that have nothing for the architecture only warn; what is missing in earnest stops the next step.
"${apt[@]}" update >&2 || true
# shellcheck disable=SC2086 # a list of names
"${apt[@]}" install --yes --download-only $packages >&2
for package in "$state"/archives/*.deb; do
  dpkg-deb --extract "$package" "$root"
done
rm -rf "$state"

# Packages link to absolute paths; inside the tree they have to lead within the tree.
find "$root" -type l -lname '/*' | while read -r link; do
  ln -sfnr "$root$(readlink "$link")" "$link"
done
echo "$packages" > "$complete"
