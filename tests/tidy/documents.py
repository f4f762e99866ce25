"""The rules for prose: Markdown pages and how comments begin. rules.py takes them into its table."""
import os
import re

LINE_COLUMNS_MAX = 120
PARAGRAPH_WORDS_MAX = 80
# Of all pages and of one, as `wc -w` counts: bars of tables and arrows of pictures too.
ALL_WORDS_MAX = 20_000
RECIPES = "packaging/recipes/"
RECIPE_WORDS_MAX = 160
PROMISES = "tests/PROMISES.md"
# A page whose path ends so has at most so many words; the first that fits counts.
PAGE_WORDS_MAX = {
    "engine/README.md": 1_300,
    "daemon/README.md": 1_300,
    PROMISES: 1_700,
    "packaging/CHANGELOG.md": 1_000,
    "tests/bench/HISTORY.md": 700,
    "tests/bench/FIGURES.md": 2_000,
    "DESIGN.md": 1_000,
    ".md": 1_200,
}
# A comment names its thing first. These openings make the reader guess what is spoken of.
BAD_OPENINGS = ("Of", "Who", "So", "That", "Those", "Such")
# The first words of a file name what is in it; those of a test may be its question.
BAD_TOPS = BAD_OPENINGS + ("What", "Whether", "How", "Which", "Where", "When", "Why")


def count_words(text):
    """Words, not the bars and lines of tables and pictures."""
    return sum(1 for token in text.split() if re.search(r"\w", token))


def prose(text):
    """Yields (number, line, inside a code block) of each line; tables count as code."""
    fence = None
    for number, line in enumerate(text.splitlines(), 1):
        mark = re.match(r" *(```|~~~)", line)
        if mark and fence in (None, mark[1]):
            fence = None if fence else mark[1]
            yield number, line, True
        else:
            yield number, line, fence is not None


def paragraphs(text):
    """Yields (number of its first line, words) of each paragraph and list item outside of code and tables."""
    begin, words = None, 0
    for number, line, is_code in prose(text):
        bare = line.strip()
        ends = is_code or not bare or bare.startswith(("|", "#", "<!--"))
        item = re.match(r"([-*+]|\d+[.)]) ", bare)
        if (ends or item) and begin:
            yield begin, words
            begin, words = None, 0
        if not ends:
            begin = begin or number
            words += count_words(bare[item.end():] if item else bare)
    if begin:
        yield begin, words


def anchors(text):
    """The fragments that a page's headings can be reached by."""
    found = set()
    for _, line, is_code in prose(text):
        heading = re.match(r"#{1,6} +(.*?) *#*$", line)
        if heading and not is_code:
            plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading[1]).lower()
            slug = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
            count = sum(1 for known in found if re.fullmatch(re.escape(slug) + r"(-\d+)?", known))
            found.add(f"{slug}-{count}" if count else slug)
    return found


def rule_page_line(tree):
    """no line of a page is wider than an editor beside another, tables and links apart"""
    for path, text in tree.texts(".md"):
        for number, line in enumerate(text.splitlines(), 1):
            if len(line) > LINE_COLUMNS_MAX and not line.lstrip().startswith(("|", "[")):
                yield path, number, f"{len(line)} columns, at most {LINE_COLUMNS_MAX}"


def rule_paragraph(tree):
    """no paragraph of a page is longer than a breath"""
    for path, text in tree.texts(".md"):
        for number, words in paragraphs(text):
            if words > PARAGRAPH_WORDS_MAX:
                yield path, number, f"a paragraph of {words} words, at most {PARAGRAPH_WORDS_MAX}"


def rule_page_words(tree):
    """pages are maps: each, and all of them together, have a bound in words"""
    total = 0
    for path, text in tree.texts(".md"):
        count = len(text.split())
        total += count
        limit = next(most for end, most in PAGE_WORDS_MAX.items() if f"/{path}".endswith(end))
        limit = RECIPE_WORDS_MAX if path.startswith(RECIPES) else limit
        if count > limit:
            yield path, 1, f"{count} words, at most {limit}"
    if total > ALL_WORDS_MAX:
        yield "README.md", 1, f"all pages have {total} words, at most {ALL_WORDS_MAX}"


def rule_promise(tree):
    """a test that PROMISES.md names exists; a name that ends in "…" goes on"""
    literal = r'"((?:\\.|[^"\\])*)"'
    cases = ["".join(re.findall(literal, found[1]))
             for _, text in tree.texts(".cc", under="tests/")
             for found in re.finditer(rf"TEST_CASE\(\s*((?:{literal}\s*)+)", text)]
    for number, line in enumerate((tree.files.get(PROMISES) or "").splitlines(), 1):
        for name in re.findall(r"`([^`]+)`", line):
            begins = name.removesuffix("…").rstrip()
            flow = re.fullmatch(r"flow_(\w+)", name)
            if flow and f"tests/flow/{flow[1]}_flow_test.py" not in tree.files:
                yield PROMISES, number, f"there is no test {name}"
            elif name != begins and not any(case.startswith(begins) for case in cases):
                yield PROMISES, number, f"no test's name begins so: {begins}"
            elif name.startswith("tests/") and name.endswith(".sh") and name not in tree.files:
                yield PROMISES, number, f"there is no {name}"


def rule_link(tree):
    """a link in a page leads to a file of the tree, and to a heading of that page"""
    folders = {path.rsplit("/", count)[0] for path in tree.files for count in range(1, path.count("/") + 1)}
    for path, text in tree.texts(".md"):
        here = os.path.dirname(path)
        for number, line, is_code in prose(text):
            for target, fragment in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)", "" if is_code else line):
                if re.match(r"[a-z]+:", target):
                    continue
                aim = os.path.normpath(os.path.join(here, target)) if target else path
                if aim not in tree.files and aim not in folders:
                    yield path, number, f"leads nowhere: {target}"
                elif fragment and fragment not in anchors(tree.files.get(aim) or ""):
                    yield path, number, f"leads to no heading: {target}#{fragment}"


def rule_comment_start(tree):
    """a comment names its thing first; it does not begin in the middle ("Of those that ...")"""
    for path, text in tree.texts(".h", ".cc"):
        before = ""
        for number, line in enumerate(text.splitlines(), 1):
            comment = re.match(r"\s*//(.*)", line)
            goes_on = comment and before.strip("/ ")
            is_top = number == 1 and not re.search(r"^tests/.*\.cc$", path)
            openings = "|".join(BAD_TOPS if is_top else BAD_OPENINGS)
            begins = re.match(rf"\s*// ?(({openings})\b[^:=(]*)", line)
            if begins and not goes_on:
                yield path, number, f"begins in the middle: {begins[1][:60].rstrip()}"
            before = comment[0].strip() if comment else ""
