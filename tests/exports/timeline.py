"""Reads a Perfetto trace with Perfetto's own schema (the PyPI package `perfetto` has it).

Checks what `trace_processor` checks when it reads track events: texts are known before they are
named, tracks before something happens on them, and every slice that ends has begun.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Optional

from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as schema

Event = schema.TrackEvent
STATE_CLEARED = schema.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED
NEEDS_STATE = schema.TracePacket.SEQ_NEEDS_INCREMENTAL_STATE


@dataclass
class Slice:
    """Something with a beginning; without an end if it was still there."""

    name: str
    begin_ns: int
    arguments: dict[str, Any]
    end_ns: Optional[int] = None
    inside: list[Slice] = field(default_factory=list)


@dataclass
class Track:
    """Everything of all tracks of one name under one parent, as Perfetto's page shows them."""

    counter: list[tuple[int, int]] = field(default_factory=list)
    slices: list[Slice] = field(default_factory=list)
    instants: list[Slice] = field(default_factory=list)
    lanes: int = 0


class Timeline:
    """A trace, by the paths of its tracks."""

    def __init__(self, path: Path) -> None:
        self.tracks: dict[tuple[str, ...], Track] = defaultdict(Track)
        self._paths: dict[int, tuple[str, ...]] = {}
        self._open: dict[int, list[Slice]] = defaultdict(list)
        self._texts: dict[str, dict[int, str]] = defaultdict(dict)
        trace = schema.Trace()
        trace.ParseFromString(path.read_bytes())
        # Nothing that the schema does not have.
        written = trace.ByteSize()
        trace.DiscardUnknownFields()
        assert trace.ByteSize() == written == path.stat().st_size
        assert trace.packet[0].sequence_flags & STATE_CLEARED
        self.packets = len(trace.packet)
        events = []
        for packet in trace.packet:
            assert packet.trusted_packet_sequence_id == 1
            self._learn(packet.interned_data)
            if packet.HasField("track_descriptor"):
                self._announce(packet.track_descriptor)
            if packet.HasField("track_event"):
                assert packet.sequence_flags & NEEDS_STATE
                assert packet.track_event.track_uuid in self._paths
                events.append(self._named(packet))
        # As trace_processor does: by time, and in the file's order at the same time.
        for time_ns, event, name, arguments in sorted(events, key=lambda each: each[0]):
            self._happen(time_ns, event, name, arguments)

    def __getitem__(self, path: tuple[str, ...]) -> Track:
        assert path in self.tracks, sorted(self.tracks)
        return self.tracks[path]

    def _learn(self, data: Any) -> None:
        for kind, text in (
            ("event_names", "name"),
            ("debug_annotation_names", "name"),
            ("debug_annotation_string_values", "str"),
        ):
            for entry in getattr(data, kind):
                value = getattr(entry, text)
                self._texts[kind][entry.iid] = value if isinstance(value, str) else value.decode()

    def _announce(self, track: Any) -> None:
        parent = self._paths[track.parent_uuid] if track.parent_uuid else ()
        assert track.uuid and track.uuid not in self._paths
        self._paths[track.uuid] = (*parent, track.name)
        self.tracks[self._paths[track.uuid]].lanes += 1

    def _named(self, packet: Any) -> tuple[int, Any, str, dict[str, Any]]:
        event = packet.track_event
        name = self._texts["event_names"][event.name_iid] if event.name_iid else ""
        arguments = {
            self._texts["debug_annotation_names"][each.name_iid]: self._value(each)
            for each in event.debug_annotations
        }
        return packet.timestamp, event, name, arguments

    def _value(self, annotation: Any) -> Any:
        if annotation.array_values:
            return [self._value(each) for each in annotation.array_values]
        if annotation.HasField("string_value_iid"):
            return self._texts["debug_annotation_string_values"][annotation.string_value_iid]
        return getattr(annotation, annotation.WhichOneof("value"))

    def _happen(self, time_ns: int, event: Any, name: str, arguments: dict[str, Any]) -> None:
        track = self.tracks[self._paths[event.track_uuid]]
        open_slices = self._open[event.track_uuid]
        if event.type == Event.TYPE_COUNTER:
            track.counter.append((time_ns, event.counter_value))
        elif event.type == Event.TYPE_INSTANT:
            track.instants.append(Slice(name, time_ns, arguments, time_ns))
        elif event.type == Event.TYPE_SLICE_BEGIN:
            begun = Slice(name, time_ns, arguments)
            siblings = open_slices[-1].inside if open_slices else track.slices
            siblings.append(begun)
            open_slices.append(begun)
        else:
            assert event.type == Event.TYPE_SLICE_END
            open_slices.pop().end_ns = time_ns
