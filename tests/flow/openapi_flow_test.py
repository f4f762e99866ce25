#!/usr/bin/env python3
"""/api/v1/openapi.json is a valid OpenAPI 3.1 document, and the daemon answers as it says, route by route."""
import json
import signal
import unittest
import urllib.parse

from daemon_process import Daemon, Place, until

DOCUMENT = "/api/v1/openapi.json"
# What a route needs besides the document's own examples to have something to do, in the order of the calls. {NAME} is
# told by an earlier answer.
CALLS = [
    ("post", "/write", {}),
    ("post", "/api/v2/write", {}),
    ("post", "/api/v1/readings", {}),
    ("put", "/api/v1/blob/{namespace}/{device}/{sensor}", {}),
    ("get", "/api/v1/blob/{namespace}/{device}/{sensor}", {}),
    ("get", "/query", {}),
    ("post", "/query", {}),
    ("post", "/api/v2/query", {}),
    ("get", "/api/v2/buckets", {}),
    ("get", "/api/v2/orgs", {}),
    ("get", "/ping", {}),
    ("get", "/health", {}),
    ("get", "/ready", {}),
    ("get", "/api/v1/query", {"select": "*/*", "every": "1h", "agg": "mean"}),
    ("get", "/api/v1/last", {"format": "csv"}),
    ("get", "/api/v1/tail", {}),
    ("get", "/api/v1/series", {}),
    ("get", "/api/v1/find", {}),
    ("get", "/api/v1/devices", {}),
    ("post", "/api/v1/devices", {}),
    ("post", "/api/v1/device", {"device": "kitchen", "owner": "ada", "label": "room=hall"}),
    ("get", "/api/v1/device", {}),
    ("post", "/api/v1/namespaces", {}),
    ("get", "/api/v1/namespaces", {}),
    ("delete", "/api/v1/namespaces", {}),
    ("post", "/api/v1/retention", {"select": "kitchen/*"}),
    ("get", "/api/v1/retention", {}),
    ("put", "/api/v1/retention", {}),
    ("get", "/api/v1/retention/preview", {"select": "kitchen/*"}),
    ("delete", "/api/v1/retention", {"select": "kitchen/*"}),
    ("get", "/api/v1/where", {"select": "kitchen/*"}),
    ("get", "/api/v1/erase/preview", {"select": "kitchen/*"}),
    ("post", "/api/v1/erase", {"select": "kitchen/*", "yes": "true"}),
    ("get", "/api/v1/erasures", {}),
    ("get", "/api/v1/fences", {}),
    ("delete", "/api/v1/fences", {"id": "1"}),
    ("post", "/api/v1/backups", {}),
    ("put", "/api/v1/backups", {}),
    ("delete", "/api/v1/backups", {"moment": "{moment}"}),
    ("get", "/api/v1/report", {}),
    ("get", "/api/v1/report/key", {}),
    ("get", "/api/v1/audit", {}),
    ("get", "/api/v1/audit/verify", {}),
    ("get", "/api/v1/status", {}),
    ("post", "/api/v1/mqtt/test", {}),
    ("post", "/api/v1/influx/test", {}),
    ("get", "/api/v1/influx/rules", {}),
    ("get", DOCUMENT, {}),
    ("get", "/healthz", {}),
    ("get", "/readyz", {}),
    ("get", "/metrics", {}),
    ("get", "/", {}),
    ("get", "/page/{file}", {}),
    ("get", "/api/v1/forward", {}),
    ("post", "/api/v1/forward", {"name": "cloud"}),
    ("put", "/api/v1/forward", {}),
    ("delete", "/api/v1/forward", {}),
    # The last: from the first token on nobody is served over TCP without one.
    ("get", "/api/v1/tokens", {}),
    ("post", "/api/v1/tokens", {"admin": "true"}),
    ("delete", "/api/v1/tokens", {"id": "{id}"}),
]


