// @ts-check
// An endpoint for test/tracing whose handlers record spans as its users do: with OpenTelemetry's SDK, the
// hooks of the TypeScript SDK, and an exporter that OTEL_EXPORTER_OTLP_ENDPOINT configures. It listens on PORT.
import "./node20.js";

import * as http2 from "node:http2";
import { trace } from "@opentelemetry/api";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import { NodeTracerProvider, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-node";
import { createEndpointHandler, handlers, service } from "@restatedev/restate-sdk";
import { openTelemetryHook } from "@restatedev/restate-sdk-opentelemetry";

new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(new OTLPTraceExporter())] }).register();
const tracer = trace.getTracer("test");

let failures = 1; // that are left

const traced = service({
  name: "Instrumented",
  handlers: {
    // The first attempt fails after its step, the second one replays it, so it has a span once.
    work: async (ctx) => {
      await ctx.run("step", () => tracer.startActiveSpan("work in a step", (span) => span.end()));
      if (failures-- > 0) throw new Error("not yet");
      return ctx.serviceClient(traced).nap();
    },
    // The attempt suspends, and another one continues.
    nap: handlers.handler({ inactivityTimeout: { milliseconds: 1 } }, async (ctx) => {
      await ctx.sleep({ seconds: 1 });
      tracer.startSpan("awake").end();
      return "done";
    }),
  },
  options: {
    hooks: [openTelemetryHook({ tracer })],
    retryPolicy: { initialInterval: { milliseconds: 10 } },
  },
});

http2.createServer(createEndpointHandler({ services: [traced], logger: () => {} })).listen(Number(process.env.PORT), "127.0.0.1");
