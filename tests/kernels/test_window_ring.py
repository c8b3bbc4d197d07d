"""Layers with a window whose cache is a ring of the tiles in sight, against the reference, which keeps all: positions
up to three times around the ring. f32, so that any mistake shows."""

from pathlib import Path
from typing import Any

import pytest

from schedc.compiler.check import check
from schedc.compiler.interpret import interpret
from schedc.compiler.pipeline import Request, build, compile_model, limits_of
from schedc.compiler.shrink import Shrunk, shrink
from schedc.errors import SpecError
from schedc.ir.verify import verify
from schedc.lower.caches.ring import ring_tiles
from schedc.lower.caches.sight import Sight
from schedc.lower.caches.stream import CacheStream
from schedc.lower.graph import RowsAre, StepShape
from schedc.placement.rules import PlacementRules
from schedc.spec.load import load_spec
from schedc.spec.model import ModelSpec
from schedc.spec.window_cache import with_window_cache
from schedc.target.target import parse_target
from tests.kernels.built import Mode, small_tiles
from tests.reference.small_specs import small_spec

pytestmark = pytest.mark.kernel

CONTEXT = 90
"""Six tiles of 16 tokens."""
WINDOW = {"window": 20}
"""Reaches two tiles back: a ring of three."""


def in_ring(*mixers: dict[str, Any], **kv: Any) -> ModelSpec:
    """Two trips of a pattern of layers."""
    pattern = [
        small_spec(mixer).model_dump(mode="json", exclude_none=True)["layers"][0]["pattern"][0] for mixer in mixers
    ]
    return small_spec(
        layers=[{"repeat": 2, "pattern": pattern}],
        max_position=128,
        quantization={"weights": "f32"},
        kv={"dtype": "f32", "window": "ring"} | kv,
    )


def request(
    spec: ModelSpec,
    devices: int = 1,
    rows: int = 2,
    rows_are: RowsAre = "sequences",
    rules: PlacementRules | None = None,
) -> Request:
    rules = rules or PlacementRules()
    shape = StepShape(rows, CONTEXT, logits=True, devices=devices, rows_are=rows_are, placement=rules)
    target = parse_target("tpu7x" if devices == 1 else "tpu7x:2x2x1", devices)
    return Request(spec, target, shape, small_tiles("ring"))


@pytest.mark.parametrize(
    ("sight", "tokens", "tiles"),
    [
        (Sight(window=1), 16, 1),
        (Sight(window=17), 16, 2),
        (Sight(window=18), 16, 3),
        (Sight(window=32), 32, 2),
        (Sight(chunk=32), 16, 2),
        (Sight(chunk=24), 16, 3),
        (Sight(window=80), 16, 0),  # Six tiles, which is the whole context.
        (Sight(), 16, 0),
    ],
)
def test_a_ring_has_the_tiles_that_a_window_reaches(sight: Sight, tokens: int, tiles: int) -> None:
    assert ring_tiles(sight, CONTEXT, tokens) == tiles


