import com.alibaba.fastjson.JSON;
import com.alibaba.fastjson.JSONArray;
import com.alibaba.fastjson.JSONObject;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CountDownLatch;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.MessageSelector;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** The real client, driven over a pipe: one JSON request a line, one JSON reply. Only what 4.9 and 5.3 both have. */
public class Client {
    static final Map<String, DefaultMQProducer> producers = new HashMap<>();
    static final Map<String, Consumer> consumers = new HashMap<>();
    static final Map<String, String> decisions = new HashMap<>();
    static final List<String> checked = new ArrayList<>();
    static int instances;

    static synchronized String instance() {
        return "corner-" + ProcessHandle.current().pid() + "-" + ++instances;
    }

    static class Consumer {
        final List<JSONObject> messages = new ArrayList<>();
        DefaultMQPushConsumer push;
        DefaultLitePullConsumer lite;

        /** What a listener does: fails the first so many times of each message. */
        boolean took(MessageExt message, int failures) {
            boolean fails;
            synchronized (messages) {
                int before = 0;
                for (JSONObject each : messages) if (each.getString("key").equals(key(message))) before++;
                fails = failures < 0 || before < failures;
                messages.add(shown(message));
            }
            return !fails;
        }

        void keep(MessageExt message) {
            synchronized (messages) { messages.add(shown(message)); }
        }
    }

    static String key(MessageExt message) {
        return new String(message.getBody(), 0, Math.min(40, message.getBody().length), StandardCharsets.ISO_8859_1);
    }

    static JSONObject shown(MessageExt message) {
        JSONObject shown = new JSONObject();
        shown.put("key", key(message));
        shown.put("topic", message.getTopic());
        shown.put("body", Base64.getEncoder().encodeToString(message.getBody()));
        shown.put("tags", message.getTags());
        shown.put("keys", message.getKeys());
        shown.put("flag", message.getFlag());
        shown.put("queue", message.getQueueId());
        shown.put("offset", message.getQueueOffset());
        shown.put("times", message.getReconsumeTimes());
        shown.put("properties", new TreeMap<>(message.getProperties()));
        shown.put("id", message.getMsgId());
        shown.put("at", System.currentTimeMillis());
        return shown;
    }

    static DefaultMQProducer producer(JSONObject request) throws Exception {
        String group = request.getString("group");
        String namespace = request.getString("namespace");
        String known = namespace == null ? group : namespace + "/" + group;
        DefaultMQProducer found = producers.get(known);
        if (found != null) return found;
        if (request.getBooleanValue("transactions")) {
            TransactionMQProducer made = new TransactionMQProducer(group);
            made.setTransactionListener(new TransactionListener() {
                @Override public LocalTransactionState executeLocalTransaction(Message message, Object decision) {
                    return LocalTransactionState.valueOf((String) decision);
                }
                @Override public LocalTransactionState checkLocalTransaction(MessageExt message) {
                    synchronized (checked) {
                        checked.add(new String(message.getBody(), StandardCharsets.UTF_8));
                        return LocalTransactionState.valueOf(decisions.getOrDefault(
                            new String(message.getBody(), StandardCharsets.UTF_8), "UNKNOW"));
                    }
                }
            });
            found = made;
        } else {
            found = new DefaultMQProducer(group);
        }
        found.setNamesrvAddr(request.getString("names"));
        if (namespace != null) found.setNamespace(namespace);
        found.setInstanceName(instance());
        found.setSendMsgTimeout(10000);
        found.start();
        producers.put(known, found);
        return found;
    }

