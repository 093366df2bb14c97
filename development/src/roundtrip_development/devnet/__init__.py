"""The local chain: a real node with the real exchange contracts and tokens that behave or trap.

The only place in the project that holds keys and sends transactions.
"""
