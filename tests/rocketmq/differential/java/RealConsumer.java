import com.alibaba.fastjson.JSONArray;
import com.alibaba.fastjson.JSONObject;
import java.io.ByteArrayOutputStream;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import org.apache.rocketmq.client.ClientConfig;
import org.apache.rocketmq.client.consumer.AllocateMessageQueueStrategy;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.MessageQueueListener;
import org.apache.rocketmq.client.consumer.PullCallback;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.consumer.PullStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyContext;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyContext;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListener;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragelyByCircle;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueConsistentHash;
import org.apache.rocketmq.client.consumer.store.RemoteBrokerOffsetStore;
import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.exception.OffsetNotFoundException;
import org.apache.rocketmq.client.impl.CommunicationMode;
import org.apache.rocketmq.client.impl.FindBrokerResult;
import org.apache.rocketmq.client.impl.MQAdminImpl;
import org.apache.rocketmq.client.impl.MQClientAPIImpl;
import org.apache.rocketmq.client.impl.consumer.ConsumeMessageConcurrentlyService;
import org.apache.rocketmq.client.impl.consumer.ConsumeMessageOrderlyService;
import org.apache.rocketmq.client.impl.consumer.ConsumeMessageService;
import org.apache.rocketmq.client.impl.consumer.DefaultMQPushConsumerImpl;
import org.apache.rocketmq.client.impl.consumer.ProcessQueue;
import org.apache.rocketmq.client.impl.consumer.PullAPIWrapper;
import org.apache.rocketmq.client.impl.consumer.PullMessageService;
import org.apache.rocketmq.client.impl.consumer.PullRequest;
import org.apache.rocketmq.client.impl.consumer.PullResultExt;
import org.apache.rocketmq.client.impl.consumer.RebalanceImpl;
import org.apache.rocketmq.client.impl.consumer.RebalancePushImpl;
import org.apache.rocketmq.client.impl.factory.MQClientInstance;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.ServiceState;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageAccessor;
import org.apache.rocketmq.common.message.MessageConst;
import org.apache.rocketmq.common.message.MessageDecoder;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.logging.ch.qos.logback.classic.Level;
import org.apache.rocketmq.logging.ch.qos.logback.classic.LoggerContext;
import org.apache.rocketmq.logging.ch.qos.logback.classic.spi.ILoggingEvent;
import org.apache.rocketmq.logging.ch.qos.logback.core.AppenderBase;
import org.apache.rocketmq.logging.org.slf4j.LoggerFactory;
import org.apache.rocketmq.remoting.netty.NettyClientConfig;
import org.apache.rocketmq.remoting.protocol.body.LockBatchRequestBody;
import org.apache.rocketmq.remoting.protocol.body.UnlockBatchRequestBody;
import org.apache.rocketmq.remoting.protocol.header.PullMessageRequestHeader;
import org.apache.rocketmq.remoting.protocol.header.QueryConsumerOffsetRequestHeader;
import org.apache.rocketmq.remoting.protocol.header.UpdateConsumerOffsetRequestHeader;
import org.apache.rocketmq.remoting.protocol.heartbeat.MessageModel;

/**
 * RocketMQ's own push consumer between stubs: brokers below it, threads and timers beside it. A trace rebalances, pulls,
 * answers, runs what was submitted and fires what was scheduled; queues are named topic/broker/id.
 */
final class RealConsumer implements RealClasses.Player {
    private static final String GROUP = "G";
    private static final Field MESSAGES, BATCH_QUEUE, RUN_QUEUE, TAKEN, CONSUMING, HIGHEST, TRIES, CONSUME_LOCK, FLOW,
        SPAN;
    private static MQClientInstance client;
    private static RealConsumer now;

