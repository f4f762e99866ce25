#!/usr/bin/env bash
# Makes what a release is: for arm64 and amd64 the Debian package and two archives (glibc 2.27 or later; musl,
# static), a container image, checksums, a bill of materials (SPDX 2.3), how it was built, and the sources of what is
# linked in. Judges the packages, and starts what it made in an empty root.
#
#   packaging/release.sh VERSION [--only TARGET]... [--no-test] [--units] [--twice]
#
#   --only TARGET  aarch64-portable, x86_64-portable, aarch64-musl or x86_64-musl; otherwise all four
#   --no-test      start nothing
#   --units        build the unit tests of each target too, and run them, shortened (arm64 under qemu): long
#   --twice        make all of it again from a clone in another directory, without ccache, and compare every byte
#
#   EDGECASE_SOURCES  where the pinned sources are or shall be; otherwise build/sources
#   EDGECASE_OLD_ROOT an arm64 root with an old libc (Debian 11: glibc 2.31) to start the arm64 program in
#
# VERSION must be the project's. Everything is in build/release-VERSION. From one commit it is the same, byte for
# byte, wherever it is built; images hold the time zones of the machine that makes them, too.
# Exit codes: 0 made, 1 failed, 2 wrong usage
set -euo pipefail

top=$(cd "$(dirname "$0")/.." && pwd)
usage() { sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; }
wrong() { echo "release.sh: $1; see --help" >&2; exit 2; }
version=
targets=()
test=yes
units=no
twice=no
while [ $# -gt 0 ]; do
  case $1 in
    -h | --help) usage; exit 0 ;;
    --only) targets+=("${2:-}"); shift ;;
    --no-test) test=no ;;
    --units) units=yes ;;
    --twice) twice=yes ;;
    -*) wrong "unknown option $1" ;;
    *) [ -z "$version" ] || wrong "one version, not also $1"; version=$1 ;;
  esac
  shift
done
[ -n "$version" ] || wrong "no version"
[ ${#targets[@]} -gt 0 ] || targets=(aarch64-portable x86_64-portable aarch64-musl x86_64-musl)
for target in "${targets[@]}"; do
  [ -e "$top/toolchains/$target.cmake" ] || wrong "no target is called '$target'"
done
grep -q "^project(edgecase VERSION $version " "$top/CMakeLists.txt" ||
  wrong "$version is not the version in CMakeLists.txt"

cd "$top"
if [ $twice = yes ] && [ -n "$(git status --porcelain)" ]; then
  wrong "--twice builds the last commit again, and there are changes since"
fi
umask 022
export LC_ALL=C TZ=UTC
if [ -z "${SOURCE_DATE_EPOCH:-}" ]; then
  SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
  export SOURCE_DATE_EPOCH
fi
sources=${EDGECASE_SOURCES:-build/sources}
toolchains/fetch-sources.sh "$sources"
sources=$(cd "$sources" && pwd)
out=build/release-$version
rm -rf "$out"
mkdir -p "$out/sources"
step() { echo "-- $*" >&2; }
fail() { echo "release.sh: $*" >&2; exit 1; }
pins() { grep -v '^#' toolchains/sources.txt | paste -d' ' - - -; }
if command -v ccache >/dev/null; then
  export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache CCACHE_COMPILERCHECK=content
  export CCACHE_BASEDIR=  # otherwise sources get other names, which assertions say
fi

# What every system of a kind has, and nothing else may be asked for.
check_needs() {
  local program=$1 target=$2 needed version_needed
  needed=$(readelf -d "$program" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
  case $target in
    *-musl) [ -z "$needed" ] || fail "$target needs $needed" ;;
    *)
      for library in $needed; do
        case $library in
          libc.so.6 | libm.so.6 | libpthread.so.0 | libdl.so.2 | ld-linux-*.so.*) ;;
          *) fail "$target needs $library" ;;
        esac
      done
      version_needed=$(readelf -V "$program" | grep -o 'GLIBC_[0-9.]*' | sort -Vu | tail -n 1)
      printf '%s\n' "${version_needed#GLIBC_}" 2.27 | sort -V -C || fail "$target needs $version_needed"
      ;;
  esac
  ! strings "$program" | grep -q 'OpenSSL [0-9]' || fail "$target has OpenSSL in it"
}

