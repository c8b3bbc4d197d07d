"""Differences between the transfers in the bundles and the program, in words."""

from schedc.backends.pallas.aot.report import CompileReport, Seconds, Transfer, Versions
from schedc.backends.pallas.aot.transfers import check_order


def report_of(*starts: tuple[int, int]) -> CompileReport:
    transfers = tuple(
        Transfer(i, line, "start", "hbm_to_vmem", rows * 512, False) for i, (line, rows) in enumerate(starts)
    )
    versions, seconds = Versions("", "", ""), Seconds(0, 0)
    return CompileReport("k", "tpu7x:2x2x1", 1, versions, seconds, 0, 0, 0, 0, 0, (), transfers=transfers)


def test_the_same_order_has_no_differences() -> None:
    assert check_order(report_of((3, 8), (5, 1)), [(3, 8, "hbm_to_vmem"), (5, 1, "hbm_to_vmem")]) == []


def test_transfers_of_the_compiler_itself_are_left_out() -> None:
    assert check_order(report_of((0, 4), (3, 8), (0, 4)), [(3, 8, "hbm_to_vmem")]) == []


def test_a_missing_transfer_is_named() -> None:
    assert check_order(report_of((3, 8)), [(3, 8, "hbm_to_vmem"), (5, 1, "hbm_to_vmem")]) == [
        "after line 3 (8 rows hbm_to_vmem): the program has line 5 (1 row hbm_to_vmem); the bundles have nothing"
    ]


def test_another_size_is_a_difference() -> None:
    assert check_order(report_of((3, 8)), [(3, 16, "hbm_to_vmem")]) == [
        "at the start: the program has line 3 (16 rows hbm_to_vmem); the bundles have line 3 (8 rows hbm_to_vmem)"
    ]


def test_exchanged_transfers_are_two_differences() -> None:
    expected = [(3, None, "hbm_to_vmem"), (5, 1, "hbm_to_vmem")]
    assert len(check_order(report_of((5, 1), (3, 8)), expected)) == 2
