// @ts-check
// Uses the published ingress client of the TypeScript SDK against the ingress at
// INGRESS and the services whose names start with PREFIX. Prints what it got, as
// JSON by name, for the test to compare. ID makes keys unique.
import "./node20.js";

import * as clients from "@restatedev/restate-sdk-clients";

const { INGRESS = "", PREFIX = "", ID = "" } = process.env;
const ingress = clients.connect({ url: INGRESS });

const utils = ingress.serviceClient({ name: `${PREFIX}Utils` });
const steps = ingress.serviceClient({ name: `${PREFIX}Steps` });
const queue = ingress.objectClient({ name: `${PREFIX}Queue` }, `${ID}/ü ?`);
const flow = ingress.workflowClient({ name: `${PREFIX}Flow` }, `${ID}/ä`);
const sender = ingress.serviceSendClient({ name: `${PREFIX}Utils` });
const queueSender = ingress.objectSendClient({ name: `${PREFIX}Queue` }, `${ID}-sent`);

/** @type {Record<string, unknown>} */
const got = {};

/**
 * The status of a refused call.
 *
 * @param {PromiseLike<unknown>} call
 */
async function status(call) {
  try {
    await call;
    return 200;
  } catch (error) {
    return error instanceof clients.HttpCallError ? error.status : String(error);
  }
}

got.call = await utils.say({ value: "größe" });
got.object = [await queue.append("a"), await queue.append("b")];
got.failed = await status(steps.fail({ code: 418, message: "teapot" }));
got.missing = await status(ingress.serviceClient({ name: `${PREFIX}Nobody` }).nothing({}));

const key = clients.rpc.opts({ idempotencyKey: `${ID}-key` });
got.once = [await steps.once({ id: ID }, key), await steps.once({ id: ID }, key)];

const sent = await sender.say({ value: "sent" }, clients.rpc.sendOpts({ idempotencyKey: `${ID}-sent` }));
got.sent = [sent.status, await ingress.result(sent)];
const again = await sender.say({ value: "sent" }, clients.rpc.sendOpts({ idempotencyKey: `${ID}-sent` }));
got.again = [again.status, again.invocationId === sent.invocationId];
const delayed = await sender.say({ value: "later" }, clients.rpc.sendOpts({ idempotencyKey: `${ID}-later`, delay: 200 }));
got.delayed = await ingress.result(delayed);
got.queued = (await queueSender.append("x")).status;

const submitted = await flow.workflowSubmit({ id: `${ID}-flow`, promises: ["p"], text: "t" });
got.submitted = submitted.status;
got.unready = (await flow.workflowOutput()).ready;
got.completed = await flow.complete({ promise: "p", value: "done" });
got.attached = await flow.workflowAttach();
got.output = await flow.workflowOutput();
got.result = await ingress.result(submitted);

const holding = await ingress.send({
  service: `${PREFIX}Awakeables`,
  handler: "await",
  parameter: { id: `${ID}-awakeables`, n: 2 },
  opts: clients.rpc.sendOpts({ idempotencyKey: `${ID}-holding`, input: /** @type {any} */ (json()) }),
});
const [first, second] = await awakeables();
await ingress.resolveAwakeable(first, "resolved");
await ingress.rejectAwakeable(second, "rejected");
got.awakeables = await ingress.result(holding, json());

console.log(JSON.stringify(got));

/** JSON, as the clients want to have it for calls without a definition. */
function json() {
  return {
    contentType: "application/json",
    serialize: (/** @type {unknown} */ value) => new TextEncoder().encode(JSON.stringify(value)),
    deserialize: (/** @type {Uint8Array} */ data) => JSON.parse(new TextDecoder().decode(data)),
  };
}

/** The ids of the awakeables, which the test hands over on standard input. */
async function awakeables() {
  let text = "";
  process.stdin.setEncoding("utf8");
  for await (const chunk of process.stdin) {
    text += chunk;
    if (text.split("\n").length > 2) break;
  }
  return text.split("\n");
}
