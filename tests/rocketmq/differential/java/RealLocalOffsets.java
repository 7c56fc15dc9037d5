import com.alibaba.fastjson.JSONArray;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.rocketmq.client.ClientConfig;
import org.apache.rocketmq.client.consumer.store.LocalFileOffsetStore;
import org.apache.rocketmq.client.consumer.store.ReadOffsetType;
import org.apache.rocketmq.client.impl.factory.MQClientInstance;
import org.apache.rocketmq.common.message.MessageQueue;

/** LocalFileOffsetStore on files of one trace; the state is its memory and the text of both files. */
final class RealLocalOffsets implements RealClasses.Player {
    private static MQClientInstance client;
    private static int traces;
    private final String group = "G" + ++traces;
    private final Path file;
    private LocalFileOffsetStore store;

    RealLocalOffsets() {
        if (client == null)
            client = new MQClientInstance(new ClientConfig(), 0, "C");
        file = Paths.get(LocalFileOffsetStore.LOCAL_OFFSET_STORE_DIR, "C", group, "offsets.json");
        store = new LocalFileOffsetStore(client, group);
    }

    private static MessageQueue queue(String name) {
        if (name == null)
            return null;
        String[] parts = name.split("/");
        return new MessageQueue(parts[0], parts[1], Integer.parseInt(parts[2]));
    }

    private Path place(String name) {
        return name.equals("main") ? file : file.resolveSibling("offsets.json.bak");
    }

    @Override
    public Object play(JSONArray operation) throws Exception {
        switch (operation.getString(0)) {
            case "write":
                Files.createDirectories(file.getParent());
                if (operation.get(2) == null)
                    Files.deleteIfExists(place(operation.getString(1)));
                else
                    Files.write(place(operation.getString(1)), operation.getString(2).getBytes(StandardCharsets.UTF_8));
                return null;
            case "restart":
                store = new LocalFileOffsetStore(client, group);
                return null;
            case "load":
                store.load();
                return null;
            case "update":
                store.updateOffset(queue(operation.getString(1)), operation.getLongValue(2),
                    operation.getBooleanValue(3));
                return null;
            case "freeze":
                store.updateAndFreezeOffset(queue(operation.getString(1)), operation.getLongValue(2));
                return null;
            case "read":
                return store.readOffset(queue(operation.getString(1)),
                    ReadOffsetType.valueOf(operation.getString(2)));
            case "persist":
                store.persist(queue(operation.getString(1)));
                return null;
            case "persist_all": {
                Set<MessageQueue> wanted = operation.get(1) == null ? null : new HashSet<>();
                for (int i = 0; wanted != null && i < operation.getJSONArray(1).size(); i++)
                    wanted.add(queue(operation.getJSONArray(1).getString(i)));
                store.persistAll(wanted);
                return null;
            }
            default:
                store.removeOffset(queue(operation.getString(1)));
                return null;
        }
    }

    private static String text(Path path) throws IOException {
        return Files.exists(path) ? new String(Files.readAllBytes(path), StandardCharsets.UTF_8) : null;
    }

    @Override
    public Object state() throws IOException {
        List<Object> memory = new ArrayList<>();
        store.cloneOffsetTable(null).forEach((queue, offset) -> memory.add(
            Arrays.asList(queue.getTopic(), queue.getBrokerName(), queue.getQueueId(), offset)));
        return Arrays.asList(memory, text(file), text(place("bak")));
    }
}
