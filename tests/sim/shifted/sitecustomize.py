"""Read at the start of the processes of ``sim.bad_days``: their time of day is ahead by as many seconds as
the file SIM_CLOCK says, at any moment."""

import mmap
import os
import struct
import time

_PATH = os.environ.get("SIM_CLOCK")
if _PATH is not None:
    _real = time.time
    with open(_PATH, "rb") as _file:
        _ahead = mmap.mmap(_file.fileno(), 8, access=mmap.ACCESS_READ)

    def _shifted() -> float:
        return _real() + float(struct.unpack_from("<d", _ahead)[0])

    time.time = _shifted
