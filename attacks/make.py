"""Writes the hostile files of this folder, and expected.tsv: what each attempts and must report.

python attacks/make.py

Nothing here is dangerous to read as data. Do not open the files with Python's pickle module: some
of them name functions.
"""

from __future__ import annotations

import gzip
import pickle
import struct
from pathlib import Path

HERE = Path(__file__).parent
MEBIBYTE = 1 << 20


def text(value: str) -> bytes:
    content = value.encode()
    return b"\x8c" + bytes([len(content)]) + content


def proto(body: bytes, protocol: int = 4) -> bytes:
    return bytes([0x80, protocol]) + body


def snapshot(segments: bytes = b"]", traces: bytes = b"]]a", more: bytes = b"") -> bytes:
    """A snapshot around instructions that push its segments and its traces."""
    body = text("segments") + segments + text("device_traces") + traces + more
    return proto(b"}(" + body + b"u.")


def entry(*more: bytes) -> bytes:
    keys = text("action") + text("alloc") + text("addr") + b"K\x01" + text("size") + b"K\x02"
    return b"}(" + keys + b"".join(more) + b"u"


SEGMENT_KEYS = text("address") + b"K\x00" + text("total_size") + b"K\x00"
ONE_TRACE = b"]](" + entry() + b"ea"


def zstd_of_runs(byte: bytes, count: int, size: int, window_descriptor: int = 0x48) -> bytes:
    """A zstd frame of blocks that repeat one byte: four bytes for each `size` bytes."""
    blocks = bytearray()
    for number in range(count):
        last = number == count - 1
        header = (size << 3) | (1 << 1) | int(last)
        blocks += struct.pack("<I", header)[:3] + byte
    return b"\x28\xb5\x2f\xfd" + bytes([0x00, window_descriptor]) + bytes(blocks)


def safetensors() -> bytes:
    header = b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
    return struct.pack("<Q", len(header)) + header + b"\0\0\0\0"


def tar() -> bytes:
    block = bytearray(512)
    block[257:262] = b"ustar"
    return bytes(block)


def deep_memo_doubling(levels: int) -> bytes:
    """Lists of twice the previous list: 2^levels items if walked."""
    body = b"]\x94"
    for level in range(levels):
        slot = b"h" + bytes([level])
        body += b"0]\x94(" + slot + slot + b"e"
    return body


def many_times(count: int, slot: int) -> bytes:
    """A list that refers to one memo slot many times."""
    return b"](" + (b"h" + bytes([slot])) * count + b"e"


def tuple_doubling(levels: int) -> bytes:
    body = b"K\x01\x85\x94"
    for level in range(levels):
        body += b"0" + (b"h" + bytes([level])) * 2 + b"\x86\x94"
    return body


Attack = tuple[str, bytes, str, str]


def wrong_files() -> list[Attack]:
    """What people open by mistake."""
    checkpoint = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03."
    return [
        ("empty.pickle", b"", "is empty", "nothing at all"),
        ("text.pickle", b"Traceback (most recent call last):\n", "is not a pickle", "a log"),
        ("script.pickle", b"import torch\nimport sys\n", "is not a pickle", "begins like INST"),
        ("settings.pickle", b"card: 3060\nsteps: 9\n", "is not a pickle", "begins like GLOBAL"),
        ("web_page.pickle", b"<!DOCTYPE html><html>", "is an HTML page", "a saved web page"),
        ("json.pickle", b'{"segments": []}', "is a JSON file", "JSON"),
        ("tar.pickle", tar(), "is a tar archive", "an archive"),
        ("model.safetensors", safetensors(), "is a safetensors file", "weights"),
        (
            "checkpoint_zip.pt",
            b"PK\x03\x04" + bytes(60),
            "checkpoint made by torch.save",
            "a new checkpoint",
        ),
        ("checkpoint_legacy.pt", checkpoint, "checkpoint made by torch.save", "an old checkpoint"),
        (
            "number.pickle",
            pickle.dumps(7),
            "something else than a memory snapshot: one int",
            "an integer",
        ),
        (
            "list.pickle",
            pickle.dumps([1, 2]),
            "something else than a memory snapshot: a list",
            "integers",
        ),
        ("dict.pickle", pickle.dumps({"epoch": 3}), "but with `epoch`", "another dictionary"),
        ("nothing.pickle", pickle.dumps({}), "an empty dict", "an empty dictionary"),
        (
            "no_devices.pickle",
            pickle.dumps({"segments": [], "device_traces": []}),
            "no device at all",
            "a snapshot of a machine without a card",
        ),
        (
            "no_segments.pickle",
            pickle.dumps([]),
            "no device at all",
            "the old format, empty",
        ),
        (
            "twice_packed.gz",
            gzip.compress(gzip.compress(b"x", mtime=0), mtime=0),
            "is not a pickle",
            "gzip in gzip",
        ),
        (
            "damaged.gz",
            gzip.compress(b"x" * 500, mtime=0)[:-12],
            "cannot be decompressed",
            "truncated gzip",
        ),
        (
            "damaged.zst",
            b"\x28\xb5\x2f\xfd\xff\xff\xff",
            "cannot be decompressed",
            "zstd with a broken header",
        ),
    ]