# A board has little room: what is promised of a file, in bytes.
check_size() {
  local size
  size=$(stat --format=%s "$1")
  [ "$size" -le "$2" ] || fail "$1 has $size bytes, and $2 are the most"
}

# Starts it where nothing else is but what it says it needs.
try_program() {
  local program=$1 target=$2 root libc_root emulator=
  [ "$test" = yes ] || return 0
  root=$(mktemp -d)
  case $target in
    x86_64-*) libc_root=/ ;;
    *)
      libc_root=${EDGECASE_OLD_ROOT:-build/sysroot-arm64}
      emulator=$(command -v qemu-aarch64-static) || { step "$target: no qemu-aarch64-static, not started"; return 0; }
      ;;
  esac
  install -D "$program" "$root/edgecase"
  [ -z "$emulator" ] || install -D "$emulator" "$root/qemu"
  mkdir -p "$root/proc" "$root/tmp"
  case $target in
    *-musl) ;;
    *)
      for library in ld-linux-aarch64.so.1 ld-linux-x86-64.so.2 libc.so.6 libm.so.6 libpthread.so.0 libdl.so.2; do
        found=$(find -L "$libc_root/lib" "$libc_root/lib64" "$libc_root/usr/lib" -maxdepth 2 -name "$library" \
          -path "*$([ -n "$emulator" ] && echo aarch64 || echo 64)*" 2>/dev/null | head -n 1) || true
        [ -z "$found" ] || install -D "$(readlink -f "$found")" "$root/lib/$library"
      done
      mkdir -p "$root/lib64"
      [ ! -e "$root/lib/ld-linux-x86-64.so.2" ] || cp "$root/lib/ld-linux-x86-64.so.2" "$root/lib64"
      ;;
  esac
  local says
  says=$(chroot "$root" ${emulator:+/qemu} /edgecase version) || fail "$target does not start in an empty root"
  [ "$says" = "edgecase $version" ] || fail "$target says '$says'"
  chroot "$root" ${emulator:+/qemu} /edgecase config example >"$root/tmp/edgecase.toml"
  chroot "$root" ${emulator:+/qemu} /edgecase config check /tmp/edgecase.toml 2>/dev/null ||
    fail "$target does not take its own example"
  rm -rf "$root"
  step "$target starts in an empty root${EDGECASE_OLD_ROOT:+ ($libc_root)}"
  if [ -n "$emulator" ]; then
    EDGECASE_PROGRAM=$top/$program EDGECASE_EMULATOR="$emulator -L $top/build/sysroot-arm64" \
      tests/flow/aes_instructions_test.py 2>"$out/$target.aes" ||
      { tail "$out/$target.aes" >&2; fail "$target does not use AES instructions as it should"; }
    rm "$out/$target.aes"
    step "$target uses instructions for AES where they are, and only there"
  fi
}

