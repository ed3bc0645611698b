// @ts-check
import * as restate from "@restatedev/restate-sdk";

/** Inputs and outputs: JSON, bytes, none, headers. */
export const echo = restate.service({
  name: "TsEcho",
  handlers: {
    json: async (/** @type {restate.Context} */ _ctx, /** @type {unknown} */ input) => input,

    bytes: restate.createServiceHandler(
      { input: restate.serde.binary, output: restate.serde.binary, accept: "*/*" },
      async (_ctx, input) => input,
    ),

    nothing: async (/** @type {restate.Context} */ _ctx) => {},

    header: async (/** @type {restate.Context} */ ctx, /** @type {string} */ name) =>
      ctx.request().headers.get(name) ?? "",
  },
});
