#!/usr/bin/env bash
# Fetches axe-core, by which page_flow_test.py judges whether everyone can use the page, into build/axe/. Without it
# that test judges nothing, and says so. Needs npm and network, once.
#
#   tests/flow/axe.sh
#
# Exit codes: 0 it is there, 1 it could not be had
set -euo pipefail

version=4.10.2
sha256=9ea2d2d6917da998122bdacfd3b473e31ead53f4b87146c716a12edf89158100
target=$(cd "$(dirname "$0")/../.." && pwd)/build/axe
[ ! -e "$target/axe.min.js" ] || exit 0
mkdir -p "$target"
cd "$target"
npm pack --silent "axe-core@$version" >/dev/null
echo "$sha256  axe-core-$version.tgz" | sha256sum --check --quiet
tar --extract --gzip --file "axe-core-$version.tgz" --strip-components=1 package/axe.min.js
rm "axe-core-$version.tgz"
