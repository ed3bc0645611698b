// @ts-check
import * as restate from "@restatedev/restate-sdk";

import { attempt, once, quick } from "./steps.js";

export const options = { enableLazyState: process.env.LAZY_STATE === "1" };
const encoder = new TextEncoder();
const decoder = new TextDecoder();

/**
 * One state operation; see contract.Op.
 *
 * @typedef {{op: string, key: string, value: string}} Op
 */

/**
 * Carries out one of the reading operations.
 *
 * @param {restate.ObjectSharedContext} ctx
 * @param {Op} op
 */
export async function read(ctx, op) {
  switch (op.op) {
    case "get": {
      const value = await ctx.get(op.key);
      return value === null ? { present: false } : { present: true, value };
    }
    case "getBytes": {
      const value = await ctx.get(op.key, restate.serde.binary);
      return value === null ? { present: false } : { present: true, value: decoder.decode(value) };
    }
    case "keys":
      return { present: false, keys: (await ctx.stateKeys()).sort() };
    default:
      throw new restate.TerminalError(`unknown operation ${op.op}`);
  }
}

/** State. */
export const store = restate.object({
  name: "TsStore",
  options: { ...options, retryPolicy: { initialInterval: quick } },
  handlers: {
    script: async (/** @type {restate.ObjectContext} */ ctx, /** @type {Op[]} */ ops) => {
      const results = [];
      for (const op of ops) {
        switch (op.op) {
          case "set":
            ctx.set(op.key, op.value ?? "");
            break;
          case "setBytes":
            ctx.set(op.key, encoder.encode(op.value ?? ""), restate.serde.binary);
            break;
          case "clear":
            ctx.clear(op.key);
            break;
          case "clearAll":
            ctx.clearAll();
            break;
          case "sleep":
            await ctx.sleep(1);
            break;
          case "retry":
            await attempt({ id: op.key, fail: Number(op.value) }, "attempt");
            break;
          case "fail":
            throw new restate.TerminalError(op.value ?? "", { errorCode: 422 });
          default:
            results.push(await read(ctx, op));
        }
      }
      return results;
    },

    peek: restate.createObjectSharedHandler(
      async (/** @type {restate.ObjectSharedContext} */ ctx, /** @type {string} */ key) =>
        read(ctx, { op: "get", key, value: "" }),
    ),
  },
});

/** The order of exclusive handlers, and shared ones beside them. */
export const queue = restate.object({
  name: "TsQueue",
  options,
  handlers: {
    hold: async (/** @type {restate.ObjectContext} */ ctx, /** @type {import("./steps.js").Step} */ input) =>
      once(ctx, input),

    append: async (/** @type {restate.ObjectContext} */ ctx, /** @type {string} */ value) => {
      /** @type {string[]} */
      const values = (await ctx.get("values")) ?? [];
      await ctx.sleep(1);
      values.push(value);
      ctx.set("values", values);
      return values.length;
    },

    list: restate.createObjectSharedHandler(
      async (/** @type {restate.ObjectSharedContext} */ ctx) => (await ctx.get("values")) ?? null,
    ),
  },
});
