"""The scenario of the client matrix: what every Python library does. A program hands in its Library and calls main()."""

import sys
import threading
import time
import traceback
from queue import SimpleQueue

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
PARTITIONS = 4
PER_PARTITION = 50
FIRST_TIMESTAMP = 1_700_000_000_000
LIMIT_S = 20
# What a member's consumer is made with, in the words of kafka-python and aiokafka.
CONSUMER = {
    "auto_offset_reset": "earliest",
    "enable_auto_commit": False,
    "session_timeout_ms": 6000,
    "heartbeat_interval_ms": 300,
    "fetch_max_wait_ms": 100,
}


class Absent(Exception):
    """The library has no such thing."""


class Library:
    """What a program supplies; what it leaves out is absent."""

    version = "?"
    null_headers = True  # whether a header's value may be null

    def produce(self, topic, codec, records, idempotent=False, partition=0):
        """Writes records (key, value, headers) and waits for their acknowledgement."""
        raise Absent("no producer")

    def read(self, topic, count, offset=None, timestamp=None):
        """Reads partition 0 without a group from its beginning, an offset or a timestamp: (offset, key, value, headers)."""
        raise Absent("no consumer")

    def member(self, group, topic):
        """A Member of the group, reading from the earliest record."""
        raise Absent("no consumer groups")

    def create_topic(self, topic, partitions):
        raise Absent("cannot create topics")

    def topics(self):
        """Topic names to partition counts."""
        raise Absent("cannot list topics")

    def delete_topic(self, topic):
        raise Absent("cannot delete topics")

    def config(self, topic, key):
        raise Absent("cannot describe configs")

    def groups(self):
        raise Absent("cannot list groups")

    def group_state(self, group):
        raise Absent("cannot describe groups")

    def delete_group(self, group):
        raise Absent("cannot delete groups")

    def delete_records(self, topic, offset):
        """Deletes what is before an offset of partition 0; returns the new first offset."""
        raise Absent("cannot delete records")


class Member:
    """A member of a group. All calls of the library are made by one thread, since not every consumer is thread-safe."""

    def __init__(self):
        self.seen = set()
        self.assigned = set()
        self._orders = SimpleQueue()
        self._open = True
        self._thread = threading.Thread(target=self._pump, daemon=True)
        self._thread.start()

    def poll(self):
        """Reads for a short time: (partition, offset) of each record."""
        raise NotImplementedError

    def assignment(self):
        """The assigned partitions' numbers."""
        raise NotImplementedError

    def commit_position(self):
        raise NotImplementedError

    def close_consumer(self):
        raise NotImplementedError

    def _pump(self):
        while self._open:
            self.seen.update(self.poll())
            self.assigned = set(self.assignment())
            while not self._orders.empty():
                order, done = self._orders.get()
                try:
                    order()
                    done.put(None)
                except Exception as error:
                    done.put(error)

    def _order(self, what):
        done = SimpleQueue()
        self._orders.put((what, done))
        error = done.get(timeout=LIMIT_S)
        if error is not None:
            raise error

    def commit(self):
        self._order(self.commit_position)

    def close(self):
        def last():
            self._open = False
            self.close_consumer()

        self._order(last)
        self._thread.join()


def plain(i):
    return b"key-%d" % i, b"value-%d-" % i + b"x" * (i % 300), []


def nulls(i):
    key = None if i % 3 == 0 else b"" if i % 5 == 0 else b"key-%d" % i
    value = None if i % 3 == 1 else b"" if i % 5 == 1 else b"value-%d" % i
    return key, value, []


def headers(null_headers):
    def content(i):
        found = [("n", b"%d" % i), ("n", b"again"), ("empty", b"")]
        return b"key-%d" % i, b"value-%d" % i, found + [("null", None)] if null_headers else found

    return content


