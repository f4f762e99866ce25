"""The client: readings in, readings out, and gone for good."""
from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import time as clock
import urllib.parse
import warnings
from typing import TYPE_CHECKING, Any, Iterable, Iterator, Mapping, Optional, Sequence, Union

from . import frames
from .errors import Busy, LeftOut, Refused, Withheld
from .readings import Reading, Time, Value, from_line, time_ns, time_text, to_line
from .transport import Answer, Transport

if TYPE_CHECKING:
    import pandas

DEFAULT_SOCKET = "/run/edgecase/edgecase.sock"
BATCH_READINGS_MAX = 5_000
BATCH_BYTES_MAX = 1 << 20
RETRIES_MAX = 5
TAIL_BUSY_SECONDS = 0.05
TAIL_IDLE_SECONDS = 0.2

Written = Union[Reading, Mapping[str, Any], Sequence[Any]]


@dataclasses.dataclass
class Stored:
    """What became of what was written: all of it is durable, but for what the last four count. `expired`, `erased` and
    `evicted` may not be there any more or again; `replaced` gave way to a later reading of the same time."""

    stored: int = 0
    expired: int = 0
    replaced: int = 0
    erased: int = 0
    evicted: int = 0


@dataclasses.dataclass(frozen=True)
class Blob:
    """Bytes that were stored at `time_ns`."""

    data: bytes
    content_type: str
    time_ns: int


def _split(series: str) -> tuple[str, str]:
    if not isinstance(series, str):
        raise TypeError(f"a series is text, DEVICE/SENSOR; not {type(series).__name__}")
    device, slash, sensor = series.partition("/")
    if not slash or not device or not sensor:
        raise ValueError(f"{series!r} is no series: say DEVICE/SENSOR")
    return device, sensor


