package clients;

import static clients.Check.contains;
import static clients.Check.equal;
import static clients.Check.lacks;
import static clients.Check.that;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;

/** What Kafka's tools say of the data directory of a stopped broker, and what is there after its next start. */
final class Disk {
    private final Check checks;
    private final BrokerProcess broker;
    private final Matrix matrix;

    Disk(Check checks, BrokerProcess broker, Matrix matrix) {
        this.checks = checks;
        this.broker = broker;
        this.matrix = matrix;
    }

    void run() {
        checks.check("the broker stops cleanly on SIGTERM", () -> {
            int status = broker.stop();
            that(status == 0 || status == 143, "exit status " + status);
        });
        for (String codec : Topics.CODECS) {
            checks.check("kafka-dump-log --deep-iteration --print-data-log, " + codec, () -> {
                List<Path> files = new ArrayList<>();
                for (String client : matrix.wrote(codec)) files.addAll(logs(client + "-" + codec + "-0", ".log"));
                String out = dump(files, "--deep-iteration", "--print-data-log");
                equal((long) files.size() * MatrixTopics.RECORDS, out.lines().filter(l -> l.startsWith("| offset:")).count(), "records");
                contains(out, "payload: value-1-x");
                for (String batch : out.lines().filter(l -> l.startsWith("baseOffset:")).toList()) {
                    contains(batch, "compresscodec: " + codec);
                    contains(batch, "isvalid: true");
                }
            });
        }
        checks.check("kafka-dump-log shows the producer ids of idempotent producers", () -> {
            List<Path> files = new ArrayList<>();
            for (String client : matrix.wrote("idempotence")) files.addAll(logs(client + "-idempotence-0", ".log"));
            String out = dump(files);
            that(out.lines().anyMatch(l -> l.startsWith("baseOffset:")), out);
            lacks(out, "producerId: -1");
        });
        checks.check("kafka-dump-log --index-sanity-check", () -> {
            String offsets = dump(allLogs(".index"), "--index-sanity-check");
            that(offsets.lines().anyMatch(l -> l.contains("passed sanity check")), offsets);
            lacks(offsets, "failed");
            dump(allLogs(".timeindex"), "--index-sanity-check");
        });
        checks.check("kafka-dump-log reads the indexes of a large partition", () -> {
            String offsets = dump(logs("perf-0", ".index"));
            that(offsets.lines().anyMatch(l -> l.startsWith("offset:")), offsets);
            lacks(offsets, "Mismatches");
            lacks(dump(logs("perf-0", ".timeindex")), "Found timestamp mismatch");
        });
        checks.check("kafka-dump-log --share-group-state-decoder", () -> {
            String out = dump(topicLogs("__share_group_state-"), "--share-group-state-decoder", "--print-data-log");
            contains(out, "\"groupId\":\"console\"");
            contains(out, "\"startOffset\"");
        });
        checks.check("kafka-dump-log --offsets-decoder", () -> {
            String out = dump(topicLogs("__consumer_offsets-"), "--offsets-decoder", "--print-data-log");
            contains(out, "console");
            contains(out, "\"group\":\"java-classic\",\"topic\":\"java-classic-group\"");
            contains(out, "\"group\":\"java-consumer\",\"topic\":\"java-consumer-group\"");
        });
        checks.check("kafka-dump-log --cluster-metadata-decoder", () -> {
            String out = dump(logs("__cluster_metadata-0", ".log"), "--cluster-metadata-decoder");
            contains(out, "\"TOPIC_RECORD\"");
            contains(out, "\"name\":\"orders\"");
        });
        checks.check("the broker starts again on its data", broker::start);
        checks.check("topics, records and configurations are there after the restart", () -> {
            String at = broker.bootstrap();
            contains(Tools.run("GetOffsetShell", "--bootstrap-server", at, "--topic", "perf").ok().output(), "perf:0:" + Topics.PERF_RECORDS);
            contains(Tools.run("GetOffsetShell", "--bootstrap-server", at, "--topic", "perf", "--time", "-2").ok().output(), "perf:0:5000");
            equal(300, Records.readAll(at, "orders").size(), "records of orders");
            contains(Tools.run("TopicCommand", "--bootstrap-server", at, "--describe", "--topic", "orders").ok().output(), "retention.ms=7200000");
            contains(Tools.run("ConfigCommand", "--bootstrap-server", at, "--describe", "--entity-type", "groups", "--entity-name", "explicit")
                .ok().output(), "share.record.lock.duration.ms=" + ShareGroups.LOCK_MS);
        });
        checks.check("share groups are there after the restart", () -> {
            var r = Tools.run("consumer.group.ShareGroupCommand", "--bootstrap-server", broker.bootstrap(), "--describe", "--group", "console",
                "--offsets").ok();
            List<String[]> rows = r.output().lines().map(l -> l.trim().split("\\s+")).filter(f -> f[0].equals("console")).toList();
            equal(2, rows.size(), "rows");
            for (String[] f : rows) equal("0", f[f.length - 1], "lag");
        });
        checks.check("the broker lives to the end", () -> that(broker.isAlive(), "it ended: " + broker.logTail()));
    }

    private static String dump(List<Path> files, String... more) throws Exception {
        that(!files.isEmpty(), "no such file");
        List<String> args = new ArrayList<>(List.of("--files", String.join(",", files.stream().map(Path::toString).toList())));
        args.addAll(List.of(more));
        return Tools.run("DumpLogSegments", args.toArray(String[]::new)).ok().output();
    }

    private List<Path> find(java.util.function.Predicate<String> folder, String ending) throws IOException {
        try (Stream<Path> files = Files.walk(broker.data(), 2)) {
            return files.filter(f -> f.getNameCount() == broker.data().getNameCount() + 2 && f.toString().endsWith(ending)
                && folder.test(f.getParent().getFileName().toString())).sorted().toList();
        }
    }

    private List<Path> logs(String folder, String ending) throws IOException {
        return find(folder::equals, ending);
    }

    private List<Path> allLogs(String ending) throws IOException {
        return find(name -> name.matches("(kafka|perf|orders|jobs|tasks).*-\\d+"), ending);
    }

    private List<Path> topicLogs(String prefix) throws IOException {
        return find(name -> name.startsWith(prefix), ".log");
    }
}