    static Message message(JSONObject from) {
        Message made = new Message(from.getString("topic"), Base64.getDecoder().decode(from.getString("body")));
        if (from.getString("tags") != null) made.setTags(from.getString("tags"));
        if (from.getString("keys") != null) made.setKeys(from.getString("keys"));
        made.setFlag(from.getIntValue("flag"));
        JSONObject properties = from.getJSONObject("properties");
        if (properties != null)
            for (String name : properties.keySet()) made.putUserProperty(name, properties.getString(name));
        if (from.getIntValue("level") > 0) made.setDelayTimeLevel(from.getIntValue("level"));
        JSONObject timers = from.getJSONObject("timers");
        if (timers != null)
            for (String name : timers.keySet())
                org.apache.rocketmq.common.message.MessageAccessor.putProperty(made, name, timers.getString(name));
        return made;
    }

    static Object sent(SendResult result) {
        if (result == null) return null;
        JSONObject shown = new JSONObject();
        shown.put("status", result.getSendStatus().name());
        shown.put("topic", result.getMessageQueue().getTopic());
        shown.put("queue", result.getMessageQueue().getQueueId());
        shown.put("offset", result.getQueueOffset());
        shown.put("id", result.getMsgId());
        shown.put("offsetId", result.getOffsetMsgId());
        return shown;
    }

    static Object send(JSONObject request) throws Exception {
        DefaultMQProducer producer = producer(request);
        String how = request.getString("how") == null ? "sync" : request.getString("how");
        if (how.equals("batch")) {
            List<Message> messages = new ArrayList<>();
            for (Object each : request.getJSONArray("messages")) messages.add(message((JSONObject) each));
            return sent(producer.send(messages));
        }
        Message made = message(request.getJSONObject("message"));
        Integer number = request.getInteger("queue");
        switch (how) {
            case "sync":
                if (number == null) return sent(producer.send(made));
                return sent(producer.send(made, (queues, message, at) -> {
                    for (MessageQueue queue : queues) if (queue.getQueueId() == (Integer) at) return queue;
                    return null;
                }, number));
            case "oneway": producer.sendOneway(made); return null;
            case "async": {
                CountDownLatch done = new CountDownLatch(1);
                Object[] found = new Object[1];
                producer.send(made, new SendCallback() {
                    @Override public void onSuccess(SendResult result) { found[0] = sent(result); done.countDown(); }
                    @Override public void onException(Throwable error) { found[0] = said(error); done.countDown(); }
                });
                done.await();
                return found[0];
            }
            case "transaction":
                return ((TransactionMQProducer) producer).sendMessageInTransaction(made, request.getString("decision"))
                    .getLocalTransactionState().name();
            default: throw new IllegalArgumentException(how);
        }
    }

