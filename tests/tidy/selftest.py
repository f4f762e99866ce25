"""Shows that every rule can fail: plants one violation after the other in a clean tree and expects its finding."""
import pathlib
import subprocess
import sys
import tempfile

import documents
import rules

_HEADER = "// A thing.\n#pragma once\n\n#include <string>\n"

# A tree in which no rule finds anything.
CLEAN = {
    "CMakeLists.txt": "project(edgecase)\n",
    "README.md": "# Top\n\n[the engine](engine/base/bytes_view.h), [its folder](engine/base/), [here](#top), "
                 "[a word](engine/base/README.md#words)\n\n| " + "word " * 90 + "|\n\n```\n" + "word\n" * 90 + "```\n",
    "engine/base/README.md": "# The base\n\n## `Words`\n",
    "engine/CMakeLists.txt": "add_library(edgecase_engine base/bytes_view.cc file/disk.cc)\n",
    "engine/include/edgecase/status.h": _HEADER,
    "engine/base/bytes_view.h": _HEADER + '#include "edgecase/status.h"\n',
    "engine/base/bytes_view.cc": '#include "base/bytes_view.h"\n// throw, sleep_for(1), TODO(#7)\n',
    "engine/file/disk.cc": '#include <fcntl.h>\n#include "base/bytes_view.h"\n',
    "engine/log/log.h": _HEADER,
    "daemon/CMakeLists.txt": "add_library(edgecase_wire wire/reading.cc)\n",
    "daemon/app/serve.h": _HEADER,
    "daemon/app/daemon.h": _HEADER + '#include "wire/reading.h"\n',
    "daemon/wire/reading.h": _HEADER + "#include <nlohmann/json.hpp>\n",
    "daemon/wire/reading.cc": '#include "wire/reading.h"\n',
    "daemon/auth/authorize.h": _HEADER + '#include "wire/reading.h"\n',
    "daemon/query/query_service.h": _HEADER,
    "cli/CMakeLists.txt": "add_executable(edgecase main.cc)\n",
    "cli/main.cc": '#include <CLI/CLI.hpp>\n#include "app/serve.h"\n#include "wire/reading.h"\n',
    "tests/CMakeLists.txt": "add_executable(engine_tests engine/base/bytes_view_test.cc)\n",
    "tests/engine/base/bytes_view_test.cc":
        '#include <doctest/doctest.h>\n#include "base/bytes_view.h"\nTEST_CASE("x") { listen("127.0.0.1:0"); }\n',
}

