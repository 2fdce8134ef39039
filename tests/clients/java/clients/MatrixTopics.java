package clients;

import static clients.Check.equal;
import static clients.Check.that;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.function.IntFunction;
import java.util.function.Predicate;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** The topics of the client matrix and what is in them: README.md states it, every language's scenario repeats it. */
final class MatrixTopics {
    static final int RECORDS = 300;
    static final int SMALL = 40;
    static final int LARGE = 5 * 1024 * 1024;
    static final int PARTITIONS = 4;
    static final int PER_PARTITION = 50;
    static final int SEEKS = 100;
    static final long FIRST_TIMESTAMP = 1_700_000_000_000L;

    record Content(byte[] key, byte[] value, List<Header> headers) {
    }

    private MatrixTopics() {
    }

    static Content plain(int i) {
        return new Content(Records.bytes("key-" + i), Records.bytes("value-" + i + "-" + "x".repeat(i % 300)), List.of());
    }

    static Content nulls(int i) {
        byte[] key = i % 3 == 0 ? null : i % 5 == 0 ? new byte[0] : Records.bytes("key-" + i);
        byte[] value = i % 3 == 1 ? null : i % 5 == 1 ? new byte[0] : Records.bytes("value-" + i);
        return new Content(key, value, List.of());
    }

    static Content headers(int i) {
        return new Content(Records.bytes("key-" + i), Records.bytes("value-" + i), List.of(new RecordHeader("n", Records.bytes("" + i)),
            new RecordHeader("n", Records.bytes("again")), new RecordHeader("empty", new byte[0]), new RecordHeader("null", (byte[]) null)));
    }

    static Content large(int i) {
        byte[] value = new byte[LARGE];
        for (int at = 0; at < LARGE; at++) value[at] = (byte) (at % 251);
        return new Content(Records.bytes("large"), value, List.of());
    }

    /** The topics that a client finds, with the records that it reads but does not write. */
    static void create(String at, String client) throws Exception {
        List<NewTopic> topics = new ArrayList<>();
        for (String topic : List.of("none", "gzip", "snappy", "lz4", "zstd", "nulls", "headers", "idempotence")) {
            topics.add(new NewTopic(client + "-" + topic, 1, (short) 1));
        }
        topics.add(new NewTopic(client + "-large", 1, (short) 1).configs(Map.of("max.message.bytes", "6000000")));
        topics.add(new NewTopic(client + "-seek", 1, (short) 1).configs(Map.of("retention.ms", "-1")));
        topics.add(new NewTopic(client + "-group", PARTITIONS, (short) 1));
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", at))) {
            admin.createTopics(topics).all().get();
        }
        try (var producer = new KafkaProducer<>(Map.of("bootstrap.servers", at), new ByteArraySerializer(), new ByteArraySerializer())) {
            for (int i = 0; i < SEEKS; i++) {
                producer.send(new ProducerRecord<>(client + "-seek", 0, FIRST_TIMESTAMP + 1000L * i, null, Records.bytes("seek-" + i)));
            }
            for (int i = 0; i < PARTITIONS * PER_PARTITION; i++) {
                producer.send(new ProducerRecord<>(client + "-group", i % PARTITIONS, null, Records.bytes("group-" + i)));
            }
            producer.flush();
        }
    }

    /** Reads what a client wrote, as far as it could. */
    static void verify(String at, String client, Predicate<String> passed) {
        for (String codec : Topics.CODECS) {
            if (passed.test(codec)) compare(at, client + "-" + codec, RECORDS, MatrixTopics::plain);
        }
        if (passed.test("nulls")) compare(at, client + "-nulls", SMALL, MatrixTopics::nulls);
        if (passed.test("headers")) compare(at, client + "-headers", SMALL, MatrixTopics::headers);
        if (passed.test("5 MB")) compare(at, client + "-large", 1, MatrixTopics::large);
        if (passed.test("idempotence")) compare(at, client + "-idempotence", RECORDS, MatrixTopics::plain);
    }

    private static void compare(String at, String topic, int count, IntFunction<Content> want) {
        List<ConsumerRecord<byte[], byte[]>> found = Records.readAll(at, topic);
        equal(count, found.size(), "records of " + topic);
        for (int i = 0; i < count; i++) {
            Content content = want.apply(i);
            ConsumerRecord<byte[], byte[]> got = found.get(i);
            List<Header> headers = List.of(got.headers().toArray());
            // Not every library can write a header without a value.
            List<Header> valued = content.headers.stream().filter(h -> h.value() != null).toList();
            boolean same = got.offset() == i && Arrays.equals(content.key, got.key()) && Arrays.equals(content.value, got.value())
                && (headers.equals(content.headers) || headers.equals(valued));
            that(same, topic + ", record " + i + ": offset " + got.offset() + ", headers " + got.headers());
        }
    }
}