    static Object consume(JSONObject request) throws Exception {
        Consumer made = new Consumer();
        int failures = request.getIntValue("failures");
        int slow = request.getIntValue("slow");
        DefaultMQPushConsumer push = new DefaultMQPushConsumer(request.getString("group"));
        push.setNamesrvAddr(request.getString("names"));
        if (request.getString("namespace") != null) push.setNamespace(request.getString("namespace"));
        push.setInstanceName(request.getString("instance") == null ? instance() : request.getString("instance"));
        push.setPollNameServerInterval(500);
        push.setPersistConsumerOffsetInterval(500);
        push.setConsumeFromWhere(ConsumeFromWhere.valueOf(request.getString("from")));
        if (request.getString("timestamp") != null) push.setConsumeTimestamp(request.getString("timestamp"));
        if (request.containsKey("most")) push.setMaxReconsumeTimes(request.getIntValue("most"));
        if (request.getBooleanValue("broadcasting"))
            for (java.lang.reflect.Method each : DefaultMQPushConsumer.class.getMethods())
                if (each.getName().equals("setMessageModel"))  // whose package is another in 5.x
                    each.invoke(push, each.getParameterTypes()[0].getField("BROADCASTING").get(null));
        push.setConsumeMessageBatchMaxSize(1);
        DefaultMQProducer answers = request.getString("answers") == null ? null : producer(request);
        String topic = request.getString("topic");
        if ("sql".equals(request.getString("kind"))) push.subscribe(topic, MessageSelector.bySql(request.getString("wanted")));
        else push.subscribe(topic, request.getString("wanted"));
        if (request.getBooleanValue("orderly")) {
            push.setSuspendCurrentQueueTimeMillis(200);
            push.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
                pause(slow);
                return made.took(messages.get(0), failures)
                    ? ConsumeOrderlyStatus.SUCCESS : ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT;
            });
        } else {
            push.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
                pause(slow);
                if (answers != null) {
                    try {
                        answers.send(org.apache.rocketmq.client.utils.MessageUtil.createReplyMessage(
                            messages.get(0), request.getString("answers").getBytes(StandardCharsets.UTF_8)));
                    } catch (Exception error) {
                        error.printStackTrace();
                    }
                }
                if (request.containsKey("level")) context.setDelayLevelWhenNextConsume(request.getIntValue("level"));
                return made.took(messages.get(0), failures)
                    ? ConsumeConcurrentlyStatus.CONSUME_SUCCESS : ConsumeConcurrentlyStatus.RECONSUME_LATER;
            });
        }
        made.push = push;
        push.start();
        consumers.put(request.getString("name"), made);
        return true;
    }

    static void pause(int milliseconds) {
        try {
            Thread.sleep(milliseconds);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
    }

    static Object lite(JSONObject request) throws Exception {
        Consumer made = new Consumer();
        DefaultLitePullConsumer lite = new DefaultLitePullConsumer(request.getString("group"));
        lite.setNamesrvAddr(request.getString("names"));
        if (request.getString("namespace") != null) lite.setNamespace(request.getString("namespace"));
        lite.setInstanceName(instance());
        lite.setAutoCommit(false);
        lite.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        if (request.getString("topic") != null)
            lite.subscribe(request.getString("topic"), request.getString("wanted") == null ? "*" : request.getString("wanted"));
        lite.start();
        made.lite = lite;
        consumers.put(request.getString("name"), made);
        return true;
    }

    static MessageQueue queue(DefaultLitePullConsumer lite, JSONObject request) throws Exception {
        for (MessageQueue queue : lite.fetchMessageQueues(request.getString("topic")))
            if (queue.getQueueId() == request.getIntValue("queue")) return queue;
        throw new IllegalArgumentException("no such queue");
    }

    static String said(Throwable error) {
        if (error instanceof MQBrokerException) return "broker " + ((MQBrokerException) error).getResponseCode();
        if (error instanceof MQClientException) return "client " + ((MQClientException) error).getResponseCode();
        return error.getClass().getSimpleName();
    }

    static Object answer(JSONObject request) throws Exception {
        switch (request.getString("op")) {
            case "send": return send(request);
            case "queues": {
                List<Integer> found = new ArrayList<>();
                for (MessageQueue queue : producer(request).fetchPublishMessageQueues(request.getString("topic")))
                    found.add(queue.getQueueId());
                java.util.Collections.sort(found);
                return found;
            }
            case "query": {
                List<Object> found = new ArrayList<>();
                List<MessageExt> all = producer(request).queryMessage(request.getString("topic"),
                    request.getString("key"), 32, 0, Long.MAX_VALUE).getMessageList();
                for (MessageExt each : all) found.add(shown(each));
                return found;
            }
            case "view": return shown(producer(request).viewMessage(request.getString("topic"), request.getString("id")));
            case "request":
                return shown((MessageExt) producer(request).request(message(request.getJSONObject("message")), 15000));
            case "decide":
                synchronized (checked) { decisions.put(request.getString("body"), request.getString("decision")); }
                return true;
            case "checked": synchronized (checked) { return new ArrayList<>(checked); }
            case "consume": return consume(request);
            case "lite": return lite(request);
            case "assign": {
                DefaultLitePullConsumer lite = consumers.get(request.getString("name")).lite;
                List<MessageQueue> wanted = new ArrayList<>();
                for (MessageQueue queue : lite.fetchMessageQueues(request.getString("topic")))
                    if (request.getJSONArray("queues").contains(queue.getQueueId())) wanted.add(queue);
                lite.assign(wanted);
                return wanted.size();
            }
            case "seek": {
                DefaultLitePullConsumer lite = consumers.get(request.getString("name")).lite;
                lite.seek(queue(lite, request), request.getLongValue("offset"));
                return true;
            }
            case "poll": {
                List<Object> found = new ArrayList<>();
                for (MessageExt each : consumers.get(request.getString("name")).lite.poll(request.getLongValue("timeout")))
                    found.add(shown(each));
                return found;
            }
            case "assignment": {
                DefaultLitePullConsumer lite = consumers.get(request.getString("name")).lite;
                List<Integer> found = new ArrayList<>();  // 4.9 has no assignment()
                java.lang.reflect.Field impl = DefaultLitePullConsumer.class.getDeclaredField("defaultLitePullConsumerImpl");
                impl.setAccessible(true);
                java.lang.reflect.Field assigned = impl.get(lite).getClass().getDeclaredField("assignedMessageQueue");
                assigned.setAccessible(true);
                Object table = assigned.get(impl.get(lite));
                java.lang.reflect.Method names = table.getClass().getDeclaredMethod(
                    java.util.Arrays.stream(table.getClass().getDeclaredMethods()).anyMatch(
                        each -> each.getName().equals("getAssignedMessageQueues"))
                    ? "getAssignedMessageQueues" : "messageQueues");
                names.setAccessible(true);
                for (Object queue : (java.util.Collection<?>) names.invoke(table)) found.add(((MessageQueue) queue).getQueueId());
                java.util.Collections.sort(found);
                return found;
            }
            case "pause": case "resume": {
                DefaultLitePullConsumer lite = consumers.get(request.getString("name")).lite;
                List<MessageQueue> queues = java.util.Collections.singletonList(queue(lite, request));
                if (request.getString("op").equals("pause")) lite.pause(queues); else lite.resume(queues);
                return true;
            }
            case "offsetForTimestamp": {
                DefaultLitePullConsumer lite = consumers.get(request.getString("name")).lite;
                return lite.offsetForTimestamp(queue(lite, request), request.getLongValue("timestamp"));
            }
            case "commit": consumers.get(request.getString("name")).lite.commitSync(); return true;
            case "committed": {
                DefaultLitePullConsumer lite = consumers.get(request.getString("name")).lite;
                return lite.committed(queue(lite, request));
            }
            case "received": {
                Consumer found = consumers.get(request.getString("name"));
                synchronized (found.messages) { return new ArrayList<>(found.messages); }
            }
            case "stop": {
                Consumer found = consumers.remove(request.getString("name"));
                if (found.push != null) found.push.shutdown();
                if (found.lite != null) found.lite.shutdown();
                return true;
            }
            case "stopProducer": {
                DefaultMQProducer found = producers.remove(request.getString("group"));
                if (found != null) found.shutdown();
                return true;
            }
            case "admin": {
                PrintStream out = System.out;
                ByteArrayOutputStream bytes = new ByteArrayOutputStream();
                System.setOut(new PrintStream(bytes, true));
                try {
                    org.apache.rocketmq.tools.command.MQAdminStartup.main(
                        request.getJSONArray("arguments").toArray(new String[0]));
                } finally {
                    System.setOut(out);
                }
                return bytes.toString("UTF-8");
            }
            default: throw new IllegalArgumentException(request.getString("op"));
        }
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream replies = System.out;
        System.setOut(System.err);
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            JSONObject reply = new JSONObject();
            try {
                reply.put("value", answer(JSON.parseObject(line)));
            } catch (Throwable error) {
                reply.put("error", said(error));
                reply.put("text", String.valueOf(error));
            }
            replies.println(reply.toJSONString());
            replies.flush();
        }
        Runtime.getRuntime().halt(0);
    }
}
