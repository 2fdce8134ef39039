package clients;

import static clients.Check.contains;
import static clients.Check.equal;
import static clients.Check.lacks;
import static clients.Check.that;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.StreamSupport;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;

/**
 * Dead letters, and the pause of a share group, for people who have only what Apache Kafka ships. What a real Kafka does not know
 * (pause and breaker are drafts) is not asked of it.
 */
final class DeadLetters {
    private static final String PAUSED = "ottla.share.delivery.paused";
    private static final String BREAKER = "share.group.dlq.circuit.breaker.";

    /** Group configs that Apache Kafka does not have, each with a value that is not its default. */
    private static final Map<String, String> DRAFTS = new LinkedHashMap<>();

    static {
        DRAFTS.put("share.group.dlq.write.timeout.ms", "5000");
        DRAFTS.put(BREAKER + "enable", "true");
        DRAFTS.put(BREAKER + "threshold", "0.2");
        DRAFTS.put(BREAKER + "window.ms", "40000");
        DRAFTS.put(BREAKER + "window.buckets", "8");
        DRAFTS.put(BREAKER + "min.messages", "10");
        DRAFTS.put(BREAKER + "auto.resume.enable", "true");
        DRAFTS.put(BREAKER + "auto.resume.ms", "60000");
        DRAFTS.put("share.group.dlq.strict.isolation", "true");
        DRAFTS.put(PAUSED, "true");
        DRAFTS.put("ottla.share.dlq.allow.loop", "true");
        DRAFTS.put("ottla.share.dlq.timeout.pause.enable", "true");
    }

    /** Settings that are refused, each with what kafka-configs must print. */
    private static final String[][] WRONG = {
        {"share.group.dlq.write.timeout.ms=0", "Value must be at least 1 or equal to -1"},
        {BREAKER + "enable=maybe", "Expected value to be either true or false"},
        {BREAKER + "threshold=0", "Value must be more than 0 and no more than 1"},
        {BREAKER + "threshold=NaN", "Value must be more than 0 and no more than 1"},
        {BREAKER + "threshold=1.5", "Value must be more than 0 and no more than 1"},
        {BREAKER + "window.ms=0", "Value must be at least 1"},
        {BREAKER + "window.buckets=7", "must divide " + BREAKER + "window.ms (60000)"},
        {BREAKER + "min.messages=-1", "Value must be at least 1"},
        {BREAKER + "auto.resume.ms=x", "Not a number of type LONG"},
        {"share.group.dlq.strict.isolation=yes", "Expected value to be either true or false"},
        {PAUSED + "=1", "Expected value to be either true or false"},
        {"ottla.share.delivery.pause=true", "Unknown group config name: ottla.share.delivery.pause"},
    };

    private final Check checks;
    private final String at;

    DeadLetters(Check checks, String bootstrap) {
        this.checks = checks;
        this.at = bootstrap;
    }

    void run() throws Exception {
        letters();
        if (!tool("FeatureCommand", "describe").ok().output().contains("share.pause.version")) {
            checks.none("pause and circuit breaker of share groups", System.nanoTime(), "this broker does not have them");
            return;
        }
        configs();
        pause();
        feature();
    }

    private Tools.Result tool(String name, String... args) throws Exception {
        List<String> all = new ArrayList<>(List.of("--bootstrap-server", at));
        all.addAll(Arrays.asList(args));
        return Tools.run(name, all.toArray(String[]::new));
    }

    private Tools.Result groups(String... args) throws Exception {
        return tool("consumer.group.ShareGroupCommand", args);
    }

    private Tools.Result config(String group, String... args) throws Exception {
        List<String> all = new ArrayList<>(List.of("--entity-type", "groups", "--entity-name", group));
        all.addAll(Arrays.asList(args));
        return tool("ConfigCommand", all.toArray(String[]::new));
    }

    private void set(String group, String settings) throws Exception {
        config(group, "--alter", "--add-config", settings).ok();
    }

    private static List<ConsumerRecord<byte[], byte[]>> poll(KafkaShareConsumer<byte[], byte[]> consumer, int atLeast, int limitMs) {
        List<ConsumerRecord<byte[], byte[]>> found = new ArrayList<>();
        long deadline = System.nanoTime() + limitMs * 1_000_000L;
        while (found.size() < atLeast && System.nanoTime() < deadline) consumer.poll(Duration.ofMillis(200)).forEach(found::add);
        return found;
    }

    private static void commit(KafkaShareConsumer<byte[], byte[]> consumer) {
        consumer.commitSync().forEach((partition, error) -> that(error.isEmpty(), partition + ": " + error));
    }

    private static List<String> text(List<ConsumerRecord<byte[], byte[]>> records) {
        return records.stream().map(r -> new String(r.value())).toList();
    }

    /** An acknowledgement does not wait for its letter. */
    private List<ConsumerRecord<byte[], byte[]>> awaitLetters(int count) {
        long deadline = System.nanoTime() + 10_000_000_000L;
        while (true) {
            List<ConsumerRecord<byte[], byte[]>> found = Records.readAll(at, "dlq.parcels");
            if (found.size() >= count || System.nanoTime() > deadline) return found;
        }
    }

