// @ts-check
import * as restate from "@restatedev/restate-sdk";

import { options } from "./objects.js";
import { record } from "./recorder.js";
import { caught, never, quick, tell } from "./steps.js";

const hour = 3_600_000;

/**
 * How to wait; see contract.Block.
 *
 * @typedef {{id: string, in: string, child?: string, catch?: boolean}} Block
 */

/**
 * Waits in the way that the input names.
 *
 * @param {restate.ObjectContext} ctx
 * @param {Block} input
 * @returns {PromiseLike<unknown>}
 */
function waitFor(ctx, input) {
  const child = {
    service: "TsCancel",
    key: input.child ?? "",
    method: "block",
    parameter: { id: `${input.id}-child`, in: "awakeable" },
    inputSerde: restate.serde.json,
  };
  const call = () => ctx.genericCall({ ...child, outputSerde: restate.serde.json });
  switch (input.in) {
    case "sleep":
      return ctx.sleep(hour);
    case "awakeable":
      return ctx.awakeable().promise;
    case "call":
      return call();
    case "attach":
      return ctx.genericSend(child).invocationId.then((id) => ctx.invocation(id).attach(restate.serde.json));
    case "send":
      ctx.genericSend(child);
      return ctx.sleep(hour);
    case "combined":
      return restate.RestatePromise.race([ctx.sleep(hour), ctx.awakeable().promise, call()]);
    case "run":
      return ctx.run("never", never(`${input.id}-try`, "never works"), {
        initialRetryInterval: quick,
        maxRetryInterval: 1000,
      });
    default:
      throw new restate.TerminalError(`unknown wait ${input.in}`);
  }
}

/** Answers when the key is free. */
export const ping = async (/** @type {restate.ObjectContext} */ _ctx) => "pong";

/** Cancellation in every kind of await. */
export const cancel = restate.object({
  name: "TsCancel",
  options,
  handlers: {
    block: async (/** @type {restate.ObjectContext} */ ctx, /** @type {Block} */ input) => {
      await record(input.id, "blocked"); // not in a step: that would be what the cancellation hits
      try {
        await waitFor(ctx, input);
      } catch (error) {
        const failure = caught(error);
        await tell(ctx, "undo", `${input.id}-undone`, String(failure.code));
        if (input.catch) return failure;
        throw error;
      }
      throw new restate.TerminalError("nothing was waited for");
    },

    ping,
  },
});
