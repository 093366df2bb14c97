# pragma version 0.4.3
# pragma evm-version cancun
"""
@title The controller of a token
@notice Its owner can block wallets. It is no token.
"""

from ..tokens.lib import owned

initializes: owned

exports: owned.owner

blocked: public(HashMap[address, bool])


@deploy
def __init__():
    owned.__init__()


@external
@view
def isAllowed(source: address) -> bool:
    return not self.blocked[source]


@external
def block(account: address):
    owned._only_owner()
    self.blocked[account] = True