def broken_programs() -> list[Attack]:
    """Programs that break the machine's rules."""
    whole = pickle.dumps({"segments": [{"blocks": []}], "device_traces": [[]]}, 4)
    return [
        ("truncated.pickle", whole[:-7], "is cut off after", "ends in the middle of a value"),
        (
            "truncated_operand.pickle",
            proto(b"J\x01\x02"),
            "is cut off after 5 bytes",
            "ends inside an operand",
        ),
        ("no_stop.pickle", proto(b"K\x01"), "is cut off after 4 bytes", "never stops"),
        ("future_protocol.pickle", b"\x80\x09.", "is not a pickle", "protocol 9"),
        (
            "unknown_instruction.pickle",
            proto(b"N\xff."),
            "0xff is not a pickle opcode",
            "no such opcode",
        ),
        ("stop_at_once.pickle", proto(b"."), "STOP needs a value", "a result from an empty stack"),
        ("pop_nothing.pickle", proto(b"0."), "POP needs a value", "pops an empty stack"),
        (
            "pop_below_mark.pickle",
            proto(b"N(a."),
            "APPEND needs a value",
            "reaches below a MARK",
        ),
        (
            "mark_missing.pickle",
            proto(b"]e."),
            "APPENDS needs a value",
            "closes a MARK that is not open",
        ),
        (
            "append_to_int.pickle",
            proto(b"K\x01K\x02a."),
            "expects a container, found int",
            "a wrong type",
        ),
        ("odd_dict.pickle", proto(b"}(K\x01u."), "key without a value", "half an entry"),
        (
            "list_as_key.pickle",
            proto(b"}]K\x01s."),
            "a key that cannot change",
            "a key Python would refuse",
        ),
        ("not_text.pickle", proto(b"\x8c\x02\xff\xfe."), "not UTF-8", "a string that is not UTF-8"),
        (
            "memo_unknown.pickle",
            proto(b"h\x05."),
            "memo slot 5",
            "reads a slot that was never written",
        ),
    ]


