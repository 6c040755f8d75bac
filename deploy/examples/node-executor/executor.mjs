// An executor in Node: runs tasks of type "shout" and "sleep" in queue "node".
//
//   npm install --no-package-lock && node executor.mjs 127.0.0.1:7070
//   grpcurl -plaintext -d '{"task": {"queue": "node", "type": "shout",
//     "payload": {"json": "\"hello\""}}}' \
//     127.0.0.1:7070 leasehold.v1.TaskService/SubmitTask
//
// What every executor does, in any language: say hello and name the leases that
// it still holds; renew them with heartbeats; send each result again until it is
// acknowledged; and open the next session when one ends.
import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import grpc from '@grpc/grpc-js';
import protoLoader from '@grpc/proto-loader';

const addresses = (process.argv[2] ?? '127.0.0.1:7070').split(',');
const protos = fileURLToPath(new URL('../../../proto', import.meta.url));
const definition = protoLoader.loadSync('leasehold/v1/executor_service.proto', {
  includeDirs: [protos], keepCase: true, longs: String, enums: String, oneofs: true });
const { ExecutorService } = grpc.loadPackageDefinition(definition).leasehold.v1;

// A payload is JSON text, or bytes that are text here.
function inputOf({ payload }) {
  return payload?.json !== undefined ? JSON.parse(payload.json) : String(payload?.data ?? '');
}

// What a handler returns becomes JSON; `cancelled` is an AbortSignal.
const handlers = {
  shout: async (lease) => {
    const text = inputOf(lease);
    if (typeof text !== 'string') throw new Error('payload: want a JSON string, or text');
    return text.toUpperCase();
  },
  sleep: async (lease, cancelled) => {
    const { ms = 1000 } = lease.payload ? inputOf(lease) : {};
    await sleep(ms, null, { signal: cancelled });
    return 'slept';
  },
};

const log = (...words) => console.error(new Date().toISOString(), ...words);
// Unlike that of any other executor that runs: of two with one name the scheduler
// sends the older away.
const executorId = `${hostname()}-node-${randomUUID().slice(0, 8)}`;
const slots = 4;
const incarnation = randomUUID();
const held = new Map(); // "task/number" -> { ref, report?, abort }: all not yet acknowledged
const keyOf = (ref) => `${ref.task_id}/${ref.lease_number}`;
let sequence = 0;
let stream = null; // null while there is no session

async function run(lease, entry) {
  try {
    const result = await handlers[lease.type](lease, entry.abort.signal);
    entry.report = { lease: entry.ref, result: { json: JSON.stringify(result) } };
    log(`task ${lease.lease.task_id} ${lease.type}: succeeded`);
  } catch (error) {
    const error_class = entry.abort.signal.aborted ? 'ERROR_CLASS_CANCELLED' : 'ERROR_CLASS_RETRYABLE';
    const message = Buffer.from(String(error.message).slice(0, 1000)).toString(); // Valid UTF-8.
    entry.report = { lease: entry.ref, error: { error_class, code: 'NODE_ERROR', message } };
    log(`task ${lease.lease.task_id} ${lease.type}: failed:`, JSON.stringify(message));
  }
  stream?.write({ results: { results: [entry.report] } });
}

function onMessage(message) {
  for (const lease of message.leases?.leases ?? []) {
    if (held.has(keyOf(lease.lease))) continue;
    const entry = { ref: lease.lease, abort: new AbortController() };
    held.set(keyOf(lease.lease), entry);
    run(lease, entry);
  }
  if (message.leases) stream.write({ started: { leases: message.leases.leases.map((l) => l.lease) } });
  for (const ack of message.report_acks?.acks ?? []) {
    const entry = held.get(keyOf(ack.lease));
    if (!entry) continue;
    if (ack.disposition !== 'REPORT_DISPOSITION_TRY_AGAIN') held.delete(keyOf(ack.lease));
    else setTimeout(() => stream?.write({ results: { results: [entry.report] } }), 1000);
  }
  const { lost = [], cancelled = [] } = message.heartbeat_ack ?? {};
  for (const ref of [...lost, ...cancelled, ...(message.cancel_leases?.leases ?? [])]) held.get(keyOf(ref))?.abort.abort();
  if (message.drain) stream.cancel(); // Ends the session; the next one is opened elsewhere.
}

function heartbeat() {
  const leases = [...held.values()].map((entry) => ({ lease: entry.ref, started: true }));
  stream?.write({ heartbeat: { sequence: ++sequence, leases, load: { running: held.size } } });
}

function session(address) {
  return new Promise((resolve) => {
    const client = new ExecutorService(address, grpc.credentials.createInsecure());
    const call = client.OpenSession();
    let timer;
    call.on('data', (message) => {
      if (message.welcome) {
        stream = call;
        log(`connected to ${address} as ${executorId}, serving queue node: ${Object.keys(handlers)}`);
        const { seconds, nanos } = message.welcome.heartbeat_interval;
        timer = setInterval(heartbeat, Number(seconds) * 1000 + nanos / 1e6);
        heartbeat();
        const results = [...held.values()].map((entry) => entry.report).filter(Boolean);
        for (const report of results) call.write({ results: { results: [report] } });
      }
      onMessage(message);
    });
    call.on('error', () => {}); // 'status' says it, too.
    call.on('status', (status) => {
      clearInterval(timer);
      stream = null;
      client.close();
      resolve(status);
    });
    call.write({ hello: {
      executor_id: executorId, incarnation, slots, max_leases: slots, version: '1',
      subscriptions: [{ queue: 'node', types: Object.keys(handlers) }],
      held_leases: [...held.values()].map((entry) => entry.ref) } });
  });
}

process.on('SIGTERM', () => process.exit(0)); // Its leases go to others when they expire.
for (let i = 0; ; i++) {
  const { code, details } = await session(addresses[i % addresses.length]);
  log(`session with ${addresses[i % addresses.length]} ended: ${grpc.status[code]} ${details}`);
  const hopeless = ['ABORTED', 'INVALID_ARGUMENT', 'FAILED_PRECONDITION', 'UNIMPLEMENTED', 'UNAUTHENTICATED',
    'PERMISSION_DENIED'];
  if (hopeless.includes(grpc.status[code])) process.exit(1);
  await sleep(500 + Math.random() * 1000);
}
