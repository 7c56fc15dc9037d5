import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.sun.management.OperatingSystemMXBean;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicIntegerArray;
import javax.jms.DeliveryMode;
import javax.jms.Message;
import javax.jms.MessageProducer;
import javax.jms.Session;
import org.apache.activemq.ActiveMQConnection;
import org.apache.activemq.ActiveMQConnectionFactory;
import org.apache.activemq.broker.BrokerService;
import org.apache.activemq.broker.region.policy.PolicyEntry;
import org.apache.activemq.broker.region.policy.PolicyMap;
import org.apache.activemq.command.ActiveMQTopic;

/**
 * The real broker in this JVM, without store, JMX and advisories, over the vm transport: one message, many copies.
 *
 * <p>run: {subscriptions, messages, prefetch} on a topic of its own; replies with how many messages each subscription got
 * and the CPU nanoseconds of the whole process for each delivery, from the first send until all are consumed. The messages
 * are built before and sent as the client does; consumers share a session and acknowledge automatically.
 */
public final class FanOut {
    public static void main(String[] arguments) throws Exception {
        PrintStream replies = System.out;
        System.setOut(System.err);
        ObjectMapper json = new ObjectMapper();
        PolicyEntry policy = new PolicyEntry();
        policy.setProducerFlowControl(false);
        PolicyMap policies = new PolicyMap();
        policies.setDefaultEntry(policy);
        BrokerService broker = new BrokerService();
        broker.setPersistent(false);
        broker.setUseJmx(false);
        broker.setAdvisorySupport(false);
        broker.setDestinationPolicy(policies);
        broker.getSystemUsage().getMemoryUsage().setLimit(1L << 30);
        broker.start();
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        int topic = 0;
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            ObjectNode reply = json.createObjectNode();
            try {
                run(json.readTree(line), reply, "bench" + topic++);
            } catch (Exception failure) {
                reply.put("error", failure.toString());
            }
            replies.write((json.writeValueAsString(reply) + "\n").getBytes("UTF-8"));
            replies.flush();
        }
        broker.stop();
    }

    private static void run(JsonNode request, ObjectNode reply, String name) throws Exception {
        ActiveMQConnectionFactory factory = new ActiveMQConnectionFactory("vm://localhost?create=false");
        factory.setWatchTopicAdvisories(false);
        factory.getPrefetchPolicy().setAll(request.get("prefetch").asInt());
        ActiveMQConnection connection = (ActiveMQConnection) factory.createConnection();
        ActiveMQConnection producing = (ActiveMQConnection) factory.createConnection();
        connection.start();
        producing.start();
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        int subscriptions = request.get("subscriptions").asInt();
        AtomicIntegerArray got = new AtomicIntegerArray(subscriptions);
        Message[] messages = new Message[request.get("messages").asInt()];
        CountDownLatch left = new CountDownLatch(messages.length * subscriptions);
        ActiveMQTopic topic = new ActiveMQTopic(name);
        for (int i = 0; i < subscriptions; i++) {
            int number = i;
            session.createConsumer(topic).setMessageListener(message -> {
                got.incrementAndGet(number);
                left.countDown();
            });
        }
        Session sending = producing.createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageProducer producer = sending.createProducer(topic);
        producer.setDeliveryMode(DeliveryMode.NON_PERSISTENT);
        for (int i = 0; i < messages.length; i++) {
            messages[i] = sending.createMessage();
            messages[i].setIntProperty("number", i);
        }
        System.gc();
        OperatingSystemMXBean system = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        long start = system.getProcessCpuTime();
        for (Message message : messages) {
            producer.send(message);
        }
        if (!left.await(120, TimeUnit.SECONDS)) {
            throw new IllegalStateException(left.getCount() + " messages were not consumed in two minutes");
        }
        long spent = system.getProcessCpuTime() - start;
        reply.put("nanoseconds", (double) spent / ((double) messages.length * subscriptions));
        ArrayNode counts = reply.putArray("got");
        for (int i = 0; i < subscriptions; i++) {
            counts.add(got.get(i));
        }
        connection.close();
        producing.close();
    }
}
