"""A verifier of prepared trades that does not trust the service that wrote them.

It imports nothing else of this package, and uses no node and no clock: only the standard library and keccak.
``verify(answer, network)`` returns whether the steps do what the answer claims; docs/verify.md explains what
that proves and what it cannot.
"""

from . import json_reader, network, report, rules

Network = network.TrustedNetwork
Request = network.TradeOrder
Report = report.VerifyReport
Unreadable = report.UnreadableClaim
verify = rules.verify
parse = json_reader.parse
parse_file = json_reader.parse_file
lines = report.lines

__all__ = ["Network", "Report", "Request", "Unreadable", "lines", "parse", "parse_file", "verify"]