# Rule, file, what replaces its text (or what stands in a new file), the line of the finding.
PLANTS = [
    ("include", "engine/include/edgecase/status.h", _HEADER + '#include "base/bytes_view.h"\n', 5),
    ("include", "engine/include/edgecase/status.h", _HEADER + "#include <unistd.h>\n", 5),
    ("include", "engine/base/bytes_view.h", _HEADER + '#include "log/log.h"\n', 5),
    ("include", "engine/base/bytes_view.h", _HEADER + "#include <unistd.h>\n", 5),
    ("include", "engine/base/bytes_view.h", _HEADER + '#include "wire/reading.h"\n', 5),
    ("include", "engine/base/bytes_view.h", _HEADER + "#include <nlohmann/json.hpp>\n", 5),
    ("include", "engine/base/bytes_view.h", _HEADER + "#include <boost/any.hpp>\n", 5),
    ("include", "engine/novel/thing.h", _HEADER + '#include "base/bytes_view.h"\n', 5),
    ("include", "daemon/wire/reading.h", _HEADER + '#include "auth/authorize.h"\n', 5),
    ("include", "daemon/query/query_service.h", _HEADER + '#include "app/daemon.h"\n', 5),
    ("include", "daemon/query/query_service.h", _HEADER + '#include "base/bytes_view.h"\n', 5),
    ("include", "daemon/query/query_service.h", _HEADER + "#include <httplib.h>\n", 5),
    ("include", "daemon/wire/reading.h", _HEADER + '#include "wire/lost.h"\n', 5),
    ("include", "cli/main.cc", '#include "app/daemon.h"\n', 1),
    ("include", "cli/main.cc", '#include "query/query_service.h"\n', 1),
    ("include", "cli/main.cc", "#include <toml++/toml.h>\n", 1),
    ("include", "tests/engine/base/bytes_view_test.cc", '#include "wire/reading.h"\n', 1),
    ("pragma-once", "daemon/app/serve.h", "#ifndef SERVE_H\n#define SERVE_H\n#endif\n", 1),
    ("using-namespace", "daemon/app/serve.h", _HEADER + "using namespace std;\n", 5),
    ("file-length", "cli/main.cc", "\n" * (rules.FILE_LINES_MAX + 1), rules.FILE_LINES_MAX),
    ("test-name", "tests/engine/base/bytes_view_test.cc", 'TEST_CASE("a; b") {}\n', 1),
    ("line-length", "cli/main.cc", "//" + "x" * 99 + "\n", 1),
    ("line-length", "tests/x.sh", "#" * 121 + "\n", 1),
    ("top-level", "scripts/x.txt", "", 1),
    ("machine-path", "README.md", "see /" + "home/somebody/x\n", 1),
    ("machine-path", "cli/main.cc", 'const char* kPlace = "/' + 'tmp/edgecase";\n', 1),
    ("todo", "cli/main.cc", "// TO" + "DO: later\n", 1),
    ("todo", "tests/x.sh", "# FIX" + "ME\n", 1),
    ("test-sleep", "tests/engine/base/bytes_view_test.cc", "\nstd::this_thread::sleep_for(a);\n", 2),
    ("test-sleep", "tests/x.sh", "start\nsleep 1\n", 2),
    ("test-sleep", "tests/x.py", "time.sleep(1)\n", 1),
    ("fixed-port", "tests/engine/base/bytes_view_test.cc", 'open("127.0.0.1:8650");\n', 1),
    ("fixed-port", "tests/x.sh", "mosquitto -p 1883 &\n", 1),
    ("cmake", "engine/base/hash.cc", '#include "base/bytes_view.h"\n', 1),
    ("libc64", "cli/main.cc", "\nint f() { return static_cast<off64_t>(1); }\n", 2),
    ("libc64", "cli/main.cc", "\nint f() { return ::fstat64(0, nullptr); }\n", 2),
    ("loop-temporary", "cli/main.cc", "\nfor (const auto& [n, file] : versions_->current()->files) n();\n", 2),
    ("loop-temporary", "cli/main.cc", "for (const auto& file :\n     set()->files) {\n}\n", 1),
    ("captured-binding", "tests/engine/base/bytes_view_test.cc",
     "void f() {\n  for (const auto& [path, bytes] : files) {\n    CAPTURE(path);\n  }\n}\n", 3),
    ("cmake", "cli/CMakeLists.txt", "# main.cc was here\nadd_executable(edgecase other_main.cc)\n", 1),
    ("message-text", "engine/base/bytes_view.cc", "\nbool f() { return s.message().find(t) != npos; }\n", 2),
    ("message-text", "cli/main.cc", "\nbool f() { return r.status().to_string().starts_with(t); }\n", 2),
    ("message-text", "cli/main.cc", "\nbool f() { return t == status->message(); }\n", 2),
    ("message-text", "cli/main.cc", "\nbool f() { return strerror(errno) == t; }\n", 2),
    ("message-text", "daemon/wire/reading.cc",
     "bool f() {\n  const std::string& text = status.message();\n  return text.substr(1) == a;\n}\n", 3),
    ("throw", "cli/main.cc", "\nint f() { throw 1; }\n", 2),
    ("lock", "daemon/app/serve.h", _HEADER + "class A {\n  std::mutex mutex_;\n};\n", 6),
    ("lock", "cli/main.cc", "\nvoid f() { const std::lock_guard lock(m); }\n", 2),
    ("lock", "daemon/app/serve.h", _HEADER + "class A {\n  mutable Mutex mutex_;\n};\n", 6),
    ("name", "daemon/app/DaemonApp.h", _HEADER, 1),
    ("name", "daemon/app/string_utils.h", _HEADER, 1),
    ("mirror", "tests/engine/gone/thing_test.cc", "", 1),
    ("mirror", "tests/engine/base/thing.cc", 'TEST_CASE("x") {}\n', 1),
    ("link", "README.md", "[gone](engine/gone.h)\n", 1),
    ("link", "README.md", "# Top\n\n[gone](#bottom)\n", 3),
    ("link", "README.md", "[words](engine/base/README.md#word)\n", 1),
    ("comment-start", "cli/main.cc", "int a;\n\n// Of the last one.\nint b;\n", 3),
    ("comment-start", "daemon/wire/reading.h", "// Who reads it.\n" + _HEADER, 1),
    ("comment-start", "daemon/wire/reading.h", "// How it is read.\n" + _HEADER, 1),
    ("comment-start", "cli/main.cc", "// A thing.\n//\n// So many of them.\nint b;\n", 3),
    ("page-line", "README.md", "\n" + "x" * (documents.LINE_COLUMNS_MAX + 1) + "\n", 2),
    ("paragraph", "README.md", "# Top\n\n" + "word\n" * (documents.PARAGRAPH_WORDS_MAX + 1), 3),
    ("paragraph", "README.md", "- short\n- " + "word " * (documents.PARAGRAPH_WORDS_MAX + 1), 2),
    ("page-words", "engine/README.md", "word\n\n" * (documents.PAGE_WORDS_MAX["engine/README.md"] + 1), 1),
    ("page-words", "engine/base/DESIGN.md", "word\n\n" * (documents.PAGE_WORDS_MAX["DESIGN.md"] + 1), 1),
    ("page-words", "packaging/recipes/x.md", "word\n\n" * (documents.RECIPE_WORDS_MAX + 1), 1),
    ("page-words", "README.md", "word\n\n" * (documents.PAGE_WORDS_MAX[".md"] + 1), 1),
    ("page-words", "README.md", "word\n\n" * (documents.ALL_WORDS_MAX + 1), 1),
    ("promise", "tests/PROMISES.md", "# Promises\n\n- Kept: `gone: …`\n", 3),
    ("promise", "tests/PROMISES.md", "- Kept: `flow_gone`\n", 1),
    ("promise", "tests/PROMISES.md", "- Kept: `tests/flow/gone.sh`\n", 1),
]


