#!/bin/sh
# The flow tests on a board: in a virtual machine that boots Debian, with the program that its package installs.
exec python3 "$(dirname "$0")/vm/board_flows.py" "$@"
