import java.io.BufferedReader;
import java.io.InputStreamReader;
import org.apache.activemq.broker.BrokerService;

/**
 * A broker that listens for OpenWire, or where the property "connector" says, in memory, or with its messages in the
 * folder that is its argument. Prints its port; answers a line "new" with the port of a new broker in its place; ends
 * with its input.
 */
public class OpenWireBroker {
    public static void main(String[] arguments) throws Exception {
        BrokerService broker = start(arguments);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            if (line.equals("new")) {
                broker.stop();
                broker.waitUntilStopped();
                broker = start(arguments);
            }
        }
        broker.stop();
        System.exit(0);
    }

    private static BrokerService start(String[] arguments) throws Exception {
        BrokerService broker = new BrokerService();
        broker.setPersistent(arguments.length > 0);
        if (arguments.length > 0) {
            broker.setDataDirectory(arguments[0]);
        }
        broker.setSchedulerSupport(true);
        broker.setUseJmx(false);
        broker.setUseShutdownHook(false);
        broker.addConnector(System.getProperty("connector", "tcp://127.0.0.1:0"));
        broker.start();
        broker.waitUntilStarted();
        System.out.println(broker.getTransportConnectors().get(0).getConnectUri().getPort());
        return broker;
    }
}