class Client:
    """A connection to a daemon. For one thread; make one for each.

    `url_or_socket`: http://HOST:8650, https://HOST:8650, or the path of the daemon's Unix socket. None: what the
    environment says in EDGECASE_HOST or EDGECASE_HTTP_SOCKET, else the socket of the service. `token`: None means
    EDGECASE_TOKEN; the socket needs none. `ca`: the file of who signed the daemon's certificate.
    """

    def __init__(self, url_or_socket: Optional[str] = None, token: Optional[str] = None, *,
                 namespace: Optional[str] = None, timeout: float = 30, ca: Optional[str] = None):
        address = (url_or_socket or os.environ.get("EDGECASE_HOST") or os.environ.get("EDGECASE_HTTP_SOCKET")
                   or DEFAULT_SOCKET)
        self.namespace = namespace or os.environ.get("EDGECASE_NAMESPACE") or "default"
        self._transport = Transport(address, token or os.environ.get("EDGECASE_TOKEN"), timeout, ca)

    def close(self) -> None:
        self._transport.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # In.

    def write(self, series: str, value: Value, time: Optional[Time] = None, *,
              content_type: Optional[str] = None) -> Stored:
        """Stores one reading of DEVICE/SENSOR; it is durable on return. Without a time: the moment of its arrival."""
        device, sensor = _split(series)
        return self.write_many([Reading(device, sensor, value, None if time is None else time_ns(time),
                                        self.namespace, content_type)])

    def write_many(self, readings: "Union[Iterable[Written], pandas.DataFrame]") -> Stored:
        """Stores many, in batches; each batch is durable before the next is sent.

        A reading is a `Reading`, a mapping with device, sensor (or series), value and time, or a sequence
        (series, value[, time]). Of a DataFrame each row is one: columns device, sensor (or series), value, and time or
        the index. Refused: some could not be stored, all others were. Busy: after a few tries the daemon still took
        nothing of a batch; earlier ones are stored.
        """
        total, rejected, sent, first = Stored(), [], 0, None
        for batch, count in self._batches(readings):
            try:
                self._add(total, self._post(batch))
            except Refused as error:
                total.stored += error.stored
                first = first or error
                rejected += [(sent + line, why) for line, why in error.rejected]
            sent += count
        if first is not None:
            raise Refused(str(first), first.status, first.code, total.stored, rejected)
        return total

    def _batches(self, readings: "Union[Iterable[Written], pandas.DataFrame]") -> Iterator[tuple[bytes, int]]:
        lines: list[bytes] = []
        size = 0
        for reading in _rows(readings):
            line = to_line(self._reading(reading))
            if lines and (len(lines) >= BATCH_READINGS_MAX or size + len(line) > BATCH_BYTES_MAX):
                yield b"".join(lines), len(lines)
                lines, size = [], 0
            lines.append(line)
            size += len(line)
        if lines:
            yield b"".join(lines), len(lines)

    def _reading(self, given: Written) -> Reading:
        if isinstance(given, Reading):
            return given
        if isinstance(given, Mapping):
            if "series" in given:
                device, sensor = _split(given["series"])
            else:
                device, sensor = given["device"], given["sensor"]
            when, kind = given.get("time"), given.get("content_type")
            return Reading(device, sensor, given["value"], None if when is None else time_ns(when),
                           given.get("namespace", self.namespace), kind)
        if isinstance(given, str) or not 2 <= len(given) <= 3:
            raise TypeError(f"{given!r} is no reading: say (SERIES, VALUE) or (SERIES, VALUE, TIME)")
        device, sensor = _split(given[0])
        when = given[2] if len(given) == 3 else None
        return Reading(device, sensor, given[1], None if when is None else time_ns(when), self.namespace)

    def _post(self, batch: bytes) -> dict[str, Any]:
        for left in range(RETRIES_MAX, -1, -1):
            try:
                answer = self._transport.ask("POST", "/api/v1/readings", (), batch,
                                             {"Content-Type": "application/x-ndjson"})
                told: dict[str, Any] = answer.json()
                return told
            except Busy as error:
                if left == 0:
                    raise
                clock.sleep(min(error.retry_after, 60))
        raise AssertionError("not reached")

    @staticmethod
    def _add(total: Stored, told: Mapping[str, Any]) -> None:
        for field in dataclasses.fields(Stored):
            setattr(total, field.name, getattr(total, field.name) + int(told.get(field.name, 0)))

    def put_blob(self, series: str, data: bytes, content_type: str = "application/octet-stream",
                 time: Optional[Time] = None) -> int:
        """Stores bytes as they are, such as a picture; their time in nanoseconds, once they are durable."""
        answer = self._transport.ask("PUT", self._blob_path(series), [("time", _text(time))], data,
                                     {"Content-Type": content_type})
        return time_ns(answer.json()["time"])

    # Out.

    def readings(self, select: str, *, since: Optional[Time] = None, until: Optional[Time] = None,
                 every: Optional[str] = None, agg: Optional[str] = None, limit: Optional[int] = None,
                 newest_first: bool = False, purpose: Optional[str] = None) -> Iterator[Reading]:
        """Readings by series, then time, as they come: of those that `select` names, such as "kitchen/*", from `since`
        on and before `until`. With `every` ("5m") a row for each window, with `agg`: mean, min, max, sum, count, first,
        last, stddev, p50, p95, p99, minmax."""
        return _readings_of(self._ask_query("ndjson", select, since, until, every, agg, limit, newest_first, purpose))

    def _ask_query(self, form: str, select: str, since: Optional[Time] = None, until: Optional[Time] = None,
                   every: Optional[str] = None, agg: Optional[str] = None, limit: Optional[int] = None,
                   newest_first: bool = False, purpose: Optional[str] = None) -> Answer:
        return self._transport.ask("GET", "/api/v1/query", [
            ("ns", self.namespace), ("select", select), ("from", _text(since)), ("to", _text(until)), ("every", every),
            ("agg", agg), ("limit", None if limit is None else str(limit)), ("desc", "true" if newest_first else None),
            ("purpose", purpose), ("format", form)], headers={"X-EdgeCase-Report": "inline"})

    def query(self, select: str, *, wide: bool = False, **how: Any) -> "pandas.DataFrame":
        """The same as a DataFrame: columns time (UTC), device, sensor, value; `wide`: indexed by time, a column for
        each series. Needs pandas; with pyarrow it takes a fraction of the time."""
        try:
            import pandas
        except ImportError as error:
            raise ImportError("Client.query needs pandas (apt install python3-pandas, or pip install pandas); "
                              "Client.readings needs nothing") from error
        if frames.HAS_ARROW:
            answer = self._ask_query("arrow", select, **how)
            frame = frames.of_arrow(_file_of(answer))
        else:
            rows = list(self.readings(select, **how))
            frame = pandas.DataFrame({
                "time": pandas.to_datetime([row.time_ns for row in rows], unit="ns", utc=True),
                "device": [row.device for row in rows], "sensor": [row.sensor for row in rows],
                "value": [row.value for row in rows]})
        if not wide:
            return frame
        frame["series"] = frame["device"] + "/" + frame["sensor"]
        return frame.pivot(index="time", columns="series", values="value")

    def last(self, select: str = "*/*", *, purpose: Optional[str] = None) -> list[Reading]:
        """The newest reading of each series."""
        answer = self._transport.ask("GET", "/api/v1/last", [
            ("ns", self.namespace), ("select", select), ("purpose", purpose), ("format", "ndjson")],
            headers={"X-EdgeCase-Report": "inline"})
        return list(_readings_of(answer))

    def tail(self, select: str = "*/*", *, purpose: Optional[str] = None) -> Iterator[Reading]:
        """Readings as they are stored, from the call of the first `next` on, for ever. Warns where some came too fast,
        or were stored while the daemon was away from this client: ask `readings` for these."""
        cursor: Optional[str] = None
        while True:
            answer = self._transport.ask("GET", "/api/v1/tail", [
                ("ns", self.namespace), ("select", select), ("purpose", purpose), ("cursor", cursor),
                ("format", "ndjson")])
            missed = answer.headers.get("X-EdgeCase-Missed-Readings")
            if missed and cursor:
                warnings.warn(f"readings that were stored meanwhile are not told ({missed}): ask readings() for them",
                              LeftOut, stacklevel=2)
            cursor = answer.headers["X-EdgeCase-Cursor"]
            came = [from_line(json.loads(line)) for line in answer.read().splitlines()]
            yield from came
            clock.sleep(TAIL_BUSY_SECONDS if came else TAIL_IDLE_SECONDS)

    def blob(self, series: str, time: Optional[Time] = None) -> Blob:
        """The bytes stored at a time, or the newest."""
        answer = self._transport.ask("GET", self._blob_path(series), [("time", _text(time))])
        return Blob(answer.read(), answer.headers.get("Content-Type", ""), time_ns(answer.headers["X-EdgeCase-Time"]))

    def _blob_path(self, series: str) -> str:
        device, sensor = _split(series)
        parts = (urllib.parse.quote(part, safe="") for part in (self.namespace, device, sensor))
        return "/api/v1/blob/" + "/".join(parts)

    # Gone.

    def erase_preview(self, select: str, *, since: Optional[Time] = None,
                      until: Optional[Time] = None) -> dict[str, Any]:
        """What an erasure would take: devices, series, readings, bytes, and the level that it would reach."""
        told: dict[str, Any] = self._transport.ask("GET", "/api/v1/erase/preview", [
            ("ns", self.namespace), ("select", select), ("from", _text(since)), ("to", _text(until))]).json()
        return told

    def erase(self, select: str, *, since: Optional[Time] = None, until: Optional[Time] = None,
              everything: bool = False, wait: float = 600) -> dict[str, Any]:
        """Erases for good what `select` names; the certificate, signed once every byte is gone. Without times the names
        go, too. What is named cannot be read from the call on. If bytes are left after `wait` seconds the certificate's
        `state` is "pending" and `waiting_for` says why; `certificate` asks for it later. `everything` must be True
        where `select` names all there is."""
        told: dict[str, Any] = self._transport.ask("POST", "/api/v1/erase", [
            ("ns", self.namespace), ("select", select), ("from", _text(since)), ("to", _text(until)),
            ("yes", "true" if everything else None), ("wait", "0s")]).json()
        return self.certificate(told["id"], wait=wait) if told["state"] == "pending" else told

    def certificate(self, number: int, *, wait: float = 0) -> dict[str, Any]:
        """The certificate of an erasure, as soon as it is signed, or as it is after `wait` seconds."""
        end = clock.monotonic() + wait
        while True:
            left = max(0, min(10, int(end - clock.monotonic())))
            told: dict[str, Any] = self._transport.ask("GET", "/api/v1/erasures", [
                ("id", str(number)), ("wait", f"{left}s")]).json()
            if told["state"] != "pending" or clock.monotonic() >= end:
                return told