    private static String headers(int offset) {
        return "__dlq.errors.topic=parcels __dlq.errors.partition=0 __dlq.errors.offset=" + offset + " __dlq.errors.group=parcels "
            + "__dlq.errors.delivery.count=1 __dlq.errors.message=Offset rejected by client.";
    }

    private static List<List<String>> sorted(List<String> lines) {
        return lines.stream().map(l -> Arrays.stream(l.split(" ")).sorted().toList()).toList();
    }

    private void letters() {
        checks.check("a rejected record is a dead letter that a consumer reads", () -> {
            tool("TopicCommand", "--create", "--topic", "parcels", "--partitions", "1").ok();
            tool("TopicCommand", "--create", "--topic", "dlq.parcels", "--partitions", "2", "--config",
                "errors.deadletterqueue.group.enable=true").ok();
            set("parcels", "share.auto.offset.reset=earliest,errors.deadletterqueue.topic.name=dlq.parcels,"
                + "errors.deadletterqueue.copy.record.enable=true");
            Records.produce(at, "parcels", 0, 0, 4);
            try (var consumer = Records.shareConsumer(at, "parcels", "explicit")) {
                consumer.subscribe(List.of("parcels"));
                List<ConsumerRecord<byte[], byte[]>> all = poll(consumer, 4, 30_000);
                equal(4, all.size(), "records");
                all.forEach(r -> consumer.acknowledge(r, r.offset() % 2 == 0 ? AcknowledgeType.ACCEPT : AcknowledgeType.REJECT));
                commit(consumer);
            }
            List<ConsumerRecord<byte[], byte[]>> letters = awaitLetters(2);
            equal(List.of("v1", "v3"), text(letters), "letters");
            String headers = String.join(" ", StreamSupport.stream(letters.get(0).headers().spliterator(), false)
                .map(h -> h.key() + "=" + new String(h.value())).toList());
            equal(headers(1), headers, "headers");
        });
        checks.check("a dead letter without a copy", () -> {
            set("parcels", "errors.deadletterqueue.copy.record.enable=false");
            Records.produce(at, "parcels", 0, 4, 1);
            try (var consumer = Records.shareConsumer(at, "parcels", "explicit")) {
                consumer.subscribe(List.of("parcels"));
                poll(consumer, 1, 30_000).forEach(r -> consumer.acknowledge(r, AcknowledgeType.REJECT));
                commit(consumer);
            }
            List<ConsumerRecord<byte[], byte[]>> letters = awaitLetters(3);
            that(letters.size() == 3 && letters.get(2).key() == null && letters.get(2).value() == null, "letters " + letters);
        });
        checks.check("every library reads dead letters", () -> {
            List<String> want = List.of("k1 v1 " + headers(1), "k3 v3 " + headers(3), "null null " + headers(4));
            for (Map.Entry<String, List<String>> library : Matrix.read(at, "dlq.parcels", 3).entrySet()) {
                // Some keep headers in a map without an order.
                equal(sorted(want), sorted(library.getValue()), library.getKey());
            }
        });
        checks.check("the console consumer prints dead letters with their headers", () -> {
            String out = tool("consumer.ConsoleConsumer", "--topic", "dlq.parcels", "--partition", "0", "--offset", "earliest",
                "--max-messages", "2", "--timeout-ms", "10000", "--formatter-property", "print.headers=true").ok().output();
            contains(out, "__dlq.errors.offset:3");
            contains(out, "__dlq.errors.message:Offset rejected by client.");
        });
        checks.check("kafka-configs shows and deletes where the dead letters of a group go", () -> {
            contains(config("parcels", "--describe").ok().output(), "errors.deadletterqueue.topic.name=dlq.parcels");
            config("parcels", "--alter", "--delete-config", "errors.deadletterqueue.topic.name").ok();
            lacks(config("parcels", "--describe").ok().output(), "dlq.parcels");
        });
    }

    private void configs() {
        checks.check("kafka-configs sets, shows and deletes every config of pause and breaker", () -> {
            List<String> settings = DRAFTS.entrySet().stream().map(e -> e.getKey() + "=" + e.getValue()).toList();
            set("drafts", String.join(",", settings));
            String out = config("drafts", "--describe").ok().output();
            for (String setting : settings) contains(out, setting);
            config("drafts", "--alter", "--delete-config", String.join(",", DRAFTS.keySet())).ok();
            lacks(config("drafts", "--describe").ok().output(), ".dlq.");
            out = config("drafts", "--describe", "--all").ok().output();
            for (String key : DRAFTS.keySet()) contains(out, key + "=");
        });
        checks.check("kafka-configs prints why a value of pause and breaker is refused", () -> {
            for (String[] wrong : WRONG) {
                var r = config("drafts", "--alter", "--add-config", wrong[0]);
                that(r.status() != 0, wrong[0] + " is taken: " + r.output());
                contains(r.output(), "InvalidConfigurationException: ");
                contains(r.output(), wrong[0].substring(0, wrong[0].indexOf('=')));
                contains(r.output(), wrong[1]);
            }
            lacks(config("drafts", "--describe").ok().output(), "=");
        });
    }

