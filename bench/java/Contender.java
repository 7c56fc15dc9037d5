import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.sun.management.OperatingSystemMXBean;
import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import javax.jms.DeliveryMode;
import javax.jms.Message;
import javax.jms.MessageProducer;
import javax.jms.Session;
import org.apache.activemq.ActiveMQConnection;
import org.apache.activemq.ActiveMQConnectionFactory;
import org.apache.activemq.broker.BrokerService;
import org.apache.activemq.broker.region.policy.PolicyEntry;
import org.apache.activemq.broker.region.policy.PolicyMap;
import org.apache.activemq.command.ActiveMQDestination;
import org.apache.activemq.store.kahadb.KahaDBPersistenceAdapter;

/**
 * The real broker in this JVM, without JMX and advisories, over the vm transport, asked line by line. With the system
 * property pyengine.store it has a KahaDB store in that folder and the messages are persistent; else neither.
 *
 * <p>A request is answered on a destination of its own, with the CPU nanoseconds of the whole process from the first
 * send until all is consumed. Messages are built before and sent as the client does; consumers share a session and
 * acknowledge automatically.
 */
abstract class Contender {
    /** One request: fills the reply. */
    interface Run {
        void play(JsonNode request, ObjectNode reply, String name) throws Exception;
    }

    /** The connections of one run: consumers on one, the producer on the other. */
    static final class Stage implements AutoCloseable {
        final Session consuming;
        final Session sending;
        private final ActiveMQConnection[] connections = new ActiveMQConnection[2];

        Stage(JsonNode request) throws Exception {
            ActiveMQConnectionFactory factory = new ActiveMQConnectionFactory("vm://localhost?create=false");
            factory.setWatchTopicAdvisories(false);
            factory.getPrefetchPolicy().setAll(request.get("prefetch").asInt());
            Session[] sessions = new Session[2];
            for (int i = 0; i < 2; i++) {
                connections[i] = (ActiveMQConnection) factory.createConnection();
                connections[i].start();
                sessions[i] = connections[i].createSession(false, Session.AUTO_ACKNOWLEDGE);
            }
            consuming = sessions[0];
            sending = sessions[1];
        }

        /** CPU nanoseconds from the first send until nothing is left. */
        long send(ActiveMQDestination destination, Message[] messages, CountDownLatch left) throws Exception {
            MessageProducer producer = sending.createProducer(destination);
            producer.setDeliveryMode(store() == null ? DeliveryMode.NON_PERSISTENT : DeliveryMode.PERSISTENT);
            System.gc();
            Map<String, Long> before = spent();
            Map<String, Long> start = spent();
            long reading = between(before, start);
            for (Message message : messages) {
                producer.send(message);
            }
            if (!left.await(120, TimeUnit.SECONDS)) {
                throw new IllegalStateException(left.getCount() + " messages were not consumed in two minutes");
            }
            return between(start, spent()) - reading;
        }

        /**
         * CPU nanoseconds of each thread so far. The bean counts in hundredths of a second, a microsecond for each of
         * ten thousand messages; Linux says it of each thread to the nanosecond, up to when that last gave up its core.
         */
        private static Map<String, Long> spent() throws IOException, InterruptedException {
            Map<String, Long> spent = new HashMap<>();
            Path threads = Path.of("/proc/self/task");
            if (!Files.isDirectory(threads)) {
                spent.put("all", ((OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime());
                return spent;
            }
            Thread.sleep(2);
            try (DirectoryStream<Path> each = Files.newDirectoryStream(threads)) {
                for (Path thread : each) {
                    try {
                        String said = Files.readString(thread.resolve("schedstat")).split(" ")[0];
                        spent.put(thread.getFileName().toString(), Long.parseLong(said));
                    } catch (IOException ended) {
                        continue; // the thread is no more
                    }
                }
            }
            return spent;
        }

        /** What was spent between two looks; a thread that ended takes what it spent since the first one with it. */
        private static long between(Map<String, Long> first, Map<String, Long> second) {
            long sum = 0;
            for (Map.Entry<String, Long> each : second.entrySet()) {
                sum += each.getValue() - first.getOrDefault(each.getKey(), 0L);
            }
            return sum;
        }

        @Override
        public void close() throws Exception {
            for (ActiveMQConnection connection : connections) {
                connection.close();
            }
        }
    }

    private static String store() {
        return System.getProperty("pyengine.store");
    }

    /** Start the broker and answer what comes on standard input, a JSON object a line, until it ends. */
    static void serve(PolicyEntry policy, Run run) throws Exception {
        PrintStream replies = System.out;
        System.setOut(System.err);
        ObjectMapper json = new ObjectMapper();
        policy.setProducerFlowControl(false);
        PolicyMap policies = new PolicyMap();
        policies.setDefaultEntry(policy);
        BrokerService broker = new BrokerService();
        broker.setPersistent(store() != null);
        if (store() != null) {
            KahaDBPersistenceAdapter kahadb = new KahaDBPersistenceAdapter();
            kahadb.setDirectory(new File(store()));
            kahadb.setJournalDiskSyncStrategy("periodic");
            broker.setPersistenceAdapter(kahadb);
        }
        broker.setUseJmx(false);
        broker.setAdvisorySupport(false);
        broker.setDestinationPolicy(policies);
        broker.getSystemUsage().getMemoryUsage().setLimit(1L << 30);
        broker.start();
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        int number = 0;
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            ObjectNode reply = json.createObjectNode();
            try {
                run.play(json.readTree(line), reply, "bench" + number++);
            } catch (Exception failure) {
                reply.put("error", failure.toString());
            }
            replies.write((json.writeValueAsString(reply) + "\n").getBytes("UTF-8"));
            replies.flush();
        }
        broker.stop();
    }

    private Contender() {}
}
