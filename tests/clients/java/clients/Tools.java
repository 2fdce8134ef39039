package clients;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;

/**
 * Kafka's command-line tools, run in this JVM: what a tool prints is captured for the thread that runs it (and those it
 * starts), and its exit becomes a status.
 */
final class Tools {
    record Result(int status, String output) {
        /** For a tool that must succeed. */
        Result ok() {
            if (status != 0) throw new Check.Failed("exit status " + status + ":\n" + output);
            return this;
        }
    }

    /** A tool that goes on beside the caller. */
    static final class Running {
        private final Thread thread;
        private final ByteArrayOutputStream output;
        private final AtomicReference<Integer> status = new AtomicReference<>();

        private Running(Thread thread, ByteArrayOutputStream output) {
            this.thread = thread;
            this.output = output;
        }

        String output() {
            return output.toString(StandardCharsets.UTF_8);
        }

        Result join(long limitMs) throws InterruptedException {
            thread.join(limitMs);
            if (thread.isAlive()) {
                thread.interrupt();
                throw new Check.Failed("still running after " + limitMs + " ms, so far:\n" + output());
            }
            return new Result(status.get(), output());
        }
    }

    private static final class Exited extends Error {
        private static final long serialVersionUID = 1;
        final int status;

        Exited(int status) {
            super("exit " + status, null, false, false);
            this.status = status;
        }
    }

    private static final String PACKAGE = "org.apache.kafka.tools.";
    private static final long LIMIT_MS = 90_000;
    private static final InheritableThreadLocal<ByteArrayOutputStream> SINK = new InheritableThreadLocal<>();
    private static final InheritableThreadLocal<InputStream> SOURCE = new InheritableThreadLocal<>();

    private static final ThreadLocal<Integer> STATUS = new ThreadLocal<>();

    /** What a tool asked to be run at its end; the console producer sends its last records there. */
    private static final ThreadLocal<List<Runnable>> HOOKS = ThreadLocal.withInitial(ArrayList::new);

    private Tools() {
    }

    /** Sends what tools print to their captures. Returns the console. */
    static PrintStream install() throws ReflectiveOperationException {
        PrintStream console = System.out;
        System.setOut(dispatcher(console));
        System.setErr(dispatcher(System.err));
        System.setIn(new InputStream() {
            @Override
            public int read() throws java.io.IOException {
                InputStream in = SOURCE.get();
                return in == null ? -1 : in.read();
            }

            @Override
            public int read(byte[] bytes, int from, int length) throws java.io.IOException {
                InputStream in = SOURCE.get();
                return in == null ? -1 : in.read(bytes, from, length);
            }
        });
        catchExits(Tools.class.getClassLoader());
        return console;
    }

    private static PrintStream dispatcher(PrintStream fallback) {
        return new PrintStream(new OutputStream() {
            private OutputStream to() {
                OutputStream sink = SINK.get();
                return sink == null ? fallback : sink;
            }

            @Override
            public void write(int b) throws java.io.IOException {
                to().write(b);
            }

            @Override
            public void write(byte[] bytes, int from, int length) throws java.io.IOException {
                to().write(bytes, from, length);
            }

            @Override
            public void flush() throws java.io.IOException {
                to().flush();
            }
        }, true, StandardCharsets.UTF_8);
    }

    /** Makes the tools of one class loader throw instead of ending this JVM. */
    private static void catchExits(ClassLoader loader) throws ReflectiveOperationException {
        Class<?> exit = Class.forName("org.apache.kafka.common.utils.internals.Exit", true, loader);
        for (String kind : List.of("Exit", "Halt")) {
            Class<?> type = Class.forName(exit.getName() + "$Procedure", true, loader);
            Object thrower = Proxy.newProxyInstance(loader, new Class<?>[] {type}, (self, method, args) -> {
                // Some tools catch what their own exit throws and exit once more: the first status counts.
                if (STATUS.get() == null) STATUS.set((Integer) args[0]);
                throw new Exited(STATUS.get());
            });
            exit.getMethod("set" + kind + "Procedure", type).invoke(null, thrower);
        }
        Class<?> adder = Class.forName(exit.getName() + "$ShutdownHookAdder", true, loader);
        Object keeper = Proxy.newProxyInstance(loader, new Class<?>[] {adder}, (self, method, args) -> {
            HOOKS.get().add((Runnable) args[1]);
            return null;
        });
        exit.getMethod("setShutdownHookAdder", adder).invoke(null, keeper);
    }

    static Result run(String tool, String... args) throws Exception {
        return start(Tools.class.getClassLoader(), "", tool, args).join(LIMIT_MS);
    }

    static Result runWithInput(String input, String tool, String... args) throws Exception {
        return start(Tools.class.getClassLoader(), input, tool, args).join(LIMIT_MS);
    }

    /** Starts a tool with statics of its own, for tools that count in them. */
    static Running startIsolated(String tool, String... args) throws Exception {
        List<URL> urls = new ArrayList<>();
        for (String entry : System.getProperty("java.class.path").split(java.io.File.pathSeparator)) {
            urls.add(Path.of(entry).toUri().toURL());
        }
        ClassLoader loader = new URLClassLoader(urls.toArray(URL[]::new), ClassLoader.getPlatformClassLoader());
        catchExits(loader);
        return start(loader, "", tool, args);
    }

    private static Running start(ClassLoader loader, String input, String tool, String... args) throws Exception {
        Method main = Class.forName(PACKAGE + tool, true, loader).getMethod("main", String[].class);
        ByteArrayOutputStream output = new ByteArrayOutputStream();
        AtomicReference<Running> self = new AtomicReference<>();
        Thread thread = new Thread(() -> {
            SINK.set(output);
            SOURCE.set(new ByteArrayInputStream(input.getBytes(StandardCharsets.UTF_8)));
            int status = invoke(main, args, output);
            HOOKS.get().forEach(Runnable::run);
            self.get().status.set(status);
        }, tool);
        thread.setDaemon(true);
        thread.setContextClassLoader(loader);
        self.set(new Running(thread, output));
        thread.start();
        return self.get();
    }

    private static int invoke(Method main, String[] args, ByteArrayOutputStream output) {
        try {
            main.invoke(null, (Object) args);
            return 0;
        } catch (InvocationTargetException e) {
            if (e.getCause() instanceof Exited exited) return exited.status;
            e.getCause().printStackTrace(new PrintStream(output, true, StandardCharsets.UTF_8));
            return 1;
        } catch (IllegalAccessException e) {
            throw new IllegalStateException(e);
        }
    }
}
