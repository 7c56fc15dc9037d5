import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;

/**
 * Runs the entry point of a command line tool again and again: a line on standard input is a class, one of its static
 * methods and the arguments, parted by tabs; the answer is one line, what the tool printed, in Base64.
 */
public final class RealTools {
    private static final ByteArrayOutputStream printed = new ByteArrayOutputStream();

    public static void main(String[] arguments) throws Exception {
        PrintStream answers = System.out;
        // Scala's Console keeps the stream that is there when it is first used: one stream serves all calls.
        System.setOut(new PrintStream(printed, true, "UTF-8"));
        System.setErr(System.out);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split("\t", -1);
            call(Class.forName(words[0]), words[1], Arrays.copyOfRange(words, 2, words.length));
            System.out.flush();
            answers.println(Base64.getEncoder().encodeToString(printed.toByteArray()));
            answers.flush();
            printed.reset();
        }
        Runtime.getRuntime().halt(0); // threads of some tools live on
    }

    private static void call(Class<?> tool, String name, String[] arguments) throws Exception {
        forgetCommands(tool);
        for (Method method : tool.getMethods()) {
            if (method.getName().equals(name) && method.getParameterCount() > 0 && method.getParameterTypes()[0] == String[].class) {
                Object[] given = new Object[method.getParameterCount()];
                given[0] = arguments;
                try {
                    method.invoke(null, given);
                } catch (InvocationTargetException failure) {
                    failure.getCause().printStackTrace();
                }
                return;
            }
        }
        throw new NoSuchMethodException(tool + "." + name);
    }

    /** mqadmin keeps its commands, and one of them its closed connection: each call begins as a process does. */
    private static void forgetCommands(Class<?> tool) throws Exception {
        for (Field field : tool.getDeclaredFields()) {
            if (field.getName().equalsIgnoreCase("subCommandList") || field.getName().equals("SUB_COMMANDS")) {
                field.setAccessible(true);
                ((List<?>) field.get(null)).clear();
            }
        }
    }
}
