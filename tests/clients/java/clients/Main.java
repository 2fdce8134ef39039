package clients;

import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.Admin;

/** {@code Main --broker CMD [--filter TEXT] [--keep]}: the whole client script against one broker. */
public final class Main {
    /** Short locks, so that expiry and renewal are seen in seconds; quick assignments, on a real Kafka too. */
    private static final List<String> SETTINGS = List.of("group.share.min.record.lock.duration.ms=1000",
        "group.share.min.heartbeat.interval.ms=500", "group.share.heartbeat.interval.ms=500", "group.share.assignment.interval.ms=0", "group.coordinator.append.linger.ms=0", "group.initial.rebalance.delay.ms=0",
        "group.consumer.min.heartbeat.interval.ms=300", "group.consumer.heartbeat.interval.ms=300", "group.consumer.assignment.interval.ms=0",
        "ottla.admin.listener=127.0.0.1:0");

    private Main() {
    }

    public static void main(String[] args) throws Exception {
        String command = null;
        String filter = "";
        boolean keep = false;
        for (int i = 0; i < args.length; i++) {
            switch (args[i]) {
                case "--broker" -> command = args[++i];
                case "--filter" -> filter = args[++i];
                case "--keep" -> keep = true;
                default -> throw new IllegalArgumentException(args[i]);
            }
        }
        if (command == null) throw new IllegalArgumentException("--broker CMD is missing");
        PrintStream console = Tools.install();
        Check checks = new Check(console, filter);
        Path dir = Files.createTempDirectory("clients");
        BrokerProcess broker = new BrokerProcess(command, dir, SETTINGS);
        try {
            broker.start();
            try (Admin admin = Admin.create(Map.of("bootstrap.servers", broker.bootstrap()))) {
                int node = admin.describeCluster().nodes().get().iterator().next().id();
                new Topics(checks, broker.bootstrap(), dir, node).run();
                new ConsumerGroups(checks, broker.bootstrap(), dir).run();
                new Cluster(checks, broker.bootstrap(), dir, node).run();
            }
            Matrix matrix = new Matrix(checks, broker.bootstrap());
            matrix.run();
            new ShareGroups(checks, broker.bootstrap()).run();
            new DeadLetters(checks, broker.bootstrap()).run();
            new Disk(checks, broker, matrix).run();
        } catch (Exception e) {
            checks.check("the script itself" + filter, () -> {
                throw e;
            });
        } finally {
            broker.kill();
            if (keep) console.println("kept: " + dir);
            else remove(dir);
        }
        console.println(checks.summary());
        console.flush();
        Runtime.getRuntime().halt(checks.failed() == 0 ? 0 : 1);
    }

    private static void remove(Path dir) throws java.io.IOException {
        try (Stream<Path> files = Files.walk(dir)) {
            files.sorted(Comparator.reverseOrder()).forEach(f -> f.toFile().delete());
        }
    }
}
