import com.alibaba.fastjson.JSON;
import com.alibaba.fastjson.JSONArray;
import com.alibaba.fastjson.JSONObject;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.rocketmq.client.consumer.AllocateMessageQueueStrategy;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueConsistentHash;
import org.apache.rocketmq.client.impl.consumer.ProcessQueue;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * RocketMQ's own client classes over stdin and stdout: one JSON request a line, one JSON reply a line.
 *
 * <p>load: queues and clients. owned: positions of the queues that one client gets. allocate: CPU nanoseconds of one
 * allocate() call. finish: a ProcessQueue over batches of 32 and an order of completion: the sum of what every
 * removeMessage returned, and CPU nanoseconds a message.
 */
public final class Clients {
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
    private static List<MessageQueue> queues = new ArrayList<>();
    private static List<String> clients = new ArrayList<>();
    private static volatile int sink;

    private static AllocateMessageQueueStrategy strategy(String name) {
        return name.equals("AVG") ? new AllocateMessageQueueAveragely() : new AllocateMessageQueueConsistentHash();
    }

    private static void answer(JSONObject request, JSONObject reply) {
        switch (request.getString("op")) {
            case "load":
                queues = new ArrayList<>();
                for (Object item : request.getJSONArray("queues")) {
                    JSONArray parts = (JSONArray) item;
                    queues.add(new MessageQueue(parts.getString(0), parts.getString(1), parts.getIntValue(2)));
                }
                clients = request.getJSONArray("clients").toJavaList(String.class);
                break;
            case "owned": {
                List<MessageQueue> own = strategy(request.getString("strategy"))
                    .allocate("G", request.getString("client"), queues, clients);
                int next = 0;
                List<Integer> places = new ArrayList<>();
                for (int i = 0; i < queues.size() && next < own.size(); i++)
                    if (queues.get(i) == own.get(next)) {
                        places.add(i);
                        next++;
                    }
                reply.put("places", places);
                break;
            }
            case "allocate": {
                AllocateMessageQueueStrategy strategy = strategy(request.getString("strategy"));
                int repeat = request.getIntValue("repeat");
                long start = THREADS.getCurrentThreadCpuTime();
                for (int i = 0; i < repeat; i++)
                    sink += strategy.allocate("G", request.getString("client"), queues, clients).size();
                reply.put("nanoseconds", (THREADS.getCurrentThreadCpuTime() - start) / (double) repeat);
                break;
            }
            case "finish":
                finish(request, reply);
                break;
            default:
                throw new IllegalArgumentException(request.getString("op"));
        }
    }

    private static void finish(JSONObject request, JSONObject reply) {
        int[] order = request.getJSONArray("order").stream().mapToInt(number -> (Integer) number).toArray();
        int depth = request.getIntValue("depth"), repeat = request.getIntValue("repeat");
        List<MessageExt> messages = IntStream.range(0, order.length).mapToObj(i -> {
            MessageExt message = new MessageExt();
            message.setQueueOffset(i);
            message.setBody(new byte[0]);
            return message;
        }).collect(Collectors.toList());
        long sum = 0, spent = 0;
        for (int turn = 0; turn < repeat; turn++) {
            ProcessQueue queue = new ProcessQueue();
            int put = 0;
            sum = 0;
            long start = THREADS.getCurrentThreadCpuTime();
            for (int place : order) {
                while (put < messages.size() && queue.getMsgCount().get() <= depth) {
                    queue.putMessage(messages.subList(put, Math.min(put + 32, messages.size())));
                    put = Math.min(put + 32, messages.size());
                }
                sum += queue.removeMessage(Collections.singletonList(messages.get(place)));
            }
            spent += THREADS.getCurrentThreadCpuTime() - start;
        }
        reply.put("sum", sum);
        reply.put("nanoseconds", spent / ((double) repeat * order.length));
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream replies = System.out;
        System.setOut(System.err);
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            JSONObject reply = new JSONObject();
            try {
                answer(JSON.parseObject(line), reply);
            } catch (Exception failure) {
                reply.put("error", failure.toString());
            }
            replies.println(reply.toJSONString());
            replies.flush();
        }
    }
}
