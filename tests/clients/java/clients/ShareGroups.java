package clients;

import static clients.Check.contains;
import static clients.Check.equal;
import static clients.Check.lacks;
import static clients.Check.that;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.Callable;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.errors.InvalidRecordStateException;

/** Share consumers and kafka-share-groups. */
final class ShareGroups {
    private static final int RECORDS = 2000;
    static final int LOCK_MS = 3000;

    private final Check checks;
    private final String at;

    ShareGroups(Check checks, String bootstrap) {
        this.checks = checks;
        this.at = bootstrap;
    }

    void run() {
        checks.check("kafka-topics creates the topic of the share groups", () -> {
            Tools.run("TopicCommand", "--bootstrap-server", at, "--create", "--topic", "jobs", "--partitions", "2").ok();
            Tools.run("TopicCommand", "--bootstrap-server", at, "--create", "--topic", "tasks", "--partitions", "1").ok();
            for (String group : List.of("console", "explicit", "lone")) configure(group, "share.auto.offset.reset=earliest");
            configure("explicit", "share.record.lock.duration.ms=" + LOCK_MS);
        });
        twoMembers();
        explicit();
        offsets();
        delete();
    }

    private void configure(String group, String setting) throws Exception {
        Tools.run("ConfigCommand", "--bootstrap-server", at, "--alter", "--entity-type", "groups", "--entity-name", group,
            "--add-config", setting).ok();
    }

    private Tools.Result groupTool(String... args) throws Exception {
        List<String> all = new ArrayList<>(List.of("--bootstrap-server", at));
        all.addAll(Arrays.asList(args));
        return Tools.run("consumer.group.ShareGroupCommand", all.toArray(String[]::new));
    }

    /** Rows of a table that a tool printed, without the header, for one group. */
    private static List<String[]> rows(String output, String group) {
        return output.lines().map(l -> l.trim().split("\\s+")).filter(f -> f.length > 1 && f[0].equals(group)).toList();
    }

    /** Asks again until the answer is the one expected, or a limit passes. */
    private static <T> T await(String what, Callable<T> ask, java.util.function.Predicate<T> enough) throws Exception {
        long deadline = System.nanoTime() + 30_000_000_000L;
        while (true) {
            T got = ask.call();
            if (enough.test(got)) return got;
            that(System.nanoTime() < deadline, what + " never came; last answer: " + got);
            Thread.sleep(50);
        }
    }

    private void twoMembers() {
        List<Tools.Running> members = new ArrayList<>();
        checks.check("two console share consumers join one group", () -> {
            for (int i = 0; i < 2; i++) {
                members.add(Tools.startIsolated("consumer.ConsoleShareConsumer", "--bootstrap-server", at, "--topic", "jobs",
                    "--group", "console", "--timeout-ms", "6000"));
            }
            await("a group of two members with assignments",
                () -> groupTool("--describe", "--group", "console", "--members").output(),
                out -> rows(out, "console").size() == 2 && rows(out, "console").stream().allMatch(f -> f[f.length - 1].startsWith("jobs:")));
        });
        checks.check("kafka-share-groups describe --state with members", () -> {
            List<String[]> found = rows(groupTool("--describe", "--group", "console", "--state").ok().output(), "console");
            equal(1, found.size(), "rows");
            List<String> fields = Arrays.asList(found.get(0));
            that(fields.contains("Stable") && fields.get(fields.size() - 1).equals("2"), "row " + fields);
        });
        checks.check("kafka-share-groups delete and reset-offsets refuse a group with members", () -> {
            for (var r : List.of(groupTool("--delete", "--group", "console"),
                groupTool("--delete-offsets", "--group", "console", "--topic", "jobs"),
                groupTool("--reset-offsets", "--group", "console", "--topic", "jobs", "--to-earliest", "--execute"))) {
                contains(r.output().toLowerCase(java.util.Locale.ROOT), "not empty");
            }
        });
        checks.check("two console share consumers read every record once", () -> {
            for (int partition = 0; partition < 2; partition++) Records.produce(at, "jobs", partition, partition * RECORDS / 2, RECORDS / 2);
            Map<String, Integer> seen = new TreeMap<>();
            List<Integer> shares = new ArrayList<>();
            for (Tools.Running member : members) {
                List<String> lines = member.join(60_000).output().lines().filter(l -> l.matches("v\\d+")).toList();
                shares.add(lines.size());
                for (String line : lines) seen.merge(line, 1, Integer::sum);
            }
            equal(RECORDS, seen.size(), "different records");
            equal(RECORDS, shares.stream().mapToInt(Integer::intValue).sum(), "deliveries");
            that(shares.stream().allMatch(n -> n > 0), "one member read nothing: " + shares);
        });
        checks.check("kafka-share-groups describe --offsets after two members", () -> {
            String out = await("the end of both partitions", () -> groupTool("--describe", "--group", "console", "--offsets").ok().output(),
                o -> rows(o, "console").stream().allMatch(f -> f[f.length - 1].equals("0")) && rows(o, "console").size() == 2);
            for (String[] f : rows(out, "console")) equal("jobs", f[1], "topic");
        });
        checks.check("kafka-share-groups describe --members and --state of an empty group", () -> {
            contains(groupTool("--describe", "--group", "console", "--members").output(), "has no active members");
            List<String> fields = Arrays.asList(rows(groupTool("--describe", "--group", "console", "--state").output(), "console").get(0));
            that(fields.contains("Empty") && fields.get(fields.size() - 1).equals("0"), "row " + fields);
        });
    }

