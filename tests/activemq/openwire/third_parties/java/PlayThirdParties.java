import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.Hashtable;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import javax.jms.Connection;
import javax.jms.ConnectionFactory;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageListener;
import javax.jms.Session;
import javax.jms.TextMessage;
import javax.naming.Context;
import javax.naming.InitialContext;
import javax.naming.NamingException;
import org.apache.activemq.ActiveMQConnectionFactory;
import org.apache.activemq.RedeliveryPolicy;
import org.apache.activemq.command.ActiveMQQueue;
import org.apache.activemq.command.ActiveMQTopic;
import org.junit.runner.JUnitCore;
import org.junit.runner.Result;
import org.junit.runner.notification.Failure;
import org.messaginghub.pooled.jms.JmsPoolConnectionFactory;
import org.objectweb.jtests.jms.admin.Admin;
import org.objectweb.jtests.jms.conform.connection.ConnectionTest;
import org.objectweb.jtests.jms.conform.connection.TopicConnectionTest;
import org.objectweb.jtests.jms.conform.message.MessageBodyTest;
import org.objectweb.jtests.jms.conform.message.MessageDefaultTest;
import org.objectweb.jtests.jms.conform.message.MessageTypeTest;
import org.objectweb.jtests.jms.conform.message.headers.MessageHeaderTest;
import org.objectweb.jtests.jms.conform.message.properties.JMSXPropertyTest;
import org.objectweb.jtests.jms.conform.message.properties.MessagePropertyConversionTest;
import org.objectweb.jtests.jms.conform.message.properties.MessagePropertyTest;
import org.objectweb.jtests.jms.conform.queue.QueueBrowserTest;
import org.objectweb.jtests.jms.conform.queue.TemporaryQueueTest;
import org.objectweb.jtests.jms.conform.selector.SelectorSyntaxTest;
import org.objectweb.jtests.jms.conform.selector.SelectorTest;
import org.objectweb.jtests.jms.conform.session.QueueSessionTest;
import org.objectweb.jtests.jms.conform.session.SessionTest;
import org.objectweb.jtests.jms.conform.session.TopicSessionTest;
import org.objectweb.jtests.jms.conform.session.UnifiedSessionTest;
import org.objectweb.jtests.jms.conform.topic.TemporaryTopicTest;
import org.springframework.jms.connection.CachingConnectionFactory;
import org.springframework.jms.connection.JmsTransactionManager;
import org.springframework.jms.core.JmsTemplate;
import org.springframework.jms.listener.DefaultMessageListenerContainer;

/** Programs of others over the real client: a line "URL NAME" plays one, its transcript ends with a line ".". */
public class PlayThirdParties {
    static String url;

