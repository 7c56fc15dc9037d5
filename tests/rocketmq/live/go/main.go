// The real Go client, driven over a pipe: one JSON request a line, one JSON reply.
package main

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
	"github.com/apache/rocketmq-client-go/v2/rlog"
)

type message struct {
	Topic      string            `json:"topic"`
	Body       string            `json:"body"`
	Tags       string            `json:"tags"`
	Keys       string            `json:"keys"`
	Flag       int32             `json:"flag"`
	Level      int               `json:"level"`
	Properties map[string]string `json:"properties"`
	Timers     map[string]string `json:"timers"`
}

type request struct {
	Op           string    `json:"op"`
	Names        string    `json:"names"`
	Namespace    string    `json:"namespace"`
	Group        string    `json:"group"`
	Name         string    `json:"name"`
	Topic        string    `json:"topic"`
	Wanted       string    `json:"wanted"`
	Kind         string    `json:"kind"`
	From         string    `json:"from"`
	Timestamp    string    `json:"timestamp"`
	How          string    `json:"how"`
	Queue        *int      `json:"queue"`
	Failures     int       `json:"failures"`
	Most         *int32    `json:"most"`
	Level        *int      `json:"level"`
	Slow         int       `json:"slow"`
	Orderly      bool      `json:"orderly"`
	Broadcasting bool      `json:"broadcasting"`
	Message      message   `json:"message"`
	Messages     []message `json:"messages"`
}

type received struct {
	Key        string            `json:"key"`
	Topic      string            `json:"topic"`
	Body       string            `json:"body"`
	Tags       string            `json:"tags"`
	Keys       string            `json:"keys"`
	Flag       int32             `json:"flag"`
	Queue      int               `json:"queue"`
	Offset     int64             `json:"offset"`
	Times      int32             `json:"times"`
	Properties map[string]string `json:"properties"`
	Id         string            `json:"id"`
	At         int64             `json:"at"`
}

type member struct {
	lock     sync.Mutex
	messages []received
	push     rocketmq.PushConsumer
}

var producers = map[string]rocketmq.Producer{}
var members = map[string]*member{}
var instances int

// Sends to the queue that the message names, or to the next.
type chosen struct{ turns producer.QueueSelector }

func (c chosen) Select(m *primitive.Message, queues []*primitive.MessageQueue, last string) *primitive.MessageQueue {
	if number := m.GetProperty("TO"); number != "" {
		delete(m.GetProperties(), "TO")
		for _, queue := range queues {
			if strconv.Itoa(queue.QueueId) == number {
				return queue
			}
		}
		return nil
	}
	return c.turns.Select(m, queues, last)
}

func instance() string {
	instances++
	return fmt.Sprintf("corner-%d-%d", os.Getpid(), instances)
}

func made(given message) (*primitive.Message, error) {
	body, err := base64.StdEncoding.DecodeString(given.Body)
	if err != nil {
		return nil, err
	}
	m := primitive.NewMessage(given.Topic, body)
	m.WithProperties(given.Properties)
	for name, value := range given.Timers {
		m.WithProperty(name, value)
	}
	if given.Tags != "" {
		m.WithTag(given.Tags)
	}
	if given.Keys != "" {
		m.WithKeys([]string{given.Keys})
	}
	if given.Level > 0 {
		m.WithDelayTimeLevel(given.Level)
	}
	m.Flag = given.Flag
	return m, nil
}

func sent(result *primitive.SendResult) any {
	status := map[primitive.SendStatus]string{primitive.SendOK: "SEND_OK"}[result.Status]
	return map[string]any{
		"status": status, "topic": result.MessageQueue.Topic, "queue": result.MessageQueue.QueueId,
		"offset": result.QueueOffset, "id": result.MsgID, "offsetId": result.OffsetMsgID,
	}
}

