"""``t3 report``: output folders as one HTML file that needs no network (docs/guides/report.md)."""
