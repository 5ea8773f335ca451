"""A file in which zeros take no room, for checkpoints of weights that were never computed."""

from __future__ import annotations

import os

_BLOCK_BYTES = 1 << 20
_ZEROS = bytes(_BLOCK_BYTES)


class SparseFile:
    """A new file that is written from its start to its end.

    Gigabytes of zeros, epoch after epoch, would otherwise be most of what a rehearsal takes.
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
        """Nothing is held back."""

    def close(self) -> None:
        """Give the file its length: it may end with zeros."""
        try:
            os.ftruncate(self._file, self._bytes)
        finally:
            os.close(self._file)
