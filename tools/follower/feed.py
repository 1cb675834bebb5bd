"""
Catch a read model up with its log, follow the log, or make the read model anew.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import islice
from threading import Event as Signal

from domain.errors import Corrupt, NotFound, StoreUnavailable
from projections.audit.metadata import metadata_json
from projections.audit.projection import BATCH_EVENTS, AuditProjection
from projections.audit.read_model import OtherVersion, ReadModel
from store.log import EventLog
from tools.follower.place import Busy, Place, remove_database

# A follower that finds nothing new looks again after so long: lag stays far below a second, and
# what comes meanwhile is one transaction.
LOOK_S = 0.1
# After a full disk or a lock it tries again after so long.
RETRY_S = 1.0
# Questions fill the tables for moments; after so long it looks whether they are done.
TURN_S = 0.2
# Rows of a batch aren't rubbish: looking for cycles among them costs a fifth of the time.
GC_THRESHOLD = 200_000

Progress = Callable[[int, int], None]


@contextmanager
def _few_collections() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(GC_THRESHOLD, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def digest_text(log: EventLog, position: int) -> str:
    """
    Return the digest of a log's history up to a position, "" for position 0 and beyond the head.
    """
    return log.digest_at(position).hex() if 0 < position <= log.head() else ""


def open_checked(log: EventLog, place: Place) -> ReadModel:
    """
    Open the read model of a log to carry it on.

    Raises:
        NotFound: There is none.
        OtherVersion: Another version of the program made it.
        Corrupt: It isn't sound.
        Conflict: It belongs to another log, is ahead of this one, or this one's history differs.
    """
    current = place.current()
    if current is None:
        raise NotFound("read model", "there is none", str(place.link))
    model = ReadModel.open(current, log_id=log.log_id)
    try:
        model.check_against(log.head(), digest_text(log, model.position()))
    except BaseException:
        model.close()
        raise
    return model


def open_or_make(log: EventLog, place: Place, progress: Progress | None = None) -> ReadModel:
    """
    Open the read model of a log; make it anew when there is none, or none that can be carried on.

    One that belongs to another log, or is ahead of this one, is left alone and refused by name.
    """
    try:
        return open_checked(log, place)
    except (NotFound, OtherVersion):
        pass
    except Corrupt as error:
        if error.kind == "foreign":
            raise
    make_anew(log, place, progress)
    return open_checked(log, place)


def make_anew(log: EventLog, place: Place, progress: Progress | None = None) -> None:
    """
    Make the read model from the whole log in a new file, and let it take the old one's place.

    Somebody may fill the old one meanwhile: a follower goes over to the new one by itself.

    Raises:
        Busy: Another process does this just now.
    """
    with place.making():
        _make_anew(log, place, progress)


def _make_anew(log: EventLog, place: Place, progress: Progress | None) -> None:
    place.remove_others(place.current())  # what a kill left of an earlier try
    path = place.next_file()
    model = ReadModel.create_for_bulk(path, log_id=log.log_id)
    try:
        _take_all(log, AuditProjection(model), progress)
        model.complete()
        model.finish()
    except BaseException:
        model.close()
        remove_database(path)
        raise
    model.close()
    place.swap_in(path)
    place.link.with_name(f"{place.link.name}.metadata.json").write_text(
        metadata_json(place.link.stem)
    )


def _take_all(log: EventLog, projection: AuditProjection, progress: Progress | None) -> int:
    head = log.head()

    def told(position: int) -> None:
        if progress is not None:
            progress(position, head)

    # Of a log whose beginning was pruned the tables hold what is left.
    after = projection.position or log.info().first_position - 1
    with _few_collections():
        return projection.catch_up(
            log.read(after, head),
            digest_at=lambda at: digest_text(log, at),
            progress=told,
        )


def catch_up(log: EventLog, place: Place, progress: Progress | None = None) -> int:
    """
    Bring the read model to the log's head; return how many events it took.

    Raises:
        Busy: Another process fills it.
        Conflict: It isn't this log's.
    """
    with place.filling():
        before = place.current()
        model = open_or_make(log, place, progress)
        try:
            taken = _take_all(log, AuditProjection(model), progress)
            return taken if before == place.current() else model.position()
        finally:
            model.close()


def follow(
    log: EventLog,
    place: Place,
    stop: Signal,
    *,
    trouble: Callable[[Exception], None] | None = None,
    taken: Callable[[int], None] | None = None,
    waits_for_others: bool = False,
) -> None:
    """
    Keep the read model up with a log that somebody else writes, until stopped.

    A full disk or a lock is waited out; a read model that was damaged or deleted is made anew.

    Args:
        log: Open for reading.
        place: Where the read model is.
        stop: Ends it when set.
        trouble: Called with each error that is waited out.
        taken: Called with the position after each batch.
        waits_for_others: Wait while another process fills it.

    Raises:
        Busy: Another process fills it.
        Conflict: It isn't this log's.
    """
    with _turn(place, stop if waits_for_others else None), _few_collections():
        while not stop.is_set():
            try:
                model = open_or_make(log, place)
                try:
                    _follow_once(log, place, model, stop, taken)
                finally:
                    model.close()
            except Busy:
                stop.wait(TURN_S)
            except (StoreUnavailable, Corrupt) as error:
                if isinstance(error, Corrupt) and error.kind == "foreign":
                    raise
                if trouble is not None:
                    trouble(error)
                stop.wait(RETRY_S)


@contextmanager
def _turn(place: Place, stop: Signal | None) -> Iterator[None]:
    """
    Be the one that fills, after having waited until stopped when there is a signal to wait with.
    """
    with ExitStack() as stack:
        while stop is None or not stop.is_set():
            try:
                stack.enter_context(place.filling())
            except Busy:
                if stop is None:
                    raise
                stop.wait(TURN_S)
            else:
                break
        yield


def _follow_once(
    log: EventLog, place: Place, model: ReadModel, stop: Signal, taken: Callable[[int], None] | None
) -> None:
    """
    Take what is new, until stopped or until the file is no longer the present one.
    """
    projection = AuditProjection(model)
    opened = place.current()
    while not stop.is_set():
        if place.current() != opened:
            return
        batch = list(islice(log.read(projection.position), BATCH_EVENTS))
        if batch:
            last = batch[-1].position
            projection.take(batch, digest_text(log, last))
            if taken is not None:
                taken(last)
            continue
        stop.wait(LOOK_S)
