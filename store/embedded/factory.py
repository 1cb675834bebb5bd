"""
Settings to recorders: what the library's ``InfrastructureFactory.construct`` finds in this module.
"""

from __future__ import annotations

from typing import cast

from eventsourcing.persistence import (
    AggregateRecorder,
    ApplicationRecorder,
    InfrastructureFactory,
    ProcessRecorder,
)
from eventsourcing.utils import Environment as Variables
from eventsourcing.utils import EnvType, resolve_topic

from store.embedded.environment import acquire
from store.embedded.recorder import EmbeddedAggregateRecorder, EmbeddedApplicationRecorder
from store.embedded.settings import settings_from
from store.embedded.tracking import EmbeddedProcessRecorder, EmbeddedTrackingRecorder


class EmbeddedFactory(InfrastructureFactory[EmbeddedTrackingRecorder]):
    """
    Make recorders on one LMDB environment.
    """

    aggregate_recorder_class = EmbeddedAggregateRecorder
    application_recorder_class = EmbeddedApplicationRecorder
    tracking_recorder_class = EmbeddedTrackingRecorder
    process_recorder_class = EmbeddedProcessRecorder

    def __init__(self, env: Variables | EnvType | None) -> None:
        super().__init__(env)
        settings = settings_from(self.env.get, lambda name: ", ".join(self.env.create_keys(name)))
        self.environment = acquire(settings)
        self._is_closed = False

    def aggregate_recorder(self, purpose: str = "events") -> AggregateRecorder:
        """
        Return a recorder for events, or for the snapshots of aggregates.
        """
        return self.aggregate_recorder_class(self.environment, name=self.env.name, purpose=purpose)

    def application_recorder(self) -> ApplicationRecorder:
        """
        Return a recorder of the application's log.
        """
        topic = self.env.get(self.APPLICATION_RECORDER_TOPIC)
        chosen = resolve_topic(topic) if topic else self.application_recorder_class
        return cast("ApplicationRecorder", chosen(self.environment, name=self.env.name))

    def tracking_recorder(
        self, tracking_recorder_class: type[EmbeddedTrackingRecorder] | None = None
    ) -> EmbeddedTrackingRecorder:
        """
        Return a recorder of positions.
        """
        topic = self.env.get(self.TRACKING_RECORDER_TOPIC)
        chosen = tracking_recorder_class or (
            resolve_topic(topic) if topic else self.tracking_recorder_class
        )
        assert issubclass(chosen, EmbeddedTrackingRecorder), chosen
        return chosen(self.environment, name=self.env.name)

    def process_recorder(self) -> ProcessRecorder:
        """
        Return a recorder of the application's log together with positions.
        """
        topic = self.env.get(self.PROCESS_RECORDER_TOPIC)
        chosen = resolve_topic(topic) if topic else self.process_recorder_class
        return cast("ProcessRecorder", chosen(self.environment, name=self.env.name))

    def close(self) -> None:
        """
        Give the environment back; harmless when called again.
        """
        if not self._is_closed:
            self._is_closed = True
            self.environment.release()
