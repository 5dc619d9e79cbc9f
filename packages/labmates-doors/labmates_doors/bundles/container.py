"""The file of a bundle: a zip archive of three members, of which every byte is determined.

``manifest.json`` says what the study is, what it was made with, and the SHA-256 of the other members. ``tables.json``
holds the tables of its report, ``runs.jsonl.xz`` its runs, one a line. The members are stored without further
compression, texts in one form of JSON, so that a changed byte is either another content or no bundle.

A bundle is anybody's file: members are read under fixed names and up to fixed sizes, and nothing is unpacked by names
from the archive.
"""

from __future__ import annotations

import errno
import hashlib
import json
import lzma
import shutil
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from filecmp import cmp
from pathlib import Path
from typing import Any, BinaryIO, Final, NoReturn

from labmates.errors import LabmatesError, UsageError

MANIFEST, TABLES, RUNS = "manifest.json", "tables.json", "runs.jsonl.xz"
MEMBERS: Final = (MANIFEST, TABLES, RUNS)
MOST_RUNS: Final = 2**30
"""Maximum bytes of the compressed runs."""
MOST_TEXT: Final = 2**26
"""Maximum bytes of the manifest, of the tables, and of one run."""
MOST_UNPACKED: Final = 2**33
"""Maximum bytes of all runs."""
_MEMORY: Final = 2**27  # of the decompressor
_PIECE: Final = 2**20
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)


class BundleError(LabmatesError):
    """The file is no bundle as labmates writes it, or contradicts itself."""


@dataclass(frozen=True)
class Bundle:
    """An opened bundle, whose members have the digests that its manifest names.

    `digest` is the SHA-256 of the manifest, and so covers everything.
    """

    manifest: Mapping[str, Any]
    tables: Any
    digest: str
    runs: Path

    def lines(self) -> Iterator[str]:
        """Yield the lines of the runs. Raises `BundleError` if one is too long, or the compression is damaged."""
        try:
            with self.runs.open("rb") as file:
                yield from _lines(file)
        except lzma.LZMAError as error:
            raise BundleError(f"{RUNS} can't be unpacked: {error}") from error


def encode(value: Any, *, readable: bool = False) -> str:
    """The only form of JSON data in a bundle; raises `ValueError` for a number that is not finite."""
    form: dict[str, Any] = {"indent": 1} if readable else {"separators": (",", ":")}
    return json.dumps(value, allow_nan=False, **form)


def decode(text: str, what: str, *, readable: bool = False) -> Any:
    """JSON data in the form of `encode`; raises `BundleError` otherwise."""

    def refuse(number: str) -> NoReturn:
        raise ValueError(f"{number} is not a number")

    try:
        value = json.loads(text, parse_constant=refuse)
        is_same = encode(value, readable=readable) == text
    except (ValueError, RecursionError) as error:
        raise BundleError(f"{what} is not JSON as labmates writes it: {error}") from error
    if not is_same:
        raise BundleError(f"{what} is not in the form of JSON that labmates writes")
    return value


