"""bag"""

from roundtrip.api.operation import Operation

BAG: tuple[Operation, ...] = ()
