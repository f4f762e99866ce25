"""Readings into and out of an EdgeCase daemon, over HTTP or its Unix socket.

    import edgecase

    with edgecase.Client() as board:
        board.write("kitchen/temperature", 21.5)
        for reading in board.readings("kitchen/*", since="-1h"):
            print(reading.datetime, reading.series, reading.value)

`Client` is the way in. Nothing beside Python is needed; `Client.query` makes a DataFrame where pandas is installed.
"""
from .client import Blob, Client, Stored
from .errors import Busy, Cut, EdgeCaseError, LeftOut, NotAllowed, NotFound, Refused, Unreachable, Withheld
from .readings import Reading, Time, Value

__all__ = ["Blob", "Busy", "Client", "Cut", "EdgeCaseError", "LeftOut", "NotAllowed", "NotFound", "Reading", "Refused",
           "Stored", "Time", "Unreachable", "Value", "Withheld"]
__version__ = "0.1.0"
