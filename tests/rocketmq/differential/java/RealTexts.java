import com.alibaba.fastjson.JSONArray;
import com.alibaba.fastjson.JSONObject;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Date;
import java.util.List;
import java.util.Map;
import java.util.TimeZone;
import java.util.TreeSet;
import org.apache.rocketmq.client.Validators;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.impl.consumer.DefaultMQPushConsumerImpl;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.MixAll;
import org.apache.rocketmq.common.UtilAll;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExtBrokerInner;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.common.TopicFilterType;
import org.apache.rocketmq.filter.FilterFactory;
import org.apache.rocketmq.filter.expression.EvaluationContext;
import org.apache.rocketmq.filter.expression.Expression;
import org.apache.rocketmq.remoting.protocol.filter.FilterAPI;
import org.apache.rocketmq.remoting.protocol.heartbeat.MessageModel;
import org.apache.rocketmq.remoting.protocol.heartbeat.SubscriptionData;

/** What the real classes make of texts and parameters. */
final class RealTexts {
    private RealTexts() {
    }

    static JSONObject failed(Throwable failure) {
        JSONObject error = new JSONObject(true);
        error.put("class", failure.getClass().getName());
        error.put("text", failure.getMessage());
        return error;
    }

    /** Each operation is [expression, properties]; the result is "parse", "eval", true, false or null. */
    static final class Sql implements RealClasses.Player {
        @Override
        public Object play(JSONArray operation) {
            Expression compiled;
            try {
                compiled = FilterFactory.INSTANCE.get("SQL92").compile(operation.getString(0));
            } catch (Throwable refused) {
                return "parse";
            }
            JSONObject properties = operation.getJSONObject(1);
            try {
                return compiled.evaluate(new EvaluationContext() {
                    @Override
                    public Object get(String name) {
                        return properties.getString(name);
                    }

                    @Override
                    public Map<String, Object> keyValues() {
                        return properties;
                    }
                });
            } catch (Throwable thrown) {
                return "eval";
            }
        }

        @Override
        public Object state() {
            return null;
        }
    }

    /** The first of an operation says what is asked of the rest. */
    static final class Texts implements RealClasses.Player {
        private static final Method CHECK;

        static {
            try {
                CHECK = DefaultMQPushConsumerImpl.class.getDeclaredMethod("checkConfig");
                CHECK.setAccessible(true);
            } catch (NoSuchMethodException missing) {
                throw new IllegalStateException(missing);
            }
        }

        @Override
        public Object play(JSONArray operation) {
            try {
                switch (operation.getString(0)) {
                    case "subscription":
                        return subscription(operation.getString(1), operation.getString(2));
                    case "tags_code":
                        return MessageExtBrokerInner.tagsString2tagsCode(TopicFilterType.SINGLE_TAG,
                            operation.getString(1));
                    case "timestamp": {
                        TimeZone.setDefault(TimeZone.getTimeZone(operation.getString(1)));
                        Date date = UtilAll.parseDate(operation.getString(2), UtilAll.YYYYMMDDHHMMSS);
                        return date == null ? null : date.getTime();
                    }
                    case "queue": {
                        MessageQueue queue = queue(operation.getJSONArray(1));
                        return Arrays.asList(queue.toString(), queue.hashCode());
                    }
                    case "sort": {
                        List<MessageQueue> queues = new ArrayList<>();
                        for (Object row : operation.getJSONArray(1))
                            queues.add(queue((JSONArray) row));
                        Collections.sort(queues);
                        List<Object> rows = new ArrayList<>();
                        for (MessageQueue queue : queues)
                            rows.add(Arrays.asList(queue.getTopic(), queue.getBrokerName(), queue.getQueueId()));
                        return rows;
                    }
                    case "sort_clients": {
                        List<String> clients = operation.getJSONArray(1).toJavaList(String.class);
                        Collections.sort(clients);
                        return clients;
                    }
                    case "names":
                        return Arrays.asList(MixAll.getRetryTopic(operation.getString(1)),
                            MixAll.getDLQTopic(operation.getString(1)));
                    case "send": {
                        byte[] body = operation.get(2) == null ? null : new byte[operation.getIntValue(2)];
                        DefaultMQProducer producer = new DefaultMQProducer("P");
                        producer.setMaxMessageSize(1000);
                        Validators.checkMessage(new Message(operation.getString(1), body), producer);
                        return null;
                    }
                    default:
                        return config(operation.getJSONArray(1));
                }
            } catch (InvocationTargetException thrown) {
                return failed(thrown.getCause());
            } catch (Exception thrown) {
                return failed(thrown);
            }
        }

        private static MessageQueue queue(JSONArray row) {
            return new MessageQueue(row.getString(0), row.getString(1), row.getIntValue(2));
        }

        private static Object subscription(String text, String type) throws Exception {
            SubscriptionData data = FilterAPI.build("T", text, type);
            return Arrays.asList(data.getSubString(), new TreeSet<>(data.getTagsSet()),
                new TreeSet<>(data.getCodeSet()), data.getExpressionType());
        }

        /** Rows of [field, value] on a consumer that may start. */
        private static Object config(JSONArray rows) throws Exception {
            DefaultMQPushConsumer consumer = new DefaultMQPushConsumer("G");
            consumer.setMessageListener((MessageListenerConcurrently) (messages, context) -> null);
            for (Object item : rows) {
                JSONArray row = (JSONArray) item;
                String name = row.getString(0);
                Field field = RealClasses.field(DefaultMQPushConsumer.class, name);
                Object value = row.get(1);
                if (field.getType() == int.class)
                    value = row.getIntValue(1);
                else if (field.getType() == long.class)
                    value = row.getLongValue(1);
                else if (value != null && name.equals("messageModel"))
                    value = MessageModel.valueOf((String) value);
                else if (value != null && name.equals("consumeFromWhere"))
                    value = ConsumeFromWhere.valueOf((String) value);
                else if (value != null && name.equals("messageListener"))
                    value = value.equals("orderly") ? (MessageListenerOrderly) (messages, context) -> null
                        : (MessageListenerConcurrently) (messages, context) -> null;
                field.set(consumer, value);
            }
            CHECK.invoke(consumer.getDefaultMQPushConsumerImpl());
            return null;
        }

        @Override
        public Object state() {
            return null;
        }
    }
}
