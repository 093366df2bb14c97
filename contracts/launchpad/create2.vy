# pragma version 0.4.3
# pragma evm-version cancun
"""
@title Deploys a contract at an address its salt decides
"""


@external
def deploy(code: Bytes[24576], salt: bytes32) -> address:
    return raw_create(code, salt=salt)
