"""What is asked about anything: a transaction, a word."""

from roundtrip.api.operation import Operation

LOOKUPS: tuple[Operation, ...] = ()
