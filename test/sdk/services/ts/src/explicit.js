// @ts-check
import * as restate from "@restatedev/restate-sdk";

import { options } from "./objects.js";
import { record } from "./recorder.js";
import { tell } from "./steps.js";

const hour = 3_600_000;

/** Cancellation that the handler itself waits for, or does not. */
export const explicit = restate.object({
  name: "TsExplicit",
  options: { ...options, explicitCancellation: true },
  handlers: {
    block: async (/** @type {restate.ObjectContext} */ ctx, /** @type {import("./cancel.js").Block} */ input) => {
      const internal = /** @type {restate.internal.ContextInternal} */ (ctx);
      const cancelled = () => internal.cancellation().map(() => "cancelled");
      const call = () =>
        ctx.genericCall({
          service: "TsCancel",
          key: input.child ?? "",
          method: "block",
          parameter: { id: `${input.id}-child`, in: "awakeable", catch: true },
          inputSerde: restate.serde.json,
          outputSerde: restate.serde.json,
        });
      await record(input.id, "blocked");
      switch (input.in) {
        case "sleep":
          await restate.RestatePromise.race([ctx.sleep(hour), cancelled()]);
          break;
        case "awakeable": {
          const { id, promise } = ctx.awakeable();
          await tell(ctx, "publish", `${input.id}-awakeable`, id);
          await promise; // a cancellation is no matter of its
          await restate.RestatePromise.race([ctx.sleep(hour), cancelled()]);
          break;
        }
        case "call": {
          const child = call();
          await restate.RestatePromise.race([child, cancelled()]);
          if (input.catch) await internal.cancelPreviousCalls();
          await tell(ctx, "undo", `${input.id}-undone`, "first");
          await restate.RestatePromise.race([child, cancelled()]);
          break;
        }
        default:
          throw new restate.TerminalError(`unknown wait ${input.in}`);
      }
      await tell(ctx, "undo", `${input.id}-undone`, "cancelled");
      return "cancelled";
    },
  },
});