    static {
        try {
            Class<?> batch = Class.forName(ConsumeMessageConcurrentlyService.class.getName() + "$ConsumeRequest");
            Class<?> run = Class.forName(ConsumeMessageOrderlyService.class.getName() + "$ConsumeRequest");
            MESSAGES = RealClasses.field(batch, "msgs");
            BATCH_QUEUE = RealClasses.field(batch, "messageQueue");
            RUN_QUEUE = RealClasses.field(run, "messageQueue");
            TAKEN = RealClasses.field(ProcessQueue.class, "consumingMsgOrderlyTreeMap");
            CONSUMING = RealClasses.field(ProcessQueue.class, "consuming");
            HIGHEST = RealClasses.field(ProcessQueue.class, "queueOffsetMax");
            TRIES = RealClasses.field(ProcessQueue.class, "tryUnlockTimes");
            CONSUME_LOCK = RealClasses.field(ProcessQueue.class, "consumeLock");
            FLOW = RealClasses.field(DefaultMQPushConsumerImpl.class, "queueFlowControlTimes");
            SPAN = RealClasses.field(DefaultMQPushConsumerImpl.class, "queueMaxSpanFlowControlTimes");
        } catch (ClassNotFoundException missing) {
            throw new IllegalStateException(missing);
        }
    }

    /** A listener may be under way as long as it is held; giving the queue up then need not wait 500 ms to see it. */
    private static final class ConsumeLock extends ReentrantReadWriteLock {
        private boolean held;
        private final WriteLock writing = new WriteLock(this) {
            @Override
            public boolean tryLock(long time, TimeUnit unit) throws InterruptedException {
                return !held && super.tryLock(time, unit);
            }
        };

        @Override
        public WriteLock writeLock() {
            return writing;
        }
    }

    private static final class Pending {
        final int number;
        final PullRequest request;
        final PullMessageRequestHeader sent;
        final PullCallback callback;

        Pending(int number, PullRequest request, PullMessageRequestHeader sent, PullCallback callback) {
            this.number = number;
            this.request = request;
            this.sent = sent;
            this.callback = callback;
        }
    }

    private DefaultMQPushConsumer consumer;
    private DefaultMQPushConsumerImpl impl;
    private RebalanceImpl rebalance;
    private RemoteBrokerOffsetStore store;
    private ConsumeMessageService service;
    private JSONObject world = new JSONObject();
    private String me = "C";
    private int numbers;
    private int room = -1;
    private final Map<String, Object> stored = new TreeMap<>();
    private final List<Pending> waiting = new ArrayList<>();
    private final List<Pending> outstanding = new ArrayList<>();
    private final List<Runnable> tasks = new ArrayList<>();
    private final List<Object[]> timers = new ArrayList<>();
    private final List<MessageExt> known = new ArrayList<>();
    private final List<Object> calls = new ArrayList<>();
    private final List<String> lines = new ArrayList<>();
    private JSONArray script = new JSONArray();
    private int turn;
    private ProcessQueue running;

    RealConsumer() {
        if (client == null)
            client = client();
        now = this;
    }

    // -- the edge

    private void call(Object... what) {
        calls.add(Arrays.asList(what));
    }

    private static String name(MessageQueue queue) {
        return queue.getTopic() + "/" + queue.getBrokerName() + "/" + queue.getQueueId();
    }

    private static MessageQueue queue(String name) {
        String[] parts = name.split("/");
        return new MessageQueue(parts[0], parts[1], Integer.parseInt(parts[2]));
    }

    private boolean among(String list, Object item) {
        JSONArray found = world.getJSONArray(list);
        return found != null && found.contains(item);
    }

    private static long asked(Object value) throws MQClientException {
        if (value instanceof Number)
            return ((Number) value).longValue();
        throw new MQClientException("x", null);
    }

    private static String place(String topic, String broker, int id) {
        return topic + "/" + broker + "/" + id;
    }

