"""The committed table of full-size compiles is of the programs that schedc makes now."""

from __future__ import annotations

import pytest

from benchmarks.full_size.cases import Case, load_cases, program_hash
from benchmarks.full_size.table import PAGE, as_page, read_table

CASES = load_cases()


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.label)
def test_a_program_is_the_one_its_rows_were_measured_of(case: Case) -> None:
    measured = {row.program for row in read_table() if row.key[:3] == (case.name, case.rows, case.context)}
    assert measured == {program_hash(case)}, "run `python -m benchmarks.full_size` and commit its table"


def test_every_case_has_a_row_and_no_row_is_left_over() -> None:
    assert {row.key[:3] for row in read_table()} == {(case.name, case.rows, case.context) for case in CASES}


def test_every_row_fits_vmem_and_compiled_within_two_minutes() -> None:
    for row in read_table():
        assert row.vmem_bytes <= row.vmem_limit_bytes, row
        assert row.compile_seconds < 120, row
        assert row.code_bytes < 8_000_000, row


def test_every_row_of_kimi_k3_is_within_what_was_asked_of_it() -> None:
    rows = [row for row in read_table() if row.case.startswith("kimi-k3")]
    assert len(rows) == 2 * 8
    for row in rows:
        assert row.vmem_bytes <= 62 * 2**20, row


def test_the_page_of_the_docs_is_made_of_the_table() -> None:
    assert PAGE.read_text(encoding="utf-8") == as_page(read_table())
