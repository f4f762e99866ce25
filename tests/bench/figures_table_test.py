#!/usr/bin/env python3
"""FIGURES.md as figures_table.py writes it: what was measured again, and what keeps the run it is of."""
import unittest

import figures_table

RUN = ["2026-01-02", "abcdef0", "0.1.0", "1 x Board, 1 GiB", "3, seeds 1 to 3", "0.1"]
LATER = ["2026-02-03", "1234567", "0.1.0", "1 x Board, 1 GiB", "1, seeds 1 to 1", "9.0"]


def report(label, **fields):
    return {"label": label, "seed": 1, "version": "0.1.0", **fields}


def rows(page):
    return {row[0]: row[1:] for row in figures_table.tables_of(page)["figure"]}


def runs(page):
    return {row[0]: row[1:] for row in figures_table.tables_of(page)["run"]}


class FiguresTableTest(unittest.TestCase):
    def setUp(self):
        reports = [report("fillseq", ops_per_second=rate) for rate in (3e6, 1e6, 2e6)]
        reports.append(report("footprint", start_ms=60))
        self.page = figures_table.page("", reports, RUN)

    def test_a_figure_is_the_median_and_its_range(self):
        self.assertEqual(rows(self.page)["fillseq, 50 B"],
                         ["", "2,000,000 puts/s", "1,000,000–3,000,000", "a"])
        self.assertEqual(runs(self.page), {"a": RUN})

    def test_what_is_not_measured_again_keeps_its_run(self):
        page = figures_table.page(self.page, [report("fillseq", ops_per_second=5e6)], LATER)
        self.assertEqual(rows(page)["fillseq, 50 B"], ["", "5,000,000 puts/s", "5,000,000–5,000,000", "b"])
        self.assertEqual(rows(page)["start on an empty store"][-1], "a")
        self.assertEqual(runs(page), {"a": RUN, "b": LATER})

    def test_a_run_that_has_no_row_left_goes(self):
        again = [report("fillseq", ops_per_second=5e6), report("footprint", start_ms=10)]
        page = figures_table.page(self.page, again, LATER)
        self.assertEqual(runs(page), {"a": LATER})

    def test_missed_aims_are_named(self):
        self.assertIn("- start on an empty store: 60.0 ms, aim ≤ 50", self.page)
        self.assertNotIn("- fillseq", self.page)
        for aim, value, is_missed in (("≥ 5 M", "4,999,999 readings/s", True), ("≥ 5 M", "5,000,000 readings/s", False),
                                      ("≤ 2", "2.01", True),
                                      ("≤ 20", "3.6 MB", False), ("≤ 1000", "30 ms", False), ("", "1", False)):
            self.assertEqual(figures_table.is_missed(aim, value), is_missed, (aim, value))

    def test_a_subject_stands_once_and_names_come_back_whole(self):
        names = ["a", "a: its peak", "a: its end", "b: x: y", "b: x: z", "b: w", "c"]
        short = list(figures_table.shortened(names))
        self.assertEqual(short, ["a", "… its peak", "… its end", "b: x: y", "… z", "b: w", "c"])
        self.assertEqual(list(figures_table.lengthened(short)), names)
        names = [figure[0] for figure in figures_table.FIGURES]
        self.assertEqual(list(figures_table.lengthened(figures_table.shortened(names))), names)

    def test_names_are_one_row_each_and_a_page_without_news_stays(self):
        names = [figure[0] for figure in figures_table.FIGURES]
        self.assertEqual(len(names), len(set(names)))
        self.assertEqual(figures_table.page(self.page, [], RUN), self.page)


if __name__ == "__main__":
    unittest.main()
