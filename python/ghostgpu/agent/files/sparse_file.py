"""A file in which zeros take no disk space, for checkpoints of weights that were never computed."""

from __future__ import annotations

import os

_BLOCK_BYTES = 1 << 20
_ZEROS = bytes(_BLOCK_BYTES)


class SparseFile:
    """A new file that is written from start to end.

    Without it, writing gigabytes of zeros in every epoch would take most of a rehearsal's time.
    """

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
        self._bytes = 0

    def write(self, data: bytes | memoryview) -> int:
        """Append `data`; whole blocks of zeros are skipped."""
        view = memoryview(data).cast("B")
        for start in range(0, len(view), _BLOCK_BYTES):
            block = view[start : start + _BLOCK_BYTES]
            if len(block) < _BLOCK_BYTES or block.tobytes() != _ZEROS:
                self._write_at(self._bytes + start, block)
        self._bytes += len(view)
        return len(view)

    def _write_at(self, position: int, block: memoryview) -> None:
        while len(block) > 0:
            written = os.pwrite(self._file, block, position)
            position, block = position + written, block[written:]

    def flush(self) -> None:
        """Does nothing: there is no buffer."""

    def close(self) -> None:
        """Set the file's length, which skipped zeros at its end did not."""
        try:
            os.ftruncate(self._file, self._bytes)
        finally:
            os.close(self._file)
