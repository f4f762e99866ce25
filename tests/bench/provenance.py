"""What figures say of where they come from: the day, the commit, the machine, and how busy that was."""
import datetime
import os
import platform
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))


def today():
    return datetime.datetime.now(datetime.timezone.utc).date().isoformat()


def commit():
    answer = subprocess.run(["git", "-C", HERE, "rev-parse", "--short=7", "HEAD"], check=False,
                            capture_output=True, text=True).stdout.strip()
    return answer or "unknown"


def system():
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", "")
    except OSError:
        return ""


def machine():
    """Processors, memory, system and kernel, in one line."""
    model = ""
    with open("/proc/cpuinfo", encoding="utf-8") as lines:
        for line in lines:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    with open("/proc/meminfo", encoding="utf-8") as lines:
        memory = int(lines.readline().split()[1]) / 1024 / 1024
    parts = [f"{os.cpu_count()} x {model or platform.machine()}", f"{memory:.0f} GiB", system(),
             f"Linux {platform.release().split('-')[0]}"]
    return ", ".join(part for part in parts if part)


def load():
    """Of the last fifteen minutes. More than processors and one: other work took a share."""
    return os.getloadavg()[2]


def is_shared():
    return load() > os.cpu_count() + 1
