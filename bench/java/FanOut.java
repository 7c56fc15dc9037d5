import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicIntegerArray;
import javax.jms.Message;
import org.apache.activemq.broker.region.policy.PolicyEntry;
import org.apache.activemq.command.ActiveMQTopic;

/**
 * One message into a topic, many copies out.
 *
 * <p>run: {subscriptions, messages, prefetch}; replies with how many messages each subscription got and the nanoseconds
 * of each delivery.
 */
public final class FanOut {
    public static void main(String[] arguments) throws Exception {
        Contender.serve(new PolicyEntry(), FanOut::run);
    }

    private static void run(JsonNode request, ObjectNode reply, String name) throws Exception {
        int subscriptions = request.get("subscriptions").asInt();
        AtomicIntegerArray got = new AtomicIntegerArray(subscriptions);
        Message[] messages = new Message[request.get("messages").asInt()];
        CountDownLatch left = new CountDownLatch(messages.length * subscriptions);
        ActiveMQTopic topic = new ActiveMQTopic(name);
        try (Contender.Stage stage = new Contender.Stage(request)) {
            for (int i = 0; i < subscriptions; i++) {
                int number = i;
                stage.consuming.createConsumer(topic).setMessageListener(message -> {
                    got.incrementAndGet(number);
                    left.countDown();
                });
            }
            for (int i = 0; i < messages.length; i++) {
                messages[i] = stage.sending.createMessage();
                messages[i].setIntProperty("number", i);
            }
            long spent = stage.send(topic, messages, left);
            reply.put("nanoseconds", (double) spent / ((double) messages.length * subscriptions));
            ArrayNode counts = reply.putArray("got");
            for (int i = 0; i < subscriptions; i++) {
                counts.add(got.get(i));
            }
        }
    }
}
