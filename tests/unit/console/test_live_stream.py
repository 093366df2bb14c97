"""A live board's stream in gzip."""

import gzip
import zlib

from roundtrip.console.support.live_stream import GzipStream, encode_event


def test_parts_are_readable_as_they_come_and_their_whole_is_one_gzip_file() -> None:
    parts = [encode_event("rows", "<tr>" * 5000), encode_event("rows", "<tr>" * 5000), b": still there\n\n"]
    for viewer in range(2):
        stream, reads, packed = GzipStream(), zlib.decompressobj(zlib.MAX_WBITS | 16), b""
        for part in parts:
            piece = stream.pack(part)
            assert reads.decompress(piece) == part, viewer
            packed += piece
        packed += stream.pack(b"")
        assert gzip.decompress(packed) == b"".join(parts)
        assert len(packed) < 1000
