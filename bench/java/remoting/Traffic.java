import com.alibaba.fastjson.JSON;
import com.alibaba.fastjson.JSONObject;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
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
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * RocketMQ's own client over stdin and stdout: one JSON request a line, one JSON reply a line.
 *
 * <p>start: its producer and pull consumer on a cluster. Each other op sends or takes {@code count} messages and answers
 * how many there were, and the CPU nanoseconds of the whole process; latency answers two percentiles of its sends.
 */
public final class Traffic {
    private static final com.sun.management.OperatingSystemMXBean SYSTEM =
        (com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
    private static DefaultMQProducer producer;
    private static DefaultMQPullConsumer puller;
    private static int instances;

    private static void start(String names) throws Exception {
        producer = new DefaultMQProducer("senders");
        producer.setNamesrvAddr(names);
        producer.setInstanceName("traffic-" + ++instances);
        producer.setSendMsgTimeout(20000);
        producer.start();
        puller = new DefaultMQPullConsumer("pullers");
        puller.setNamesrvAddr(names);
        puller.setInstanceName("traffic-" + ++instances);
        puller.start();
    }

    private static void send(Message message) throws Exception {
        if (producer.send(message).getSendStatus() != SendStatus.SEND_OK) throw new IllegalStateException("not stored");
    }

    /** Nanoseconds that the half, and 99 of a hundred, of the sends do not exceed. */
    private static void latency(JSONObject request, JSONObject reply) throws Exception {
        String topic = request.getString("topic");
        byte[] body = new byte[request.getIntValue("size")];
        long[] spent = new long[request.getIntValue("count")];
        for (int i = 0; i < spent.length; i++) {
            long before = System.nanoTime();
            send(new Message(topic, body));
            spent[i] = System.nanoTime() - before;
        }
        Arrays.sort(spent);
        reply.put("p50", spent[spent.length / 2]);
        reply.put("p99", spent[spent.length * 99 / 100]);
    }

    private static int run(JSONObject request) throws Exception {
        String topic = request.getString("topic");
        int count = request.getIntValue("count");
        byte[] body = new byte[request.getIntValue("size")];
        switch (request.getString("op")) {
            case "send": {
                int threads = request.getIntValue("threads");
                ExecutorService pool = Executors.newFixedThreadPool(threads);
                List<Future<?>> running = new ArrayList<>();
                for (int i = 0; i < threads; i++) {
                    running.add(pool.submit(() -> {
                        for (int k = 0; k < count / threads; k++) send(new Message(topic, body));
                        return null;
                    }));
                }
                for (Future<?> each : running) each.get();
                pool.shutdown();
                return count;
            }
            case "oneWay": {
                MessageQueue queue = producer.fetchPublishMessageQueues(topic).get(0);
                for (int i = 1; i < count; i++) producer.sendOneway(new Message(topic, body), queue);
                producer.send(new Message(topic, body), queue);
                return count;
            }
            case "batch": {
                for (int i = 0; i < count; i += 32) {
                    List<Message> batch = new ArrayList<>();
                    for (int k = 0; k < 32; k++) batch.add(new Message(topic, body));
                    if (producer.send(batch).getSendStatus() != SendStatus.SEND_OK) {
                        throw new IllegalStateException("not stored");
                    }
                }
                return count;
            }
            case "pull": {
                MessageQueue queue = new MessageQueue(topic, "broker-a", 0);
                int found = 0;
                for (long at = 0; found < count; ) {
                    PullResult result = puller.pull(queue, "*", at, 32);
                    for (MessageExt message : result.getMsgFoundList()) if (message.getBody().length == body.length) found++;
                    at = result.getNextBeginOffset();
                }
                return found;
            }
            case "consume": {
                AtomicInteger taken = new AtomicInteger();
                CountDownLatch done = new CountDownLatch(1);
                List<DefaultMQPushConsumer> consumers = new ArrayList<>();
                for (int i = 0; i < request.getIntValue("consumers"); i++) {
                    DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(request.getString("group"));
                    consumer.setNamesrvAddr(request.getString("names"));
                    consumer.setInstanceName("traffic-" + ++instances);
                    consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
                    consumer.setConsumeThreadMin(2);
                    consumer.setConsumeThreadMax(2);
                    consumer.subscribe(topic, "*");
                    consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
                        if (taken.addAndGet(messages.size()) >= count) done.countDown();
                        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
                    });
                    consumer.start();
                    consumers.add(consumer);
                }
                if (!done.await(100, TimeUnit.SECONDS)) throw new IllegalStateException("only " + taken + " came");
                for (DefaultMQPushConsumer consumer : consumers) consumer.shutdown();
                return Math.min(taken.get(), count);
            }
            default:
                throw new IllegalArgumentException(request.getString("op"));
        }
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream out = System.out;
        System.setOut(System.err);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = in.readLine()) != null; ) {
            JSONObject request = JSON.parseObject(line);
            JSONObject reply = new JSONObject();
            try {
                if (request.getString("op").equals("start")) {
                    start(request.getString("names"));
                } else if (request.getString("op").equals("latency")) {
                    latency(request, reply);
                } else {
                    long before = SYSTEM.getProcessCpuTime();
                    reply.put("count", run(request));
                    reply.put("nanoseconds", SYSTEM.getProcessCpuTime() - before);
                }
            } catch (Throwable problem) {
                reply.put("error", problem.toString());
            }
            out.println(reply.toJSONString());
            out.flush();
        }
        System.exit(0);
    }
}
