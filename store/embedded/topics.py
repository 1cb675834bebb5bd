"""
The topics of a log by number: each is stored once, and a row holds its number.

The frames themselves say which topics they bring; the table is a copy for finding them fast.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

import lmdb

from domain.errors import Corrupt
from store.embedded.cursors import pairs
from store.embedded.environment import Database, Environment
from store.embedded.frames import topic_mask
from store.embedded.layout import number_bytes, number_of


class TopicTable:
    """
    Know the topics that are committed; never one of a transaction that may still be undone.
    """

    def __init__(self, environment: Environment, database: Database | None) -> None:
        self._environment = environment
        self._database = database
        self._lock = threading.Lock()
        self.names: list[str] = []
        self.numbers: dict[str, int] = {}

    def load(self, transaction: lmdb.Transaction) -> None:
        """
        Read the topics that other processes added.
        """
        if transaction.stat(db=self._database)["entries"] == len(self.names):
            return
        cursor = transaction.cursor(db=self._database)
        self.remember({name.decode(): number_of(key) for key, name in pairs(cursor)})

    def remember(self, topics: dict[str, int]) -> None:
        """
        Add committed topics in order of their numbers; those known already are passed over.
        """
        with self._lock:
            for topic, number in sorted(topics.items(), key=lambda item: item[1]):
                if number == len(self.names):
                    self.names.append(topic)
                    self.numbers[topic] = number

    def number(
        self, topics: Sequence[str], new_topics: dict[str, int]
    ) -> tuple[dict[str, int], list[str]]:
        """
        Return the numbers of topics, and those of them that the log hasn't seen, in order.

        Args:
            topics: Each once.
            new_topics: What the present commit has brought so far; added to.
        """
        found: dict[str, int] = {}
        brought = []
        for topic in topics:
            number = self.numbers.get(topic, new_topics.get(topic))
            if number is None:
                number = new_topics[topic] = len(self.names) + len(new_topics)
                brought.append(topic)
            found[topic] = number
        return found, brought

    def put(self, transaction: lmdb.Transaction, new_topics: dict[str, int]) -> None:
        """
        Store the topics that a commit brings.
        """
        for topic, number in new_topics.items():
            transaction.put(number_bytes(number), topic.encode(), db=self._database)

    def names_upto(self, number: int, position: int) -> list[str]:
        """
        Return the names, read again when a number is unknown.

        Raises:
            Corrupt: There is no such number.
        """
        if number >= len(self.names):
            with self._environment.read() as transaction:
                self.load(transaction)
            if number >= len(self.names):
                raise Corrupt("schema", position, "a known topic", number, self._environment.path)
        return self.names

    def mask_of(self, topics: Sequence[str]) -> int:
        """
        Return the mask of those of the given topics that the log knows.
        """
        with self._environment.read() as transaction:
            self.load(transaction)
        return topic_mask([self.numbers[topic] for topic in topics if topic in self.numbers])

    def stored_names(self) -> list[str]:
        """
        Return the topics as they are stored now, in order of their numbers.
        """
        if self._database is None:
            return []
        with self._environment.read() as transaction:
            cursor = transaction.cursor(db=self._database)
            return [name.decode() for _, name in pairs(cursor)]
