import com.alibaba.fastjson.JSON;
import com.alibaba.fastjson.JSONArray;
import com.alibaba.fastjson.JSONObject;
import com.alibaba.fastjson.serializer.SerializerFeature;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.rocketmq.client.ClientConfig;
import org.apache.rocketmq.client.consumer.AllocateMessageQueueStrategy;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMachineRoomNearby;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragelyByCircle;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueByConfig;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueByMachineRoom;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueConsistentHash;
import org.apache.rocketmq.client.consumer.store.ControllableOffset;
import org.apache.rocketmq.client.consumer.store.ReadOffsetType;
import org.apache.rocketmq.client.consumer.store.RemoteBrokerOffsetStore;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.exception.OffsetNotFoundException;
import org.apache.rocketmq.client.impl.FindBrokerResult;
import org.apache.rocketmq.client.impl.MQClientAPIImpl;
import org.apache.rocketmq.client.impl.consumer.ProcessQueue;
import org.apache.rocketmq.client.impl.factory.MQClientInstance;
import org.apache.rocketmq.common.message.MessageAccessor;
import org.apache.rocketmq.common.message.MessageConst;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.netty.NettyClientConfig;
import org.apache.rocketmq.remoting.protocol.body.ProcessQueueInfo;
import org.apache.rocketmq.remoting.protocol.header.QueryConsumerOffsetRequestHeader;
import org.apache.rocketmq.remoting.protocol.header.UpdateConsumerOffsetRequestHeader;

/**
 * RocketMQ's own client classes over stdin and stdout: {"op": "play", "traces": [{"kind", "ops"}]} a line in, {"answers":
 * [[answer]]} a line out. An operation is a list, its name first; an answer is [result or {"class", "text"}, state].
 */
public final class RealClasses {
    /** Plays the operations of one trace. */
    interface Player {
        Object play(JSONArray operation) throws Exception;

        Object state() throws Exception;
    }

    private static final Map<Integer, byte[]> BODIES = new HashMap<>();

    static byte[] body(int size) {
        return BODIES.computeIfAbsent(size, byte[]::new);
    }

    static Field field(Class<?> owner, String name) {
        try {
            Field found = owner.getDeclaredField(name);
            found.setAccessible(true);
            return found;
        } catch (NoSuchFieldException missing) {
            throw new IllegalStateException(missing);
        }
    }

    private static final class Queue implements Player {
        private static final Field CONSUMING = field(ProcessQueue.class, "consuming");
        private static final Field HIGHEST = field(ProcessQueue.class, "queueOffsetMax");
        private static final Field TAKEN = field(ProcessQueue.class, "consumingMsgOrderlyTreeMap");
        private static final Field CONSUMED = field(ProcessQueue.class, "lastConsumeTimestamp");
        private final ProcessQueue queue = new ProcessQueue();
        private final Map<MessageExt, Integer> serials = new IdentityHashMap<>();
        private final List<MessageExt> known = new ArrayList<>();

        Queue() {
            queue.setLastPullTimestamp(0);
            queue.setLastLockTimestamp(0);
        }

        /** A row is [offset, body size or null] or, with MAX_OFFSET or null, [offset, body size, text]. */
        private List<MessageExt> messages(JSONArray rows) {
            List<MessageExt> made = new ArrayList<>();
            for (Object item : rows) {
                JSONArray row = (JSONArray) item;
                MessageExt message = new MessageExt();
                message.setQueueOffset(row.getLongValue(0));
                message.setBody(row.get(1) == null ? null : body(row.getIntValue(1)));
                if (row.size() > 2 && row.get(2) != null)
                    MessageAccessor.putProperty(message, MessageConst.PROPERTY_MAX_OFFSET, row.getString(2));
                serials.put(message, serials.size());
                known.add(message);
                made.add(message);
            }
            return made;
        }

        @Override
        public Object play(JSONArray operation) throws Exception {
            CONSUMED.setLong(queue, 0);
            switch (operation.getString(0)) {
                case "put":
                    return queue.putMessage(messages(operation.getJSONArray(1)));
                case "remove":
                    return queue.removeMessage(messages(operation.getJSONArray(1)));
                case "take": {
                    List<Object> taken = new ArrayList<>();
                    for (MessageExt message : queue.takeMessages(operation.getIntValue(1)))
                        taken.add(serials.get(message));
                    return taken;
                }
                case "commit":
                    return queue.commit();
                case "rollback":
                    queue.rollback();
                    return null;
                case "again":
                    queue.makeMessageToConsumeAgain(messages(operation.getJSONArray(1)));
                    return null;
                case "clear":
                    queue.clear();
                    return null;
                case "contains":
                    return queue.containsMessage(
                        operation.get(1) == null ? null : messages(operation.getJSONArray(1)).get(0));
                case "expire":
                    return expire(operation.getJSONArray(1), operation.getLongValue(2), operation.getJSONArray(3));
                case "set":
                    return set(operation.getString(1), operation.getLongValue(2));
                case "lock_expired":
                case "pull_expired":
                    return expired(operation.getString(0).equals("lock_expired"), operation.getLongValue(1));
                default:
                    return info();
            }
        }