def code() -> list[Attack]:
    """Pickles that would run Python code."""
    system = b"cos\nsystem\n"
    return [
        (
            "global_reduce.pickle",
            proto(system + text("id") + b"\x85R."),
            "`os.system`",
            "runs a command",
        ),
        (
            "global_proto0.pickle",
            b"cposix\nsystem\n(S'id'\ntR.",
            "`posix.system`",
            "the same in protocol 0",
        ),
        (
            "stack_global.pickle",
            proto(text("os") + text("system") + b"\x93."),
            "`os.system`",
            "names by string",
        ),
        (
            "stack_global_int.pickle",
            proto(b"K\x01K\x02\x93."),
            "`<int>.<int>`",
            "names that are not strings",
        ),
        ("inst.pickle", b"(S'id'\nios\nsystem\n.", "`os.system`", "an old-style instance"),
        (
            "inside_trace.pickle",
            snapshot(traces=b"]](" + entry(text("frames"), system) + b"ea"),
            "`os.system`",
            "hides in an entry",
        ),
        (
            "extension.pickle",
            proto(b"\x82\x01."),
            "EXT1 would run Python code",
            "a registered extension",
        ),
        (
            "persistent.pickle",
            proto(b"N" + b"Q."),
            "BINPERSID would run Python code",
            "a persistent id",
        ),
        ("build.pickle", proto(b"}}b."), "BUILD would run Python code", "sets an object's state"),
        (
            "new_object.pickle",
            proto(b"N)\x81."),
            "NEWOBJ would run Python code",
            "creates an object",
        ),
        (
            "buffer.pickle",
            proto(b"\x97.", 5),
            "NEXT_BUFFER would run Python code",
            "memory from outside the file",
        ),
        (
            "terminal.pickle",
            proto(b"c\x1b[31mos\nsys\x07tem\n."),
            "`?[31mos.sys?tem`",
            "writes to the terminal through a name",
        ),
    ]


def large_numbers() -> list[Attack]:
    """Lengths and numbers that are not true."""
    return [
        (
            "long_string.pickle",
            proto(b"\x8d" + struct.pack("<Q", 1 << 62)),
            "is cut off",
            "a string of 2^62 bytes",
        ),
        (
            "long_bytes.pickle",
            proto(b"\x8e" + struct.pack("<Q", 1 << 40) + b"x"),
            "is cut off",
            "bytes of 1 TiB",
        ),
        (
            "long_bytearray.pickle",
            proto(b"\x96" + b"\xff" * 8, 5),
            "is cut off",
            "a buffer of 2^64 - 1 bytes",
        ),
        (
            "long_integer.pickle",
            proto(b"\x8b\xff\xff\xff\x7f\x01"),
            "is cut off",
            "an integer of 2 GiB",
        ),
        (
            "negative_length.pickle",
            proto(b"\x8b\xff\xff\xff\xff."),
            "a negative length",
            "an integer of -1 bytes",
        ),
        (
            "negative_string.pickle",
            proto(b"T\xff\xff\xff\xff."),
            "a negative length",
            "a string of -1 bytes",
        ),
        (
            "memo_last_slot.pickle",
            proto(b"K\x01r\xff\xff\xff\xffh\xff."),
            "memo slot 255",
            "writes slot 2^32 - 1",
        ),
        (
            "memo_beyond.pickle",
            b"K\x01p99999999999999\n.",
            "a memo slot's number is malformed",
            "slot 10^14",
        ),
        (
            "frame_length.pickle",
            proto(b"\x95" + b"\xff" * 8 + b"K\x01."),
            "one int",
            "a frame of 2^64 - 1 bytes",
        ),
        (
            "digits.pickle.gz",
            gzip.compress(b"\x80\x02L" + b"9" * (4 * MEBIBYTE) + b"L\n.", mtime=0),
            "an integer is malformed",
            "an integer of four million digits, which take hours to convert",
        ),
        (
            "line_without_end.pickle.gz",
            gzip.compress(b"I" + b"1" * (80 * MEBIBYTE), mtime=0),
            "a line without an end",
            "a line that never ends",
        ),
        (
            "extreme_sizes.pickle",
            pickle.dumps(
                {
                    "segments": [
                        {
                            "address": -1,
                            "total_size": 1 << 70,
                            "blocks": [
                                {
                                    "size": (1 << 64) - 1,
                                    "requested_size": (1 << 64) - 1,
                                    "state": "active_allocated",
                                }
                            ]
                            * 3,
                        }
                    ],
                    "device_traces": [
                        [
                            {
                                "action": "alloc",
                                "addr": n,
                                "size": (1 << 64) - 1,
                                "time_us": -(1 << 63),
                            }
                            for n in range(4)
                        ]
                        + [
                            {
                                "action": "free_completed",
                                "addr": 9,
                                "size": (1 << 64) - 1,
                                "time_us": (1 << 63) - 1,
                            }
                        ]
                        * 4
                    ],
                }
            ),
            "opens",
            "sizes whose sums overflow",
        ),
    ]


