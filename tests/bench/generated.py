"""The part of a page that a program writes: it lies between two lines that say so, or comes to its end."""


def put_between(path, begin, end, text):
    """`text` begins and ends with these lines itself."""
    with open(path, encoding="utf-8") as page:
        before = page.read()
    if begin not in before:
        before = f"{before.rstrip()}\n\n{begin}\n{end}\n"
    start, stop = before.index(begin), before.index(end) + len(end)
    with open(path, "w", encoding="utf-8") as page:
        page.write(before[:start] + text + before[stop:])