        /** starts: [number of a message, age in ms or a text]; the result: what is sent back, or tried to. */
        private Object expire(JSONArray starts, long minutes, JSONArray fails) {
            long now = System.currentTimeMillis();
            Set<Long> failing = new HashSet<>();
            for (int i = 0; i < fails.size(); i++)
                failing.add(fails.getLong(i));
            for (Object item : starts) {
                JSONArray row = (JSONArray) item;
                if (row.getIntValue(0) < known.size())
                    MessageAccessor.setConsumeStartTimeStamp(known.get(row.getIntValue(0)),
                        row.get(1) instanceof String ? row.getString(1) : String.valueOf(now - row.getLongValue(1)));
            }
            List<Object> sent = new ArrayList<>();
            queue.cleanExpiredMsg(new DefaultMQPushConsumer("G") {
                @Override
                public boolean isConsumeOrderly() {
                    return false;
                }

                @Override
                public long getConsumeTimeout() {
                    return minutes;
                }

                @Override
                public void sendMessageBack(MessageExt message, int delayLevel) throws MQClientException {
                    sent.add(serials.get(message));
                    if (failing.contains(message.getQueueOffset()))
                        throw new MQClientException("fails", null);
                }
            });
            return sent;
        }

        private Object set(String name, long value) {
            if (name.equals("dropped"))
                queue.setDropped(value != 0);
            else if (name.equals("locked"))
                queue.setLocked(value != 0);
            else
                queue.incTryUnlockTimes();
            return null;
        }

        /** Whether what happened so many ms ago, to the ms, is too long ago: the lock or the last pull. */
        private boolean expired(boolean lock, long age) {
            long began;
            boolean old;
            do {
                began = System.currentTimeMillis();
                queue.setLastLockTimestamp(began - age);
                queue.setLastPullTimestamp(began - age);
                old = lock ? queue.isLockExpired() : queue.isPullExpired();
            } while (began != System.currentTimeMillis());
            queue.setLastLockTimestamp(0);
            queue.setLastPullTimestamp(0);
            return old;
        }

        private Object info() {
            ProcessQueueInfo info = new ProcessQueueInfo();
            queue.fillProcessQueueInfo(info);
            return Arrays.asList(info.getCommitOffset(), info.getCachedMsgMinOffset(), info.getCachedMsgMaxOffset(),
                info.getCachedMsgCount(), info.getCachedMsgSizeInMiB(), info.getTransactionMsgMinOffset(),
                info.getTransactionMsgMaxOffset(), info.getTransactionMsgCount(), info.isLocked(),
                info.getTryUnlockTimes(), info.getLastLockTimestamp(), info.isDroped(), info.getLastPullTimestamp());
        }

        @Override
        public Object state() throws Exception {
            return Arrays.asList(queue.getMsgCount().get(), queue.getMsgSize().get(), HIGHEST.getLong(queue),
                CONSUMING.getBoolean(queue), queue.getMsgAccCnt(), queue.getMaxSpan(), queue.hasTempMessage(),
                CONSUMED.getLong(queue) != 0, new ArrayList<>(queue.getMsgTreeMap().keySet()),
                new ArrayList<>(((TreeMap<?, ?>) TAKEN.get(queue)).keySet()));
        }
    }

    /** Each operation is [strategy, config, client id, queues, client ids]; the result is positions in the queues. */
    private static final class Allocation implements Player {
        private static List<MessageQueue> queues(JSONArray rows) {
            if (rows == null)
                return null;
            List<MessageQueue> made = new ArrayList<>();
            for (Object item : rows) {
                JSONArray row = (JSONArray) item;
                made.add(new MessageQueue(row.getString(0), row.getString(1), row.getIntValue(2)));
            }
            return made;
        }

        private static String room(String name) {
            return name.substring(0, Math.max(0, name.indexOf('-')));
        }

