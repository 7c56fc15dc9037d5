import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import jakarta.jms.DeliveryMode;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageListener;
import jakarta.jms.MessageProducer;
import jakarta.jms.QueueBrowser;
import jakarta.jms.Session;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Enumeration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.activemq.ActiveMQConnection;
import org.apache.activemq.ActiveMQConnectionFactory;
import org.apache.activemq.ActiveMQMessageConsumer;
import org.apache.activemq.ActiveMQSession;
import org.apache.activemq.ConnectionFailedException;
import org.apache.activemq.RedeliveryPolicy;
import org.apache.activemq.broker.Broker;
import org.apache.activemq.broker.BrokerFilter;
import org.apache.activemq.broker.BrokerPlugin;
import org.apache.activemq.broker.BrokerService;
import org.apache.activemq.broker.ConnectionContext;
import org.apache.activemq.broker.TransportConnection;
import org.apache.activemq.broker.region.Destination;
import org.apache.activemq.broker.region.DestinationInterceptor;
import org.apache.activemq.broker.region.DurableTopicSubscription;
import org.apache.activemq.broker.region.MessageReference;
import org.apache.activemq.broker.region.Queue;
import org.apache.activemq.broker.region.Subscription;
import org.apache.activemq.broker.region.Topic;
import org.apache.activemq.broker.region.TopicSubscription;
import org.apache.activemq.broker.region.policy.*;
import org.apache.activemq.broker.region.virtual.CompositeDestination;
import org.apache.activemq.broker.region.virtual.CompositeQueue;
import org.apache.activemq.broker.region.virtual.CompositeTopic;
import org.apache.activemq.broker.region.virtual.FilteredDestination;
import org.apache.activemq.broker.region.virtual.VirtualDestination;
import org.apache.activemq.broker.region.virtual.VirtualDestinationInterceptor;
import org.apache.activemq.broker.region.virtual.VirtualTopic;
import org.apache.activemq.command.ActiveMQDestination;
import org.apache.activemq.command.ActiveMQQueue;
import org.apache.activemq.command.ActiveMQTopic;
import org.apache.activemq.command.ConsumerInfo;
import org.apache.activemq.command.FlushCommand;
import org.apache.activemq.command.MessageDispatch;
import org.apache.activemq.store.kahadb.KahaDBPersistenceAdapter;
import org.apache.activemq.util.BrokerSupport;
import org.apache.activemq.util.IOHelper;
import org.apache.activemq.util.IntrospectionSupport;

/**
 * The real broker answers scripts: a script a line on standard input, what happened at each step on standard output.
 *
 * <p>Both have the form of the recorded scenarios. Every script gets a broker of its own, in memory, over the vm
 * transport with dispatchAsync=false; a step ends when the broker has nothing left to do. A line {"policies": ...}
 * asks which policy entry wins instead.
 */
public final class RealBroker {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final AtomicInteger NUMBER = new AtomicInteger();
    private static Field pendingWakeups;
    private static Field iteratingMutex;
    private static Method expireMessages;

