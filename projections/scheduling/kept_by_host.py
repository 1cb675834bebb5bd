"""
What must stay free of hosts that are wanted at some moments, host by host.
"""

from __future__ import annotations

from collections.abc import Iterator

from domain.amounts import Amount
from domain.event import sure
from domain.reservations import KeptRun
from projections.scheduling.endings import Endings
from projections.scheduling.foreseen import Wanted


class _Host:
    """
    Add up what is wanted of one host, and what of it must be kept.
    """

    __slots__ = ("amounts", "kept", "slots", "slots_kept")

    def __init__(self) -> None:
        self.slots = self.slots_kept = 0
        self.amounts: dict[str, int] = {}
        self.kept: dict[str, int] = {}

    def want(self, run: KeptRun) -> None:
        """
        Want a share from some moment on.
        """
        self.slots += run.slots
        for amount in run.amounts:
            name = amount.resource
            self.amounts[name] = self.amounts.get(name, 0) + amount.milli

    def keep(self, endings: Endings, number: int, start_us: int) -> bool:
        """
        Keep what isn't given back by a moment of all that is wanted from then on; return False
        where there isn't so much then.
        """
        given, usable = endings.usable(number, start_us)
        if self.slots > usable:
            return False
        self.slots_kept = max(self.slots_kept, self.slots - given)
        for name, milli in self.amounts.items():
            given, available = endings.available(name, number, start_us)
            if milli > available:
                return False
            self.kept[name] = max(self.kept.get(name, 0), milli - given)
        return True


def kept_by_host(endings: Endings, wanted: Wanted) -> tuple[KeptRun, ...] | None:
    """
    Return what must stay free of hosts; see ``Forecasts.kept_for``.

    Equivalent to: go through what is wanted in order of time, end the jobs that will have ended,
    and look at every host. Differs in: hosts of which no more is wanted are passed over, since they
    only get back more, and are looked at by what they have got back, added up once.
    """
    hosts: dict[int, _Host] = {}
    names: dict[str, None] = {}
    for start_us, runs in sorted(wanted, key=lambda each: each[0]):
        touched: dict[int, _Host] = {}
        for run in runs:
            names.update((amount.resource, None) for amount in run.amounts)
            for number in range(run.first, run.first + run.hosts):
                host = hosts.get(number)
                if host is None:
                    host = hosts[number] = _Host()
                host.want(run)
                touched[number] = host
        if not all(host.keep(endings, number, start_us) for number, host in touched.items()):
            return None
    return tuple(_runs_of(hosts, list(names)))


def _runs_of(hosts: dict[int, _Host], names: list[str]) -> Iterator[KeptRun]:
    """
    Yield what is kept as runs of neighbours that keep the same.
    """
    first = count = 0
    last: tuple[int, ...] | None = None
    for number in sorted(hosts):
        host = hosts[number]
        share = (host.slots_kept, *[host.kept.get(name, 0) for name in names])
        if share == last and number == first + count:
            count += 1
            continue
        if last is not None and any(last):
            yield _run(first, count, last, names)
        first, count, last = number, 1, share
    if last is not None and any(last):
        yield _run(first, count, last, names)


def _run(first: int, hosts: int, share: tuple[int, ...], names: list[str]) -> KeptRun:
    slots, *amounts = share
    own = tuple(
        sure(Amount, resource=name, milli=milli)
        for name, milli in zip(names, amounts, strict=True)
        if milli
    )
    return sure(KeptRun, first=first, hosts=hosts, slots=slots, amounts=own)
