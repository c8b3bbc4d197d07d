"""Traces hold to the rules of their formats, and count what the manifest and the simulation count.

Perfetto's trace processor is a binary that its package downloads when it is used, which not every machine may; so the
rules are checked here on the parsed files: tracks, nesting, flows, counters, interned names.
"""

import gzip
import json
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from schedc.backends.pallas.emit.kernel import emit
from schedc.cost.simulate import simulate
from schedc.cost.timeline import Timeline
from schedc.inspect.chrome_trace import chrome_trace, write_chrome_trace
from schedc.inspect.tracks import Tracks, tracks_of
from schedc.ir.program import Start
from schedc.ir.text_print import print_op
from tests.inspect.compiled import MODELS, seen_model, subject

pytestmark = pytest.mark.parametrize("model", MODELS)


@cache
def tracks(model: str) -> Tracks:
    found = seen_model(model)
    return tracks_of(found.history, found.sources, found.vmem)


def logged(model: str, lane: str) -> Counter[int]:
    """Of every operation, how often a simulation without any of this logs it."""
    return Counter(event.op for event in log(model).events if event.lane == lane)


@cache
def log(model: str) -> Timeline:
    return simulate(subject(model).program, subject(model).machine, events=True)


def by_op(model: str, kind: str) -> Counter[int]:
    return Counter(int(dict(s.facts)["op"]) for s in tracks(model).slices if s.kind == kind)


def test_slices_of_transfers_are_those_of_the_manifest_as_often_as_the_step_executes_them(model: str) -> None:
    program = subject(model).program
    started = {line: print_op(op) for line, op in emit(program).operations if isinstance(op, Start)}
    found = [s for s in tracks(model).slices if s.kind == "transfer"]
    in_manifest = {(dict(s.facts)["kernel_line"], s.name.split(" -> ")[0]) for s in found}
    assert all(started[line].startswith(f"start {source}") for line, source in in_manifest)
    assert by_op(model, "transfer") == logged(model, "hbm")
    assert sum(int(dict(s.facts)["bytes"]) for s in found) == log(model).hbm_bytes
    assert by_op(model, "message") == logged(model, "link")
    messages = [s for s in tracks(model).slices if s.kind == "message"]
    assert sum(int(dict(s.facts)["bytes"]) for s in messages) == log(model).sent


def test_slices_of_the_core_are_what_the_step_executes(model: str) -> None:
    assert by_op(model, "compute") == logged(model, "core")
    assert by_op(model, "wait") + by_op(model, "await") + by_op(model, "barrier") == logged(model, "wait")
    assert by_op(model, "start") == logged(model, "hbm")
    kinds = Counter(s.kind for s in tracks(model).slices)
    assert kinds["phase"] == sum(phase.executions for phase in log(model).phases)
    assert kinds["layer"] == subject(model).spec.num_layers
    assert kinds["semaphore"] == kinds["wait"] + kinds["await"]


def test_slices_of_a_track_are_nested_or_apart(model: str) -> None:
    made = tracks(model)
    by_track = defaultdict(list)
    for slice_ in made.slices:
        by_track[slice_.track].append(slice_)
    for track, slices in by_track.items():
        open_: list[int] = []
        for slice_ in sorted(slices, key=lambda s: (s.began, -s.ended)):
            while open_ and open_[-1] <= slice_.began:
                open_.pop()
            assert not open_ or slice_.ended <= open_[-1], (made.names[track], slice_)
            open_.append(slice_.ended)


def test_a_flow_goes_from_the_start_over_the_transfer_and_its_wait_to_its_use(model: str) -> None:
    made = tracks(model)
    assert len(made.flows) == sum(s.kind in ("transfer", "message") for s in made.slices)
    for flow in made.flows:
        kinds = [made.slices[index].kind for index in flow]
        assert kinds[0] in ("start", "remotestart") and kinds[1] in ("transfer", "message")
        assert kinds[2:] in (["wait"], ["wait", "compute"])
        begins = [made.slices[index].began for index in flow]
        assert begins[0] <= begins[1] and begins[0] <= begins[2] <= begins[-1]
        arrived = made.slices[flow[1]].ended
        assert made.slices[flow[2]].ended >= arrived, "the wait cannot be over before the data have come"


