// Plays a script with @stomp/stompjs over TCP: "node play.mjs PORT" reads it from standard input, as JSON.
import net from "node:net";
import { Client } from "@stomp/stompjs";

const PATIENCE = 5000;
const PAUSE = 150;
const VARYING = new Set(["message-id", "timestamp", "ack"]);
const port = Number(process.argv[2]);
const transcript = [];
const clients = {};
const say = (...words) => transcript.push(words.join(" "));
const sleep = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));
const mask = (text) => (text ?? "").replace(/ID:[\w.:-]+|tcp:\/\/[\d.:]+/g, "ID");

/** What stompjs takes for a WebSocket, over a TCP socket. */
class TcpSocket {
  binaryType = "arraybuffer";
  readyState = 0;
  constructor() {
    this.socket = net.createConnection({ host: "127.0.0.1", port, noDelay: true }, () => {
      this.readyState = 1;
      this.onopen?.({});
    });
    this.socket.on("data", (data) => this.onmessage?.({ data: new Uint8Array(data).buffer }));
    this.socket.on("error", () => {});
    this.socket.on("close", () => {
      this.readyState = 3;
      this.onclose?.({ code: 1000, reason: "", wasClean: true });
    });
  }
  send(data) {
    this.socket.write(typeof data === "string" ? data : Buffer.from(data));
  }
  close() {
    this.readyState = 2;
    this.socket.end();
  }
  terminate() {
    this.socket.destroy();
  }
}

async function until(ready, limit = PATIENCE) {
  const end = Date.now() + limit;
  while (!ready()) {
    if (Date.now() > end) return false;
    await sleep(3);
  }
  return true;
}

let receipts = 0;
async function asked(name, act) {
  const each = clients[name];
  const receipt = `r${++receipts}`;
  const before = each.errors.length;
  let answered = false;
  each.client.watchForReceipt(receipt, () => (answered = true));
  act(receipt);
  if (!(await until(() => answered || each.errors.length > before || each.closed))) say("no answer");
  for (const frame of each.errors.slice(before)) say("ERROR", mask(frame.headers.message));
}

function show(name) {
  const each = clients[name];
  const came = each.messages.slice(each.shown);
  each.shown = each.messages.length;
  const order = came.map((frame, at) => [frame, at]);
  order.sort((one, other) =>
    one[0].headers.subscription === other[0].headers.subscription
      ? one[1] - other[1]
      : one[0].headers.subscription < other[0].headers.subscription ? -1 : 1);
  for (const [frame] of order) {
    const lines = Object.entries(frame.headers).map(([key, value]) => `${key}=${VARYING.has(key) ? "*" : mask(value)}`);
    say("MESSAGE", JSON.stringify(frame.body), JSON.stringify(lines.sort()));
  }
}

const operations = {
  async connect(name, { headers }) {
    const each = (clients[name] = { errors: [], messages: [], shown: 0, subscriptions: {}, transactions: {} });
    const given = { login: "user", passcode: "secret" };
    for (const [key, value] of Object.entries(headers)) given[key.replaceAll("_", "-")] = value;
    each.client = new Client({
      webSocketFactory: () => new TcpSocket(),
      connectHeaders: given,
      reconnectDelay: 0,
      heartbeatIncoming: 0,
      heartbeatOutgoing: 0,
      forceBinaryWSFrames: true,
      onStompError: (frame) => each.errors.push(frame),
      onWebSocketClose: () => (each.closed = true),
    });
    each.client.activate();
    await until(() => each.client.connected || each.errors.length > 0 || each.closed);
    if (!each.client.connected) say("refused");
  },
  async send(name, { destination, body, transaction, headers }) {
    const each = clients[name];
    const found = /^\{(\d+)\}$/.exec(destination);
    const where = found ? each.messages[Number(found[1])].headers["reply-to"] : destination;
    const extra = transaction ? { transaction } : {};
    await asked(name, (receipt) =>
      each.client.publish({ destination: where, body, headers: { ...headers, ...extra, receipt } }));
  },
  async subscribe(name, { destination, id, ack, headers }) {
    const each = clients[name];
    await asked(name, (receipt) => {
      each.subscriptions[id] = each.client.subscribe(destination, (frame) => each.messages.push(frame), {
        ...headers, id, ack, receipt,
      });
    });
  },
  async unsubscribe(name, { id, headers }) {
    await asked(name, (receipt) => clients[name].client.unsubscribe(id, { ...headers, receipt }));
  },
  async receive(name, { number }) {
    const each = clients[name];
    const wanted = each.shown + number;
    if (!(await until(() => each.messages.length >= wanted))) say("not all came");
    show(name);
  },
  async quiet(name) {
    await sleep(PAUSE);
    show(name);
  },
  async acknowledge(what, name, number, transaction) {
    const frame = clients[name].messages[number];
    const extra = transaction ? { transaction } : {};
    await asked(name, (receipt) => frame[what]({ ...extra, receipt }));
  },
  async ack(name, { number, transaction }) {
    await this.acknowledge("ack", name, number, transaction);
  },
  async nack(name, { number, transaction }) {
    await this.acknowledge("nack", name, number, transaction);
  },
  async begin(name, { transaction }) {
    clients[name].transactions[transaction] = clients[name].client.begin(transaction);
    await sleep(PAUSE / 3);
  },
  async commit(name, { transaction }) {
    clients[name].client.commit(transaction);
    await sleep(PAUSE / 3);
  },
  async abort(name, { transaction }) {
    clients[name].client.abort(transaction);
    await sleep(PAUSE / 3);
  },
  async disconnect(name) {
    await clients[name].client.deactivate();
    await until(() => clients[name].closed, 1000);
  },
  async drop(name) {
    await clients[name].client.deactivate({ force: true });
    await sleep(PAUSE);
  },
};

let input = "";
for await (const chunk of process.stdin) input += chunk;
for (const [operation, name, given] of JSON.parse(input)) {
  say(">", operation, name, JSON.stringify(given));
  try {
    await operations[operation](name, given);
  } catch (error) {
    say("error", mask(String(error.message)));
  }
}
console.log(JSON.stringify(transcript));
process.exit(0);
