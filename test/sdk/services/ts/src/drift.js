// @ts-check
import * as restate from "@restatedev/restate-sdk";

import { options } from "./objects.js";
import { record } from "./recorder.js";
import { quick } from "./steps.js";

const retryPolicy = { initialInterval: quick, exponentiationFactor: 1 };

/**
 * Does one thing on its first and last attempts and another between them.
 *
 * @param {restate.ObjectContext} ctx
 * @param {{id: string, first: string, second: string, heal: number}} input
 */
async function run(ctx, input) {
  const n = await record(input.id, "attempt");
  const what = n > 1 && n < input.heal ? input.second : input.first;
  switch (what) {
    case "sleep":
      await ctx.sleep(1);
      break;
    case "run":
    case "other":
      await ctx.run(what, () => {});
      break;
    case "set":
      ctx.set("k", "v");
      break;
    case "get":
      await ctx.get("k");
      break;
    case "call":
      await ctx.genericCall({
        service: "TsUtils",
        method: "say",
        parameter: { value: "x" },
        inputSerde: restate.serde.json,
        outputSerde: restate.serde.json,
      });
      break;
  }
  if (n < input.heal) throw new Error(`attempt ${n} is meant to fail`);
  return n;
}

/** Handlers that do something else on some of their attempts. */
export const drift = restate.object({
  name: "TsDrift",
  options: { ...options, retryPolicy },
  handlers: { run },
});

/** The same, ended at the first mismatch. */
export const driftFailed = restate.object({
  name: "TsDriftFailed",
  options: { ...options, retryPolicy, onJournalMismatchErrors: "fail" },
  handlers: { run },
});

/** The same, paused at the first mismatch. */
export const driftPaused = restate.object({
  name: "TsDriftPaused",
  options: { ...options, retryPolicy, onJournalMismatchErrors: "pause" },
  handlers: { run },
});
