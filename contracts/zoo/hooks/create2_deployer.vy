# pragma version 0.4.3
# pragma evm-version cancun
"""
@title Puts code at an address known beforehand
@notice Anybody may create a contract at the CREATE2 address of its init code and a salt.
"""

event Created:
    account: indexed(address)


@external
def create(code: Bytes[49_152], salt: bytes32) -> address:
    account: address = raw_create(code, salt=salt)
    log Created(account=account)
    return account
