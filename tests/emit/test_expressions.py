"""Integer expressions become Python that means the same, with brackets only where they are needed."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from schedc.backends.pallas.emit.expressions import condition, expression, is_static
from schedc.ir.expr import Binary, Compare, Const, Counter, Element, Expr, Rank, evaluate

A, B, C = Counter("a"), Counter("b"), Counter("c")


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (Binary("+", Binary("*", A, Const(3)), B), "a * 3 + b"),
        (Binary("*", Binary("+", A, Const(3)), B), "(a + 3) * b"),
        (Binary("-", A, Binary("-", B, C)), "a - (b - c)"),
        (Binary("-", Binary("-", A, B), C), "a - b - c"),
        (Binary("*", A, Binary("*", B, C)), "a * (b * c)"),
        (Element("position", Binary("+", A, Const(1))), "position[a + 1]"),
        (Binary("max", A, Const(0)), "jnp.maximum(a, 0)"),
        (Binary("min", A, B), "jnp.minimum(a, b)"),
        (Binary("^", Rank(), Const(1)), "rank ^ 1"),
        (Binary("^", A, Binary("+", B, Const(1))), "a ^ b + 1"),
        (Binary("+", Binary("^", A, B), Const(1)), "(a ^ b) + 1"),
        (Binary("%", Binary("+", Rank(), Const(1)), Const(8)), "lax.rem(rank + 1, 8)"),
    ],
)
def test_text(expr: Expr, text: str) -> None:
    assert expression(expr) == text


def test_division_of_traced_numbers_is_that_of_lax() -> None:
    expr = Binary("%", Binary("//", Element("position", Const(0)), Const(16)), Const(2))
    assert expression(expr) == "lax.rem(lax.div(position[0], 16), 2)"


def test_what_is_known_when_tracing_keeps_the_operators_of_python() -> None:
    expr = Binary("%", Binary("//", A, Const(16)), Const(2))
    assert is_static(expr, {"a"}) and not is_static(expr, set())
    assert expression(expr, {"a"}) == "a // 16 % 2"
    assert expression(Binary("min", A, B), {"a"}) == "jnp.minimum(a, b)"
    assert expression(Binary("min", A, B), {"a", "b"}) == "min(a, b)"


def test_several_conditions_are_joined_without_short_circuit() -> None:
    first, second = Compare("<", A, Const(3)), Compare(">=", Binary("+", A, B), Const(2))
    assert condition((first,), set()) == "a < 3"
    assert condition((first, second), set()) == "(a < 3) & (a + b >= 2)"


def test_a_table_is_known_when_tracing_where_its_index_is() -> None:
    static, traced = Element("kind", Binary("+", A, Const(1))), Element("kind", B)
    known = {"a", "kind"}
    assert is_static(static, known) and not is_static(traced, known)
    assert expression(Binary("//", static, Const(2)), known) == "kind[a + 1] // 2"
    assert expression(Binary("//", traced, Const(2)), known) == "lax.div(kind_in_smem[b], 2)"
    assert expression(Element("kind", traced), known) == "kind_in_smem[kind_in_smem[b]]"


def no_element(array: str, index: int) -> int:
    raise AssertionError(f"{array}[{index}] is not static")


def expressions() -> st.SearchStrategy[Expr]:
    leaves = st.one_of(st.builds(Const, st.integers(0, 9)), st.sampled_from([A, B, C]))

    def larger(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
        operators = st.sampled_from(["+", "-", "*", "^", "min", "max"])
        divided = st.builds(Binary, st.sampled_from(["//", "%"]), inner, st.builds(Const, st.integers(1, 9)))
        return st.one_of(st.builds(Binary, operators, inner, inner), divided)

    return st.recursive(leaves, larger, max_leaves=12)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(expressions(), st.tuples(*[st.integers(0, 20)] * 3))
def test_static_text_evaluates_to_the_same_number(expr: Expr, values: tuple[int, int, int]) -> None:
    counters = dict(zip("abc", values, strict=True))
    assert eval(expression(expr, {"a", "b", "c"}), {}, counters) == evaluate(expr, counters.__getitem__, no_element)
