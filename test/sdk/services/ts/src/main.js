// @ts-check
// The test service endpoint written with the TypeScript SDK, as plain JavaScript
// modules so that node runs it without a build. It listens on PORT and reports
// side effects to the recorder at RECORDER.
//
// LAZY_STATE=1 announces lazy state for its objects, BIDI=0 announces
// request-response mode, HTTP11=1 lets it speak HTTP/1.1 instead of HTTP/2, VERSION is what Versioned tells, and with IDENTITY_KEY
// only requests that are signed for that key are accepted.
import "./node20.js";

import * as http from "node:http";
import * as http2 from "node:http2";
import { createEndpointHandler } from "@restatedev/restate-sdk";

import { awakeables, holder } from "./awakeables.js";
import { caller } from "./caller.js";
import { cancel } from "./cancel.js";
import { drift, driftFailed, driftPaused } from "./drift.js";
import { echo } from "./echo.js";
import { explicit } from "./explicit.js";
import { flow } from "./flow.js";
import { interpreter } from "./interpreter.js";
import { killed, paused } from "./limits.js";
import { queue, store } from "./objects.js";
import { signals } from "./signals.js";
import { steps } from "./steps.js";
import { tree } from "./tree.js";
import { utils } from "./utils.js";
import { versioned } from "./versioned.js";

const handler = createEndpointHandler({
  services: [
    echo, steps, caller, utils, store, queue, awakeables, holder, flow, signals, cancel, explicit, tree,
    drift, driftFailed, driftPaused, killed, paused, versioned, interpreter,
  ],
  identityKeys: process.env.IDENTITY_KEY ? [process.env.IDENTITY_KEY] : undefined,
  bidirectional: process.env.BIDI !== "0",
  // Failed attempts are part of the tests; keep the log readable.
  logger: (meta, ...message) => {
    if (meta.level === "error" && process.env.VERBOSE) console.error(...message);
  },
});

const server = process.env.HTTP11 === "1" ? http.createServer(handler) : http2.createServer(handler);
server.listen(Number(process.env.PORT), "127.0.0.1");
