"""What is no program is refused at its line and column, with what was expected there; never with a traceback."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import SAMPLES

from schedc.ir.errors import IrSyntaxError
from schedc.ir.text_expr import MOST_LEVELS
from schedc.ir.text_lex import MOST_DIGITS, MOST_NESTED
from schedc.ir.text_parse import parse_program
from schedc.ir.text_print import print_program


def refusal(text: str) -> str:
    with pytest.raises(IrSyntaxError) as error:
        parse_program(text)
    return str(error.value)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("devices two", "column 11: expected a number of devices, found `two`"),
        ("table kind = ", "column 15: expected an integer, found the end of the line"),
        ("table kind = 0, 1,  # and so on", "column 21: expected an integer, found the end of the line"),
        ("table kind 0, 1", "column 14: expected `=`, found `0`"),
        ("smem pos[4] in 0...127 input", "column 21: expected an integer, found `.127`"),
        ("smem pos[4] in 0..127", "column 24: expected `input` or `local`, found the end of the line"),
        (
            "buffer a in work rows=8 slot=2",
            "column 27: expected `slots`, `align`, `at` or the end of the line, found `slot`",
        ),
        ("buffer a in work rows=8 at 0 align=8", "column 32: expected the end of the line, found `align`"),
        ("buffer a in work rows=8 at x", "column 30: expected the first row of the buffer, found `x`"),
        ("pool a row=1", "column 10: expected `rows`, found `row`"),
        ("semaphore s[1] dam", "column 18: expected `dma` or `regular`, found `dam`"),
        ("remote.start a[0 +: 8] -> b[0 +: 8] sent s signals r", "column 39: expected `on`, found `sent`"),
        ("remote.start a[0 +: 8] -> b[0 +: 8] on rank ^ 1 signals r", "column 51: expected `sent`, found `signals`"),
        (
            "remote.start a[0 +: 8] -> b[0 +: 8] on rank ^ 1 sent s",
            "column 57: expected `signals`, found the end of the line",
        ),
        ("signal s on 1", "column 12: expected `amount`, found `on`"),
        ("signal s amount=1 on", "column 23: expected an expression, found the end of the line"),
        ("signal s amount=1 to 1", "column 21: expected the end of the line, found `to`"),
        ("await s", "column 10: expected `amount`, found the end of the line"),
        ("barrier 3", "column 11: expected the end of the line, found `3`"),
        ("case 0 {", "column 3: expected a declaration, an operation or `}`, found `case`"),
        ("switch kind[l] { wait s rows=1 }", "column 20: expected `case` or `}`, found `wait`"),
        ("switch kind[l] { case x { } }", "column 25: expected the value of the case, found `x`"),
        ("switch kind[l] { case 0", "column 26: expected `{`, found the end of the line"),
        ("set full[0] 1", "column 15: expected `=`, found `1`"),
        ("loop l < 3 unrol {", "column 14: expected `{`, found `unrol`"),
        ("phase {", "column 9: expected the name of the phase, found `{`"),
        ("when l = 2 {", "column 10: expected a comparison, found `=`"),
        ("when true and l < 2 {", "column 13: expected `{`, found `and`"),
        ("compute k() sets {top_k=1}", "column 20: expected the name of a parameter, found `{`"),
        ("compute k() sets ids", "column 23: expected `=`, found the end of the line"),
        ("compute k() sets ids=", "column 24: expected the name of a scalar array, found the end of the line"),
        ("compute k() sets ids=a,", "column 26: expected the name of a parameter, found the end of the line"),
        ("compute k() sets ids=a[0]", "column 25: expected the end of the line, found `[`"),
        ("compute k(a: read x[min() +: 1])", "column 27: expected an expression, found `)`"),
        (
            "compute k(a: read x[0 +: 1]) {scale=half}",
            "column 39: expected a number, a string, `true` or `false`, found `half`",
        ),
        ('attribute a = "x', 'column 17: expected a string that ends with `"` on this line, found `"x`'),
        ('attribute a = "\\q"', 'column 17: expected a string with the escapes of JSON, found `"\\q"`'),
        ('attribute a = "\\ud800"', 'column 17: expected a string with the escapes of JSON, found `"\\ud800"`'),
    ],
)
def test_a_bad_line_is_refused_at_its_column(line: str, message: str) -> None:
    assert refusal(f"program p {{\n  {line}\n}}") == f"line 2, {message}"


def test_a_second_number_of_devices_is_refused_where_it_stands() -> None:
    assert refusal("program p {\n  devices 2\n  pool a\n  devices 2\n}") == (
        "line 4, column 3: expected no second `devices`, found `devices`"
    )


def test_a_block_without_end_is_refused_at_the_end_of_the_text() -> None:
    assert refusal("program p {\n  loop l < 2 {\n    barrier\n") == (
        "line 4, column 1: expected an operation or `}`, found the end of the text"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("phase a {\n" * 1000, "line 67, column 1: expected at most 64 blocks within each other, found `phase`"),
        (
            "switch 1 {\ncase 1 {\n" * 1000,
            "line 132, column 1: expected at most 64 blocks within each other, found `switch`",
        ),
        ("set a[0] = " + "(" * 1000, "line 2, column 77: expected at most 64 brackets within each other, found `(`"),
        ("set a[0] = " + "a[" * 1000, "line 2, column 142: expected at most 64 brackets within each other, found `a`"),
        (
            "set a[0] = " + "min(" * 1000,
            "line 2, column 272: expected at most 64 brackets within each other, found `min`",
        ),
        (
            "set a[0] = 1" + " + 1" * 1000,
            "line 2, column 12: expected an expression of at most 100 operators above each other, found `1`",
        ),
        (
            "set a[0] = min(1" + ", 1" * 1000 + ")",
            "line 2, column 12: expected an expression of at most 100 operators above each other, found `min`",
        ),
    ],
    ids=["blocks", "cases", "brackets", "indices", "min", "a sum", "a minimum of many"],
)
def test_endless_nesting_is_refused(text: str, message: str) -> None:
    assert refusal(f"program p {{\n{text}") == message


def test_what_is_nested_as_deep_as_may_be_is_read_and_printed() -> None:
    blocks = "phase a {\n" * MOST_NESTED + "set x[0] = 1" + " + 1" * MOST_LEVELS + "\n" + "}\n" * MOST_NESTED
    brackets = f"set x[0] = {'(' * MOST_NESTED}1{')' * MOST_NESTED}\n"
    program = parse_program(f"program p {{\n{blocks}{brackets}}}")
    assert parse_program(print_program(program)) == program


def test_integers_are_as_long_as_anyone_needs() -> None:
    longest = "9" * MOST_DIGITS
    text = f"program p {{\n  pool a rows={longest}\n  attribute b = -{longest[1:]}\n}}\n"
    program = parse_program(text)
    assert program.pools[0].rows == int(longest)
    assert parse_program(print_program(program)) == program
    assert refusal(text.replace(longest, longest + "9")) == (
        f"line 2, column 15: expected an integer of at most 40 digits, found `{'9' * 40}…`"
    )


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_a_damaged_program_is_read_or_refused_within_its_text(data: st.DataObject) -> None:
    text = SAMPLES[data.draw(st.sampled_from(sorted(SAMPLES)))]
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 20)))
    damaged = text[:start] + data.draw(st.text('{}[]()<>+-*/^"\\ \n#0aZ.:=\x00é', max_size=4)) + text[end:]
    try:
        parse_program(damaged)
    except IrSyntaxError as error:
        lines = damaged.split("\n")
        assert 1 <= error.line <= len(lines)
        assert 1 <= error.column <= len(lines[error.line - 1]) + 1