def test_counters_add_up(model: str) -> None:
    found = seen_model(model).history
    step = round(found.timeline.step_ns)
    for counter in tracks(model).counters:
        times = [time for time, _ in counter.points]
        assert times == sorted(set(times)) and times[0] == 0 and times[-1] <= step
        assert all(value >= 0 for _, value in counter.points)
    in_use, in_flight, bandwidth = tracks(model).counters
    peak = seen_model(model).vmem.peak_rows * 512
    assert 0.3 * peak < max(value for _, value in in_use.points) <= peak
    assert in_flight.points[-1][1] == 0 and bandwidth.points[-1][1] == 0
    ends = [*(time for time, _ in bandwidth.points[1:]), step]
    moved = sum(rate * (end - time) for (time, rate), end in zip(bandwidth.points, ends, strict=True))
    assert moved == pytest.approx(found.timeline.hbm_bytes, rel=0.01), "up to times in whole ns"


def test_the_chrome_trace_keeps_the_rules_of_the_format(model: str, tmp_path: Path) -> None:
    made = tracks(model)
    write_chrome_trace(made, tmp_path / "trace.json.gz")
    data = json.loads(gzip.decompress((tmp_path / "trace.json.gz").read_bytes()))
    assert data == json.loads(json.dumps(chrome_trace(made)))
    events: list[dict[str, Any]] = data["traceEvents"]
    threads = {(e["pid"], e["tid"]) for e in events if e["name"] == "thread_name"}
    assert len(threads) == len(made.names) == len({e["args"]["name"] for e in events if e["name"] == "thread_name"})
    counted = Counter(e["ph"] for e in events)
    assert counted["X"] == len(made.slices)
    assert counted["C"] == sum(len(counter.points) for counter in made.counters)
    assert counted["s"] == counted["f"] == len(made.flows)
    assert all((e["pid"], e["tid"]) in threads and e["dur"] >= 0 for e in events if e["ph"] == "X")
    begins = {(e["pid"], e["tid"], e["ts"]) for e in events if e["ph"] == "X"}
    flows = [e for e in events if e["ph"] in "stf"]
    assert all((e["pid"], e["tid"], e["ts"]) in begins for e in flows), "an arrow that ends at no slice"
    ids = defaultdict(list)
    for event in flows:
        ids[event["id"]].append(event["ph"])
    assert all(ways[0] == "s" and ways[-1] == "f" and set(ways[1:-1]) == {"t"} for ways in ids.values())


def test_the_perfetto_trace_keeps_the_rules_of_the_format(model: str) -> None:
    pb = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    from schedc.inspect.perfetto_trace import perfetto_trace

    made = tracks(model)
    data = perfetto_trace(made)
    assert data == perfetto_trace(made)
    trace = pb.Trace()
    trace.ParseFromString(data)
    described = {p.track_descriptor.uuid: p.track_descriptor for p in trace.packet if p.HasField("track_descriptor")}
    assert len(described) == len(made.names) + len({group for group, _ in made.names}) + len(made.counters)
    assert all(d.parent_uuid in described for d in described.values() if d.HasField("parent_uuid"))
    names: dict[int, str] = {}
    open_: dict[int, list[tuple[str, int]]] = defaultdict(list)
    read: Counter[tuple[str, str, int, int]] = Counter()
    counted = 0
    flows: Counter[int] = Counter()
    last = 0
    for packet in trace.packet:
        for name in packet.interned_data.event_names:
            names[name.iid] = name.name
        if not packet.HasField("track_event"):
            continue
        event = packet.track_event
        assert event.track_uuid in described
        if event.type == pb.TrackEvent.TYPE_COUNTER:
            assert described[event.track_uuid].HasField("counter")
            counted += 1
            continue
        assert packet.timestamp >= last, "slices are in the order of time"
        last = packet.timestamp
        if event.type == pb.TrackEvent.TYPE_SLICE_BEGIN:
            open_[event.track_uuid].append((names[event.name_iid], packet.timestamp))
            flows.update(event.flow_ids)
        else:
            assert event.type == pb.TrackEvent.TYPE_SLICE_END
            name, began = open_[event.track_uuid].pop()
            read[described[event.track_uuid].name, name, began, packet.timestamp] += 1
    assert not any(open_.values()), "a slice that never ends"
    assert read == Counter((made.names[s.track][1], s.name, s.began, s.ended) for s in made.slices)
    assert counted == sum(len(counter.points) for counter in made.counters)
    assert sorted(flows) == list(range(1, len(made.flows) + 1))
    assert sum(flows.values()) == sum(len(flow) for flow in made.flows)