        private static AllocateMessageQueueStrategy strategy(String name, JSONObject config,
            List<MessageQueue> configured) {
            switch (name) {
                case "AVG":
                    return new AllocateMessageQueueAveragely();
                case "AVG_BY_CIRCLE":
                    return new AllocateMessageQueueAveragelyByCircle();
                case "CONFIG":
                    AllocateMessageQueueByConfig byConfig = new AllocateMessageQueueByConfig();
                    byConfig.setMessageQueueList(configured);
                    return byConfig;
                case "MACHINE_ROOM":
                    AllocateMessageQueueByMachineRoom byRoom = new AllocateMessageQueueByMachineRoom();
                    if (config.get("rooms") != null)
                        byRoom.setConsumeridcs(new HashSet<>(config.getJSONArray("rooms").toJavaList(String.class)));
                    return byRoom;
                case "CONSISTENT_HASH":
                    return new AllocateMessageQueueConsistentHash(config.getIntValue("nodes"));
                default:
                    return new AllocateMachineRoomNearby(
                        config.get("inner") == null ? null : strategy(config.getString("inner"), config, configured),
                        new AllocateMachineRoomNearby.MachineRoomResolver() {
                            @Override
                            public String brokerDeployIn(MessageQueue queue) {
                                return room(queue.getBrokerName());
                            }

                            @Override
                            public String consumerDeployIn(String clientId) {
                                return room(clientId);
                            }
                        });
            }
        }

        @Override
        public Object play(JSONArray operation) {
            JSONObject config = operation.getJSONObject(1);
            List<MessageQueue> all = queues(operation.getJSONArray(3));
            List<MessageQueue> configured = queues(config.getJSONArray("queues"));
            List<String> clients =
                operation.get(4) == null ? null : operation.getJSONArray(4).toJavaList(String.class);
            Map<MessageQueue, Integer> places = new IdentityHashMap<>();
            for (List<MessageQueue> each : Arrays.asList(all, configured))
                for (int i = 0; each != null && i < each.size(); i++)
                    places.put(each.get(i), each == all ? i : -1 - i);
            List<MessageQueue> own = strategy(operation.getString(0), config, configured)
                .allocate("G", operation.getString(2), all, clients);
            if (own == null)
                return null;
            List<Object> found = new ArrayList<>();
            for (MessageQueue queue : own)
                found.add(places.get(queue));
            return found;
        }

        @Override
        public Object state() {
            return null;
        }
    }

    /** Brokers of one trace: a queue is a number, its broker's offset may be set or its broker be down. */
    private static final class Offsets implements Player {
        private static MQClientInstance client;
        private static Offsets now;
        private final Map<Integer, Long> stored = new TreeMap<>();
        private final Set<Integer> down = new HashSet<>();
        private final List<List<Object>> calls = new ArrayList<>();
        private final RemoteBrokerOffsetStore store;

        Offsets() {
            if (client == null)
                client = client();
            now = this;
            store = new RemoteBrokerOffsetStore(client, "G");
        }

        private static MQClientInstance client() {
            ClientConfig config = new ClientConfig();
            MQClientAPIImpl api = new MQClientAPIImpl(new NettyClientConfig(), null, null, config) {
                @Override
                public long queryConsumerOffset(String address, QueryConsumerOffsetRequestHeader header, long timeout)
                    throws OffsetNotFoundException {
                    now.calls.add(Arrays.asList("query", header.getQueueId()));
                    Long offset = now.stored.get(header.getQueueId());
                    if (offset == null)
                        throw new OffsetNotFoundException();
                    return offset;
                }

                @Override
                public void updateConsumerOffsetOneway(String address, UpdateConsumerOffsetRequestHeader header,
                    long timeout) {
                    now.calls.add(Arrays.asList("update", header.getQueueId(), header.getCommitOffset()));
                    now.stored.put(header.getQueueId(), header.getCommitOffset());
                }
            };
            return new MQClientInstance(config, 0, "C") {
                @Override
                public FindBrokerResult findBrokerAddressInSubscribe(String broker, long id, boolean only) {
                    return now.down.contains(Integer.parseInt(broker)) ? null : new FindBrokerResult("nowhere", false);
                }

                @Override
                public boolean updateTopicRouteInfoFromNameServer(String topic) {
                    return false;
                }

                @Override
                public MQClientAPIImpl getMQClientAPIImpl() {
                    return api;
                }
            };
        }

        private static MessageQueue queue(Integer id) {
            return id == null ? null : new MessageQueue("T", String.valueOf(id), id);
        }

