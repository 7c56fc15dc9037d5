import com.alibaba.fastjson.JSONArray;
import com.alibaba.fastjson.JSONObject;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.rocketmq.broker.BrokerController;
import org.apache.rocketmq.client.ClientConfig;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.MessageSelector;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.client.exception.OffsetNotFoundException;
import org.apache.rocketmq.client.impl.CommunicationMode;
import org.apache.rocketmq.client.impl.MQClientAPIImpl;
import org.apache.rocketmq.client.impl.consumer.PullResultExt;
import org.apache.rocketmq.client.impl.factory.MQClientInstance;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageAccessor;
import org.apache.rocketmq.common.message.MessageDecoder;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.protocol.body.LockBatchRequestBody;
import org.apache.rocketmq.remoting.protocol.body.UnlockBatchRequestBody;
import org.apache.rocketmq.remoting.protocol.filter.FilterAPI;
import org.apache.rocketmq.remoting.protocol.header.PullMessageRequestHeader;
import org.apache.rocketmq.remoting.protocol.header.QueryConsumerOffsetRequestHeader;
import org.apache.rocketmq.remoting.protocol.header.UpdateConsumerOffsetRequestHeader;
import org.apache.rocketmq.remoting.protocol.heartbeat.ConsumeType;
import org.apache.rocketmq.remoting.protocol.heartbeat.ConsumerData;
import org.apache.rocketmq.remoting.protocol.heartbeat.HeartbeatData;
import org.apache.rocketmq.remoting.protocol.heartbeat.MessageModel;
import org.apache.rocketmq.remoting.protocol.heartbeat.SubscriptionData;
import org.apache.rocketmq.remoting.rpc.TopicQueueRequestHeader;
import org.apache.rocketmq.store.MessageStore;

/** What a broker is asked through the network, a list an operation, its name first. */
final class Script {
    private static final long TIMEOUT = 60_000;
    private final MessageStore store;
    private final DefaultMQPullConsumer consumer;
    private final DefaultMQProducer producer;
    private final MQClientAPIImpl api;
    private final String address;
    private final List<MessageExt> stored = new ArrayList<>();
    private final Map<String, MQClientAPIImpl> clients = new HashMap<>();

    Script(BrokerController broker, DefaultMQPullConsumer consumer, DefaultMQProducer producer) throws Exception {
        this.store = broker.getMessageStore();
        this.consumer = consumer;
        this.producer = producer;
        MQClientInstance client =
            consumer.getDefaultMQPullConsumerImpl().getRebalanceImpl().getmQClientFactory();
        this.api = client.getMQClientAPIImpl();
        this.address = broker.getBrokerAddr();
        // A group exists once it was looked for, and a client knows what a broker can do once it answered a heartbeat.
        for (String group : new String[] {"G", "H"})
            broker.getSubscriptionGroupManager().findSubscriptionGroupConfig(group);
        client.updateTopicRouteInfoFromNameServer("One");
        while (client.findBrokerAddressInSubscribe("broker-a", 0, true).getBrokerVersion() == 0) {
            client.sendHeartbeatToAllBrokerWithLock();
            Thread.sleep(1);
        }
    }

    private static MessageQueue queue(JSONArray row) {
        return new MessageQueue(row.getString(0), "broker-a", row.getIntValue(1));
    }

    private static Set<MessageQueue> queues(JSONArray rows) {
        Set<MessageQueue> found = new HashSet<>();
        for (Object row : rows)
            found.add(queue((JSONArray) row));
        return found;
    }

    Object play(JSONArray operation) throws Exception {
        try {
            return asked(operation);
        } catch (OffsetNotFoundException none) {
            return "none";
        } catch (MQBrokerException refused) {
            return Arrays.asList("refused", refused.getResponseCode(), refused.getErrorMessage());
        }
    }

