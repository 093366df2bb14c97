# pragma version 0.4.3
# pragma evm-version cancun
"""
@title A locker of v3 and v4 positions
@notice It keeps an NFT until its time; nobody, its author neither, can take it out before.
"""

from .lib import locks

initializes: locks

exports: (locks.unlockTime, locks.beneficiary, locks.lock, locks.withdraw)
