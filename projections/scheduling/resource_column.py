"""
One resource over all hosts: what they have, what is charged, what is measured.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

Column = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

NOTHING_REPORTED: Final = -1


class ResourceColumn:
    """
    Hold one resource over all hosts.

    For a real resource (the operating system measures it): available = max(0, min(reported -
    unused, total - charged)), and the total where nothing is reported; unused is the sum over jobs
    of max(0, reserved - actual). For a virtual one: total - charged.
    """

    __slots__ = ("available", "charged", "is_real", "present", "reported", "total", "unused")

    def __init__(self, hosts: int) -> None:
        self.total: Column = np.zeros(hosts, np.int64)
        self.charged: Column = np.zeros(hosts, np.int64)
        self.unused: Column = np.zeros(hosts, np.int64)
        self.reported: Column = np.full(hosts, NOTHING_REPORTED, np.int64)
        self.available: Column = np.zeros(hosts, np.int64)
        self.is_real: Mask = np.zeros(hosts, np.bool_)
        self.present: Mask = np.zeros(hosts, np.bool_)

    def grow(self, hosts: int) -> None:
        """
        Make room for more hosts.
        """
        more = hosts - len(self.total)
        for name in ("total", "charged", "unused", "available"):
            setattr(self, name, np.append(getattr(self, name), np.zeros(more, np.int64)))
        self.reported = np.append(self.reported, np.full(more, NOTHING_REPORTED, np.int64))
        self.is_real = np.append(self.is_real, np.zeros(more, np.bool_))
        self.present = np.append(self.present, np.zeros(more, np.bool_))

    def relieved(self, charged: Column, unused: Column) -> Column:
        """
        Return what would be available if so much less were charged, and so much less unused.
        """
        left = self.total - self.charged + charged
        measured = np.where(
            self.is_real & (self.reported != NOTHING_REPORTED),
            np.minimum(self.reported - self.unused + unused, left),
            left,
        )
        return np.maximum(measured, 0)

    def settle(self, first: int, stop: int) -> None:
        """
        Work out again what is available on the hosts from first up to stop.
        """
        span = slice(first, stop)
        left = self.total[span] - self.charged[span]
        reported = self.reported[span]
        measured = np.where(
            self.is_real[span] & (reported != NOTHING_REPORTED),
            np.minimum(reported - self.unused[span], left),
            left,
        )
        self.available[span] = np.maximum(measured, 0)
