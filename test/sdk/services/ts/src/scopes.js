// @ts-check
// Uses scopes and limit keys of the published ingress client against the ingress at
// INGRESS and the services whose names start with PREFIX. Prints what it got, as JSON
// by name, for the test to compare. ID makes keys unique.
import "./node20.js";

import * as clients from "@restatedev/restate-sdk-clients";

const { INGRESS = "", PREFIX = "", ID = "" } = process.env;
const ingress = clients.connect({ url: INGRESS });
const one = ingress.scope("tenant-1");
const two = ingress.scope("tenant-2");
const utils = { name: `${PREFIX}Utils` };
const queue = { name: `${PREFIX}Queue` };
const flow = { name: `${PREFIX}Flow` };

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

got.call = await one.serviceClient(utils).say({ value: "größe" }, clients.rpc.opts({ limitKey: "team/user" }));
got.objects = [
  await one.objectClient(queue, `${ID}/ü ?`).append("a"),
  await two.objectClient(queue, `${ID}/ü ?`).append("a"),
  await two.objectClient(queue, `${ID}/ü ?`).append("b"),
];

const again = clients.rpc.sendOpts({ idempotencyKey: ID });
got.sent = [
  (await one.serviceSendClient(utils).say({ value: "1" }, again)).status,
  (await one.serviceSendClient(utils).say({ value: "1" }, again)).status,
  (await two.serviceSendClient(utils).say({ value: "1" }, again)).status,
];
got.delayed = (await two.serviceSendClient(utils).say({ value: "2" }, clients.rpc.sendOpts({ delay: 5 }))).status;
got.generic = await ingress.call({ service: utils.name, handler: "say", parameter: { value: "typed" }, scope: "tenant-1" });
got.workflow = [
  (await one.workflowClient(flow, ID).workflowSubmit("p")).status,
  (await one.workflowClient(flow, ID).workflowSubmit("p")).status,
  (await two.workflowClient(flow, ID).workflowSubmit("p")).status,
];
got.unscoped = await status(ingress.serviceClient(utils).say({ value: "3" }, clients.rpc.opts({ limitKey: "team" })));
got.bad = await status(ingress.scope("a b").serviceClient(utils).say({ value: "4" }));

console.log(JSON.stringify(got));