def depth_and_width() -> list[Attack]:
    """What grows: nesting, references, brackets, and files that are longer than they look."""
    deep = 150_000
    block = b"}\x94(" + text("size") + b"K\x01" + text("state") + text("inactive") + b"u"
    blocks = many_times(20_000, 0)
    segment = b"}\x94(" + SEGMENT_KEYS + text("blocks") + blocks + b"u"
    wide_segments = block + b"0" + segment + b"0" + many_times(20_000, 1)
    events = b"]\x94(" + entry() * 500 + b"e0" + many_times(100_000, 0)
    return [
        (
            "deep_lists.pickle.gz",
            packed(proto(b"]" * deep + b"a" * (deep - 1) + b".")),
            "a list with a list",
            "150,000 nested lists",
        ),
        (
            "deep_dicts.pickle.gz",
            packed(proto(b"}K\x00" * deep + b"N" + b"s" * deep + b".")),
            "without `segments`",
            "150,000 nested dictionaries",
        ),
        (
            "deep_tuples.pickle.gz",
            packed(proto(b")" + b"\x85" * deep + b".")),
            "one tuple",
            "150,000 nested tuples",
        ),
        (
            "deep_frames.pickle.gz",
            packed(
                snapshot(
                    traces=b"]](" + entry(text("frames"), b"]" * deep, b"a" * (deep - 1)) + b"ea"
                )
            ),
            "opens",
            "a stack of 150,000 nested lists",
        ),
        (
            "open_brackets.pickle.gz",
            packed(proto(b"(" * (8 * MEBIBYTE))),
            "more than",
            "8 million open MARKs",
        ),
        (
            "pushes.pickle.gz",
            packed(proto(b"N" * (8 * MEBIBYTE))),
            "more than",
            "8 million values on the stack from 8 kB",
        ),
        (
            "duplicates.pickle.gz",
            packed(proto(b"]" + b"2" * (8 * MEBIBYTE))),
            "more than",
            "the same with DUP",
        ),
        (
            "bomb.pickle.zst",
            zstd_of_runs(b"N", 4000, 128 * 1024),
            "more than",
            "half a gigabyte from 16 kB",
        ),
        (
            "bomb_of_nothing.pickle.gz",
            packed(proto(b"N0" * (4 * MEBIBYTE))),
            "is cut off",
            "8 MB that produce nothing",
        ),
        (
            "zstd_large_window.zst",
            zstd_of_runs(b"N", 8000, 128 * 1024, 0xA8),
            "cannot be decompressed",
            "1 GB that must all be kept, for a window of 1 GiB",
        ),
        (
            "zstd_window.zst",
            zstd_of_runs(b"N", 4, 1024, 0xFF),
            "cannot be decompressed",
            "a window of terabytes",
        ),
        (
            "laughs.pickle",
            proto(deep_memo_doubling(120) + b"."),
            "a list with a list",
            "2^120 items through the memo",
        ),
        (
            "laughs_in_keys.pickle",
            proto(b"}" + tuple_doubling(120) + b"Ns."),
            "without `segments`",
            "a key of 2^120 parts, which Python would hash one by one",
        ),
        (
            "laughs_in_frames.pickle",
            snapshot(traces=b"]](" + entry(text("frames"), deep_memo_doubling(120)) + b"ea"),
            "opens",
            "2^120 frames",
        ),
        (
            "wide_segments.pickle.gz",
            packed(wide_segments_snapshot(wide_segments)),
            "more than",
            "20,000 times the same segment of 20,000 times the same block",
        ),
        (
            "wide_traces.pickle.gz",
            packed(snapshot(traces=events)),
            "more than",
            "100,000 devices with the same 500 events",
        ),
        (
            "self_list.pickle",
            proto(b"]\x94h\x00a."),
            "a list with a list",
            "a list that contains itself",
        ),
        (
            "self_segments.pickle",
            proto(
                b"}\x94(" + text("segments") + b"]\x94h\x00a" + text("device_traces") + b"h\x00u."
            ),
            "opens",
            "a snapshot that is its own segment",
        ),
        (
            "self_frames.pickle",
            snapshot(traces=b"]](" + entry(text("frames"), b"]\x94h\x00a") + b"ea"),
            "opens",
            "a stack that is its own frame",
        ),
        (
            "many_keys.pickle.gz",
            packed(
                proto(
                    b"}"
                    + b"".join(b"J" + struct.pack("<i", n) + b"Ns" for n in range(60_000))
                    + b"."
                )
            ),
            "without `segments`",
            "a dictionary built one key at a time",
        ),
    ]