    private void pause() {
        checks.check("a paused group: polls are empty and raise nothing, held records are acknowledged, a resume delivers", () -> {
            set("halted", "share.auto.offset.reset=earliest");
            try (var holder = Records.shareConsumer(at, "halted", "explicit"); var other = Records.shareConsumer(at, "halted", "explicit")) {
                holder.subscribe(List.of("parcels"));
                List<ConsumerRecord<byte[], byte[]>> held = poll(holder, 5, 30_000);
                equal(5, held.size(), "held records");
                set("halted", PAUSED + "=true");
                Records.produce(at, "parcels", 0, 5, 2);
                other.subscribe(List.of("parcels"));
                equal(List.of(), text(poll(other, 1, 1500)), "records while paused");
                AcknowledgeType[] ways = {AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT, AcknowledgeType.RENEW,
                    AcknowledgeType.ACCEPT};
                for (ConsumerRecord<byte[], byte[]> r : held) holder.acknowledge(r, ways[(int) r.offset()]);
                commit(holder);
                List<ConsumerRecord<byte[], byte[]>> renewed = poll(holder, 1, 5000);
                equal(List.of("v3"), text(renewed), "the renewed record");
                renewed.forEach(holder::acknowledge);
                commit(holder);
                stockTools();
                equal(List.of(), text(poll(other, 1, 300)), "records while still paused");
                holder.close();
                config("halted", "--alter", "--delete-config", PAUSED).ok();
                List<ConsumerRecord<byte[], byte[]>> rest = poll(other, 3, 10_000);
                equal(List.of("v1", "v5", "v6"), text(rest), "records after the resume");
                for (ConsumerRecord<byte[], byte[]> r : rest) {
                    equal((short) (r.offset() == 1 ? 2 : 1), r.deliveryCount().orElse((short) 0), "deliveries of " + r.offset());
                }
                rest.forEach(other::acknowledge);
                commit(other);
            }
        });
        checks.check("kafka-share-groups moves the offsets of a paused group, and deletes it", () -> {
            set("halted", PAUSED + "=true");
            groups("--reset-offsets", "--group", "halted", "--topic", "parcels", "--to-offset", "6", "--execute").ok();
            String out = groups("--describe", "--group", "halted", "--offsets", "--verbose").ok().output();
            that(out.lines().anyMatch(l -> l.matches("halted +parcels +0 +\\S+ +6 +1 *")), out);
            contains(groups("--delete-offsets", "--group", "halted", "--topic", "parcels").ok().output(), "Successful");
            contains(groups("--delete", "--group", "halted").ok().output(), "successful");
            lacks(groups("--list").ok().output(), "halted");
            contains(config("halted", "--describe").ok().output(), PAUSED + "=true");
        });
    }

    /** kafka-share-groups on a paused group with two members shows what it shows of any group. */
    private void stockTools() throws Exception {
        that(groups("--list", "--state").ok().output().lines().anyMatch(l -> l.matches("halted +Stable *")), "halted is not Stable");
        for (String[] more : new String[][] {{}, {"--verbose"}}) {
            contains(describe("--state", more), "Stable");
            that(describe("--members", more).lines().filter(l -> l.startsWith("halted")).count() == 2, "not two members");
            that(describe("--offsets", more).lines().anyMatch(l -> l.startsWith("halted") && l.contains("parcels")), "no offsets");
        }
    }

    private String describe(String what, String... more) throws Exception {
        List<String> all = new ArrayList<>(List.of("--describe", "--group", "halted", what));
        all.addAll(Arrays.asList(more));
        return groups(all.toArray(String[]::new)).ok().output();
    }

    private void feature() {
        checks.check("kafka-features shows share.pause.version, and keeps it while a group is paused", () -> {
            set("halted", PAUSED + "=true");
            String out = tool("FeatureCommand", "describe").ok().output();
            that(out.lines().anyMatch(l -> l.matches("Feature: share.pause.version\\s+SupportedMinVersion: 0\\s+SupportedMaxVersion: 1"
                + "\\s+FinalizedVersionLevel: 1\\s.*")), out);
            var refused = tool("FeatureCommand", "downgrade", "--feature", "share.pause.version=0");
            equal(1, refused.status(), "exit status");
            contains(refused.output(), "It is in use: share group halted is paused by its config.");
            config("halted", "--alter", "--delete-config", PAUSED).ok();
            tool("FeatureCommand", "downgrade", "--feature", "share.pause.version=0").ok();
            var without = config("halted", "--alter", "--add-config", PAUSED + "=true");
            that(without.status() != 0, without.output());
            contains(without.output(), "share.pause.version");
            tool("FeatureCommand", "upgrade", "--feature", "share.pause.version=1").ok();
        });
    }
}