    private Object asked(JSONArray operation) throws Exception {
        switch (operation.getString(0)) {
            case "send": {
                long end = store.getMaxPhyOffset();
                Message message = new Message(operation.getJSONArray(1).getString(0), new byte[] {1});
                JSONObject properties = operation.getJSONObject(2);
                for (String name : properties.keySet())
                    MessageAccessor.putProperty(message, name, properties.getString(name));
                producer.send(message, queue(operation.getJSONArray(1)), TIMEOUT);
                return put(end);
            }
            case "back": {
                if (stored.isEmpty())
                    return null;
                long end = store.getMaxPhyOffset();
                MessageExt message = stored.get(operation.getIntValue(2) % stored.size());
                api.consumerSendMessageBack(address, "broker-a", message, operation.getString(1),
                    operation.getIntValue(3), TIMEOUT, operation.getIntValue(4));
                return put(end);
            }
            case "pull": {
                MessageSelector selector = operation.getString(3).equals("TAG")
                    ? MessageSelector.byTag(operation.getString(2)) : MessageSelector.bySql(operation.getString(2));
                PullResult result = consumer.pull(queue(operation.getJSONArray(1)), selector,
                    operation.getLongValue(4), operation.getIntValue(5), TIMEOUT);
                return pulled(result, result.getMsgFoundList());
            }
            case "min":
                return api.getMinOffset(address, queue(operation.getJSONArray(1)), TIMEOUT);
            case "max":
                return api.getMaxOffset(address, queue(operation.getJSONArray(1)), TIMEOUT);
            case "search": {
                long time = stored.isEmpty() ? 0
                    : stored.get(operation.getIntValue(2) % stored.size()).getStoreTimestamp();
                return api.searchOffset(address, queue(operation.getJSONArray(1)), time + operation.getLongValue(3),
                    TIMEOUT);
            }
            case "commit": {
                UpdateConsumerOffsetRequestHeader header = new UpdateConsumerOffsetRequestHeader();
                header.setConsumerGroup(operation.getString(1));
                to(header, operation.getJSONArray(2));
                header.setCommitOffset(operation.getLongValue(3));
                api.updateConsumerOffset(address, header, TIMEOUT);
                return null;
            }
            case "query": {
                QueryConsumerOffsetRequestHeader header = new QueryConsumerOffsetRequestHeader();
                header.setConsumerGroup(operation.getString(1));
                to(header, operation.getJSONArray(2));
                return api.queryConsumerOffset(address, header, TIMEOUT);
            }
            case "lock": {
                LockBatchRequestBody body = new LockBatchRequestBody();
                body.setConsumerGroup(operation.getString(1));
                body.setClientId(operation.getString(2));
                body.setMqSet(queues(operation.getJSONArray(3)));
                List<Object> held = new ArrayList<>();
                for (MessageQueue queue : new TreeSet<>(api.lockBatchMQ(address, body, TIMEOUT)))
                    held.add(Arrays.asList(queue.getTopic(), queue.getQueueId()));
                return held;
            }
            case "beat": {
                ConsumerData group = new ConsumerData();
                group.setGroupName(operation.getString(1));
                group.setConsumeType(ConsumeType.CONSUME_PASSIVELY);
                group.setMessageModel(MessageModel.CLUSTERING);
                group.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET);
                for (Object row : operation.getJSONArray(3)) {
                    JSONArray wanted = (JSONArray) row;
                    SubscriptionData subscription =
                        FilterAPI.build(wanted.getString(0), wanted.getString(1), wanted.getString(2));
                    subscription.setSubVersion(wanted.getLongValue(3));
                    group.getSubscriptionDataSet().add(subscription);
                }
                HeartbeatData beat = new HeartbeatData();
                beat.setClientID(operation.getString(2));
                beat.getConsumerDataSet().add(group);
                of(operation.getString(2)).sendHeartbeat(address, beat, TIMEOUT);
                return null;
            }
            case "leave":
                of(operation.getString(2)).unregisterClient(address, operation.getString(2), null,
                    operation.getString(1), TIMEOUT);
                return null;
            case "members": {
                List<String> found = api.getConsumerIdListByGroup(address, operation.getString(1), TIMEOUT);
                Collections.sort(found);
                return found;
            }
            case "stats": {
                List<Object> rows = new ArrayList<>();
                new TreeMap<>(api.getConsumeStats(address, operation.getString(1), operation.getString(2), TIMEOUT)
                    .getOffsetTable()).forEach((queue, row) -> rows.add(Arrays.asList(queue.getTopic(),
                        queue.getQueueId(), row.getBrokerOffset(), row.getConsumerOffset(), row.getPullOffset(),
                        row.getLastTimestamp())));
                return rows;
            }
            case "wants": {
                PullMessageRequestHeader header = new PullMessageRequestHeader();
                header.setConsumerGroup(operation.getString(1));
                to(header, operation.getJSONArray(2));
                header.setQueueOffset(operation.getLongValue(3));
                header.setMaxMsgNums(operation.getIntValue(4));
                header.setSubVersion(operation.getLongValue(5));
                header.setSysFlag(0);
                header.setCommitOffset(0L);
                header.setSuspendTimeoutMillis(0L);
                header.setExpressionType("TAG");
                PullResultExt result =
                    (PullResultExt) api.pullMessage(address, header, TIMEOUT, CommunicationMode.SYNC, null);
                byte[] sent = result.getMessageBinary();
                return pulled(result, sent == null ? null : MessageDecoder.decodes(ByteBuffer.wrap(sent)));
            }
            default: {
                UnlockBatchRequestBody body = new UnlockBatchRequestBody();
                body.setConsumerGroup(operation.getString(1));
                body.setClientId(operation.getString(2));
                body.setMqSet(queues(operation.getJSONArray(3)));
                api.unlockBatchMQ(address, body, TIMEOUT, false);
                return null;
            }
        }
    }

    private static void to(TopicQueueRequestHeader header, JSONArray queue) {
        header.setTopic(queue.getString(0));
        header.setQueueId(queue.getIntValue(1));
    }

    private static Object pulled(PullResult result, List<MessageExt> messages) {
        List<Object> offsets = new ArrayList<>();
        if (messages != null)
            for (MessageExt message : messages)
                offsets.add(message.getQueueOffset());
        return Arrays.asList(result.getPullStatus().name(), result.getNextBeginOffset(), result.getMinOffset(),
            result.getMaxOffset(), offsets);
    }

    /** A client with a connection of its own, by which the broker tells members from each other. */
    private MQClientAPIImpl of(String client) {
        return clients.computeIfAbsent(client, id -> {
            MQClientAPIImpl made = new MQClientInstance(new ClientConfig(), 0, id).getMQClientAPIImpl();
            made.start();
            return made;
        });
    }

    /** What was stored at the end that the log had; waits until it can be pulled. */
    private Object put(long end) throws InterruptedException {
        while (store.dispatchBehindBytes() > 0)
            Thread.sleep(1);
        MessageExt message = store.lookMessageByOffset(end);
        stored.add(message);
        JSONObject found = new JSONObject(true);
        found.put("place", Arrays.asList(message.getTopic(), message.getQueueId(), message.getQueueOffset()));
        found.put("id", message.getMsgId());
        found.put("time", message.getStoreTimestamp());
        found.put("reconsumeTimes", message.getReconsumeTimes());
        found.put("properties", new TreeMap<>(message.getProperties()));
        return found;
    }
}
