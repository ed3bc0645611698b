// @ts-check
import * as restate from "@restatedev/restate-sdk";

import { record, wait } from "./recorder.js";

/**
 * What the handlers of Steps read; see contract.Step.
 *
 * @typedef {{id: string, n?: number, fail?: number, code?: number, message?: string, millis?: number, gate?: string, metadata?: Record<string, string>}} Step
 */

/** The first delay of handlers and steps that are meant to fail, in milliseconds. */
export const quick = 10;

/**
 * Describes a terminal error that a handler handles itself.
 *
 * @param {unknown} error
 */
export function caught(error) {
  if (!(error instanceof restate.TerminalError)) throw error;
  return { code: error.code, message: error.message, metadata: error.metadata };
}

/**
 * Waits for something and returns its terminal error, or the code 0.
 *
 * @param {PromiseLike<unknown>} promise
 */
export async function failure(promise) {
  try {
    await promise;
    return { code: 0, message: "" };
  } catch (error) {
    return caught(error);
  }
}

/**
 * Records values in one step.
 *
 * @param {restate.Context} ctx
 * @param {string} step
 * @param {string} id
 * @param {string[]} values
 */
export function tell(ctx, step, id, ...values) {
  return ctx.run(step, async () => {
    for (const value of values) await record(id, value);
  });
}

/**
 * A step that records its tries and does not succeed.
 *
 * @param {string} id
 * @param {string} [message]
 */
export function never(id, message) {
  return async () => {
    await record(id, "try");
    throw new Error(message);
  };
}

/**
 * Runs one recorded step, behind a gate if asked, and returns its ordinal.
 *
 * @param {restate.Context} ctx
 * @param {Step} input
 */
export function once(ctx, input) {
  return ctx.run("once", async () => {
    const n = await record(input.id, "step");
    await wait(input.gate);
    return n;
  });
}

/**
 * Records an attempt outside of any step and fails the first few.
 *
 * @param {Step} input
 * @param {string} value
 */
export async function attempt(input, value) {
  const n = await record(input.id, value);
  if (n <= (input.fail ?? 0)) throw new Error(`attempt ${n} is meant to fail`);
  return n;
}

/** Run, sleep, errors, retries and randomness. */
export const steps = restate.service({
  name: "TsSteps",
  options: { retryPolicy: { initialInterval: quick } },
  handlers: {
    once: async (/** @type {restate.Context} */ ctx, /** @type {Step} */ input) => once(ctx, input),

    many: async (/** @type {restate.Context} */ ctx, /** @type {Step} */ input) => {
      let sum = 0;
      for (let i = 0; i < (input.n ?? 0); i++) {
        sum += await ctx.run(async () => {
          await record(input.id, String(i));
          return i;
        });
      }
      return sum;
    },

    retry: async (/** @type {restate.Context} */ ctx, /** @type {Step} */ input) =>
      ctx.run("retry", () => attempt(input, "try"), { initialRetryInterval: quick }),

    exhaust: async (/** @type {restate.Context} */ ctx, /** @type {Step} */ input) =>
      failure(ctx.run("exhaust", never(input.id, input.message), {
        initialRetryInterval: quick,
        maxRetryAttempts: input.n,
      })),

    exhaustTime: async (/** @type {restate.Context} */ ctx, /** @type {Step} */ input) =>
      failure(ctx.run("exhaustTime", never(input.id, input.message), {
        initialRetryInterval: quick,
        maxRetryDuration: input.millis,
      })),

    later: async (/** @type {restate.Context} */ ctx, /** @type {Step} */ input) =>
      ctx.run("later", () => attempt(input, String(Date.now())), {
        initialRetryInterval: input.millis,
        retryIntervalFactor: 1,
      }),

    refuse: async (/** @type {restate.Context} */ ctx, /** @type {Step} */ input) =>
      failure(ctx.run("refuse", async () => {
        await record(input.id, "try");
        throw new restate.TerminalError(input.message ?? "", { errorCode: input.code });
      })),

    flaky: async (/** @type {restate.Context} */ ctx, /** @type {Step} */ input) => {
      await once(ctx, { id: `${input.id}-step` });
      return attempt(input, "attempt");
    },

    fail: async (/** @type {restate.Context} */ _ctx, /** @type {Step} */ input) => {
      throw new restate.TerminalError(input.message ?? "", { errorCode: input.code, metadata: input.metadata });
    },

    sleep: async (/** @type {restate.Context} */ ctx, /** @type {Step} */ input) => {
      const now = async () => {
        const at = Date.now();
        await record(input.id, String(at));
        return at;
      };
      const from = await ctx.run("from", now);
      await record(`${input.id}-kept`, "attempt");
      await ctx.sleep(input.millis ?? 0);
      return [from, await ctx.run("to", now)];
    },

    random: async (/** @type {restate.Context} */ ctx, /** @type {Step} */ input) => {
      const drawn = { number: ctx.rand.random(), uuid: ctx.rand.uuidv4() };
      await attempt(input, JSON.stringify(drawn));
      return drawn;
    },

    big: async (/** @type {restate.Context} */ ctx, /** @type {Step} */ input) =>
      ctx.run("big", () => "x".repeat(input.n ?? 0)),
  },
});
