// @ts-check
// The test service endpoint written with the TypeScript SDK, as plain JavaScript
// modules so that node runs it without a build. It listens on PORT and reports
// side effects to the recorder at RECORDER.
//
// LAZY_STATE=1 announces lazy state for its objects, BIDI=0 announces
// request-response mode.
import "./node20.js";

import * as http2 from "node:http2";
import { createEndpointHandler } from "@restatedev/restate-sdk";

import { caller } from "./caller.js";
import { echo } from "./echo.js";
import { queue, store } from "./objects.js";
import { steps } from "./steps.js";

const handler = createEndpointHandler({
  services: [echo, steps, caller, store, queue],
  bidirectional: process.env.BIDI !== "0",
  // Failed attempts are part of the tests; keep the log readable.
  logger: (meta, ...message) => {
    if (meta.level === "error" && process.env.VERBOSE) console.error(...message);
  },
});

http2.createServer(handler).listen(Number(process.env.PORT), "127.0.0.1");
