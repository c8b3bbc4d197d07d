"""The text form is lossless, and its errors point at the place."""

from __future__ import annotations

import inspect
from time import process_time

import pytest
from hypothesis import given, settings
from random_programs import exprs, programs

from schedc.ir import text_print
from schedc.ir.errors import IrSyntaxError
from schedc.ir.program import Loop, When, walk
from schedc.ir.text_expr import parse_expr
from schedc.ir.text_parse import parse_located, parse_program
from schedc.ir.text_print import operation_lines, print_expr, print_op, print_program

DOUBLE = inspect.cleandoc((text_print.__doc__ or "").split("\n\n")[1]) + "\n"


@settings(max_examples=150, deadline=None)
@given(programs)
def test_parsing_a_printed_program_gives_it_back(program):
    text = print_program(program)
    again = parse_program(text)
    assert repr(again) == repr(program)
    assert print_program(again) == text


@settings(max_examples=200, deadline=None)
@given(exprs)
def test_parsing_a_printed_expression_gives_it_back(expr):
    assert parse_expr(print_expr(expr)) == expr


def test_the_example_in_the_documentation_prints_as_it_is_written():
    assert print_program(parse_program(DOUBLE)) == DOUBLE


def test_every_operation_knows_its_line():
    lines = DOUBLE.splitlines()
    operations = list(walk(parse_program(DOUBLE).body))
    assert [lines[line - 1].strip() for line in operation_lines(parse_program(DOUBLE))] == [
        print_op(op) for op in operations
    ]
    assert [type(op) for op in operations[1:3]] == [Loop, When]


def test_comments_blank_lines_and_broken_operand_lists_are_read():
    text = """
    # the smallest program
    program p {   # a comment
      compute k(a: read x[0 +: 1],
                b: write y<1>[2 +: 3])

    }
    """
    assert print_program(parse_program(text)) == (
        "program p {\n  compute k(a: read x[0 +: 1], b: write y<1>[2 +: 3])\n}\n"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1, column 1: expected `program`, found the end of the text"),
        ("program p {", "line 1, column 12: expected a declaration, an operation or `}`, found the end of the text"),
        ("program p {\n} x", "line 2, column 3: expected the end of the text, found `x`"),
        (
            "program p {\n  frobnicate x\n}",
            "line 2, column 3: expected a declaration, an operation or `}`, found `frobnicate`",
        ),
        ("program p {\n  pool a rows=x\n}", "line 2, column 15: expected an integer, found `x`"),
        (
            "program p {\n  hbm a rows=1 wight\n}",
            "line 2, column 16: expected `weight` or `input` or `state` or `output`, found `wight`",
        ),
        (
            "program p {\n  wait s rows=1 wait s rows=1\n}",
            "line 2, column 17: expected the end of the line, found `wait`",
        ),
        ("program p {\n  wait s[0 rows=1\n}", "line 2, column 12: expected `]`, found `rows`"),
        ("program p {\n  start a[0 +: 8] b\n}", "line 2, column 19: expected `->`, found `b`"),
        ("program p {\n  start a[0 + : 8]\n}", "line 2, column 15: expected an expression, found `:`"),
        ("program p {\n  when a {\n}", "line 2, column 10: expected a comparison, found `{`"),
        (
            "program p {\n  compute k(a: reed x[0 +: 1])\n}",
            "line 2, column 16: expected `read` or `write` or `update`, found `reed`",
        ),
        (
            "program p {\n  compute k(a: read x[0 +: 1]\n}",
            "line 2, column 30: expected `,` or `)`, found the end of the line",
        ),
        (
            "program p {\n  loop l < 3 {\n    pool a rows=1\n  }\n}",
            "line 3, column 5: expected an operation or `}` (declarations stand before all operations), found `pool`",
        ),
    ],
)
def test_a_syntax_error_names_the_line_the_column_and_what_was_expected(text, message):
    with pytest.raises(IrSyntaxError) as error:
        parse_program(text)
    assert str(error.value) == message


def test_what_an_allocator_or_a_default_decides_may_be_left_out():
    text = (
        "program p {\n pool work\n buffer a in work rows=8\n buffer b in work rows=8 slots=2 at 8\n semaphore s dma\n}"
    )
    assert print_program(parse_program(text)).splitlines()[1:-1] == [
        "  pool work rows=0",
        "  buffer a in work rows=8 slots=1 align=8",
        "  buffer b in work rows=8 slots=2 align=8 at 8",
        "  semaphore s[1] dma",
    ]


def test_every_operation_and_declaration_has_its_place_in_the_text():
    text = """# a comment
program p {
  pool work
  buffer a in work rows=8
      semaphore s dma
  loop l < 2 { switch l { case 0 { barrier }
      case 1 {
      } } }
\twait s
    rows=8
}"""
    program, places = parse_located(text)
    assert [type(op).__name__ for op in walk(program.body)] == ["Loop", "Switch", "Case", "Barrier", "Case", "Wait"]
    assert places.operations == ((6, 3), (6, 16), (6, 27), (6, 36), (7, 7), (9, 2))
    assert places.declarations == {"work": (3, 3), "a": (4, 3), "s": (5, 7)}


def test_the_places_of_a_printed_program_are_the_lines_that_the_printer_says():
    program, places = parse_located(DOUBLE)
    assert tuple(line for line, _ in places.operations) == operation_lines(program)


def test_twenty_thousand_lines_are_read_in_seconds():
    body = "".join(line + "\n" for line in DOUBLE.splitlines()[5:-1])
    text = "program long {\n" + body * 2000 + "}\n"
    assert text.count("\n") > 20_000 - 2000 * 2
    began = process_time()
    parse_program(text)
    assert process_time() - began < 10
