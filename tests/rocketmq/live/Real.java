import com.alibaba.fastjson.JSON;
import com.alibaba.fastjson.JSONArray;
import com.alibaba.fastjson.JSONObject;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.TreeMap;
import org.apache.rocketmq.broker.BrokerController;
import org.apache.rocketmq.broker.schedule.ScheduleMessageService;
import org.apache.rocketmq.client.ClientConfig;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.consumer.store.LocalFileOffsetStore;
import org.apache.rocketmq.client.consumer.store.OffsetSerializeWrapper;
import org.apache.rocketmq.client.consumer.store.ReadOffsetType;
import org.apache.rocketmq.client.impl.factory.MQClientInstance;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.BrokerConfig;
import org.apache.rocketmq.common.MQVersion;
import org.apache.rocketmq.common.ServiceThread;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageAccessor;
import org.apache.rocketmq.common.message.MessageDecoder;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageExtBrokerInner;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.common.namesrv.NamesrvConfig;
import org.apache.rocketmq.namesrv.NamesrvController;
import org.apache.rocketmq.remoting.netty.NettyClientConfig;
import org.apache.rocketmq.remoting.netty.NettyServerConfig;
import org.apache.rocketmq.remoting.protocol.RemotingCommand;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.config.MessageStoreConfig;
import org.apache.rocketmq.store.ha.DefaultHAService;

/** The real name server, broker and client classes, driven over a pipe: one JSON request a line, one JSON reply. */
public class Real {
    static NamesrvController names;
    static BrokerController broker;
    static DefaultMQPullConsumer consumer;
    static DefaultMQProducer producer;
    static Script script;

    static MessageQueue queue(JSONArray parts) {
        return new MessageQueue(parts.getString(0), parts.getString(1), parts.getIntValue(2));
    }

    /** A cluster on loopback whose store is the given folder. */
    static Object start(JSONObject request) throws Exception {
        String home = request.getString("home");
        NamesrvConfig namesConfig = new NamesrvConfig();
        namesConfig.setRocketmqHome(home);
        namesConfig.setKvConfigPath(home + "/kv.json");
        NettyServerConfig namesServer = new NettyServerConfig();
        namesServer.setListenPort(request.getIntValue("namesPort"));
        namesServer.setBindAddress("127.0.0.1");
        names = new NamesrvController(namesConfig, namesServer);
        names.initialize();
        names.start();
        String address = "127.0.0.1:" + request.getIntValue("namesPort");
        BrokerConfig config = new BrokerConfig();
        config.setRocketmqHome(home);
        config.setBrokerName(request.getString("broker"));
        config.setBrokerIP1("127.0.0.1");
        config.setNamesrvAddr(address);
        config.setListenPort(request.getIntValue("brokerPort"));
        config.setEnablePropertyFilter(true);
        config.setBrokerFastFailureEnable(false);  // on a busy machine it answers TIMEOUT_CLEAN_QUEUE
        if (request.containsKey("check")) config.setTransactionCheckInterval(request.getLongValue("check"));
        MessageStoreConfig store = new MessageStoreConfig();
        store.setStorePathRootDir(request.getString("store"));
        store.setStorePathCommitLog(request.getString("store") + "/commitlog");
        store.setMappedFileSizeCommitLog(1 << 22);
        store.setTimerWheelEnable(request.getBooleanValue("timers"));
        store.setMessageDelayLevel(request.getString("levels"));
        store.setHaListenPort(request.getIntValue("brokerPort") + 1);
        NettyServerConfig brokerServer = new NettyServerConfig();
        brokerServer.setListenPort(request.getIntValue("brokerPort"));
        brokerServer.setBindAddress("127.0.0.1");
        org.apache.rocketmq.auth.config.AuthConfig auth = new org.apache.rocketmq.auth.config.AuthConfig();
        auth.setConfigName(request.getString("broker"));
        auth.setAuthConfigPath(home + "/auth");
        if (request.getString("account") != null) {
            JSONObject account = JSON.parseObject(request.getString("account"));
            JSONObject user = new JSONObject(), keys = new JSONObject();
            user.put("username", account.getString("key"));
            user.put("password", account.getString("secret"));
            keys.put("accessKey", account.getString("key"));
            keys.put("secretKey", account.getString("secret"));
            auth.setAuthenticationEnabled(true);
            auth.setAuthenticationProvider("org.apache.rocketmq.auth.authentication.provider.DefaultAuthenticationProvider");
            auth.setAuthenticationMetadataProvider("org.apache.rocketmq.auth.authentication.provider.LocalAuthenticationMetadataProvider");
            auth.setInitAuthenticationUser(user.toJSONString());
            auth.setInnerClientAuthenticationCredentials(keys.toJSONString());
        }
        broker = new BrokerController(config, brokerServer, new NettyClientConfig(), store, auth);
        if (!broker.initialize()) throw new IllegalStateException("the broker does not initialize");
        bindToLoopback();
        broker.start();
        broker.registerBrokerAll(true, false, true);
        consumer = new DefaultMQPullConsumer(request.getString("group"));
        consumer.setNamesrvAddr(address);
        consumer.start();
        producer = new DefaultMQProducer("P");
        producer.setNamesrvAddr(address);
        producer.start();
        return true;
    }

