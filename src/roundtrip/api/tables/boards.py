"""What moves, who wins, what is odd."""

from roundtrip.api.operation import Operation

BOARDS: tuple[Operation, ...] = ()