    private static MQClientInstance client() {
        ClientConfig config = new ClientConfig();
        MQClientAPIImpl api = new MQClientAPIImpl(new NettyClientConfig(), null, null, config) {
            @Override
            public long queryConsumerOffset(String address, QueryConsumerOffsetRequestHeader header, long timeout)
                throws OffsetNotFoundException, MQBrokerException {
                String name = place(header.getTopic(), address, header.getQueueId());
                now.call("query", name);
                Object offset = now.stored.get(name);
                if (offset == null)
                    throw new OffsetNotFoundException();
                if (!(offset instanceof Number))
                    throw new MQBrokerException(1, "down");
                return ((Number) offset).longValue();
            }

            @Override
            public void updateConsumerOffsetOneway(String address, UpdateConsumerOffsetRequestHeader header,
                long timeout) {
                String name = place(header.getTopic(), address, header.getQueueId());
                now.call("update", name, header.getCommitOffset());
                if (now.stored.get(name) instanceof String)
                    throw new IllegalStateException("down");
                now.stored.put(name, header.getCommitOffset());
            }

            @Override
            public Set<MessageQueue> lockBatchMQ(String address, LockBatchRequestBody body, long timeout)
                throws MQBrokerException {
                Set<MessageQueue> granted = new HashSet<>();
                for (MessageQueue queue : body.getMqSet())
                    if (!now.among("denied", name(queue)))
                        granted.add(queue);
                now.call("lock", names(body.getMqSet()), now.among("silent", address) ? null : names(granted));
                if (now.among("silent", address))
                    throw new MQBrokerException(1, "down");
                return granted;
            }

            @Override
            public void unlockBatchMQ(String address, UnlockBatchRequestBody body, long timeout, boolean oneway)
                throws MQBrokerException {
                now.call("unlock", names(body.getMqSet()));
                if (now.among("silent", address))
                    throw new MQBrokerException(1, "down");
            }

            @Override
            public void consumerSendMessageBack(String address, String broker, MessageExt message, String group,
                int level, long timeout, int most) throws MQBrokerException {
                now.call("back", message.getTopic(), message.getProperty("n"), level, most, message.getReconsumeTimes());
                if (now.among("back_fails", (int) Math.floorMod(message.getQueueOffset(), 8L)))
                    throw new MQBrokerException(1, "x");
            }

            @Override
            public PullResult pullMessage(String address, PullMessageRequestHeader header, long timeout,
                CommunicationMode mode, PullCallback callback) throws MQBrokerException {
                String name = place(header.getTopic(), header.getBrokerName(), header.getQueueId());
                now.call("pull", name, header.getQueueOffset(), header.getMaxMsgNums(), header.getMaxMsgBytes(),
                    header.getSysFlag(), header.getCommitOffset(), header.getSuspendTimeoutMillis(), timeout,
                    header.getSubscription(), header.getExpressionType());
                if (now.among("silent", header.getBrokerName()))
                    throw new MQBrokerException(1, "down");
                now.outstanding.add(new Pending(now.numbers++, null, header, callback));
                return null;
            }
        };
        DefaultMQProducer producer = new DefaultMQProducer("P") {
            @Override
            public SendResult send(Message message) throws MQClientException {
                now.call("send", message.getTopic(), properties(message), message.getFlag());
                if (now.among("send_fails", (int) Math.floorMod(Long.parseLong(message.getProperty("n")), 8L)))
                    throw new MQClientException("x", null);
                return new SendResult();
            }
        };
        MQClientInstance made = new MQClientInstance(config, 0, "C") {
            private final PullMessageService pulls = new PullMessageService(this) {
                @Override
                public void executePullRequestLater(PullRequest request, long delay) {
                    now.call("later", name(request.getMessageQueue()), delay);
                    now.waiting.add(new Pending(now.numbers++, request, null, null));
                }

                @Override
                public void executePullRequestImmediately(PullRequest request) {
                    now.call("at once", name(request.getMessageQueue()));
                    now.waiting.add(new Pending(now.numbers++, request, null, null));
                }

                @Override
                public void executeTask(Runnable task) {
                    task.run();
                }
            };
            private final MQAdminImpl admin = new MQAdminImpl(this) {
                @Override
                public long maxOffset(MessageQueue queue) throws MQClientException {
                    now.call("max", name(queue));
                    return asked(now.world.get("max"));
                }

                @Override
                public long searchOffset(MessageQueue queue, long timestamp) throws MQClientException {
                    now.call("search", name(queue));
                    return asked(now.world.get("search"));
                }
            };

            @Override
            public String getClientId() {
                return now == null ? "C" : now.me;
            }

            @Override
            public FindBrokerResult findBrokerAddressInSubscribe(String broker, long id, boolean only) {
                return new FindBrokerResult(broker, false, Integer.MAX_VALUE);
            }

            @Override
            public String findBrokerAddressInPublish(String broker) {
                return broker;
            }

            @Override
            public String getBrokerNameFromMessageQueue(MessageQueue queue) {
                return queue.getBrokerName();
            }

            @Override
            public boolean updateTopicRouteInfoFromNameServer(String topic) {
                return false;
            }

            @Override
            public List<String> findConsumerIdList(String topic, String group) {
                JSONArray clients = now.world.getJSONArray("clients");
                return clients == null ? null : new ArrayList<>(clients.toJavaList(String.class));
            }

            @Override
            public boolean sendHeartbeatToAllBrokerWithLockV2(boolean rebalance) {
                if (now.impl.getServiceState() == ServiceState.RUNNING)
                    now.call("heartbeat");
                return true;
            }

            @Override
            public boolean sendHeartbeatToAllBrokerWithLock() {
                now.call("heartbeat");
                return true;
            }

            @Override
            public void rebalanceImmediately() {
                now.call("rebalance");
            }

            @Override
            public void rebalanceLater(long delay) {
                now.call("rebalance", delay);
            }

            @Override
            public synchronized void unregisterConsumer(String group) {
                now.call("unregister", group);
            }

            @Override
            public void shutdown() {
            }

            @Override
            public PullMessageService getPullMessageService() {
                return pulls;
            }

            @Override
            public MQAdminImpl getMQAdminImpl() {
                return admin;
            }

            @Override
            public MQClientAPIImpl getMQClientAPIImpl() {
                return api;
            }

            @Override
            public DefaultMQProducer getDefaultMQProducer() {
                return producer;
            }
        };
        hear();
        return made;
    }

