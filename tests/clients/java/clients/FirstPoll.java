package clients;

import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * How long a consumer of a new group waits for its first record, from subscribe() on. Arguments: address, group protocol,
 * rounds. Prints one line a round: milliseconds. Each round is a group of its own; the first ten warm the virtual machine up.
 */
public final class FirstPoll {
    private static final int WARM_UP = 10;

    private FirstPoll() {}

    public static void main(String[] args) throws Exception {
        var servers = Map.<String, Object>of("bootstrap.servers", args[0]);
        String topic = "first-poll-" + args[1];
        try (var admin = Admin.create(servers)) {
            admin.createTopics(List.of(new NewTopic(topic, Optional.of(1), Optional.empty()))).all().get();
        }
        try (var producer = new KafkaProducer<>(servers, new StringSerializer(), new StringSerializer())) {
            producer.send(new ProducerRecord<>(topic, "first")).get();
        }
        int rounds = Integer.parseInt(args[2]) + WARM_UP;
        for (int round = 0; round < rounds; round++) {
            double ms = firstPoll(servers, topic, args[1], round);
            if (round >= WARM_UP) {
                System.out.printf("%.1f%n", ms);
            }
        }
    }

    private static double firstPoll(Map<String, Object> servers, String topic, String protocol, int round) {
        var config = new HashMap<>(servers);
        config.put("group.id", topic + "-" + round);
        config.put("group.protocol", protocol);
        config.put("auto.offset.reset", "earliest");
        try (var consumer = new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer())) {
            long begin = System.nanoTime();
            consumer.subscribe(List.of(topic));
            while (consumer.poll(Duration.ofSeconds(1)).isEmpty()) {
                if (System.nanoTime() - begin > 60_000_000_000L) {
                    throw new IllegalStateException("no record for a minute");
                }
            }
            return (System.nanoTime() - begin) / 1e6;
        }
    }
}
