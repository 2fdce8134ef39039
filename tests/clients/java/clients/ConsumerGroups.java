package clients;

import static clients.Check.contains;
import static clients.Check.equal;
import static clients.Check.lacks;
import static clients.Check.that;

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** kafka-consumer-groups, kafka-groups, the console consumer and ConsumerPerformance. */
final class ConsumerGroups {
    private static final int PARTITIONS = 3;
    private static final int PER_PARTITION = 20;
    /** The timestamp of each partition's first record; the others follow at a second's distance. */
    private static final long FIRST = System.currentTimeMillis() - 3_600_000;

    private final Check checks;
    private final String at;
    private final Path dir;

    ConsumerGroups(Check checks, String bootstrap, Path dir) {
        this.checks = checks;
        this.at = bootstrap;
        this.dir = dir;
    }

    void run() {
        checks.check("kafka-consumer-groups: a topic to work off", this::prepare);
        for (String protocol : List.of("classic", "consumer")) describing(protocol);
        resetting();
        files();
        deleting();
        consoles();
    }

    private void prepare() throws Exception {
        Tools.run("TopicCommand", "--bootstrap-server", at, "--create", "--topic", "work", "--partitions", "" + PARTITIONS).ok();
        try (var producer = new KafkaProducer<>(Map.of("bootstrap.servers", at), new ByteArraySerializer(), new ByteArraySerializer())) {
            for (int i = 0; i < PARTITIONS * PER_PARTITION; i++) {
                int n = i / PARTITIONS;
                producer.send(new ProducerRecord<>("work", i % PARTITIONS, FIRST + 1000L * n, null, Records.bytes("work-" + n)));
            }
            producer.flush();
        }
    }

    private Tools.Result tool(String... args) throws Exception {
        List<String> all = new ArrayList<>(List.of("--bootstrap-server", at));
        all.addAll(Arrays.asList(args));
        return Tools.run("consumer.group.ConsumerGroupCommand", all.toArray(String[]::new));
    }

    private List<String[]> rows(String group, String... args) throws Exception {
        return tool(args).ok().output().lines().map(l -> l.trim().split("\\s+")).filter(f -> f.length > 1 && f[0].equals(group)).toList();
    }

    /** Partition to current offset, as --describe shows it. */
    private Map<String, String> current(String group) throws Exception {
        Map<String, String> found = new TreeMap<>();
        for (String[] f : rows(group, "--describe", "--group", group)) found.put(f[2], f[3]);
        return found;
    }

    private static Map<String, String> all(int offset) {
        Map<String, String> found = new TreeMap<>();
        for (int p = 0; p < PARTITIONS; p++) found.put("" + p, "" + offset);
        return found;
    }

    /** A member that has read and committed everything, and stays until it is closed. */
    private final class Member implements AutoCloseable {
        private final AtomicBoolean leaving = new AtomicBoolean();
        private final Thread thread;
        private volatile int read;

        Member(String group, String protocol) throws Exception {
            Map<String, Object> config = Map.of("bootstrap.servers", at, "group.id", group, "group.protocol", protocol, "client.id", "worker",
                "auto.offset.reset", "earliest", "enable.auto.commit", false);
            var consumer = new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer());
            consumer.subscribe(List.of("work"));
            thread = new Thread(() -> {
                try (consumer) {
                    while (!leaving.get()) {
                        int got = consumer.poll(Duration.ofMillis(100)).count();
                        if (got > 0) consumer.commitSync();
                        read += got;
                    }
                }
            });
            thread.start();
            long deadline = System.nanoTime() + 20_000_000_000L;
            while (read < PARTITIONS * PER_PARTITION) {
                if (System.nanoTime() > deadline) {
                    close();
                    throw new Check.Failed("read " + read + " records");
                }
                Thread.sleep(20);
            }
        }

