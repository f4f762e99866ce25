"""The rules. Each is a generator over the tree that yields (file, line, what is wrong); RULES names them all."""
import os
import pathlib
import re
import subprocess

import documents
import includes

TOP_LEVEL = {
    "CMakeLists.txt", "CMakePresets.json", "README.md", "LICENSE",
    "engine", "daemon", "cli", "tests", "toolchains", "packaging",
}
FILE_LINES_MAX = 500
# One lock that is handed to the caller, held or not, which no analysis follows: of moves of undated readings.
LOCKS_HANDED_OUT = ("daemon/ingest/reading_times.cc", "daemon/ingest/redating.cc", "daemon/ingest/reading_times.h")
LINE_COLUMNS_MAX = {".h": 100, ".cc": 100, ".py": 120, ".sh": 120, ".cmake": 120, ".txt": 120}


class Tree:
    """Paths, relative to the top and with `/`, and their texts; None for what is no UTF-8 text."""

    def __init__(self, files):
        self.files = files

    @staticmethod
    def read(top):
        listed = subprocess.run(
            ["git", "-C", str(top), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            capture_output=True, check=False)
        if listed.returncode == 0 and listed.stdout:
            names = listed.stdout.decode().rstrip("\0").split("\0")
        else:  # an exported tree without git
            names = [os.path.relpath(os.path.join(at, name), top)
                     for at, _, found in os.walk(top) for name in found]
            names = [name for name in names if not re.match(r"(\./)?(build|\.git|\.cache)/", name)]
        files = {}
        for name in names:
            path = pathlib.Path(top) / name
            if path.is_file():
                try:
                    files[name] = path.read_text(encoding="utf-8")
                except UnicodeDecodeError:
                    files[name] = None
        return Tree(files)

    def texts(self, *suffixes, under=""):
        for path in sorted(self.files):
            if path.startswith(under) and path.endswith(suffixes) and self.files[path] is not None:
                yield path, self.files[path]


def without_comments(text):
    """The C++ text with comments and literals blanked, line numbers kept."""
    pattern = r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\''
    return re.sub(pattern, lambda found: re.sub(r"[^\n]", " ", found.group()), text, flags=re.S)


def lines_with(pattern, text):
    for number, line in enumerate(text.splitlines(), 1):
        if re.search(pattern, line):
            yield number, line.strip()


def rule_include(tree):
    """who may include whom, and where third-party headers are named"""
    for path, text in tree.texts(".h", ".cc"):
        for number, what in includes.complaints(path, text, tree.files):
            yield path, number, what


def rule_pragma_once(tree):
    """a header starts with #pragma once, after its comment"""
    for path, text in tree.texts(".h"):
        code = [line for line in without_comments(text).splitlines() if line.strip()]
        if not code or code[0].strip() != "#pragma once":
            yield path, 1, "the first line after the comment is not #pragma once"


def rule_using_namespace(tree):
    """no `using namespace` in a header"""
    for path, text in tree.texts(".h"):
        for number, _ in lines_with(r"\busing\s+namespace\b", without_comments(text)):
            yield path, number, "using namespace in a header"


def rule_file_length(tree):
    """no source is longer than a reader's patience"""
    for path, text in tree.texts(".h", ".cc", ".py", ".sh"):
        count = len(text.splitlines())
        if count > FILE_LINES_MAX:
            yield path, FILE_LINES_MAX, f"{count} lines, at most {FILE_LINES_MAX}: split it by idea"


def rule_test_name(tree):
    """the name of a test holds no `;`, at which CMake would cut it in two that do not exist"""
    for path, text in tree.texts("_test.cc"):
        for number, line in lines_with(r'TEST_CASE\("[^"]*;', text):
            yield path, number, f"a semicolon in a test's name: {line.strip()[:80]}"


def rule_line_length(tree):
    """no line is wider than its kind of file allows"""
    for path, text in tree.texts(*LINE_COLUMNS_MAX):
        limit = LINE_COLUMNS_MAX[os.path.splitext(path)[1]]
        for number, line in enumerate(text.splitlines(), 1):
            if len(line) > limit:
                yield path, number, f"{len(line)} columns, at most {limit}"


def rule_top_level(tree):
    """the top holds the agreed entries and no other"""
    for entry in sorted({path.split("/")[0] for path in tree.files}):
        if entry not in TOP_LEVEL and not entry.startswith("."):
            yield entry, 1, "not one of the agreed top-level entries"


def rule_machine_path(tree):
    """no path of somebody's machine"""
    pattern = r"(?<![\w.}$*)\]>-])/(home|root|Users|work)/\w"
    for path, text in tree.texts(""):
        for number, line in lines_with(pattern, text):
            yield path, number, f"a path of one machine: {line[:80]}"
    for path, text in tree.texts(".h", ".cc"):
        for number, line in lines_with(r'"/tmp/', text):
            yield path, number, "a fixed place under the temporary directory; make a private one"


def rule_todo(tree):
    """unfinished work names the issue that finishes it"""
    for path, text in tree.texts(".h", ".cc", ".py", ".sh", ".cmake", ".txt"):
        if path.startswith("tests/tidy/"):
            continue
        for number, line in lines_with(r"\b(TODO|FIXME|XXX|HACK)\b(?!\(#\d+\))", text):
            yield path, number, f"without an issue, TODO(#12): {line[:80]}"


def rule_test_sleep(tree):
    """tests wait for something to happen, not for time to pass"""
    for path, text in tree.texts(".h", ".cc", under="tests/"):
        if path.startswith("tests/bench/") and not path.endswith("_test.cc"):
            continue  # a program that measures, at rates
        pattern = r"\b(sleep_for|sleep_until|usleep|nanosleep|sleep)\s*\("
        for number, _ in lines_with(pattern, without_comments(text)):
            yield path, number, "sleeps"
    for path, text in tree.texts(".py", ".sh", under="tests/"):
        if path.startswith("tests/tidy/"):
            continue
        for number, _ in lines_with(r"^[^#]*\bsleep(\(| +[\d.\"$])", text):
            yield path, number, "sleeps"


def rule_fixed_port(tree):
    """tests let the system choose the port"""
    pattern = r"(127\.0\.0\.1|localhost|\[::1\]|0\.0\.0\.0):\d{2,5}\b|\bport\s*[=(]\s*\d{4,5}\b| -p \d{4,5}\b"
    for path, text in tree.texts(".h", ".cc", ".py", ".sh", under="tests/"):
        # Parsing an address opens no port: these speak of the contract's defaults.
        if path.startswith(("tests/tidy/", "tests/daemon/config/")):
            continue
        for number, line in lines_with(pattern, text):
            yield path, number, f"a fixed port: {line[:80]}"


def rule_cmake(tree):
    """every source is listed by name in its folder's CMakeLists.txt"""
    for path, _ in tree.texts(".cc"):
        top, _, rest = path.partition("/")
        listing = tree.files.get(f"{top}/CMakeLists.txt") or ""
        code = re.sub(r"#[^\n]*", "", listing)
        if not re.search(rf"(?<![\w/.-]){re.escape(rest)}(?![\w/.-])", code):
            yield path, 1, f"not listed in {top}/CMakeLists.txt"


def rule_throw(tree):
    """we throw nothing"""
    for top in ("engine/", "daemon/", "cli/"):
        for path, text in tree.texts(".h", ".cc", under=top):
            for number, _ in lines_with(r"\bthrow\b", without_comments(text)):
                yield path, number, "throws; return a Status"


def rule_libc64(tree):
    """no name with a 64 that glibc has and musl has not: off_t has 64 bits wherever we run"""
    calls = "f?l?stat|fstatat|statv?fs|fstatv?fs|open|openat|creat|lseek|p?(?:read|write)v?|mmap|f?truncate|fallocate"
    calls += "|posix_fadvise|posix_fallocate|readdir|sendfile|mkstemp|[gs]etrlimit"
    pattern = rf"\b(?:off|ino|blkcnt|fsblkcnt|fsfilcnt|rlim)64_t\b|\b(?:{calls})64\b"
    for top in ("engine/", "daemon/", "cli/"):
        for path, text in tree.texts(".h", ".cc", under=top):
            for number, line in lines_with(pattern, without_comments(text)):
                yield path, number, f"musl does not have it; the name without 64: {line[:80]}"


def rule_loop_temporary(tree):
    """nothing loops over a part of what a call returned: C++20 lets go of the whole before the first turn"""
    pattern = r"\bfor \((?:[^;{}]*;)?[^;:{}]*[^:]:(?!:)[^;{}]*\)->\w+\) "
    for path, text in tree.texts(".h", ".cc"):
        code = without_comments(text)
        for found in re.finditer(pattern, code):
            number = code.count("\n", 0, found.start()) + 1
            yield path, number, "loops over a part of what a call returned; name the whole"


def rule_captured_binding(tree):
    """no message of doctest names a structured binding: it is a lambda, and Clang lets none capture one"""
    for path, text in tree.texts(".cc", under="tests/"):
        lines = without_comments(text).splitlines()
        for number, line in enumerate(lines):
            found = re.search(r"^( *).*\bauto(?: const)? ?&{0,2} ?\[(\w+(?:, ?\w+)*)\]", line)
            if not found:
                continue
            names = "|".join(re.split(r", ?", found[2]))
            inside = found[1] + (" " if line.lstrip().startswith(("for (", "if (")) else "")
            for later, other in enumerate(lines[number + 1:], number + 2):
                if other.strip() and not other.startswith(inside):
                    break
                if re.search(rf"\b(CAPTURE|INFO)\(.*\b({names})\b", other):
                    yield path, later, "a message names a structured binding; give it a name of its own"


def rule_lock(tree):
    """locks are the face's, which Clang checks, and say what they guard"""
    foreign = r"\bstd::(recursive_|shared_|timed_)*(mutex|condition_variable(_any)?)\b"
    foreign += r"|\bstd::(lock_guard|unique_lock|scoped_lock|shared_lock)\b"
    for top in ("engine/", "daemon/", "cli/"):
        for path, text in tree.texts(".h", ".cc", under=top):
            if path == "engine/include/edgecase/mutex.h" or path in LOCKS_HANDED_OUT:
                continue
            code = without_comments(text)
            for number, _ in lines_with(foreign, code):
                yield path, number, "a lock that no compiler checks; edgecase/mutex.h has those it does"
            for found in re.finditer(r"^ +(?:mutable )?(?:Shared)?Mutex (\w+_);", code, re.M):
                if not re.search(rf"\bEC_\w+\([^)]*\b{found[1]}\b", code):
                    yield path, code.count("\n", 0, found.start()) + 1, f"nothing says what {found[1]} is held for"


def rule_name(tree):
    """files are named in snake_case, after what they are"""
    for path, _ in tree.texts(".h", ".cc"):
        stem = path.rsplit("/", 1)[-1].rsplit(".", 1)[0]
        if not re.fullmatch(r"[a-z0-9_]+", stem):
            yield path, 1, "the file's name is not in snake_case"
        if re.search(r"(^|_)(utils?|manager|helpers?|common|misc)(_|$)", stem):
            yield path, 1, "the file's name says nothing of what it holds"


def rule_mirror(tree):
    """tests lie where their sources lie, in files named x_test.cc"""
    folders = {path.rsplit("/", 1)[0] for path in tree.files}
    for path, text in tree.texts(".cc", under="tests/"):
        area = path.split("/")[1]
        if area not in ("engine", "daemon", "cli"):
            continue
        if "TEST_CASE" in text and not path.endswith("_test.cc"):
            yield path, 1, "holds test cases, but is not named x_test.cc"
        folder = path.rsplit("/", 1)[0][len("tests/"):]
        if folder not in folders and folder.replace("engine", "engine/include/edgecase", 1) not in folders:
            yield path, 1, f"there is no folder {folder} for it to mirror"


def rule_message_text(tree):
    """nothing is decided by the words of an error: a Status has a code, a drive, an errno and a file"""
    words = r"(?:\.|->)(?:message|to_string|what)\(\)|\b(?:strerror|error_text)\([^()]*\)"
    look = r"\.(?:r?find(?:_\w+)?|starts_with|ends_with|contains|substr|compare|remove_prefix|at)\b|\s*[!=]="
    kept = r"\b(?:auto|string|string_view|String)&?\s+(\w+)\s*(?:=\s*|\(|\{)[\w.>()\[\]:-]*" + f"(?:{words})\\s*[;)}}]"
    for path, text in tree.texts(".h", ".cc"):
        if not path.startswith(("engine/", "daemon/", "cli/")):
            continue
        code = without_comments(text)
        for found in re.finditer(rf"(?:{words})\s*(?:{look})|[!=]=\s*[\w.>-]+(?:{words})", code):
            yield path, code.count("\n", 0, found.start()) + 1, "looks into the words of an error; ask its facts"
        for found in re.finditer(kept, code):
            # As far as the end of the function, which stands in the first column.
            rest = code[found.end():]
            rest = rest[:(re.search(r"^}", rest, re.M) or re.search(r"\Z", rest)).start()]
            name = re.escape(found.group(1))
            for use in re.finditer(rf"\b{name}\s*(?:{look})|[!=]=\s*{name}\b(?!\s*[.(-])", rest):
                at = found.end() + use.start()
                yield path, code.count("\n", 0, at) + 1, "looks into the words of an error; ask its facts"


RULES = {
    function.removeprefix("rule_").replace("_", "-"): rule
    for function, rule in {**vars(documents), **globals()}.items() if function.startswith("rule_")
}


def allowed(tree, path, number, rule):
    """Whether a comment of the file excuses this finding, with a reason."""
    text = tree.files.get(path)
    if not text:
        return False
    if re.search(rf"tidy: allow-file {rule}: \S", text):
        return True
    lines = text.splitlines()
    near = lines[max(0, number - 2):number]
    return any(re.search(rf"tidy: allow {rule}: \S", line) for line in near)


def check(tree):
    """All findings as lines of text."""
    return [f"{path}:{number}: {name}: {what}"
            for name, rule in RULES.items()
            for path, number, what in rule(tree) if not allowed(tree, path, number, name)]
