package clients;

import static clients.Check.equal;
import static clients.Check.that;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.function.IntFunction;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.GroupState;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.utils.internals.AppInfoParser;

/** The matrix's scenario with Kafka's own client, in one of its two group protocols. */
final class JavaScenario {
    private final String at;
    private final String name;
    private final String protocol;
    private final Matrix.Report report;

    JavaScenario(String bootstrap, String name, String protocol, Matrix.Report report) {
        this.at = bootstrap;
        this.name = name;
        this.protocol = protocol;
        this.report = report;
    }

    void run() throws Exception {
        report.version(AppInfoParser.getVersion());
        producing();
        group();
        seeking();
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", at))) {
            administering(admin);
        }
    }

    private void producing() {
        for (String codec : Topics.CODECS) report.check(codec, () -> produce(name + "-" + codec, codec, false, MatrixTopics.RECORDS, MatrixTopics::plain));
        report.check("nulls", () -> produce(name + "-nulls", "none", false, MatrixTopics.SMALL, MatrixTopics::nulls));
        report.check("headers", () -> produce(name + "-headers", "none", false, MatrixTopics.SMALL, MatrixTopics::headers));
        report.check("5 MB", () -> produce(name + "-large", "none", false, 1, MatrixTopics::large));
        report.check("idempotence", () -> produce(name + "-idempotence", "none", true, MatrixTopics.RECORDS, MatrixTopics::plain));
    }

    private void produce(String topic, String codec, boolean idempotent, int count, IntFunction<MatrixTopics.Content> content) throws Exception {
        Map<String, Object> config = Map.of("bootstrap.servers", at, "compression.type", codec, "enable.idempotence", idempotent,
            "linger.ms", 20, "max.request.size", 6_000_000);
        try (var producer = new KafkaProducer<>(config, new ByteArraySerializer(), new ByteArraySerializer())) {
            List<java.util.concurrent.Future<?>> sent = new ArrayList<>();
            for (int i = 0; i < count; i++) {
                MatrixTopics.Content c = content.apply(i);
                sent.add(producer.send(new ProducerRecord<>(topic, 0, null, c.key(), c.value(), c.headers())));
            }
            producer.flush();
            for (var s : sent) s.get();
        }
    }

    private KafkaConsumer<byte[], byte[]> consumer() {
        Properties config = new Properties();
        config.putAll(Map.of("bootstrap.servers", at, "group.id", name, "group.protocol", protocol, "auto.offset.reset", "earliest",
            "enable.auto.commit", "false", "fetch.max.wait.ms", "100"));
        if (protocol.equals("classic")) config.putAll(Map.of("session.timeout.ms", "6000", "heartbeat.interval.ms", "300"));
        return new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    /** A member of the group, polled by the thread that asks. */
    private final class Member implements AutoCloseable {
        private final KafkaConsumer<byte[], byte[]> consumer = consumer();
        private final Set<String> seen = new HashSet<>();

        Member() {
            consumer.subscribe(List.of(name + "-group"));
        }

        Set<TopicPartition> poll() {
            for (ConsumerRecord<byte[], byte[]> r : consumer.poll(Duration.ofMillis(50))) seen.add(r.partition() + ":" + r.offset());
            return consumer.assignment();
        }

        @Override
        public void close() {
            consumer.close();
        }
    }

    private interface Condition {
        boolean holds();
    }

    private static void until(String what, Condition condition) {
        long deadline = System.nanoTime() + 20_000_000_000L;
        while (!condition.holds()) that(System.nanoTime() < deadline, "not in time: " + what);
    }

    private static Set<String> everywhere(int offset) {
        Set<String> all = new HashSet<>();
        for (int p = 0; p < MatrixTopics.PARTITIONS; p++) all.add(p + ":" + offset);
        return all;
    }

    private void produceEverywhere() throws Exception {
        try (var producer = new KafkaProducer<>(Map.of("bootstrap.servers", at), new ByteArraySerializer(), new ByteArraySerializer())) {
            for (int p = 0; p < MatrixTopics.PARTITIONS; p++) producer.send(new ProducerRecord<>(name + "-group", p, null, Records.bytes("more"))).get();
        }
    }

    private void group() {
        int first = MatrixTopics.PER_PARTITION;
        try (Member one = new Member(); Member two = new Member()) {
            report.check("two members", () -> {
                until("every record", () -> one.poll().size() + two.poll().size() == MatrixTopics.PARTITIONS
                    && one.seen.size() + two.seen.size() >= MatrixTopics.PARTITIONS * MatrixTopics.PER_PARTITION);
                until("partitions for both", () -> one.poll().size() == 2 && two.poll().size() == 2);
                one.consumer.commitSync();
                two.consumer.commitSync();
                produceEverywhere();
                until("new records by both", () -> {
                    one.poll();
                    two.poll();
                    Set<String> both = new HashSet<>(one.seen);
                    both.addAll(two.seen);
                    return both.containsAll(everywhere(first));
                });
            });
            report.check("take-over", () -> {
                one.consumer.commitSync();
                two.consumer.commitSync();
                two.close();
                until("all partitions", () -> one.poll().size() == MatrixTopics.PARTITIONS);
                produceEverywhere();
                until("new records of all partitions", () -> {
                    one.poll();
                    return one.seen.containsAll(everywhere(first + 1));
                });
            });
            report.check("restart", () -> {
                one.consumer.commitSync();
                one.close();
                produceEverywhere();
                try (Member three = new Member()) {
                    until("new records", () -> {
                        three.poll();
                        return three.seen.containsAll(everywhere(first + 2));
                    });
                    equal(everywhere(first + 2), three.seen, "records after the commit");
                }
            });
        }
    }

    private void seeking() {
        TopicPartition partition = new TopicPartition(name + "-seek", 0);
        try (var consumer = consumer()) {
            consumer.assign(List.of(partition));
            report.check("seek", () -> {
                consumer.seek(partition, 42);
                equal("seek-42", next(consumer), "record at offset 42");
                consumer.seekToBeginning(List.of(partition));
                equal("seek-0", next(consumer), "first record");
            });
            report.check("timestamps", () -> {
                long offset = consumer.offsetsForTimes(Map.of(partition, MatrixTopics.FIRST_TIMESTAMP + 59_500)).get(partition).offset();
                consumer.seek(partition, offset);
                equal("seek-60", next(consumer), "record at the timestamp");
            });
        }
    }

    private static String next(KafkaConsumer<byte[], byte[]> consumer) {
        List<String> found = new ArrayList<>();
        until("a record", () -> {
            consumer.poll(Duration.ofMillis(200)).forEach(r -> found.add(new String(r.value())));
            return !found.isEmpty();
        });
        return found.get(0);
    }

    private void administering(Admin admin) {
        String made = name + "-made";
        report.check("topics", () -> {
            admin.createTopics(List.of(new NewTopic(made, 3, (short) 1).configs(Map.of("retention.ms", "7200000")))).all().get();
            that(admin.listTopics().names().get().contains(made), "not listed");
            equal(3, admin.describeTopics(List.of(made)).allTopicNames().get().get(made).partitions().size(), "partitions");
            admin.deleteTopics(List.of(made)).all().get();
            until("the topic is gone", () -> !listed(admin).contains(made));
        });
        report.check("configs", () -> {
            ConfigResource topic = new ConfigResource(ConfigResource.Type.TOPIC, name + "-large");
            equal("6000000", admin.describeConfigs(List.of(topic)).all().get().get(topic).get("max.message.bytes").value(), "max.message.bytes");
        });
        report.check("groups", () -> {
            that(admin.listGroups().all().get().stream().anyMatch(g -> g.groupId().equals(name)), "not listed");
            var group = admin.describeConsumerGroups(List.of(name)).all().get().get(name);
            equal(GroupState.EMPTY, group.groupState(), "state");
            equal(protocol, group.type().toString().toLowerCase(java.util.Locale.ROOT), "type");
        });
        report.check("delete group", () -> {
            admin.deleteConsumerGroups(List.of(name)).all().get();
            that(admin.listGroups().all().get().stream().noneMatch(g -> g.groupId().equals(name)), "still listed");
        });
        report.check("delete records", () -> {
            TopicPartition partition = new TopicPartition(name + "-seek", 0);
            Map<TopicPartition, RecordsToDelete> before = new HashMap<>();
            before.put(partition, RecordsToDelete.beforeOffset(10));
            equal(10L, admin.deleteRecords(before).lowWatermarks().get(partition).get().lowWatermark(), "low watermark");
            try (var consumer = consumer()) {
                equal(10L, consumer.beginningOffsets(List.of(partition)).get(partition), "first offset");
            }
        });
    }

    private static Set<String> listed(Admin admin) {
        try {
            return admin.listTopics().names().get();
        } catch (Exception e) {
            throw new Check.Failed(e.toString());
        }
    }
}
