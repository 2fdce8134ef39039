package clients;

import static clients.Check.contains;
import static clients.Check.equal;
import static clients.Check.lacks;
import static clients.Check.that;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.ConsumerRecord;

/** Producers, topics, offsets, configurations and features. */
final class Topics {
    static final List<String> CODECS = List.of("none", "gzip", "snappy", "lz4", "zstd");
    static final int PERF_RECORDS = 20_000;

    private final Check checks;
    private final String at;
    private final Path dir;
    private final int node;

    Topics(Check checks, String bootstrap, Path dir, int node) {
        this.checks = checks;
        this.at = bootstrap;
        this.dir = dir;
        this.node = node;
    }

    void run() {
        topics();
        producers();
        offsets();
        configs();
    }

    private Tools.Result topicTool(String... args) throws Exception {
        return Tools.run("TopicCommand", with(args));
    }

    private String[] with(String... args) {
        String[] all = new String[args.length + 2];
        all[0] = "--bootstrap-server";
        all[1] = at;
        System.arraycopy(args, 0, all, 2, args.length);
        return all;
    }

    private void topics() {
        checks.check("kafka-topics create", () -> {
            var r = topicTool("--create", "--topic", "orders", "--partitions", "2", "--config", "retention.ms=7200000").ok();
            contains(r.output(), "Created topic orders.");
        });
        checks.check("kafka-topics create refuses a topic that exists", () -> {
            var r = topicTool("--create", "--topic", "orders", "--partitions", "2");
            equal(1, r.status(), "exit status");
            contains(r.output(), "Topic 'orders' already exists.");
        });
        checks.check("kafka-topics create refuses a bad name", () -> {
            var r = topicTool("--create", "--topic", "no/slash");
            equal(1, r.status(), "exit status");
            contains(r.output(), "contains one or more characters other than ASCII alphanumerics");
        });
        checks.check("kafka-topics describe", () -> {
            String out = topicTool("--describe", "--topic", "orders").ok().output();
            contains(out, "PartitionCount: 2");
            contains(out, "ReplicationFactor: 1");
            contains(out, "retention.ms=7200000");
            contains(out, "Partition: 1\tLeader: " + node + "\tReplicas: " + node + "\tIsr: " + node);
        });
        checks.check("kafka-topics alter", () -> {
            topicTool("--alter", "--topic", "orders", "--partitions", "3").ok();
            contains(topicTool("--describe", "--topic", "orders").ok().output(), "PartitionCount: 3");
        });
        checks.check("kafka-topics alter refuses fewer partitions", () ->
            equal(1, topicTool("--alter", "--topic", "orders", "--partitions", "1").status(), "exit status"));
        checks.check("kafka-topics list", () ->
            that(topicTool("--list").ok().output().lines().anyMatch("orders"::equals), "orders is not listed"));
        checks.check("kafka-topics delete", () -> {
            topicTool("--create", "--topic", "gone", "--partitions", "1").ok();
            topicTool("--delete", "--topic", "gone").ok();
            that(topicTool("--list").ok().output().lines().noneMatch("gone"::equals), "gone is still listed");
            that(topicTool("--describe", "--topic", "gone").status() != 0, "describe of a deleted topic succeeds");
        });
    }

    private void producers() {
        checks.check("console producer", () -> {
            StringBuilder lines = new StringBuilder();
            for (int i = 0; i < 300; i++) lines.append("line ").append(i).append('\n');
            Tools.runWithInput(lines.toString(), "ConsoleProducer", with("--topic", "orders")).ok();
            List<ConsumerRecord<byte[], byte[]>> found = Records.readAll(at, "orders");
            equal(300, found.size(), "records");
            that(found.stream().anyMatch(r -> new String(r.value()).equals("line 299")), "the last line is missing");
        });
        checks.check("console producer with keys, headers and gzip", () -> {
            topicTool("--create", "--topic", "keyed", "--partitions", "1").ok();
            Tools.runWithInput("h1:a,h2:b\tkey\tvalue\n", "ConsoleProducer", with("--topic", "keyed", "--compression-codec", "gzip",
                "--reader-property", "parse.key=true", "--reader-property", "parse.headers=true")).ok();
            List<ConsumerRecord<byte[], byte[]>> found = Records.readAll(at, "keyed");
            equal(1, found.size(), "records");
            equal("key", new String(found.get(0).key()), "key");
            equal("b", new String(found.get(0).headers().lastHeader("h2").value()), "header h2");
        });
        checks.check("console producer creates its topic", () -> {
            Tools.runWithInput("first\n", "ConsoleProducer", with("--topic", "made-by-producer")).ok();
            equal(1, Records.readAll(at, "made-by-producer").size(), "records");
        });
        checks.check("producer performance, 1 KiB, acks=all", () -> {
            topicTool("--create", "--topic", "perf", "--partitions", "1").ok();
            var r = Tools.run("ProducerPerformance", "--topic", "perf", "--num-records", "" + PERF_RECORDS, "--record-size", "1024",
                "--throughput", "-1", "--bootstrap-server", at, "--command-property", "acks=all").ok();
            contains(r.output(), PERF_RECORDS + " records sent");
        });
    }