    /** Whether a queue that was given up so many ms after its lock was granted is let go while its listener runs. */
    private boolean forced(long age) throws ReflectiveOperationException {
        Method remove = RebalancePushImpl.class.getDeclaredMethod("tryRemoveOrderMessageQueue", MessageQueue.class,
            ProcessQueue.class);
        remove.setAccessible(true);
        int called = calls.size(), logged = lines.size();
        long began;
        boolean gone;
        do { // within one ms
            ProcessQueue queue = new ProcessQueue();
            ConsumeLock lock = new ConsumeLock();
            lock.held = true;
            CONSUME_LOCK.set(queue, lock);
            queue.setDropped(true);
            began = System.currentTimeMillis();
            queue.setLastLockTimestamp(began - age);
            gone = (Boolean) remove.invoke(rebalance, queue("Limit/a/0"), queue);
        } while (began != System.currentTimeMillis());
        calls.subList(called, calls.size()).clear();
        lines.subList(logged, lines.size()).clear();
        return gone;
    }

    /** What the client logs on this thread goes to the trace at hand; its rates of each minute come from another one. */
    private static void hear() {
        Thread player = Thread.currentThread();
        LoggerContext context = (LoggerContext) LoggerFactory.getILoggerFactory();
        AppenderBase<ILoggingEvent> appender = new AppenderBase<ILoggingEvent>() {
            @Override
            protected void append(ILoggingEvent event) {
                if (now != null && Thread.currentThread() == player)
                    now.lines.add(event.getLevel() + " " + event.getFormattedMessage());
            }
        };
        appender.setContext(context);
        appender.start();
        org.apache.rocketmq.logging.ch.qos.logback.classic.Logger logger =
            context.getLogger("org.apache.rocketmq.client");
        logger.setAdditive(false);
        logger.setLevel(Level.INFO);
        logger.addAppender(appender);
    }

    /** Another player's turn: nothing is logged. */
    static void leave() {
        now = null;
    }

    private static List<String> names(Iterable<MessageQueue> queues) {
        List<String> found = new ArrayList<>();
        for (MessageQueue queue : queues)
            found.add(name(queue));
        Collections.sort(found);
        return found;
    }

    private static Map<String, String> properties(Message message) {
        Map<String, String> found = new TreeMap<>(message.getProperties());
        found.remove(MessageConst.PROPERTY_CONSUME_START_TIMESTAMP);
        found.remove(MessageConst.PROPERTY_WAIT_STORE_MSG_OK);
        found.remove(MessageConst.PROPERTY_ORIGIN_MESSAGE_ID);
        return found;
    }

    // -- the consumer

