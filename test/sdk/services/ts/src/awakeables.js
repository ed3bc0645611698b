// @ts-check
import * as restate from "@restatedev/restate-sdk";

import { options } from "./objects.js";
import { caught, tell } from "./steps.js";

/**
 * What something was resolved or is rejected with; see contract.Completion.
 *
 * @typedef {{awakeable?: string, promise?: string, value?: string, reject?: string}} Completion
 */

/**
 * What something that is awaited came to; see contract.Outcome.
 *
 * @param {PromiseLike<string>} promise
 */
export async function outcome(promise) {
  try {
    return { value: await promise };
  } catch (error) {
    return caught(error);
  }
}

/**
 * Resolves or rejects an awakeable of another invocation.
 *
 * @param {restate.Context} ctx
 * @param {string} id
 * @param {Completion} input
 */
function complete(ctx, id, input) {
  if (input.reject) ctx.rejectAwakeable(id, input.reject);
  else ctx.resolveAwakeable(id, input.value ?? "");
}

/** Awakeables, waited for and completed by handlers. */
export const awakeables = restate.service({
  name: "TsAwakeables",
  handlers: {
    await: async (/** @type {restate.Context} */ ctx, /** @type {{id: string, n?: number}} */ input) => {
      const all = Array.from({ length: input.n ?? 0 }, () => ctx.awakeable());
      await tell(ctx, "publish", input.id, ...all.map((a) => a.id));
      const outcomes = [];
      for (const a of all) outcomes.push(await outcome(a.promise));
      return outcomes;
    },

    complete: async (/** @type {restate.Context} */ ctx, /** @type {Completion} */ input) => {
      complete(ctx, input.awakeable ?? "", input);
    },

    delegate: async (/** @type {restate.Context} */ ctx, /** @type {{holder: string, key: string}} */ input) => {
      const { id, promise } = ctx.awakeable();
      await ctx.genericCall({
        service: input.holder,
        key: input.key,
        method: "hold",
        parameter: id,
        inputSerde: restate.serde.json,
      });
      return promise;
    },
  },
});

/** Keeps the id of an awakeable until it is told to complete it. */
export const holder = restate.object({
  name: "TsHolder",
  options,
  handlers: {
    hold: async (/** @type {restate.ObjectContext} */ ctx, /** @type {string} */ id) => {
      ctx.set("id", id);
    },

    has: async (/** @type {restate.ObjectContext} */ ctx) => (await ctx.get("id")) !== null,

    complete: async (/** @type {restate.ObjectContext} */ ctx, /** @type {Completion} */ input) => {
      const id = /** @type {string | null} */ (await ctx.get("id"));
      if (id === null) throw new restate.TerminalError("nothing held", { errorCode: 404 });
      ctx.clear("id");
      complete(ctx, id, input);
    },
  },
});
