"""HTTP to a daemon over TCP, TLS or its Unix socket: one connection, kept open between requests."""
from __future__ import annotations

import http.client
import json
import socket
import ssl
import urllib.parse
from typing import Any, Generator, Optional, Sequence, Union

from .errors import Cut, EdgeCaseError, Unreachable, error_of

Parameters = Sequence[tuple[str, Optional[str]]]
_ERROR_BYTES_MAX = 1 << 20


class _SocketConnection(http.client.HTTPConnection):
    def __init__(self, path: str, timeout: float):
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class Answer:
    """An answer whose body is read as it comes. Its connection takes the next request once all of it is read; until
    then the next request has a connection of its own."""

    def __init__(self, transport: "Transport", connection: http.client.HTTPConnection,
                 response: http.client.HTTPResponse):
        self._transport = transport
        self._connection = connection
        self._response = response
        self.status = response.status
        self.headers = response.headers

    def is_read(self) -> bool:
        return self._response.isclosed()

    def close(self) -> None:
        self._response.close()
        self._connection.close()
        self._transport.forget(self._connection)

    def _end(self) -> None:
        """All is read: nobody else closes a connection that takes no more requests."""
        if not self._transport.keeps(self._connection):
            self._connection.close()

    def _cut(self, error: Exception) -> Cut:
        self.close()
        return Cut(f"the answer ended in the middle ({error}): ask again for what is missing")

    def read(self) -> bytes:
        try:
            data = self._response.read()
        except (OSError, http.client.HTTPException) as error:
            raise self._cut(error) from error
        self._end()
        return data

    def json(self) -> Any:
        return json.loads(self.read())

    def lines(self) -> Generator[bytes, None, None]:
        """The body's lines, without their ends. What is left unread closes the connection."""
        whole = False
        try:
            while line := self._response.readline():
                yield line.rstrip(b"\n")
            self._response.read()  # readline() alone does not tell the connection that this was all
            whole = True
            self._end()
        except (OSError, http.client.HTTPException) as error:
            raise self._cut(error) from error
        finally:
            if not whole:
                self.close()


class Transport:
    """Where the daemon is, and who asks. Not for several threads at once."""

    def __init__(self, address: str, token: Optional[str], timeout: float, ca: Optional[str]):
        self._token = token
        self._timeout = timeout
        self.address = address
        self._connection: Optional[http.client.HTTPConnection] = None  # and the last answer that came by it
        self._answer: Optional[Answer] = None
        self._path = ""
        if address.startswith(("/", ".", "unix:")):
            self._path = address[5:] if address.startswith("unix:") else address
            return
        parts = urllib.parse.urlsplit(address if "://" in address else f"http://{address}")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{address!r} is no address: say http://HOST:8650, https://HOST:8650 or a socket's path")
        if parts.username or parts.password or parts.query or parts.path.strip("/"):
            raise ValueError(f"{address!r} holds more than scheme, host and port; a token is an argument of its own")
        self._scheme, self._host, self._port = parts.scheme, parts.hostname, parts.port or 8650
        self._tls = ssl.create_default_context(cafile=ca) if parts.scheme == "https" else None

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self.forget(self._connection)

    def keeps(self, connection: http.client.HTTPConnection) -> bool:
        return self._connection is connection

    def forget(self, connection: http.client.HTTPConnection) -> None:
        """The next request has another one."""
        if self.keeps(connection):
            self._connection = self._answer = None

    def _connect(self) -> http.client.HTTPConnection:
        if self._connection is None:
            if self._path:
                self._connection = _SocketConnection(self._path, self._timeout)
            elif self._tls:
                self._connection = http.client.HTTPSConnection(self._host, self._port, timeout=self._timeout,
                                                               context=self._tls)
            else:
                self._connection = http.client.HTTPConnection(self._host, self._port, timeout=self._timeout)
            self._connection.connect()
        return self._connection

    def _unreachable(self, error: Exception) -> Unreachable:
        self.close()
        if isinstance(error, PermissionError):
            return Unreachable(f"{self.address} is not for you: become a member of the group edgecase, or use "
                               "http://HOST:8650 and a token")
        if isinstance(error, ssl.SSLCertVerificationError):
            return Unreachable(f"{self.address} shows a certificate that is not trusted ({error.verify_message}): "
                               "name the file of who signed it with ca=")
        return Unreachable(f"no daemon answers at {self.address} ({error}): is edgecased running, is the address "
                           "right?")

    def _send(self, method: str, target: str, body: Optional[bytes],
              headers: dict[str, str]) -> http.client.HTTPResponse:
        connection = self._connect()
        connection.request(method, target, body, headers)
        return connection.getresponse()

    def ask(self, method: str, path: str, parameters: Parameters = (), body: Optional[bytes] = None,
            headers: Optional[dict[str, str]] = None) -> Answer:
        """The answer, if it is a good one; else its error is raised. A connection that was kept may have been closed
        meanwhile: then what was asked is sent once more, if sending it twice does no harm."""
        given = [(name, value) for name, value in parameters if value is not None]
        target = path + ("?" + urllib.parse.urlencode(given) if given else "")
        sent = dict(headers or {})
        if self._token:
            sent["Authorization"] = f"Bearer {self._token}"
        if self._connection is not None and self._answer is not None and not self._answer.is_read():
            self.forget(self._connection)  # it belongs to who reads that answer
        kept = self._connection is not None
        try:
            response = self._send(method, target, body, sent)
        except (OSError, http.client.HTTPException) as error:
            self.close()
            never_arrived = isinstance(error, (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError))
            if not (kept and method == "GET" and never_arrived):
                raise self._unreachable(error) from error
            try:
                response = self._send(method, target, body, sent)
            except (OSError, http.client.HTTPException) as again:
                raise self._unreachable(again) from again
        answer = self._answer = Answer(self, self._connect(), response)
        if response.status < 300:
            return answer
        raise self._refusal(answer)

    def _refusal(self, answer: Answer) -> EdgeCaseError:
        try:
            text = answer._response.read(_ERROR_BYTES_MAX)
        except (OSError, http.client.HTTPException):
            text = b""
        if not answer.is_read():
            answer.close()
        body: Union[str, Any]
        try:
            body = json.loads(text)
        except ValueError:
            body = text.decode(errors="replace")
        return error_of(answer.status, answer.headers.get("Retry-After"), body)