# Takes the image apart as a container engine does and runs it as its user, with nothing of it writable but the
# volumes: a reading goes in and comes back, after a restart too. Needs umoci and runc.
try_image() {
  local image=$1 bundle
  [ "$test" = yes ] || return 0
  command -v umoci >/dev/null && command -v runc >/dev/null && [ "$(id -u)" = 0 ] ||
    { step "$image: not started: needs root, umoci and runc"; return 0; }
  bundle=$(mktemp -d)
  mkdir "$bundle/layout" "$bundle/metadata" "$bundle/values" "$bundle/run"
  tar -C "$bundle/layout" -xf "$image"
  umoci unpack --image "$bundle/layout:edgecase:$version" "$bundle/root" >/dev/null 2>&1 || fail "$image: umoci"
  chown 65532:65532 "$bundle/metadata" "$bundle/values" "$bundle/run"
  python3 - "$bundle" <<'END'
import json, sys
bundle = sys.argv[1]
path = f"{bundle}/root/config.json"
with open(path, encoding="utf-8") as file:
    config = json.load(file)
config["process"]["terminal"] = False
config["process"]["capabilities"] = {}
config["root"]["readonly"] = True
places = {"/var/lib/edgecase": "metadata", "/srv/edgecase": "values", "/run/edgecase": "run"}
config["mounts"] = [each for each in config["mounts"] if each["destination"] not in places]
config["mounts"] += [{"destination": to, "type": "bind", "source": f"{bundle}/{place}", "options": ["rbind", "rw"]}
                     for to, place in places.items()]
with open(path, "w", encoding="utf-8") as file:
    json.dump(config, file)
END
  in_image() { runc --root "$bundle/state" exec "$bundle_name" /usr/bin/edgecase "$@"; }
  local bundle_name=edgecase-${bundle##*.} round
  for round in 1 2; do
    runc --root "$bundle/state" run --detach --bundle "$bundle/root" "$bundle_name" >"$bundle/log" 2>&1 </dev/null ||
      { cat "$bundle/log" >&2; fail "$image does not start"; }
    for _ in $(seq 100); do
      in_image status --health >/dev/null 2>&1 && break
      sleep 0.1
    done
    [ "$(in_image status --health)" = ready ] || { cat "$bundle/log" >&2; fail "$image is not healthy"; }
    [ $round = 2 ] || in_image write kitchen/temperature 21.5 >/dev/null || fail "$image takes no reading"
    in_image last --tz Europe/Berlin 'kitchen/*' | grep -q '21\.5' || fail "$image gives no reading back"
    runc --root "$bundle/state" kill "$bundle_name" TERM
    for _ in $(seq 100); do
      [ "$(runc --root "$bundle/state" state "$bundle_name" | grep -c '"status": "running"')" != 0 ] || break
      sleep 0.1
    done
    runc --root "$bundle/state" delete --force "$bundle_name"
  done
  rm -rf "$bundle"
  step "$image: a reading in and out, as its user, on a root that is not writable"
}

# The compiler, its library and its options are others than those that the tests are usually built with.
run_units() {
  local target=$1 said=$out/$1.units
  [ "$test$units" = yesyes ] || return 0
  cmake --build --preset "$target" --parallel "$(nproc)" --target engine_tests daemon_tests cli_tests >"$said" 2>&1 ||
    { grep -m 5 -E 'error|FAILED' "$said" >&2; fail "$target: its unit tests were not built"; }
  ctest --preset "$target" --parallel "$(nproc)" --label-exclude 'flow|tidy' --exclude-regex 'NOT_BUILT|^aes_' \
    >"$said" 2>&1 || { tail -n 20 "$said" >&2; fail "$target: a unit test"; }
  step "$target: $(grep 'tests passed' "$said")"
  rm "$said"
}

relation() {
  printf '   %s{"spdxElementId": "SPDXRef-%s", "relationshipType": "%s", "relatedSpdxElement": "SPDXRef-%s"}\n' "$@"
}
bill_of_materials() {
  local name version_of licence kind package file sum
  cat <<END
{
  "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": "edgecase-$version",
  "documentNamespace": "urn:edgecase:$version:$(git rev-parse HEAD)",
  "creationInfo": {
    "created": "$(date --utc --date="@$SOURCE_DATE_EPOCH" +%FT%TZ)", "creators": ["Tool: packaging/release.sh"]},
  "packages": [
    {"name": "edgecase", "SPDXID": "SPDXRef-edgecase", "versionInfo": "$version", "licenseDeclared": "Apache-2.0",
     "licenseConcluded": "Apache-2.0", "copyrightText": "NOASSERTION", "downloadLocation": "NOASSERTION",
     "filesAnalyzed": false}
END
  while read -r name version_of licence kind package file sum; do
    [ "$name" != doctest ] || continue
    cat <<END
   ,{"name": "$name", "SPDXID": "SPDXRef-$name", "versionInfo": "$version_of", "licenseDeclared": "$licence",
     "licenseConcluded": "$licence", "copyrightText": "NOASSERTION", "downloadLocation": "NOASSERTION",
     "filesAnalyzed": false, "packageFileName": "$file", "sourceInfo": "$kind package $package",
     "checksums": [{"algorithm": "SHA256", "checksumValue": "$sum"}]}
END
  done < <(pins)
  echo '  ],'
  echo '  "relationships": ['
  relation "" DOCUMENT DESCRIBES edgecase
  while read -r name _; do
    case $name in
      doctest) ;;
      zig) relation , "$name" BUILD_TOOL_OF edgecase ;;
      *) relation , edgecase STATIC_LINK "$name" ;;
    esac
  done < <(pins)
  printf '  ]\n}\n'
}

# Said by install.sh where the program does not start.
made_for() {
  case $1 in
    *-musl) echo "${1%-*}" ;;
    *) echo "${1%-*} with glibc 2.27 or later" ;;
  esac
}

archive() {
  local stage=$1 name=$2
  tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" -C "$stage" -cf - "$name" |
    gzip -9n >"$out/$name.tar.gz"
}