func send(r request) (any, error) {
	if r.Namespace != "" {
		return nil, errors.New("not there: namespace")
	}
	p := producers[r.Group]
	if p == nil {
		var err error
		p, err = rocketmq.NewProducer(producer.WithNameServer([]string{r.Names}), producer.WithGroupName(r.Group),
			producer.WithInstanceName(instance()), producer.WithQueueSelector(chosen{producer.NewRoundRobinQueueSelector()}))
		if err != nil {
			return nil, err
		}
		if err = p.Start(); err != nil {
			return nil, err
		}
		producers[r.Group] = p
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if r.How == "batch" {
		var all []*primitive.Message
		for _, each := range r.Messages {
			m, err := made(each)
			if err != nil {
				return nil, err
			}
			all = append(all, m)
		}
		result, err := p.SendSync(ctx, all...)
		if err != nil {
			return nil, err
		}
		return sent(result), nil
	}
	m, err := made(r.Message)
	if err != nil {
		return nil, err
	}
	if r.Queue != nil {
		m.WithProperty("TO", strconv.Itoa(*r.Queue))
	}
	switch r.How {
	case "oneway":
		return nil, p.SendOneWay(ctx, m)
	case "async":
		done := make(chan error, 1)
		var found any
		err = p.SendAsync(ctx, func(_ context.Context, result *primitive.SendResult, e error) {
			if e == nil {
				found = sent(result)
			}
			done <- e
		}, m)
		if err != nil {
			return nil, err
		}
		return found, <-done
	case "", "sync":
		result, err := p.SendSync(ctx, m)
		if err != nil {
			return nil, err
		}
		return sent(result), nil
	}
	return nil, errors.New("not there: " + r.How)
}

func (m *member) took(each *primitive.MessageExt, failures int) bool {
	m.lock.Lock()
	defer m.lock.Unlock()
	key := string(each.Body[:min(40, len(each.Body))])
	before := 0
	for _, one := range m.messages {
		if one.Key == key {
			before++
		}
	}
	m.messages = append(m.messages, received{key, each.Topic, base64.StdEncoding.EncodeToString(each.Body), each.GetTags(),
		each.GetKeys(), each.Flag, each.Queue.QueueId, each.QueueOffset, each.ReconsumeTimes, each.GetProperties(),
		each.MsgId, time.Now().UnixMilli()})
	return failures >= 0 && before >= failures
}

func consume(r request) (any, error) {
	from := map[string]consumer.ConsumeFromWhere{"CONSUME_FROM_FIRST_OFFSET": consumer.ConsumeFromFirstOffset,
		"CONSUME_FROM_LAST_OFFSET": consumer.ConsumeFromLastOffset, "CONSUME_FROM_TIMESTAMP": consumer.ConsumeFromTimestamp}[r.From]
	options := []consumer.Option{consumer.WithNameServer([]string{r.Names}), consumer.WithGroupName(r.Group),
		consumer.WithInstance(instance()), consumer.WithConsumeFromWhere(from), consumer.WithConsumerOrder(r.Orderly),
		consumer.WithConsumeMessageBatchMaxSize(1)}
	if r.Timestamp != "" {
		options = append(options, consumer.WithConsumeTimestamp(r.Timestamp))
	}
	if r.Most != nil {
		options = append(options, consumer.WithMaxReconsumeTimes(*r.Most))
	}
	if r.Broadcasting {
		options = append(options, consumer.WithConsumerModel(consumer.BroadCasting))
	}
	push, err := rocketmq.NewPushConsumer(options...)
	if err != nil {
		return nil, err
	}
	m := &member{push: push}
	selector := consumer.MessageSelector{Type: consumer.TAG, Expression: r.Wanted}
	if r.Kind == "sql" {
		selector.Type = consumer.SQL92
	}
	err = push.Subscribe(r.Topic, selector, func(ctx context.Context, all ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		time.Sleep(time.Duration(r.Slow) * time.Millisecond)
		if r.Level != nil {
			if c, ok := primitive.GetConcurrentlyCtx(ctx); ok {
				c.DelayLevelWhenNextConsume = *r.Level
			}
		}
		for _, each := range all {
			if !m.took(each, r.Failures) {
				if r.Orderly {
					return consumer.SuspendCurrentQueueAMoment, nil
				}
				return consumer.ConsumeRetryLater, nil
			}
		}
		return consumer.ConsumeSuccess, nil
	})
	if err != nil {
		return nil, err
	}
	members[r.Name] = m
	return true, push.Start()
}

func answer(r request) (any, error) {
	switch r.Op {
	case "send":
		return send(r)
	case "consume":
		return consume(r)
	case "received":
		m := members[r.Name]
		m.lock.Lock()
		defer m.lock.Unlock()
		return append([]received{}, m.messages...), nil
	case "stop":
		m := members[r.Name]
		delete(members, r.Name)
		return true, m.push.Shutdown()
	}
	return nil, errors.New("not there: " + r.Op)
}

func main() {
	rlog.SetLogLevel("error")
	rlog.SetOutputPath(os.Args[1])
	lines := bufio.NewReaderSize(os.Stdin, 1<<24)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			os.Exit(0)
		}
		var r request
		reply := map[string]any{}
		if err = json.Unmarshal(line, &r); err == nil {
			reply["value"], err = answer(r)
		}
		if err != nil {
			reply = map[string]any{"error": "client", "text": err.Error()}
		}
		text, _ := json.Marshal(reply)
		fmt.Println(string(text))
	}
}
