package clients;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * The client matrix: one program a library, all through the same list of capabilities. A program is called with the bootstrap
 * address and its name, which its topics and its group begin with, and prints {@code version V} and then a line for each
 * capability: {@code ok CAPABILITY}, {@code none CAPABILITY: why the library has no such thing}, {@code FAIL CAPABILITY: why}.
 */
final class Matrix {
    /** The columns of the table. */
    static final List<String> CAPABILITIES = List.of("none", "gzip", "snappy", "lz4", "zstd", "nulls", "headers", "5 MB", "idempotence",
        "two members", "take-over", "restart", "seek", "timestamps", "topics", "configs", "groups", "delete group", "delete records");

    /** Where the package that brings Node has it; without one for this machine, the machine's own is used. */
    private static final String NODE = "node/node_modules/node-linux-" + (System.getProperty("os.arch").equals("aarch64") ? "arm64" : "x64") + "/bin/node";

    private static final Path OUT = Path.of(System.getProperty("out"));
    private static final Pattern LINE = Pattern.compile("(ok|none|FAIL) ([^:]+)(?:: (.*))?");
    private static final long LIMIT_S = 120;

    private final Check checks;
    private final String at;
    private final List<Report> reports = new ArrayList<>();

    Matrix(Check checks, String bootstrap) {
        this.checks = checks;
        this.at = bootstrap;
    }

    /** The programs in other languages: client to command. */
    private static Map<String, List<String>> programs() {
        Map<String, List<String>> found = new LinkedHashMap<>();
        String python = OUT.resolve("venv/bin/python").toString();
        Path scripts = Path.of(System.getProperty("scripts"), "python");
        found.put("confluent-kafka", List.of(python, scripts.resolve("confluent.py").toString()));
        found.put("kafka-python", List.of(python, scripts.resolve("kafkapython.py").toString()));
        found.put("aiokafka", List.of(python, scripts.resolve("aio.py").toString()));
        String node = Files.exists(OUT.resolve(NODE)) ? OUT.resolve(NODE).toString() : "node";
        for (String library : List.of("kafkajs", "platformatic")) {
            found.put(library, List.of(node, OUT.resolve("node/" + library + ".mjs").toString()));
        }
        for (String library : List.of("franz-go", "kafka-go", "sarama")) found.put(library, List.of(OUT.resolve("go/clients").toString(), library));
        found.put("krafka", List.of(OUT.resolve("rust/debug/clients").toString()));
        return found;
    }

    /** The clients that showed a capability. */
    List<String> wrote(String capability) {
        return reports.stream().filter(r -> r.passed(capability)).map(r -> r.client).toList();
    }

    void run() throws IOException {
        for (String protocol : List.of("classic", "consumer")) {
            one("java-" + protocol, report -> new JavaScenario(at, "java-" + protocol, protocol, report).run());
        }
        for (Map.Entry<String, List<String>> program : programs().entrySet()) {
            one(program.getKey(), report -> external(program.getKey(), program.getValue(), report));
        }
        boolean whole = checks.picks("");
        if (whole) Files.write(OUT.resolve("matrix.tsv"), reports.stream().flatMap(Report::rows).toList());
    }

    /** What each library in another language reads in partition 0 of a topic: `KEY VALUE HEADER=VALUE...` a record. */
    static Map<String, List<String>> read(String bootstrap, String topic, int count) throws Exception {
        Map<String, Process> started = new LinkedHashMap<>();
        for (Map.Entry<String, List<String>> program : programs().entrySet()) {
            List<String> line = new ArrayList<>(program.getValue());
            line.addAll(List.of(bootstrap, topic, "" + count));
            started.put(program.getKey(), new ProcessBuilder(line).redirectError(ProcessBuilder.Redirect.INHERIT)
                .redirectInput(ProcessBuilder.Redirect.from(new java.io.File("/dev/null"))).start());
        }
        Map<String, List<String>> found = new LinkedHashMap<>();
        for (Map.Entry<String, Process> e : started.entrySet()) {
            if (!e.getValue().waitFor(LIMIT_S, TimeUnit.SECONDS)) e.getValue().destroyForcibly();
            found.put(e.getKey(), new String(e.getValue().getInputStream().readAllBytes(), StandardCharsets.UTF_8).lines().toList());
        }
        return found;
    }

    private interface Client {
        void run(Report report) throws Exception;
    }

    private void one(String client, Client body) {
        if (CAPABILITIES.stream().noneMatch(c -> checks.picks(client + ": " + c))) return;
        Report report = new Report(client);
        try {
            MatrixTopics.create(at, client);
            body.run(report);
            report.missing("not reported");
        } catch (Exception e) {
            report.missing(e.toString());
        }
        checks.check(client + ": the Java consumer reads the same", () -> MatrixTopics.verify(at, client, report::passed));
        reports.add(report);
    }

    private void external(String client, List<String> command, Report report) throws Exception {
        List<String> line = new ArrayList<>(command);
        line.addAll(List.of(at, client));
        Process process = new ProcessBuilder(line).redirectError(ProcessBuilder.Redirect.INHERIT)
            .redirectInput(ProcessBuilder.Redirect.from(new java.io.File("/dev/null"))).start();
        Thread watch = new Thread(() -> {
            try {
                if (!process.waitFor(LIMIT_S, TimeUnit.SECONDS)) process.destroyForcibly();
            } catch (InterruptedException e) {
                process.destroyForcibly();
            }
        });
        watch.setDaemon(true);
        watch.start();
        try (BufferedReader lines = new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8))) {
            for (String text = lines.readLine(); text != null; text = lines.readLine()) report.line(text);
        }
        report.ended = "the program ended with status " + process.waitFor();
    }

    /** What one client showed. */
    final class Report {
        private final String client;
        private final Map<String, String> outcomes = new LinkedHashMap<>();
        private String version = "?";
        private String ended = "";
        private long since = System.nanoTime();

        Report(String client) {
            this.client = client;
        }

        void version(String version) {
            this.version = version;
        }

        /** A capability that is asked in this JVM. */
        void check(String capability, Check.Body body) {
            try {
                body.run();
                outcome("ok", capability, null);
            } catch (Throwable e) {
                outcome("FAIL", capability, e instanceof Check.Failed ? e.getMessage() : e.toString());
            }
        }

        private void line(String text) {
            if (text.startsWith("version ")) {
                version(text.substring("version ".length()));
                return;
            }
            Matcher m = LINE.matcher(text);
            if (m.matches() && CAPABILITIES.contains(m.group(2))) outcome(m.group(1), m.group(2), m.group(3));
            else System.err.println(client + ": " + text);
        }

        private void outcome(String word, String capability, String why) {
            outcomes.put(capability, word);
            String name = client + ": " + capability;
            if (checks.picks(name)) {
                if (word.equals("none")) checks.none(name, since, why);
                else checks.report(name, since, word.equals("ok") ? null : String.valueOf(why));
            }
            since = System.nanoTime();
        }

        private void missing(String why) {
            for (String capability : CAPABILITIES) {
                if (!outcomes.containsKey(capability)) outcome("FAIL", capability, why + (ended.isEmpty() ? "" : "; " + ended));
            }
        }

        boolean passed(String capability) {
            return "ok".equals(outcomes.get(capability));
        }

        /** The table's source: client, version, capability, outcome. */
        private Stream<String> rows() {
            return outcomes.entrySet().stream().map(e -> String.join("\t", client, version, e.getKey(), e.getValue()));
        }
    }
}