    public static void main(String[] arguments) throws Exception {
        PrintStream out = System.out;
        System.setOut(System.err);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null;) {
            String[] words = line.split(" ");
            url = words[0];
            List<String> transcript = Collections.synchronizedList(new ArrayList<>());
            try {
                switch (words[1]) {
                    case "joram": joram(transcript); break;
                    case "container": container(transcript); break;
                    case "pool": pool(transcript); break;
                    case "failover": failover(transcript); break;
                    default: throw new IllegalArgumentException(words[1]);
                }
            } catch (Exception failure) {
                transcript.add(failure.toString());
            }
            transcript.forEach(out::println);
            out.println(".");
            out.flush();
        }
    }

    // The JMS conformance suite

    static void joram(List<String> transcript) {
        System.setProperty("joram.jms.test.file", "joram.properties");
        Result result = JUnitCore.runClasses(
            ConnectionTest.class, TopicConnectionTest.class, MessageBodyTest.class, MessageDefaultTest.class,
            MessageTypeTest.class, MessageHeaderTest.class, JMSXPropertyTest.class, MessagePropertyConversionTest.class,
            MessagePropertyTest.class, QueueBrowserTest.class, TemporaryQueueTest.class, SelectorSyntaxTest.class,
            SelectorTest.class, QueueSessionTest.class, SessionTest.class, TopicSessionTest.class,
            UnifiedSessionTest.class, TemporaryTopicTest.class);
        transcript.add("tests " + result.getRunCount());
        TreeSet<String> failed = new TreeSet<>();
        for (Failure each : result.getFailures()) {
            String name = each.getDescription().getTestClass().getSimpleName();
            failed.add("failed " + name + "." + each.getDescription().getMethodName());
            System.err.println(each.getTrace());
        }
        transcript.addAll(failed);
    }

    /** What the suite asks of a provider: names in JNDI. Each test has destinations of its own. */
    public static class Provider implements Admin {
        private static final AtomicInteger NUMBER = new AtomicInteger();
        private static final Map<String, Object> BOUND = new HashMap<>();
        private final int number = NUMBER.incrementAndGet();

        public String getName() {
            return "pyengine";
        }

        public Context createContext() throws NamingException {
            Hashtable<String, String> settings = new Hashtable<>();
            settings.put(Context.INITIAL_CONTEXT_FACTORY, "org.apache.activemq.jndi.ActiveMQInitialContextFactory");
            settings.put(Context.PROVIDER_URL, url);
            return new InitialContext(settings) {
                @Override
                public Object lookup(String name) throws NamingException {
                    Object found = BOUND.get(name);
                    return found == null ? super.lookup(name) : found;
                }
            };
        }

        private void factory(String name) {
            ActiveMQConnectionFactory factory = new ActiveMQConnectionFactory(url);
            factory.setNestedMapAndListEnabled(false);
            BOUND.put(name, factory);
        }

        public void createConnectionFactory(String name) {
            factory(name);
        }

        public void createQueueConnectionFactory(String name) {
            factory(name);
        }

        public void createTopicConnectionFactory(String name) {
            factory(name);
        }

        public void createQueue(String name) {
            BOUND.put(name, new ActiveMQQueue(name + "." + number));
        }

        public void createTopic(String name) {
            BOUND.put(name, new ActiveMQTopic(name + "." + number));
        }

        public void deleteQueue(String name) {
            BOUND.remove(name);
        }

        public void deleteTopic(String name) {
            BOUND.remove(name);
        }

        public void deleteConnectionFactory(String name) {
            BOUND.remove(name);
        }

        public void deleteQueueConnectionFactory(String name) {
            BOUND.remove(name);
        }

        public void deleteTopicConnectionFactory(String name) {
            BOUND.remove(name);
        }

        public void startServer() {
        }

        public void stopServer() {
        }

        public void start() {
        }

        public void stop() {
        }
    }

    // Spring

    static void container(List<String> transcript) throws Exception {
        ActiveMQConnectionFactory plain = new ActiveMQConnectionFactory(url);
        RedeliveryPolicy policy = plain.getRedeliveryPolicy();
        policy.setMaximumRedeliveries(2);
        policy.setInitialRedeliveryDelay(0);
        policy.setRedeliveryDelay(0);
        CachingConnectionFactory caching = new CachingConnectionFactory(plain);
        JmsTemplate template = new JmsTemplate(caching);
        template.setReceiveTimeout(5000);
        for (int way = 0; way < 3; way++) {
            String queue = "spring." + way;
            int count = 60;
            CountDownLatch done = new CountDownLatch(count);
            Map<String, Integer> tries = Collections.synchronizedMap(new HashMap<>());
            DefaultMessageListenerContainer container = new DefaultMessageListenerContainer();
            container.setConnectionFactory(plain);
            container.setDestinationName(queue);
            container.setConcurrency("2-5");
            container.setReceiveTimeout(200);
            container.setSessionTransacted(way > 0);
            if (way == 2) {
                container.setTransactionManager(new JmsTransactionManager(plain));
            }
            container.setErrorHandler(failure -> { });
            container.setMessageListener((MessageListener) message -> {
                try {
                    String text = ((TextMessage) message).getText();
                    int before = tries.merge(text, 1, Integer::sum);
                    if (text.endsWith("0") && before == 1) {
                        throw new IllegalStateException("again");
                    }
                    if (text.equals("5") && container.isSessionTransacted()) {
                        throw new IllegalStateException("never");
                    }
                    done.countDown();
                } catch (JMSException failure) {
                    throw new IllegalStateException(failure);
                }
            });
            container.afterPropertiesSet();
            container.start();
            for (int number = 0; number < count; number++) {
                template.convertAndSend(queue, Integer.toString(number));
            }
            if (way > 0) {
                done.countDown();
            }
            boolean finished = done.await(30, TimeUnit.SECONDS);
            Message dead = way > 0 ? template.receive("ActiveMQ.DLQ") : null;
            container.shutdown();
            int again = 0;
            for (int times : tries.values()) {
                again += times - 1;
            }
            transcript.add("way " + way + ": " + (way > 0 ? finished + " " + tries.size() + " " + again : tries.size()));
            transcript.add("dead " + (dead == null ? "none" : ((TextMessage) dead).getText()));
            template.setReceiveTimeout(JmsTemplate.RECEIVE_TIMEOUT_NO_WAIT);
            transcript.add("left " + template.receive(queue));
            template.setReceiveTimeout(5000);
        }
        String answer = template.execute((Session session) -> {
            javax.jms.Queue replies = session.createTemporaryQueue();
            TextMessage asked = session.createTextMessage("question");
            asked.setJMSReplyTo(replies);
            session.createProducer(session.createQueue("spring.asked")).send(asked);
            Message got = session.createConsumer(session.createQueue("spring.asked")).receive(5000);
            session.createProducer(got.getJMSReplyTo()).send(session.createTextMessage("answer"));
            return ((TextMessage) session.createConsumer(replies).receive(5000)).getText();
        }, true);
        transcript.add(answer);
        caching.destroy();
    }

    // A pool of connections

    static void pool(List<String> transcript) throws Exception {
        JmsPoolConnectionFactory pool = new JmsPoolConnectionFactory();
        pool.setConnectionFactory(new ActiveMQConnectionFactory(url));
        pool.setMaxConnections(2);
        pool.setMaxSessionsPerConnection(5);
        pool.start();
        List<Thread> threads = new ArrayList<>();
        AtomicInteger sent = new AtomicInteger();
        for (int thread = 0; thread < 4; thread++) {
            Thread sender = new Thread(() -> {
                for (int number = 0; number < 25; number++) {
                    try (Connection connection = pool.createConnection();
                         Session session = connection.createSession(number % 2 == 0, Session.AUTO_ACKNOWLEDGE)) {
                        connection.start();
                        session.createProducer(session.createQueue("pool")).send(session.createTextMessage("x"));
                        if (number % 2 == 0) {
                            session.commit();
                        }
                        sent.incrementAndGet();
                    } catch (JMSException failure) {
                        transcript.add(failure.toString());
                    }
                }
            });
            threads.add(sender);
            sender.start();
        }
        for (Thread each : threads) {
            each.join();
        }
        transcript.add("sent " + sent + " over " + pool.getNumConnections());
        int received = 0;
        try (Connection connection = pool.createConnection()) {
            connection.start();
            Session session = connection.createSession(false, Session.CLIENT_ACKNOWLEDGE);
            javax.jms.MessageConsumer consumer = session.createConsumer(session.createQueue("pool"));
            for (Message message; (message = consumer.receive(1000)) != null;) {
                received++;
                message.acknowledge();
            }
            session.close();
        }
        transcript.add("received " + received);
        pool.stop();
    }

    // A connection that is cut now and then, with failover:

    static void failover(List<String> transcript) throws Exception {
        int count = 150;
        Connection sending = new ActiveMQConnectionFactory(url).createConnection();
        AtomicInteger sent = new AtomicInteger();
        Thread sender = new Thread(() -> {
            try {
                Session session = sending.createSession(false, Session.AUTO_ACKNOWLEDGE);
                javax.jms.MessageProducer producer = session.createProducer(session.createQueue("cut"));
                for (int number = 0; number < count; number++) {
                    producer.send(session.createTextMessage(Integer.toString(number)));
                    sent.incrementAndGet();
                    Thread.sleep(5);
                }
            } catch (Exception failure) {
                transcript.add(failure.toString());
            }
        });
        sender.start();
        Connection receiving = new ActiveMQConnectionFactory(url).createConnection();
        receiving.start();
        Session session = receiving.createSession(true, Session.SESSION_TRANSACTED);
        javax.jms.MessageConsumer consumer = session.createConsumer(session.createQueue("cut"));
        TreeSet<String> delivered = new TreeSet<>();
        int unmarked = 0;
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
        for (int quiet = 0, since = 0; (sender.isAlive() || quiet < 4) && System.nanoTime() < end;) {
            Message message = consumer.receive(500);
            if (message != null) {
                if (!delivered.add(((TextMessage) message).getText()) && !message.getJMSRedelivered()) {
                    unmarked++;
                }
                since++;
            }
            quiet = message == null ? quiet + 1 : 0;
            if (message == null || since == 3) {
                since = 0;
                try {
                    session.commit();
                } catch (JMSException rolledBack) {
                    // in doubt, or a message of it is another consumer's by now: they come again
                }
            }
        }
        sender.join();
        transcript.add("sent " + sent);
        for (int number = 0; number < count; number++) {
            if (!delivered.contains(Integer.toString(number))) {
                transcript.add("missing " + number);
            }
        }
        transcript.add("unmarked " + unmarked);
        receiving.close();
        sending.close();
    }
}
