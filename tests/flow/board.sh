#!/bin/sh
# A board's life in a virtual machine: the package, readings in every way, power cuts, a drive that is pulled.
exec python3 "$(dirname "$0")/vm/board_life.py" "$@"
