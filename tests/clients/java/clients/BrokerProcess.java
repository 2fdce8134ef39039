package clients;

import java.io.DataInputStream;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;

/** The broker under test, a process of its own. */
final class BrokerProcess {
    private static final String HOST = "127.0.0.1";
    private static final long START_LIMIT_S = 120;
    private static final long STOP_LIMIT_S = 30;

    private final String command;
    private final Path data;
    private final Path log;
    private final List<String> settings;
    private final int port;
    private Process process;

    BrokerProcess(String command, Path dir, List<String> settings) {
        this.command = command;
        this.data = dir.resolve("data");
        this.log = dir.resolve("broker.log");
        this.settings = settings;
        this.port = freePort();
        Runtime.getRuntime().addShutdownHook(new Thread(this::kill));
    }

    /** Two ports in a row (a real Kafka's controller takes the second), below the ephemeral range. */
    private static int freePort() {
        while (true) {
            int port = ThreadLocalRandom.current().nextInt(10000, 32000);
            try (ServerSocket a = new ServerSocket(port, 1, InetAddress.getByName(HOST));
                 ServerSocket b = new ServerSocket(port + 1, 1, InetAddress.getByName(HOST))) {
                return port;
            } catch (IOException e) {
                // taken
            }
        }
    }

    String bootstrap() {
        return HOST + ":" + port;
    }

    Path data() {
        return data;
    }

    void start() throws IOException, InterruptedException {
        StringBuilder line = new StringBuilder("exec " + command + " --listen " + bootstrap() + " --data-dir '" + data + "'");
        for (String s : settings) line.append(" --set '").append(s).append("'");
        process = new ProcessBuilder("bash", "-c", line.toString()).redirectErrorStream(true)
            .redirectOutput(ProcessBuilder.Redirect.appendTo(log.toFile()))
            .redirectInput(ProcessBuilder.Redirect.from(new java.io.File("/dev/null"))).start();
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(START_LIMIT_S);
        while (!answersApiVersions()) {
            if (!process.isAlive()) throw new Check.Failed("the broker ended with status " + process.exitValue() + ": " + logTail());
            if (System.nanoTime() > deadline) throw new Check.Failed("the broker does not answer ApiVersions: " + logTail());
            Thread.sleep(20);
        }
    }

    private boolean answersApiVersions() {
        try (Socket s = new Socket()) {
            s.connect(new InetSocketAddress(HOST, port), 1000);
            s.setSoTimeout(5000);
            // length, api key 18, version 0, correlation id, null client id
            s.getOutputStream().write(new byte[] {0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 1, -1, -1});
            DataInputStream in = new DataInputStream(s.getInputStream());
            return in.readInt() > 8 && in.readInt() == 1 && in.readShort() == 0;
        } catch (IOException e) {
            return false;
        }
    }

    /** SIGTERM. Returns the exit status. */
    int stop() throws InterruptedException {
        process.destroy();
        if (!process.waitFor(STOP_LIMIT_S, TimeUnit.SECONDS)) {
            kill();
            throw new Check.Failed("still running " + STOP_LIMIT_S + " s after SIGTERM: " + logTail());
        }
        return process.exitValue();
    }

    boolean isAlive() {
        return process != null && process.isAlive();
    }

    void kill() {
        if (process == null) return;
        process.descendants().forEach(ProcessHandle::destroyForcibly);
        process.destroyForcibly();
    }

    String logTail() {
        try {
            List<String> lines = Files.readAllLines(log, java.nio.charset.StandardCharsets.ISO_8859_1);
            return String.join(" | ", lines.subList(Math.max(0, lines.size() - 3), lines.size()));
        } catch (IOException e) {
            return "(no output)";
        }
    }
}
