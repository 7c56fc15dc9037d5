import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.sun.management.OperatingSystemMXBean;
import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import javax.jms.DeliveryMode;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Session;
import org.apache.activemq.ActiveMQConnection;
import org.apache.activemq.ActiveMQConnectionFactory;
import org.apache.activemq.broker.BrokerService;
import org.apache.activemq.broker.region.policy.PolicyEntry;
import org.apache.activemq.broker.region.policy.PolicyMap;
import org.apache.activemq.command.ActiveMQQueue;
import org.apache.activemq.store.kahadb.KahaDBPersistenceAdapter;

/**
 * The real broker in this JVM, without JMX and advisories, over the vm transport: messages in, who got which out. With the
 * system property pyengine.store it has a KahaDB store in that folder and the messages are persistent; else neither.
 *
 * <p>run: {selectors: one a consumer (empty: none), groups (null: none) and kinds: one a message, prefetch} on a queue of its own; replies with the
 * consumer of each message and the CPU nanoseconds of the whole process from the first send until all are consumed.
 * The messages are built before and sent as the client does; consumers share a session and acknowledge automatically.
 */
public final class Dispatch {
    public static void main(String[] arguments) throws Exception {
        PrintStream replies = System.out;
        System.setOut(System.err);
        ObjectMapper json = new ObjectMapper();
        PolicyEntry policy = new PolicyEntry();
        policy.setMessageGroupMapFactoryType("simple");
        policy.setProducerFlowControl(false);
        PolicyMap policies = new PolicyMap();
        policies.setDefaultEntry(policy);
        BrokerService broker = new BrokerService();
        String store = System.getProperty("pyengine.store");
        broker.setPersistent(store != null);
        if (store != null) {
            KahaDBPersistenceAdapter kahadb = new KahaDBPersistenceAdapter();
            kahadb.setDirectory(new File(store));
            kahadb.setJournalDiskSyncStrategy("periodic");
            broker.setPersistenceAdapter(kahadb);
        }
        broker.setUseJmx(false);
        broker.setAdvisorySupport(false);
        broker.setDestinationPolicy(policies);
        broker.getSystemUsage().getMemoryUsage().setLimit(1L << 30);
        broker.start();
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        int queue = 0;
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            ObjectNode reply = json.createObjectNode();
            try {
                run(json.readTree(line), reply, "bench" + queue++);
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
        JsonNode groups = request.get("groups");
        int[] got = new int[groups.size()];
        CountDownLatch left = new CountDownLatch(got.length);
        ActiveMQQueue queue = new ActiveMQQueue(name);
        for (int i = 0; i < request.get("selectors").size(); i++) {
            int number = i;
            MessageConsumer consumer = session.createConsumer(queue, request.get("selectors").get(i).asText());
            consumer.setMessageListener(message -> {
                try {
                    got[message.getIntProperty("number")] = number;
                } catch (Exception failure) {
                    throw new IllegalStateException(failure);
                }
                left.countDown();
            });
        }
        Session sending = producing.createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageProducer producer = sending.createProducer(queue);
        producer.setDeliveryMode(
                System.getProperty("pyengine.store") == null ? DeliveryMode.NON_PERSISTENT : DeliveryMode.PERSISTENT);
        Message[] messages = new Message[got.length];
        for (int i = 0; i < messages.length; i++) {
            messages[i] = sending.createMessage();
            messages[i].setIntProperty("number", i);
            messages[i].setStringProperty("kind", request.get("kinds").get(i).asText());
            if (!groups.get(i).isNull()) {
                messages[i].setStringProperty("JMSXGroupID", groups.get(i).asText());
            }
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
        reply.put("nanoseconds", (double) (system.getProcessCpuTime() - start) / got.length);
        ArrayNode consumers = reply.putArray("consumers");
        for (int consumer : got) {
            consumers.add(consumer);
        }
        connection.close();
        producing.close();
    }
}