    private static AllocateMessageQueueStrategy strategy(String name) {
        if ("AVG_BY_CIRCLE".equals(name))
            return new AllocateMessageQueueAveragelyByCircle();
        if ("CONSISTENT_HASH".equals(name))
            return new AllocateMessageQueueConsistentHash();
        return new AllocateMessageQueueAveragely();
    }

    private void configure(JSONObject config) throws Exception {
        consumer = new DefaultMQPushConsumer(GROUP);
        impl = consumer.getDefaultMQPushConsumerImpl();
        rebalance = impl.getRebalanceImpl();
        me = config.getString("me");
        boolean orderly = config.getBooleanValue("orderly");
        MessageModel model = config.getBooleanValue("broadcasting") ? MessageModel.BROADCASTING : MessageModel.CLUSTERING;
        consumer.setMessageModel(model);
        consumer.setConsumeFromWhere(ConsumeFromWhere.valueOf(config.getString("where")));
        consumer.setAllocateMessageQueueStrategy(strategy(config.getString("strategy")));
        consumer.setPostSubscriptionWhenPull(config.getBooleanValue("post"));
        consumer.setMessageQueueListener(new MessageQueueListener() {
            @Override
            public void messageQueueChanged(String topic, Set<MessageQueue> all, Set<MessageQueue> mine) {
                call("changed", topic, names(all), names(mine));
            }
        });
        for (String name : config.getJSONObject("set").keySet())
            set(name, config.getJSONObject("set").getIntValue(name));
        MessageListener listener = orderly ? (MessageListenerOrderly) this::inOrder
            : (MessageListenerConcurrently) this::concurrently;
        consumer.registerMessageListener(listener);
        store = new RemoteBrokerOffsetStore(client, GROUP);
        impl.setOffsetStore(store);
        impl.setmQClientFactory(client);
        RealClasses.field(DefaultMQPushConsumerImpl.class, "pullAPIWrapper")
            .set(impl, new PullAPIWrapper(client, GROUP, false));
        impl.setConsumeOrderly(orderly);
        rebalance.setConsumerGroup(GROUP);
        rebalance.setMessageModel(model);
        rebalance.setAllocateMessageQueueStrategy(consumer.getAllocateMessageQueueStrategy());
        rebalance.setmQClientFactory(client);
        service = orderly ? new ConsumeMessageOrderlyService(impl, (MessageListenerOrderly) listener)
            : new ConsumeMessageConcurrentlyService(impl, (MessageListenerConcurrently) listener);
        RealClasses.field(service.getClass(), "consumeExecutor").set(service,
            new ThreadPoolExecutor(1, 1, 1, TimeUnit.MINUTES, new LinkedBlockingQueue<>()) {
                @Override
                public Future<?> submit(Runnable task) {
                    if (room == 0)
                        throw new RejectedExecutionException();
                    if (room > 0)
                        room--;
                    tasks.add(task);
                    return null;
                }
            });
        RealClasses.field(service.getClass(), "scheduledExecutorService").set(service,
            new ScheduledThreadPoolExecutor(1) {
                @Override
                public ScheduledFuture<?> schedule(Runnable task, long delay, TimeUnit unit) {
                    timers.add(new Object[] {unit.toMillis(delay), task});
                    return null;
                }
            });
        impl.setConsumeMessageService(service);
        impl.setServiceState(ServiceState.RUNNING);
        consumer.subscribe("T0", config.getString("tags"));
        consumer.subscribe("T1", "*");
        if (model == MessageModel.CLUSTERING)
            consumer.subscribe("%RETRY%" + GROUP, "*");
    }

    private void set(String name, int value) {
        switch (name) {
            case "pullThresholdForQueue":
                consumer.setPullThresholdForQueue(value);
                break;
            case "pullThresholdSizeForQueue":
                consumer.setPullThresholdSizeForQueue(value);
                break;
            case "consumeConcurrentlyMaxSpan":
                consumer.setConsumeConcurrentlyMaxSpan(value);
                break;
            case "pullThresholdForTopic":
                consumer.setPullThresholdForTopic(value);
                break;
            case "pullThresholdSizeForTopic":
                consumer.setPullThresholdSizeForTopic(value);
                break;
            case "pullInterval":
                consumer.setPullInterval(value);
                break;
            case "pullBatchSize":
                consumer.setPullBatchSize(value);
                break;
            case "consumeMessageBatchMaxSize":
                consumer.setConsumeMessageBatchMaxSize(value);
                break;
            case "maxReconsumeTimes":
                consumer.setMaxReconsumeTimes(value);
                break;
            case "suspendCurrentQueueTimeMillis":
                consumer.setSuspendCurrentQueueTimeMillis(value);
                break;
            default:
                throw new IllegalArgumentException(name);
        }
    }

