// @ts-check
import * as restate from "@restatedev/restate-sdk";

import { options, read } from "./objects.js";
import { caught, failure, tell } from "./steps.js";

/** Workflows and their durable promises. */
export const flow = restate.workflow({
  name: "TsFlow",
  options,
  handlers: {
    run: async (
      /** @type {restate.WorkflowContext} */ ctx,
      /** @type {{id: string, promises?: string[], text?: string}} */ input,
    ) => {
      await tell(ctx, "run", input.id, "run");
      ctx.set("text", input.text ?? "");
      /** @type {string[]} */
      const values = [];
      for (const name of input.promises ?? []) {
        values.push(await ctx.promise(name));
        ctx.set("got", values.length);
      }
      return values;
    },

    await: async (/** @type {restate.WorkflowSharedContext} */ ctx, /** @type {string} */ name) => ctx.promise(name).get(),

    peek: async (/** @type {restate.WorkflowSharedContext} */ ctx, /** @type {string} */ name) => {
      try {
        const value = await ctx.promise(name).peek();
        return value === undefined ? {} : { index: 1, value };
      } catch (error) {
        return { index: 1, ...caught(error) };
      }
    },

    complete: async (
      /** @type {restate.WorkflowSharedContext} */ ctx,
      /** @type {import("./awakeables.js").Completion} */ input,
    ) => {
      const promise = ctx.promise(input.promise ?? "");
      return failure(input.reject ? promise.reject(input.reject) : promise.resolve(input.value ?? ""));
    },

    text: async (/** @type {restate.WorkflowSharedContext} */ ctx) => read(ctx, { op: "get", key: "text", value: "" }),
  },
});
