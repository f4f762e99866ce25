"""What can go wrong; each error says what to do about it."""
from __future__ import annotations

from typing import Any, Optional


class EdgeCaseError(Exception):
    """Any failure. `status` is HTTP's, `code` the daemon's word for it; None where no daemon answered."""

    def __init__(self, message: str, status: Optional[int] = None, code: Optional[str] = None):
        super().__init__(message)
        self.status = status
        self.code = code


class Unreachable(EdgeCaseError):
    """No daemon answers there."""


class Cut(EdgeCaseError):
    """An answer ended in the middle: what came before is good, the rest is not known."""


class NotAllowed(EdgeCaseError):
    """No token, one that is not good, or one that may not do this."""


class NotFound(EdgeCaseError):
    """There is no such series, device or path."""


class Busy(EdgeCaseError):
    """Not taken now: nothing of it was stored; the same may be sent again after `retry_after` seconds."""

    def __init__(self, message: str, status: Optional[int] = None, code: Optional[str] = None, retry_after: float = 1):
        super().__init__(message, status, code)
        self.retry_after = retry_after


class Refused(EdgeCaseError):
    """What was asked or sent is not right. Of a write, `stored` readings are stored all the same, and `rejected` tells
    of the first of those that are not: their number in what was sent, from 1, and why."""

    def __init__(self, message: str, status: Optional[int] = None, code: Optional[str] = None, stored: int = 0,
                 rejected: Optional[list[tuple[int, str]]] = None):
        super().__init__(message, status, code)
        self.stored = stored
        self.rejected = rejected or []


class LeftOut(UserWarning):
    """Something of an answer is damaged on the drive and was left out; the rest is there."""


class Withheld(UserWarning):
    """Devices were left out of an answer, since their readings may not be used for the purpose that was given."""


def error_of(status: int, retry_after: Optional[str], body: Any) -> EdgeCaseError:
    """The error that an answer tells; `body` is its JSON, or text. `retry_after`: its header."""
    code, message = None, str(body).strip()
    if isinstance(body, dict):
        told = body.get("error")
        if isinstance(told, dict):
            code, message = told.get("code"), str(told.get("message", message))
        elif isinstance(told, str):
            code, message = body.get("code"), told
    message = message or f"the daemon answered {status}"
    if status in (401, 403, 429):
        hint = "" if "token" in message else "; tokens are made by 'edgecase token create'"
        return NotAllowed(message + hint, status, code)
    if status == 404:
        return NotFound(message, status, code)
    if status == 503:
        try:
            seconds = float(retry_after or 1)
        except ValueError:
            seconds = 1
        return Busy(message, status, code, seconds)
    if 400 <= status < 500 and isinstance(body, dict):
        rejected = [(int(each.get("line", 0)), str(each.get("message", ""))) for each in body.get("errors", [])]
        return Refused(message, status, code, int(body.get("stored", 0)), rejected)
    return EdgeCaseError(message, status, code)
