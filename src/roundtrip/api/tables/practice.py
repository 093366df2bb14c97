"""practice"""

from roundtrip.api.operation import Operation

PRACTICE: tuple[Operation, ...] = ()
