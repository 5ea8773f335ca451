"""Writes programs that use again, move or change what a reader of the stream has already taken.

python fuzz/make_aliased.py

No pickler writes such files, and Python reads them all: what it reads is what we have to read. They
are put together instruction by instruction, and go into the corpus, where tests compare.
"""

from __future__ import annotations

from typing import Any

from make_corpus import BASE, entry, frames, segment, write

APPEND, APPENDS, LIST, MARK, POP, SET = b"a", b"e", b"]", b"(", b"0", b"s"
MEMOIZE = b"\x94"


def put(slot: int) -> bytes:
    return b"q" + bytes([slot])


def get(slot: int) -> bytes:
    return b"h" + bytes([slot])


def push(value: Any) -> bytes:
    """The instructions for a value, without the memo. Bytes are instructions already."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, bool):
        return b"\x88" if value else b"\x89"
    if isinstance(value, int):
        return b"\x8a\x08" + value.to_bytes(8, "little", signed=True)
    if isinstance(value, str):
        return b"\x8c" + bytes([len(value)]) + value.encode()
    if isinstance(value, tuple):
        return MARK + b"".join(map(push, value)) + b"t"
    if isinstance(value, list):
        return LIST + (MARK + b"".join(map(push, value)) + APPENDS if value else b"")
    if isinstance(value, dict):
        return b"}" + MARK + b"".join(push(key) + push(value[key]) for key in value) + b"u"
    return b"N"


def several(*items: Any) -> bytes:
    """A list that is appended at once."""
    return LIST + MARK + b"".join(map(push, items)) + APPENDS


def event(number: int, **more: Any) -> dict[str, Any]:
    return entry("alloc", BASE + 512 * number, 500 + number, number, **more)


def snapshot(**parts: Any) -> bytes:
    """A snapshot with its parts in this order; one with segments and traces if none are given."""
    parts = parts if "segments" in parts else {"segments": [], **parts}
    return b"\x80\x04" + push(parts) + b"."


def change(slot: int, key: str, value: Any) -> bytes:
    """Changes a dictionary of the memo, without a trace on the stack."""
    return get(slot) + push(key) + push(value) + SET + POP


def extend(slot: int, *values: Any) -> bytes:
    """Changes a list of the memo."""
    return get(slot) + MARK + b"".join(map(push, values)) + APPENDS + POP


def both(number: int, **more: Any) -> dict[str, Any]:
    """A dictionary that can be read as an event, as a segment and as a frame."""
    named = {"name": f"f{number % 2}", "filename": "file.py", "line": 7}
    return {**segment(frames=[]), **named, **event(number), **more}


def moved() -> dict[str, bytes]:
    """Entries and lists of entries that end up in another place."""
    first, second = push(event(1)), push(event(2))
    after = {"later": [1]}
    return {
        "entry_among_traces": snapshot(device_traces=several([], first, [])),
        "entries_among_traces": snapshot(device_traces=several([event(0)], [], first, second)),
        "entry_beside_list": snapshot(device_traces=[[]], host_traces=several([], first, second)),
        "trace_twice": snapshot(
            device_traces=several(LIST + put(1) + MARK + first + second + APPENDS, get(1))
        ),
        "trace_doubled": snapshot(device_traces=several(push([event(1), event(2)]) + b"2")),
        "trace_also_host": snapshot(
            device_traces=several(push([event(1)]) + put(1)), host_traces=get(1)
        ),
        "trace_also_unknown": snapshot(
            device_traces=several(push([event(1)]) + put(1)), future_key=get(1), **after
        ),
        "trace_then_segments": snapshot(
            device_traces=several(push([both(1), both(2)]) + put(1)), segments=get(1)
        ),
        "segments_then_trace": snapshot(
            segments=LIST + put(1),
            device_traces=several(get(1) + MARK + push(both(1)) + push(both(2)) + APPENDS),
        ),
        "trace_then_frames": snapshot(
            device_traces=several(push([both(1, state="inactive")]) + put(1)),
            segments=[segment(frames=get(1)), segment(1, blocks=get(1))],
        ),
        "filled_in_between": snapshot(
            device_traces=several(
                LIST + put(1) + MARK + first + get(1) + second + APPEND + POP + APPENDS
            )
        ),
        "filled_afterwards": snapshot(
            device_traces=several(LIST + put(1) + MARK + first + APPENDS, []) + extend(1, event(2))
        ),
        "outer_filled_afterwards": snapshot(
            device_traces=LIST + put(1) + MARK + push([event(1)]) + APPENDS,
            host_traces=push([event(3)]) + extend(1, [event(2)]),
        ),
        "annotations_twice": snapshot(
            external_annotations=LIST
            + put(1)
            + MARK
            + push({"name": "a", "stage": "START", "device": 0, "time_us": 1}) * 2
            + APPENDS
            + extend(1, {"name": "b", "stage": "END", "device": 0, "time_us": 2}),
            device_traces=[get(1) + POP + push([event(1)])],
        ),
        # MEMOIZE counts slots: here the next number is one that a trace has already.
        "slot_taken_by_row": snapshot(
            ignored=several(event(1)) + put(2),
            again=LIST + MEMOIZE,
            device_traces=LIST + MEMOIZE + MARK + get(2) + APPENDS,
        ),
    }


def changed() -> dict[str, bytes]:
    """Entries, and what they refer to, that change after they were read."""
    stack = frames(5)
    memoized = push(event(1, frames=stack)) + put(1)
    frame = push(stack[0]) + put(2)
    same = [event(number, frames=frames(5)) for number in range(4)]
    # Put into the memo before its items, as Python does, and after them, as C++ does.
    before = LIST + put(3) + MARK + push(stack[0]) + push(stack[1]) + APPENDS
    behind = push(stack[:2]) + put(3)
    pools = event(1, pool_id=LIST + put(4), frames=stack)
    return {
        "entry_changed": snapshot(
            device_traces=several(several(memoized, event(2)) + change(1, "size", 99))
        ),
        "entry_changed_at_once": snapshot(
            device_traces=several(several(memoized + change(1, "size", 99), event(2)))
        ),
        "entry_filled_twice": snapshot(
            device_traces=several(
                several(memoized + MARK + push("size") + push(99) + b"u", event(2))
            )
        ),
        "entry_filled_with_nothing": snapshot(
            ignored=push(5) + MARK + APPENDS + MARK + b"u",
            device_traces=several(several(b"}" + MARK + b"u" + push(event(1))[1:], event(2))),
        ),
        "entry_in_two_traces": snapshot(
            device_traces=several(several(event(0, frames=stack), memoized), several(get(1)))
        ),
        "frame_changed": snapshot(
            device_traces=several(
                several(event(1, frames=several(frame)), event(2, frames=several(get(2))))
                + change(2, "line", 99)
            )
        ),
        "frames_grow": snapshot(
            device_traces=several(
                several(event(1, frames=before), event(2, frames=get(3))) + extend(3, stack[2])
            )
        ),
        "equal_frames_grow": snapshot(
            device_traces=several(
                several(event(1, frames=stack[:2]), event(2, frames=behind)) + extend(3, stack[2])
            )
        ),
        "row_grows": snapshot(
            device_traces=several(
                several(
                    event(1, frames=several(frame)),
                    event(2, frames=several(get(2)) + put(3)),
                    event(3, frames=several(get(2))),
                )
                + extend(3, "more")
            )
        ),
        "pool_filled_afterwards": snapshot(device_traces=several(several(pools) + extend(4, 0, 1))),
        "equal_frames_in_two_traces": snapshot(
            device_traces=several(several(*same[:2], push(same[2]) + put(1)), several(get(1)))
        ),
        "segment_twice": snapshot(
            segments=several(push(segment(frames=frames(3))) + put(1), get(1)),
            host_segments=several(get(1)),
        ),
        "blocks_twice": snapshot(
            segments=several(segment(blocks=push(segment()["blocks"]) + put(1)), segment(1)),
            host_segments=several(segment(2, blocks=get(1))),
        ),
    }


def replaced() -> dict[str, bytes]:
    """Lists that are read as the same stack as one before them, and then as something else."""
    plain = several(both(1))
    equal = several(both(3, state="inactive")) + put(1)
    return {
        "frames_become_trace": snapshot(
            device_traces=several([event(0, frames=plain), event(1, frames=equal)], get(1))
        ),
        "frames_become_segments": snapshot(
            device_traces=several([event(0, frames=plain), event(1, frames=equal)]),
            segments=get(1),
        ),
        "frames_become_blocks": snapshot(
            device_traces=several([event(0, frames=plain), event(1, frames=equal)]),
            segments=[segment(blocks=get(1))],
        ),
        "tuple_for_list": snapshot(
            device_traces=several(
                [event(0, frames=(both(1),)), event(1, frames=equal)],
                get(1),
            )
        ),
        "pool_list_for_tuple": snapshot(
            device_traces=several(
                [event(0, pool_id=(0, 1)), event(1, pool_id=push([0, 1]) + put(1))],
                [event(2, pool_id=get(1))],
            )
        ),
        # The list that replaces the memo's goes inside another one, and its slot is reused.
        "stand_in_outlives": snapshot(
            device_traces=several(
                [
                    event(0, frames=frames(5)),
                    event(1, frames=push(frames(5)) + put(1)),
                    event(2, future_key=[get(1), None]),
                    event(3, frames=frames(6)),
                    event(4, frames=get(1)),
                ]
            )
        ),
        "odd_rows": snapshot(
            ignored=[push(7) + put(1), push(frames(5)[0]) + put(2)],
            device_traces=several(
                [event(number, frames=several(get(1), get(2), get(1))) for number in range(3)]
            ),
        ),
    }


def main() -> None:
    for group in (moved, changed, replaced):
        for name, content in group().items():
            write("snapshot", f"aliased-{name}", content)


if __name__ == "__main__":
    main()
