"""Pack weights into one file a device: streamed piece by piece, resumable, checksummed, renamed at the end.

While packing, `out.part` holds the pieces done so far and `out.journal` their checksums, one line a piece.
An interrupted run leaves those two and no `out`; the next run checks the pieces and goes on behind them.
"""

from collections.abc import Callable, Iterator, Sequence
from fcntl import LOCK_EX, LOCK_NB, flock
from json import dumps
from os import fsync
from pathlib import Path
from typing import BinaryIO, TextIO
from zlib import crc32

import numpy as np

from schedc.errors import UserError
from schedc.weights.forms import FORMS
from schedc.weights.forms.piece import Piece
from schedc.weights.layout import Layout
from schedc.weights.packed_file import ROW_BYTES, plan_header
from schedc.weights.source import WeightSource
from schedc.weights.words import LANES

Progress = Callable[[int, int], None]
"""Called with (bytes done, bytes in all) after every piece, also those that an earlier run had finished."""


def pack_arrays(layouts: Sequence[Layout], source: WeightSource) -> dict[str, np.ndarray]:
    """int32[rows, 128] of every layout, by its name, in memory."""
    arrays: dict[str, np.ndarray] = {}
    for layout in layouts:
        array = np.concatenate([piece.build(source) for piece in pieces_of(layout)])
        assert array.shape == (layout.rows, LANES), (layout, array.shape)
        arrays[layout.name] = array
    return arrays


def unpack(layout: Layout, words: np.ndarray) -> dict[str, np.ndarray]:
    """The f32 weights (as rounded to the layout's dtype) that `words` of int32[rows, 128] hold, by full name."""
    return FORMS[layout.form].unpack(layout, words)


def pieces_of(layout: Layout) -> Iterator[Piece]:
    return FORMS[layout.form].pieces(layout)


def pack(
    layouts: Sequence[Layout],
    source: WeightSource,
    out_path: Path,
    progress: Progress = lambda done, total: None,
    resume: bool = True,
) -> None:
    """Write the arrays of `layouts` to `out_path` (read it with packed_file.load_packed).

    Holds one piece (about 32 MiB, or one tile) at a time. Without `resume` it starts again. Raises UserError
    if the folder cannot be written, the disk is full or another run is packing the same file.
    """
    part, journal = out_path.with_name(f"{out_path.name}.part"), out_path.with_name(f"{out_path.name}.journal")
    try:
        out_path.parent.mkdir(parents=True, exist_ok=True)
        with part.open("a+b") as lock, part.open("r+b") as data, journal.open("a+", encoding="utf-8") as lines:
            try:
                flock(lock, LOCK_EX | LOCK_NB)
            except OSError:
                raise UserError(f"{out_path}: another run is packing this file; wait for it to end") from None
            lines.seek(0)
            _fill(layouts, source, data, lines, lines.read().splitlines() if resume else [], progress)
            part.replace(out_path)
            journal.unlink()
    except OSError as error:
        raise UserError(f"{out_path}: cannot be written: {error.strerror or error}") from None


def _fill(
    layouts: Sequence[Layout],
    source: WeightSource,
    data: BinaryIO,
    lines: TextIO,
    journal: list[str],
    progress: Progress,
) -> None:
    header = plan_header(layouts)
    run = dumps({"layouts": header.layouts_sha256, "source": source.identity()})
    finished = journal[1:] if journal[:1] == [run] else []
    if not finished:
        data.truncate(0)
    lines.truncate(0)
    print(run, file=lines)
    sums, done = [], 0
    total = sum(entry.bytes for entry in header.arrays)
    for layout, entry in zip(layouts, header.arrays, strict=True):
        value = 0
        data.seek(entry.offset)
        for piece in pieces_of(layout):
            kept = _kept_piece(data, piece, finished.pop(0)) if finished else None
            if kept is None:
                finished = []
                kept = np.ascontiguousarray(piece.build(source)).tobytes()
                assert len(kept) == piece.rows * ROW_BYTES, (layout, piece.rows)
                data.write(kept)
            data.flush()
            print(f"{crc32(kept):08x}", file=lines, flush=True)
            value = crc32(kept, value)
            done += len(kept)
            progress(done, total)
        sums.append(value)
    data.truncate(header.file_bytes)
    data.seek(0)
    data.write(header.with_sums(sums).encode())
    data.flush()
    fsync(data.fileno())


def _kept_piece(data: BinaryIO, piece: Piece, checksum: str) -> bytes | None:
    """The piece as an earlier run wrote it, or None, with the file's position as before."""
    start = data.tell()
    found = data.read(piece.rows * ROW_BYTES)
    if len(found) == piece.rows * ROW_BYTES and f"{crc32(found):08x}" == checksum:
        return found
    data.seek(start)
    return None
