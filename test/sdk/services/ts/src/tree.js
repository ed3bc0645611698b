// @ts-check
import * as restate from "@restatedev/restate-sdk";

import { ping } from "./cancel.js";
import { options } from "./objects.js";
import { record } from "./recorder.js";
import { caught, tell } from "./steps.js";

/**
 * Starts the children of a node and waits for them; leaves wait for ever.
 *
 * @param {restate.ObjectContext} ctx
 * @param {{id: string, depth?: number, width?: number, send?: boolean}} input
 */
async function children(ctx, input) {
  const depth = input.depth ?? 0;
  const child = (/** @type {number} */ i) => ({
    service: "TsTree",
    key: `${ctx.key}.${i}`,
    method: "grow",
    parameter: { ...input, depth: depth - 1 },
    inputSerde: restate.serde.json,
  });
  const calls = [];
  for (let i = 0; depth > 0 && i < (input.width ?? 0); i++) {
    if (input.send) ctx.genericSend(child(i));
    else calls.push(ctx.genericCall(child(i)));
  }
  if (calls.length === 0) await ctx.awakeable().promise;
  for (const call of calls) await call;
}

/** Trees of invocations. */
export const tree = restate.object({
  name: "TsTree",
  options,
  handlers: {
    grow: async (
      /** @type {restate.ObjectContext} */ ctx,
      /** @type {{id: string, depth?: number, width?: number, send?: boolean}} */ input,
    ) => {
      await record(input.id, ctx.key);
      try {
        await children(ctx, input);
      } catch (error) {
        caught(error); // throws again what is not terminal
        await tell(ctx, "end", `${input.id}-ended`, ctx.key);
        throw error;
      }
    },

    ping,
  },
});
