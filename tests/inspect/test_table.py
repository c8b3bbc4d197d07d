"""A table is sorted, filtered and cut by names, and says what it does not have."""

import csv
import io

import pytest

from schedc.errors import UserError
from schedc.inspect.table import Column, Table

TABLE = Table(
    "transfers",
    (Column("phase"), Column("bytes"), Column("early", "µs", 1)),
    (("expert_up", 3_145_728, -4.9), ("qkv", 1024, 2.5), ("expert_down", 8192, None), ("qkv", 4096, 0.0)),
)


def names(table: Table) -> list[object]:
    return [(row[0], row[1]) for row in table.rows]


def test_rows_are_sorted_by_a_column_and_those_without_a_value_come_last():
    assert [row[2] for row in TABLE.sorted_by("early").rows] == [-4.9, 0.0, 2.5, None]
    assert [row[2] for row in TABLE.sorted_by("early", reverse=True).rows] == [2.5, 0.0, -4.9, None]
    assert names(TABLE.sorted_by("phase"))[-2:] == [("qkv", 1024), ("qkv", 4096)], "equal ones stay in their order"


@pytest.mark.parametrize(
    ("condition", "bytes_left"),
    [
        ("phase~expert", [3_145_728, 8192]),
        ("phase!~expert", [1024, 4096]),
        ("phase=qkv", [1024, 4096]),
        ("phase != qkv", [3_145_728, 8192]),
        ("bytes>1e6", [3_145_728]),
        ("bytes>=4096", [3_145_728, 8192, 4096]),
        ("bytes<4_096", [1024]),
        ("bytes<=4096", [1024, 4096]),
        ("bytes=1024", [1024]),
        ("early<=0", [3_145_728, 4096]),
        ("bytes~^1", [1024]),
    ],
)
def test_conditions(condition: str, bytes_left: list[int]):
    assert [row[1] for row in TABLE.where(condition).rows] == bytes_left


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("byte>1", "has no column 'byte'; did you mean bytes"),
        ("bytes", "must be like phase~attend"),
        ("bytes>many", "bytes is a number, 'many' is none"),
        ("bytes!=nan", "bytes is a number, 'nan' is none"),
        ("phase>qkv", "phase is text, which is compared with"),
        ("phase~(", "no regular expression"),
    ],
)
def test_a_bad_condition_is_refused_by_name(condition: str, message: str):
    with pytest.raises(UserError, match=message.replace("(", r"\(")):
        TABLE.where(condition)


def test_columns_are_chosen_in_the_order_they_are_named():
    made = TABLE.only(["early", "phase"])
    assert [column.name for column in made.columns] == ["early", "phase"] and made.rows[0] == (-4.9, "expert_up")
    with pytest.raises(UserError, match="transfers has no column 'late'; there are phase, bytes, early"):
        TABLE.only(["late"])
    with pytest.raises(UserError, match="--columns: phase is named twice"):
        TABLE.only(["phase", "bytes", "phase"])


def test_programs_get_plain_numbers_and_units():
    assert TABLE.to_dict()["columns"][2] == {"name": "early", "unit": "µs"}
    assert TABLE.to_dict()["rows"][2] == {"phase": "expert_down", "bytes": 8192, "early": None}
    read = list(csv.DictReader(io.StringIO(TABLE.to_csv())))
    assert read[0] == {"phase": "expert_up", "bytes": "3145728", "early": "-4.9"} and read[2]["early"] == ""
