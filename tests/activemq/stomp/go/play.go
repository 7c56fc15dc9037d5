// Plays a script with go-stomp: "play PORT" reads it from standard input, as JSON, and prints a transcript.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/go-stomp/stomp/v3"
	"github.com/go-stomp/stomp/v3/frame"
)

const (
	patience = 5 * time.Second
	pause    = 150 * time.Millisecond
)

var (
	identity  = regexp.MustCompile(`ID:[\w.:-]+|tcp://[\d.:]+`)
	reference = regexp.MustCompile(`^\{(\d+)\}$`)
	varying   = map[string]bool{"message-id": true, "timestamp": true, "ack": true}
)

type arrival struct {
	subscription string
	message      *stomp.Message
}

type client struct {
	conn          *stomp.Conn
	subscriptions map[string]*stomp.Subscription
	transactions  map[string]*stomp.Transaction
	arrivals      chan arrival
	messages      []arrival
	shown         int
}

type player struct {
	address    string
	clients    map[string]*client
	transcript []string
}

func (p *player) say(format string, words ...any) {
	p.transcript = append(p.transcript, fmt.Sprintf(format, words...))
}

func (p *player) failed(err error) {
	if err != nil {
		p.say("error %s", identity.ReplaceAllString(strings.SplitN(err.Error(), "\n", 2)[0], "ID"))
	}
}

func headers(given map[string]any) []string {
	var names []string
	found, _ := given["headers"].(map[string]any)
	for name := range found {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

func text(given map[string]any, name string) string {
	found, _ := given[name].(string)
	return found
}

func header(given map[string]any, name string) string {
	return given["headers"].(map[string]any)[name].(string)
}

func (c *client) listen(id string, subscription *stomp.Subscription) {
	for message := range subscription.C {
		c.arrivals <- arrival{id, message}
	}
}

// Take what came until there are so many messages, or the time is over.
func (c *client) take(number int, limit time.Duration) {
	end := time.After(limit)
	for number < 0 || len(c.messages) < number {
		select {
		case next := <-c.arrivals:
			c.messages = append(c.messages, next)
		case <-end:
			return
		}
	}
}

func (p *player) show(c *client) {
	came := c.messages[c.shown:]
	c.shown = len(c.messages)
	order := make([]arrival, len(came))
	copy(order, came)
	sort.SliceStable(order, func(i, j int) bool { return order[i].subscription < order[j].subscription })
	for _, each := range order {
		if each.message.Err != nil {
			p.failed(each.message.Err)
			continue
		}
		var lines []string
		for at := 0; at < each.message.Header.Len(); at++ {
			name, value := each.message.Header.GetAt(at)
			if varying[name] {
				value = "*"
			}
			lines = append(lines, name+"="+identity.ReplaceAllString(value, "ID"))
		}
		sort.Strings(lines)
		p.say("MESSAGE %q %q", each.message.Body, lines)
	}
}

func (p *player) step(operation string, name string, given map[string]any) {
	c := p.clients[name]
	if c == nil && operation != "connect" {
		p.say("not connected")
		return
	}
	switch operation {
	case "connect":
		options := []func(*stomp.Conn) error{
			stomp.ConnOpt.Login("user", "secret"), stomp.ConnOpt.HeartBeat(0, 0), stomp.ConnOpt.AcceptVersion(stomp.V12),
		}
		for _, each := range headers(given) {
			options = append(options, stomp.ConnOpt.Header(strings.ReplaceAll(each, "_", "-"), header(given, each)))
		}
		conn, err := stomp.Dial("tcp", p.address, options...)
		p.failed(err)
		if err == nil {
			p.clients[name] = &client{
				conn: conn, subscriptions: map[string]*stomp.Subscription{},
				transactions: map[string]*stomp.Transaction{}, arrivals: make(chan arrival, 10000),
			}
		}
	case "send":
		var options []func(*frame.Frame) error
		for _, each := range headers(given) {
			options = append(options, stomp.SendOpt.Header(each, header(given, each)))
		}
		destination := text(given, "destination")
		if found := reference.FindStringSubmatch(destination); found != nil {
			at, _ := strconv.Atoi(found[1])
			destination = c.messages[at].message.Header.Get("reply-to")
		}
		body := []byte(text(given, "body"))
		if transaction := text(given, "transaction"); transaction != "" {
			p.failed(c.transactions[transaction].Send(destination, "text/plain", body, options...))
		} else {
			options = append(options, stomp.SendOpt.Receipt)
			p.failed(c.conn.Send(destination, "text/plain", body, options...))
		}
	case "subscribe":
		mode := map[string]stomp.AckMode{"auto": stomp.AckAuto, "client": stomp.AckClient,
			"client-individual": stomp.AckClientIndividual}[text(given, "ack")]
		// go-stomp keeps subscriptions and receipts, which it numbers, under their names in one map.
		options := []func(*frame.Frame) error{stomp.SubscribeOpt.Id("s" + text(given, "id"))}
		for _, each := range headers(given) {
			options = append(options, stomp.SubscribeOpt.Header(each, header(given, each)))
		}
		subscription, err := c.conn.Subscribe(text(given, "destination"), mode, options...)
		p.failed(err)
		if err == nil {
			c.subscriptions[text(given, "id")] = subscription
			go c.listen(text(given, "id"), subscription)
		}
		time.Sleep(pause)
	case "unsubscribe":
		subscription := c.subscriptions[text(given, "id")]
		if subscription == nil {
			p.say("no such subscription")
			return
		}
		var options []func(*frame.Frame) error
		for _, each := range headers(given) {
			options = append(options, stomp.SubscribeOpt.Header(each, header(given, each)))
		}
		p.failed(subscription.Unsubscribe(options...))
		time.Sleep(pause)
	case "receive":
		wanted := c.shown + int(given["number"].(float64))
		c.take(wanted, patience)
		if len(c.messages) < wanted {
			p.say("not all came")
		}
		p.show(c)
	case "quiet":
		c.take(-1, pause)
		p.show(c)
	case "ack", "nack":
		number := int(given["number"].(float64))
		if number >= len(c.messages) {
			p.say("no such message")
			return
		}
		message := c.messages[number].message
		if transaction := c.transactions[text(given, "transaction")]; transaction != nil {
			p.failed(transaction.Ack(message))
		} else if operation == "ack" {
			p.failed(c.conn.Ack(message))
		} else {
			p.failed(c.conn.Nack(message))
		}
		time.Sleep(pause / 3)
	case "begin":
		c.transactions[text(given, "transaction")] = c.conn.Begin()
	case "commit", "abort":
		transaction := c.transactions[text(given, "transaction")]
		if transaction == nil {
			p.say("no such transaction")
		} else if operation == "commit" {
			p.failed(transaction.Commit())
		} else {
			p.failed(transaction.Abort())
		}
		time.Sleep(pause / 3)
	case "disconnect":
		p.failed(c.conn.Disconnect())
	case "drop":
		p.failed(c.conn.MustDisconnect())
		time.Sleep(pause)
	}
}

func main() {
	var steps [][]any
	if err := json.NewDecoder(os.Stdin).Decode(&steps); err != nil {
		panic(err)
	}
	p := &player{address: "127.0.0.1:" + os.Args[1], clients: map[string]*client{}}
	for _, each := range steps {
		given := each[2].(map[string]any)
		shown, _ := json.Marshal(given)
		p.say("> %s %s %s", each[0], each[1], shown)
		p.step(each[0].(string), each[1].(string), given)
	}
	out, _ := json.Marshal(p.transcript)
	fmt.Println(string(out))
}
