"""league"""

from roundtrip.api.operation import Operation

LEAGUE: tuple[Operation, ...] = ()
