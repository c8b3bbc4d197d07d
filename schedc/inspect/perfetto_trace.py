"""Perfetto's own format: track events, with names interned. Needs the package `perfetto`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from schedc.errors import UserError
from schedc.inspect.tracks import Tracks, Value

SEQUENCE = 1
"""All packets are of one trusted sequence: interned names are its own."""


def perfetto_trace(tracks: Tracks) -> bytes:
    """A track a track, under one of its group; slices begin and end in order of time, nested ones inside.

    Raises UserError if the package is not installed.
    """
    try:
        from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb
    except ImportError:
        raise UserError(
            "a .pftrace needs the package perfetto: pip install 'schedc[trace]'; or write a .json"
        ) from None
    trace = pb.Trace()
    packet = trace.packet.add()
    packet.trusted_packet_sequence_id = SEQUENCE
    packet.sequence_flags = pb.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED
    groups = {group: number + 1 for number, group in enumerate(dict.fromkeys(group for group, _ in tracks.names))}
    first = len(groups) + 1
    for group, uuid in groups.items():
        _describe(trace, uuid, group, None, uuid)
    for number, (group, name) in enumerate(tracks.names):
        _describe(trace, first + number, name, groups[group], number)
    counted = first + len(tracks.names)
    for number, counter in enumerate(tracks.counters):
        descriptor = _describe(trace, counted + number, counter.name, None, number)
        descriptor.counter.unit_name = counter.unit
        if counter.unit == "bytes":
            descriptor.counter.unit = pb.CounterDescriptor.UNIT_SIZE_BYTES
    names: dict[str, int] = {}
    flows: dict[int, list[int]] = defaultdict(list)
    for number, flow in enumerate(tracks.flows):
        for index in flow:
            flows[index].append(number + 1)
    for time, ends, index in _edges(tracks):
        slice_ = tracks.slices[index]
        packet = trace.packet.add()
        packet.timestamp = time
        packet.trusted_packet_sequence_id = SEQUENCE
        packet.sequence_flags = pb.TracePacket.SEQ_NEEDS_INCREMENTAL_STATE
        event = packet.track_event
        event.track_uuid = first + slice_.track
        event.type = pb.TrackEvent.TYPE_SLICE_END if ends else pb.TrackEvent.TYPE_SLICE_BEGIN
        if ends:
            continue
        if slice_.name not in names:
            names[slice_.name] = len(names) + 1
            packet.interned_data.event_names.add(iid=names[slice_.name], name=slice_.name)
        event.name_iid = names[slice_.name]
        event.categories.append(slice_.kind)
        event.flow_ids.extend(flows.get(index, ()))
        for name, value in slice_.facts:
            _annotate(event.debug_annotations.add(), name, value)
    for number, counter in enumerate(tracks.counters):
        for time, value in counter.points:
            packet = trace.packet.add()
            packet.timestamp = time
            packet.trusted_packet_sequence_id = SEQUENCE
            packet.track_event.type = pb.TrackEvent.TYPE_COUNTER
            packet.track_event.track_uuid = counted + number
            packet.track_event.double_counter_value = value
    return bytes(trace.SerializeToString(deterministic=True))


def write_perfetto_trace(tracks: Tracks, path: Path) -> None:
    path.write_bytes(perfetto_trace(tracks))


def _edges(tracks: Tracks) -> Iterator[tuple[int, bool, int]]:
    """(time, whether it ends, slice). At one time first what is inside ends, last what is outside begins.

    Slices without length begin and end between what ends and what begins then.
    """
    edges: list[tuple[int, int, int, int, bool, int]] = []
    for index, slice_ in enumerate(tracks.slices):
        began, ended = slice_.began, slice_.ended
        if began < ended:
            edges.append((began, 2, -ended, index, False, index))
            edges.append((ended, 0, -began, -index, True, index))
        else:
            edges.append((began, 1, index, 0, False, index))
            edges.append((ended, 1, index, 1, True, index))
    edges.sort()
    for time, _, _, _, ends, index in edges:
        yield time, ends, index


def _describe(trace: Any, uuid: int, name: str, parent: int | None, rank: int) -> Any:
    packet = trace.packet.add()
    packet.trusted_packet_sequence_id = SEQUENCE
    descriptor = packet.track_descriptor
    descriptor.uuid, descriptor.name = uuid, name
    descriptor.sibling_order_rank = rank
    if parent is not None:
        descriptor.parent_uuid = parent
    return descriptor


def _annotate(annotation: Any, name: str, value: Value) -> None:
    annotation.name = name
    if isinstance(value, str):
        annotation.string_value = value
    elif isinstance(value, int):
        annotation.int_value = value
    else:
        annotation.double_value = value
