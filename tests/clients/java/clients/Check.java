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
        if (!name.contains(filter)) return;
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
        double seconds = (System.nanoTime() - start) / 1e9;
        if (problem == null) {
            passed++;
            console.printf(Locale.ROOT, "ok   %5.1f s  %s%n", seconds, name);
        } else {
            failed++;
            console.printf(Locale.ROOT, "FAIL %5.1f s  %s: %s%n", seconds, name, problem.strip().replace("\n", "\n    "));
        }
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
