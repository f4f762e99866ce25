#!/bin/sh
# Real power cuts: a virtual board takes readings from outside, loses its power, and is asked for what it acknowledged.
exec python3 "$(dirname "$0")/vm/powercut.py" "$@"
