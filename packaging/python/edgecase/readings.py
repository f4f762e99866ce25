"""Readings, and how their times and values are written in JSON."""
from __future__ import annotations

import base64
import dataclasses
import datetime
import json
import math
import re
from typing import Any, Mapping, Optional, Union

Value = Union[float, int, bool, str, bytes]
# Nanoseconds since 1970; a datetime with a zone; or as the command line has it: RFC 3339, "-15m", "now".
Time = Union[int, datetime.datetime, str]

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
_RFC3339 = re.compile(r"(-?\d{4,})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?Z")


@dataclasses.dataclass(frozen=True)
class Reading:
    """One value of one sensor. `time_ns` is nanoseconds since 1970; None only in what is to be written, and means the
    moment of its arrival. `content_type` is of bytes. `value` is None in rows of windows that hold no reading."""

    device: str
    sensor: str
    value: Optional[Value]
    time_ns: Optional[int] = None
    namespace: str = "default"
    content_type: Optional[str] = None

    @property
    def series(self) -> str:
        return f"{self.device}/{self.sensor}"

    @property
    def datetime(self) -> datetime.datetime:
        """The time in UTC, cut to microseconds."""
        if self.time_ns is None:
            raise ValueError("this reading has no time yet")
        return _EPOCH + datetime.timedelta(microseconds=self.time_ns // 1000)


def plain(value: Any) -> Any:
    """A number or time of numpy as Python's own; a time in nanoseconds."""
    if type(value).__module__ != "numpy":
        return value
    if type(value).__name__ == "datetime64":
        if value != value:
            raise ValueError("NaT is no time; leave it out, and the daemon's clock counts")
        return int(value.astype("datetime64[ns]").astype("int64"))
    return value.item() if hasattr(value, "item") and getattr(value, "ndim", 0) == 0 else value


def time_text(time: Time) -> str:
    """A time as a parameter of a request: an integer is said as a number of seconds, which are exact to 1 ns."""
    if isinstance(time, str):
        return time
    ns = time_ns(time)
    sign, ns = ("-", -ns) if ns < 0 else ("", ns)
    return f"@{sign}{ns // 10**9}.{ns % 10**9:09}"


def time_ns(time: Time) -> int:
    """Nanoseconds since 1970. Of text only RFC 3339 in UTC is understood."""
    time = plain(time)
    if isinstance(time, bool):
        raise TypeError("a time is nanoseconds since 1970, a datetime with a zone, or RFC 3339 text; not a bool")
    if isinstance(time, int):
        for factor, unit in ((10**9, "seconds"), (10**6, "milliseconds"), (1000, "microseconds")):
            if 1_100_000_000 <= time * factor // 10**9 < 4_000_000_000:
                raise ValueError(f"{time} nanoseconds are of January 1970: of {unit} say {time} * {factor}")
        return time
    if isinstance(time, float):
        raise TypeError("a time is nanoseconds since 1970, not a float: of seconds say int(seconds * 1e9)")
    if isinstance(time, datetime.datetime):
        if time.tzinfo is None:
            raise ValueError(f"{time} names no zone: say datetime.timezone.utc, or .astimezone() for this machine's")
        since = time - _EPOCH
        whole = (since.days * 86_400 + since.seconds) * 10**9 + since.microseconds * 1000
        return whole + int(getattr(time, "nanosecond", 0))  # of a pandas Timestamp
    if isinstance(time, str):
        found = _RFC3339.fullmatch(time)
        if not found:
            raise ValueError(f"{time!r} is no time like 2026-01-31T12:00:00Z")
        year, month, day, hour, minute, second = (int(part) for part in found.groups()[:6])
        days = datetime.date(year, month, day).toordinal() - _EPOCH.toordinal()
        return ((days * 24 + hour) * 60 + minute) * 60 * 10**9 + second * 10**9 + int((found[7] or "0").ljust(9, "0"))
    raise TypeError(f"a time is nanoseconds since 1970, a datetime with a zone, or text; not {type(time).__name__}")


def to_line(reading: Reading) -> bytes:
    """A reading as a line of NDJSON."""
    line: dict[str, Any] = {"namespace": reading.namespace, "device": reading.device, "sensor": reading.sensor}
    if reading.time_ns is not None:
        line["time"] = reading.time_ns
    value = plain(reading.value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        line["value"], line["type"] = base64.b64encode(value).decode(), "bytes"
        if reading.content_type:
            line["content_type"] = reading.content_type
    elif isinstance(value, (bool, str)):
        line["value"] = value
    elif isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            raise ValueError(f"{reading.series}: {value} does not fit 64 bits: write it as a float or as text")
        line["value"], line["type"] = value, "int"
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{reading.series}: {value} cannot be stored: leave the reading out")
        line["value"], line["type"] = value, "float"
    else:
        raise TypeError(f"{reading.series}: a value is float, int, bool, str or bytes; not {type(value).__name__}")
    return json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def from_line(line: Mapping[str, Any]) -> Reading:
    """A reading of an answer's line. Numbers without a type are floats, as everywhere in EdgeCase."""
    value, kind = line.get("value"), line.get("type")
    if kind == "bytes":
        value = base64.b64decode(str(value))
    elif isinstance(value, int) and not isinstance(value, bool) and kind != "int":
        value = float(value)
    return Reading(line["device"], line["sensor"], value, time_ns(line["time"]), line.get("namespace", "default"),
                   line.get("content_type"))