@pytest.mark.parametrize("tokens", [8, 16])
def test_nothing_in_sight_is_further_back_than_a_ring_reaches(tokens: int) -> None:
    for size in range(1, 40):
        reach = {
            Sight(window=size): lambda at, size=size: max(0, at - size + 1),
            Sight(chunk=size): lambda at, size=size: at // size * size,
        }
        for sight, lowest in reach.items():
            tiles = ring_tiles(sight, 1000, tokens)
            seen = [at // tokens - lowest(at) // tokens + 1 for at in range(200)]
            assert max(seen) == tiles if sight.window else max(seen) in (tiles, tiles - 1)


@pytest.mark.parametrize(
    ("spec", "devices", "rows", "mode"),
    [
        pytest.param(in_ring(WINDOW, {}), 1, 2, "on_wait", id="a window, then all"),
        pytest.param(in_ring({"window": 17, "kv_heads": 1}), 1, 1, "eager", id="two tiles", marks=pytest.mark.slow),
        pytest.param(in_ring({"chunk": 24}), 1, 3, "eager", id="chunks", marks=pytest.mark.long),
        pytest.param(in_ring(WINDOW, {}), 1, 2, "eager", id="a window, then all, eager", marks=pytest.mark.long),
        pytest.param(in_ring(WINDOW), 4, 2, "eager", id="two devices a kv head", marks=pytest.mark.long),
        pytest.param(
            in_ring(WINDOW | {"heads": 8, "kv_heads": 8}), 1, 4, "on_wait", id="groups", marks=pytest.mark.long
        ),
    ],
)
def test_kernels_agree_with_the_reference(spec: ModelSpec, devices: int, rows: int, mode: Mode) -> None:
    asked = request(spec, devices, rows)
    made, program = build(asked)
    verdict = verify(program, limits_of(asked.target))
    assert verdict.proven, str(verdict)
    run = interpret(Shrunk(asked.spec, asked.shape, made, ()), program, mode, 3000)
    print(f"{run.steps} steps, {run.seconds:.0f} s, logits {run.logits:.1e}, cache {run.cache:.1e}")
    assert run.problems == ()
    assert 0 < run.logits < run.logits_limit and 0 < run.cache < run.cache_limit


def test_a_shrunk_model_has_rings_too() -> None:
    """Of gemma-3-1b with 22 layers of a window of 512, four to one."""
    spec = with_window_cache(load_spec("gemma-3-1b"), "ring")
    small = shrink(Request(spec, parse_target("tpu7x"), StepShape(1, 32_768)))
    assert small.differences == ()
    rows = {array.name: array.rows for array in small.schedule.program.arrays if array.role == "state"}
    assert min(rows.values()) * 2 <= max(rows.values())


@pytest.mark.slow
def test_the_tpu_compiler_takes_it(tmp_path: Path) -> None:
    spec = small_spec(WINDOW | {"window": 200}, max_position=2048, kv={"window": "ring"})
    compiled = compile_model(Request(spec, parse_target("tpu7x"), StepShape(4, 2048), "ring"))
    assert compiled.program.arrays
    kernel = tmp_path / "kernel.py"
    kernel.write_text(compiled.kernel.source)
    assert check(compiled, kernel).problems == ()


def test_only_caches_of_windows_are_smaller() -> None:
    ring, whole = (
        {array.name: array.rows for array in build(request(in_ring(WINDOW, {}, window=window)))[1].arrays}
        for window in ("ring", "context")
    )
    assert [whole[name] / ring[name] for name in ("kv_0_0", "kv_0_1")] == [2, 1]


def test_the_proof_wants_older_tiles_read_before_the_newest_token_takes_a_place(monkeypatch) -> None:
    monkeypatch.setattr(CacheStream, "written_late", lambda stream, grain: False)
    asked = request(in_ring(WINDOW))
    assert {refusal.storage for refusal in verify(build(asked)[1], limits_of(asked.target)).refusals} == {"kv"}


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (request(in_ring({})), "kv.window: a ring is the cache of a layer with a window or chunks, and the model has "
         "none; use context"),
        (request(in_ring(WINDOW), rows=4, rows_are="tokens"), "kv.window: rows are tokens of one sequence, and one "
         "that is not accepted would already have taken the place of a token in sight of the accepted ones; use "
         "context with them"),
        (request(in_ring(WINDOW), 4, rules=PlacementRules(kv="sequence")), "kv.window: 2 devices have the tiles of a "
         "window in turn by placement.kv: sequence, and a ring is one device's; use context, or placement.kv: heads"),
    ],
)  # fmt: skip
def test_what_a_ring_cannot_do_is_refused(asked: Request, said: str) -> None:
    with pytest.raises(SpecError) as error:
        build(asked)
    assert error.value.problems == (said,)


def test_pages_are_no_ring() -> None:
    with pytest.raises(ValueError, match="ring belongs to the layout contiguous"):
        in_ring(WINDOW, layout="paged", page_tokens=16)


def test_with_room_for_the_context_the_program_is_the_same() -> None:
    """A ring that would be no smaller is none."""
    wide = [build(request(in_ring({"window": 80}, window=window)))[1] for window in ("ring", "context")]
    assert wide[0] == wide[1]
