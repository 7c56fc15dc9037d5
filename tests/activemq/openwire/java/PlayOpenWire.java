import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Enumeration;
import java.util.List;
import java.util.TreeMap;
import javax.jms.*;
import org.apache.activemq.ActiveMQConnection;
import org.apache.activemq.ActiveMQConnectionFactory;
import org.apache.activemq.ActiveMQPrefetchPolicy;
import org.apache.activemq.ActiveMQSession;
import org.apache.activemq.RedeliveryPolicy;

/**
 * Plays scenarios of JMS on a broker and prints what its client sees. A line of input is "URL NAME"; the answer is the
 * lines of the transcript and "." behind them.
 */
public class PlayOpenWire {
    private static final long PATIENCE = 3000;
    private static final long SOON = 150;

    private final String url;
    private final List<String> said = new ArrayList<>();
    private final List<Connection> connections = new ArrayList<>();

    private PlayOpenWire(String url) {
        this.url = url;
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] asked = line.split(" ");
            PlayOpenWire play = new PlayOpenWire(asked[0]);
            play.play(asked[1]);
            for (String each : play.said) {
                System.out.println(each.replace("\n", "\\n"));
            }
            System.out.println(".");
        }
        System.exit(0);
    }

    private void play(String name) throws Exception {
        try {
            Method method = PlayOpenWire.class.getDeclaredMethod(name);
            method.invoke(this);
        } catch (InvocationTargetException failure) {
            say("failed: " + failure.getCause());
            StackTraceElement[] stack = failure.getCause().getStackTrace();
            for (StackTraceElement each : stack) {
                if (each.getClassName().equals("PlayOpenWire")) {
                    say("  at line " + each.getLineNumber());
                    break;
                }
            }
        }
        for (Connection connection : connections) {
            try {
                connection.close();
            } catch (JMSException failure) {
                say("close: " + failure);
            }
        }
    }

    // What the scenarios have in common

    private void say(Object... parts) {
        StringBuilder line = new StringBuilder();
        for (Object part : parts) {
            line.append(line.length() == 0 ? "" : " ").append(part);
        }
        said.add(line.toString());
    }

    private ActiveMQConnection connect(String options) throws JMSException {
        ActiveMQConnectionFactory factory = new ActiveMQConnectionFactory(url + options);
        RedeliveryPolicy policy = factory.getRedeliveryPolicy();
        policy.setInitialRedeliveryDelay(0);
        policy.setRedeliveryDelay(0);
        policy.setMaximumRedeliveries(2);
        ActiveMQConnection connection = (ActiveMQConnection) factory.createConnection();
        connections.add(connection);
        return connection;
    }

    private ActiveMQConnection started(String options) throws JMSException {
        ActiveMQConnection connection = connect(options);
        connection.start();
        return connection;
    }

    private void send(Session session, String queue, String... texts) throws JMSException {
        MessageProducer producer = session.createProducer(session.createQueue(queue));
        for (String text : texts) {
            producer.send(session.createTextMessage(text));
        }
        producer.close();
    }

    private static String text(Message message) throws JMSException {
        if (message == null) {
            return "nothing";
        }
        return ((TextMessage) message).getText()
                + (message.getJMSRedelivered() ? " again " + message.getIntProperty("JMSXDeliveryCount") : "");
    }

    private List<String> all(MessageConsumer consumer) throws JMSException {
        List<String> found = new ArrayList<>();
        for (Message message = consumer.receive(found.isEmpty() ? PATIENCE : SOON); message != null;
                message = consumer.receive(SOON)) {
            found.add(text(message));
        }
        return found;
    }

    private void refused(String what, Call call) {
        try {
            call.call();
            say(what, "done");
        } catch (Exception failure) {
            say(what, failure.getClass().getName().replace("jakarta.", "javax."));
        }
    }

    private interface Call {
        void call() throws Exception;
    }

    // The scenarios

    void bodies() throws Exception {
        Session session = started("").createSession(false, Session.AUTO_ACKNOWLEDGE);
        Queue queue = session.createQueue("BODIES");
        MessageProducer producer = session.createProducer(queue);
        MessageConsumer consumer = session.createConsumer(queue);
        producer.send(session.createMessage());
        producer.send(session.createTextMessage(""));
        producer.send(session.createTextMessage("h\u00e9 \u4f60 \ud83d\ude80 \u0000"));
        StringBuilder big = new StringBuilder();
        for (int i = 0; i < 70000; i++) {
            big.append((char) ('a' + i % 26));
        }
        producer.send(session.createTextMessage(big.toString()));
        BytesMessage bytes = session.createBytesMessage();
        bytes.writeInt(7);
        bytes.writeUTF("x");
        producer.send(bytes);
        MapMessage map = session.createMapMessage();
        map.setInt("int", 1);
        map.setString("string", "s");
        map.setBytes("bytes", new byte[] {1, 2});
        map.setDouble("double", 1.5);
        map.setFloat("float", 2.5f);
        map.setByte("byte", (byte) 3);
        map.setShort("short", (short) 4);
        map.setLong("long", 5);
        map.setChar("char", 'c');
        map.setBoolean("boolean", true);
        producer.send(map);
        StreamMessage stream = session.createStreamMessage();
        stream.writeInt(1);
        stream.writeString("two");
        stream.writeObject(null);
        stream.writeBytes(new byte[] {3});
        producer.send(stream);
        producer.send(session.createObjectMessage("an object"));
        for (int i = 0; i < 8; i++) {
            Message message = consumer.receive(PATIENCE);
            if (message instanceof TextMessage) {
                String text = ((TextMessage) message).getText();
                say("text", text.length(), text.hashCode());
            } else if (message instanceof BytesMessage) {
                BytesMessage body = (BytesMessage) message;
                say("bytes", body.getBodyLength(), body.readInt(), body.readUTF());
            } else if (message instanceof MapMessage) {
                MapMessage body = (MapMessage) message;
                TreeMap<String, String> entries = new TreeMap<>();
                for (Enumeration<?> names = body.getMapNames(); names.hasMoreElements();) {
                    String name = (String) names.nextElement();
                    Object value = body.getObject(name);
                    entries.put(name, value instanceof byte[] ? Arrays.toString((byte[]) value)
                            : value.getClass().getSimpleName() + ":" + value);
                }
                say("map", entries);
            } else if (message instanceof StreamMessage) {
                StreamMessage body = (StreamMessage) message;
                say("stream", body.readInt(), body.readString(), body.readObject(),
                        Arrays.toString((byte[]) body.readObject()));
            } else if (message instanceof ObjectMessage) {
                say("object", message.getClass().getSimpleName());
            } else {
                say("plain", message == null ? "nothing" : message.getClass().getSimpleName());
            }
        }
    }

    void headers() throws Exception {
        Session session = started("").createSession(false, Session.AUTO_ACKNOWLEDGE);
        Queue queue = session.createQueue("HEADERS");
        MessageConsumer consumer = session.createConsumer(queue);
        MessageProducer producer = session.createProducer(queue);
        TextMessage sent = session.createTextMessage("t");
        sent.setJMSCorrelationID("c\u00e9");
        sent.setJMSReplyTo(session.createTopic("REPLIES"));
        sent.setJMSType("kind");
        sent.setStringProperty("s", "h\u00e9");
        sent.setIntProperty("i", -5);
        sent.setLongProperty("l", 1L << 40);
        sent.setDoubleProperty("d", 0.1);
        sent.setFloatProperty("f", 0.5f);
        sent.setByteProperty("b", (byte) -1);
        sent.setShortProperty("h", (short) 300);
        sent.setBooleanProperty("t", true);
        sent.setStringProperty("JMSXGroupID", "g");
        sent.setIntProperty("JMSXGroupSeq", 3);
        producer.send(sent, DeliveryMode.NON_PERSISTENT, 7, 60000);
        Message got = consumer.receive(PATIENCE);
        say(got.getJMSDestination(), got.getJMSReplyTo(), got.getJMSType(), got.getJMSCorrelationID(),
                got.getJMSPriority(), got.getJMSDeliveryMode(), got.getJMSRedelivered());
        say("same id", got.getJMSMessageID().equals(sent.getJMSMessageID()));
        say("expires", got.getJMSExpiration() - got.getJMSTimestamp());
        List<String> names = new ArrayList<>();
        for (Enumeration<?> each = got.getPropertyNames(); each.hasMoreElements();) {
            String name = (String) each.nextElement();
            if (!name.equals("JMSXDeliveryCount")) {
                Object value = got.getObjectProperty(name);
                names.add(name + "=" + value.getClass().getSimpleName() + ":" + value);
            }
        }
        Collections.sort(names);
        say(names);
    }

    void acknowledgeModes() throws Exception {
        ActiveMQConnection connection = started("");
        Session producing = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        int[] modes = {Session.AUTO_ACKNOWLEDGE, Session.CLIENT_ACKNOWLEDGE, Session.DUPS_OK_ACKNOWLEDGE,
            ActiveMQSession.INDIVIDUAL_ACKNOWLEDGE};
        for (int mode : modes) {
            String queue = "ACK." + mode;
            send(producing, queue, "1", "2", "3", "4", "5");
            Session session = connection.createSession(false, mode);
            MessageConsumer consumer = session.createConsumer(session.createQueue(queue));
            Message second = null;
            for (int i = 0; i < 3; i++) {
                Message message = consumer.receive(PATIENCE);
                second = i == 1 ? message : second;
            }
            second.acknowledge();
            session.close();
            session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
            consumer = session.createConsumer(session.createQueue(queue));
            say("mode", mode, "leaves", all(consumer));
            session.close();
        }
    }

    void recover() throws Exception {
        ActiveMQConnection connection = started("");
        Session session = connection.createSession(false, Session.CLIENT_ACKNOWLEDGE);
        send(session, "RECOVER", "1", "2", "3");
        MessageConsumer consumer = session.createConsumer(session.createQueue("RECOVER"));
        say(text(consumer.receive(PATIENCE)), text(consumer.receive(PATIENCE)));
        session.recover();
        Message last = null;
        for (int i = 0; i < 3; i++) {
            last = consumer.receive(PATIENCE);
            say(text(last));
        }
        last.acknowledge();
        say(text(consumer.receive(SOON)));
    }

    void transactions() throws Exception {
        ActiveMQConnection connection = started("");
        Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
        Session other = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageConsumer watching = other.createConsumer(other.createQueue("TX"));
        send(session, "TX", "1", "2");
        say("before", text(watching.receive(SOON)));
        session.commit();
        say("after", all(watching));
        send(session, "TX", "3");
        session.rollback();
        say("rolled back", text(watching.receive(SOON)));
        watching.close();
        send(session, "TX", "4", "5");
        session.commit();
        MessageConsumer consumer = session.createConsumer(session.createQueue("TX"));
        say(text(consumer.receive(PATIENCE)), text(consumer.receive(PATIENCE)));
        session.rollback();
        say(text(consumer.receive(PATIENCE)));
        session.commit();
        say(text(consumer.receive(PATIENCE)));
        session.rollback();
        session.close();
        watching = other.createConsumer(other.createQueue("TX"));
        say("left", all(watching));
    }

    void deadLetters() throws Exception {
        ActiveMQConnection connection = started("");
        Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
        send(session, "POISON", "bad");
        session.commit();
        MessageConsumer consumer = session.createConsumer(session.createQueue("POISON"));
        for (int i = 0; i < 3; i++) {
            say(text(consumer.receive(PATIENCE)));
            session.rollback();
        }
        say(text(consumer.receive(SOON)));
        MessageConsumer dead = session.createConsumer(session.createQueue("ActiveMQ.DLQ"));
        Message letter = dead.receive(PATIENCE);
        say("dead", text(letter), letter.getJMSRedelivered(), letter.getJMSDestination());
        String cause = letter.getStringProperty("dlqDeliveryFailureCause");
        say(cause.substring(0, cause.indexOf(" policy limit")));
        session.commit();
    }

    void topics() throws Exception {
        ActiveMQConnection connection = started("");
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        Topic topic = session.createTopic("T.a.b");
        MessageProducer producer = session.createProducer(topic);
        producer.send(session.createTextMessage("early"));
        MessageConsumer one = session.createConsumer(topic);
        MessageConsumer wild = session.createConsumer(session.createTopic("T.>"), "n > 1");
        MessageConsumer deaf = session.createConsumer(topic, null, true);
        for (int i = 0; i < 3; i++) {
            TextMessage message = session.createTextMessage("m" + i);
            message.setIntProperty("n", i);
            producer.send(message);
        }
        say(all(one), all(wild), deaf.receive(SOON));
    }

    void durables() throws Exception {
        ActiveMQConnection connection = connect("");
        connection.setClientID("me");
        connection.start();
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        Topic topic = session.createTopic("DURABLE");
        TopicSubscriber subscriber = session.createDurableSubscriber(topic, "name");
        refused("unsubscribe in use", () -> session.unsubscribe("name"));
        refused("twice", () -> session.createDurableSubscriber(topic, "name"));
        MessageProducer producer = session.createProducer(topic);
        producer.send(session.createTextMessage("1"));
        say(text(subscriber.receive(PATIENCE)));
        subscriber.close();
        producer.send(session.createTextMessage("2"));
        producer.send(session.createTextMessage("3"));
        ActiveMQConnection second = connect("");
        refused("client id in use", () -> second.setClientID("me"));
        connection.close();
        ActiveMQConnection third = connect("");
        third.setClientID("me");
        third.start();
        Session later = third.createSession(false, Session.AUTO_ACKNOWLEDGE);
        TopicSubscriber again = later.createDurableSubscriber(later.createTopic("DURABLE"), "name");
        say(all(again));
        again.close();
        later.unsubscribe("name");
        refused("unsubscribe twice", () -> later.unsubscribe("name"));
    }

    void requestReply() throws Exception {
        ActiveMQConnection asking = started("");
        ActiveMQConnection answering = started("");
        Session server = answering.createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageProducer anywhere = server.createProducer(null);
        server.createConsumer(server.createQueue("ASK")).setMessageListener(message -> {
            try {
                anywhere.send(message.getJMSReplyTo(), server.createTextMessage("re: " + text(message)));
            } catch (JMSException failure) {
                say("the answer: " + failure);
            }
        });
        Session session = asking.createSession(false, Session.AUTO_ACKNOWLEDGE);
        TemporaryQueue replies = session.createTemporaryQueue();
        MessageConsumer consumer = session.createConsumer(replies);
        MessageProducer producer = session.createProducer(session.createQueue("ASK"));
        for (int i = 0; i < 2; i++) {
            TextMessage question = session.createTextMessage("q" + i);
            question.setJMSReplyTo(replies);
            producer.send(question);
            say(text(consumer.receive(PATIENCE)));
        }
        Session foreign = answering.createSession(false, Session.AUTO_ACKNOWLEDGE);
        refused("foreign consumer", () -> foreign.createConsumer(replies));
        refused("delete in use", replies::delete);
        consumer.close();
        replies.delete();
        refused("send to nowhere", () -> session.createProducer(null).send(replies, session.createTextMessage("x")));
        TemporaryTopic topic = session.createTemporaryTopic();
        MessageConsumer listening = session.createConsumer(topic);
        anywhere.send(topic, foreign.createTextMessage("t"));
        say(text(listening.receive(PATIENCE)));
    }

    void browsing() throws Exception {
        Session session = started("").createSession(false, Session.AUTO_ACKNOWLEDGE);
        Queue queue = session.createQueue("BROWSE");
        say(Collections.list(session.createBrowser(queue).getEnumeration()).size());
        MessageProducer producer = session.createProducer(queue);
        for (int i = 0; i < 5; i++) {
            TextMessage message = session.createTextMessage("m" + i);
            message.setIntProperty("n", i);
            producer.send(message);
        }
        for (int i = 0; i < 2; i++) {
            QueueBrowser browser = i == 0 ? session.createBrowser(queue) : session.createBrowser(queue, "n > 2");
            List<String> found = new ArrayList<>();
            for (Enumeration<?> each = browser.getEnumeration(); each.hasMoreElements();) {
                found.add(text((Message) each.nextElement()));
            }
            say(found);
            browser.close();
        }
        say(all(session.createConsumer(queue)));
    }

    void selectors() throws Exception {
        Session session = started("").createSession(false, Session.AUTO_ACKNOWLEDGE);
        Queue queue = session.createQueue("SELECT");
        refused("bad selector", () -> session.createConsumer(queue, "x = = 1"));
        MessageConsumer some = session.createConsumer(queue, "color = 'red' AND size BETWEEN 1 AND 3");
        MessageProducer producer = session.createProducer(queue);
        for (int i = 0; i < 6; i++) {
            TextMessage message = session.createTextMessage("m" + i);
            message.setStringProperty("color", i % 2 == 0 ? "red" : "blue");
            message.setIntProperty("size", i);
            producer.send(message);
        }
        say(all(some));
        some.close();
        say(all(session.createConsumer(queue)));
    }

    void pulling() throws Exception {
        Session session = started("?jms.prefetchPolicy.all=0").createSession(false, Session.AUTO_ACKNOWLEDGE);
        Queue queue = session.createQueue("PULL");
        MessageConsumer consumer = session.createConsumer(queue);
        MessageConsumer second = session.createConsumer(queue);
        say(consumer.receiveNoWait(), consumer.receive(100));
        send(session, "PULL", "1", "2", "3");
        say(text(consumer.receive(PATIENCE)), text(second.receive(PATIENCE)), text(consumer.receiveNoWait()),
                text(second.receiveNoWait()));
        send(session, "PULL", "4");
        say(text(second.receive()));
    }

    void prefetch() throws Exception {
        ActiveMQConnection connection = started("?jms.prefetchPolicy.queuePrefetch=2");
        Session session = connection.createSession(false, Session.CLIENT_ACKNOWLEDGE);
        Queue queue = session.createQueue("PREFETCH");
        MessageConsumer one = session.createConsumer(queue);
        send(session, "PREFETCH", "1", "2", "3", "4", "5");
        Session other = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageConsumer two = other.createConsumer(queue);
        say("two", all(two));
        say("one", text(one.receive(PATIENCE)), text(one.receive(PATIENCE)));
        Session third = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageConsumer option = third.createConsumer(third.createQueue("PREFETCH?consumer.prefetchSize=1"));
        send(session, "PREFETCH", "6");
        say(text(two.receive(SOON)), text(option.receive(SOON)));
    }

    void producerWindow() throws Exception {
        ActiveMQConnection connection = started("?jms.producerWindowSize=4096&jms.useAsyncSend=true");
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        Queue queue = session.createQueue("WINDOW");
        MessageProducer producer = session.createProducer(queue);
        for (int i = 0; i < 100; i++) {
            producer.send(session.createTextMessage("m" + i));
        }
        producer.close();
        say(all(session.createConsumer(queue)).size());
    }

    void closing() throws Exception {
        ActiveMQConnection connection = started("");
        Session session = connection.createSession(false, Session.CLIENT_ACKNOWLEDGE);
        send(session, "CLOSING", "1", "2", "3", "4");
        MessageConsumer consumer = session.createConsumer(session.createQueue("CLOSING"));
        say(text(consumer.receive(PATIENCE)), text(consumer.receive(PATIENCE)));
        connection.close();
        Session later = started("").createSession(false, Session.AUTO_ACKNOWLEDGE);
        say(all(later.createConsumer(later.createQueue("CLOSING"))));
    }

    void groups() throws Exception {
        ActiveMQConnection connection = started("");
        Session session = connection.createSession(false, Session.CLIENT_ACKNOWLEDGE);
        Session other = connection.createSession(false, Session.CLIENT_ACKNOWLEDGE);
        Queue queue = session.createQueue("GROUPS");
        MessageConsumer one = session.createConsumer(queue);
        MessageConsumer two = other.createConsumer(queue);
        MessageProducer producer = session.createProducer(queue);
        for (int i = 0; i < 8; i++) {
            TextMessage message = session.createTextMessage("m" + i);
            message.setStringProperty("JMSXGroupID", "ABCD".substring(i % 4, i % 4 + 1));
            producer.send(message);
        }
        for (MessageConsumer consumer : new MessageConsumer[] {one, two}) {
            List<String> found = new ArrayList<>();
            for (Message message = consumer.receive(PATIENCE); message != null; message = consumer.receive(SOON)) {
                found.add(text(message) + (message.propertyExists("JMSXGroupFirstForConsumer")
                        && message.getBooleanProperty("JMSXGroupFirstForConsumer") ? " first" : ""));
            }
            say(found);
        }
    }

    void names() throws Exception {
        ActiveMQConnection connection = started("");
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageConsumer virtual = session.createConsumer(session.createQueue("Consumer.A.VirtualTopic.V"));
        MessageConsumer wild = session.createConsumer(session.createQueue("N.*"));
        MessageConsumer both = session.createConsumer(session.createQueue("C1,C2"));
        session.createProducer(session.createTopic("VirtualTopic.V")).send(session.createTextMessage("v"));
        send(session, "N.x,N.y", "n");
        send(session, "C1", "c1");
        send(session, "C2", "c2");
        Message got = virtual.receive(PATIENCE);
        say(text(got), got.getJMSDestination());
        List<String> found = new ArrayList<>();
        for (int i = 0; i < 2; i++) {
            got = wild.receive(PATIENCE);
            found.add(text(got) + " of " + got.getJMSDestination());
        }
        Collections.sort(found);
        say(found, all(both));
        say(connection.getBrokerName());
    }

    void expiry() throws Exception {
        Session session = started("").createSession(false, Session.AUTO_ACKNOWLEDGE);
        Queue queue = session.createQueue("EXPIRY");
        MessageProducer producer = session.createProducer(queue);
        producer.setTimeToLive(50);
        producer.send(session.createTextMessage("short"));
        producer.setTimeToLive(0);
        producer.send(session.createTextMessage("long"));
        Thread.sleep(100);
        say(all(session.createConsumer(queue)));
        Message dead = session.createConsumer(session.createQueue("ActiveMQ.DLQ")).receive(PATIENCE);
        say(text(dead), dead == null ? null : dead.getStringProperty("dlqDeliveryFailureCause") != null);
    }

    void listeners() throws Exception {
        for (String options : new String[] {"?jms.prefetchPolicy.queuePrefetch=10", "?jms.optimizeAcknowledge=true"}) {
            listen(started(options), options.contains("optimize"));
        }
    }

    private void listen(ActiveMQConnection connection, boolean optimized) throws Exception {
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        List<String> heard = Collections.synchronizedList(new ArrayList<>());
        session.createConsumer(session.createQueue("LISTEN")).setMessageListener(message -> {
            try {
                heard.add(text(message));
                if (heard.size() == 5 && !optimized) {
                    throw new RuntimeException("once more");
                }
            } catch (JMSException failure) {
                heard.add(failure.toString());
            }
        });
        Session sending = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        String[] texts = new String[30];
        for (int i = 0; i < texts.length; i++) {
            texts[i] = "m" + i;
        }
        send(sending, "LISTEN", texts);
        for (long end = System.currentTimeMillis() + PATIENCE; heard.size() < (optimized ? 30 : 31);) {
            if (System.currentTimeMillis() > end) {
                break;
            }
            Thread.sleep(10);
        }
        say(heard);
    }

    void wires() throws Exception {
        String[] options = {"", "&wireFormat.tightEncodingEnabled=false", "&wireFormat.cacheEnabled=false",
            "&wireFormat.tightEncodingEnabled=false&wireFormat.cacheEnabled=false",
            "&wireFormat.stackTraceEnabled=false", "&wireFormat.cacheSize=200"};
        for (int version = 9; version <= 13; version++) {
            for (String option : options) {
                ActiveMQConnection connection = started("?wireFormat.version=" + version + option);
                Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
                send(session, "WIRES", "h\u00e9 1", "2", "3");
                session.commit();
                MessageConsumer consumer = session.createConsumer(session.createQueue("WIRES"));
                say(version, option, all(consumer));
                session.commit();
                refused("bad selector", () -> session.createConsumer(session.createQueue("WIRES"), "=="));
                connection.close();
            }
        }
    }

    void many() throws Exception {
        ActiveMQConnection connection = started("?wireFormat.cacheSize=128");
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageProducer producer = session.createProducer(null);
        producer.setDeliveryMode(DeliveryMode.NON_PERSISTENT);
        for (int round = 0; round < 2; round++) {
            for (int i = 0; i < 300; i++) {
                producer.send(session.createQueue("MANY." + i), session.createTextMessage("m"));
            }
        }
        MessageConsumer consumer = session.createConsumer(session.createQueue("MANY.>"));
        say(all(consumer).size());
    }

    void scheduled() throws Exception {
        Session session = started("").createSession(false, Session.AUTO_ACKNOWLEDGE);
        TextMessage later = session.createTextMessage("later");
        later.setLongProperty("AMQ_SCHEDULED_DELAY", 1500);
        MessageProducer producer = session.createProducer(session.createQueue("LATER"));
        producer.send(later);
        MessageConsumer consumer = session.createConsumer(session.createQueue("LATER"));
        say(text(consumer.receive(100)), text(consumer.receive(PATIENCE)));
    }

    void advisories() throws Exception {
        ActiveMQConnection connection = started("");
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        Session other = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        Queue queue = session.createQueue("WATCHED");
        MessageConsumer early = other.createConsumer(queue);
        MessageConsumer watching = session.createConsumer(session.createTopic("ActiveMQ.Advisory.Consumer.Queue.WATCHED"));
        Message first = watching.receive(SOON);
        say("first", advisory(first));
        MessageConsumer later = other.createConsumer(queue);
        say("second", advisory(watching.receive(PATIENCE)));
        later.close();
        early.close();
        say("closed", advisory(watching.receive(PATIENCE)), advisory(watching.receive(PATIENCE)));
    }

    private static String advisory(Message message) throws JMSException {
        if (message == null) {
            return "nothing";
        }
        org.apache.activemq.command.ActiveMQMessage real = (org.apache.activemq.command.ActiveMQMessage) message;
        return message.getJMSType() + " " + message.getObjectProperty("consumerCount") + " "
                + (real.getDataStructure() == null ? null : real.getDataStructure().getClass().getSimpleName());
    }
}
