"""
Hold events in a plain list: the smallest log that replay can read.
"""

from __future__ import annotations

from domain.envelope import Envelope
from store.codec import encode


class ListLog:
    """
    Be a log over stamped events, which tests may tamper with.
    """

    def __init__(self, stamped, log_id="list"):
        self.log_id = log_id
        self.events = [Envelope(place, *one) for place, one in enumerate(stamped, 1)]

    def append(self, stamped):
        self.events += [
            Envelope(place, *one) for place, one in enumerate(stamped, self.head() + 1)
        ]
        return self.head()

    def stamped(self, after=0):
        """
        Return the events after a position without their positions.
        """
        return [one.stamped() for one in self.read(after)]

    def head(self):
        return self.events[-1].position if self.events else 0

    def read(self, after=0, upto=None):
        last = self.head() if upto is None else upto
        return iter([one for one in self.events if after < one.position <= last])

    def rows(self, after=0, upto=None):
        return ((one.position, *encode(one.stamped())) for one in self.read(after, upto))

    def read_stream(self, stream, after_version=0):
        return iter([
            one for one in self.events if one.stream == stream and one.version > after_version
        ])

    def digest_at(self, position):
        return position.to_bytes(32, "big")

    def change(self, position, **fields):
        """
        Change fields of the envelope at a position.
        """
        self.events[position - 1] = self.events[position - 1]._replace(**fields)

    def where(self, kind, number=1):
        """
        Return the position of the n-th event of a class.
        """
        found = [one.position for one in self.events if isinstance(one.event, kind)]
        return found[number - 1]
