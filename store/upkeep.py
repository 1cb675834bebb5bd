"""
What archiving and pruning leave in the log itself: who did it, when, and the anchors.
"""

from __future__ import annotations

from collections.abc import Sequence

from domain.envelope import Stamped
from domain.event import Event
from domain.events.log import LogArchived, LogPruned
from domain.ids import LOG
from store.codec import decode
from store.embedded.journal import Journal
from store.segments import Segment


def archived(segments: Sequence[Segment], wall_time_us: int) -> list[Event]:
    """
    Return an event for each new segment: its anchor, which so becomes part of the chain.
    """
    return [
        LogArchived(
            first_position=segment.first_position,
            last_position=segment.last_position,
            digest=segment.digest,
            file=segment.file,
            sha256=segment.sha256,
            wall_time_us=wall_time_us,
        )
        for segment in segments
    ]


def unrecorded(journal: Journal) -> list[Segment]:
    """
    Return the segments that no event names: new ones, and those of an archiving that was cut short
    between the move and its record.
    """
    segments = [segment for segment in journal.anchors.segments() if not segment.is_pruned]
    # What was pruned can't be read, and named only segments that are gone too.
    first = min((segment.first_position for segment in segments), default=0)
    named = set()
    for position in journal.positions_of(LOG):
        if position >= first > 0:
            _, stream, version, topic, state = journal.frame_at(position).row(position)
            event = decode(position, str(stream), version, topic, state).event
            if isinstance(event, LogArchived):
                named.add(event.first_position)
    return [segment for segment in segments if segment.first_position not in named]


def pruned(segments: Sequence[Segment], wall_time_us: int) -> list[Event]:
    """
    Return the event that says which positions are removed.
    """
    if not segments:
        return []
    first, last = segments[0], segments[-1]
    event = LogPruned(
        first_position=first.first_position,
        last_position=last.last_position,
        digest=last.digest,
        files=len(segments),
        wall_time_us=wall_time_us,
    )
    return [event]


def stamped(
    journal: Journal, events: Sequence[Event], *, actor: str, time_us: int
) -> list[Stamped]:
    """
    Return events of the log as one step after those that its stream has.

    Args:
        journal: Knows the stream's last version, also where its events were pruned.
        events: What happened.
        actor: Who did it.
        time_us: The log's own time, which doesn't go on while nobody schedules.
    """
    version, last = journal.last_version(LOG), len(events) - 1
    return [
        Stamped(LOG, version + place + 1, time_us, actor, "", event, place == last)
        for place, event in enumerate(events)
    ]
