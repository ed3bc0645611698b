// @ts-check
import * as restate from "@restatedev/restate-sdk";

import { record } from "./recorder.js";
import { attempt, quick } from "./steps.js";

/** @typedef {import("./steps.js").Step} Step */

const retryPolicy = { initialInterval: quick, maxAttempts: 3 };

/**
 * @param {restate.Context} _ctx
 * @param {Step} input
 */
const work = async (_ctx, input) => attempt(input, "attempt");

/** Ends what fails three times. */
export const killed = restate.service({
  name: "TsKilled",
  options: { retryPolicy: { ...retryPolicy, onMaxAttempts: "kill" } },
  handlers: { work },
});

/** Pauses what fails three times, or what asks for it. */
export const paused = restate.service({
  name: "TsPaused",
  options: { retryPolicy: { ...retryPolicy, onMaxAttempts: "pause" } },
  handlers: {
    work,

    step: async (/** @type {restate.Context} */ ctx, /** @type {Step} */ input) =>
      ctx.run("step", async () => {
        const n = await record(input.id, "try");
        if (n <= (input.fail ?? 0)) throw new restate.PauseError(`try ${n} asks for a pause`);
        return n;
      }),
  },
});
