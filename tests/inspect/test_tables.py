"""What the tables of a compiled model say is what the program and its prediction say."""

import pytest

from schedc.compiler.pipeline import Request
from schedc.compiler.placement import placement_report
from schedc.cost.report import predict
from schedc.inspect.subject import Subject, of_request
from schedc.inspect.table import Table
from schedc.inspect.tables.buffers import buffers
from schedc.inspect.tables.collectives import collectives
from schedc.inspect.tables.phases import phases
from schedc.inspect.tables.placement import placement
from schedc.inspect.tables.semaphores import semaphores
from schedc.inspect.tables.transfers import executions, transfers
from schedc.ir.program import ROW_BYTES, RemoteStart, Start, walk
from schedc.lower.graph import StepShape
from schedc.spec.load import load_spec
from schedc.target.target import parse_target


def subject(model: str, devices: int = 1) -> Subject:
    return of_request(Request(load_spec(model), parse_target("tpu7x", devices), StepShape(1, 1024, devices=devices)))


@pytest.fixture(scope="module")
def smol() -> Subject:
    return subject("smollm2-135m")


@pytest.fixture(scope="module")
def experts() -> Subject:
    return subject("gpt-oss-20b", 8)


def column(table: Table, name: str) -> list:
    return [row[table.index(name)] for row in table.rows]


def test_transfers_have_a_row_an_operation_and_add_up_to_the_prediction(smol: Subject):
    table = transfers(smol)
    ops = [op for op in walk(smol.program.body) if isinstance(op, Start)]
    assert column(table, "bytes") == [op.source.rows * ROW_BYTES for op in ops]
    cost = predict(smol.program, smol.target)
    assert sum(column(table, "times")) == cost.transfers
    moved = sum(t * b for t, b in zip(column(table, "times"), column(table, "bytes"), strict=True))
    assert moved == cost.hbm_bytes_read + cost.hbm_bytes_written
    assert sum(stall or 0 for stall in column(table, "stall")) == pytest.approx(cost.stall_us, abs=0.05)
    assert all(column(table, "reason"))


def test_transfers_name_their_lines_in_the_text_and_in_the_kernel(smol: Subject):
    from schedc.backends.pallas.emit.kernel import emit
    from schedc.ir.text_print import print_program

    table, text = transfers(smol), print_program(smol.program).splitlines()
    kernel = emit(smol.program).source.splitlines()
    for row in table.rows:
        named = dict(zip([c.name for c in table.columns], row, strict=True))
        source = named["transfer"].split(" -> ")[0]
        assert text[named["line"] - 1].strip().startswith(f"start {source}")
        assert "copy(" in kernel[named["kernel"] - 1] and source in kernel[named["kernel"] - 1]


def test_each_execution_has_a_row_in_the_order_of_issue(smol: Subject):
    table = executions(smol)
    assert len(table.rows) == sum(column(transfers(smol), "times"))
    assert column(table, "issued") == sorted(column(table, "issued"))
    assert "layer=29" in column(table, "iteration")


def test_an_expert_is_fetched_when_its_number_is_known(experts: Subject):
    rows = transfers(experts).where("transfer~^expert_w_up").where("times>0")
    assert rows.rows and all("address known since route of route" in reason for reason in column(rows, "reason"))
    rows = transfers(experts).where("transfer~^w_qkv")
    assert rows.rows and not any("address known" in reason for reason in column(rows, "reason"))


def test_buffers_are_inside_their_pools_and_say_when_they_live(smol: Subject):
    table = buffers(smol)
    pools = {pool.name: pool.rows for pool in smol.program.pools}
    for name, address, slots, rows in zip(
        *(column(table, c) for c in ("pool", "address", "slots", "rows")), strict=True
    ):
        assert address + slots * rows <= pools[name]
    named = {row[table.index("buffer")]: row for row in table.rows}
    x = named["x"]
    assert (x[table.index("from")], x[table.index("to")]) == ("embed", "final_norm")
    assert "needed all through loop layer" in x[table.index("reason")]
    assert "loop" not in named["kv_row"][table.index("reason")], "it is made and used within a layer"


def test_semaphores_are_given_to_as_often_as_they_are_taken_from(experts: Subject):
    table = semaphores(experts)
    assert [row[0] for row in table.rows] == [semaphore.name for semaphore in experts.program.semaphores]
    for name in ("given", "taken"):
        assert table.columns[table.index(name)].unit == "a step"
    assert [row[table.index("given")] for row in table.rows] == [row[table.index("taken")] for row in table.rows]
    assert {row[table.index("in")] for row in table.where("kind=dma").rows} == {"rows"}
    for row in table.where("semaphore~(weights|experts)_arrived").rows:
        assert row[table.index("given")] >= 8 * row[table.index("signals")] > 0
        assert 0 < row[table.index("peak")] <= row[table.index("count")]
    loads = table.where("semaphore=weights_arrived").rows[0]
    rows = [t.bytes for t in experts.flow.moved if experts.flow.executed[t.at].signals.startswith("weights_arrived")]
    assert loads[table.index("given")] * ROW_BYTES == sum(rows)


def test_phases_add_up_to_the_step(smol: Subject):
    table, cost = phases(smol), predict(smol.program, smol.target)
    assert sum(column(table, "time")) == pytest.approx(cost.step_us, abs=0.05)
    assert sum(column(table, "share")) == pytest.approx(100, abs=0.2)
    worst = table.sorted_by("stall", reverse=True).rows[0]
    assert worst[0] == "attend" and "waits for kv -> kv_new" in worst[-1]


def test_collectives_are_the_phases_that_send(experts: Subject, smol: Subject):
    table = collectives(experts)
    sent = sum(t * b for t, b in zip(column(table, "times"), column(table, "bytes"), strict=True))
    assert sent == predict(experts.program, experts.target).bytes_sent > 0
    assert any(isinstance(op, RemoteStart) for op in walk(experts.program.body))
    assert "one_shot" in table.notes[0]
    assert collectives(smol).rows == () and collectives(smol).notes == ("one device",)


def test_placement_adds_up_to_what_the_report_says(experts: Subject):
    report = placement_report(experts.spec, experts.shape, experts.target, experts.layouts, experts.program.arrays)
    table = placement(report)
    assert sum(size for size in column(table, "device") if size) == report.total
    assert sum(share for share in column(table, "share") if share) == pytest.approx(100 * report.total / report.limit)
    reasons = dict(zip(column(table, "family"), column(table, "reason"), strict=True))
    assert reasons["experts"] == (
        "divided by experts; 6.2% of the places hold nothing, since experts or their columns do not divide evenly"
    )
    assert reasons["router"] == "a copy on every device"
