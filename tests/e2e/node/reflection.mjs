// Uses the scheduler with nothing but what server reflection tells, as grpcurl
// does: lists the services, submits a task, waits for it, watches it, lists it,
// asks for health. Prints one JSON object.
//
// usage: node reflection.mjs HOST:PORT
import grpc from '@grpc/grpc-js';
import * as Reflection from 'grpc-js-reflection-client';

const address = process.argv[2];
const credentials = grpc.credentials.createInsecure();
const reflection = new (Reflection.GrpcReflection ?? Reflection.Client)(address, credentials);
const options = { keepCase: true, longs: String, enums: String, defaults: true, oneofs: true };

async function connect(service) {
  const descriptor = await reflection.getDescriptorBySymbol(service);
  const loaded = descriptor.getPackageObject(options);
  const Client = service.split('.').reduce((scope, name) => scope[name], loaded);
  return new Client(address, credentials);
}

function call(client, method, request) {
  return new Promise((resolve) => {
    client[method](request, (error, response) =>
      resolve(error ? { code: grpc.status[error.code], details: error.details } : response));
  });
}

const services = (await reflection.listServices()).sort();
const tasks = await connect('leasehold.v1.TaskService');
const methods = Object.keys(Object.getPrototypeOf(tasks)).filter((name) => /^[A-Z]/.test(name));

const submitted = await call(tasks, 'SubmitTask', {
  task: { queue: 'q', type: 'echo', payload: { json: '{"n": 9007199254740993}' } },
});
const finished = await call(tasks, 'WaitTask', { task_id: submitted.id });
const watched = [];
for await (const task of tasks.WatchTask({ task_id: submitted.id })) watched.push(task.state);
const listed = await call(tasks, 'ListTasks', { queue: 'q' });
const refused = await call(tasks, 'SubmitTask', { task: { queue: 'Q', type: 'echo' } });

const health = await connect('grpc.health.v1.Health');
const healthOf = {};
for (const service of ['', 'leasehold.v1.TaskService', 'leasehold.v1.ExecutorService', 'nobody']) {
  const answer = await call(health, 'Check', { service });
  healthOf[service || 'all'] = answer.status ?? answer.code;
}

console.log(JSON.stringify({
  services,
  methods,
  state: finished.state,
  result: finished.result?.json,
  watched,
  listed: listed.tasks?.length,
  refused,
  health: healthOf,
}));
process.exit(0);
