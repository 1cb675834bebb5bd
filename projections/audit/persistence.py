"""
The read model as a persistence module of the `eventsourcing` library, for its own projection
runner.

With ``AUDIT_PERSISTENCE_MODULE=projections.audit.persistence`` and ``AUDIT_READ_MODEL_PATH=FILE`` a
projection named ``audit`` keeps its view there, wherever the application keeps its events.
"""

from __future__ import annotations

from eventsourcing import persistence as library
from eventsourcing.utils import Environment, EnvType, resolve_topic

from projections.audit.recorder import SqliteTrackingRecorder, connect


class Factory(library.InfrastructureFactory[SqliteTrackingRecorder]):
    """
    Make tracking recorders; this module keeps no events.
    """

    READ_MODEL_PATH = "READ_MODEL_PATH"

    def __init__(self, env: Environment | EnvType | None) -> None:
        super().__init__(env)
        path = self.env.get(self.READ_MODEL_PATH)
        if not path:
            message = f"missing setting: {', '.join(self.env.create_keys(self.READ_MODEL_PATH))}"
            raise OSError(message)
        self._path = path
        self._made: list[SqliteTrackingRecorder] = []

    def tracking_recorder(
        self, tracking_recorder_class: type[SqliteTrackingRecorder] | None = None
    ) -> SqliteTrackingRecorder:
        """
        Make a tracking recorder, of the class given, or named by TRACKING_RECORDER_TOPIC, or the
        plain one.
        """
        topic = self.env.get(self.TRACKING_RECORDER_TOPIC)
        kind = tracking_recorder_class or (
            resolve_topic(topic) if topic else SqliteTrackingRecorder
        )
        made: SqliteTrackingRecorder = kind(connect(self._path))
        self._made.append(made)
        return made

    def aggregate_recorder(self, purpose: str = "events") -> library.AggregateRecorder:
        """
        Refuse: events are kept elsewhere.
        """
        raise library.NotSupportedError(purpose)

    def application_recorder(self) -> library.ApplicationRecorder:
        """
        Refuse: events are kept elsewhere.
        """
        message = "the read model keeps no events"
        raise library.NotSupportedError(message)

    def process_recorder(self) -> library.ProcessRecorder:
        """
        Refuse: events are kept elsewhere.
        """
        message = "the read model keeps no events"
        raise library.NotSupportedError(message)

    def close(self) -> None:
        """
        Close what was made.
        """
        for one in self._made:
            one.close()