    // -- the listener

    private JSONObject heard(List<MessageExt> messages) {
        List<Object> got = new ArrayList<>();
        for (MessageExt message : messages)
            got.add(Arrays.asList(message.getTopic(), message.getQueueOffset(), message.getReconsumeTimes(),
                message.getBrokerName(), message.getQueueId(), properties(message),
                message.getProperty(MessageConst.PROPERTY_CONSUME_START_TIMESTAMP) != null));
        call("listen", got);
        JSONObject answer = script.isEmpty() ? new JSONObject() : script.getJSONObject(turn++ % script.size());
        if (answer.getBooleanValue("drop"))
            running.setDropped(true);
        if (answer.getBooleanValue("unlock"))
            running.setLocked(false);
        if (answer.getBooleanValue("expire"))
            running.setLastLockTimestamp(System.currentTimeMillis() - 31000);
        if ("throw".equals(answer.getString("status")))
            throw new IllegalStateException("boom");
        if ("error".equals(answer.getString("status")))
            throw new StackOverflowError();
        return answer;
    }

    private ConsumeConcurrentlyStatus concurrently(List<MessageExt> messages, ConsumeConcurrentlyContext context) {
        JSONObject answer = heard(messages);
        if (answer.get("ack") != null)
            context.setAckIndex(answer.getIntValue("ack"));
        context.setDelayLevelWhenNextConsume(answer.getIntValue("delay"));
        String status = answer.getString("status");
        return status == null ? null : ConsumeConcurrentlyStatus.valueOf(status);
    }

    private ConsumeOrderlyStatus inOrder(List<MessageExt> messages, ConsumeOrderlyContext context) {
        JSONObject answer = heard(messages);
        context.setAutoCommit(!answer.getBooleanValue("manual"));
        if (answer.get("suspend") != null)
            context.setSuspendCurrentQueueTimeMillis(answer.getLongValue("suspend"));
        String status = answer.getString("status");
        return status == null ? null : ConsumeOrderlyStatus.valueOf(status);
    }

    // -- operations

    private static <T> T nth(List<T> list, int number) {
        return list.isEmpty() ? null : list.get(number % list.size());
    }

    private static <T> T take(List<T> list, int number) {
        return list.isEmpty() ? null : list.remove(number % list.size());
    }

    private static Pending takePull(List<Pending> list, int number) {
        list.sort((a, b) -> {
            int order = place(a).compareTo(place(b));
            return order == 0 ? Integer.compare(a.number, b.number) : order;
        });
        return take(list, number);
    }

    private static String place(Pending pull) {
        if (pull.request != null)
            return name(pull.request.getMessageQueue());
        return place(pull.sent.getTopic(), pull.sent.getBrokerName(), pull.sent.getQueueId());
    }

    private ProcessQueue chosen(int number) {
        String name = nth(names(rebalance.getProcessQueueTable().keySet()), number);
        return name == null ? null : rebalance.getProcessQueueTable().get(queue(name));
    }

    private byte[] encoded(PullMessageRequestHeader sent, JSONArray rows) throws Exception {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        for (Object item : rows) {
            JSONArray row = (JSONArray) item;
            MessageExt message = new MessageExt();
            message.setTopic(sent.getTopic());
            message.setQueueOffset(sent.getQueueOffset() + row.getLongValue(0));
            message.setBody(RealClasses.body(row.getIntValue(1)));
            if (row.getString(2) != null)
                message.setTags(row.getString(2));
            message.setReconsumeTimes(row.getIntValue(3));
            message.setBornHost(new InetSocketAddress("127.0.0.1", 1));
            message.setStoreHost(new InetSocketAddress("127.0.0.1", 2));
            message.putUserProperty("n", String.valueOf(message.getQueueOffset()));
            if (row.getBooleanValue(4))
                MessageAccessor.putProperty(message, MessageConst.PROPERTY_RETRY_TOPIC, "T0");
            bytes.write(MessageDecoder.encode(message, false));
        }
        return bytes.toByteArray();
    }

