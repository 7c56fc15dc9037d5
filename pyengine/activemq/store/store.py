"""Where a durable broker keeps its messages, durable subscriptions and what each of them still has to get.

A broker writes in *units*: what one command changed is written whole or not at all. Units are written in their order,
several at a time if they came in at the same time (group commit): first into the journal, and all that the journal has
into the database when it is large or something must be read. Messages that came and went in between never reach the
database.
"""

from __future__ import annotations

import math
import os
import sqlite3
import threading
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple, cast

from pyengine._engine.message.message import Message
from pyengine.activemq._runtime.reentrant_lock import ReentrantLock
from pyengine.activemq.store.journal import JOURNAL, MARK, MOST, Journal, read, records
from pyengine.activemq.store.producer_sequence_ids import ProducerSequenceIds
from pyengine.activemq.store.reserve import keep, release_if_full
from pyengine.activemq.store.store_file import (
    FIELDS,
    FILE,
    MESSAGES,
    SCHEMA,
    Stored,
    check_format,
    destination_numbers,
    newest_sequence,
    reading,
    stored_messages,
)
from pyengine.activemq.store.store_options import ALL, EACH, Bands, SyncStrategy
from pyengine.activemq.store.store_unit import GONE, Unit, joined
from pyengine.errors import IllegalStateError, StoreError
from pyengine.folder_lock import FolderLock

_SYNCHRONOUS = {"always": "FULL", "periodic": "NORMAL", "never": "OFF"}
LOOK = 1.0  # seconds after which a write looks again whether the files are still there
FEW = 1 << 12  # bytes of the journal where room is short: SQLite keeps the old pages of what it takes over
_APART = 256  # units of the journal that are kept one by one; many would keep the garbage collector busy
PRODUCER = "producer:"  # what the marks of producers begin with
_NUMBERS = 1 << 20  # sequence numbers that are taken at once, so that none comes again when all messages are gone


def delete_store(directory: str | Path) -> None:
    """Delete the files of the store in a directory, if any. Raises IllegalStateError while a broker uses it."""
    folder = Path(directory)
    if not folder.is_dir():
        return
    try:
        lock = FolderLock(folder)
    except BlockingIOError as error:
        raise IllegalStateError(f"the store in {str(folder)!r} is in use by another broker") from error
    try:
        for name in (FILE, f"{FILE}-wal", f"{FILE}-shm", JOURNAL):
            (folder / name).unlink(missing_ok=True)
    finally:
        lock.release()


class StoredSubscription(NamedTuple):
    """A durable subscription as it lies in the store."""

    number: int
    client_id: str
    name: str
    destination: str
    selector: str | None
    no_local: bool