        @Override
        public void close() throws InterruptedException {
            leaving.set(true);
            thread.join();
        }
    }

    private void describing(String protocol) {
        String group = protocol + "-workers";
        checks.check("kafka-consumer-groups describe, list and what a group with members refuses, " + protocol, () -> {
            try (Member member = new Member(group, protocol)) {
                List<String[]> offsets = rows(group, "--describe", "--group", group);
                equal(PARTITIONS, offsets.size(), "rows of --describe");
                for (String[] f : offsets) {
                    equal("work " + PER_PARTITION + " " + PER_PARTITION + " 0", String.join(" ", f[1], f[3], f[4], f[5]), "topic, offset, end and lag");
                    equal("worker", f[f.length - 1], "client id");
                }
                String[] seen = rows(group, "--describe", "--group", group, "--members").get(0);
                equal("worker " + PARTITIONS, seen[3] + " " + seen[4], "client id and partitions of --members");
                contains(tool("--describe", "--group", group, "--members", "--verbose").ok().output(), "work:0,1,2");
                String[] state = rows(group, "--describe", "--group", group, "--state").get(0);
                equal("Stable 1", state[state.length - 2] + " " + state[state.length - 1], "state and members");
                contains(tool("--describe", "--group", group, "--state", "--verbose").ok().output(), protocol.equals("consumer") ? "uniform" : "range");
                contains(tool("--describe", "--all-groups", "--offsets").ok().output(), group);
                equal("Stable", rows(group, "--list", "--state").get(0)[1], "state of --list");
                contains(tool("--list", "--type", protocol).ok().output(), group);
                contains(tool("--list", "--state", "stable").ok().output(), group);
                refusals(group);
                that(member.thread.isAlive(), "the member ended");
            }
        });
        checks.check("kafka-consumer-groups describe of an empty group, " + protocol, () -> {
            contains(tool("--describe", "--group", group).output(), "has no active members");
            equal(all(PER_PARTITION), current(group), "offsets");
            contains(String.join(" ", rows(group, "--describe", "--group", group, "--state").get(0)), "Empty 0");
            contains(Tools.run("GroupsCommand", "--bootstrap-server", at, "--list", "--consumer").ok().output(), group);
            lacks(Tools.run("GroupsCommand", "--bootstrap-server", at, "--list", "--share").ok().output(), group);
        });
    }

    private void refusals(String group) throws Exception {
        contains(tool("--reset-offsets", "--group", group, "--topic", "work", "--to-earliest", "--execute").output(), "is inactive, but the current state is");
        contains(tool("--delete", "--group", group).output().toLowerCase(Locale.ROOT), "not empty");
        contains(tool("--delete-offsets", "--group", group, "--topic", "work").output().toLowerCase(Locale.ROOT), "subscribed");
    }

    private Tools.Result reset(String... how) throws Exception {
        List<String> args = new ArrayList<>(List.of("--reset-offsets", "--group", "classic-workers", "--topic", "work"));
        args.addAll(Arrays.asList(how));
        return tool(args.toArray(String[]::new)).ok();
    }

    private void resetting() {
        checks.check("kafka-consumer-groups reset-offsets --dry-run changes nothing", () -> {
            contains(reset("--to-earliest", "--dry-run").output(), "classic-workers");
            reset("--to-earliest");
            equal(all(PER_PARTITION), current("classic-workers"), "offsets");
        });
        Map<String, Integer> ways = new java.util.LinkedHashMap<>();
        ways.put("--to-earliest", 0);
        ways.put("--shift-by 12", 12);
        ways.put("--shift-by -5", 7);
        ways.put("--to-offset 9", 9);
        ways.put("--to-current", 9);
        ways.put("--to-datetime " + Instant.ofEpochMilli(FIRST + 4500).toString().replace("Z", ""), 5);
        ways.put("--by-duration PT30M", PER_PARTITION);
        ways.put("--by-duration PT2H", 0);
        ways.put("--to-latest", PER_PARTITION);
        ways.forEach((way, offset) -> checks.check("kafka-consumer-groups reset-offsets " + way.split(" ")[0] + " to " + offset, () -> {
            List<String> args = new ArrayList<>(Arrays.asList(way.split(" ")));
            args.add("--execute");
            reset(args.toArray(String[]::new));
            equal(all(offset), current("classic-workers"), "offsets");
        }));
        checks.check("kafka-consumer-groups reset-offsets of one partition, of all topics, of a group that is not there", () -> {
            tool("--reset-offsets", "--group", "classic-workers", "--topic", "work:1", "--to-offset", "3", "--execute").ok();
            equal("3", current("classic-workers").get("1"), "offset of partition 1");
            equal("20", current("classic-workers").get("2"), "offset of partition 2");
            tool("--reset-offsets", "--group", "classic-workers", "--all-topics", "--to-offset", "6", "--execute").ok();
            equal(all(6), current("classic-workers"), "offsets");
            tool("--reset-offsets", "--group", "fresh", "--topic", "work", "--to-offset", "2", "--execute").ok();
            equal(all(2), current("fresh"), "offsets of the group that the reset made");
        });
    }

    private void files() {
        checks.check("kafka-consumer-groups reset-offsets --export and --from-file", () -> {
            String csv = reset("--to-offset", "6", "--export", "--dry-run").output();
            List<String> lines = csv.lines().filter(l -> l.startsWith("\"work\"") || l.startsWith("work")).sorted().toList();
            equal(PARTITIONS, lines.size(), "lines of the plan " + csv);
            Path plan = dir.resolve("plan.csv");
            Files.writeString(plan, "work,0,1\nwork,1,2\nwork,2,3\n");
            tool("--reset-offsets", "--group", "classic-workers", "--from-file", plan.toString(), "--execute").ok();
            equal(Map.of("0", "1", "1", "2", "2", "3"), current("classic-workers"), "offsets");
            String both = tool("--reset-offsets", "--group", "classic-workers", "--group", "consumer-workers", "--topic", "work", "--to-current",
                "--export", "--dry-run").ok().output();
            contains(both, "consumer-workers");
        });
    }

    private void deleting() {
        checks.check("kafka-consumer-groups delete-offsets", () -> {
            contains(tool("--delete-offsets", "--group", "classic-workers", "--topic", "work:0").ok().output(), "Successful");
            List<String> left = new ArrayList<>(current("classic-workers").keySet());
            equal(List.of("1", "2"), left, "partitions with offsets");
        });
        checks.check("kafka-consumer-groups delete", () -> {
            contains(tool("--delete", "--group", "fresh").ok().output(), "was successful");
            that(tool("--list").ok().output().lines().noneMatch("fresh"::equals), "fresh is still listed");
            contains(tool("--delete", "--group", "fresh").output(), "fresh");
        });
    }

    private void consoles() {
        checks.check("console consumer in a group, from the beginning and from its commit", () -> {
            String[] args = {"--bootstrap-server", at, "--topic", "work", "--group", "console-readers", "--from-beginning", "--timeout-ms", "5000"};
            String[] limited = Arrays.copyOf(args, args.length + 2);
            limited[args.length] = "--max-messages";
            limited[args.length + 1] = "" + (PARTITIONS * PER_PARTITION);
            equal((long) PARTITIONS * PER_PARTITION, lines(limited), "records");
            Records.produce(at, "work", 0, 0, 1);
            limited[args.length + 1] = "1";
            equal(0L, lines(limited), "old records of the second run");
        });
        checks.check("consumer performance", () -> {
            for (String protocol : List.of("classic", "consumer")) {
                String out = Tools.run("ConsumerPerformance", "--bootstrap-server", at, "--topic", "perf", "--group", "perf-" + protocol, "--num-records",
                    "10000", "--timeout", "20000", "--command-property", "group.protocol=" + protocol).ok().output();
                String[] f = out.strip().lines().reduce((a, b) -> b).orElse("").split(",\\s*");
                that(f.length > 5 && Long.parseLong(f[4]) >= 10_000, out);
            }
        });
    }

    /** The old records (`work-N`) that the console consumer prints. */
    private static long lines(String[] args) throws Exception {
        return Tools.startIsolated("consumer.ConsoleConsumer", args).join(30_000).ok().output().lines().filter(l -> l.startsWith("work-")).count();
    }
}