def _text(time: Optional[Time]) -> Optional[str]:
    return None if time is None else time_text(time)


def _rows(readings: "Union[Iterable[Written], pandas.DataFrame]") -> Iterable[Written]:
    """The rows of a DataFrame as mappings; its index is their time where it has no such column. Cells without a value
    are no readings. Anything else as it is."""
    if not hasattr(readings, "itertuples"):
        return readings
    frame: Any = readings
    if "time" not in frame.columns:
        frame = frame.rename_axis("time").reset_index()
    names = [name for name in ("series", "device", "sensor", "value", "time", "namespace") if name in frame.columns]
    return (row for row in (dict(zip(names, (_plain(cell) for cell in cells)))
                            for cells in zip(*(frame[name] for name in names))) if row["value"] is not None)


def _plain(cell: Any) -> Any:
    """A cell as Python's own type: NumPy's numbers have .item(); None for NaN, NaT, NA."""
    if hasattr(cell, "item"):
        cell = cell.item()
    try:
        return None if cell is None or bool(cell != cell) else cell
    except TypeError:  # pandas.NA is neither
        return None


def _warn_of_withheld(answer: Answer) -> None:
    withheld = answer.headers.get("X-EdgeCase-Withheld-Devices")
    if withheld and withheld != "0":
        warnings.warn(f"{withheld} devices may not be used for this purpose", Withheld, stacklevel=4)


def _warn_of_left_out(report: Union[str, bytes]) -> None:
    for each in json.loads(report):
        warnings.warn(f"left out: {json.dumps(each, ensure_ascii=False)}", LeftOut, stacklevel=4)


def _file_of(answer: Answer) -> bytes:
    """The body of an answer that is a file; what it leaves out stands behind it, with its length in eight digits."""
    _warn_of_withheld(answer)
    data = answer.read()
    if answer.headers.get("X-EdgeCase-Report") != "inline":
        if left_out := answer.headers.get("X-EdgeCase-Left-Out"):
            _warn_of_left_out(left_out)
        return data
    end = len(data) - 8
    begin = end - int(data[end:])
    _warn_of_left_out(data[begin:end])
    return data[:begin]


def _readings_of(answer: Answer) -> Iterator[Reading]:
    """The readings of an answer; warns of what was left out."""
    _warn_of_withheld(answer)
    with contextlib.closing(answer.lines()) as lines:  # closed with this one, not when its memory is wanted
        for line in lines:
            if line.startswith(b"{"):
                yield from_line(json.loads(line))
            elif line.startswith(b"["):
                _warn_of_left_out(line[:line.rindex(b"]") + 1])
