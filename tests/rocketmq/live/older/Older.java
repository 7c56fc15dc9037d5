import io.netty.bootstrap.ServerBootstrap;
import java.io.File;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import org.apache.rocketmq.broker.BrokerController;
import org.apache.rocketmq.common.BrokerConfig;
import org.apache.rocketmq.common.MQVersion;
import org.apache.rocketmq.common.namesrv.NamesrvConfig;
import org.apache.rocketmq.namesrv.NamesrvController;
import org.apache.rocketmq.remoting.netty.NettyClientConfig;
import org.apache.rocketmq.remoting.netty.NettyServerConfig;
import org.apache.rocketmq.remoting.protocol.RemotingCommand;
import org.apache.rocketmq.store.config.MessageStoreConfig;

/** A name server and a broker 4.9.7 on the loopback, until standard input ends: home, ports, levels, check. */
public class Older {
    /** 4.9 listens at every address, and has no setting. */
    static class Loopback extends ServerBootstrap {
        @Override public ServerBootstrap localAddress(SocketAddress address) {
            return super.localAddress(new InetSocketAddress("127.0.0.1", ((InetSocketAddress) address).getPort()));
        }
    }

    static Object field(Object of, String name) throws Exception {
        Class<?> kind = of.getClass();
        while (true) {
            try {
                Field found = kind.getDeclaredField(name);
                found.setAccessible(true);
                return found.get(of);
            } catch (NoSuchFieldException error) {
                kind = kind.getSuperclass();
            }
        }
    }

    static void set(Object of, String name, Object value) throws Exception {
        Field found = of.getClass().getDeclaredField(name);
        found.setAccessible(true);
        found.set(of, value);
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream replies = System.out;
        System.setOut(System.err);  // where the loggers write
        // As BrokerStartup does; name servers take other forms from brokers without it.
        System.setProperty(RemotingCommand.REMOTING_VERSION_KEY, Integer.toString(MQVersion.CURRENT_VERSION));
        String home = arguments[0];
        int namesPort = Integer.parseInt(arguments[1]), brokerPort = Integer.parseInt(arguments[2]);
        NamesrvConfig namesConfig = new NamesrvConfig();
        namesConfig.setRocketmqHome(home);
        namesConfig.setKvConfigPath(home + "/kv.json");
        NettyServerConfig namesServer = new NettyServerConfig();
        namesServer.setListenPort(namesPort);
        NamesrvController names = new NamesrvController(namesConfig, namesServer);
        names.initialize();
        set(field(names, "remotingServer"), "serverBootstrap", new Loopback());
        names.start();
        BrokerConfig config = new BrokerConfig();
        config.setRocketmqHome(home);
        config.setBrokerName("broker-a");
        config.setBrokerIP1("127.0.0.1");
        config.setNamesrvAddr("127.0.0.1:" + namesPort);
        config.setEnablePropertyFilter(true);
        config.setBrokerFastFailureEnable(false);  // on a busy machine it answers TIMEOUT_CLEAN_QUEUE
        config.setAclEnable(new File(home, "conf/plain_acl.yml").exists());
        config.setTransactionCheckInterval(Long.parseLong(arguments[4]));
        MessageStoreConfig store = new MessageStoreConfig();
        store.setStorePathRootDir(home + "/store");
        store.setStorePathCommitLog(home + "/store/commitlog");
        store.setMappedFileSizeCommitLog(1 << 22);
        store.setMessageDelayLevel(arguments[3]);
        store.setHaListenPort(brokerPort + 1);
        NettyServerConfig brokerServer = new NettyServerConfig();
        brokerServer.setListenPort(brokerPort);
        BrokerController broker = new BrokerController(config, brokerServer, new NettyClientConfig(), store);
        if (!broker.initialize()) throw new IllegalStateException("the broker does not initialize");
        set(field(broker, "remotingServer"), "serverBootstrap", new Loopback());
        set(field(broker, "fastRemotingServer"), "serverBootstrap", new Loopback());
        Object accepting = field(field(broker.getMessageStore(), "haService"), "acceptSocketService");
        set(accepting, "socketAddressListen", new InetSocketAddress("127.0.0.1", brokerPort + 1));
        broker.start();
        broker.registerBrokerAll(true, false, true);
        replies.println("started");
        replies.flush();
        while (System.in.read() >= 0) { }
        Runtime.getRuntime().halt(0);
    }
}