    private static List<ConsumerRecord<byte[], byte[]>> poll(KafkaShareConsumer<byte[], byte[]> consumer, int atLeast, int limitMs) {
        List<ConsumerRecord<byte[], byte[]>> found = new ArrayList<>();
        long deadline = System.nanoTime() + limitMs * 1_000_000L;
        while (found.size() < atLeast && System.nanoTime() < deadline) consumer.poll(Duration.ofMillis(200)).forEach(found::add);
        return found;
    }

    private static void commit(KafkaShareConsumer<byte[], byte[]> consumer) {
        for (Map.Entry<TopicIdPartition, java.util.Optional<KafkaException>> e : consumer.commitSync().entrySet()) {
            that(e.getValue().isEmpty(), e.getKey() + ": " + e.getValue());
        }
    }

    private static List<Long> offsetsOf(List<ConsumerRecord<byte[], byte[]>> records) {
        return records.stream().map(ConsumerRecord::offset).sorted().toList();
    }

    /** Accepts the released records 4 and 5, which must come with a delivery count of 2, and returns the others. */
    private static List<ConsumerRecord<byte[], byte[]>> split(List<ConsumerRecord<byte[], byte[]>> records,
                                                              KafkaShareConsumer<byte[], byte[]> consumer, TreeSet<Long> released) {
        List<ConsumerRecord<byte[], byte[]>> held = new ArrayList<>();
        for (ConsumerRecord<byte[], byte[]> r : records) {
            boolean wasReleased = r.offset() == 4 || r.offset() == 5;
            equal((short) (wasReleased ? 2 : 1), r.deliveryCount().orElse((short) 0), "delivery count of offset " + r.offset());
            if (wasReleased) {
                released.add(r.offset());
                consumer.acknowledge(r, AcknowledgeType.ACCEPT);
            } else {
                held.add(r);
            }
        }
        return held;
    }

    private void explicit() {
        checks.check("explicit acknowledgement: accept, release, reject, renew", () -> {
            Records.produce(at, "tasks", 0, 0, 10);
            try (var consumer = Records.shareConsumer(at, "explicit", "explicit")) {
                consumer.subscribe(List.of("tasks"));
                List<ConsumerRecord<byte[], byte[]>> first = poll(consumer, 10, 30_000);
                equal(10, first.size(), "records of the first delivery");
                that(first.stream().allMatch(r -> r.deliveryCount().orElse((short) 0) == 1), "a delivery count is not 1");
                equal(LOCK_MS, consumer.acquisitionLockTimeoutMs().orElse(0), "lock duration");
                long renewed = System.nanoTime();
                for (ConsumerRecord<byte[], byte[]> r : first) {
                    consumer.acknowledge(r, r.offset() < 4 ? AcknowledgeType.ACCEPT : r.offset() < 6 ? AcknowledgeType.RELEASE
                        : r.offset() < 8 ? AcknowledgeType.REJECT : AcknowledgeType.RENEW);
                }
                commit(consumer);
                // Renewed records come back from poll without a new delivery, before anything else; released ones with a second.
                TreeSet<Long> released = new TreeSet<>();
                for (int renewals = 1; renewals < 3; renewals++) {
                    Thread.sleep(LOCK_MS / 2);
                    List<ConsumerRecord<byte[], byte[]>> held = split(poll(consumer, 1, 5000), consumer, released);
                    equal(List.of(8L, 9L), offsetsOf(held), "renewed records");
                    held.forEach(r -> consumer.acknowledge(r, AcknowledgeType.RENEW));
                    commit(consumer);
                }
                that((System.nanoTime() - renewed) / 1_000_000 >= LOCK_MS, "the test was too quick to need a renewal");
                split(poll(consumer, 1, 5000), consumer, released).forEach(consumer::acknowledge);
                commit(consumer);
                if (released.size() < 2) equal(List.of(), split(poll(consumer, 2 - released.size(), 10_000), consumer, released), "held records");
                equal(List.of(4L, 5L), List.copyOf(released), "released records that came again");
                commit(consumer);
            }
        });
        checks.check("explicit acknowledgement: the state shows as start offset and lag", () -> {
            // The persisted start trails by one write: one more record moves it.
            Records.produce(at, "tasks", 0, 10, 1);
            try (var consumer = Records.shareConsumer(at, "explicit", "implicit")) {
                consumer.subscribe(List.of("tasks"));
                equal(List.of(10L), offsetsOf(poll(consumer, 1, 30_000)), "records left");
                commit(consumer);
            }
            String out = groupTool("--describe", "--group", "explicit", "--offsets").ok().output();
            String[] row = rows(out, "explicit").get(0);
            equal("0", row[row.length - 1], "lag");
        });
        checks.check("a lock that expires hands the record to another member", () -> {
            Records.produce(at, "tasks", 0, 11, 1);
            try (var holder = Records.shareConsumer(at, "explicit", "explicit"); var other = Records.shareConsumer(at, "explicit", "implicit")) {
                holder.subscribe(List.of("tasks"));
                List<ConsumerRecord<byte[], byte[]>> held = poll(holder, 1, 30_000);
                equal(List.of(11L), offsetsOf(held), "held");
                other.subscribe(List.of("tasks"));
                List<ConsumerRecord<byte[], byte[]>> again = poll(other, 1, 30_000);
                equal(List.of(11L), offsetsOf(again), "delivered again");
                equal((short) 2, again.get(0).deliveryCount().orElse((short) 0), "delivery count");
                held.forEach(r -> holder.acknowledge(r, AcknowledgeType.ACCEPT));
                that(holder.commitSync().values().stream().allMatch(e -> e.orElse(null) instanceof InvalidRecordStateException),
                    "a late acknowledgement was accepted");
                commit(other);
            }
        });
    }

