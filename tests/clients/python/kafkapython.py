"""The client matrix with kafka-python."""

import kafka
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, NewTopic

import scenario


class Member(scenario.Member):
    def __init__(self, bootstrap, group, topic):
        self.consumer = KafkaConsumer(
            topic,
            bootstrap_servers=bootstrap,
            group_id=group,
            **scenario.CONSUMER,
        )
        super().__init__()

    def poll(self):
        found = self.consumer.poll(timeout_ms=50)
        return [(r.partition, r.offset) for records in found.values() for r in records]

    def assignment(self):
        return [p.partition for p in self.consumer.assignment()]

    def commit_position(self):
        self.consumer.commit()

    def close_consumer(self):
        self.consumer.close()


class Library(scenario.Library):
    version = kafka.__version__
    null_headers = False

    def __init__(self, bootstrap):
        self.bootstrap = bootstrap
        self.admin = KafkaAdminClient(bootstrap_servers=bootstrap)

    def produce(self, topic, codec, records, idempotent=False, partition=0):
        producer = KafkaProducer(
            bootstrap_servers=self.bootstrap,
            compression_type=None if codec == "none" else codec,
            enable_idempotence=idempotent,
            max_request_size=6_000_000,
            linger_ms=20,
        )
        sent = [
            producer.send(topic, key=key, value=value, headers=headers, partition=partition)
            for key, value, headers in records
        ]
        producer.flush(scenario.LIMIT_S)
        for future in sent:
            future.get(scenario.LIMIT_S)
        producer.close()

    def read(self, topic, count, offset=None, timestamp=None):
        consumer = KafkaConsumer(bootstrap_servers=self.bootstrap, enable_auto_commit=False, fetch_max_wait_ms=100)
        partition = TopicPartition(topic, 0)
        consumer.assign([partition])
        if timestamp is not None:
            offset = consumer.offsets_for_times({partition: timestamp})[partition].offset
        if offset is None:
            consumer.seek_to_beginning(partition)
        else:
            consumer.seek(partition, offset)
        found = []

        def enough():
            for records in consumer.poll(timeout_ms=500).values():
                found.extend((r.offset, r.key, r.value, list(r.headers)) for r in records)
            return len(found) >= count

        scenario.until(f"{count} records", enough)
        consumer.close()
        return found[:count]

    def member(self, group, topic):
        return Member(self.bootstrap, group, topic)

    def create_topic(self, topic, partitions):
        self.admin.create_topics([NewTopic(topic, partitions, 1)])

    def topics(self):
        return {topic["name"]: len(topic["partitions"]) for topic in self.admin.describe_topics()}

    def delete_topic(self, topic):
        self.admin.delete_topics([topic])

    def config(self, topic, key):
        described = self.admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)], config_filter="all")
        return described["topic"][topic][key]["value"]

    def groups(self):
        return [group["group_id"] for group in self.admin.list_groups()]

    def group_state(self, group):
        return self.admin.describe_groups([group])[group]["group_state"]

    def delete_group(self, group):
        self.admin.delete_groups([group])

    def delete_records(self, topic, offset):
        partition = TopicPartition(topic, 0)
        return self.admin.delete_records({partition: offset})[partition]["low_watermark"]


scenario.main(Library)