    private Object answer(Pending pull, JSONObject answer) throws Exception {
        String status = answer.getString("status");
        if (status == null) {
            pull.callback.onSuccess(null);
        } else if (status.equals("broker")) {
            pull.callback.onException(new MQBrokerException(answer.getIntValue("code"), "x"));
        } else if (status.equals("client")) {
            pull.callback.onException(new MQClientException("x", null));
        } else {
            long base = pull.sent.getQueueOffset();
            JSONArray rows = answer.getJSONArray("rows");
            PullResultExt result = new PullResultExt(PullStatus.valueOf(status), base + answer.getLongValue("next"),
                answer.getLongValue("min"), answer.getLongValue("max"), null, 0, encoded(pull.sent, rows));
            pull.callback.onSuccess(result);
            if (result.getMsgFoundList() != null)
                known.addAll(result.getMsgFoundList());
        }
        return null;
    }

    @Override
    public Object play(JSONArray operation) throws Exception {
        now = this;
        calls.clear();
        lines.clear();
        String name = operation.getString(0);
        if (name.equals("config")) {
            configure(operation.getJSONObject(1));
            calls.clear();
            lines.clear();
            return null;
        }
        if (consumer == null)
            return null;
        int number = operation.size() > 1 && operation.get(1) instanceof Integer ? operation.getIntValue(1) : 0;
        switch (name) {
            case "world": {
                JSONObject change = operation.getJSONObject(1);
                world.putAll(change);
                JSONObject offsets = change.getJSONObject("stored");
                for (String each : offsets == null ? Collections.<String>emptySet() : offsets.keySet())
                    if (offsets.get(each) == null)
                        stored.remove(each);
                    else
                        stored.put(each, offsets.get(each));
                JSONObject topics = change.getJSONObject("topics");
                for (String each : topics == null ? Collections.<String>emptySet() : topics.keySet()) {
                    Set<MessageQueue> queues = new HashSet<>();
                    if (topics.get(each) == null) {
                        rebalance.getTopicSubscribeInfoTable().remove(each);
                        continue;
                    }
                    for (Object queue : topics.getJSONArray(each))
                        queues.add(queue((String) queue));
                    rebalance.getTopicSubscribeInfoTable().put(each, queues);
                }
                return null;
            }
            case "set":
                set(operation.getString(1), operation.getIntValue(2));
                return null;
            case "rebalance":
                return impl.tryRebalance();
            case "pull": {
                Pending pull = takePull(waiting, number);
                if (pull != null)
                    impl.pullMessage(pull.request);
                return null;
            }
            case "answer": {
                Pending pull = takePull(outstanding, number);
                return pull == null ? null : answer(pull, operation.getJSONObject(2));
            }
            case "run": {
                Runnable task = take(tasks, number);
                script = operation.getJSONArray(2);
                turn = 0;
                if (task != null) {
                    running = (ProcessQueue) RealClasses.field(task.getClass(), "processQueue").get(task);
                    task.run();
                }
                return null;
            }
            case "fire": {
                Object[] timer = take(timers, number);
                try {
                    if (timer != null)
                        ((Runnable) timer[1]).run();
                } catch (RejectedExecutionException full) {
                    // Stays in the scheduler's Future.
                }
                return null;
            }
            case "lock_all":
                rebalance.lockAll();
                return null;
            case "unlock_all":
                rebalance.unlockAll(false);
                return null;
            case "clean": {
                if (service instanceof ConsumeMessageConcurrentlyService) {
                    Method clean = ConsumeMessageConcurrentlyService.class.getDeclaredMethod("cleanExpireMsg");
                    clean.setAccessible(true);
                    clean.invoke(service);
                }
                return null;
            }
            case "stamp": {
                MessageExt message = nth(known, number);
                if (message != null)
                    MessageAccessor.setConsumeStartTimeStamp(message,
                        String.valueOf(System.currentTimeMillis() - operation.getLongValue(2)));
                return null;
            }
            case "persist":
                impl.persistConsumerOffset();
                return null;
            case "suspend":
                impl.suspend();
                return null;
            case "resume":
                impl.resume();
                return null;
            case "subscribe":
                consumer.subscribe(operation.getString(1), operation.getString(2));
                return null;
            case "unsubscribe":
                consumer.unsubscribe(operation.getString(1));
                return null;
            case "where":
                return rebalance.computePullFromWhereWithException(queue(operation.getString(1)));
            case "room":
                room = number;
                return null;
            case "age": {
                ProcessQueue queue = chosen(number);
                long then = System.currentTimeMillis() - operation.getLongValue(3);
                if (queue != null && operation.getString(2).equals("lock"))
                    queue.setLastLockTimestamp(then);
                else if (queue != null)
                    queue.setLastPullTimestamp(then);
                return null;
            }
            case "force":
                return forced(operation.getLongValue(1));
            case "mark": {
                ProcessQueue queue = chosen(number);
                boolean value = operation.getBooleanValue(3);
                if (queue != null && operation.getString(2).equals("locked"))
                    queue.setLocked(value);
                else if (queue != null)
                    queue.setDropped(value);
                return null;
            }
            case "hold": {
                ProcessQueue queue = chosen(number);
                if (queue != null) {
                    ConsumeLock lock = new ConsumeLock();
                    lock.held = operation.getBooleanValue(2);
                    CONSUME_LOCK.set(queue, lock);
                }
                return null;
            }
            default:
                impl.shutdown();
                outstanding.clear();
                tasks.clear();
                timers.clear();
                return null;
        }
    }

