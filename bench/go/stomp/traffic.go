// What go-stomp does on a broker: reads a request a line, as JSON, and answers each with counts and times.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"time"

	"github.com/go-stomp/stomp/v3"
)

type request struct {
	Op    string `json:"op"`
	Port  int    `json:"port"`
	Queue string `json:"queue"`
	Count int    `json:"count"`
	Size  int    `json:"size"`
}

type reply struct {
	Count   int     `json:"count"`
	Seconds float64 `json:"seconds"`
	P50     float64 `json:"p50"`
	P99     float64 `json:"p99"`
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func dial(port int) *stomp.Conn {
	conn, err := stomp.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port), stomp.ConnOpt.HeartBeat(0, 0))
	check(err)
	return conn
}

// send waits for the receipt of each message.
func send(asked request) reply {
	conn, body := dial(asked.Port), make([]byte, asked.Size)
	spent := make([]float64, 0, asked.Count)
	began := time.Now()
	for number := 0; number < asked.Count; number++ {
		sent := time.Now()
		check(conn.Send(asked.Queue, "application/octet-stream", body, stomp.SendOpt.Receipt))
		spent = append(spent, time.Since(sent).Seconds())
	}
	seconds := time.Since(began).Seconds()
	check(conn.Disconnect())
	sort.Float64s(spent)
	return reply{len(spent), seconds, spent[len(spent)/2], spent[len(spent)*99/100]}
}

// pass sends without receipts, and has another connection consume meanwhile.
func pass(asked request) reply {
	from, to := dial(asked.Port), dial(asked.Port)
	subscription, err := to.Subscribe(asked.Queue, stomp.AckAuto)
	check(err)
	began := time.Now()
	go func() {
		body := make([]byte, asked.Size)
		for sent := 0; sent < asked.Count; sent++ {
			check(from.Send(asked.Queue, "application/octet-stream", body))
		}
	}()
	count := 0
	for count < asked.Count {
		message := <-subscription.C
		check(message.Err)
		if len(message.Body) == asked.Size {
			count++
		}
	}
	seconds := time.Since(began).Seconds()
	check(from.Disconnect())
	check(to.Disconnect())
	return reply{Count: count, Seconds: seconds}
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var asked request
		check(json.Unmarshal(lines.Bytes(), &asked))
		act := map[string]func(request) reply{"send": send, "pass": pass}[asked.Op]
		answer, err := json.Marshal(act(asked))
		check(err)
		fmt.Println(string(answer))
	}
}
