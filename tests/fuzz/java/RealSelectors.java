import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import org.apache.activemq.command.ActiveMQMessage;
import org.apache.activemq.command.ActiveMQTextMessage;
import org.apache.activemq.filter.NonCachedMessageEvaluationContext;
import org.apache.rocketmq.filter.expression.EvaluationContext;

/**
 * The real selector classes of both brokers, asked over stdin and stdout: one JSON request a line, one JSON reply a line.
 *
 * <p>A request holds the dialect, selectors and messages; the reply has a text for each selector: P where the parser
 * refuses it, else two letters a message, of matches() and of evaluate(): T, F, N for null, E for an exception. RocketMQ
 * has evaluate() alone.
 */
public final class RealSelectors {
    public static void main(String[] arguments) throws Exception {
        PrintStream replies = System.out;
        System.setOut(System.err);
        ObjectMapper json = new ObjectMapper();
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            JsonNode request = json.readTree(line);
            ObjectNode reply = json.createObjectNode();
            try {
                boolean activemq = request.get("dialect").asText().equals("activemq");
                List<Object> messages = new ArrayList<>();
                for (JsonNode message : request.get("messages")) {
                    messages.add(activemq ? message(message) : properties(message));
                }
                for (JsonNode selector : request.get("selectors")) {
                    reply.withArray("answers").add(
                        activemq ? activemq(selector.textValue(), messages) : rocketmq(selector.textValue(), messages));
                }
            } catch (Exception failure) {
                reply.put("error", failure.toString());
            }
            replies.write((json.writeValueAsString(reply) + "\n").getBytes("UTF-8"));
            replies.flush();
        }
    }

    private static char letter(Callable<Object> question) {
        try {
            Object answer = question.call();
            return answer == null ? 'N' : (Boolean) answer ? 'T' : 'F';
        } catch (Throwable failure) {
            return 'E';
        }
    }

    private static String activemq(String text, List<Object> messages) {
        org.apache.activemq.filter.BooleanExpression selector;
        org.apache.activemq.selector.SelectorParser.clearCache();
        try {
            selector = org.apache.activemq.selector.SelectorParser.parse(text);
        } catch (Exception refused) {
            return "P";
        }
        StringBuilder answers = new StringBuilder();
        for (Object message : messages) {
            NonCachedMessageEvaluationContext context = new NonCachedMessageEvaluationContext();
            context.setMessageReference((ActiveMQMessage) message);
            answers.append(letter(() -> selector.matches(context))).append(letter(() -> selector.evaluate(context)));
        }
        return answers.toString();
    }

    private static String rocketmq(String text, List<Object> messages) {
        org.apache.rocketmq.filter.expression.BooleanExpression selector;
        org.apache.rocketmq.filter.parser.SelectorParser.clearCache();
        try {
            selector = org.apache.rocketmq.filter.parser.SelectorParser.parse(text);
        } catch (Exception refused) {
            return "P";
        }
        StringBuilder answers = new StringBuilder();
        for (Object message : messages) {
            @SuppressWarnings("unchecked")
            Map<String, Object> properties = (Map<String, Object>) message;
            EvaluationContext context = new EvaluationContext() {
                @Override
                public Object get(String name) {
                    return properties.get(name);
                }

                @Override
                public Map<String, Object> keyValues() {
                    return properties;
                }
            };
            answers.append(letter(() -> selector.evaluate(context)));
        }
        return answers.toString();
    }

    private static Map<String, Object> properties(JsonNode message) {
        Map<String, Object> properties = new HashMap<>();
        for (Iterator<Map.Entry<String, JsonNode>> fields = message.get("props").fields(); fields.hasNext(); ) {
            Map.Entry<String, JsonNode> field = fields.next();
            properties.put(field.getKey(), value(field.getValue()));
        }
        return properties;
    }

    private static ActiveMQMessage message(JsonNode recorded) throws Exception {
        ActiveMQMessage message = new ActiveMQMessage();
        if (recorded.has("body")) {
            ActiveMQTextMessage text = new ActiveMQTextMessage();
            text.setText(recorded.get("body").textValue());
            message = text;
        }
        for (Map.Entry<String, Object> property : properties(recorded).entrySet()) {
            message.setObjectProperty(property.getKey(), property.getValue());
        }
        return message;
    }

    /** A type and a value; real numbers as the long of their bits. */
    private static Object value(JsonNode typed) {
        JsonNode value = typed.get("v");
        switch (typed.get("t").asText()) {
            case "byte":
                return (byte) value.intValue();
            case "short":
                return (short) value.intValue();
            case "int":
                return value.intValue();
            case "long":
                return value.longValue();
            case "float":
                return (float) Double.longBitsToDouble(value.longValue());
            case "double":
                return Double.longBitsToDouble(value.longValue());
            case "boolean":
                return value.booleanValue();
            case "string":
                return value.textValue();
            case "char":
                return value.textValue().charAt(0);
            case "list":
                List<Object> list = new ArrayList<>();
                for (JsonNode item : value) {
                    list.add(value(item));
                }
                return list;
            case "map":
                Map<String, Object> map = new HashMap<>();
                map.put("k", value(value.get("k")));
                return map;
            default:
                return null;
        }
    }

    private RealSelectors() {}
}
