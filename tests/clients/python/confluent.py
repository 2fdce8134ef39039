"""The client matrix with librdkafka, through confluent-kafka."""

import confluent_kafka
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType

import scenario


class Member(scenario.Member):
    def __init__(self, bootstrap, group, topic):
        self.consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "session.timeout.ms": 6000,
                "heartbeat.interval.ms": 300,
                "topic.metadata.refresh.interval.ms": 1000,
            }
        )
        self.consumer.subscribe([topic])
        super().__init__()

    def poll(self):
        messages = self.consumer.consume(100, timeout=0.05)
        return [(m.partition(), m.offset()) for m in messages if m.error() is None]

    def assignment(self):
        return [p.partition for p in self.consumer.assignment()]

    def commit_position(self):
        self.consumer.commit(asynchronous=False)

    def close_consumer(self):
        self.consumer.close()


class Library(scenario.Library):
    version = confluent_kafka.__version__

    def __init__(self, bootstrap):
        self.bootstrap = bootstrap
        self.admin = AdminClient({"bootstrap.servers": bootstrap})

    def produce(self, topic, codec, records, idempotent=False, partition=0):
        failures = []
        producer = Producer(
            {
                "bootstrap.servers": self.bootstrap,
                "compression.type": codec,
                "enable.idempotence": idempotent,
                "message.max.bytes": 6_000_000,
                "linger.ms": 20,
            }
        )
        for key, value, headers in records:
            producer.produce(
                topic,
                key=key,
                value=value,
                headers=headers,
                partition=partition,
                on_delivery=lambda error, _: error and failures.append(error),
            )
        left = producer.flush(scenario.LIMIT_S)
        if left or failures:
            raise AssertionError(f"{left} records not delivered, {len(failures)} refused: {failures[:1]}")

    def read(self, topic, count, offset=None, timestamp=None):
        consumer = Consumer(
            {"bootstrap.servers": self.bootstrap, "group.id": "unused", "enable.auto.commit": False, "check.crcs": True}
        )
        start = TopicPartition(topic, 0, OFFSET_BEGINNING if offset is None else offset)
        if timestamp is not None:
            start = consumer.offsets_for_times([TopicPartition(topic, 0, timestamp)], timeout=scenario.LIMIT_S)[0]
        consumer.assign([start])
        found = []
        while len(found) < count:
            message = consumer.poll(scenario.LIMIT_S)
            if message is None or message.error():
                raise AssertionError(f"after {len(found)} records: {message and message.error()}")
            found.append((message.offset(), message.key(), message.value(), message.headers() or []))
        consumer.close()
        return found

    def member(self, group, topic):
        return Member(self.bootstrap, group, topic)

    def create_topic(self, topic, partitions):
        self._wait(self.admin.create_topics([NewTopic(topic, partitions, 1)]))

    def topics(self):
        found = self.admin.list_topics(timeout=scenario.LIMIT_S).topics
        return {name: len(topic.partitions) for name, topic in found.items()}

    def delete_topic(self, topic):
        self._wait(self.admin.delete_topics([topic]))

    def config(self, topic, key):
        return self._wait(self.admin.describe_configs([ConfigResource(ResourceType.TOPIC, topic)]))[key].value

    def groups(self):
        return [g.group_id for g in self.admin.list_consumer_groups().result(scenario.LIMIT_S).valid]

    def group_state(self, group):
        return self._wait(self.admin.describe_consumer_groups([group])).state.name

    def delete_group(self, group):
        self._wait(self.admin.delete_consumer_groups([group]))

    def delete_records(self, topic, offset):
        return self._wait(self.admin.delete_records([TopicPartition(topic, 0, offset)])).low_watermark

    @staticmethod
    def _wait(futures):
        (future,) = futures.values()
        return future.result(scenario.LIMIT_S)


scenario.main(Library)