def wide_segments_snapshot(segments: bytes) -> bytes:
    return snapshot(segments=segments, traces=b"]")


def second_thoughts() -> list[Attack]:
    """Programs that come back to what a streaming reader has already dealt with."""
    memoized = (
        b"}\x94("
        + text("action")
        + text("alloc")
        + text("addr")
        + b"K\x01"
        + text("size")
        + b"K\x02u"
    )
    frame = b"}\x94(" + text("name") + text("f") + text("line") + b"K\x07u"
    row = b"](h\x00h\x00e"
    rows = (
        frame
        + b"0"
        + b"]]("
        + entry(text("frames"), row)
        + b"K\x05q\x000"
        + entry(text("frames"), row)
        + b"ea"
    )
    return [
        (
            "changed_after.pickle",
            snapshot(traces=b"]](" + memoized + b"eah\x00" + text("size") + b"K\x63s0"),
            "opens",
            "changes an entry after its list is complete",
        ),
        (
            "used_twice.pickle",
            snapshot(traces=b"]](" + memoized + b"h\x00ea"),
            "opens",
            "the same entry twice in a list",
        ),
        (
            "popped.pickle",
            snapshot(traces=b"]](" + memoized + b"0" + entry() + b"ea"),
            "opens",
            "discards an entry",
        ),
        (
            "pop_row.pickle",
            snapshot(traces=b"](](" + entry() * 3 + b"1e"),
            "opens",
            "discards a row of entries",
        ),
        (
            "moved_list.pickle",
            proto(
                b"}"
                + text("device_traces")
                + ONE_TRACE
                + b"0"
                + b"]]("
                + entry() * 2
                + b"ea"
                + b"s"
                + text("segments")
                + b"]s."
            ),
            "opens",
            "builds the traces, then others in their place",
        ),
        (
            "same_key_twice.pickle",
            snapshot(traces=b"]](" + entry(text("size"), b"K\x63") + b"ea"),
            "opens",
            "an entry with a key twice",
        ),
        (
            "other_meaning.pickle",
            snapshot(traces=rows),
            "opens",
            "gives a memo slot another meaning between two equal rows",
        ),
        (
            "entry_among_traces.pickle",
            snapshot(traces=b"](]" + entry() + b"]e"),
            "opens",
            "an entry that is appended to the list of traces, not to the trace before it",
        ),
        (
            "trace_as_root.pickle",
            proto(text("host_traces") + b"](" + entry() + b"K\x05e."),
            "a list with a dict",
            "leaves a list of entries as the whole value",
        ),
        ("rest_follows.pickle", snapshot() + b"garbage", "opens", "bytes after the end"),
    ]


def packed(content: bytes) -> bytes:
    # Without a date, so that the file is the same every time; zlib's version may change the bytes.
    return gzip.compress(content, 9, mtime=0)


def main() -> None:
    rows: list[str] = []
    groups = (wrong_files, broken_programs, code, large_numbers, depth_and_width, second_thoughts)
    for group in groups:
        for name, content, expected, tries in group():
            (HERE / name).write_bytes(content)
            rows.append(f"{name}\t{expected}\t{tries}")
    (HERE / "expected.tsv").write_text(
        "file\tmust say\twhat it attempts\n" + "\n".join(rows) + "\n"
    )


if __name__ == "__main__":
    main()
