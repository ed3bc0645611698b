// @ts-check
import * as restate from "@restatedev/restate-sdk";

import { caught, failure } from "./steps.js";

/**
 * An invocation to make; see contract.Call.
 *
 * @typedef {{service: string, key?: string, handler: string, input?: unknown, delayMillis?: number, idempotencyKey?: string, headers?: Record<string, string>}} Call
 */

/**
 * What genericCall and genericSend want to know.
 *
 * @param {Call} input
 */
function parameters(input) {
  return {
    service: input.service,
    key: input.key,
    method: input.handler,
    parameter: input.input,
    inputSerde: restate.serde.json,
    idempotencyKey: input.idempotencyKey || undefined,
    headers: input.headers,
  };
}

/**
 * @param {restate.Context} ctx
 * @param {Call} input
 */
export function start(ctx, input) {
  return ctx.genericCall({ ...parameters(input), outputSerde: restate.serde.json });
}

/** Calls, sends and waiting for several things at once. */
export const caller = restate.service({
  name: "TsCaller",
  handlers: {
    call: async (/** @type {restate.Context} */ ctx, /** @type {Call} */ input) => start(ctx, input),

    send: async (/** @type {restate.Context} */ ctx, /** @type {Call} */ input) =>
      ctx.genericSend({ ...parameters(input), delay: input.delayMillis }).invocationId,

    catch: async (/** @type {restate.Context} */ ctx, /** @type {Call} */ input) => failure(start(ctx, input)),

    fanout: async (/** @type {restate.Context} */ ctx, /** @type {Call[]} */ input) =>
      restate.RestatePromise.all(input.map((call) => start(ctx, call))),

    settle: async (/** @type {restate.Context} */ ctx, /** @type {Call[]} */ input) => {
      const calls = input.map((call) => start(ctx, call));
      const results = await restate.RestatePromise.allSettled(calls);
      return results.map((r) => (r.status === "fulfilled" ? { code: 0, message: "" } : caught(r.reason)));
    },

    race: async (/** @type {restate.Context} */ ctx, /** @type {{millis: number[]}} */ input) => {
      const sleeps = input.millis.map((ms, i) => ctx.sleep(ms).map(() => i));
      return restate.RestatePromise.race(sleeps);
    },

    timeout: async (/** @type {restate.Context} */ ctx, /** @type {{call: Call, millis: number}} */ input) => {
      try {
        await start(ctx, input.call).orTimeout(input.millis);
        return true;
      } catch (error) {
        if (error instanceof restate.TimeoutError) return false;
        throw error;
      }
    },

    cancel: async (/** @type {restate.Context} */ ctx, /** @type {restate.InvocationId} */ id) => {
      ctx.invocation(id).cancel();
    },

    attach: async (/** @type {restate.Context} */ ctx, /** @type {restate.InvocationId} */ id) =>
      ctx.invocation(id).attach(restate.serde.json),

    catchAttach: async (/** @type {restate.Context} */ ctx, /** @type {restate.InvocationId} */ id) =>
      failure(ctx.invocation(id).attach(restate.serde.json)),
  },
});