    /** Listens for slaves on the loopback; the real one takes every address, and has no setting. */
    static class LoopbackHAService extends DefaultHAService {
        @Override public void init(DefaultMessageStore store) throws IOException {
            super.init(store);
            try {
                Class<?> kind = acceptSocketService.getClass();
                while (kind.getSuperclass() != ServiceThread.class) kind = kind.getSuperclass();
                Field address = kind.getDeclaredField("socketAddressListen");
                address.setAccessible(true);
                int port = store.getMessageStoreConfig().getHaListenPort();
                address.set(acceptSocketService, new InetSocketAddress("127.0.0.1", port));
            } catch (ReflectiveOperationException error) {
                throw new IOException(error);
            }
        }
    }

    static void bindToLoopback() throws Exception {
        Field service = DefaultMessageStore.class.getDeclaredField("haService");
        service.setAccessible(true);
        service.set(broker.getMessageStore(), new LoopbackHAService());
    }

    /** Writes what the broker writes every few seconds; an orderly end would wait for its threads. */
    static Object persist() {
        broker.getConsumerOffsetManager().persist();
        broker.getTopicConfigManager().persist();
        return true;
    }

    static Object answer(JSONObject request) throws Exception {
        switch (request.getString("op")) {
            case "start": return start(request);
            case "play":
                if (script == null) script = new Script(broker, consumer, producer);
                return script.play(request.getJSONArray("operation"));
            case "now": return System.currentTimeMillis();
            case "persist": return persist();
            case "topics": {
                List<String> found = new ArrayList<>();
                for (MessageQueue queue : consumer.fetchSubscribeMessageQueues(request.getString("topic")))
                    found.add(queue.getBrokerName() + " " + queue.getQueueId());
                Collections.sort(found);
                return found;
            }
            case "committed": return consumer.fetchConsumeOffset(queue(request.getJSONArray("queue")), true);
            case "commit":
                consumer.updateConsumeOffset(queue(request.getJSONArray("queue")), request.getLongValue("offset"));
                consumer.getDefaultMQPullConsumerImpl().getOffsetStore().persist(queue(request.getJSONArray("queue")));
                return true;
            case "send": {
                Message message = new Message(request.getString("topic"), request.getString("tags"),
                    request.getString("body").getBytes(StandardCharsets.UTF_8));
                message.setDelayTimeLevel(request.getIntValue("level"));
                return producer.send(message, queue(request.getJSONArray("queue"))).getQueueOffset();
            }
            case "pull": {
                PullResult result = consumer.pull(queue(request.getJSONArray("queue")), request.getString("expression"),
                    request.getLongValue("offset"), request.getIntValue("count"));
                JSONObject reply = new JSONObject();
                List<Long> offsets = new ArrayList<>();
                if (result.getMsgFoundList() != null)
                    for (MessageExt message : result.getMsgFoundList()) offsets.add(message.getQueueOffset());
                reply.put("status", result.getPullStatus().name());
                reply.put("next", result.getNextBeginOffset());
                reply.put("min", result.getMinOffset());
                reply.put("max", result.getMaxOffset());
                reply.put("offsets", offsets);
                return reply;
            }
            case "maxOffset": return consumer.maxOffset(queue(request.getJSONArray("queue")));
            case "searchOffset":
                return consumer.searchOffset(queue(request.getJSONArray("queue")), request.getLongValue("timestamp"));
            case "storeTime":
                return broker.getMessageStore().getMessageStoreTimeStamp(request.getString("topic"),
                    request.getIntValue("id"), request.getLongValue("offset"));
            case "timeUp": {
                MessageExt waiting = new MessageExt();
                waiting.setBody(new byte[] {1});
                JSONObject properties = request.getJSONObject("properties");
                for (String name : properties.keySet())
                    MessageAccessor.putProperty(waiting, name, properties.getString(name));
                ScheduleMessageService service = broker.getScheduleMessageService();
                Method timeUp = ScheduleMessageService.class.getDeclaredMethod("messageTimeUp", MessageExt.class);
                timeUp.setAccessible(true);
                return MessageDecoder.string2messageProperties(
                    ((MessageExtBrokerInner) timeUp.invoke(service, waiting)).getPropertiesString());
            }
            case "localOffsets": {
                MQClientInstance client = new MQClientInstance(new ClientConfig(), 0, request.getString("clientId"));
                LocalFileOffsetStore store = new LocalFileOffsetStore(client, request.getString("group"));
                store.load();
                TreeMap<String, Long> found = new TreeMap<>();
                for (String topic : request.getJSONArray("topics").toJavaList(String.class))
                    store.cloneOffsetTable(topic).forEach((queue, offset) -> found.put(queue.toString(), offset));
                if (request.containsKey("queue")) {
                    MessageQueue queue = queue(request.getJSONArray("queue"));
                    store.updateOffset(queue, request.getLongValue("offset"), false);
                    store.persistAll(Collections.singleton(queue));
                }
                return found;
            }
            case "fastjson2":
                return com.alibaba.fastjson2.JSON.parseObject(Files.readString(Paths.get(request.getString("file"))))
                    .getJSONObject("offsetTable").size();
            case "fastjson":
                return JSON.parseObject(Files.readString(Paths.get(request.getString("file"))),
                    OffsetSerializeWrapper.class).getOffsetTable().size();
            case "decode": {
                MessageExt message = MessageDecoder.decode(ByteBuffer.wrap(
                    java.util.Base64.getDecoder().decode(request.getString("payload"))), true, false, false, true, true);
                JSONObject reply = new JSONObject();
                reply.put("topic", message.getTopic());
                reply.put("body", new String(message.getBody(), StandardCharsets.UTF_8));
                reply.put("tags", message.getTags());
                reply.put("queueId", message.getQueueId());
                reply.put("queueOffset", message.getQueueOffset());
                reply.put("storeTimestamp", message.getStoreTimestamp());
                reply.put("commitLogOffset", message.getCommitLogOffset());
                reply.put("storeSize", message.getStoreSize());
                reply.put("bodyCRC", message.getBodyCRC());
                reply.put("text", message.toString());
                reply.put("offsetMsgId", message.getMsgId());
                return reply;
            }
            default: throw new IllegalArgumentException(request.getString("op"));
        }
    }

    public static void main(String[] arguments) throws Exception {
        // As BrokerStartup does; without it nobody knows what the others can do.
        System.setProperty(RemotingCommand.REMOTING_VERSION_KEY, Integer.toString(MQVersion.CURRENT_VERSION));
        PrintStream replies = System.out;
        System.setOut(System.err);
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            JSONObject reply = new JSONObject();
            try {
                reply.put("value", answer(JSON.parseObject(line)));
            } catch (Throwable error) {
                reply.put("error", error.toString());
            }
            replies.println(reply.toJSONString());
            replies.flush();
        }
        System.exit(0);
    }
}
