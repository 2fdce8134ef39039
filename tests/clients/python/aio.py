"""The client matrix with aiokafka; its coroutines run on an event loop in a thread of its own."""

import asyncio
import threading

import aiokafka
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

import scenario

loop = asyncio.new_event_loop()
threading.Thread(target=loop.run_forever, daemon=True).start()


def wait(coroutine):
    return asyncio.run_coroutine_threadsafe(coroutine, loop).result(2 * scenario.LIMIT_S)


class Member(scenario.Member):
    def __init__(self, bootstrap, group, topic):
        self.consumer = wait(self._start(bootstrap, group, topic))
        super().__init__()

    @staticmethod
    async def _start(bootstrap, group, topic):
        consumer = AIOKafkaConsumer(
            topic,
            bootstrap_servers=bootstrap,
            group_id=group,
            **scenario.CONSUMER,
        )
        await consumer.start()
        return consumer

    def poll(self):
        found = wait(self.consumer.getmany(timeout_ms=50))
        return [(r.partition, r.offset) for records in found.values() for r in records]

    def assignment(self):
        return [p.partition for p in self.consumer.assignment()]

    def commit_position(self):
        wait(self.consumer.commit())

    def close_consumer(self):
        wait(self.consumer.stop())


class Library(scenario.Library):
    version = aiokafka.__version__

    def __init__(self, bootstrap):
        self.bootstrap = bootstrap
        self.admin = wait(self._admin())

    async def _admin(self):
        admin = AIOKafkaAdminClient(bootstrap_servers=self.bootstrap)
        await admin.start()
        return admin

    def produce(self, topic, codec, records, idempotent=False, partition=0):
        wait(self._produce(topic, codec, records, idempotent, partition))

    async def _produce(self, topic, codec, records, idempotent, partition):
        producer = AIOKafkaProducer(
            bootstrap_servers=self.bootstrap,
            compression_type=None if codec == "none" else codec,
            enable_idempotence=idempotent,
            max_request_size=6_000_000,
            linger_ms=20,
        )
        await producer.start()
        try:
            sent = [
                await producer.send(topic, key=key, value=value, headers=headers, partition=partition)
                for key, value, headers in records
            ]
            await asyncio.gather(*sent)
        finally:
            await producer.stop()

    def read(self, topic, count, offset=None, timestamp=None):
        return wait(self._read(TopicPartition(topic, 0), count, offset, timestamp))

    async def _read(self, partition, count, offset, timestamp):
        consumer = AIOKafkaConsumer(bootstrap_servers=self.bootstrap, enable_auto_commit=False, fetch_max_wait_ms=100)
        await consumer.start()
        try:
            consumer.assign([partition])
            if timestamp is not None:
                offset = (await consumer.offsets_for_times({partition: timestamp}))[partition].offset
            if offset is None:
                await consumer.seek_to_beginning(partition)
            else:
                consumer.seek(partition, offset)
            found = []
            while len(found) < count:
                r = await asyncio.wait_for(consumer.getone(), scenario.LIMIT_S)
                found.append((r.offset, r.key, r.value, list(r.headers)))
            return found
        finally:
            await consumer.stop()

    def member(self, group, topic):
        return Member(self.bootstrap, group, topic)

    def create_topic(self, topic, partitions):
        wait(self.admin.create_topics([NewTopic(topic, partitions, 1)]))

    def topics(self):
        return {topic["topic"]: len(topic["partitions"]) for topic in wait(self.admin.describe_topics())}

    def delete_topic(self, topic):
        wait(self.admin.delete_topics([topic]))

    def config(self, topic, key):
        (response,) = wait(self.admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)]))
        entries = response.resources[0][4]
        return next(entry[1] for entry in entries if entry[0] == key)

    def groups(self):
        return [group[0] for group in wait(self.admin.list_consumer_groups())]

    def group_state(self, group):
        (response,) = wait(self.admin.describe_consumer_groups([group]))
        return response.groups[0][2]

    def delete_records(self, topic, offset):
        partition = TopicPartition(topic, 0)
        return wait(self.admin.delete_records({partition: RecordsToDelete(offset)}))[partition]


scenario.main(Library)