    private void offsets() {
        checks.check("kafka-get-offsets latest", () ->
            contains(Tools.run("GetOffsetShell", with("--topic", "perf")).ok().output(), "perf:0:" + PERF_RECORDS));
        checks.check("kafka-get-offsets of all topics", () -> {
            TreeMap<String, Long> ends = new TreeMap<>();
            for (String line : Tools.run("GetOffsetShell", with()).ok().output().lines().toList()) {
                String[] f = line.split(":");
                if (f.length == 3 && f[0].equals("orders")) ends.put(f[1], Long.parseLong(f[2]));
            }
            equal(3, ends.size(), "partitions of orders");
            equal(300L, ends.values().stream().mapToLong(Long::longValue).sum(), "records in orders");
        });
        checks.check("kafka-get-offsets earliest, by the greatest timestamp, by a timestamp", () -> {
            contains(Tools.run("GetOffsetShell", with("--topic", "perf", "--time", "-2")).ok().output(), "perf:0:0");
            String max = Tools.run("GetOffsetShell", with("--topic", "perf", "--time", "-3")).ok().output();
            that(max.strip().matches("perf:0:\\d+") && Long.parseLong(max.strip().split(":")[2]) < PERF_RECORDS, max);
            contains(Tools.run("GetOffsetShell", with("--topic", "perf", "--time", "1000")).ok().output(), "perf:0:0");
        });
        checks.check("kafka-delete-records", () -> {
            Path json = dir.resolve("delete.json");
            Files.writeString(json, "{\"version\":1,\"partitions\":[{\"topic\":\"perf\",\"partition\":0,\"offset\":5000}]}");
            var r = Tools.run("DeleteRecordsCommand", with("--offset-json-file", json.toString())).ok();
            contains(r.output(), "partition: perf-0\tlow_watermark: 5000");
            contains(Tools.run("GetOffsetShell", with("--topic", "perf", "--time", "-2")).ok().output(), "perf:0:5000");
            equal(PERF_RECORDS - 5000, Records.readAll(at, "perf").size(), "records left");
        });
    }

    private Tools.Result configTool(String... args) throws Exception {
        return Tools.run("ConfigCommand", with(args));
    }

    private void configs() {
        checks.check("kafka-configs on a topic", () -> {
            configTool("--alter", "--entity-type", "topics", "--entity-name", "orders", "--add-config", "max.message.bytes=50000").ok();
            contains(configTool("--describe", "--entity-type", "topics", "--entity-name", "orders").ok().output(), "max.message.bytes=50000");
            configTool("--alter", "--entity-type", "topics", "--entity-name", "orders", "--delete-config", "max.message.bytes").ok();
            lacks(configTool("--describe", "--entity-type", "topics", "--entity-name", "orders").ok().output(), "max.message.bytes=50000");
        });
        checks.check("kafka-configs refuses a value out of range", () -> {
            var r = configTool("--alter", "--entity-type", "topics", "--entity-name", "orders", "--add-config", "retention.ms=x");
            equal(1, r.status(), "exit status");
            contains(r.output(), "Invalid value x for configuration retention.ms");
        });
        checks.check("kafka-configs on a group", () -> {
            configTool("--alter", "--entity-type", "groups", "--entity-name", "configured", "--add-config",
                "share.auto.offset.reset=earliest,share.record.lock.duration.ms=20000").ok();
            String out = configTool("--describe", "--entity-type", "groups", "--entity-name", "configured").ok().output();
            contains(out, "share.auto.offset.reset=earliest");
            contains(out, "share.record.lock.duration.ms=20000");
            configTool("--alter", "--entity-type", "groups", "--entity-name", "configured", "--delete-config", "share.auto.offset.reset").ok();
            lacks(configTool("--describe", "--entity-type", "groups", "--entity-name", "configured").ok().output(),
                "share.auto.offset.reset=earliest");
        });
        checks.check("kafka-configs on a broker", () -> {
            configTool("--alter", "--entity-type", "brokers", "--entity-name", "" + node, "--add-config", "log.cleaner.threads=2").ok();
            contains(configTool("--describe", "--entity-type", "brokers", "--entity-name", "" + node).ok().output(), "log.cleaner.threads=2");
            configTool("--alter", "--entity-type", "brokers", "--entity-name", "" + node, "--delete-config", "log.cleaner.threads").ok();
        });
        checks.check("kafka-configs on all brokers", () -> {
            configTool("--alter", "--entity-type", "brokers", "--entity-default", "--add-config", "message.max.bytes=2000000").ok();
            contains(configTool("--describe", "--entity-type", "brokers", "--entity-default").ok().output(), "message.max.bytes=2000000");
            configTool("--alter", "--entity-type", "brokers", "--entity-default", "--delete-config", "message.max.bytes").ok();
        });
        checks.check("kafka-configs describes every setting of a broker", () ->
            contains(configTool("--describe", "--entity-type", "brokers", "--entity-name", "" + node, "--all").ok().output(),
                "group.share.delivery.count.limit=5"));
        checks.check("kafka-features describe", () -> {
            String out = Tools.run("FeatureCommand", with("describe")).ok().output();
            that(out.lines().anyMatch(l -> l.contains("Feature: share.version") && l.contains("FinalizedVersionLevel: 2")), out);
            contains(out, "Feature: metadata.version");
        });
    }
}
