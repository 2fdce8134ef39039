package clients;

import java.time.Duration;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** {@code ReadAll BOOTSTRAP TOPIC COUNT}: reads partition 0 from its start, with no group; prints records per second. */
public final class ReadAll {
    private ReadAll() {
    }

    public static void main(String[] args) {
        long count = Long.parseLong(args[2]);
        Map<String, Object> config = Map.of("bootstrap.servers", args[0], "enable.auto.commit", false, "max.poll.records", 5000);
        try (var consumer = new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            TopicPartition partition = new TopicPartition(args[1], 0);
            consumer.assign(List.of(partition));
            consumer.seekToBeginning(List.of(partition));
            consumer.position(partition);
            long start = System.nanoTime();
            long seen = 0;
            long idleSince = start;
            while (seen < count) {
                int got = consumer.poll(Duration.ofSeconds(1)).count();
                seen += got;
                if (got > 0) idleSince = System.nanoTime();
                if (System.nanoTime() - idleSince > 60_000_000_000L) throw new IllegalStateException("read " + seen + " of " + count);
            }
            System.out.printf(Locale.ROOT, "%.1f%n", seen / ((System.nanoTime() - start) / 1e9));
        }
    }
}
