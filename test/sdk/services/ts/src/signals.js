// @ts-check
import * as restate from "@restatedev/restate-sdk";

import { outcome } from "./awakeables.js";
import { tell } from "./steps.js";

/** Named signals between invocations. */
export const signals = restate.service({
  name: "TsSignals",
  handlers: {
    await: async (/** @type {restate.Context} */ ctx, /** @type {{id: string, names?: string[]}} */ input) => {
      if (input.id) await tell(ctx, "id", input.id, ctx.request().id);
      const outcomes = [];
      for (const name of input.names ?? []) outcomes.push(await outcome(ctx.signal(name)));
      return outcomes;
    },

    send: async (
      /** @type {restate.Context} */ ctx,
      /** @type {{invocation: restate.InvocationId, name: string, value?: string, reject?: string}} */ input,
    ) => {
      const signal = ctx.invocation(input.invocation).signal(input.name);
      if (input.reject) signal.reject(input.reject);
      else signal.resolve(input.value ?? "");
    },
  },
});
