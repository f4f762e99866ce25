"""A proxy of HTTP between a forwarder and its target that loses, delays and lies, by a seed.

Nothing of what it does is an excuse for a reading that is missing at the target in the end.
"""
import gzip
import http.client
import http.server
import shutil
import subprocess
import threading

KEPT_HEADERS = ("content-type", "retry-after", "x-influxdb-version", "x-edgecase-left-out")
FAULTS = ("lose", "swallow answer", "cut answer", "503", "429", "413", "hang", "early 503")


def unpacked(body, coding):
    """None: it is in zstd, which cannot be read here."""
    if not coding:
        return body
    if coding != "zstd":
        return gzip.decompress(body)
    if not shutil.which("zstd"):
        return None
    return subprocess.run(["zstd", "-d", "-c"], input=body, check=True, stdout=subprocess.PIPE).stdout


class LyingProxy:
    """`upstream` tells the port of the target at that moment. `seed` None: it is honest."""

    def __init__(self, upstream, random=None, fault_rate=0.0):
        self.upstream = upstream
        self.random = random
        self.fault_rate = fault_rate
        self.refused_word = None  # 400 for whatever holds it
        self.answer = None        # status, headers, body: instead of the target's
        self.seen = None          # a list: paths and bodies of requests
        self.faults = {}
        self.requests = 0
        self.lock = threading.Lock()
        proxy = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_POST(self):
                proxy.handle(self)

            do_GET = do_PUT = do_DELETE = do_POST

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):
                pass  # whoever asked was killed

        self.server = Server(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()

    def choose_fault(self):
        with self.lock:
            self.requests += 1
            if self.random is None or self.random.random() >= self.fault_rate:
                return None
            fault = self.random.choice(FAULTS)
            self.faults[fault] = self.faults.get(fault, 0) + 1
            return fault

    def handle(self, client):
        fault = self.choose_fault()
        if fault == "early 503":
            client.close_connection = True
            return answer(client, 503, {"Connection": "close"}, b"")
        body = client.rfile.read(int(client.headers["Content-Length"] or 0))
        lines = unpacked(body, client.headers["Content-Encoding"])
        if lines is None:
            return answer(client, 415, {}, b"")
        if self.seen is not None:
            self.seen.append((client.path, lines))
        if self.answer:
            return answer(client, *self.answer)
        if self.refused_word and self.refused_word in lines:
            return answer(client, 400, {}, b'{"error":"partial write"}')
        if fault == "503":
            return answer(client, 503, {}, b"busy")
        if fault == "429":
            return answer(client, 429, {"Retry-After": "0"}, b"slow down")
        if fault == "413" and lines.count(b"\n") > 3:
            return answer(client, 413, {}, b"too large")
        if fault in ("lose", "hang"):
            if fault == "hang":
                threading.Event().wait(0.2)
            client.close_connection = True
            return None
        given = self.pass_on(client, body)
        if given is None or fault == "swallow answer":
            client.close_connection = True
            return None
        if fault == "cut answer":
            client.close_connection = True
            client.wfile.write(b"HTTP/1.1 20")
            return None
        return answer(client, *given)

    def pass_on(self, client, body):
        upstream = http.client.HTTPConnection("127.0.0.1", self.upstream(), timeout=30)
        headers = {k: v for k, v in client.headers.items() if k.lower() not in ("host", "connection")}
        try:
            upstream.request(client.command, client.path, body, headers)
            given = upstream.getresponse()
            kept = {k: v for k, v in given.headers.items() if k.lower() in KEPT_HEADERS}
            return given.status, kept, given.read()
        except (OSError, http.client.HTTPException):
            return None  # it is away
        finally:
            upstream.close()


def answer(client, status, headers, body):
    client.send_response(status)
    for name, value in headers.items():
        client.send_header(name, value)
    if status != 204:
        client.send_header("Content-Length", str(len(body)))
    client.end_headers()
    if status != 204:
        client.wfile.write(body)
