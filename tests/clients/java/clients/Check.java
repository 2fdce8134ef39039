package clients;

import java.io.PrintStream;
import java.util.Locale;

/** Runs named checks one after another, prints a line for each, and counts. */
final class Check {
    interface Body {
        void run() throws Throwable;
    }

    /** What a check throws when the broker's answer is not the one asked for. */
    static final class Failed extends RuntimeException {
        private static final long serialVersionUID = 1;

        Failed(String why) {
            super(why);
        }
    }

    private final PrintStream console;
    private final String filter;
    private int passed;
    private int failed;

    Check(PrintStream console, String filter) {
        this.console = console;
        this.filter = filter;
    }

    void check(String name, Body body) {
        if (!picks(name)) return;
        long start = System.nanoTime();
        String problem = null;
        try {
            body.run();
        } catch (Failed e) {
            problem = e.getMessage();
        } catch (Throwable e) {
            problem = e.toString();
            e.printStackTrace();
        }
        report(name, start, problem);
    }

    /** Whether the filter leaves a check in. */
    boolean picks(String name) {
        return name.contains(filter);
    }

    /** Counts a check that began at {@code start} (nanoseconds) and prints its line; no problem means that it passed. */
    void report(String name, long start, String problem) {
        if (problem == null) {
            passed++;
            line("ok  ", start, name);
        } else {
            failed++;
            line("FAIL", start, name + ": " + problem.strip().replace("\n", "\n    "));
        }
    }

    /** What was not asked, with the reason; counted nowhere. */
    void none(String name, long start, String why) {
        line("none", start, name + ": " + why);
    }

    private void line(String word, long start, String text) {
        console.printf(Locale.ROOT, "%s %5.1f s  %s%n", word, (System.nanoTime() - start) / 1e9, text);
        console.flush();
    }

    int failed() {
        return failed;
    }

    String summary() {
        return passed + " passed, " + failed + " failed";
    }

    static void that(boolean condition, String why) {
        if (!condition) throw new Failed(why);
    }

    static void equal(Object want, Object got, String what) {
        if (!want.equals(got)) throw new Failed(what + ": " + got + ", want " + want);
    }

    static void contains(String text, String part) {
        if (!text.contains(part)) throw new Failed("no \"" + part + "\" in:\n" + text);
    }

    static void lacks(String text, String part) {
        if (text.contains(part)) throw new Failed("\"" + part + "\" in:\n" + text);
    }
}
