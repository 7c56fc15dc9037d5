import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;
import org.apache.activemq.ActiveMQConnectionFactory;
import org.apache.activemq.ActiveMQSession;
import org.apache.activemq.broker.BrokerPlugin;
import org.apache.activemq.broker.BrokerService;
import org.apache.activemq.command.ActiveMQDestination;
import org.apache.activemq.command.ActiveMQStreamMessage;
import org.apache.activemq.broker.util.TimeStampingBrokerPlugin;
import org.apache.activemq.plugin.DiscardingDLQBrokerPlugin;
import org.apache.activemq.plugin.ForcePersistencyModeBrokerPlugin;
import org.apache.activemq.plugin.StatisticsBrokerPlugin;
import org.apache.activemq.filter.DestinationMapEntry;
import org.apache.activemq.security.AuthenticationUser;
import org.apache.activemq.security.AuthorizationEntry;
import org.apache.activemq.security.AuthorizationPlugin;
import org.apache.activemq.security.DefaultAuthorizationMap;
import org.apache.activemq.security.SimpleAuthenticationPlugin;

/**
 * A broker that listens for STOMP, in memory, or with its messages in the folder that is its argument. Prints a line
 * "port" with its port; answers a line "new" with the port of a new broker in its place, which has the plugins that follow, such as
 * "stamp=60000,5000,false force=true statistics discard rights=Q.>,users,users,users"; a line "stream queue://Q 1,4
 * price=150 int=5 string=x", of delivery mode, priority, properties behind "#" and values, has a JMS client send a stream
 * message, and is answered "port sent", or "port" with the exception; ends with its input.
 */
public class StompBroker {
    public static void main(String[] arguments) throws Exception {
        BrokerService broker = start(arguments, "");
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            if (line.startsWith("new")) {
                broker.stop();
                broker.waitUntilStopped();
                broker = start(arguments, line.substring(3).trim());
            } else if (line.startsWith("stream ")) {
                System.out.println("port " + stream(line.split(" ")));
            }
        }
        broker.stop();
        System.exit(0);
    }

    private static BrokerService start(String[] arguments, String plugins) throws Exception {
        BrokerService broker = new BrokerService();
        broker.setPersistent(arguments.length > 0);
        if (arguments.length > 0) {
            broker.setDataDirectory(arguments[0]);
        }
        broker.setSchedulerSupport(true);
        // What answers a question for the statistics of subscriptions.
        broker.setUseJmx(plugins.contains("statistics"));
        broker.getManagementContext().setCreateConnector(false);
        broker.setUseShutdownHook(false);
        broker.setPlugins(plugins(plugins));
        broker.addConnector("stomp://127.0.0.1:0");
        broker.start();
        broker.waitUntilStarted();
        System.out.println("port " + broker.getTransportConnectors().get(0).getConnectUri().getPort());
        return broker;
    }

    private static String stream(String[] words) {
        ActiveMQConnectionFactory factory = new ActiveMQConnectionFactory("vm://localhost?create=false");
        factory.setWatchTopicAdvisories(false);
        try {
            var connection = factory.createConnection("user", "secret");
            try {
                var session = connection.createSession(false, ActiveMQSession.AUTO_ACKNOWLEDGE);
                var producer = session.createProducer(ActiveMQDestination.createDestination(
                    words[1], ActiveMQDestination.QUEUE_TYPE));
                producer.setDeliveryMode(Integer.parseInt(words[2]));
                producer.setPriority(Integer.parseInt(words[3]));
                var message = (ActiveMQStreamMessage) session.createStreamMessage();
                for (int at = 4; at < words.length; at++) {
                    String[] value = words[at].split("=", 2);
                    write(message, value[0], value[1]);
                }
                producer.send(message);
            } finally {
                connection.close();
            }
            return "sent";
        } catch (Exception error) {
            return error.getMessage();
        }
    }

    private static void write(ActiveMQStreamMessage message, String kind, String text) throws Exception {
        switch (kind) {
            case "int" -> message.writeInt(Integer.parseInt(text));
            case "long" -> message.writeLong(Long.parseLong(text));
            case "double" -> message.writeDouble(Double.parseDouble(text));
            case "boolean" -> message.writeBoolean(Boolean.parseBoolean(text));
            case "bytes" -> message.writeBytes(text.getBytes(java.nio.charset.StandardCharsets.UTF_8));
            case "null" -> message.writeObject(null);
            case "string" -> message.writeString(text);
            case "#long" -> message.setLongProperty("AMQ_SCHEDULED_DELAY", Long.parseLong(text));
            case "#int" -> message.setIntProperty("price", Integer.parseInt(text));
            case "#group" -> message.setStringProperty("JMSXGroupID", text);
            case "#type" -> message.setJMSType(text);
            case "#correlation" -> message.setJMSCorrelationID(text);
            default -> throw new IllegalArgumentException(kind);
        }
    }

    private static BrokerPlugin[] plugins(String texts) {
        List<BrokerPlugin> found = new ArrayList<>();
        List<DestinationMapEntry> rights = new ArrayList<>();
        for (String text : texts.split(" ")) {
            String[] values = text.substring(text.indexOf('=') + 1).split(",");
            if (text.startsWith("stamp=")) {
                TimeStampingBrokerPlugin plugin = new TimeStampingBrokerPlugin();
                plugin.setZeroExpirationOverride(Long.parseLong(values[0]));
                plugin.setTtlCeiling(Long.parseLong(values[1]));
                plugin.setFutureOnly(Boolean.parseBoolean(values[2]));
                found.add(plugin);
            } else if (text.startsWith("force=")) {
                ForcePersistencyModeBrokerPlugin plugin = new ForcePersistencyModeBrokerPlugin();
                plugin.setPersistenceFlag(Boolean.parseBoolean(values[0]));
                found.add(plugin);
            } else if (text.equals("statistics")) {
                found.add(new StatisticsBrokerPlugin());
            } else if (text.equals("discard")) {
                found.add(new DiscardingDLQBrokerPlugin());
            } else if (text.startsWith("rights=")) {
                AuthorizationEntry entry = new AuthorizationEntry();
                try {
                    if (values[0].startsWith("topic://")) {
                        entry.setTopic(values[0].substring(8));
                    } else {
                        entry.setQueue(values[0]);
                    }
                    entry.setRead(values[1]);
                    entry.setWrite(values[2]);
                    entry.setAdmin(values[3]);
                } catch (Exception error) {
                    throw new IllegalArgumentException(text, error);
                }
                rights.add(entry);
            }
        }
        if (!rights.isEmpty()) {
            SimpleAuthenticationPlugin users = new SimpleAuthenticationPlugin();
            users.setUsers(List.of(new AuthenticationUser("user", "secret", "users")));
            found.add(users);
            found.add(new AuthorizationPlugin(new DefaultAuthorizationMap(rights)));
        }
        return found.toArray(new BrokerPlugin[0]);
    }
}
