import os

import pytest

os.environ["SCHEDC_NO_CACHE"] = "1"
"""Tests compute all anew, also in the processes that they start; those of the cache have one of their own."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="Write the golden files anew instead of comparing.")