def sha256(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write the member of the runs. Raises `UsageError` if it would be too large to be read."""
    total = 0
    with lzma.open(path, "wb", format=lzma.FORMAT_XZ, preset=6) as file:
        for line in lines:
            raw = line.encode() + b"\n"
            total += len(raw)
            if len(raw) > MOST_TEXT or total > MOST_UNPACKED:
                raise UsageError(
                    f"the study is too large for a bundle: at most {MOST_TEXT >> 20} MB a run, "
                    f"{MOST_UNPACKED >> 30} GB in all"
                )
            file.write(raw)


def pack(folder: Path, target: Path) -> None:
    """Write the members in a folder as a bundle. Raises `UsageError` if one would be too large to be read."""
    for name in MEMBERS:
        if (folder / name).stat().st_size > _most(name):
            raise UsageError(f"the study is too large for a bundle: {name} has at most {_most(name) >> 20} MB")
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        for name in MEMBERS:
            info = zipfile.ZipInfo(name, _EPOCH)
            info.create_system, info.external_attr = 3, 0o100644 << 16
            with (folder / name).open("rb") as source, archive.open(info, "w") as member:
                shutil.copyfileobj(source, member)


@contextmanager
def opened(path: Path) -> Iterator[Bundle]:
    """Open a bundle; its members are in a temporary folder meanwhile.

    Raises `BundleError` if the file is no bundle or differs from its digests; `UsageError` if it can't be read.
    """
    with tempfile.TemporaryDirectory(prefix="labmates-bundle-") as name:
        folder = Path(name)
        try:
            _unpack(path, folder)
            pack(folder, folder / "again.zip")
            if not cmp(path, folder / "again.zip", shallow=False):
                raise BundleError("the archive has bytes that belong to no member, or other settings than labmates'")
            (folder / "again.zip").unlink()
        except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, ValueError) as error:
            raise BundleError(f"it is not a zip archive as labmates writes it: {error}") from error
        except OSError as error:
            if error.errno == errno.EINVAL:  # an address before the file's beginning
                raise BundleError("it is not a zip archive as labmates writes it: an address is impossible") from error
            raise UsageError(f"can't read the bundle '{path}': {error.strerror or error}") from error
        yield _checked(folder)


def _unpack(path: Path, folder: Path) -> None:
    if path.stat().st_size > MOST_RUNS + 3 * MOST_TEXT:
        raise BundleError("it is larger than a bundle can be")
    with zipfile.ZipFile(path) as archive:
        infos = archive.infolist()
        if (names := [info.filename for info in infos]) != [*MEMBERS]:
            other = next((name for name in names if name not in MEMBERS), None)
            holds = f"it holds '{other[:80]}'" if other is not None else f"it holds {len(names)} members"
            raise BundleError(f"{holds}; a bundle holds {', '.join(MEMBERS)}, in this order, and nothing else")
        for info in infos:
            if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size:
                raise BundleError(f"{info.filename} is compressed; the members of a bundle are not")
            if info.file_size > _most(info.filename):
                raise BundleError(f"{info.filename} is larger than {_most(info.filename) >> 20} MB")
            with archive.open(info) as member, (folder / info.filename).open("wb") as target:
                shutil.copyfileobj(member, target)


def _most(member: str) -> int:
    """The maximum bytes of a member."""
    return MOST_RUNS if member == RUNS else MOST_TEXT


def _checked(folder: Path) -> Bundle:
    manifest = decode(_text(folder / MANIFEST), MANIFEST, readable=True)
    files = manifest.get("files") if isinstance(manifest, dict) else None
    if not isinstance(files, dict) or files.keys() != {TABLES, RUNS}:
        raise BundleError(f"{MANIFEST} does not name the digests of {TABLES} and {RUNS}")
    for name, digest in files.items():
        if sha256(folder / name) != digest:
            raise BundleError(f"{name} is not the file whose digest {MANIFEST} names")
    tables = decode(_text(folder / TABLES), TABLES)
    return Bundle(manifest, tables, sha256(folder / MANIFEST), folder / RUNS)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except UnicodeDecodeError as error:
        raise BundleError(f"{path.name} has bytes that are not ASCII") from error


def _lines(file: BinaryIO) -> Iterator[str]:
    unpacker = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_MEMORY)
    parts: list[bytes] = []
    total = size = 0
    while not unpacker.eof:
        packed = file.read(_PIECE) if unpacker.needs_input else b""
        if unpacker.needs_input and not packed:
            raise BundleError(f"{RUNS} is cut")
        piece = unpacker.decompress(packed, _PIECE)
        total, size = total + len(piece), size + len(piece)
        if size > MOST_TEXT + _PIECE or total > MOST_UNPACKED:
            raise BundleError(f"{RUNS} holds more than {MOST_TEXT >> 20} MB a run or {MOST_UNPACKED >> 30} GB in all")
        parts.append(piece)
        if b"\n" in piece:
            *lines, rest = b"".join(parts).split(b"\n")
            parts, size = [rest], len(rest)
            for line in lines:
                try:
                    yield line.decode("ascii")
                except UnicodeDecodeError as error:
                    raise BundleError(f"{RUNS} has bytes that are not ASCII") from error
    if unpacker.unused_data or file.read(1) or any(parts):
        raise BundleError(f"{RUNS} has something after its last line")
