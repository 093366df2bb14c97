"""marks"""

from roundtrip.api.operation import Operation

MARKS: tuple[Operation, ...] = ()
