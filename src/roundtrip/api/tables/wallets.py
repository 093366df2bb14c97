"""What is asked about one wallet."""

from roundtrip.api.operation import Operation

WALLETS: tuple[Operation, ...] = ()
