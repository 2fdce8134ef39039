package clients;

import static clients.Check.contains;
import static clients.Check.equal;
import static clients.Check.that;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** kafka-get-offsets in all ways, kafka-log-dirs, kafka-leader-election, kafka-reassign-partitions. */
final class Cluster {
    private final Check checks;
    private final String at;
    private final Path dir;
    private final int node;

    Cluster(Check checks, String bootstrap, Path dir, int node) {
        this.checks = checks;
        this.at = bootstrap;
        this.dir = dir;
        this.node = node;
    }

    private Tools.Result tool(String tool, String... args) throws Exception {
        List<String> all = new ArrayList<>(List.of("--bootstrap-server", at));
        all.addAll(Arrays.asList(args));
        return Tools.run(tool, all.toArray(String[]::new));
    }

    private String file(String name, String json) throws Exception {
        return Files.writeString(dir.resolve(name), json).toString();
    }

    void run() {
        checks.check("kafka-get-offsets --time in words and numbers", () -> {
            for (String latest : List.of("-1", "latest")) equal("work:0:21", offsets(latest), "--time " + latest);
            for (String earliest : List.of("-2", "earliest", "-4", "earliest-local")) equal("work:0:0", offsets(earliest), "--time " + earliest);
            for (String max : List.of("-3", "max-timestamp")) equal("work:0:20", offsets(max), "--time " + max);
            for (String tiered : List.of("-5", "latest-tiered")) equal("", offsets(tiered), "--time " + tiered);
        });
        checks.check("kafka-get-offsets of internal topics and of partitions", () -> {
            contains(tool("GetOffsetShell", "--topic-partitions", "__consumer_offsets:0").ok().output(), "__consumer_offsets:0:");
            equal("work:1:20\nwork:2:20", tool("GetOffsetShell", "--topic-partitions", "work:1-3").ok().output().strip(), "offsets of two partitions");
            that(tool("GetOffsetShell", "--exclude-internal-topics").ok().output().lines().noneMatch(l -> l.startsWith("__")), "internal topics");
        });
        checks.check("kafka-log-dirs describe", () -> {
            String out = tool("LogDirsCommand", "--describe", "--topic-list", "work,perf", "--broker-list", "" + node).ok().output();
            contains(out, "\"broker\":" + node);
            contains(out, "\"partition\":\"work-2\"");
            contains(out, "\"partition\":\"perf-0\"");
            contains(out, "\"offsetLag\":0");
            that(out.matches("(?s).*\"size\":[1-9].*"), "no size in " + out);
        });
        checks.check("kafka-leader-election", () -> {
            String json = file("election.json", "{\"partitions\":[{\"topic\":\"work\",\"partition\":0}]}");
            contains(tool("LeaderElectionCommand", "--election-type", "preferred", "--path-to-json-file", json).ok().output(),
                "Valid replica already elected for partitions work-0");
            contains(tool("LeaderElectionCommand", "--election-type", "unclean", "--topic", "work", "--partition", "1").ok().output(), "work-1");
        });
        checks.check("kafka-reassign-partitions", () -> {
            String topics = file("move.json", "{\"topics\":[{\"topic\":\"work\"}],\"version\":1}");
            String proposed = tool("reassign.ReassignPartitionsCommand", "--generate", "--topics-to-move-json-file", topics, "--broker-list", "" + node)
                .ok().output();
            contains(proposed, "Proposed partition reassignment configuration");
            String plan = file("plan.json", proposed.strip().lines().reduce((a, b) -> b).orElse(""));
            contains(tool("reassign.ReassignPartitionsCommand", "--execute", "--reassignment-json-file", plan).ok().output(),
                "Successfully started partition reassignments for work-0,work-1,work-2");
            contains(tool("reassign.ReassignPartitionsCommand", "--verify", "--reassignment-json-file", plan).ok().output(),
                "Reassignment of partition work-0 is completed.");
            contains(tool("reassign.ReassignPartitionsCommand", "--list").ok().output(), "No partition reassignments found.");
        });
    }

    private String offsets(String time) throws Exception {
        return tool("GetOffsetShell", "--topic-partitions", "work:0", "--time", time).ok().output().strip();
    }
}