class SqliteStore:
    """A store in a directory: one SQLite database in WAL mode, and a journal of what it does not have yet.

    journal_disk_sync_strategy: "always": what a command changed is on the disk when the command returns; "periodic"
    (default): it survives the end of the process at any moment, and after a power failure the newest units may be
    missing, never part of one; "never": the same, and the file system decides when anything reaches the disk.

    Every method but ``wait``, ``write`` and ``close`` is called by the broker under its lock.
    """

    def __init__(self, directory: str | Path, journal_disk_sync_strategy: SyncStrategy = "periodic") -> None:
        folder = Path(directory)
        self.path = folder / FILE
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = FolderLock(folder)
        except BlockingIOError as error:
            raise IllegalStateError(f"the store in {str(folder)!r} is in use by another broker") from error
        except (OSError, ValueError) as error:  # a name with a NUL is a ValueError
            problem = error.strerror if isinstance(error, OSError) else error
            raise StoreError(str(folder), f"cannot be opened: {problem}; name a folder to write to") from error
        try:
            new = not self.path.exists()
            # Where room is short nothing is written twice: SQLite's WAL would be, and grow with what is taken away.
            self._short = not new and release_if_full(folder)
            with reading(self.path):
                self._db = sqlite3.connect(
                    self.path, isolation_level=None, check_same_thread=False, cached_statements=256
                )
                try:
                    self._prepare()
                    self._recover(folder / JOURNAL)
                    self._db.execute(f"PRAGMA synchronous = {_SYNCHRONOUS[journal_disk_sync_strategy]}")
                    self._count()
                    most = FEW if self._short else MOST
                    synced = journal_disk_sync_strategy == "always"
                    self._journal = Journal(folder / JOURNAL, self.mark(MARK, 0), synced=synced, most=most)
                    if not self._short:
                        keep(folder, new=new)
                    self._files = [(path, os.stat(path)) for path in (self.path, folder / JOURNAL)]
                except BaseException:
                    self._db.close()
                    raise
        except BaseException:
            self._lock.release()
            raise
        # Ctrl-C comes between two calls of the main thread. What belongs together is assigned without one in between,
        # and a lock that is taken again must not be interrupted.
        self._turn = ReentrantLock()  # taken by itself: Ctrl-C within Condition.__enter__ would leave it locked
        self._changed = threading.Condition(cast(Any, self._turn))
        self._writing = False
        self._open = False  # the present unit is in the transaction in part
        self._broken: tuple[str, Exception] | None = None
        self._looked = -math.inf
        self._current = Unit()
        self._pending: list[Unit] = []
        self._left: list[Unit] = []  # what the journal has and the database has not
        self._applied: list[Unit] = []  # what the transaction has so far
        self._sealed = 0
        self._written = 0

    def _prepare(self) -> None:
        self._db.execute(f"PRAGMA journal_mode = {'DELETE' if self._short else 'WAL'}")
        self._db.execute("PRAGMA fullfsync = ON")  # for macOS, see disk_sync; nothing elsewhere
        check_format(self._db, self.path, 0)  # a file that is new
        self._db.executescript(SCHEMA)

    def _recover(self, path: Path) -> None:
        """The database takes over what the journal of a broker that was killed has."""
        newest = self.mark(MARK, 0)
        left = records(read(path), newest)
        if left:
            whole = joined([Unit.from_text(text) for text in left])
            whole.marks[MARK] = newest + len(left)
            self._db.execute("PRAGMA synchronous = FULL")  # the disk may have the journal, which is emptied then
            try:
                whole.write(self._db)
            except sqlite3.Error as error:
                raise StoreError(str(self.path), f"cannot take over {path.name}, which stays: {error}") from error

    def _count(self) -> None:
        self._names = destination_numbers(self._db)
        self._sizes: dict[int, int] = dict(self._db.execute("SELECT id, size FROM destination"))
        self._sequence = self._taken = max(newest_sequence(self._db), self.mark("sequence", 0))
        found = self._db.execute("SELECT name, number FROM mark WHERE name LIKE ?", (f"{PRODUCER}%",))
        self._producers = ProducerSequenceIds((name.removeprefix(PRODUCER), number) for name, number in found)
        self._subscription: int = self._db.execute("SELECT coalesce(max(id), 0) FROM subscription").fetchone()[0]

    # What there is

    def destinations(self) -> list[str]:
        """Qualified names of the destinations that were ever written to."""
        return list(self._names)

    def destination(self, name: str) -> int:
        """The number of a destination, given to it on first use. Raises StoreError for a name it cannot keep."""
        found = self._names.get(name)
        if found is None:
            self.check_text(name)
            found = self._names[name] = len(self._names) + 1
            self._current.destinations.append((found, name))
        return found

    def count(self, destination: int) -> int:
        """How many messages of a destination the store had when it was opened."""
        return self._sizes.get(destination, 0)

    def size(self, name: str) -> int:
        """How many messages of a destination there are now."""
        self._bring_in()
        with reading(self.path):
            found = self._db.execute("SELECT size FROM destination WHERE name = ?", (name,)).fetchone()
        return 0 if found is None else int(found[0])

    def sequence_at(self, name: str, place: int) -> int | None:
        """The sequence number of the first, second, ... message of a destination; None: there are fewer."""
        self._bring_in()
        query = (
            "SELECT m.sequence FROM message m JOIN destination d ON d.id = m.destination "
            "WHERE d.name = ? ORDER BY m.sequence LIMIT 1 OFFSET ?"
        )
        with reading(self.path):
            found = self._db.execute(query, (name, place - 1)).fetchone()
        return None if found is None else int(found[0])

    def load(self, destination: int, after: tuple[int, int], limit: int, bands: Bands = ALL) -> list[Stored]:
        """The next messages of a destination, in order, that come after a position (``limit`` -1: all of them).

        bands: which priorities come before others; a position is (number of the band, sequence).
        """
        self._bring_in()
        query = f"{MESSAGES} WHERE m.destination = ? AND %s AND m.sequence > ? ORDER BY m.sequence LIMIT ?"
        return self._by_bands(query, (destination,), after, limit, bands)

    def load_waiting(
        self, subscription: int, destination: int, after: tuple[int, int], limit: int, *, by_priority: bool
    ) -> list[Stored]:
        """The next messages of a topic that a durable subscription waits for.

        by_priority: the position is (-priority, sequence) and higher priorities come first, else (0, sequence).
        """
        self._bring_in()
        if not by_priority:
            query = (
                f"{FIELDS} FROM reference r CROSS JOIN message m "
                "ON m.destination = r.destination AND m.sequence = r.sequence "
                "WHERE r.subscription = ? AND r.destination = ? AND r.sequence > ? ORDER BY r.sequence LIMIT ?"
            )
            return self._rows(query, (subscription, destination, after[1], limit))
        query = (
            f"{MESSAGES} CROSS JOIN reference r ON r.subscription = ? AND r.sequence = m.sequence "
            "WHERE m.destination = ? AND %s AND m.sequence > ? ORDER BY m.sequence LIMIT ?"
        )
        return self._by_bands(query, (subscription, destination), (9 + after[0], after[1]), limit, EACH)

    def _by_bands(
        self, query: str, where: tuple[int, ...], after: tuple[int, int], limit: int, bands: Bands
    ) -> list[Stored]:
        if len(bands) > 1:
            with reading(self.path):
                self._db.execute("CREATE INDEX IF NOT EXISTS by_priority ON message (destination, priority, sequence)")
        found: list[Stored] = []
        for number in range(max(0, after[0]), len(bands)):
            left = -1 if limit < 0 else limit - len(found)
            if left == 0:
                break
            lowest, highest = bands[number]
            # Of several priorities the order is that of the table itself: no index has it.
            band = f"m.priority = {lowest}" if lowest == highest else f"+m.priority BETWEEN {lowest} AND {highest}"
            start = after[1] if number == after[0] else -1
            found += self._rows(query % band, (*where, start, left))
        return found

    def _rows(self, query: str, arguments: tuple[int, ...]) -> list[Stored]:
        with reading(self.path):
            return [*stored_messages(self._db, query, arguments)]

    def subscriptions(self) -> list[StoredSubscription]:
        """The durable subscriptions that were written, in the order in which they were made."""
        query = "SELECT id, client_id, name, destination, selector, no_local FROM subscription ORDER BY id"
        with reading(self.path):
            return [
                StoredSubscription(number, client_id, name, destination, selector, bool(no_local))
                for number, client_id, name, destination, selector, no_local in self._db.execute(query)
            ]

    def waiting(self) -> list[tuple[int, str, int]]:
        """How many messages of which topic each durable subscription waits for: subscription, topic, number."""
        names = {number: name for name, number in self._names.items()}
        query = "SELECT subscription, destination, count(*) FROM reference GROUP BY subscription, destination"
        with reading(self.path):
            try:
                return [(number, names[where], count) for number, where, count in self._db.execute(query)]
            except KeyError as error:
                raise sqlite3.DatabaseError(f"there is no destination {error}") from error

    def mark(self, name: str, default: int) -> int:
        """The number that was kept under a name before the store was opened."""
        with reading(self.path):
            found = self._db.execute("SELECT number FROM mark WHERE name = ?", (name,)).fetchone()
        return default if found is None else int(found[0])

    def last_produced(self, producer: str) -> int:
        """See ProducerSequenceIds."""
        return self._producers.last_produced(producer)

    def check_text(self, *texts: str | None) -> None:
        """Raises StoreError for a name or selector that cannot be kept: SQLite has no half of a surrogate pair."""
        for text in texts:
            try:
                (text or "").encode()
            except UnicodeEncodeError as error:
                raise StoreError(str(self.path), f"cannot keep {text!r}: {error}") from error

    # Changes of the present unit

    def reserve(self, least: int = 0) -> int:
        """The next sequence number, which is not below ``least``."""
        self._sequence = max(self._sequence + 1, least)
        if self._sequence > self._taken:
            self._taken = self._sequence + _NUMBERS
            self.set_mark("sequence", self._taken)
        return self._sequence

    def produced(self, producer: str, number: int) -> None:
        """Keep the number of a producer's message, which comes with the present unit: it may be sent again."""
        last, forgotten = self._producers.produced(producer, number)
        self.set_mark(f"{PRODUCER}{producer}", last)
        if forgotten is not None:
            self.set_mark(f"{PRODUCER}{forgotten}", GONE)

    def add(self, destination: int, message: Message, redeliveries: int = 0, *, sequence: int | None = None) -> int:
        """Keep a message; returns its sequence number, which only grows. sequence: it was reserved."""
        number = self.reserve() if sequence is None else sequence
        self._current.added[number] = (destination, message, redeliveries)
        return number

    def remove(self, destination: int, sequence: int) -> None:
        """Forget a message."""
        if self._current.added.pop(sequence, None) is None:
            self._current.removed.append((destination, sequence))

    def redelivered(self, destination: int, sequence: int, redeliveries: int) -> None:
        """Note a message's redelivery counter."""
        added = self._current.added.get(sequence)
        if added is not None:
            self._current.added[sequence] = (destination, added[1], redeliveries)
        else:
            self._current.counters.append((redeliveries, destination, sequence))

    def add_subscription(
        self, client_id: str, name: str, destination: str, selector: str | None, no_local: bool
    ) -> int:
        """Keep a durable subscription, of texts that were checked; returns its number."""
        self._subscription += 1
        row = (self._subscription, client_id, name, destination, selector, no_local)
        self._current.subscriptions.append(row)
        return self._subscription

    def remove_subscription(self, number: int) -> None:
        """Forget a durable subscription, and the messages that no other subscription waits for."""
        self._current.forget(number)

    def refer(self, subscription: int, destination: int, sequence: int) -> None:
        """A durable subscription waits for a message."""
        self._current.referred.setdefault((destination, sequence), []).append(subscription)

    def release(self, subscription: int, destination: int, sequence: int) -> None:
        """It waits for it no more; the store forgets the message if no other subscription does."""
        self._current.release(subscription, (destination, sequence))

    def set_mark(self, name: str, number: int) -> None:
        """Keep a number under a name, together with the present unit."""
        self._current.marks[name] = number

    def seal(self) -> int:
        """The present unit is complete: it is written whole, with the next ``wait`` or ``load``.

        Returns its number for ``wait``, 0 if it is empty.
        """
        if not self._current and not self._open:
            return 0
        with self._turn:
            following = Unit()
            self._pending += [self._current]
            self._current = following
            self._open = False
            self._sealed += 1
            self._changed.notify_all()
            return self._sealed

    def wait(self, unit: int) -> None:
        """Return when the units up to ``unit`` are written. Raises StoreError if they cannot be."""
        if self._written >= unit:
            return
        with self._turn:
            while self._written < unit:
                self._refuse()
                if self._writing or self._open:
                    self._changed.wait()
                    continue
                self._write()

    def write(self) -> bool:
        """Write all that is sealed; False, and nothing is done, if another thread is writing now."""
        with self._turn:
            if self._writing or self._open:
                return self._written == self._sealed
            upto = self._sealed
        self.wait(upto)
        return True

    def _write(self) -> None:
        """Write what is sealed, the condition is held: into the journal, or where that is full into the database."""
        if self._db.in_transaction:
            self._hand_over()
            return
        upto, unit = self._sealed, joined(self._pending)
        number = self._journal.file.newest + 1
        if unit:
            text = unit.to_text()
            if not self._journal.has_room(text):
                self._hand_over()
                return
            try:
                self._look(LOOK)
                self._journal.append(text)
            except OSError as error:
                self._give_up(error)
                return
            finally:
                if self._journal.file.newest == number:  # also where Ctrl-C came right behind it
                    self._left += [unit]
                    self._pending = []
            if len(self._left) > _APART:
                self._left = [joined(self._left)]
        if self._journal.is_synced:
            self._pending = []
            self._written = upto
        else:
            self._sync(upto)

    def _sync(self, upto: int) -> None:
        """Wait for the disk; the condition is given up meanwhile."""
        synced = False
        self._writing = True
        try:
            self._changed.release()
            self._journal.sync()
            synced = True
        except OSError as error:
            self._give_up(error)
        finally:
            try:
                self._changed.acquire()
            finally:
                self._writing = False
                if synced:
                    self._written = upto
                self._changed.notify_all()

    def _hand_over(self) -> None:
        """The database takes what the journal has and what is sealed; the condition is held, given up meanwhile.

        Ctrl-C leaves it to the next thread that waits.
        """
        left, pending, upto, written = self._left, self._pending, self._sealed, False
        # What the journal does not have has a number too: if the power fails before it is on the disk, no later record
        # counts.
        number = self._journal.file.newest + 1
        begun, changes = self._db.in_transaction, self._db.total_changes
        self._pending = []
        self._writing = True
        try:
            self._changed.release()
            self._look(LOOK)
            whole = joined([*left, *pending])
            whole.marks[MARK] = number
            whole.write(self._db)
            written = True
        except (sqlite3.Error, OSError) as error:
            self._give_up(error)
        except BaseException:
            written = not self._roll_back() and (begun or self._db.total_changes != changes)
            raise
        finally:
            try:
                self._changed.acquire()
            finally:
                self._writing = False
                if written:
                    self._written = upto
                    self._left = []
                    self._journal.file.newest = number
                else:
                    self._pending = self._applied + pending + self._pending
                self._applied = []
                self._changed.notify_all()
        if written:
            self._empty()

    def _empty(self) -> None:
        """The journal's records are behind the database; that it keeps them would do no harm."""
        try:
            self._journal.empty()
        except OSError as error:
            self._give_up(error)

    def _roll_back(self) -> bool:
        """Forget what the transaction has so far; False: there is none."""
        if not self._db.in_transaction:
            return False
        self._db.execute("ROLLBACK")
        return True

    def _bring_in(self) -> None:
        """Make everything so far visible to reading; the present unit is written for good once it is sealed."""
        self._refuse()
        if not self._open:
            self._bring_up()
        if self._current:
            with self._turn:
                while self._writing:
                    self._changed.wait()
                current, rest = self._current, Unit()
                self._current = rest
                self._applied += [current]
                self._open = True
                try:
                    current.apply(self._db)
                except sqlite3.Error as error:
                    self._give_up(error)
                    self._open = False
                    self._sealed += 1  # the unit that no caller waits for with success
                    self._changed.notify_all()
                    self._refuse()
                except BaseException:
                    self._roll_back()
                    self._current, self._applied, self._open = joined(self._applied), [], False
                    raise

    def _bring_up(self) -> None:
        """The database has all that is sealed."""
        if not self._left and self._written == self._sealed:
            return
        with self._turn:
            while self._left or self._written < self._sealed:
                self._refuse()
                if self._writing:
                    self._changed.wait()
                else:
                    self._hand_over()

    def _look(self, age: float) -> None:
        """Raise OSError if a file was removed or replaced, which a writer of the open file does not notice.

        Nothing is done if the last look was less than ``age`` seconds ago: at each write it would cost other threads
        more than the write.
        """
        if monotonic() - self._looked >= age:
            for path, known in self._files:
                if not os.path.samestat(known, os.stat(path)):
                    raise FileExistsError(f"{path} is another file")
            self._looked = monotonic()

    def _give_up(self, error: sqlite3.Error | OSError) -> None:
        """A unit cannot be written: nor is any after it."""
        if isinstance(error, FileNotFoundError | FileExistsError):  # of a look
            problem = "was removed, moved or replaced under the broker: what it kept lately is not in its folder"
        else:
            hint = "close the broker and open its folder again, which has all that returned before"
            problem = f"cannot be written: {error}; {hint}"
        self._broken = problem, error
        with suppress(sqlite3.Error):
            self._roll_back()

    def _refuse(self) -> None:
        if not self._lock.is_ours:
            raise StoreError(str(self.path), "belongs to the process that opened it; send there")
        if self._broken is not None:
            problem, error = self._broken
            raise StoreError(str(self.path), problem) from error

    def close(self) -> None:
        """Write what is left and unlock the directory. A forked process leaves both to the one that opened it."""
        if not self._lock.is_ours:
            return
        try:
            if self._taken > self._sequence:
                self.set_mark("sequence", self._sequence)
            self.seal()
            self._bring_up()
            try:
                self._look(0)
            except OSError as error:
                self._give_up(error)
                self._refuse()
        finally:
            try:
                self._journal.close()
                self._db.close()
            finally:
                self._lock.release()