    public static void main(String[] arguments) throws Exception {
        PrintStream replies = System.out;
        System.setOut(System.err);
        pendingWakeups = Queue.class.getDeclaredField("pendingWakeups");
        iteratingMutex = Queue.class.getDeclaredField("iteratingMutex");
        pendingWakeups.setAccessible(true);
        iteratingMutex.setAccessible(true);
        expireMessages = Queue.class.getDeclaredMethod("expireMessages");
        expireMessages.setAccessible(true);
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            ObjectNode reply;
            try {
                JsonNode request = JSON.readTree(line);
                reply = request.has("policies") ? winners(request) : new RealBroker(request).play();
            } catch (Throwable failure) {
                reply = JSON.createObjectNode();
                reply.put("failure", failure.toString());
                failure.printStackTrace();
            }
            replies.write((JSON.writeValueAsString(reply) + "\n").getBytes("UTF-8"));
            replies.flush();
        }
        System.exit(0);
    }

    /** policies: names of entries; destinations: texts. The index of the entry that wins for each, or -1. */
    private static ObjectNode winners(JsonNode request) {
        PolicyMap map = new PolicyMap();
        List<PolicyEntry> entries = new ArrayList<>();
        for (JsonNode name : request.get("policies")) {
            PolicyEntry entry = new PolicyEntry();
            entry.setDestination(ActiveMQDestination.createDestination(name.asText(), ActiveMQDestination.QUEUE_TYPE));
            entries.add(entry);
        }
        map.setPolicyEntries(entries);
        ObjectNode reply = JSON.createObjectNode();
        ArrayNode found = reply.putArray("winners");
        for (JsonNode name : request.get("destinations")) {
            ActiveMQDestination destination =
                    ActiveMQDestination.createDestination(name.asText(), ActiveMQDestination.QUEUE_TYPE);
            found.add(entries.indexOf(map.getEntryFor(destination)));
        }
        return reply;
    }

    private final JsonNode script;
    private final boolean topic;
    private final String name = "real" + NUMBER.incrementAndGet();
    private BrokerService service;
    private final Map<String, ActiveMQConnection> connections = new LinkedHashMap<>();
    private final Map<String, TransportConnection> brokerSide = new ConcurrentHashMap<>();
    private final Map<String, Client> clients = new LinkedHashMap<>();
    /** Of consumers that share one, by its name. */
    private final Map<String, ActiveMQSession> sessions = new LinkedHashMap<>();
    private final Map<String, Session> senders = new LinkedHashMap<>();
    private final List<Client> everyone = new ArrayList<>();
    private final Map<String, String> names = new ConcurrentHashMap<>();
    private final Map<String, Subscription> subscriptions = new ConcurrentHashMap<>();
    private final Map<String, ArrayNode> totals = new LinkedHashMap<>();
    private final AtomicLong events = new AtomicLong();
    private final List<String> left = Collections.synchronizedList(new ArrayList<>());
    private final List<ObjectNode> dispatched = Collections.synchronizedList(new ArrayList<>());
    private final List<ObjectNode> other = Collections.synchronizedList(new ArrayList<>());
    private volatile String naming;
    /** What a broker hands out while it stops, one connection after the other, is not looked at. */
    private volatile boolean stopping;
    /** The script sleeps: whoever leaves meanwhile was sent away. */
    private volatile boolean idle;
    private Path folder;

    private RealBroker(JsonNode script) {
        this.script = script;
        this.topic = "topic".equals(script.path("dest").asText());
    }

    /** One consumer of a script with its session and what it was given. */
    private static final class Client {
        String name;
        String connection;
        ActiveMQSession session;
        ActiveMQMessageConsumer consumer;
        int prefetch;
        boolean waits;
        final Map<Integer, Message> got = new LinkedHashMap<>();
    }

    private ObjectNode play() throws Exception {
        ObjectNode reply = JSON.createObjectNode();
        ArrayNode steps = reply.putArray("steps");
        start();
        try {
            for (JsonNode step : script.get("steps")) {
                ObjectNode shown = steps.addObject();
                dispatched.clear();
                other.clear();
                left.clear();
                try {
                    act(step, shown);
                } catch (Exception refused) {
                    boolean failed = refused instanceof ConnectionFailedException;
                    shown.put("error", failed ? "JMSException" : refused.getClass().getSimpleName());
                }
                settle();
                if (step.get("op").asText().equals("closeSession")) {
                    left.forEach(shown.putArray("order")::add);
                }
                if (!dispatched.isEmpty()) {
                    shown.putArray("dispatched").addAll(dispatched);
                }
                if (!other.isEmpty()) {
                    shown.putArray("other").addAll(other);
                }
            }
            reply.set("final", state());
        } finally {
            disconnect();
            service.stop();
            if (folder != null) {
                IOHelper.deleteFile(folder.toFile());
            }
        }
        return reply;
    }

    private void disconnect() {
        for (ActiveMQConnection connection : connections.values()) {
            try {
                connection.close();
            } catch (Exception alreadyGone) {
                // a script may have killed it, or the broker
            }
        }
        connections.clear();
        senders.clear();
        sessions.clear();
        clients.clear();
    }

    // The broker

    private void start() throws Exception {
        service = new BrokerService();
        service.setBrokerName(name);
        service.setPersistent(script.path("store").asBoolean());
        if (service.isPersistent()) {
            if (folder == null) {
                folder = Files.createTempDirectory("differential");
            }
            KahaDBPersistenceAdapter store = new KahaDBPersistenceAdapter();
            store.setDirectory(folder.toFile());
            store.setJournalDiskSyncStrategy("never");
            service.setPersistenceAdapter(store);
            service.setDataDirectoryFile(folder.toFile());
        }
        service.setUseJmx(false);
        service.setUseShutdownHook(false);
        service.setSchedulerSupport(false);
        service.setEnableStatistics(true);
        service.getSystemUsage().getMemoryUsage().setLimit(64L << 20);
        PolicyMap policies = new PolicyMap();
        policies.setDefaultEntry(policy(script.path("policy")));
        List<PolicyEntry> entries = new ArrayList<>();
        for (JsonNode given : script.path("entries")) {
            PolicyEntry entry = policy(given);
            entry.setDestination(destination(given, "destination"));
            entries.add(entry);
        }
        policies.setPolicyEntries(entries);
        service.setDestinationPolicy(policies);
        service.setPlugins(new BrokerPlugin[] {Recorder::new});
        if (script.has("virtual")) {
            VirtualDestinationInterceptor virtual = new VirtualDestinationInterceptor();
            List<VirtualDestination> all = new ArrayList<>();
            script.get("virtual").forEach(given -> all.add(virtual(given)));
            virtual.setVirtualDestinations(all.toArray(VirtualDestination[]::new));
            service.setDestinationInterceptors(new DestinationInterceptor[] {virtual});
        }
        service.start();
        service.waitUntilStarted();
    }

    /** forwardTo, of composites: texts, or tables with a selector. */
    private static VirtualDestination virtual(JsonNode given) {
        VirtualDestination made = switch (given.get("type").asText()) {
            case "topic" -> new VirtualTopic();
            case "compositeTopic" -> new CompositeTopic();
            default -> new CompositeQueue();
        };
        given.fields().forEachRemaining(field -> {
            if (field.getKey().equals("forwardTo")) {
                List<Object> targets = new ArrayList<>();
                for (JsonNode each : field.getValue()) {
                    String text = each.isTextual() ? each.asText() : each.get("destination").asText();
                    ActiveMQDestination to = ActiveMQDestination.createDestination(text, ActiveMQDestination.QUEUE_TYPE);
                    if (each.isTextual()) {
                        targets.add(to);
                        continue;
                    }
                    FilteredDestination filtered = new FilteredDestination();
                    filtered.setDestination(to);
                    try {
                        filtered.setSelector(each.get("selector").asText());
                    } catch (JMSException refused) {
                        throw new IllegalArgumentException(refused);
                    }
                    targets.add(filtered);
                }
                ((CompositeDestination) made).setForwardTo(targets);
            } else if (!field.getKey().equals("type")
                    && !IntrospectionSupport.setProperty(made, field.getKey(), field.getValue().asText())) {
                throw new IllegalArgumentException("virtual " + field.getKey());
            }
        });
        return made;
    }

    private static PolicyEntry policy(JsonNode given) {
        PolicyEntry entry = new PolicyEntry();
        entry.setExpireMessagesPeriod(0);
        entry.setAdvisoryForDiscardingMessages(true);
        entry.setAdvisoryForSlowConsumers(true);
        given.fields().forEachRemaining(field -> {
            JsonNode value = field.getValue();
            switch (field.getKey()) {
                case "destination" -> { }
                case "constantLimit" -> {
                    ConstantPendingMessageLimitStrategy limit = new ConstantPendingMessageLimitStrategy();
                    limit.setLimit(value.asInt());
                    entry.setPendingMessageLimitStrategy(limit);
                }
                case "prefetchRate" -> {
                    PrefetchRatePendingMessageLimitStrategy limit = new PrefetchRatePendingMessageLimitStrategy();
                    limit.setMultiplier(value.asDouble());
                    entry.setPendingMessageLimitStrategy(limit);
                }
                case "eviction" -> {
                    if (value.asText().equals("oldest")) {
                        entry.setMessageEvictionStrategy(new OldestMessageEvictionStrategy());
                    } else if (value.asText().equals("oldestLowestPriority")) {
                        entry.setMessageEvictionStrategy(new OldestMessageWithLowestPriorityEvictionStrategy());
                    } else {
                        UniquePropertyMessageEvictionStrategy unique = new UniquePropertyMessageEvictionStrategy();
                        unique.setPropertyName(value.asText().substring("unique:".length()));
                        entry.setMessageEvictionStrategy(unique);
                    }
                }
                case "recovery" -> {
                    SubscriptionRecoveryPolicy recovery = switch (value.get("type").asText()) {
                        case "fixedCount" -> new FixedCountSubscriptionRecoveryPolicy();
                        case "fixedSized" -> new FixedSizedSubscriptionRecoveryPolicy();
                        case "lastImage" -> new LastImageSubscriptionRecoveryPolicy();
                        default -> new TimedSubscriptionRecoveryPolicy();
                    };
                    value.fields().forEachRemaining(part -> {
                        if (!part.getKey().equals("type")) {
                            IntrospectionSupport.setProperty(recovery, part.getKey(), part.getValue().asText());
                        }
                    });
                    entry.setSubscriptionRecoveryPolicy(recovery);
                }
                case "dispatchPolicy" -> entry.setDispatchPolicy(switch (value.asText()) {
                    case "priority" -> new PriorityDispatchPolicy();
                    case "roundRobin" -> new RoundRobinDispatchPolicy();
                    case "strictOrder" -> new StrictOrderDispatchPolicy();
                    default -> new SimpleDispatchPolicy();
                });
                case "slowAbort" -> entry.setSlowConsumerStrategy(filled(new AbortSlowConsumerStrategy(), value));
                case "slowAck" -> entry.setSlowConsumerStrategy(filled(new AbortSlowAckConsumerStrategy(), value));
                case "dlq" -> {
                    AbstractDeadLetterStrategy letters = value.path("discarding").asBoolean()
                            ? new DiscardingDeadLetterStrategy()
                            : value.path("individual").asBoolean()
                                    ? new IndividualDeadLetterStrategy()
                                    : new SharedDeadLetterStrategy();
                    if (value.has("processNonPersistent")) {
                        letters.setProcessNonPersistent(value.get("processNonPersistent").asBoolean());
                    }
                    if (value.has("processExpired")) {
                        letters.setProcessExpired(value.get("processExpired").asBoolean());
                    }
                    entry.setDeadLetterStrategy(letters);
                }
                default -> {
                    if (!IntrospectionSupport.setProperty(entry, field.getKey(), value.asText())) {
                        throw new IllegalArgumentException("policy " + field.getKey());
                    }
                }
            }
        });
        return entry;
    }

    private static AbortSlowConsumerStrategy filled(AbortSlowConsumerStrategy strategy, JsonNode fields) {
        fields.fields().forEachRemaining(field -> {
            if (!IntrospectionSupport.setProperty(strategy, field.getKey(), field.getValue().asText())) {
                throw new IllegalArgumentException("strategy " + field.getKey());
            }
        });
        return strategy;
    }

    /** Sees what the broker does, in its own order. */
    private final class Recorder extends BrokerFilter {
        Recorder(Broker next) {
            super(next);
        }

        @Override
        public void addConnection(ConnectionContext context, org.apache.activemq.command.ConnectionInfo info)
                throws Exception {
            super.addConnection(context, info);
            brokerSide.put(info.getConnectionId().getValue(), (TransportConnection) context.getConnection());
        }

        @Override
        public void removeConnection(ConnectionContext context, org.apache.activemq.command.ConnectionInfo info,
                Throwable error) throws Exception {
            super.removeConnection(context, info, error);
            brokerSide.remove(info.getConnectionId().getValue());
        }

        @Override
        public Subscription addConsumer(ConnectionContext context, ConsumerInfo info) throws Exception {
            if (naming != null) {
                names.put(info.getConsumerId().toString(), naming);
            }
            Subscription added = super.addConsumer(context, info);
            subscriptions.put(info.getConsumerId().toString(), added);
            return added;
        }

        @Override
        public void removeConsumer(ConnectionContext context, ConsumerInfo info) throws Exception {
            super.removeConsumer(context, info);
            String gone = names.get(info.getConsumerId().toString());
            left.add(String.valueOf(gone));
            if (idle && gone != null) {
                note("removed", gone);
            }
            subscriptions.remove(info.getConsumerId().toString());
        }

        @Override
        public void preProcessDispatch(MessageDispatch dispatch) {
            super.preProcessDispatch(dispatch);
            String to = names.get(dispatch.getConsumerId().toString());
            if (to == null || stopping || dispatch.getMessage() == null
                    || dispatch.getDestination().getPhysicalName().startsWith("ActiveMQ.DLQ")) {
                return;
            }
            ObjectNode entry = JSON.createObjectNode();
            int n = number(dispatch.getMessage());
            entry.put("to", to).put("n", n);
            if (dispatch.getRedeliveryCounter() > 0) {
                entry.put("redelivery", dispatch.getRedeliveryCounter());
            }
            if (dispatch.getMessage().isJMSXGroupFirstForConsumer()) {
                entry.put("groupFirst", true);
            }
            dispatched.add(entry);
            events.incrementAndGet();
            synchronized (totals) {
                totals.computeIfAbsent(to, ignored -> JSON.createArrayNode()).add(n);
            }
        }

        @Override
        public void slowConsumer(ConnectionContext context, Destination destination, Subscription subscription) {
            super.slowConsumer(context, destination, subscription);
            note("slow", names.get(subscription.getConsumerInfo().getConsumerId().toString()));
        }

        @Override
        public void messageDiscarded(ConnectionContext context, Subscription subscription, MessageReference message) {
            super.messageDiscarded(context, subscription, message);
            ObjectNode entry = JSON.createObjectNode().put("discarded", number(message.getMessage()));
            String to = subscription == null
                    ? null
                    : names.get(subscription.getConsumerInfo().getConsumerId().toString());
            if (to != null) {
                entry.put("for", to);
            }
            add(entry);
        }

        @Override
        public void messageExpired(ConnectionContext context, MessageReference message, Subscription subscription) {
            super.messageExpired(context, message, subscription);
            add(JSON.createObjectNode().put("expired", number(message.getMessage())));
        }

        @Override
        public boolean sendToDeadLetterQueue(ConnectionContext context, MessageReference message,
                Subscription subscription, Throwable cause) {
            int n = number(message.getMessage());
            boolean sent = super.sendToDeadLetterQueue(context, message, subscription, cause);
            add(JSON.createObjectNode().put("dlq", n).put("sent", sent));
            return sent;
        }

        private void note(String what, String whom) {
            add(JSON.createObjectNode().put(what, whom));
        }

        private void add(ObjectNode entry) {
            other.add(entry);
            events.incrementAndGet();
        }
    }

    private static int number(org.apache.activemq.command.Message message) {
        try {
            Object n = message.getProperty("n");
            return n == null ? -1 : ((Number) n).intValue();
        } catch (IOException unreadable) {
            throw new IllegalStateException(unreadable);
        }
    }

    /** Wait until no connection has a command under way and no queue has a round to make. */
    private void settle() throws Exception {
        long seen;
        int quiet = 0;
        do {
            seen = events.get();
            for (ActiveMQConnection connection : connections.values()) {
                if (!connection.isTransportFailed()) {
                    connection.syncSendPacket(new FlushCommand());
                }
            }
            for (Destination destination : service.getBroker().getDestinationMap().values()) {
                Queue queue = destination.getDestinationStatistics() == null ? null : asQueue(destination);
                while (queue != null) {
                    synchronized (iteratingMutex.get(queue)) {
                        if (((AtomicLong) pendingWakeups.get(queue)).get() == 0) {
                            break;
                        }
                    }
                    Thread.yield();
                }
            }
            quiet = seen == events.get() ? quiet + 1 : 0;
        } while (quiet < 2);
    }

    private interface Action {
        void run() throws Exception;
    }

    /**
     * Queues make no round meanwhile. Consumers that leave together ask for rounds one by one; when the queue's own
     * thread comes to them is chance, here it does so when all have left.
     */
    private void withoutRounds(Action action) throws Exception {
        List<Object> mutexes = new ArrayList<>();
        for (Destination destination : service.getBroker().getDestinationMap().values()) {
            Queue queue = destination.getDestinationStatistics() == null ? null : asQueue(destination);
            if (queue != null) {
                mutexes.add(iteratingMutex.get(queue));
            }
        }
        holding(mutexes, action);
    }

    private static void holding(List<Object> mutexes, Action action) throws Exception {
        if (mutexes.isEmpty()) {
            action.run();
            return;
        }
        synchronized (mutexes.get(0)) {
            holding(mutexes.subList(1, mutexes.size()), action);
        }
    }

    private static Queue asQueue(Destination destination) {
        Destination inner = destination;
        while (inner instanceof org.apache.activemq.broker.region.DestinationFilter filter) {
            inner = filter.getNext();
        }
        return inner instanceof Queue queue ? queue : null;
    }

    // The steps

    private ActiveMQDestination destination(JsonNode step, String key) {
        String text = step.path(key).asText(script.path("destName").asText(topic ? "T" : "Q"));
        return ActiveMQDestination.createDestination(
                text, topic ? ActiveMQDestination.TOPIC_TYPE : ActiveMQDestination.QUEUE_TYPE);
    }

    private ActiveMQConnection connection(String called, String clientId) throws Exception {
        ActiveMQConnection found = connections.get(called);
        if (found == null) {
            ActiveMQConnectionFactory factory =
                    new ActiveMQConnectionFactory("vm://" + name + "?create=false");
            factory.setWatchTopicAdvisories(false);
            factory.setDispatchAsync(false);
            factory.setAlwaysSessionAsync(false);
            factory.setAlwaysSyncSend(true);
            factory.setExceptionListener(ignored -> { });
            found = (ActiveMQConnection) factory.createConnection();
            if (clientId != null) {
                found.setClientID(clientId);
            }
            found.start();
            connections.put(called, found);
        }
        return found;
    }

    private void act(JsonNode step, ObjectNode shown) throws Exception {
        String operation = step.get("op").asText();
        Client client = clients.get(step.path("name").asText());
        if (client == null && step.has("name") && !operation.equals("consumer")) {
            shown.put("skipped", true); // the consumer was refused
            return;
        }
        switch (operation) {
            case "consumer" -> consumer(step);
            case "send" -> send(client, step);
            case "recv" -> receive(client, step, shown);
            case "ack" -> acknowledge(client, step, shown);
            case "commit", "rollback" -> {
                Session session = sessionOf(client, step);
                withoutRounds(operation.equals("commit") ? session::commit : session::rollback);
                if (client != null) {
                    settled(client);
                }
            }
            case "recover" -> {
                client.session.recover();
                settled(client);
            }
            case "close" -> {
                client.consumer.close();
                clients.remove(client.name);
            }
            case "closeSession" -> {
                withoutRounds(client.session::close);
                clients.values().removeIf(each -> each.session == client.session);
            }
            case "closeConnection" -> {
                String gone = client == null ? step.get("conn").asText() : client.connection;
                withoutRounds(connections.remove(gone)::close);
                clients.values().removeIf(each -> each.connection.equals(gone));
                left.forEach(shown.putArray("order")::add);
            }
            case "kill" -> {
                String gone = client == null ? step.get("conn").asText() : client.connection;
                withoutRounds(() -> kill(gone));
                left.forEach(shown.putArray("order")::add);
            }
            case "stop" -> client.session.getConnection().stop();
            case "start" -> client.session.getConnection().start();
            case "unsubscribe" -> {
                String called = step.get("conn").asText();
                connection(called, called).createSession(false, Session.AUTO_ACKNOWLEDGE)
                        .unsubscribe(step.get("durable").asText());
            }
            case "browse" -> browse(step, shown);
            case "sleep" -> {
                idle = true;
                Thread.sleep(step.get("ms").asLong());
                settle();
                idle = false;
            }
            case "pause", "resume", "purge", "expire", "removeGroup", "remove", "copy", "move" ->
                administer(operation, step, shown);
            case "restart" -> {
                stopping = true;
                service.stop();
                disconnect();
                stopping = false;
                Thread.sleep(step.path("ms").asLong());
                start();
            }
            default -> throw new IllegalArgumentException(operation);
        }
    }

    private void consumer(JsonNode step) throws Exception {
        Client client = new Client();
        client.name = step.get("name").asText();
        client.connection = step.path("conn").asText("connection of " + client.name);
        ActiveMQConnection connection =
                connection(client.connection, step.has("clientId") ? step.get("clientId").asText() : null);
        RedeliveryPolicy redelivery = new RedeliveryPolicy();
        redelivery.setInitialRedeliveryDelay(20);
        redelivery.setRedeliveryDelay(20);
        step.path("redelivery").fields().forEachRemaining(field ->
                IntrospectionSupport.setProperty(redelivery, field.getKey(), field.getValue().asText()));
        connection.setRedeliveryPolicy(redelivery);
        client.waits = redelivery.getInitialRedeliveryDelay() > 0 || redelivery.getRedeliveryDelay() > 0;
        connection.setOptimizeAcknowledge(step.path("optimizeAcknowledge").asBoolean(false));
        connection.setOptimizeAcknowledgeTimeOut(step.path("optimizeAcknowledgeTimeOut").asLong(300));
        connection.setMessagePrioritySupported(step.path("messagePrioritySupported").asBoolean(false));
        connection.setNonBlockingRedelivery(step.path("nonBlockingRedelivery").asBoolean(false));
        connection.setTransactedIndividualAck(step.path("transactedIndividualAck").asBoolean(false));
        int mode = switch (step.path("ack").asText("individual")) {
            case "auto" -> Session.AUTO_ACKNOWLEDGE;
            case "client" -> Session.CLIENT_ACKNOWLEDGE;
            case "dups" -> Session.DUPS_OK_ACKNOWLEDGE;
            case "transacted" -> Session.SESSION_TRANSACTED;
            default -> ActiveMQSession.INDIVIDUAL_ACKNOWLEDGE;
        };
        ActiveMQSession shared = sessions.get(step.path("session").asText());
        client.session = shared != null && !shared.isClosed()
                ? shared
                : (ActiveMQSession) connection.createSession(mode == Session.SESSION_TRANSACTED, mode);
        if (step.has("session")) {
            sessions.put(step.get("session").asText(), client.session);
        }
        StringBuilder options = new StringBuilder();
        option(options, step, "exclusive", "exclusive");
        option(options, step, "priority", "priority");
        option(options, step, "prefetch", "prefetchSize");
        option(options, step, "retroactive", "retroactive");
        option(options, step, "maximumPendingMessageLimit", "maximumPendingMessageLimit");
        ActiveMQDestination plain = destination(step, "dest");
        ActiveMQDestination optioned = options.length() == 0
                ? plain
                : ActiveMQDestination.createDestination(plain.getQualifiedName() + options, plain.getDestinationType());
        String selector = step.has("selector") ? step.get("selector").asText() : null;
        boolean noLocal = step.path("noLocal").asBoolean(false);
        naming = client.name;
        MessageListener listener = step.has("listen") ? listener(client, step.get("listen")) : null;
        try {
            client.consumer = (ActiveMQMessageConsumer) (step.has("durable")
                    ? client.session.createDurableSubscriber(
                            (ActiveMQTopic) optioned, step.get("durable").asText(), selector, noLocal)
                    : client.session.createConsumer(optioned, selector, noLocal, listener));
            if (step.has("durable") && listener != null) {
                client.consumer.setMessageListener(listener);
            }
        } finally {
            naming = null;
        }
        client.prefetch = client.consumer.getPrefetchNumber();
        clients.put(client.name, client);
        everyone.add(client);
    }

    /** fail: the numbers of messages on which it throws, failTimes each. */
    private MessageListener listener(Client client, JsonNode listen) {
        Map<Integer, Integer> failures = new ConcurrentHashMap<>();
        return message -> {
            ObjectNode entry = JSON.createObjectNode();
            boolean fails = false;
            try {
                int n = message.getIntProperty("n");
                entry.put("onMessage", n).put("by", client.name);
                entry.put("deliveryCount", message.getIntProperty("JMSXDeliveryCount"));
                client.got.put(n, message);
                for (JsonNode each : listen.path("fail")) {
                    fails |= each.asInt() == n;
                }
                fails &= failures.getOrDefault(n, 0) < listen.path("failTimes").asInt(Integer.MAX_VALUE);
                if (fails) {
                    failures.merge(n, 1, Integer::sum);
                    entry.put("threw", true);
                }
            } catch (JMSException unreadable) {
                throw new IllegalStateException(unreadable);
            }
            other.add(entry);
            events.incrementAndGet();
            if (fails) {
                throw new IllegalStateException("as the script says");
            }
        };
    }

    private static void option(StringBuilder options, JsonNode step, String key, String name) {
        if (step.has(key)) {
            options.append(options.length() == 0 ? '?' : '&').append("consumer.").append(name).append('=')
                    .append(step.get(key).asText());
        }
    }

    /** Of a consumer, or of a sender in transactions, which comes with its first step. */
    private Session sessionOf(Client client, JsonNode step) throws Exception {
        if (client != null) {
            return client.session;
        }
        String sender = step.get("sender").asText();
        if (!senders.containsKey(sender)) {
            ActiveMQConnection connection = connection("connection of sender " + sender, null);
            senders.put(sender, connection.createSession(true, Session.SESSION_TRANSACTED));
        }
        return senders.get(sender);
    }

    private void send(Client client, JsonNode step) throws Exception {
        boolean transacted = client != null || step.has("sender");
        Session session = transacted
                ? sessionOf(client, step)
                : connection(step.path("conn").asText("producer"), null)
                        .createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageProducer producer = session.createProducer(null);
        for (int i = 0; i < step.path("count").asInt(1); i++) {
            Message message = session.createTextMessage(step.path("text").asText("text"));
            message.setIntProperty("n", step.get("n").asInt() + i);
            if (step.has("group")) {
                message.setStringProperty("JMSXGroupID", step.get("group").asText());
            }
            if (step.has("seq")) {
                message.setIntProperty("JMSXGroupSeq", step.get("seq").asInt());
            }
            var properties = step.path("props").fields();
            while (properties.hasNext()) {
                var property = properties.next();
                JsonNode value = property.getValue().get("v");
                switch (property.getValue().get("t").asText()) {
                    case "int" -> message.setIntProperty(property.getKey(), value.asInt());
                    case "long" -> message.setLongProperty(property.getKey(), value.asLong());
                    case "double" -> message.setDoubleProperty(property.getKey(), value.asDouble());
                    case "boolean" -> message.setBooleanProperty(property.getKey(), value.asBoolean());
                    default -> message.setStringProperty(property.getKey(), value.asText());
                }
            }
            producer.send(
                    destination(step, "to"),
                    message,
                    step.path("persistent").asBoolean(false) ? DeliveryMode.PERSISTENT : DeliveryMode.NON_PERSISTENT,
                    step.path("priority").asInt(4),
                    step.path("ttl").asLong(0));
            settle();
        }
        producer.close();
        if (!transacted) {
            session.close();
        }
    }

    /** n: the number of a received message, or -k: the k-th received and not yet acknowledged; none: nothing is done. */
    private void acknowledge(Client client, JsonNode step, ObjectNode shown) throws Exception {
        int n = step.get("n").asInt();
        if (n < 0) {
            List<Integer> left = new ArrayList<>(client.got.keySet());
            if (left.isEmpty()) {
                shown.put("skipped", true);
                return;
            }
            n = left.get((-n - 1) % left.size());
            shown.put("n", n);
        }
        if (!client.got.containsKey(n)) {
            shown.put("skipped", true);
            return;
        }
        client.got.get(n).acknowledge();
        if (client.session.isIndividualAcknowledge()) {
            client.got.remove(n);
        } else {
            settled(client);
        }
    }

    /** What the consumers of a session received is acknowledged, or will come again. */
    private void settled(Client client) {
        for (Client each : clients.values()) {
            if (each.session == client.session) {
                each.got.clear();
            }
        }
    }

    private void receive(Client client, JsonNode step, ObjectNode shown) throws Exception {
        // What is to come has come: only a pull, and a redelivery with a delay, have to wait.
        Message message = client.prefetch == 0 || client.waits
                ? client.consumer.receive(step.path("timeout").asLong(1000))
                : client.consumer.receiveNoWait();
        if (message == null && client.prefetch != 0) {
            settle(); // taking a message may have brought another one
            message = client.consumer.receiveNoWait();
        }
        ObjectNode received = shown.putObject("received");
        if (message == null) {
            received.put("none", true);
            return;
        }
        int n = message.getIntProperty("n");
        client.got.put(n, message);
        received.put("n", n);
        if (message.getJMSRedelivered()) {
            received.put("redelivered", true);
        }
        if (message.getIntProperty("JMSXDeliveryCount") > 1) {
            received.put("deliveryCount", message.getIntProperty("JMSXDeliveryCount"));
        }
        if (message.propertyExists("JMSXGroupFirstForConsumer")
                && message.getBooleanProperty("JMSXGroupFirstForConsumer")) {
            received.put("groupFirst", true);
        }
    }

    private void kill(String called) throws Exception {
        ActiveMQConnection lost = connections.remove(called);
        String id = lost.getConnectionInfo().getConnectionId().getValue();
        lost.syncSendPacket(new FlushCommand());
        brokerSide.get(id).serviceTransportException(new IOException("killed by a script"));
        for (int i = 0; brokerSide.containsKey(id); i++) {
            if (i > 5000) {
                throw new IllegalStateException("the connection is still there");
            }
            Thread.sleep(1);
        }
        clients.values().removeIf(each -> each.connection.equals(called));
        try {
            lost.close();
        } catch (Exception expected) {
            // its transport is gone; this ends the threads of its client side
        }
    }

    private void browse(JsonNode step, ObjectNode shown) throws Exception {
        Session session = connection("browser", null).createSession(false, Session.AUTO_ACKNOWLEDGE);
        QueueBrowser browser = session.createBrowser(
                (ActiveMQQueue) destination(step, "dest"), step.has("selector") ? step.get("selector").asText() : null);
        ArrayNode seen = shown.putArray("browsed");
        for (Enumeration<?> each = browser.getEnumeration(); each.hasMoreElements(); ) {
            seen.add(((Message) each.nextElement()).getIntProperty("n"));
        }
        session.close();
    }

    /** What QueueView does. */
    private void administer(String operation, JsonNode step, ObjectNode shown) throws Exception {
        Destination found = service.getBroker().getDestinationMap().get(destination(script, "destName"));
        if (found == null) {
            return;
        }
        Queue queue = asQueue(found);
        ConnectionContext context = BrokerSupport.getConnectionContext(service.getBroker());
        String selector = step.path("selector").asText();
        switch (operation) {
            case "remove" -> shown.put("matched", queue.removeMatchingMessages(selector));
            case "copy" -> shown.put("matched",
                    queue.copyMatchingMessagesTo(context, selector, destination(step, "to"), -1));
            case "move" -> shown.put("matched",
                    queue.moveMatchingMessagesTo(context, selector, destination(step, "to")));
            case "pause" -> queue.pauseDispatch();
            case "resume" -> queue.resumeDispatch();
            case "purge" -> queue.purge();
            case "expire" -> expireMessages.invoke(queue);
            default -> queue.getMessageGroupOwners().removeGroup(step.get("group").asText());
        }
    }

    // The end

    private ObjectNode state() throws Exception {
        ObjectNode end = JSON.createObjectNode();
        Map<ActiveMQDestination, Destination> all = service.getBroker().getDestinationMap();
        if (topic) {
            ObjectNode subs = end.putObject("subs");
            for (Client client : everyone) {
                Subscription subscription = subscriptions.get(client.consumer.getConsumerId().toString());
                if (subscription == null) {
                    continue;
                }
                ObjectNode one = subs.putObject(client.name);
                one.put("pending", subscription.getPendingQueueSize());
                one.put("dispatchedUnacked", subscription.getDispatchedQueueSize());
                one.put("slow", subscription.isSlowConsumer());
                if (subscription instanceof TopicSubscription plain) {
                    one.put("discarded", plain.discarded());
                }
            }
        } else {
            Queue queue = asQueue(all.getOrDefault(destination(script, "destName"), null));
            end.put("queueSize", queue == null ? 0 : queue.getDestinationStatistics().getMessages().getCount());
            end.put("inflight", queue == null ? 0 : queue.getDestinationStatistics().getInflight().getCount());
            ObjectNode owners = JSON.createObjectNode();
            ObjectNode assigned = JSON.createObjectNode();
            if (queue != null) {
                queue.getMessageGroupOwners().getGroups().forEach(
                        (group, owner) -> owners.put(group, names.getOrDefault(owner, owner)));
                for (Client client : everyone) {
                    Subscription subscription = subscriptions.get(client.consumer.getConsumerId().toString());
                    if (subscription == null) {
                        continue;
                    }
                    long count = subscription.getConsumerInfo().getAssignedGroupCount(queue.getActiveMQDestination());
                    if (count != 0) {
                        assigned.put(client.name, count);
                    }
                }
            }
            if (!owners.isEmpty()) {
                end.set("groupOwners", owners);
            }
            if (!assigned.isEmpty()) {
                end.set("assignedGroupCount", assigned);
            }
        }
        ObjectNode letters = JSON.createObjectNode();
        all.forEach((destination, held) -> {
            if (destination.getPhysicalName().startsWith("ActiveMQ.DLQ") && asQueue(held) != null) {
                ArrayNode numbers = letters.putArray(destination.getQualifiedName());
                for (org.apache.activemq.command.Message each : asQueue(held).browse()) {
                    numbers.add(number(each));
                }
            }
        });
        if (!letters.isEmpty()) {
            end.set("dlq", letters);
        }
        ObjectNode each = end.putObject("totals");
        synchronized (totals) {
            totals.forEach((to, numbers) -> each.set(to, numbers.deepCopy()));
        }
        return end;
    }
}