def large(_):
    size = 5 * 1024 * 1024
    return b"large", (bytes(range(251)) * (size // 251 + 1))[:size], []


def same(want, got, what):
    if want != got:
        raise AssertionError(f"{what}: {str(got)[:300]}, want {str(want)[:300]}")


def until(what, condition):
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"not in time: {what}")
        time.sleep(0.02)


def check(capability, body):
    try:
        body()
        print(f"ok {capability}", flush=True)
    except Absent as why:
        print(f"none {capability}: {why}", flush=True)
    except Exception as error:
        traceback.print_exc()
        text = f"{type(error).__name__}: {error}".replace("\n", " ")
        print(f"FAIL {capability}: {text}", flush=True)


def producing(library, name):
    def written(topic, codec, count, content, idempotent=False):
        want = [content(i) for i in range(count)]
        library.produce(topic, codec, want, idempotent=idempotent)
        got = library.read(topic, count)
        same(count, len(got), "records")
        for i, record in enumerate(got):
            same((i, *want[i]), record, f"record {i}")

    for codec in CODECS:
        check(codec, lambda: written(f"{name}-{codec}", codec, 300, plain))
    check("nulls", lambda: written(f"{name}-nulls", "none", 40, nulls))
    check("headers", lambda: written(f"{name}-headers", "none", 40, headers(library.null_headers)))
    check("5 MB", lambda: written(f"{name}-large", "none", 1, large))
    check("idempotence", lambda: written(f"{name}-idempotence", "none", 300, plain, idempotent=True))


def grouping(library, name):
    topic = f"{name}-group"
    members = []

    def join():
        members.append(library.member(name, topic))
        return members[-1]

    def everywhere(offset):
        return {(partition, offset) for partition in range(PARTITIONS)}

    def produce_everywhere():
        for partition in range(PARTITIONS):
            library.produce(topic, "none", [(None, b"more", [])], partition=partition)

    def two_members():
        one = join()
        until("every record", lambda: len(one.seen) == PARTITIONS * PER_PARTITION)
        one.commit()
        two = join()
        until("partitions for both", lambda: len(one.assigned) == 2 and len(two.assigned) == 2)
        same(set(range(PARTITIONS)), one.assigned | two.assigned, "partitions")
        produce_everywhere()
        until("new records by both", lambda: everywhere(PER_PARTITION) <= one.seen | two.seen)
        same({(p, PER_PARTITION) for p in two.assigned}, two.seen, "records of the second")

    def take_over():
        one, two = members
        two.commit()
        two.close()
        until("all partitions", lambda: len(one.assigned) == PARTITIONS)
        produce_everywhere()
        until("new records of all partitions", lambda: everywhere(PER_PARTITION + 1) <= one.seen)

    def restart():
        one = members[0]
        one.commit()
        one.close()
        produce_everywhere()
        three = join()
        until("new records", lambda: everywhere(PER_PARTITION + 2) <= three.seen)
        same(everywhere(PER_PARTITION + 2), three.seen, "records after the commit")
        three.close()

    check("two members", two_members)
    check("take-over", take_over)
    check("restart", restart)


def seeking(library, name):
    def first(**where):
        return library.read(f"{name}-seek", 1, **where)[0][2]

    def seek():
        same(b"seek-42", first(offset=42), "record at offset 42")
        same(b"seek-0", first(), "first record")

    check("seek", seek)
    check("timestamps", lambda: same(b"seek-60", first(timestamp=FIRST_TIMESTAMP + 59_500), "record at the timestamp"))


def administering(library, name):
    made = f"{name}-made"

    def topics():
        library.create_topic(made, 3)
        until("the topic is listed", lambda: library.topics().get(made) == 3)
        library.delete_topic(made)
        until("the topic is gone", lambda: made not in library.topics())

    def groups():
        same(True, name in library.groups(), "listed")
        same("empty", library.group_state(name).lower(), "state")

    def delete_group():
        library.delete_group(name)
        same(False, name in library.groups(), "still listed")

    def delete_records():
        same(10, library.delete_records(f"{name}-seek", 10), "first offset")
        same(10, library.read(f"{name}-seek", 1)[0][0], "first offset read")

    check("topics", topics)
    check("configs", lambda: same("6000000", library.config(f"{name}-large", "max.message.bytes"), "max.message.bytes"))
    check("groups", groups)
    check("delete group", delete_group)
    check("delete records", delete_records)


def main(library_class):
    """usage: PROGRAM BOOTSTRAP NAME, or PROGRAM BOOTSTRAP TOPIC COUNT, which prints records of partition 0"""
    bootstrap, name, *count = sys.argv[1:]
    library = library_class(bootstrap)
    if count:
        text = lambda value: "null" if value is None else bytes(value).decode()
        for _, key, value, headers in library.read(name, int(count[0])):
            print(text(key), text(value), *(f"{name}={text(of)}" for name, of in headers), flush=True)
        return
    print(f"version {library.version}", flush=True)
    producing(library, name)
    grouping(library, name)
    seeking(library, name)
    administering(library, name)
