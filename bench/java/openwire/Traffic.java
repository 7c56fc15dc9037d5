import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import javax.jms.BytesMessage;
import javax.jms.Connection;
import javax.jms.DeliveryMode;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Session;
import org.apache.activemq.ActiveMQConnectionFactory;

/**
 * ActiveMQ's own client over stdin and stdout: one JSON request a line, one JSON reply a line.
 *
 * <p>pass: so many connections send, as many consume meanwhile; send and receive: one of it alone. The reply has how many
 * messages there were, the seconds, the CPU nanoseconds of this process, and percentiles of the sends and of the time
 * from a send to its listener.
 */
public final class Traffic {
    private static final com.sun.management.OperatingSystemMXBean SYSTEM =
        (com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

    private static Connection connected(String url) throws Exception {
        Connection connection = new ActiveMQConnectionFactory(url).createConnection();
        connection.start();
        return connection;
    }

    private static Session session(Connection connection) throws Exception {
        return connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
    }

    private static void send(Session session, String queue, boolean persistent, int size, long[] spent) throws Exception {
        MessageProducer producer = session.createProducer(session.createQueue(queue));
        producer.setDeliveryMode(persistent ? DeliveryMode.PERSISTENT : DeliveryMode.NON_PERSISTENT);
        byte[] body = new byte[size];
        for (int i = 0; i < spent.length; i++) {
            BytesMessage message = session.createBytesMessage();
            long before = System.nanoTime();
            ByteBuffer.wrap(body).putLong(before);
            message.writeBytes(body);
            message.setIntProperty("number", i);
            message.setStringProperty("color", "red");
            producer.send(message);
            spent[i] = System.nanoTime() - before;
        }
        producer.close();
    }

    private static void percentiles(ObjectNode reply, String name, long[] spent) {
        Arrays.sort(spent);
        reply.put(name + "50", spent[spent.length / 2] * 1e-9);
        reply.put(name + "99", spent[spent.length * 99 / 100] * 1e-9);
    }

    private static int pass(JsonNode request, ObjectNode reply) throws Exception {
        String url = request.get("url").asText(), queue = request.get("queue").asText();
        int count = request.get("count").asInt(), pairs = request.get("pairs").asInt();
        int size = request.get("size").asInt();
        boolean persistent = request.get("persistent").asBoolean();
        AtomicInteger taken = new AtomicInteger();
        CountDownLatch all = new CountDownLatch(count);
        long[] spent = new long[count], arrivals = new long[count];
        List<Connection> consuming = new ArrayList<>(), sending = new ArrayList<>();
        for (int i = 0; i < pairs; i++) {
            Connection connection = connected(url);
            consuming.add(connection);
            Session session = session(connection);
            session.createConsumer(session.createQueue(queue)).setMessageListener(message -> {
                try {
                    long now = System.nanoTime();
                    byte[] body = new byte[size];
                    int place = taken.getAndIncrement();
                    if (((BytesMessage) message).readBytes(body) == size && place < count) {
                        arrivals[place] = now - ByteBuffer.wrap(body).getLong();
                        all.countDown();
                    }
                } catch (Exception error) {
                    throw new IllegalStateException(error);
                }
            });
            sending.add(connected(url));
        }
        ExecutorService pool = Executors.newFixedThreadPool(pairs);
        List<Future<long[]>> running = new ArrayList<>();
        long began = System.nanoTime();
        for (Connection connection : sending) {
            running.add(pool.submit(() -> {
                long[] own = new long[count / pairs];
                send(session(connection), queue, persistent, size, own);
                return own;
            }));
        }
        int at = 0;
        for (Future<long[]> each : running) {
            long[] own = each.get();
            System.arraycopy(own, 0, spent, at, own.length);
            at += own.length;
        }
        boolean came = all.await(100, TimeUnit.SECONDS);
        reply.put("seconds", (System.nanoTime() - began) * 1e-9);
        pool.shutdown();
        for (Connection connection : sending) connection.close();
        for (Connection connection : consuming) connection.close();
        if (!came) throw new IllegalStateException("only " + taken + " came");
        percentiles(reply, "send", spent);
        percentiles(reply, "arrival", arrivals);
        return taken.get();
    }

    private static int run(JsonNode request, ObjectNode reply) throws Exception {
        int count = request.get("count").asInt(), size = request.get("size").asInt();
        String url = request.get("url").asText(), queue = request.get("queue").asText();
        switch (request.get("op").asText()) {
            case "pass":
                return pass(request, reply);
            case "send": {
                Connection connection = connected(url);
                send(session(connection), queue, request.get("persistent").asBoolean(), size, new long[count]);
                connection.close();
                return count;
            }
            case "receive": {
                Connection connection = connected(url);
                Session session = session(connection);
                MessageConsumer consumer = session.createConsumer(session.createQueue(queue));
                int found = 0;
                while (found < count) {
                    Message message = consumer.receive(20_000);
                    if (message == null) break;
                    if (((BytesMessage) message).getBodyLength() == size) found++;
                }
                connection.close();
                return found;
            }
            default:
                throw new IllegalArgumentException(request.get("op").asText());
        }
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream out = System.out;
        System.setOut(System.err);
        ObjectMapper mapper = new ObjectMapper();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = in.readLine()) != null; ) {
            ObjectNode reply = mapper.createObjectNode();
            try {
                long before = SYSTEM.getProcessCpuTime();
                reply.put("count", run(mapper.readTree(line), reply));
                reply.put("nanoseconds", SYSTEM.getProcessCpuTime() - before);
            } catch (Exception error) {
                reply.put("error", error.toString());
            }
            out.println(mapper.writeValueAsString(reply));
        }
        System.exit(0);
    }
}
