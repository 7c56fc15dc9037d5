import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.Iterator;
import java.util.Map;
import org.apache.activemq.command.ActiveMQMessage;
import org.apache.activemq.command.ActiveMQQueue;
import org.apache.activemq.filter.BooleanExpression;
import org.apache.activemq.filter.NonCachedMessageEvaluationContext;
import org.apache.activemq.selector.SelectorParser;

/**
 * The real ActiveMQ selector classes, asked over stdin and stdout: one JSON request a line, one JSON reply a line.
 *
 * <p>load: messages as objects of properties; kept as built messages with properties as objects, the broker's in-memory
 * form. answers: one letter a message, T or F of matches(). match: CPU nanoseconds of this thread a match, over
 * {@code repeat} passes of all messages. subscribe, wanted, loop: the same for many selectors at once. parse: the same for parsing the selector, with the parser's cache emptied.
 */
public final class Rival {
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
    private static ActiveMQMessage[] messages = {};
    private static BooleanExpression[] selectors = {};
    private static volatile int sink;

    public static void main(String[] arguments) throws Exception {
        PrintStream replies = System.out;
        System.setOut(System.err);
        ObjectMapper json = new ObjectMapper();
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            JsonNode request = json.readTree(line);
            ObjectNode reply = json.createObjectNode();
            try {
                answer(json, request, reply);
            } catch (Exception failure) {
                reply.put("error", failure.toString());
            }
            replies.write((json.writeValueAsString(reply) + "\n").getBytes("UTF-8"));
            replies.flush();
        }
    }

    private static void answer(ObjectMapper json, JsonNode request, ObjectNode reply) throws Exception {
        String selector = request.path("selector").asText();
        switch (request.get("op").asText()) {
            case "load":
                load(request.get("messages"));
                reply.put("loaded", messages.length);
                break;
            case "answers":
                reply.put("answers", answers(SelectorParser.parse(selector)));
                break;
            case "match":
                reply.put("nanoseconds", match(SelectorParser.parse(selector), request.get("repeat").asInt()));
                break;
            case "subscribe":
                subscribe(request.get("selectors"));
                reply.put("subscribed", selectors.length);
                break;
            case "wanted":
                reply.set("wanted", wanted(json));
                break;
            case "loop":
                reply.put("nanoseconds", loop(request.get("repeat").asInt()));
                break;
            case "parse":
                reply.put("nanoseconds", parse(selector, request.get("repeat").asInt()));
                break;
            default:
                throw new IllegalArgumentException(request.toString());
        }
    }

    private static void load(JsonNode rows) throws Exception {
        messages = new ActiveMQMessage[rows.size()];
        for (int i = 0; i < messages.length; i++) {
            ActiveMQMessage message = new ActiveMQMessage();
            message.setDestination(new ActiveMQQueue("bench"));
            for (Iterator<Map.Entry<String, JsonNode>> fields = rows.get(i).fields(); fields.hasNext(); ) {
                Map.Entry<String, JsonNode> field = fields.next();
                message.setObjectProperty(field.getKey(), value(field.getValue()));
            }
            messages[i] = message;
        }
    }

    private static Object value(JsonNode node) {
        if (node.isTextual()) {
            return node.textValue();
        }
        if (node.isBoolean()) {
            return node.booleanValue();
        }
        return node.numberValue();
    }

    private static String answers(BooleanExpression expression) throws Exception {
        NonCachedMessageEvaluationContext context = new NonCachedMessageEvaluationContext();
        StringBuilder answers = new StringBuilder();
        for (ActiveMQMessage message : messages) {
            context.setMessageReference(message);
            answers.append(expression.matches(context) ? 'T' : 'F');
        }
        return answers.toString();
    }

    private static double match(BooleanExpression expression, int repeat) throws Exception {
        NonCachedMessageEvaluationContext context = new NonCachedMessageEvaluationContext();
        long start = THREADS.getCurrentThreadCpuTime();
        int matched = 0;
        for (int pass = 0; pass < repeat; pass++) {
            matched += pass(expression, context);
        }
        sink = matched;
        return (THREADS.getCurrentThreadCpuTime() - start) / ((double) repeat * messages.length);
    }

    private static int pass(BooleanExpression expression, NonCachedMessageEvaluationContext context) throws Exception {
        int matched = 0;
        for (ActiveMQMessage message : messages) {
            context.setMessageReference(message);
            if (expression.matches(context)) {
                matched++;
            }
        }
        return matched;
    }

    private static void subscribe(JsonNode texts) throws Exception {
        selectors = new BooleanExpression[texts.size()];
        for (int i = 0; i < selectors.length; i++) {
            selectors[i] = SelectorParser.parse(texts.get(i).asText());
        }
    }

    /** For each message the places of the selectors that want it. */
    private static ArrayNode wanted(ObjectMapper json) throws Exception {
        NonCachedMessageEvaluationContext context = new NonCachedMessageEvaluationContext();
        ArrayNode all = json.createArrayNode();
        for (ActiveMQMessage message : messages) {
            context.setMessageReference(message);
            ArrayNode places = all.addArray();
            for (int i = 0; i < selectors.length; i++) {
                if (selectors[i].matches(context)) {
                    places.add(i);
                }
            }
        }
        return all;
    }

    /** As the broker's dispatch does: every message against every selector; CPU nanoseconds a message. */
    private static double loop(int repeat) throws Exception {
        NonCachedMessageEvaluationContext context = new NonCachedMessageEvaluationContext();
        long start = THREADS.getCurrentThreadCpuTime();
        int matched = 0;
        for (int pass = 0; pass < repeat; pass++) {
            for (ActiveMQMessage message : messages) {
                context.setMessageReference(message);
                for (BooleanExpression selector : selectors) {
                    if (selector.matches(context)) {
                        matched++;
                    }
                }
            }
        }
        sink = matched;
        return (THREADS.getCurrentThreadCpuTime() - start) / ((double) repeat * messages.length);
    }

    private static double parse(String selector, int repeat) throws Exception {
        long start = THREADS.getCurrentThreadCpuTime();
        for (int i = 0; i < repeat; i++) {
            SelectorParser.clearCache();
            sink = SelectorParser.parse(selector).hashCode();
        }
        return (THREADS.getCurrentThreadCpuTime() - start) / (double) repeat;
    }
}
