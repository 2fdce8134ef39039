package clients;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Reading and writing without tools: by assignment, with no consumer group. */
final class Records {
    private Records() {
    }

    static byte[] bytes(String s) {
        return s.getBytes(StandardCharsets.UTF_8);
    }

    static void produce(String bootstrap, String topic, int partition, int from, int count) throws Exception {
        Map<String, Object> config = Map.of("bootstrap.servers", bootstrap, "linger.ms", 5);
        try (var producer = new KafkaProducer<>(config, new ByteArraySerializer(), new ByteArraySerializer())) {
            java.util.concurrent.Future<?> last = null;
            for (int i = from; i < from + count; i++) {
                last = producer.send(new ProducerRecord<>(topic, partition, bytes("k" + i), bytes("v" + i)));
            }
            producer.flush();
            if (last != null) last.get();
        }
    }

    /** Everything from the log's start up to its end as of now. */
    static List<ConsumerRecord<byte[], byte[]>> readAll(String bootstrap, String topic) {
        Map<String, Object> config = Map.of("bootstrap.servers", bootstrap, "enable.auto.commit", false, "check.crcs", true,
            "fetch.max.wait.ms", 50);
        try (var consumer = new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            List<TopicPartition> all = consumer.partitionsFor(topic).stream().map(p -> new TopicPartition(topic, p.partition())).toList();
            consumer.assign(all);
            consumer.seekToBeginning(all);
            Map<TopicPartition, Long> ends = consumer.endOffsets(all);
            List<ConsumerRecord<byte[], byte[]>> found = new ArrayList<>();
            long deadline = System.nanoTime() + 30_000_000_000L;
            while (all.stream().anyMatch(p -> consumer.position(p) < ends.get(p))) {
                Check.that(System.nanoTime() < deadline, "read only " + found.size() + " records of " + topic);
                consumer.poll(Duration.ofMillis(500)).forEach(found::add);
            }
            return found;
        }
    }

    static KafkaShareConsumer<byte[], byte[]> shareConsumer(String bootstrap, String group, String mode) {
        Properties p = new Properties();
        p.put("bootstrap.servers", bootstrap);
        p.put("group.id", group);
        p.put("share.acknowledgement.mode", mode);
        return new KafkaShareConsumer<>(p, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }
}