        @Override
        public Object play(JSONArray operation) {
            calls.clear();
            Integer id = operation.get(1) instanceof Integer ? operation.getInteger(1) : null;
            switch (operation.getString(0)) {
                case "update":
                    store.updateOffset(queue(id), operation.getLongValue(2), operation.getBooleanValue(3));
                    return null;
                case "freeze":
                    store.updateAndFreezeOffset(queue(id), operation.getLongValue(2));
                    return null;
                case "read":
                    return store.readOffset(queue(id), ReadOffsetType.valueOf(operation.getString(2)));
                case "persist_all": {
                    Set<MessageQueue> wanted = operation.get(1) == null ? null : new HashSet<>();
                    for (int i = 0; wanted != null && i < operation.getJSONArray(1).size(); i++)
                        wanted.add(queue(operation.getJSONArray(1).getInteger(i)));
                    store.persistAll(wanted);
                    return null;
                }
                case "persist":
                    store.persist(queue(id));
                    return null;
                case "remove":
                    store.removeOffset(queue(id));
                    return null;
                case "stored":
                    if (operation.get(2) == null)
                        stored.remove(id);
                    else
                        stored.put(id, operation.getLong(2));
                    return null;
                default:
                    if (!down.remove(id))
                        down.add(id);
                    return null;
            }
        }

        @Override
        public Object state() {
            Map<Integer, Long> table = new TreeMap<>();
            store.cloneOffsetTable(null).forEach((queue, offset) -> table.put(queue.getQueueId(), offset));
            List<Object> pairs = new ArrayList<>(), kept = new ArrayList<>();
            table.forEach((id, offset) -> pairs.add(Arrays.asList(id, offset)));
            stored.forEach((id, offset) -> kept.add(Arrays.asList(id, offset)));
            calls.sort((a, b) -> Integer.compare((Integer) a.get(1), (Integer) b.get(1)));
            return Arrays.asList(pairs, kept, new ArrayList<>(calls));
        }
    }

    private static final class Offset implements Player {
        private final ControllableOffset offset = new ControllableOffset(0);

        @Override
        public Object play(JSONArray operation) {
            if (operation.getString(0).equals("freeze"))
                offset.updateAndFreeze(operation.getLongValue(1));
            else
                offset.update(operation.getLongValue(1), operation.getBooleanValue(2));
            return null;
        }

        @Override
        public Object state() {
            return offset.getOffset();
        }
    }

    private static Player player(String kind) {
        switch (kind) {
            case "process_queue":
                return new Queue();
            case "allocate":
                return new Allocation();
            case "offset_store":
                return new Offsets();
            case "offset":
                return new Offset();
            case "consumer":
                return new RealConsumer();
            case "sql":
                return new RealTexts.Sql();
            case "texts":
                return new RealTexts.Texts();
            case "local_offsets":
                return new RealLocalOffsets();
            default:
                throw new IllegalArgumentException(kind);
        }
    }

    private static Object play(JSONObject trace) throws Exception {
        RealConsumer.leave();
        Player player = player(trace.getString("kind"));
        List<Object> answers = new ArrayList<>();
        for (Object operation : trace.getJSONArray("ops")) {
            Object result;
            try {
                result = player.play((JSONArray) operation);
            } catch (RuntimeException | MQClientException failure) {
                JSONObject error = new JSONObject(true);
                error.put("class", failure.getClass().getName());
                error.put("text", failure.getMessage());
                result = error;
            }
            answers.add(Arrays.asList(result, player.state()));
        }
        return answers;
    }

    /** Half characters have no UTF-8 form, and BrowserCompatible makes texts of great numbers. */
    private static String ascii(String json) {
        StringBuilder text = new StringBuilder(json.length());
        for (int i = 0; i < json.length(); i++)
            if (json.charAt(i) < 127)
                text.append(json.charAt(i));
            else
                text.append(String.format("\\u%04x", (int) json.charAt(i)));
        return text.toString();
    }

    public static void main(String[] arguments) throws Exception {
        System.setProperty("rocketmq.log.level", "off");
        System.setProperty("rocketmq.log.root", System.getProperty("java.io.tmpdir"));
        System.setProperty("rocketmq.client.localOffsetStoreDir", System.getProperty("java.io.tmpdir") + "/offsets");
        PrintStream replies = System.out;
        System.setOut(System.err);
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            JSONObject reply = new JSONObject();
            try {
                List<Object> answers = new ArrayList<>();
                for (Object trace : JSON.parseObject(line).getJSONArray("traces"))
                    answers.add(play((JSONObject) trace));
                reply.put("answers", answers);
            } catch (Exception failure) {
                reply.put("error", failure.toString());
            }
            replies.println(ascii(JSON.toJSONString(reply, SerializerFeature.DisableCircularReferenceDetect,
                SerializerFeature.WriteMapNullValue)));
            replies.flush();
        }
        System.exit(0);
    }
}