for target in "${targets[@]}"; do
  step "$target"
  [ "${target%%-*}" = x86_64 ] || toolchains/debian-sysroot.sh arm64 build/sysroot-arm64
  cmake --preset "$target" --log-level=WARNING -DEDGECASE_SOURCES="$sources" >"$out/$target.log" 2>&1 ||
    { tail "$out/$target.log" >&2; fail "$target: no configuration"; }
  cmake --build --preset "$target" --parallel "$(nproc)" --target edgecase packaging_files >>"$out/$target.log" 2>&1 ||
    { grep -m 5 -E 'error|FAILED' "$out/$target.log" >&2; fail "$target was not built"; }
  rm "$out/$target.log"
  check_needs "build/$target/cli/edgecase" "$target"
  [ "$target" != aarch64-portable ] || check_size "build/$target/cli/edgecase" 8000000
  try_program "build/$target/cli/edgecase" "$target"
  run_units "$target"

  name=edgecase-$version-linux-${target/-portable/}
  stage=$(mktemp -d)
  DESTDIR=$stage/$name cmake --install "build/$target" --prefix /usr >/dev/null
  install -m 755 packaging/install.sh "$stage/$name"
  made_for "$target" >"$stage/$name/made-for"
  archive "$stage" "$name"
  rm -rf "$stage"
  case $target in
    *-musl)
      [ "${target%%-*}" = x86_64 ] && machine=amd64 || machine=arm64
      packaging/image.sh "$version" $machine "build/$target/cli/edgecase" "$out/edgecase-$version-image-$machine.tar"
      check_size "$out/edgecase-$version-image-$machine.tar" 10000000
      [ $machine = arm64 ] || try_image "$out/edgecase-$version-image-$machine.tar"
      ;;
    *-portable)
      rm -rf "build/$target/packages"
      (cd "build/$target" && cpack >/dev/null)
      for package in "build/$target"/packages/*.deb; do check_size "$package" 4000000; done
      cp "build/$target"/packages/*.deb "$out"
      ;;
  esac
done

while read -r name _ _ _ _ file _; do
  case $name in doctest | zig) ;; *) cp "$sources/$file" "$out/sources" ;; esac
done < <(pins)
bill_of_materials >"$out/edgecase-$version.spdx.json"
python3 -m json.tool "$out/edgecase-$version.spdx.json" >/dev/null
cat >"$out/edgecase-$version.buildinfo" <<END
version: $version
commit: $(git rev-parse HEAD)
source-date-epoch: $SOURCE_DATE_EPOCH
targets: ${targets[*]}
compiler: zig $("$sources/zig/ziglang/zig" version)
time zones of images: $(dpkg-query --show --showformat='${Version}' tzdata 2>/dev/null || echo unknown)
cmake: $(cmake --version | sed -n '1s/.* //p')
pins: $(sha256sum toolchains/sources.txt | cut -d' ' -f1)
END

if command -v lintian >/dev/null; then
  for package in "$out"/*.deb; do
    [ ! -e "$package" ] || lintian --fail-on error,warning --tag-display-limit 0 --allow-root "$package" >&2
  done
fi
(cd "$out" && find . -type f ! -name SHA256SUMS -printf '%P\n' | sort | xargs sha256sum >SHA256SUMS)

# The sums are of everything there is.
make_again() {
  local scratch again target only=()
  scratch=$(mktemp -d)
  again=$scratch/edgecase-made-again
  git -c advice.detachedHead=false clone --quiet "$top" "$again"
  mkdir "$again/build"
  [ ! -e build/sysroot-arm64 ] || ln -s "$top/build/sysroot-arm64" "$again/build/"
  for target in "${targets[@]}"; do only+=(--only "$target"); done
  CCACHE_DISABLE=1 EDGECASE_SOURCES=$sources "$again/packaging/release.sh" "$version" --no-test "${only[@]}" \
    >/dev/null 2>"$scratch/log" || { tail "$scratch/log" >&2; fail "the second build failed"; }
  diff "$out/SHA256SUMS" "$again/build/release-$version/SHA256SUMS" >&2 ||
    fail "$again made other bytes; it is kept"
  rm -rf "$scratch"
  step "made twice, in two directories: the same $(wc -l <"$out/SHA256SUMS") files, byte for byte"
}
[ $twice = no ] || make_again
ls -l "$out" >&2
echo "$out"
