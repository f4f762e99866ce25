"""The part of a page that a program writes: it lies between two lines that say so."""


def put_between(path, begin, end, text):
    """`text` begins and ends with these lines itself."""
    with open(path, encoding="utf-8") as page:
        before = page.read()
    start, stop = before.index(begin), before.index(end) + len(end)
    with open(path, "w", encoding="utf-8") as page:
        page.write(before[:start] + text + before[stop:])
