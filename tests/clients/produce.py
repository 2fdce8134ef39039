"""librdkafka against a broker: writes one topic with one codec, reads it back by assignment, compares every byte.

usage: produce.py BOOTSTRAP TOPIC CODEC COUNT

The records are a function of their number; Expected.java states the same function.
"""

import sys

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition


def record(i):
    key = None if i % 5 == 0 else b"" if i % 11 == 0 else b"key-%d" % i
    value = None if i % 7 == 0 else b"value-%d-" % i + b"x" * (i % 300)
    headers = [("trace", b"%d" % i), ("trace", None), ("", b"")] if i % 3 == 0 else []
    return key, value, headers


def write(bootstrap, topic, codec, count):
    failures = []
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "compression.type": codec,
            "acks": "all",
            "enable.idempotence": codec != "none",
            "linger.ms": 20,
        }
    )

    def report(error, message):
        if error is not None:
            failures.append(str(error))

    for i in range(count):
        key, value, headers = record(i)
        producer.produce(topic, value=value, key=key, headers=headers, partition=0, on_delivery=report)
        producer.poll(0)
    left = producer.flush(30)
    if left or failures:
        sys.exit(f"{left} records not delivered, {len(failures)} refused: {failures[:1]}")


def read(bootstrap, topic, count):
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "unused", "enable.auto.commit": False, "check.crcs": True}
    )
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    seen = 0
    while seen < count:
        message = consumer.poll(30)
        if message is None:
            sys.exit(f"read {seen} of {count} records")
        if message.error():
            sys.exit(f"after {seen} records: {message.error()}")
        got = (message.key(), message.value(), message.headers() or [])
        if message.offset() != seen or got != record(seen):
            sys.exit(f"record {seen}: read {got} at offset {message.offset()}, wrote {record(seen)}")
        seen += 1
    consumer.close()


def main():
    bootstrap, topic, codec, count = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
    write(bootstrap, topic, codec, count)
    read(bootstrap, topic, count)
    print(f"{count} records written and read")


main()