def _found(files):
    return rules.check(rules.Tree(files))


def _write(files, top):
    for path, text in files.items():
        place = pathlib.Path(top) / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")


def _exit_code_for(files):
    """What the program itself says about such a tree on a drive."""
    with tempfile.TemporaryDirectory() as top:
        _write(files, top)
        program = pathlib.Path(__file__).with_name("run")
        return subprocess.run([sys.executable, str(program), top], capture_output=True, check=False).returncode


def run():
    """Returns the exit code."""
    wrong = []
    if _found(CLEAN):
        wrong.append(f"finds something in the clean tree: {_found(CLEAN)}")
    for rule, path, text, line in PLANTS:
        findings = _found({**CLEAN, path: text})
        # A source planted to be unlisted is found under its own name; the CMake plant under the source's.
        where = "cli/main.cc" if path == "cli/CMakeLists.txt" else path.split("/")[0] if rule == "top-level" else path
        if not any(finding.startswith(f"{where}:{line}: {rule}:") for finding in findings):
            wrong.append(f"{rule}: does not find {text[-60:]!r} in {path}; found {findings}")
    planted = {rule for rule, _, _, _ in PLANTS}
    wrong += [f"{rule}: nothing is planted for it" for rule in rules.RULES if rule not in planted]

    excused = {
        "tests/x.sh": "# tidy: allow test-sleep: waits for a clock tick\nsleep 1\n",
        "tests/y.sh": "sleep 1\n# tidy: allow-file test-sleep: measures sleeping\n",
    }
    if _found({**CLEAN, **excused}):
        wrong.append(f"an excused line is found: {_found({**CLEAN, **excused})}")
    if not _found({**CLEAN, "tests/x.sh": "# tidy: allow test-sleep:\nsleep 1\n"}):
        wrong.append("an excuse without a reason is accepted")
    if _exit_code_for(CLEAN) != 0 or _exit_code_for({**CLEAN, "cli/main.cc": "// TO" + "DO\n"}) != 1:
        wrong.append("the exit code does not tell a clean tree from another")

    for line in wrong:
        print(f"self-test: {line}")
    print(f"tidy self-test: {len(PLANTS)} violations planted, {len(wrong)} problems")
    return 1 if wrong else 0