class OpenApiFlow(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place = Place()
        cls.place.write_config(more='[[forward]]\nname = "cloud"\nto = "edgecase+http://localhost:1"\n')
        cls.daemon = Daemon(cls.place)
        cls.document = json.loads(cls.daemon.request("GET", DOCUMENT)[1])
        cls.told = {}  # by earlier answers
        cls.headers = {}

    @classmethod
    def tearDownClass(cls):
        cls.daemon.stop()
        cls.place.remove()

    def resolved(self, item):
        while "$ref" in item:
            path = item["$ref"].removeprefix("#/").split("/")
            item = self.document
            for part in path:
                item = item[part]
        return item

    def operations(self):
        return {(method, path): operation for path, item in self.document["paths"].items()
                for method, operation in item.items()}

    def target(self, path, operation, given):
        query = {name: self.told.get(value[1:-1], value) for name, value in given.items()}
        for parameter in map(self.resolved, operation["parameters"]):
            example = str(parameter["example"])
            if parameter["in"] == "path":
                path = path.replace("{%s}" % parameter["name"], urllib.parse.quote(example, safe=""))
            elif parameter["required"]:
                query.setdefault(parameter["name"], example)
            self.assertIn(parameter["in"], ("path", "query"))
        known = {self.resolved(p)["name"] for p in operation["parameters"]}
        self.assertLessEqual(set(query), known, path)
        return path + ("?" + urllib.parse.urlencode(query) if query else "")

    def call(self, method, path, given):
        operation = self.operations()[method, path]
        body, headers = None, dict(self.headers)
        if "requestBody" in operation:
            kind, media = next(iter(operation["requestBody"]["content"].items()))
            body = media["example"].encode()
            headers["Content-Type"] = "application/octet-stream" if kind == "*/*" else kind
        target = self.target(path, operation, given)
        status, answered, text = self.daemon.exchange(method.upper(), target, body, headers)
        told = f"{method} {target}: {status} {text[:200]}"
        self.assertIn(str(status), operation["responses"], told)
        self.assertEqual(status // 100, 2, told)
        content = self.resolved(operation["responses"][str(status)]).get("content", {})
        kind = answered.get("Content-Type", "").split(";")[0]
        if text:
            self.assertTrue(kind in content or "*/*" in content, (told, kind))
        if kind == "application/json":
            answer = json.loads(text)
            self.told.update((k, v) for k, v in answer.items() if isinstance(v, str))
        return status, text

    def take_targets_out(self):
        """Of a target that is configured no place is dropped."""
        self.place.write_config()
        self.daemon.process.send_signal(signal.SIGHUP)
        until(lambda: "changed: forward" in self.daemon.log(), "no target is configured")

    def test_the_document_is_valid(self):
        try:
            import openapi_spec_validator
        except ImportError:
            self.skipTest("openapi-spec-validator of PyPI is not installed")
        self.assertEqual(self.document["openapi"], "3.1.0")
        openapi_spec_validator.validate(self.document)

    def test_every_route_answers_as_documented(self):
        self.assertEqual(sorted((m, p) for m, p, _ in CALLS), sorted(self.operations()))
        for method, path, given in CALLS:
            with self.subTest(route=f"{method} {path}"):
                if (method, path) == ("delete", "/api/v1/forward"):
                    self.take_targets_out()
                self.call(method, path, given)
                if (method, path) == ("post", "/api/v1/tokens"):
                    self.headers["Authorization"] = "Bearer " + self.told["token"]

    def test_what_is_refused_is_documented(self):
        for (method, path), operation in self.operations().items():
            target = self.target(path, operation, {}).split("?")[0] + "?no-such-parameter=1"
            with self.subTest(route=f"{method} {path}"):
                status, answered, text = self.daemon.exchange(
                    method.upper(), target, None, {"Origin": "http://elsewhere.example"})
                self.assertIn(str(status), operation["responses"], text)
                if status // 100 == 2:
                    self.assertNotIn(method, ("post", "put", "delete"))
                    continue
                response = self.resolved(operation["responses"][str(status)])
                self.assertEqual(answered["Content-Type"], "application/json")
                schema = self.resolved(response["content"]["application/json"]["schema"])
                self.assertLessEqual(set(schema["required"]), set(json.loads(text)), text)


if __name__ == "__main__":
    unittest.main()
