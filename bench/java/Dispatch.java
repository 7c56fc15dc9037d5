import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.concurrent.CountDownLatch;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import org.apache.activemq.broker.region.policy.PolicyEntry;
import org.apache.activemq.command.ActiveMQQueue;

/**
 * Messages into a queue, who got which out.
 *
 * <p>run: {selectors: one a consumer (empty: none), groups (null: none) and kinds: one a message, prefetch}; replies
 * with the consumer of each message and the nanoseconds of each.
 */
public final class Dispatch {
    public static void main(String[] arguments) throws Exception {
        PolicyEntry policy = new PolicyEntry();
        policy.setMessageGroupMapFactoryType("simple");
        Contender.serve(policy, Dispatch::run);
    }

    private static void run(JsonNode request, ObjectNode reply, String name) throws Exception {
        JsonNode groups = request.get("groups");
        int[] got = new int[groups.size()];
        CountDownLatch left = new CountDownLatch(got.length);
        ActiveMQQueue queue = new ActiveMQQueue(name);
        try (Contender.Stage stage = new Contender.Stage(request)) {
            for (int i = 0; i < request.get("selectors").size(); i++) {
                int number = i;
                MessageConsumer consumer =
                        stage.consuming.createConsumer(queue, request.get("selectors").get(i).asText());
                consumer.setMessageListener(message -> {
                    try {
                        got[message.getIntProperty("number")] = number;
                    } catch (Exception failure) {
                        throw new IllegalStateException(failure);
                    }
                    left.countDown();
                });
            }
            Message[] messages = new Message[got.length];
            for (int i = 0; i < messages.length; i++) {
                messages[i] = stage.sending.createMessage();
                messages[i].setIntProperty("number", i);
                messages[i].setStringProperty("kind", request.get("kinds").get(i).asText());
                if (!groups.get(i).isNull()) {
                    messages[i].setStringProperty("JMSXGroupID", groups.get(i).asText());
                }
            }
            reply.put("nanoseconds", (double) stage.send(queue, messages, left) / got.length);
            ArrayNode consumers = reply.putArray("consumers");
            for (int consumer : got) {
                consumers.add(consumer);
            }
        }
    }
}
