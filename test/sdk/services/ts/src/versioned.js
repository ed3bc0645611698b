// @ts-check
import * as restate from "@restatedev/restate-sdk";

import { options } from "./objects.js";
import { record } from "./recorder.js";
import { tell } from "./steps.js";

/** @typedef {import("./steps.js").Step} Step */

/** What this process calls itself. */
const version = process.env.VERSION || "v1";

/**
 * A step that records and gives the version.
 *
 * @param {restate.Context} ctx
 * @param {string} id
 * @param {string} name
 */
function link(ctx, id, name) {
  return ctx.run(name, async () => {
    await record(`${id}-${name}`, version);
    return version;
  });
}

/** Work that is in flight while another version is deployed. */
export const versioned = restate.object({
  name: "TsVersioned",
  options,
  handlers: {
    version: restate.createObjectSharedHandler(async (/** @type {restate.ObjectSharedContext} */ _ctx) => version),

    work: async (/** @type {restate.ObjectContext} */ ctx, /** @type {Step} */ input) => {
      const before = await link(ctx, input.id, "before");
      const { id, promise } = ctx.awakeable();
      await tell(ctx, "publish", input.id, id);
      await promise;
      return { before, after: version };
    },

    chain: async (/** @type {restate.ObjectContext} */ ctx, /** @type {Step} */ input) => {
      const results = [];
      for (const name of ["a", "b", "c"]) results.push(await link(ctx, input.id, name));
      if (version === "v1" && input.fail) throw new restate.TerminalError("broken in v1");
      return results.join(",");
    },
  },
});
