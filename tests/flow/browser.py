"""Chromium without a window, driven over its DevTools protocol, by a pipe: what a user does, and what shows."""
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

from daemon_process import TIME_LIMIT_SECONDS

_POLL_SECONDS = 0.02


def program():
    """Chromium's path; None where there is none."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Browser:
    """One browser with one tab, of a profile that is gone with it."""

    def __init__(self):
        self.profile = tempfile.mkdtemp(prefix="ec-browser-")
        down_read, self.down = os.pipe()
        self.up, up_write = os.pipe()
        # The pipe is expected at 3 and 4.
        self.process = subprocess.Popen(
            ["sh", "-c", f'exec "$0" "$@" 3<&{down_read} 4>&{up_write}', program(), "--headless=new", "--no-sandbox",
             "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking",
             "--disable-component-update", "--remote-debugging-pipe", f"--user-data-dir={self.profile}",
             "--force-color-profile=srgb", "about:blank"],
            pass_fds=(down_read, up_write), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        os.close(down_read)
        os.close(up_write)
        self.buffer = b""
        self.number = 0
        self.session = None
        self.errors = []  # of the console, exceptions, what the policy blocked
        self.requests = []
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(each for each in targets if each["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=page["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.down)
        os.close(self.up)
        shutil.rmtree(self.profile, ignore_errors=True)

    def _receive(self, deadline):
        while b"\0" not in self.buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.up], [], [], left)[0]:
                raise AssertionError("the browser does not answer")
            data = os.read(self.up, 1 << 20)
            if not data:
                raise AssertionError("the browser has ended")
            self.buffer += data
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def _note(self, message):
        method, given = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            details = given["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Runtime.consoleAPICalled" and given["type"] in ("error", "assert"):
            self.errors.append(" ".join(str(each.get("value", each.get("description"))) for each in given["args"]))
        elif method == "Log.entryAdded":
            entry = given["entry"]
            # An answer such as 401 is no fault of the page's; it shows what it means.
            if entry["level"] == "error" and entry["source"] != "network":
                self.errors.append(entry["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(given["request"]["url"])

    def call(self, method, **parameters):
        """The result of a command of the protocol."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.down, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + TIME_LIMIT_SECONDS
        while True:
            answer = self._receive(deadline)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise AssertionError(f"{method}: {answer['error']}")
                return answer["result"]
            self._note(answer)

    def run(self, script):
        """What a JavaScript expression comes to, once it is settled."""
        result = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in result:
            details = result["exceptionDetails"]
            raise AssertionError(f"{script}: {details.get('exception', {}).get('description', details)}")
        return result["result"].get("value")

    def until(self, script, what=None):
        """The value of an expression once it is true."""
        deadline = time.monotonic() + TIME_LIMIT_SECONDS
        while time.monotonic() < deadline:
            if value := self.run(script):
                return value
            select.select([], [], [], _POLL_SECONDS)
        raise AssertionError(f"never: {what or script}; it shows: {self.text()}")

    def until_shows(self, text):
        self.until(f"document.body.innerText.includes({json.dumps(text)})", f"shows {text!r}")

    def text(self):
        return self.run("document.body.innerText")

    def size(self, width, height, dark=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                  mobile=width < 600)
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
                            {"name": "prefers-reduced-motion", "value": "reduce"}])

    def go(self, url):
        self.call("Page.navigate", url=url)
        self.until("document.readyState === 'complete'")

    def type(self, text):
        self.call("Input.insertText", text=text)

    def press(self, key, modifiers=0):
        codes = {"Enter": 13, "Escape": 27, "Tab": 9, "ArrowDown": 40, "ArrowLeft": 37, "ArrowRight": 39}
        text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
        code = codes.get(key, ord(key) if len(key) == 1 else 0)
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, modifiers=modifiers,
                      **({"text": text} if kind == "keyDown" and text and not modifiers else {}))

    def click(self, selector):
        """Clicks the middle of an element, as a mouse does."""
        place = self.run("""(() => {
          const element = document.querySelector(%s);
          element.scrollIntoView({block: "center"});
          const box = element.getBoundingClientRect();
          return [box.x + box.width / 2, box.y + box.height / 2];
        })()""" % json.dumps(selector))
        self.drag([place, place])

    def drag(self, places):
        """Presses at the first place, moves over the others, lets go at the last."""
        for kind, (x, y) in ([("mouseMoved", places[0]), ("mousePressed", places[0])] +
                             [("mouseMoved", place) for place in places[1:]] + [("mouseReleased", places[-1])]):
            button = "none" if kind == "mouseMoved" and places[0] == places[-1] else "left"
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button=button, clickCount=1,
                      buttons=0 if kind == "mouseReleased" or button == "none" else 1)

    def picture(self, path):
        data = self.call("Page.captureScreenshot", format="png")["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))
