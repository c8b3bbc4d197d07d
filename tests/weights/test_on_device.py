"""The parts that devices hold of the weights are together the weights, each number where it was."""

import numpy as np
import pytest

from schedc.lower.graph import Grain, StepShape
from schedc.lower.step import StepLowering
from schedc.schedule.assemble import Assembly
from schedc.schedule.plan import Plan, Ring
from schedc.spec.model import ModelSpec
from schedc.weights.head_order import for_kernel
from schedc.weights.layout import Columns, PanelMatrix, from_dict, layouts_hash, on_device, to_dict
from schedc.weights.pack import pack_arrays, unpack
from schedc.weights.random_weights import RandomWeights
from tests.reference.small_specs import LAYER, small_spec

BIASED = {"q": True, "k": True, "v": True, "o": True}
SPECS = {
    "uneven heads, widths and vocabulary": small_spec(
        {"heads": 6, "kv_heads": 3, "bias": BIASED},
        {"width": 300, "bias": {"up": True, "gate": True, "down": True}},
        {"norm": LAYER, "placement": "sandwich"},
        vocab=700,
        embedding={"tied": False},
    ),
    "a kv head for all devices": small_spec({"heads": 4, "kv_heads": 1}, {"width": 600}, vocab=300),
}


def layouts(spec: ModelSpec, devices: int):
    """Those of a schedule with a tile for every weight."""
    lowering = StepLowering(spec, StepShape(1, 32, devices=devices))
    units = {stream.name: stream.units for stream in lowering.streams()}
    graph = lowering.graph(Grain(units, 16))
    ring = Ring("all", tuple(units), slots=1, ahead=0)
    return Assembly(graph, Plan((ring,), units, 16), "p", ()).layouts()


@pytest.mark.parametrize("devices", [2, 4, 8])
@pytest.mark.parametrize("name", SPECS)
def test_the_parts_of_all_devices_are_the_weights(name: str, devices: int) -> None:
    spec = in_f32(SPECS[name])
    source = for_kernel(RandomWeights(spec, 0), spec)
    found: dict[str, np.ndarray] = {}
    shared = layouts(spec, devices)
    for device in range(devices):
        mine = [on_device(layout, device) for layout in shared]
        for layout, words in zip(mine, pack_arrays(mine, source).values(), strict=True):
            for weight, values in unpack(layout, words).items():
                known = source.load(weight) if weight in source.names() else values
                part = np.zeros_like(known)
                fits = tuple(slice(0, min(a, b)) for a, b in zip(values.shape, known.shape, strict=True))
                part[fits] = values[fits]
                assert not np.any(values) or np.abs(values).sum() == pytest.approx(np.abs(part).sum())
                before = found.get(weight, np.zeros_like(known))
                found[weight] = np.where(np.abs(part) > np.abs(before), part, before)
    for weight in source.names():
        np.testing.assert_allclose(found[weight], source.load(weight), atol=1e-6, err_msg=weight)


def in_f32(spec: ModelSpec) -> ModelSpec:
    return ModelSpec.model_validate(spec.model_dump(mode="json") | {"quantization": {"weights": "f32"}})


def test_a_part_starts_where_its_device_has_it() -> None:
    columns = Columns("attn.k", 0, 64, step=64, every=2, ring=3)
    layout = PanelMatrix("m", "f32", (), 16, 1, 1, (columns,))
    starts = [on_device(layout, device).columns[0].start for device in range(7)]
    assert starts == [0, 0, 64, 64, 128, 128, 0]
    assert on_device(layout, 3).columns[0].step == 0
    assert from_dict(to_dict(layout)) == layout


def test_devices_of_the_same_part_have_one_hash_and_others_have_not() -> None:
    shared = layouts(SPECS["a kv head for all devices"], 4)
    hashes = [layouts_hash([on_device(layout, device) for layout in shared]) for device in range(4)]
    assert len(set(hashes)) == 4
    qkv = next(layout for layout in shared if layout.name == "w_qkv")
    key = [on_device(qkv, device).columns[1] for device in range(4)]
    assert len(set(key)) == 1