    private Object described(MessageQueue queue, ProcessQueue held) throws Exception {
        return Arrays.asList(name(queue), held.getMsgCount().get(), held.getMsgSize().get(), HIGHEST.getLong(held),
            held.getMsgAccCnt(), CONSUMING.getBoolean(held), held.isDropped(), held.isLocked(),
            ((AtomicLong) TRIES.get(held)).get(),
            new ArrayList<>(held.getMsgTreeMap().keySet()), new ArrayList<>(((TreeMap<?, ?>) TAKEN.get(held)).keySet()));
    }

    private Object described(Runnable task) throws Exception {
        if (task.getClass().getName().startsWith(ConsumeMessageOrderlyService.class.getName()))
            return Arrays.asList(name((MessageQueue) RUN_QUEUE.get(task)), null);
        List<Object> messages = new ArrayList<>();
        for (Object message : (List<?>) MESSAGES.get(task))
            messages.add(Arrays.asList(((MessageExt) message).getQueueOffset(),
                ((MessageExt) message).getReconsumeTimes()));
        return Arrays.asList(name((MessageQueue) BATCH_QUEUE.get(task)), messages);
    }

    @Override
    public Object state() throws Exception {
        if (consumer == null)
            return null;
        TreeMap<String, Object> table = new TreeMap<>();
        for (Map.Entry<MessageQueue, ProcessQueue> entry : rebalance.getProcessQueueTable().entrySet())
            table.put(name(entry.getKey()), described(entry.getKey(), entry.getValue()));
        List<String> pulls = new ArrayList<>();
        for (Pending pull : waiting)
            pulls.add(place(pull) + " " + pull.request.getNextOffset() + " " + pull.request.isPreviouslyLocked());
        Collections.sort(pulls);
        List<Object> submitted = new ArrayList<>(), delays = new ArrayList<>();
        for (Runnable task : tasks)
            submitted.add(described(task));
        for (Object[] timer : timers)
            delays.add(timer[0]);
        TreeMap<String, Object> offsets = new TreeMap<>();
        for (Map.Entry<MessageQueue, Long> entry : store.cloneOffsetTable(null).entrySet())
            offsets.put(name(entry.getKey()), entry.getValue());
        return Arrays.asList(new ArrayList<>(table.values()), pulls, outstanding.size(), submitted, delays, offsets,
            new ArrayList<>(calls), new ArrayList<>(lines), FLOW.getLong(impl), SPAN.getLong(impl),
            consumer.getPullThresholdForQueue(), consumer.getPullThresholdSizeForQueue(), impl.isPause());
    }
}
