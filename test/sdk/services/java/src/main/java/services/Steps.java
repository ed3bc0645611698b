package services;

import dev.restate.sdk.Context;
import dev.restate.sdk.annotation.Handler;
import dev.restate.sdk.annotation.Name;
import dev.restate.sdk.annotation.Service;
import dev.restate.sdk.common.RetryPolicy;
import dev.restate.sdk.common.TerminalException;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import services.Payloads.Failure;
import services.Payloads.Random;
import services.Payloads.Step;

/** Run, sleep, errors, retries and randomness. */
@Service
@Name("JavaSteps")
public class Steps {
  @Handler
  public int once(Context ctx, Step in) {
    return recorded(ctx, in.id(), in.gate());
  }

  /** Runs one recorded step, behind a gate if asked, and returns its ordinal. */
  static int recorded(Context ctx, String id, String gate) {
    return ctx.run(
        "once",
        Integer.class,
        () -> {
          int n = Recorder.record(id, "step");
          Recorder.await(gate);
          return n;
        });
  }

  @Handler
  public int many(Context ctx, Step in) {
    int sum = 0;
    for (int i = 0; i < in.n(); i++) {
      int step = i;
      sum +=
          ctx.run(
              Integer.class,
              () -> {
                Recorder.record(in.id(), Integer.toString(step));
                return step;
              });
    }
    return sum;
  }

  @Handler
  public int retry(Context ctx, Step in) {
    return ctx.run(
        "retry",
        Integer.class,
        Policies.step(),
        () -> Recorder.attempt(in.id(), "try", in.fail()));
  }

  @Handler
  public Failure exhaust(Context ctx, Step in) {
    return never(ctx, in, Policies.step().setMaxAttempts(in.n()));
  }

  @Handler
  public Failure exhaustTime(Context ctx, Step in) {
    return never(ctx, in, Policies.step().setMaxDuration(Duration.ofMillis(in.millis())));
  }

  /** Runs a step that never succeeds until the policy gives up. */
  private static Failure never(Context ctx, Step in, RetryPolicy policy) {
    return Results.caught(
        () ->
            ctx.run(
                "exhaust",
                policy,
                () -> {
                  Recorder.record(in.id(), "try");
                  throw new Deliberate(in.message());
                }));
  }

  @Handler
  public int later(Context ctx, Step in) {
    return ctx.run(
        "later",
        Integer.class,
        RetryPolicy.exponential(Duration.ofMillis(in.millis()), 1),
        () -> Recorder.attempt(in.id(), Long.toString(System.currentTimeMillis()), in.fail()));
  }

  @Handler
  public Failure refuse(Context ctx, Step in) {
    return Results.caught(
        () ->
            ctx.run(
                "refuse",
                () -> {
                  Recorder.record(in.id(), "try");
                  throw new TerminalException(in.code(), in.message());
                }));
  }

  @Handler
  public int flaky(Context ctx, Step in) throws IOException, InterruptedException {
    recorded(ctx, in.id() + "-step", "");
    return Recorder.attempt(in.id(), "attempt", in.fail());
  }

  @Handler
  public int fail(Context ctx, Step in) {
    throw new TerminalException(in.code(), in.message());
  }

  @Handler
  public List<Long> sleep(Context ctx, Step in) throws IOException, InterruptedException {
    long from = now(ctx, in.id());
    Recorder.record(in.id() + "-kept", "attempt");
    ctx.sleep(Duration.ofMillis(in.millis()));
    return List.of(from, now(ctx, in.id()));
  }

  /** Tells the time, as of when it was asked for first. */
  private static long now(Context ctx, String id) {
    return ctx.run(
        "now",
        Long.class,
        () -> {
          long now = System.currentTimeMillis();
          Recorder.record(id, Long.toString(now));
          return now;
        });
  }

  @Handler
  public Random random(Context ctx, Step in) throws IOException, InterruptedException {
    var source = ctx.random(); // every call of random starts the sequence anew
    var drawn = new Random(source.nextDouble(), source.nextUUID().toString());
    Recorder.attempt(in.id(), drawn.toString(), in.fail());
    return drawn;
  }

  @Handler
  public String big(Context ctx, Step in) {
    return ctx.run("big", String.class, () -> "x".repeat(in.n()));
  }
}