    private List<Long> consumeAll(String group, int count) {
        try (var consumer = Records.shareConsumer(at, group, "implicit")) {
            consumer.subscribe(List.of("tasks"));
            List<Long> found = offsetsOf(poll(consumer, count, 20_000));
            commit(consumer);
            return found;
        }
    }

    private void offsets() {
        checks.check("kafka-share-groups list", () -> {
            String out = groupTool("--list").ok().output();
            that(out.lines().anyMatch("console"::equals) && out.lines().anyMatch("explicit"::equals), out);
            that(rows(groupTool("--list", "--state").ok().output(), "console").get(0)[1].equals("Empty"), "state of console is not Empty");
        });
        checks.check("kafka-share-groups describe --all-groups", () -> {
            String out = groupTool("--describe", "--all-groups", "--offsets").ok().output();
            that(!rows(out, "console").isEmpty() && !rows(out, "explicit").isEmpty(), out);
        });
        checks.check("kafka-share-groups reset-offsets --dry-run changes nothing", () -> {
            groupTool("--reset-offsets", "--group", "explicit", "--topic", "tasks", "--to-earliest", "--dry-run").ok();
            String[] row = rows(groupTool("--describe", "--group", "explicit", "--offsets").ok().output(), "explicit").get(0);
            equal("0", row[row.length - 1], "lag");
        });
        checks.check("kafka-share-groups reset-offsets --to-earliest", () -> {
            contains(groupTool("--reset-offsets", "--group", "explicit", "--topic", "tasks", "--to-earliest", "--execute").ok().output(), "tasks");
            String[] row = rows(groupTool("--describe", "--group", "explicit", "--offsets").ok().output(), "explicit").get(0);
            equal("12", row[row.length - 1], "lag");
            equal(12, consumeAll("explicit", 12).size(), "records after the reset");
        });
        checks.check("kafka-share-groups reset-offsets --to-offset and --to-latest", () -> {
            groupTool("--reset-offsets", "--group", "explicit", "--topic", "tasks", "--to-offset", "7", "--execute").ok();
            equal(List.of(7L, 8L, 9L, 10L, 11L), consumeAll("explicit", 5), "records after the reset");
            groupTool("--reset-offsets", "--group", "explicit", "--topic", "tasks", "--to-latest", "--execute").ok();
            String[] row = rows(groupTool("--describe", "--group", "explicit", "--offsets").ok().output(), "explicit").get(0);
            equal("0", row[row.length - 1], "lag");
        });
        checks.check("kafka-share-groups delete-offsets", () -> {
            contains(groupTool("--delete-offsets", "--group", "explicit", "--topic", "tasks").ok().output(), "Successful");
            String out = groupTool("--describe", "--group", "explicit", "--offsets").output();
            that(rows(out, "explicit").stream().noneMatch(f -> f[1].equals("tasks")), out);
            equal(12, consumeAll("explicit", 12).size(), "records after their offsets were deleted (earliest)");
        });
    }

    private void delete() {
        checks.check("kafka-share-groups delete", () -> {
            equal(12, consumeAll("lone", 12).size(), "records");
            contains(groupTool("--delete", "--group", "lone").ok().output(), "successful");
            that(groupTool("--list").ok().output().lines().noneMatch("lone"::equals), "lone is still listed");
        });
        checks.check("kafka-share-groups delete of an unknown group", () -> {
            var r = groupTool("--delete", "--group", "nobody");
            contains(r.output(), "nobody");
            lacks(r.output(), "Deletion of requested share groups ('nobody') was successful");
        });
    }
}
