// @ts-check
import * as restate from "@restatedev/restate-sdk";

import { start } from "./caller.js";
import { options } from "./objects.js";
import { caught, tell } from "./steps.js";

const { RestatePromise } = restate;

/**
 * One command of a program; see contract.Command.
 *
 * @typedef {{do: string, name?: string, value?: string, millis?: number, code?: number, message?: string,
 *   call?: import("./caller.js").Call, of?: Command[]}} Command
 *
 * What it came to; see contract.Outcome.
 *
 * @typedef {{value?: string, code?: number, message?: string, index?: number, of?: Outcome[]}} Outcome
 *
 * Something to await, and how to tell what it came to. The promise is the SDK's
 * own and not mapped, so that combinations of it are what a user would write.
 *
 * @typedef {{promise: restate.RestatePromise<any>, shape: (value: any) => Outcome,
 *   fail: (error: unknown) => Outcome}} Node
 */

/**
 * @param {restate.RestatePromise<any>} promise
 * @param {(value: any) => Outcome} [shape]
 * @param {(error: unknown) => Outcome} [fail]
 * @returns {Node}
 */
function node(promise, shape = (value) => ({ value }), fail = failed) {
  return { promise, shape, fail };
}

/** @param {unknown} error */
function failed(error) {
  if (error instanceof AggregateError) return { code: 500, message: "all failed" };
  return caught(error);
}

/**
 * Combines nodes by the rule that kind names.
 *
 * @param {string} kind
 * @param {Node[]} of
 * @returns {Node}
 */
function combine(kind, of) {
  const promises = of.map((n) => n.promise);
  switch (kind) {
    case "all":
      return node(RestatePromise.all(promises), (values) => ({
        of: values.map((/** @type {any} */ v, /** @type {number} */ i) => of[i].shape(v)),
      }));
    case "settled":
      return node(RestatePromise.allSettled(promises), (results) => ({
        of: results.map((/** @type {PromiseSettledResult<any>} */ r, /** @type {number} */ i) =>
          r.status === "fulfilled" ? of[i].shape(r.value) : of[i].fail(r.reason),
        ),
      }));
    case "any":
      return node(
        RestatePromise.any(promises.map((p, i) => p.map((value, failure) => {
          if (failure) throw failure;
          return { index: i, of: [of[i].shape(value)] };
        }))),
        (outcome) => outcome,
        (error) => {
          const errors = error instanceof AggregateError ? error.errors : [];
          return { ...failed(error), of: errors.map((e, i) => of[i].fail(e)) };
        },
      );
    default:
      return node(
        RestatePromise.race(promises.map((p, i) => p.map((value, failure) => ({
          index: i,
          of: [failure ? of[i].fail(failure) : of[i].shape(value)],
        })))),
        (outcome) => outcome,
      );
  }
}

/** One run of a program. */
class Interpreter {
  /**
   * @param {restate.ObjectContext} ctx
   * @param {string} id
   */
  constructor(ctx, id) {
    this.ctx = ctx;
    this.id = id;
    /** @type {Map<string, Node>} what start began, by name */
    this.kept = new Map();
  }

  /**
   * Carries out one command and returns what it came to.
   *
   * @param {Command} c
   * @returns {Promise<Outcome>}
   */
  async command(c) {
    const name = c.name ?? "";
    switch (c.do) {
      case "start":
        this.kept.set(name, await this.begin(parts(c)[0]));
        return {};
      case "await":
        return this.command(parts(c)[0]);
      case "id":
        await tell(this.ctx, "id", `${this.id}-${name}`, this.ctx.request().id);
        return {};
      case "set":
        this.ctx.set(name, c.value ?? "");
        return {};
      case "get":
        return { value: (await this.ctx.get(name)) ?? "" };
      case "fail":
        throw new restate.TerminalError(c.message ?? "", { errorCode: c.code });
    }
    const n = await this.begin(c);
    try {
      return n.shape(await n.promise);
    } catch (error) {
      return n.fail(error);
    }
  }

  /**
   * Makes what the command awaits, without awaiting it.
   *
   * @param {Command} c
   * @returns {Promise<Node>}
   */
  async begin(c) {
    const name = c.name ?? "";
    switch (c.do) {
      case "wait": {
        const kept = this.kept.get(name);
        if (!kept) throw new restate.TerminalError(`nothing kept as ${name}`);
        return kept;
      }
      case "sleep":
        return node(this.ctx.sleep(c.millis ?? 0), () => ({ value: "slept" }));
      case "run":
        return node(this.ctx.run("run", () => {
          if (c.code) throw new restate.TerminalError(c.message ?? "", { errorCode: c.code });
          return c.value ?? "";
        }));
      case "awakeable": {
        const { id, promise } = this.ctx.awakeable();
        await tell(this.ctx, "publish", `${this.id}-${name}`, id);
        return node(promise);
      }
      case "signal":
        return node(this.ctx.signal(name));
      case "call":
        if (!c.call) break;
        return node(start(this.ctx, c.call));
      case "all":
      case "settled":
      case "any":
      case "first": {
        const of = [];
        for (const part of parts(c)) of.push(await this.begin(part));
        return combine(c.do, of);
      }
    }
    throw new restate.TerminalError(`unknown command ${c.do}`);
  }
}

/** @param {Command} c */
function parts(c) {
  return c.of ?? [];
}

/** Carries out programs, to combine awaits in any way. */
export const interpreter = restate.object({
  name: "TsInterpreter",
  options,
  handlers: {
    run: async (
      /** @type {restate.ObjectContext} */ ctx,
      /** @type {{id: string, commands?: Command[]}} */ program,
    ) => {
      const interpreter = new Interpreter(ctx, program.id);
      const outcomes = [];
      for (const c of program.commands ?? []) outcomes.push(await interpreter.command(c));
      return outcomes;
    },
  },
});
