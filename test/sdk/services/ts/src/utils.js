// @ts-check
import * as restate from "@restatedev/restate-sdk";

import { record, wait } from "./recorder.js";

/**
 * What say does before it answers; see contract.Say.
 *
 * @typedef {{value?: string, id?: string, gate?: string, millis?: number, code?: number, message?: string}} Say
 */

/** What other services call and what is counted. */
export const utils = restate.service({
  name: "TsUtils",
  handlers: {
    say: async (/** @type {restate.Context} */ ctx, /** @type {Say} */ input) => {
      const { value = "", id } = input;
      if (input.millis) await ctx.sleep(input.millis);
      if (id) {
        await ctx.run("say", async () => {
          await record(id, value);
          await wait(input.gate);
        });
      }
      if (input.code) throw new restate.TerminalError(input.message ?? "", { errorCode: input.code });
      return value;
    },

    id: async (/** @type {restate.Context} */ ctx) => ctx.request().id,

    effects: async (/** @type {restate.Context} */ ctx, /** @type {{id: string, n?: number}} */ input) => {
      const steps = Array.from({ length: input.n ?? 0 }, (_, i) =>
        ctx.run(async () => {
          await record(input.id, String(i));
          return 1;
        }),
      );
      const ones = await restate.RestatePromise.all(steps);
      return ones.length;
    },

    sleeps: async (/** @type {restate.Context} */ ctx, /** @type {{millis?: number[]}} */ input) => {
      const sleeps = (input.millis ?? []).map((ms) => ctx.sleep(ms));
      await restate.RestatePromise.all(sleeps);
      return sleeps.length;
    },
  },
});
